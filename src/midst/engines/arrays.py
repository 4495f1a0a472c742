"""All nodes at once.

`node_form` is a neighbour sum and elementwise work on two sums a node, nothing kept on edges. It goes through the nodes
in blocks that stay in the cache, from the neighbour sum (`neighbour_sums.py`) to x, so that a large graph costs one
pass over memory and not one for every operation; the blocks of a large graph are shared out among threads. `edge_form`
keeps z on the edges as the paper does, to check the node form against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import DTypeLike, NDArray

from midst.graphs import Graph
from midst.graphs.neighbour_sums import NeighbourSum, arrange, neighbour_sum
from midst.protocol.step import OwnTerms, Terms, next_sums, next_z, x_update
from midst.system import Sums, System
from midst.types import Array, Branch
from midst.workers import cores

_BLOCK = 65_536  # numbers an array in a block: few enough for a cache, enough to outweigh the calls
_LEAST_BLOCKS = 2  # blocks at least for each thread: less is not worth waking it


Steps = Iterator[tuple[Array, Branch]]


def node_form(system: System, dtype: DTypeLike = np.float64) -> Steps:
    """The node form (`next_sums`), without any number on an edge."""
    blocks = cut(system.terms.s)
    order = arrange(system.graph)
    a = neighbour_sum(system.graph, blocks, order, dtype)
    sums = sums_at_start(system.graph, system.start)
    S, R = (each.astype(dtype, copy=False) for each in (sums.S, sums.R))
    terms, c, theta = _in_precision(system.terms, dtype), system.c.astype(dtype), system.theta
    if order is None:
        yield from carry(S, R, terms, c, theta, a, blocks)
        return
    x, branch = np.empty_like(S), np.empty(S.shape, np.int8)
    for in_order in carry(S[order], R[order], terms[order], c, theta, a, blocks):
        x[order], branch[order] = in_order
        yield x, branch


def in_float32(system: System) -> Steps:
    """The node form in single precision: half the memory.

    x carries 24 bits: it is within about 1e-5 of the scale of what float64 gives (`test_float32`), and a node inside
    sends its value to 24 bits. A search compares the values themselves and is as exact as ever; a certificate cannot
    be had to a tolerance much below 1e-5.
    """
    return node_form(system, np.float32)


def cut(s: Array) -> list[slice]:
    """The nodes in blocks, for arrays of the shape of s."""
    size = max(1, _BLOCK // max(1, s[0].size))
    return [slice(k, min(k + size, len(s))) for k in range(0, len(s), size)]


def carry(
    S: Array,
    R: Array,
    terms: Terms | OwnTerms,
    c: Array,
    theta: float,
    neighbour_sum: NeighbourSum,
    blocks: Sequence[slice],
) -> Steps:
    """x(0), x(1), … from S(0) and R(0).

    Args:
        S: see `step.next_sums`.
        R: likewise.
        terms: the local objectives.
        c: the convergence parameter.
        theta: the averaging constant.
        neighbour_sum: of the blocks.
        blocks: all nodes, in order.
    """
    x, after, branch = np.empty_like(S), np.empty_like(S), np.empty(S.shape, np.int8)
    parts, next_x = [_part(terms, block) for block in blocks], x_update(terms)
    sums = [(S[block], R[block]) for block in blocks]  # replaced by new arrays, which are not copied anywhere

    def begin(k: int) -> None:
        x[blocks[k]], branch[blocks[k]] = next_x(sums[k][0], parts[k])

    def step(k: int, a: Callable[[int], Array], x: Array, after: Array) -> None:
        block, part = blocks[k], parts[k]
        sums[k] = next_sums(*sums[k], x[block], a(k), part.cd, c, theta)
        after[block], branch[block] = next_x(sums[k][0], part)

    with _Threads(len(blocks)) as each:
        each(begin)
        while True:
            yield x, branch
            each(partial(step, a=neighbour_sum(x), x=x, after=after))
            x, after = after, x


class _Threads:
    """Does something with every block: in this thread, or where there are many in several, this one among them."""

    def __init__(self, blocks: int) -> None:
        threads = max(1, min(cores(), blocks // _LEAST_BLOCKS))
        self._parts = [range(k, blocks, threads) for k in range(threads)]
        self._pool = None if threads == 1 else ThreadPoolExecutor(threads - 1)

    def __enter__(self) -> Callable[[Callable[[int], None]], None]:
        return self._each

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _each(self, do: Callable[[int], None]) -> None:
        def take(part: range) -> None:
            for k in part:
                do(k)

        own, *others = self._parts
        pending = [] if self._pool is None else [self._pool.submit(take, part) for part in others]
        take(own)
        for part in pending:
            part.result()


def _in_precision(terms: Terms | OwnTerms, dtype: DTypeLike) -> Terms | OwnTerms:
    if isinstance(terms, OwnTerms):  # which `solve` runs in float64 only
        return terms
    s, above, below, weight, cd = (
        array.astype(dtype, copy=False) for array in (terms.s, terms.above, terms.below, terms.weight, terms.cd)
    )
    return Terms(s, above, below, weight, cd, terms.smooth)


def _part(terms: Terms | OwnTerms, block: slice) -> Terms | OwnTerms:
    """The terms of a block; numbers that are the same for all of its nodes are kept once."""
    if isinstance(terms, OwnTerms):
        return terms[block]

    def once(array: Array) -> Array:
        same = array[block] == array[block][:1]
        return array[block][:1].copy() if same.all() else array[block]

    above, below, weight, cd = (once(array) for array in (terms.above, terms.below, terms.weight, terms.cd))
    return Terms(terms.s[block], above, below, weight, cd, terms.smooth)


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
