"""Structure, order, blocks, threads and precision are matters of speed: the neighbour sum and the run stay the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from midst import Problem, Quantile, graphs, solve
from midst.engines import arrays
from midst.graphs import neighbour_sums
from midst.methods import After, Consensus
from midst.normals import EdgeNormals
from midst.system import assemble, draw_z0, settle


def graph_of(kind, n):
    if kind in ("lattice", "bent"):
        return graphs.make("ws", n, rng=1, k=6, p=0.01 if kind == "bent" else 0.0)
    return graphs.make(kind, n, rng=1)


@pytest.mark.parametrize("kind", ["ring", "path", "grid", "lattice", "bent", "regular", "rgg", "ba", "star"])
@pytest.mark.parametrize(("shape", "size"), [((), 70), ((3,), 70), ((), 9)])
def test_neighbour_sum(kind, shape, size):
    """In blocks that do not divide n, the sum is the matrix product."""
    graph = graph_of(kind, 600)
    x = np.random.default_rng(1).normal(size=(600, *shape))
    blocks = [slice(k, min(k + size, 600)) for k in range(0, 600, size)]
    a = neighbour_sums.neighbour_sum(graph, blocks, None, np.float64)(x)
    np.testing.assert_allclose(np.concatenate([a(k) for k in range(len(blocks))]), graph.adjacency() @ x, atol=1e-13)


@pytest.mark.parametrize(
    ("kind", "count"),
    [("ring", 2), ("path", 2), ("grid", 4), ("lattice", 6), ("bent", 6), ("regular", 0), ("rgg", 0), ("star", 0)],
)
def test_diagonals(kind, count):
    """Which graphs are shifts, whatever they are called."""
    graph = graph_of(kind, 600)
    renamed = graphs.from_edges(600, np.column_stack([graph.source, graph.target])[graph.sign > 0], name="something")
    assert neighbour_sums._full_diagonals(renamed).size == count


@pytest.mark.parametrize("k", [2, 8, 20])
@pytest.mark.parametrize("n", [1000, 4096, 40_001])
def test_lattices_of_any_size(n, k):
    """All of the offsets are found, whichever rows are looked at."""
    assert neighbour_sums._full_diagonals(graphs.watts_strogatz(n, k, 0.0)).size == k


def test_looking_for_diagonals_is_cheap():
    """One hub has an offset of its own for every node; nothing is counted for each."""
    assert neighbour_sums._full_diagonals(graphs.star(300_000)).size == 0


def test_windows():
    assert neighbour_sums._windows([-4, -3, -2, -1, 1, 2, 3, 4]) == [(4, [-4, 1])]
    assert neighbour_sums._windows([-30, -1, 1, 30]) == [(1, [-30, -1, 1, 30])]
    assert neighbour_sums._windows([-101, -100, -99, -1, 1, 99, 100, 101]) == [(3, [-101]), (1, [-1, 1]), (3, [99])]
    x = np.arange(20.0)
    for length in range(1, 12):
        sums = [x[i : i + length].sum() for i in range(20 - length + 1)]
        np.testing.assert_array_equal(neighbour_sums._sums_in_a_row(x, length), sums)


@pytest.mark.parametrize("positions", [True, False])
def test_order(monkeypatch, positions):
    """A geometric graph is put in order, and the run is the one without; a random graph is not."""
    monkeypatch.setattr(neighbour_sums, "_LARGE", 1000)
    monkeypatch.setattr(neighbour_sums, "_FAR", 300)
    graph = graphs.rgg(2000, rng=1)
    pairs = np.column_stack([graph.source, graph.target])[graph.sign > 0]
    graph = graphs.from_edges(2000, pairs, positions=graph.positions if positions else None)
    order = neighbour_sums.arrange(graph)
    assert sorted(order) == list(range(2000))
    assert neighbour_sums.arrange(graphs.regular(2000, 6, rng=1)) is None
    assert neighbour_sums.arrange(graphs.ring(2000)) is None
    assert neighbour_sums.arrange(graphs.tree(999, rng=1)) is None
    local = graphs.from_edges(2000, np.argsort(order)[pairs])
    assert neighbour_sums.arrange(local) is None
    problem = Problem(graph, np.random.default_rng(2).normal(size=(2000, 2)))
    arranged, plain = (
        solve(problem, Consensus(stop=After(30)), rng=3, engine=engine) for engine in ("arrays", "edges")
    )
    np.testing.assert_allclose(arranged.trace.x, plain.trace.x, rtol=0, atol=1e-12)
    assert arranged.exposed == plain.exposed


@pytest.mark.parametrize("cores", [1, 3])
def test_threads(monkeypatch, cores):
    """Any number of threads gives the same numbers, to the last bit."""
    problem = Problem(graphs.grid(30, 40), np.random.default_rng(2).normal(size=1200))
    expected = solve(problem, Consensus(stop=After(30)), rng=3)
    monkeypatch.setattr(arrays, "_BLOCK", 50)
    monkeypatch.setattr(arrays, "cores", lambda: cores)
    np.testing.assert_array_equal(solve(problem, Consensus(stop=After(30)), rng=3).trace.x, expected.trace.x)


@pytest.mark.parametrize("kind", ["complete", "grid", "rgg"])
def test_float32(kind):
    """Single precision is within 1e-5 of the scale of double precision, here over 300 iterations."""
    values = np.random.default_rng(2).normal(size=144)
    problem = Problem(graphs.make(kind, 144, rng=1), values, objective=Quantile(0.5), scale=1)
    parameters = settle(problem)
    system = assemble(
        problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(3)))
    )
    runs = [arrays.node_form(system), arrays.in_float32(system)]
    for (x, _), (single, _) in itertools.islice(zip(*runs, strict=False), 300):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, x, rtol=0, atol=1e-5)


def test_complete_graph_without_edges():
    """What a graph of 5e11 edges would need: sums, and nothing else."""
    problem = Problem(graphs.complete(200), np.random.default_rng(2).normal(size=200))
    parameters = settle(problem)
    system = assemble(
        problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(3)))
    )
    blocks = arrays.cut(system.terms.s)
    steps = arrays.carry(
        *vars(arrays.sums_at_start(system.graph, system.start)).values(),
        system.terms,
        system.c,
        system.theta,
        neighbour_sums.in_complete_graph(blocks),
        blocks,
    )
    for (x, _), (expected, _) in itertools.islice(zip(steps, arrays.edge_form(system), strict=False), 50):
        np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)
