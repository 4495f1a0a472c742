"""Blocks and threads are matters of speed: the neighbour sum and the run stay the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from midst import Problem, graphs, solve
from midst.engines import arrays
from midst.graphs.neighbour_sums import sum_by_blocks
from midst.methods import After, Consensus
from midst.normals import EdgeNormals
from midst.system import assemble, draw_z0, settle


def graph_of(kind, n):
    if kind in ("lattice", "bent"):
        return graphs.make("ws", n, rng=1, k=6, p=0.01 if kind == "bent" else 0.0)
    return graphs.make(kind, n, rng=1)


@pytest.mark.parametrize("n", [100, 600])
@pytest.mark.parametrize(
    "kind", ["ring", "path", "grid", "lattice", "bent", "regular", "rgg", "ba", "star", "complete"]
)
@pytest.mark.parametrize(("shape", "size"), [((), 70), ((3,), 70), ((), 9)])
def test_neighbour_sum(kind, n, shape, size):
    """In blocks that do not divide n, the sum is the matrix product."""
    graph = graph_of(kind, n)
    x = np.random.default_rng(1).normal(size=(n, *shape))
    blocks = [slice(k, min(k + size, n)) for k in range(0, n, size)]
    a = sum_by_blocks(graph, blocks)(x)
    np.testing.assert_allclose(np.concatenate([a(k) for k in range(len(blocks))]), graph.adjacency() @ x, atol=1e-12)


@pytest.mark.parametrize("cores", [1, 3])
def test_threads(monkeypatch, cores):
    """Any number of threads gives the same numbers, to the last bit."""
    problem = Problem(graphs.grid(30, 40), np.random.default_rng(2).normal(size=1200))
    expected = solve(problem, Consensus(stop=After(30)), rng=3)
    monkeypatch.setattr(arrays, "_BLOCK", 50)
    monkeypatch.setattr(arrays, "cores", lambda: cores)
    np.testing.assert_array_equal(solve(problem, Consensus(stop=After(30)), rng=3).trace.x, expected.trace.x)


@pytest.mark.parametrize("size", [65_536, 70])
def test_complete_graph_without_edges(monkeypatch, size):
    """What a graph of 5e11 edges would need: sums, and nothing else."""
    monkeypatch.setattr(arrays, "_BLOCK", size)
    problem = Problem(graphs.complete(200), np.random.default_rng(2).normal(size=200))
    parameters = settle(problem)
    system = assemble(
        problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(3)))
    )
    runs = zip(arrays.node_form(system), arrays.edge_form(system), strict=False)
    for (x, _), (expected, _) in itertools.islice(runs, 50):
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)
