"""All nodes at once.

`node_form` is a neighbour sum and elementwise work on two sums a node, nothing kept on edges. Elementwise
work goes through the nodes in blocks that stay in the cache, so that a large graph costs one pass over memory and not
one for every operation. `edge_form` keeps z on the edges as the paper does, to check the node form against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from midst.counting import Proof
from midst.engines.tally import with_count
from midst.graphs import Graph
from midst.system import System
from midst.update import Array, Branch, next_sums, next_x, next_z, step_aside

_BLOCK = 16_384  # numbers an array in a block: a dozen such arrays fit a second-level cache
_DENSE = 128  # up to so many nodes a dense product beats a sparse one


Steps = Iterator[tuple[Array, Branch]]


def iterate(system: System) -> Iterator[tuple[Array, Branch, tuple[Proof, ...] | None]]:
    """The node form, and the count beside it."""
    return with_count(system, node_form(system))


def iterate_edges(system: System) -> Iterator[tuple[Array, Branch, tuple[Proof, ...] | None]]:
    """The edge form, and the count beside it."""
    return with_count(system, edge_form(system))


def node_form(system: System) -> Steps:
    """The node form (`next_sums`), without any number on an edge."""
    graph, terms, c, theta = system.graph, system.terms, system.c, system.theta
    neighbour_sum = sum_over_neighbours(graph)
    signed = _column(graph.sign, system.z0) * system.z0
    S = _sum_by_source(signed, graph)
    R = _sum_by_source(signed[graph.reverse], graph)
    x = np.empty_like(terms.s)
    branch = np.empty(x.shape, np.int8)
    size = max(1, _BLOCK // max(1, x[0].size))
    blocks = [slice(k, k + size) for k in range(0, graph.n, size)]
    parts = [terms[block] for block in blocks]
    guarded = _guarding(system)
    for block, part in zip(blocks, parts, strict=True):
        x[block], branch[block] = next_x(S[block], part)
    while True:
        x = guarded(S, x, branch)
        yield x, branch
        a = neighbour_sum(x)
        for block, part in zip(blocks, parts, strict=True):
            S[block], R[block] = next_sums(S[block], R[block], x[block], a[block], part.cd, c, theta)
            x[block], branch[block] = next_x(S[block], part)


def edge_form(system: System) -> Steps:
    """The edge form: z on every directed edge, as in the paper."""
    graph, c, theta = system.graph, system.c, system.theta
    sign = _column(graph.sign, system.z0)
    z = system.z0
    guarded = _guarding(system)
    while True:
        S = _sum_by_source(sign * z, graph)
        x, branch = next_x(S, system.terms)
        x = guarded(S, x, branch)
        yield x, branch
        z = next_z(z, z[graph.reverse], -sign, x[graph.target], c, theta)


def sum_over_neighbours(graph: Graph) -> Callable[[Array], Array]:
    """The product with the 0/1 adjacency matrix, in the cheapest way the graph allows."""
    if graph.edges == graph.n * (graph.n - 1) // 2:
        return lambda x: x.sum(axis=0) - x
    if graph.n <= _DENSE:
        return graph.adjacency().toarray().__matmul__
    return graph.adjacency().__matmul__


def _guarding(system: System) -> Callable[[Array, Array, Branch], Array]:
    """What the guard makes of x: x itself where it is off."""
    guard = system.guard
    if guard is None:
        return lambda S, x, branch: x
    moves = np.zeros(system.terms.s.shape, np.int64)
    draws = system.guard_draws()

    def guarded(S: Array, x: Array, branch: Branch) -> Array:
        sent, moved = step_aside(S, system.terms, x, branch, guard.distance(moves) * system.scale, next(draws))
        np.add(moves, moved, out=moves)
        return sent

    return guarded


def _sum_by_source(on_edges: Array, graph: Graph) -> Array:
    return np.asarray(np.add.reduceat(on_edges, graph.offsets[:-1], axis=0))


def _column(sign: NDArray[np.int8], beside: Array) -> Array:
    return sign.astype(np.float64).reshape(-1, *(1,) * (beside.ndim - 1))
