"""The neighbour sum of a graph, a block of nodes at a time, in the cheapest way the graph allows.

| graph                          | a_i = Σ_j x_j                                                            |
|--------------------------------|--------------------------------------------------------------------------|
| complete                       | Σ x − x_i                                                                |
| small                          | a dense product                                                          |
| ring, path, grid, lattice      | x shifted along each diagonal of the matrix; the few other rows apart    |
| any other                      | a sparse product, its ones shared by all blocks; nodes put in order first |

A block's sum is used while it is still in the cache, and the ones of the matrix never leave it: a sparse product that
reads 12 bytes an edge from memory reads 4 here. Fixed-width neighbour lists, which a GPU wants, are slower than the
sparse product in NumPy (`docs/performance.md`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from scipy.sparse import csgraph

from midst.graphs.graph import Graph
from midst.types import Array, Ints

BlockSum = Callable[[int], Array]  # the neighbour sum of block k
NeighbourSum = Callable[[Array], BlockSum]  # of x as it is now

_DENSE = 128  # up to so many nodes a dense product beats a sparse one
_ON_DIAGONALS = 0.9  # shifts pay if so many of the edges lie on diagonals that are that full
_NEAR = 64  # nodes apart: windows that share their sums
_LARGE = 2_000_000  # from so many nodes on, x is larger than the cache and neighbours had better be near
_FAR = 2**17  # nodes apart: a mebibyte of x
_SAMPLE = 100_000  # edges looked at


def neighbour_sum(graph: Graph, blocks: Sequence[slice], order: Ints | None, dtype: DTypeLike) -> NeighbourSum:
    """How to sum over the neighbours of the nodes of each block.

    Args:
        graph: who talks to whom.
        blocks: of nodes; all of them, in order.
        order: place k is node order[k]; None for nodes in their own order.
        dtype: of x.
    """
    if graph.is_complete:
        return in_complete_graph(blocks)
    if graph.n <= _DENSE:
        return _by_product([graph.adjacency().toarray().astype(dtype)[block] for block in blocks])
    diagonals = _full_diagonals(graph)
    if diagonals.size:
        return _along_diagonals(graph, diagonals, blocks, dtype)
    adjacency = graph.adjacency()
    if order is not None:
        adjacency = adjacency[order][:, order]
    return _by_product(_in_blocks(adjacency, blocks, dtype))


def in_complete_graph(blocks: Sequence[slice]) -> NeighbourSum:
    """Everybody's sum less one's own; it needs no edges."""

    def of(x: Array) -> BlockSum:
        total = x.sum(axis=0)
        return lambda k: total - x[blocks[k]]

    return of


def arrange(graph: Graph) -> Ints | None:
    """An order of the nodes in which neighbours are near each other; None where it would not pay.

    Nodes with positions are put along a space-filling curve (Morton's), others in reverse Cuthill–McKee order, unless
    that leaves most edges as long as they were, as in a random graph.
    """
    if graph.n < _LARGE or graph.is_complete or _full_diagonals(graph).size:
        return None
    some = np.linspace(0, graph.source.size - 1, _SAMPLE).astype(np.int64)
    source, target = graph.source[some], graph.target[some]
    long = np.mean(np.abs(source - target) > _FAR)
    if long < 0.25:
        return None
    if graph.positions is not None:
        order = _along_curve(graph.positions)
    else:
        order = csgraph.reverse_cuthill_mckee(graph.adjacency(), symmetric_mode=True).astype(np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(graph.n)
    return order if np.mean(np.abs(rank[source] - rank[target]) > _FAR) < long / 2 else None


def _by_product(rows: Sequence[Any]) -> NeighbourSum:
    def of(x: Array) -> BlockSum:
        return lambda k: np.asarray(rows[k] @ x)

    return of


def _in_blocks(adjacency: sparse.csr_array, blocks: Sequence[slice], dtype: DTypeLike) -> list[sparse.csr_array]:
    """The rows of each block. All ones are the same ones."""
    start = adjacency.indptr
    most = max(int(start[block.stop] - start[block.start]) for block in blocks)
    ones = np.ones(most, dtype)
    rows = []
    for block in blocks:
        where = start[block.start : block.stop + 1]
        first, last = int(where[0]), int(where[-1])
        parts = ones[: last - first], adjacency.indices[first:last], where - where[0]
        rows.append(sparse.csr_array(parts, shape=(block.stop - block.start, adjacency.shape[1])))
    return rows


def _full_diagonals(graph: Graph) -> Ints:
    """The offsets target − source that nearly every node has, if nearly all edges have one of them; else none."""
    some = np.linspace(0, graph.n - 1, min(graph.n, 16)).astype(np.int64)
    candidates = np.unique(np.concatenate([graph.neighbours(i) - i for i in some.tolist()]))
    if candidates.size > 4 * math.ceil(2 * graph.edges / graph.n):  # some rows may have others, as the ends of a ring
        return np.empty(0, np.int64)
    counts = np.bincount(graph.target - graph.source + graph.n)[candidates + graph.n]
    full = counts >= _ON_DIAGONALS * graph.n
    return candidates[full] if counts[full].sum() >= _ON_DIAGONALS * 2 * graph.edges else np.empty(0, np.int64)


def _along_diagonals(graph: Graph, diagonals: Ints, blocks: Sequence[slice], dtype: DTypeLike) -> NeighbourSum:
    """Shifts x by every offset; rows that have other neighbours, or too few on one side, by a sparse product."""
    # Between first and last no shift leaves x. What a shift adds there is right for a row whose neighbours are exactly
    # those on the diagonals; every other row is computed again, so it does not matter what the shifts put into it.
    first, last = max(0, -int(diagonals.min())), graph.n - max(0, int(diagonals.max()))
    windows = _windows(diagonals.tolist())
    adjacency: Any = graph.adjacency().astype(dtype)
    on_diagonals = np.bincount(graph.source, np.isin(graph.target - graph.source, diagonals), graph.n)
    other = (on_diagonals != diagonals.size) | (graph.degree != diagonals.size)
    other[:first] = other[last:] = True
    exceptions = [np.flatnonzero(other[block]) for block in blocks]
    rows: list[Any] = [adjacency[block][exceptions[k]] for k, block in enumerate(blocks)]

    def of(x: Array) -> BlockSum:
        def block_sum(k: int) -> Array:
            block = blocks[k]
            a = np.empty_like(x[block])
            start, stop = max(block.start, first), min(block.stop, last)
            if start < stop:
                here = a[start - block.start : stop - block.start]
                one, *others = (part for window in windows for part in _shifted(x, start, stop, *window))
                # a part may be x itself, seen through a window: sums go to the block and never into a part
                np.add(one, others[0] if others else 0.0, out=here)
                for part in others[1:]:
                    here += part
            if exceptions[k].size:
                a[exceptions[k]] = rows[k] @ x
            return a

        return block_sum

    return of


def _windows(diagonals: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Ascending offsets as windows: so many in a row, from each of these on; near ones of one length together."""
    starts = [diagonal for diagonal in diagonals if diagonal - 1 not in diagonals]
    ends = [diagonal for diagonal in diagonals if diagonal + 1 not in diagonals]
    windows: list[tuple[int, list[int]]] = []
    for start, end in zip(starts, ends, strict=True):
        length = end - start + 1
        if windows and windows[-1][0] == length and start - windows[-1][1][0] <= _NEAR:
            windows[-1][1].append(start)
        else:
            windows.append((length, [start]))
    return windows


def _shifted(x: Array, first: int, stop: int, length: int, starts: Sequence[int]) -> Iterator[Array]:
    """For each start, the sums of `length` numbers from there on, for the nodes first, …, stop − 1."""
    sums = _sums_in_a_row(x[first + starts[0] : stop + starts[-1] + length - 1], length)
    for start in starts:
        yield sums[start - starts[0] :][: stop - first]


def _sums_in_a_row(x: Array, length: int) -> Array:
    """x_i + … + x_{i+length−1} for every i, in about 2 log₂(length) additions."""
    if length == 1:
        return x
    half = length // 2
    sums = _sums_in_a_row(x, half)
    sums = sums[: len(x) - 2 * half + 1] + sums[half:]
    if length % 2:
        sums = sums[:-1] + x[2 * half :]
    return sums


def _along_curve(positions: Array) -> Ints:
    """The nodes by the bits of their two coordinates, interleaved."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    cells = ((positions - low) / np.maximum(high - low, np.finfo(float).tiny) * (2**16 - 1)).astype(np.uint64)
    for shift in (8, 4, 2, 1):
        mask = np.uint64(sum(((1 << shift) - 1) << place for place in range(0, 32, 2 * shift)))
        cells = (cells | cells << np.uint64(shift)) & mask
    return np.argsort(cells[:, 0] | cells[:, 1] << np.uint64(1), kind="stable")


def sum_over_neighbours(graph: Graph) -> Callable[[Array], Array]:
    """The product with the 0/1 adjacency matrix, for all nodes at once."""
    a = neighbour_sum(graph, [slice(0, graph.n)], None, np.float64)
    return lambda x: a(x)(0)
