"""midst: the median from the midst of the network.

The public names, re-exported; each is loaded when first used, so that `midst --help` does not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from midst._version import __version__

if TYPE_CHECKING:
    from midst import federated, graphs
    from midst.certificate import Certificate
    from midst.engines.ensemble import EnsembleResult, solve_ensemble
    from midst.errors import InputError, MidstError, MissingExtra, NotCertified, TraceError
    from midst.graphs import Graph
    from midst.methods import After, Certified, Consensus, Exact, Search
    from midst.objectives import Mean, Quantile
    from midst.privacy import priors
    from midst.privacy.adversaries import Adversary
    from midst.privacy.attack import Reconstruction, reconstruct
    from midst.privacy.audit import Leakage, audit
    from midst.privacy.ledger import Ledger
    from midst.privacy.priors import Density, Laplace, Normal, Samples, Uniform
    from midst.privacy.views import View, view
    from midst.problems import Problem
    from midst.result import Result
    from midst.solving import maximum, mean, median, minimum, quantile, solve
    from midst.trace import Trace
    from midst.trace import load as load_trace

_MODULES = {"federated": "federated", "graphs": "graphs", "priors": "privacy.priors"}
_HOME = {
    "Adversary": "privacy.adversaries",
    "After": "methods",
    "Certificate": "certificate",
    "Certified": "methods",
    "Consensus": "methods",
    "Density": "privacy.priors",
    "EnsembleResult": "engines.ensemble",
    "Exact": "methods",
    "Graph": "graphs",
    "InputError": "errors",
    "Laplace": "privacy.priors",
    "Leakage": "privacy.audit",
    "Ledger": "privacy.ledger",
    "Mean": "objectives",
    "MidstError": "errors",
    "MissingExtra": "errors",
    "Normal": "privacy.priors",
    "NotCertified": "errors",
    "Problem": "problems",
    "Quantile": "objectives",
    "Reconstruction": "privacy.attack",
    "Result": "result",
    "Samples": "privacy.priors",
    "Search": "methods",
    "Trace": "trace",
    "TraceError": "errors",
    "Uniform": "privacy.priors",
    "View": "privacy.views",
    "audit": "privacy.audit",
    "load_trace": "trace:load",
    "maximum": "solving",
    "mean": "solving",
    "median": "solving",
    "minimum": "solving",
    "quantile": "solving",
    "reconstruct": "privacy.attack",
    "solve": "solving",
    "solve_ensemble": "engines.ensemble",
    "view": "privacy.views",
}

__all__ = [
    "Adversary",
    "After",
    "Certificate",
    "Certified",
    "Consensus",
    "Density",
    "EnsembleResult",
    "Exact",
    "Graph",
    "InputError",
    "Laplace",
    "Leakage",
    "Ledger",
    "Mean",
    "MidstError",
    "MissingExtra",
    "Normal",
    "NotCertified",
    "Problem",
    "Quantile",
    "Reconstruction",
    "Result",
    "Samples",
    "Search",
    "Trace",
    "TraceError",
    "Uniform",
    "View",
    "__version__",
    "audit",
    "federated",
    "graphs",
    "load_trace",
    "maximum",
    "mean",
    "median",
    "minimum",
    "priors",
    "quantile",
    "reconstruct",
    "solve",
    "solve_ensemble",
    "view",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"midst.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'midst' has no attribute {name!r}")
    module, _, original = _HOME[name].partition(":")
    return getattr(import_module(f"midst.{module}"), original or name)


def __dir__() -> list[str]:
    return sorted(__all__)
