"""A tree over a graph, along which sums go up and totals come down: the same for everybody, since the graph is public.

Nobody has more than two children where the graph allows it, so that what a node sends does not grow with the number of
nodes; within that, the tree is as low as it comes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

from midst.graphs.graph import Graph

CHILDREN = 2


@dataclass(frozen=True)
class Tree:
    """A spanning tree.

    Attributes:
        parents: of every node; the root is its own.
    """

    parents: tuple[int, ...]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Of every node, in ascending order."""
        found: list[list[int]] = [[] for _ in self.parents]
        for i, parent in enumerate(self.parents):
            if parent != i:
                found[parent].append(i)
        return tuple(map(tuple, found))

    @property
    def root(self) -> int:
        """Where sums end, and totals begin."""
        return next(i for i, parent in enumerate(self.parents) if parent == i)

    @cached_property
    def depth(self) -> int:
        """Hops from the root to the node farthest from it."""
        level, hops = self.children[self.root], 0
        while level:
            level, hops = tuple(child for i in level for child in self.children[i]), hops + 1
        return hops

    @property
    def vectors_sent(self) -> list[int]:
        """How many vectors each node sends a step: one to its parent, and one to each of its children."""
        return [
            len(own) + (parent != i) for i, (parent, own) in enumerate(zip(self.parents, self.children, strict=True))
        ]


def spanning_tree(graph: Graph, most: int = CHILDREN) -> Tree:
    """The tree of a connected graph: from its first node, breadth first, with few children a node.

    Nodes that can only be reached by one that has all its children already are given to whoever reaches them first.

    Args:
        graph: who talks to whom.
        most: children a node has; with n of them, the tree is that of shortest paths.

    Raises:
        InputError: the graph is not connected.
    """
    graph.require_connected()
    near = [graph.neighbours(i).tolist() for i in range(graph.n)]
    parents, count = [-1] * graph.n, [0] * graph.n
    parents[0] = 0
    reached = [0]
    while len(reached) < graph.n:
        before, line = len(reached), deque(reached)
        while line:
            i = line.popleft()
            for j in near[i]:
                if parents[j] < 0 and count[i] < most:
                    parents[j], count[i] = i, count[i] + 1
                    reached.append(j)
                    line.append(j)
        if len(reached) == before:  # everybody within reach is full: one more child for whoever needs it
            most += 1
    return Tree(tuple(parents))
