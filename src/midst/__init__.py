"""midst: the median from the midst of the network.

The public names are those of `__init__.pyi`, which editors and type checkers read as well: one list. Each is loaded
when it is first used, so that `midst --help` does not wait for NumPy.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def _read_stub() -> dict[str, tuple[str, str]]:
    """Each public name: its module, and its name there."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes: dict[str, tuple[str, str]] = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom):
            homes |= {alias.name: (line.module or "", alias.name) for alias in line.names}
        elif isinstance(line, ast.Assign):  # max = maximum
            shown, original = ast.unparse(line).split(" = ")
            homes[shown] = homes.pop(original)
    return homes


_HOMES = _read_stub()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'midst' has no attribute {name!r}")
    module, original = _HOMES[name]
    if module != __name__:
        home = import_module(module)
        if hasattr(home, original):
            return getattr(home, original)
    return import_module(f"{module}.{original}")


def __dir__() -> list[str]:
    return __all__
