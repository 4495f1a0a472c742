"""One contract through which every engine is run: the same trajectory, on every kind of graph and objective."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from algorithm1 import algorithm_1
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import problems

from midst import Mean, Problem, Quantile, graphs, solve
from midst.engines import ENGINES
from midst.methods import After, Consensus
from midst.normals import EdgeNormals
from midst.system import assemble, draw_z0, settle

OBJECTIVES = {
    "median": Quantile(0.5),
    "low median": Quantile(0.5),
    "quantile": Quantile(0.9),
    "maximum": Quantile(1),
    "minimum": Quantile(0),
    "mean": Mean(),
}
THETAS = (0.25, 0.5, 0.9)


def trajectory(system, engine, iterations):
    run = itertools.islice(ENGINES[engine](system), iterations)
    pairs = [(x.copy(), branch.copy()) for x, branch in run]
    return np.array([x for x, _ in pairs]), np.array([branch for _, branch in pairs])


def assert_same(x, branch, expected_x, expected_branch):
    size = np.abs(expected_x).max()
    np.testing.assert_allclose(x, expected_x, rtol=0, atol=1e-12 * size)
    # a branch may differ only where s is at the very end of its interval, to rounding
    differs = branch != expected_branch
    np.testing.assert_allclose(x[differs], expected_x[differs], rtol=0, atol=1e-12 * size)
    assert differs.mean() < 0.01


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", graphs.KINDS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_engine_runs_algorithm_1(engine, kind, objective):
    """The paper's double loop and every engine give the same x to 1e-12, and the same branches."""
    rng = np.random.default_rng(3)
    graph = graphs.make(kind, 12, rng=5)
    problem = Problem(graph, rng.normal(size=12), objective=OBJECTIVES[objective], weights=rng.integers(1, 4, 12))
    for theta in THETAS:
        parameters = settle(problem, c=0.7, theta=theta, mu=-1.0, sigma=1.0)
        z0 = draw_z0(problem.graph, parameters, EdgeNormals.drawn(rng))
        system = assemble(problem, parameters, z0)
        left, right, curvature = problem.objective.slopes(problem.whole_weights, problem.unit_weight)
        expected = algorithm_1(graph, problem.values, 0.7, z0, 150, left, right, curvature, theta)
        assert_same(*trajectory(system, engine, 150), *expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_coordinates_are_independent(engine):
    """m coordinates at once are m scalar runs."""
    rng = np.random.default_rng(11)
    graph = graphs.rgg(12, rng=2)
    values = rng.normal(size=(12, 3)) * (1, 10, 0.1)
    z0 = rng.normal(size=(len(graph.source), 3))
    together = solve(Problem(graph, values), Consensus(c=1.0, z0=z0, stop=After(100)), engine=engine, record="all")
    for k in range(3):
        method = Consensus(c=1.0, z0=z0[:, k], stop=After(100))
        alone = solve(Problem(graph, values[:, k]), method, engine=engine, record="all")
        np.testing.assert_allclose(together.trace.x[:, :, k], alone.trace.x, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(together.trace.inside[:, :, k], alone.trace.inside)


@settings(max_examples=60)
@given(problems(max_nodes=40), st.sampled_from(THETAS), st.integers(0, 2**32 - 1))
def test_engines_agree_on_random_problems(problem, theta, seed):
    """On anything midst accepts, all engines walk the same way (relative to the size of the numbers)."""
    parameters = settle(problem, theta=theta)
    system = assemble(
        problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(seed)))
    )
    expected = trajectory(system, "edges", 80)
    for engine in ("arrays", "reference"):
        x, _ = trajectory(system, engine, 80)
        size = max(np.abs(expected[0]).max(), np.abs(system.terms.s).max())
        np.testing.assert_allclose(x, expected[0], rtol=0, atol=1e-11 * size)  # 80 steps at θ = 0.9 add up roundings


def test_large_graph_in_blocks():
    """Blocks are a matter of speed only: a graph of several blocks agrees with the edge form."""
    graph = graphs.regular(40_000, 4, rng=1)
    problem = Problem(graph, np.random.default_rng(2).normal(size=graph.n))
    runs = [
        solve(problem, Consensus(stop=After(20)), rng=3, engine=engine, record="none") for engine in ("arrays", "edges")
    ]
    np.testing.assert_allclose(runs[0].trace.x, runs[1].trace.x, rtol=0, atol=1e-12)
    assert runs[0].exposed == runs[1].exposed
