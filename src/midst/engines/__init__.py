"""Ways to drive the one step: each engine turns a `System` into the sequence x(0), x(1), … with the branches taken.

An engine is a function `iterate(system) -> Iterator[(x, branch)]`, endless, in working units. Stopping, recording and
reporting belong to `solving.py`. The arrays an engine yields are its own until the next step: copy what is to be kept.

A search has two: `SEARCHES` turn a problem, the rules of a search and a source of random bytes into where it ends,
every step, and the rounds it took. Where it ends depends on the bytes with noise only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from midst.engines import arrays, reference, searching
from midst.engines.searching import Searched
from midst.problems import Problem
from midst.protocol.noise import DrawBytes
from midst.protocol.noisy_search import AnyRules
from midst.system import System
from midst.types import Array, Branch

Engine = Callable[[System], Iterator[tuple[Array, Branch]]]
SearchEngine = Callable[[Problem, AnyRules, DrawBytes], Searched]

ENGINES: dict[str, Engine] = {
    "arrays": arrays.node_form,
    "edges": arrays.edge_form,
    "reference": reference.iterate,
}


def _by_participants(problem: Problem, rules: AnyRules, draw: DrawBytes) -> Searched:
    """The search of `reference_search.py`, loaded when it is called: signatures take time to load."""
    from midst.engines.reference_search import search_problem

    return search_problem(problem, rules, draw=draw)


SEARCHES: dict[str, SearchEngine] = {"arrays": searching.search_problem, "reference": _by_participants}
