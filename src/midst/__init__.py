"""midst: the median from the midst of the network.

The public names, re-exported; each is loaded when first used, so that `midst --help` does not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from midst._version import __version__

if TYPE_CHECKING:
    from midst import graphs
    from midst.certificate import Certificate
    from midst.errors import InputError, MidstError, MissingExtra, NotCertified, TraceError
    from midst.graphs import Graph
    from midst.objectives import Mean, Quantile
    from midst.problems import Problem
    from midst.result import Result
    from midst.solving import maximum, mean, median, minimum, quantile, solve
    from midst.system import Guard
    from midst.trace import Trace
    from midst.trace import load as load_trace

_HOME = {
    "Certificate": "certificate",
    "Graph": "graphs",
    "Guard": "system",
    "InputError": "errors",
    "Mean": "objectives",
    "MidstError": "errors",
    "MissingExtra": "errors",
    "NotCertified": "errors",
    "Problem": "problems",
    "Quantile": "objectives",
    "Result": "result",
    "Trace": "trace",
    "TraceError": "errors",
    "load_trace": "trace:load",
    "maximum": "solving",
    "mean": "solving",
    "median": "solving",
    "minimum": "solving",
    "quantile": "solving",
    "solve": "solving",
}

__all__ = [
    "Certificate",
    "Graph",
    "Guard",
    "InputError",
    "Mean",
    "MidstError",
    "MissingExtra",
    "NotCertified",
    "Problem",
    "Quantile",
    "Result",
    "Trace",
    "TraceError",
    "__version__",
    "graphs",
    "load_trace",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantile",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name == "graphs":
        return import_module("midst.graphs")
    if name not in _HOME:
        raise AttributeError(f"module 'midst' has no attribute {name!r}")
    module, _, original = _HOME[name].partition(":")
    return getattr(import_module(f"midst.{module}"), original or name)


def __dir__() -> list[str]:
    return sorted(__all__)
