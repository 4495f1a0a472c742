"""The tree along which the words of a count travel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph

from midst.graphs import Graph

Ints = NDArray[np.int64]


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
