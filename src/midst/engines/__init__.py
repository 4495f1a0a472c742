"""Ways to drive the one step: each engine turns a `System` into the sequence x(0), x(1), … with the branches taken.

An engine is a function `iterate(system) -> Iterator[(x, branch)]`, endless, in working units. Stopping, recording and
reporting belong to `solve.py`. The arrays it yields are its own until the next step: copy what is to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from midst.engines import arrays, reference
from midst.system import System
from midst.update import Array, Branch

Engine = Callable[[System], Iterator[tuple[Array, Branch]]]

ENGINES: dict[str, Engine] = {
    "arrays": arrays.iterate,
    "edges": arrays.iterate_edges,
    "reference": reference.iterate,
}
