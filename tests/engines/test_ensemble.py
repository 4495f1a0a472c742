"""An ensemble is its runs: what `solve` finds for each alone, at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import problems

from midst import InputError, Mean, Problem, Quantile, graphs, solve
from midst.engines import ensemble
from midst.engines.ensemble import NEVER, solve_ensemble

OBJECTIVES = {
    "low median": Quantile(0.5, "low"),
    "median": Quantile(0.5),
    "quantile": Quantile(0.9, "low"),
    "maximum": Quantile(1),
    "mean": Mean(),
}
STOPS = {"default": {}, "certified": {"stop": "certified"}, "iterations": {"iterations": 60}}


def alone(problem, rng, **options):
    return solve(problem, rng=rng, record="all", throw=False, **options)


def assert_same(result, k, run):
    """Row k of an ensemble is that run, and says nothing of nodes that it does not have."""
    size = max(np.abs(run.trace.x).max(), np.abs(run.value))
    np.testing.assert_allclose(result.x[k, : run.nodes], run.trace.x[-1], rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(result.value[k], run.value, rtol=0, atol=0 if run.proofs else 1e-12 * size)
    assert result.iterations[k] == run.iterations
    assert result.certified[k] == run.certified
    assert tuple(np.flatnonzero(result.exposed[k])) == run.exposed
    assert result.proposals[k] == (run.proofs[0].proposals if run.proofs else 0)
    np.testing.assert_allclose(result.spread[k], run.certificate.spread, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(result.error[k], run.error, rtol=0, atol=1e-12 * size)
    absent = slice(run.nodes, None)
    assert np.isnan(result.x[k, absent]).all()
    assert (result.first_inside[k, absent] == NEVER).all()
    assert (result.lower[k, absent] == -np.inf).all()
    assert (result.upper[k, absent] == np.inf).all()
    x, branch = run.trace.x, run.trace.branch
    here = slice(0, run.nodes)
    np.testing.assert_allclose(result.lower[k, here], np.where(branch < 0, x, -np.inf).max(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.upper[k, here], np.where(branch > 0, x, np.inf).min(axis=0), rtol=1e-12)
    first = np.where((branch == 0).any(axis=0), (branch == 0).argmax(axis=0), NEVER)
    np.testing.assert_array_equal(result.first_inside[k, here], first)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_run_k_is_solve_with_child_k(objective, stop):
    """One graph for all runs, and one a run."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(9, 8)) * 3
    shared = graphs.rgg(9, rng=1)
    own = [graphs.rgg(9, rng=k) for k in range(8)]
    make = {"objective": OBJECTIVES[objective], "weights": rng.integers(1, 4, 9)}
    for networks, ensembles in (
        ([shared] * 8, Problem(shared, values, **make)),
        (own, [Problem(graph, column, **make) for graph, column in zip(own, values.T, strict=True)]),
    ):
        result = solve_ensemble(ensembles, rng=7, **STOPS[stop])
        assert result.runs == 8
        for k, child in enumerate(np.random.default_rng(7).spawn(8)):
            assert_same(result, k, alone(Problem(networks[k], values[:, k], **make), child, **STOPS[stop]))


def test_parameters_a_run():
    """c, mu and sigma may differ from run to run, and each run may bring its own generator."""
    rng = np.random.default_rng(5)
    problem = Problem(graphs.complete(7), rng.normal(size=(7, 5)))
    c, mu, sigma = rng.uniform(0.5, 3, 5), rng.normal(size=5), rng.random(5)
    result = solve_ensemble(problem, c=c, mu=mu, sigma=sigma, theta=0.4, rng=[*range(5)], stop="certified")
    for k in range(5):
        run = alone(
            Problem(problem.graph, problem.values[:, k]),
            k,
            c=c[k],
            mu=mu[k],
            sigma=sigma[k],
            theta=0.4,
            stop="certified",
        )
        assert_same(result, k, run)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=5), problems(max_nodes=20), st.integers(1, 8), st.data())
def test_counts_of_any_problem(seeds, problem, patience, data):
    """Ties, weights, heavy tails, any root: the batched count ends in the same iteration with the same value."""
    if not isinstance(problem.objective, Quantile) or not problem.objective.is_one_value(int(problem.counts.sum())):
        problem = Problem(problem.graph, problem.values, objective=Quantile(0.5, "low"))
    options = {"patience": patience, "root": data.draw(st.integers(0, problem.graph.n - 1)), "limit": 400}
    rngs = np.random.default_rng(seeds[0])
    several = [problem, *(problem.with_values(rngs.permutation(problem.values)) for _ in seeds)]
    result = solve_ensemble(several, rng=[3, *seeds], **options)
    for k, (one, seed) in enumerate(zip(several, [3, *seeds], strict=True)):
        run = solve(one, rng=seed, record="none", throw=False, **options)
        assert (result.iterations[k], result.certified[k]) == (run.iterations, run.certified)
        assert result.proposals[k] == (run.proofs[0].proposals if run.proofs else 0)
        if run.proofs:
            assert result.value[k] == run.value


@pytest.mark.parametrize("kind", ["rgg", "tree", "complete"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stop", ["count", "certified"])
def test_joining_and_closing_ranks(monkeypatch, kind, workers, stop):
    """A window far smaller than the ensemble gives what all at once gives: dense, sparse or one graph."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(30, 11))
    several = [Problem(graphs.make(kind, 11, rng=k), row) for k, row in enumerate(values)]
    at_once = solve_ensemble(several, rng=4, stop=stop)
    monkeypatch.setattr(ensemble, "_NUMBERS", 11 * 7)
    for runs in (several, Problem(several[0].graph, values.T)) if kind == "complete" else (several,):
        result = solve_ensemble(runs, rng=4, stop=stop, workers=workers)
        np.testing.assert_array_equal(result.iterations, at_once.iterations)
        np.testing.assert_array_equal(result.first_inside, at_once.first_inside)
        np.testing.assert_allclose(result.x, at_once.x, rtol=0, atol=1e-12)


SIZES = (12, 5, 30, 7, 2, 29, 13, 16, 8, 11, 31)  # so that some are padded, and none to more than twice its size


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("objective", ["low median", "maximum", "mean"])
def test_graphs_of_different_sizes(objective, stop):
    """Run k is what it is alone, whatever the size of those beside it."""
    rng = np.random.default_rng(2)
    make = {"objective": OBJECTIVES[objective]}
    several = [
        Problem(
            graphs.make(("rgg", "tree")[k % 2], n, rng=k), rng.normal(size=n), weights=rng.integers(1, 4, n), **make
        )
        for k, n in enumerate(SIZES)
    ]
    result = solve_ensemble(several, rng=7, **STOPS[stop])
    assert result.x.shape == (len(SIZES), max(SIZES))
    for k, child in enumerate(np.random.default_rng(7).spawn(len(SIZES))):
        assert_same(result, k, alone(several[k], child, **STOPS[stop]))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_window_over_different_sizes(monkeypatch, workers):
    """Runs that join late, beside larger or smaller ones, are still what they are alone."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(5, 12, 40).tolist()
    several = [Problem(graphs.rgg(n, rng=k), rng.normal(size=n)) for k, n in enumerate(sizes)]
    monkeypatch.setattr(ensemble, "_NUMBERS", 11 * 6)
    result = solve_ensemble(several, rng=[*range(40)], stop="certified", workers=workers)
    for k, problem in enumerate(several):
        assert_same(result, k, alone(problem, k, stop="certified"))


def test_a_run_without_a_proof_says_so():
    result = solve_ensemble(Problem(graphs.ring(9), np.arange(18.0).reshape(9, 2)), rng=1, limit=5)
    assert not result.certified.any()
    assert result.iterations.tolist() == [5, 5]
    assert result.proposals.tolist() == [0, 0]


def test_without_bounds():
    problem = Problem(graphs.ring(9), np.arange(18.0).reshape(9, 2))
    result, expected = solve_ensemble(problem, rng=1, bounds=False), solve_ensemble(problem, rng=1)
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(result.first_inside, expected.first_inside)


def test_a_generator_is_used_up():
    """A generator gives each ensemble other children, the ones that `spawn` would have given."""
    problem = Problem(graphs.ring(5), np.arange(10.0).reshape(5, 2))
    rng, same = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(2):
        result = solve_ensemble(problem, rng=rng, iterations=3)
        for k, child in enumerate(same.spawn(2)):
            assert_same(result, k, alone(Problem(problem.graph, problem.values[:, k]), child, iterations=3))


def test_a_single_run():
    problem = Problem(graphs.ring(5), [5.0, 1, 4, 2, 3])
    assert solve_ensemble(problem, rng=1).value.tolist() == [3.0]


def test_private_values_are_not_shown():
    result = solve_ensemble(Problem(graphs.ring(5), [48151.623, 1, 4, 2, 3]), rng=1)
    assert "48151" not in repr(result)


SCALAR = Problem(graphs.ring(5), np.arange(5.0), objective=Quantile(0.5, "low"))


@pytest.mark.parametrize(
    ("runs", "options", "words"),
    [
        ([], {}, "sequence of problems"),
        ([1], {}, "sequence of problems"),
        ([SCALAR, Problem(graphs.ring(3), np.arange(3.0))], {"root": 4}, "root must be a node, from 0 to 2"),
        ([SCALAR, Problem(graphs.ring(5), np.ones((5, 2)))], {}, "run 1 has coordinates"),
        ([SCALAR, Problem(graphs.ring(5), np.arange(5.0), objective=Mean())], {}, "run 1 seeks a mean"),
        (SCALAR, {"stop": "error"}, "stop must be"),
        (Problem(graphs.ring(6), np.arange(6.0)), {"stop": "count"}, "not every run has one value"),
        (Problem(graphs.ring(6), np.ones((6, 2)), objective=Mean()), {"stop": "count"}, "not every run"),
        (SCALAR, {"tolerance": 0}, "tolerance must be"),
        (SCALAR, {"iterations": 0}, "iterations must be"),
        (SCALAR, {"workers": 1.5}, "workers must be"),
        (SCALAR, {"root": 5}, "root must be"),
        (SCALAR, {"rng": -1}, "rng must be"),
        (SCALAR, {"rng": [1, 2]}, "2 generators for 1 runs"),
        (SCALAR, {"c": [1.0, 2.0]}, "c must be a number, or one for each of the 1 runs"),
        (SCALAR, {"c": -1.0}, "c must be positive"),
    ],
)
def test_bad_input(runs, options, words):
    with pytest.raises(InputError, match=words):
        solve_ensemble(runs, **options)
