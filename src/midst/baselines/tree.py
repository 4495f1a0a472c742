"""Gather something that can be merged along a spanning tree, and tell everybody the whole.

Rules:
- Who has heard from all its children merges that with its own, once, and tells its parent; so nobody counts twice, as
  it would where everybody merged what it meets. The root tells the whole to its children, and they to theirs.
- The tree is that of shortest paths from node 0: public, as the graph is.
- What a node sends is a function of what it was sent and of its own: whoever hears both may take one from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from midst.algorithms import Inbox, Local, Message, Outbox, run_algorithm, size_of
from midst.graphs import Graph
from midst.graphs.spanning import Tree, spanning_tree
from midst.net.sizes import FRAME_HEAD
from midst.problems import Problem


@lru_cache(maxsize=4)  # every node asks for the same one
def make_tree(graph: Graph) -> Tree:
    """The tree of a graph."""
    return spanning_tree(graph, graph.n)


class Gathered(NamedTuple):
    """What a node has: what its children sent, and the answer, once it knows that."""

    parts: tuple[Message, ...]
    answer: float | None = None


@dataclass(frozen=True, eq=False)
class Gather:
    """The steps of one node, for `midst.algorithms`.

    Attributes:
        name: of what is done so.
        start: what a node makes of its value, to bring it.
        merge: several of these into one.
        read: the answer in the whole.
    """

    name: str
    start: Callable[[float], Message]
    merge: Callable[[Sequence[Message]], Message]
    read: Callable[[Message], float]

    def begin(self, local: Local, rng: np.random.Generator) -> tuple[Gathered, Outbox]:
        """Bring one's own; who has no children tells it."""
        return self._go_on(local, Gathered(()))

    def step(self, local: Local, state: Gathered, inbox: Inbox, rng: np.random.Generator) -> tuple[Gathered, Outbox]:
        """Take what children have sent, or the whole from one's parent."""
        if not inbox:
            return state, {}
        parent = make_tree(local.graph).parents[local.node]
        if parent in inbox:
            return self._tell(local, state, inbox[parent])
        return self._go_on(local, Gathered((*state.parts, *inbox.values())))

    def _go_on(self, local: Local, state: Gathered) -> tuple[Gathered, Outbox]:
        """Merge, once all children have been heard."""
        tree = make_tree(local.graph)
        if len(state.parts) < len(tree.children[local.node]):
            return state, {}
        merged = self.merge((self.start(float(local.value)), *state.parts))
        parent = tree.parents[local.node]
        return (state, {parent: merged}) if parent != local.node else self._tell(local, state, merged)

    def _tell(self, local: Local, state: Gathered, whole: Message) -> tuple[Gathered, Outbox]:
        """Read the whole, and tell it on."""
        children = make_tree(local.graph).children[local.node]
        return Gathered(state.parts, self.read(whole)), dict.fromkeys(children, whole)

    def estimate(self, state: Gathered) -> float:
        """The answer, once it is known; 0 before."""
        return 0.0 if state.answer is None else state.answer


class Upward(NamedTuple):
    """What came of gathering.

    Attributes:
        sent: what each node sent its parent; of the root, what it sent its children.
        received: what each node was sent by its children.
        answer: that all end with.
        rounds: of messages.
        bytes_per_node: that a node sends, in the mean.
    """

    sent: tuple[Message, ...]
    received: tuple[tuple[Message, ...], ...]
    answer: float
    rounds: int
    bytes_per_node: float


def gather(problem: Problem, how: Gather) -> Upward:
    """Gather what all nodes bring, and tell everybody the whole."""
    tree = make_tree(problem.graph)
    rounds = 2 * tree.depth
    ran = run_algorithm(problem, how, rounds)
    sent: list[Message | None] = [None] * problem.graph.n
    received: list[list[Message]] = [[] for _ in sent]
    size = 0
    for outboxes in ran.sent:
        for node, outbox in enumerate(outboxes):
            for to, message in outbox.items():
                size += FRAME_HEAD + size_of(message)
                if tree.parents[node] in (to, node):
                    sent[node] = message
                if to == tree.parents[node]:
                    received[to].append(message)
    said = tuple(message for message in sent if message is not None)
    return Upward(said, tuple(map(tuple, received)), float(ran.estimates[-1, 0]), rounds, size / problem.graph.n)
