"""The count of `counting.py`, for all nodes at once.

Messages in lock-step along a tree take one iteration a level, so what every node knows and when follows from its depth:
no words are passed and no masks drawn. `test_counting` holds this against the nodes themselves, iteration by iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph

from midst.counting import Candidate, Counted, Proof, Rules, Verdict, all_or_none, prove
from midst.graphs import Graph
from midst.system import System
from midst.update import Array, Branch

Ints = NDArray[np.int64]
_NOT_INSIDE = np.iinfo(np.int64).max


class Tree:
    """The tree the nodes build: breadth first from the root, each under its lowest neighbour that is nearest to it."""

    def __init__(self, graph: Graph, root: int) -> None:
        """Build it.

        Args:
            graph: connected.
            root: where sums meet.
        """
        self.depth, self.parent = (_star if graph.is_complete else _breadth_first)(graph, root)
        self.height = int(self.depth.max())


def _star(graph: Graph, root: int) -> tuple[Ints, Ints]:
    depth, parent = np.ones(graph.n, np.int64), np.full(graph.n, root)
    depth[root], parent[root] = 0, -1
    return depth, parent


def _breadth_first(graph: Graph, root: int) -> tuple[Ints, Ints]:
    depth = csgraph.dijkstra(graph.adjacency(), unweighted=True, indices=[root])[0].astype(np.int64)
    upward = depth[graph.source] == depth[graph.target] + 1
    child, first = np.unique(graph.source[upward], return_index=True)
    parent = np.full(graph.n, -1)
    parent[child] = graph.target[upward][first]
    return depth, parent


class Tally:
    """Follows the count of one coordinate through a run."""

    def __init__(self, tree: Tree, rules: Rules, s: NDArray[np.float64], counts: Ints) -> None:
        """Start before iteration 0.

        Args:
            tree: how the words travel.
            rules: what the nodes agreed on.
            s: their values.
            counts: their weights, in units.
        """
        self._tree, self._rules, self._s, self._counts = tree, rules, s, counts
        self._since = np.full(len(s), _NOT_INSIDE)
        self._low = np.full(len(s), -np.inf)  # as each node knows it
        self._high = np.full(len(s), np.inf)
        self._told: list[tuple[int, float, float]] = []  # (decided, low, high) on its way down the tree
        nobody = np.empty(0, np.int64)
        self._line = nobody, nobody, nobody  # at which node, inside since, holder: the first in line of each subtree
        self._candidate: Candidate | None = None
        self._verdict: Verdict | None = None  # of the answer
        self._refused: list[Counted] = []

    def see(self, t: int, branch: Branch) -> Proof | None:
        """Iteration t; the proof, once every node knows it."""
        inside = branch == 0
        self._since[~inside] = _NOT_INSIDE
        self._since[inside & (self._since == _NOT_INSIDE)] = t
        self._spread_bounds(t)
        if self._candidate is not None and t == self._candidate.announced + 2 * self._tree.height:
            self._decide(self._candidate, t)
        self._line_up(t)
        if self._candidate is None and t >= self._rules.ready:
            at, since, holder = self._line
            for k in np.flatnonzero(at == self._rules.root):
                first, number = int(holder[k]), len(self._refused) + 1
                self._candidate = Candidate(number, float(self._s[first]), first, int(since[k]), t)
        if self._candidate is None or self._verdict is None or t < self._verdict.decided + self._tree.height:
            return None
        return prove(self._candidate, self._verdict, tuple(self._refused), self._rules, t)

    def _spread_bounds(self, t: int) -> None:
        """Each node learns a verdict as many iterations after the root as it is levels below it."""
        for decided, low, high in self._told:
            reached = self._tree.depth == t - decided
            self._low[reached], self._high[reached] = low, high
        self._told = [told for told in self._told if t - told[0] < self._tree.height]

    def _decide(self, candidate: Candidate, t: int) -> None:
        """The sum of all answers has reached the root."""
        below = int(self._counts[self._s < candidate.value].sum())
        above = int(self._counts[self._s > candidate.value].sum())
        side = self._rules.judge(below, above)
        if side == 0:
            self._verdict = Verdict(candidate.number, below, above, t)
            return
        root = self._rules.root
        self._low[root] = candidate.value if side > 0 else self._low[root]
        self._high[root] = candidate.value if side < 0 else self._high[root]
        self._told.append((t, float(self._low[root]), float(self._high[root])))
        self._refused.append(Counted(candidate.value, candidate.holder, candidate.announced, below, above))
        self._candidate = None

    def _line_up(self, t: int) -> None:
        """Every node has first in line its own proposal or one of its children's, of those it knows to be open."""
        at, since, holder = self._line
        climbing = (at != self._rules.root) & (t >= self._tree.depth[at])  # a parent knows its child by then
        own = np.flatnonzero(self._since <= t + 1 - self._rules.patience)
        at = np.concatenate([self._tree.parent[at[climbing]], own])
        since = np.concatenate([since[climbing], self._since[own]])
        holder = np.concatenate([holder[climbing], own])
        value = self._s[holder]
        still_open = (self._low[at] < value) & (value < self._high[at])
        order = np.lexsort((holder[still_open], since[still_open], at[still_open]))
        at, since, holder = (column[still_open][order] for column in (at, since, holder))
        at, first = np.unique(at, return_index=True)
        self._line = at, since[first], holder[first]


def with_count(
    system: System, steps: Iterator[tuple[Array, Branch]]
) -> Iterator[tuple[Array, Branch, tuple[Proof, ...] | None]]:
    """A run, with the proofs once every node knows all of them; one coordinate's count does not wait for another's."""
    if system.rules is None:
        for x, branch in steps:
            yield x, branch, None
        return
    tree = Tree(system.graph, system.rules.root)
    values = system.terms.s.reshape(system.graph.n, -1)
    tallies = [Tally(tree, system.rules, column, system.counts) for column in values.T]
    proofs: list[Proof | None] = [None] * len(tallies)
    for t, (x, branch) in enumerate(steps):
        columns = branch.reshape(system.graph.n, -1).T
        proofs = [proof or tally.see(t, column) for proof, tally, column in zip(proofs, tallies, columns, strict=True)]
        yield x, branch, all_or_none(proofs)
