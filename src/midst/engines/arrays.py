"""All nodes at once.

`node_form` is a neighbour sum and elementwise work on two sums a node, nothing kept on edges. It goes through the nodes
in blocks that stay in the cache, from the neighbour sum to x; threads share the blocks of a large graph. `edge_form`
keeps z on the edges as the paper does, to check the node form against.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from midst.graphs import Graph
from midst.graphs.neighbour_sums import sum_by_blocks
from midst.protocol.step import next_sums, next_z, x_update
from midst.system import Sums, System
from midst.types import Array, Branch
from midst.workers import cores

_BLOCK = 65_536  # numbers an array in a block: few enough for a cache, enough to outweigh the calls


Steps = Iterator[tuple[Array, Branch]]


def node_form(system: System) -> Steps:
    """The node form (`next_sums`), without any number on an edge."""
    start, c, theta = sums_at_start(system.graph, system.start), system.c, system.theta
    n, size = len(start.S), max(1, _BLOCK // max(1, start.S[0].size))
    blocks = [slice(k, min(k + size, n)) for k in range(0, n, size)]
    parts, next_x = [system.terms[block] for block in blocks], x_update(system.terms)
    sums = [(start.S[block], start.R[block]) for block in blocks]  # replaced by new arrays, which are not copied
    x, after, branch = np.empty_like(start.S), np.empty_like(start.S), np.empty(start.S.shape, np.int8)
    sum_neighbours = sum_by_blocks(system.graph, blocks)

    def begin(k: int) -> None:
        x[blocks[k]], branch[blocks[k]] = next_x(sums[k][0], parts[k])

    def step(k: int) -> None:
        block, part = blocks[k], parts[k]
        sums[k] = next_sums(*sums[k], x[block], a(k), part.cd, c, theta)
        after[block], branch[block] = next_x(sums[k][0], part)

    with ThreadPoolExecutor(cores()) as pool:  # which starts no thread before it is used
        for_each = map if len(blocks) == 1 else pool.map
        list(for_each(begin, range(len(blocks))))
        while True:
            yield x, branch
            a = sum_neighbours(x)
            list(for_each(step, range(len(blocks))))
            x, after = after, x


def edge_form(system: System) -> Steps:
    """The edge form: z on every directed edge, as in the paper."""
    graph, c, theta = system.graph, system.c, system.theta
    sign = _column(graph.sign, system.z0)
    z, next_x = system.z0, x_update(system.terms)
    while True:
        x, branch = next_x(_sum_by_source(sign * z, graph), system.terms)
        yield x, branch
        z = next_z(z, z[graph.reverse], -sign, x[graph.target], c, theta)


def sums_at_start(graph: Graph, start: Array | Sums) -> Sums:
    """S(0) and R(0), the sums that `next_sums` carries on, from z(0)."""
    if isinstance(start, Sums):
        return start
    signed = _column(graph.sign, start) * start
    return Sums(_sum_by_source(signed, graph), _sum_by_source(signed[graph.reverse], graph))


def _sum_by_source(on_edges: Array, graph: Graph) -> Array:
    return np.asarray(np.add.reduceat(on_edges, graph.first_edges[:-1], axis=0))


def _column(sign: NDArray[np.int8], beside: Array) -> Array:
    return sign.astype(np.float64).reshape(-1, *(1,) * (beside.ndim - 1))
