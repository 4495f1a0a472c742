"""The count of `counting.py` in many runs at once: `tally.Tally`, with a last axis of runs.

A proposal is one number, since · n + holder, so that the least is the first in line. Lines climb the tree by one level
an iteration: the first in line at a node is the least of its children's of the iteration before and its own, among
those that are open as far as the node knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from midst.counting import Rules
from midst.engines.tally import Tree
from midst.graphs import Graph
from midst.update import Array, Branch

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

NOBODY = np.iinfo(np.int64).max
NOT_YET = -1


@dataclass(eq=False, repr=False)
class Tallies:
    """Follows the counts of all runs; the last axis of every array is the run.

    Attributes:
        s: the values, in working units.
        counts: the weights, in units.
        depth: of each node in its tree.
        parent: likewise; the root's own number at the root.
        height: of the tree.
        root: the node at which sums meet.
        ready: the first iteration in which it may announce.
        patience: iterations in a row inside before a node proposes.
        most_below: a candidate with more units of weight below it is refused, and
        most_above: one with more above it.
        since: when each node came inside, or `NOBODY`.
        first: the first in line of each subtree.
        low: what each node knows to be below the answer.
        high: and above.
        told_low: the root's bounds as of the last verdict, on their way down the tree.
        told_high: likewise.
        number: of the candidate being counted, from 1 on; of the last one if none is.
        holder: who proposed it.
        value: of the candidate.
        announced: when; `NOT_YET` while none is being counted.
        decided: when the last verdict fell; `NOT_YET` before the first.
        found: whether that verdict was that the candidate is the answer.
    """

    s: Array
    counts: Ints
    depth: Ints
    parent: Ints
    height: Ints
    root: Ints
    ready: Ints
    patience: Ints
    most_below: Ints
    most_above: Ints
    since: Ints
    first: Ints
    low: Array
    high: Array
    told_low: Array
    told_high: Array
    number: Ints
    holder: Ints
    value: Array
    announced: Ints
    decided: Ints
    found: Bools

    @classmethod
    def start(cls, graphs: Sequence[Graph], rules: Sequence[Rules], s: Array, counts: Ints) -> Tallies:
        """Before iteration 0.

        Args:
            graphs: of each run.
            rules: likewise; with the same root.
            s: the values, (n, runs).
            counts: their weights, in units.
        """
        nodes, runs = s.shape
        root = rules[0].root
        grown = {id(graph): Tree(graph, root) for graph in set(graphs)}
        trees = [grown[id(graph)] for graph in graphs]
        parent, depth = (
            np.stack([np.pad(part, (0, nodes - len(part))) for part in parts], axis=-1)
            for parts in ([tree.parent for tree in trees], [tree.depth for tree in trees])
        )
        parent[root] = root
        return cls(
            s=s,
            counts=counts,
            depth=depth,
            parent=parent,
            height=np.array([tree.height for tree in trees]),
            root=np.full(runs, root),
            ready=np.array([agreed.ready for agreed in rules]),
            patience=np.array([agreed.patience for agreed in rules]),
            most_below=np.array([int(agreed.level * agreed.total // 1) for agreed in rules]),
            most_above=np.array([int((1 - agreed.level) * agreed.total // 1) for agreed in rules]),
            since=np.full(s.shape, NOBODY),
            first=np.full(s.shape, NOBODY),
            low=np.full(s.shape, -np.inf),
            high=np.full(s.shape, np.inf),
            told_low=np.full(runs, -np.inf),
            told_high=np.full(runs, np.inf),
            number=np.zeros(runs, np.int64),
            holder=np.zeros(runs, np.int64),
            value=np.zeros(runs),
            announced=np.full(runs, NOT_YET),
            decided=np.full(runs, NOT_YET),
            found=np.zeros(runs, np.bool_),
        )

    def see(self, t: Ints, branch: Branch) -> Bools:
        """Iteration t of each run; those in which every node knows the proof."""
        self.since = np.where(branch == 0, np.minimum(self.since, t), NOBODY)
        self._spread_bounds(t)
        self._decide(t)
        self._line_up(t)
        self._announce(t)
        return self.proved(t)

    def proved(self, t: Ints) -> Bools:
        """The runs in which every node knows the proof in iteration t."""
        return np.asarray(self.found & (t >= self.decided + self.height))

    def _spread_bounds(self, t: Ints) -> None:
        """Each node learns a verdict as many iterations after the root as it is levels below it."""
        under_way = (self.decided != NOT_YET) & (t <= self.decided + self.height)
        if under_way.any():
            reached = under_way & (self.depth == t - self.decided)
            self.low = np.where(reached, self.told_low, self.low)
            self.high = np.where(reached, self.told_high, self.high)

    def _decide(self, t: Ints) -> None:
        """The sum of all answers has reached the root, two heights after it announced."""
        k = np.flatnonzero((self.announced != NOT_YET) & ~self.found & (t == self.announced + 2 * self.height))
        if not k.size:
            return
        s, counts, value = self.s[:, k], self.counts[:, k], self.value[k]
        below, above = (counts * (s < value)).sum(axis=0), (counts * (s > value)).sum(axis=0)
        lies_below = below > self.most_below[k]
        lies_above = ~lies_below & (above > self.most_above[k])
        self.found[k] = ~lies_below & ~lies_above
        self.told_high[k] = np.where(lies_below, value, self.told_high[k])
        self.told_low[k] = np.where(lies_above, value, self.told_low[k])
        self.low[self.root[k], k], self.high[self.root[k], k] = self.told_low[k], self.told_high[k]
        self.announced[k] = np.where(self.found[k], self.announced[k], NOT_YET)
        self.decided[k] = t[k]

    def _line_up(self, t: Ints) -> None:
        """Every node has first in line its own proposal or one of its children's, of those it knows to be open."""
        n, runs = self.s.shape
        climbing = (self.first != NOBODY) & (self.parent != np.arange(n)[:, None]) & (t >= self.depth)
        child, run = np.nonzero(climbing)
        above, proposal = self.parent[child, run], self.first[child, run]
        own, its_run = np.nonzero(self.since <= t + 1 - self.patience)
        at, run = np.concatenate([above, own]), np.concatenate([run, its_run])
        proposal = np.concatenate([proposal, self.since[own, its_run] * n + own])
        value = self.s[proposal % n, run]
        still_open = (self.low[at, run] < value) & (value < self.high[at, run])
        self.first = np.full((n, runs), NOBODY)
        np.minimum.at(self.first, (at[still_open], run[still_open]), proposal[still_open])

    def _announce(self, t: Ints) -> None:
        """The root: the first in line becomes the candidate when nothing is being counted."""
        first = self.first[self.root, np.arange(len(self.root))]
        k = np.flatnonzero((self.announced == NOT_YET) & (t >= self.ready) & (first != NOBODY))
        if k.size:
            self.holder[k] = first[k] % len(self.s)
            self.value[k] = self.s[self.holder[k], k]
            self.number[k] += 1
            self.announced[k] = t[k]
