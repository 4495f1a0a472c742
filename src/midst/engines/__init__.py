"""Ways to drive the one step: each engine turns a `System` into the sequence x(0), x(1), … with the branches taken.

An engine is a function `iterate(system) -> Iterator[(x, branch, proofs)]`, endless, in working units. `proofs` is None
until every node knows the proved answer to every coordinate, where the system finishes by a count. Stopping, recording
and reporting belong to `solving.py`. The arrays an engine yields are its own until the next step: copy what is to be
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from midst.counting import Proof
from midst.engines import arrays, reference
from midst.system import System
from midst.update import Array, Branch

Engine = Callable[[System], Iterator[tuple[Array, Branch, tuple[Proof, ...] | None]]]

ENGINES: dict[str, Engine] = {
    "arrays": arrays.iterate,
    "float32": arrays.iterate_float32,
    "edges": arrays.iterate_edges,
    "reference": reference.iterate,
}
