"""The neighbour sum of a graph, a_i = Σ_j x_j over the neighbours j of i.

| graph     | a_i              |
|-----------|------------------|
| complete  | Σ x − x_i        |
| small     | a dense product  |
| any other | a sparse product |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from midst.graphs.graph import Graph
from midst.types import Array

BlockSum = Callable[[int], Array]  # the neighbour sum of block k
NeighbourSum = Callable[[Array], BlockSum]  # of x as it is now

_DENSE = 128  # up to so many nodes a dense product beats a sparse one


def sum_by_blocks(graph: Graph, blocks: Sequence[slice]) -> NeighbourSum:
    """A function that sums x over the neighbours of the nodes of each block, a block at a time."""
    if graph.is_complete:  # which needs no edges

        def in_complete_graph(x: Array) -> BlockSum:
            total = x.sum(axis=0)
            return lambda k: total - x[blocks[k]]

        return in_complete_graph
    matrix: Any = graph.adjacency()
    matrix = matrix.toarray() if graph.n <= _DENSE else matrix
    rows = [matrix[block] for block in blocks]
    return lambda x: lambda k: np.asarray(rows[k] @ x)


def sum_over_neighbours(graph: Graph) -> Callable[[Array], Array]:
    """The product with the 0/1 adjacency matrix, for all nodes at once."""
    a = sum_by_blocks(graph, [slice(0, graph.n)])
    return lambda x: a(x)(0)
