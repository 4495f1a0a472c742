"""The neighbour sum of a graph, a block of nodes at a time, in the cheapest way the graph allows.

| graph                          | a_i = Σ_j x_j                                                            |
|--------------------------------|--------------------------------------------------------------------------|
| complete                       | Σ x − x_i                                                                |
| small                          | a dense product                                                          |
| ring, path, grid, lattice      | x shifted along each diagonal of the matrix, and the few edges on none   |
| any other                      | a sparse product, its ones shared by all blocks; nodes put in order first |

A block's sum is used while it is still in the cache, and the ones of the matrix never leave it: a sparse product that
reads 12 bytes an edge from memory reads 4 here. Fixed-width neighbour lists, which a GPU wants, are slower than the
sparse product in NumPy (`docs/performance.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from midst.graphs import Graph
from midst.update import Array

Ints = NDArray[np.int64]
BlockSum = Callable[[int], Array]  # the neighbour sum of block k
NeighbourSum = Callable[[Array], BlockSum]  # of x as it is now

_DENSE = 128  # up to so many nodes a dense product beats a sparse one
_ON_DIAGONALS = 0.9  # shifts pay if so many of the edges lie on diagonals that are that full
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
    if graph.edges == graph.n * (graph.n - 1) // 2:
        return in_complete_graph(blocks)
    if graph.n <= _DENSE:
        return _by_product([graph.adjacency().toarray().astype(dtype)[block] for block in blocks])
    offsets = _full_diagonals(graph)
    if offsets.size:
        return _along_diagonals(graph, offsets, blocks, dtype)
    adjacency = graph.adjacency()
    if order is not None:
        adjacency = adjacency[order][:, order]
    return _by_product(_in_blocks(adjacency, blocks, dtype))


def in_complete_graph(blocks: Sequence[slice]) -> NeighbourSum:
    """Everybody's sum less one's own; it needs no edges, and so no `Graph`."""

    def of(x: Array) -> BlockSum:
        total = x.sum(axis=0)
        return lambda k: total - x[blocks[k]]

    return of


def arrange(graph: Graph) -> Ints | None:
    """An order of the nodes in which neighbours are near each other; None where it would not pay.

    Nodes with positions are put along a space-filling curve (Morton's), others in reverse Cuthill–McKee order, unless
    that leaves most edges as long as they were, as in a random graph.
    """
    if graph.n < _LARGE or _full_diagonals(graph).size:
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
    offset = graph.target - graph.source
    width = int(graph.degree.max())
    candidates = np.unique(offset[np.linspace(0, offset.size - 1, min(offset.size, 64)).astype(np.int64)])
    if candidates.size > 2 * width:
        return np.empty(0, np.int64)
    counts = np.array([np.count_nonzero(offset == candidate) for candidate in candidates])
    full = counts >= _ON_DIAGONALS * graph.n
    return candidates[full] if counts[full].sum() >= _ON_DIAGONALS * offset.size else np.empty(0, np.int64)


def _along_diagonals(graph: Graph, offsets: Ints, blocks: Sequence[slice], dtype: DTypeLike) -> NeighbourSum:
    """Shifts x by every offset, as if each diagonal were full; `rest` makes up for what is missing or on none."""
    n = graph.n
    adjacency: Any = graph.adjacency()
    diagonals: list[Any] = [np.ones(n - abs(offset)) for offset in offsets.tolist()]
    full: Any = sparse.diags_array(diagonals, offsets=offsets.tolist(), shape=(n, n)).tocsr()
    difference = (adjacency - full).astype(dtype)
    difference.eliminate_zeros()
    rest = [difference[block] for block in blocks]

    def of(x: Array) -> BlockSum:
        def block_sum(k: int) -> Array:
            first, stop = blocks[k].start, blocks[k].stop
            a = np.asarray(rest[k] @ x)
            for offset in offsets.tolist():
                low, high = max(first + offset, 0), min(stop + offset, n)
                if low < high:
                    a[low - offset - first : high - offset - first] += x[low:high]
            return a

        return block_sum

    return of


def _along_curve(positions: NDArray[np.float64]) -> Ints:
    """The nodes by the bits of their two coordinates, interleaved."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    cells = ((positions - low) / np.maximum(high - low, np.finfo(float).tiny) * (2**16 - 1)).astype(np.uint64)
    for shift in (8, 4, 2, 1):
        mask = np.uint64(sum(((1 << shift) - 1) << place for place in range(0, 32, 2 * shift)))
        cells = (cells | cells << np.uint64(shift)) & mask
    return np.argsort(cells[:, 0] | cells[:, 1] << np.uint64(1), kind="stable")
