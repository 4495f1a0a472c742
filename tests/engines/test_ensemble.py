"""An ensemble is its runs: what `solve` finds for each alone, at once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import problems

from midst import (
    After,
    Certified,
    Consensus,
    Exact,
    InputError,
    Mean,
    Problem,
    Quantile,
    Search,
    graphs,
    solve,
)
from midst.engines import ensemble, ensemble_search
from midst.engines.ensemble import NEVER, solve_ensemble
from midst.engines.searching import search_values
from midst.methods import CLOSE, opening_thresholds, openings, rules_of
from midst.protocol.certificate import known_at, lie_within
from midst.protocol.keys import Floats, make_keys

OBJECTIVES = {
    "low median": Quantile(0.5),
    "median": Quantile(0.5, "any"),
    "quantile": Quantile(0.9),
    "maximum": Quantile(1),
    "mean": Mean(),
}
STOPS = {
    "default": Consensus(),
    "certified": Consensus(stop=Certified()),
    "iterations": Consensus(stop=After(60)),
    "unfinished": Consensus(limit=9),
    "search": Search(),
}


def alone(problem, rng, method, run=0):
    record = "all" if isinstance(method, Consensus) else "auto"
    return solve(problem, method, rng=rng, run=run, record=record, throw=False)


def suits(objective, method):
    """A search finds values and means, and no point between two."""
    return not isinstance(method, Search) or objective != "median"


def assert_same(result, k, run):
    """Row k of an ensemble is that run, and says nothing of nodes that it does not have."""
    found = run.method == "search" or run.standing is not None
    size = max(np.abs(run.trace.x).max(initial=0), np.abs(run.value))
    np.testing.assert_allclose(result.value[k], run.value, rtol=0, atol=0 if found else 1e-12 * size)
    assert result.iterations[k] == run.iterations
    assert result.rounds[k] == run.rounds
    assert result.certified[k] == run.certified
    assert tuple(np.flatnonzero(result.exposed[k])) == run.exposed
    probes = (run.rounds - run.iterations - (run.iterations > 0)) / run.trace.graph.diameter() - 2
    assert result.probes[k] == (probes if found else 0)
    np.testing.assert_allclose(result.error[k], run.error, rtol=0, atol=1e-12 * size)
    absent = slice(0 if run.method == "search" else run.nodes, None)
    assert np.isnan(result.x[k, absent]).all()
    assert (result.first_inside[k, absent] == NEVER).all()
    assert (result.lower[k, absent] == -np.inf).all()
    assert (result.upper[k, absent] == np.inf).all()
    if run.method == "search":
        assert result.spread[k] == 0
        return
    x, branch = run.trace.x, run.trace.branch
    here = slice(0, run.nodes)
    np.testing.assert_allclose(result.x[k, here], x[-1], rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(result.spread[k], np.ptp(x[-1]), rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(result.lower[k, here], np.where(branch < 0, x, -np.inf).max(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.upper[k, here], np.where(branch > 0, x, np.inf).min(axis=0), rtol=1e-12)
    first = np.where((branch == 0).any(axis=0), (branch == 0).argmax(axis=0), NEVER)
    np.testing.assert_array_equal(result.first_inside[k, here], first)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_run_k_is_solve_of_run_k(objective, stop):
    """One graph for all runs, and one a run."""
    if not suits(objective, STOPS[stop]):
        pytest.skip("no search finds it")
    rng = np.random.default_rng(1)
    values = rng.normal(size=(9, 8)) * 3
    shared = graphs.rgg(9, rng=1)
    own = [graphs.rgg(9, rng=k) for k in range(8)]
    make = {"objective": OBJECTIVES[objective], "weights": rng.integers(1, 4, 9)}
    for networks, ensembles in (
        ([shared] * 8, Problem(shared, values, **make)),
        (own, [Problem(graph, column, **make) for graph, column in zip(own, values.T, strict=True)]),
    ):
        result = solve_ensemble(ensembles, rng=7, method=STOPS[stop])
        assert result.runs == 8
        for k in range(8):
            assert_same(result, k, alone(Problem(networks[k], values[:, k], **make), 7, STOPS[stop], run=k))


def test_parameters_a_run():
    """c, mu and sigma may differ from run to run, and each run may bring its own generator."""
    rng = np.random.default_rng(5)
    problem = Problem(graphs.complete(7), rng.normal(size=(7, 5)))
    c, mu, sigma = rng.uniform(0.5, 3, 5), rng.normal(size=5), rng.random(5)
    for stop in (Certified(1e-4), Exact()):
        result = solve_ensemble(problem, Consensus(c=c, mu=mu, sigma=sigma, theta=0.4, stop=stop), rng=[*range(5)])
        for k in range(5):
            method = Consensus(c=c[k], mu=mu[k], sigma=sigma[k], theta=0.4, stop=stop)
            assert_same(result, k, alone(Problem(problem.graph, problem.values[:, k]), k, method))


# By search


def several_of(problem, seeds):
    """The problem and some others like it: one of the values is the answer, and bounds or a resolution may be known."""
    rng = np.random.default_rng(seeds)
    low, high = problem.values.min(), problem.values.max()
    known = [{}, {"bounds": (low - 1, high + 2)}, {"resolution": "0.01"}, {"scale": 1.0}]
    weights = problem.whole_weights * problem.unit_weight  # which may be rounded to other whole numbers
    rounded = Problem(problem.graph, problem.values, weights=weights, objective=problem.objective)
    objective = problem.objective if rounded.has_one_value else Quantile(0.5)
    return [
        Problem(problem.graph, rng.permutation(problem.values), weights=weights, objective=objective, **each)
        for each in (known[k] for k in rng.integers(0, 4, 4))
    ]


METHODS = st.builds(Search, st.integers(1, 7), st.sampled_from(["rank", "value", "key", (-2.0, -0.5, 0.5, 2.0)]))


@settings(max_examples=60)
@given(problems(max_nodes=20, min_nodes=3), st.integers(0, 99), METHODS)
def test_every_search_is_the_plain_one(problem, seed, method):
    """Ties, weights, heavy tails, bounds, resolutions: as many probes, the same value, and what sorting gives."""
    several = several_of(problem, seed)
    result = solve_ensemble(several, method)
    for k, one in enumerate(several):
        search, steps = search_values(rules_of(one, method), one.value_keys, one.value_weights)
        assert (result.value[k], result.probes[k]) == (search.value(0), len(steps))
        assert result.value[k] == one.answer[0]
        assert result.rounds[k] == (len(steps) + 2) * one.graph.diameter()
    assert result.certified.all()
    assert not result.exposed.any()
    assert not result.error.any()
    assert not result.iterations.any()


@settings(max_examples=40)
@given(problems(max_nodes=20), st.integers(0, 99))
def test_an_exact_run_ends_as_its_nodes_know(problem, seed):
    """A search begins once the sampled x are close and everybody has heard so, about those x, and gives the answer."""
    several = several_of(problem, seed)
    result = solve_ensemble(several, Consensus(limit=400), rng=[*range(4)])
    for k, one in enumerate(several):
        run = alone(one, k, Consensus(stop=After(400)) if one.keys == Floats() else Consensus(limit=400))
        x, scale, diameter = run.trace.x, run.trace.parameters["scale"], one.graph.diameter()
        sampled = [t for t in range(diameter, len(x), diameter + 1) if known_at(t, diameter) < 400]
        close = [t for t in sampled if lie_within(x[t].min(), x[t].max(), CLOSE * scale)]
        if not close:
            assert (result.iterations[k], result.certified[k], result.probes[k]) == (400, False, 0)
            continue
        assert result.iterations[k] == known_at(close[0], diameter) + 1
        assert result.certified[k]
        assert result.value[k] == one.answer[0]
        first = opening_thresholds(one.keys, x[close[0]].min(), x[close[0]].max(), scale)
        rules = replace(rules_of(one, Search()), opening=(first,))
        assert result.probes[k] == len(search_values(rules, one.value_keys, one.value_weights)[1])
        assert result.rounds[k] == 1 + result.iterations[k] + (result.probes[k] + 2) * diameter


@given(st.lists(st.tuples(*[st.floats(-1e300, 1e300)] * 2, st.floats(1e-300, 1e300)), min_size=1, max_size=9))
def test_openings(runs):
    """Many at once are each by itself, whatever their size: rounded outward to a 64th of the scale."""

    def outward(keys, low, high, scale):
        step = scale / 64
        least, most = low / step, high / step
        if math.isfinite(least) and math.isfinite(most):
            low, high = math.floor(least) * step, math.ceil(most) * step
        return [keys.key(max(keys.ends[0], min(keys.ends[1], end))) for end in (low, high)]

    low, high, scale = np.array(runs).T
    low, high = np.minimum(low, high), np.maximum(low, high)
    for keys in (Floats(), make_keys("0.01")):
        each = [*zip(low.tolist(), high.tolist(), scale.tolist(), strict=True)]
        expected = [outward(keys, *run) for run in each]
        assert openings(keys, low, high, scale).tolist() == expected
        assert [list(opening_thresholds(keys, *run)) for run in each] == expected


def test_midpoints():
    """Two values are followed, a run after the other."""
    values = np.random.default_rng(1).integers(0, 500, (6, 9)) / 10
    make = {"objective": Quantile(0.5, "averaged_inverted_cdf"), "resolution": "0.1"}
    shared = Problem(graphs.ring(6), values, **make)
    for problem in (shared, [Problem(graphs.ring(6), column, **make) for column in values.T]):
        for method in ("search", "consensus"):
            result = solve_ensemble(problem, method, rng=1)
            np.testing.assert_allclose(result.value, np.median(values, axis=0), rtol=1e-15)
            assert result.certified.all()
            assert not result.error.any()


def test_lists():
    """Pooled values are searched like any others."""
    lists = [[[1.0, 5], [2], [7, 8, 9]], [[4.0], [2], [6]], [[0.0, 0], [0], [1] * 9]]
    several = [Problem(graphs.path(3), each, pooled=True) for each in lists]
    result = solve_ensemble(several, "search")
    assert result.value.tolist() == [5, 4, 1]
    with pytest.raises(InputError, match="lists are pooled by a search only"):
        solve_ensemble(several, "consensus")


def test_bounds_a_run(monkeypatch):
    """Each coordinate has its own, in whatever pieces runs are sorted."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=(7, 50)) * np.geomspace(1e-3, 1e3, 50)
    ends = values.min(axis=0) - rng.random(50), values.max(axis=0) + rng.random(50)
    problem = Problem(graphs.rgg(7, rng=1), values, bounds=ends)
    monkeypatch.setattr(ensemble_search, "_NUMBERS", 7 * 8)
    for method in (Search(), Consensus()):
        result = solve_ensemble(problem, method, rng=[*range(50)], workers=2)
        for k in range(50):
            own = Problem(problem.graph, values[:, k], bounds=(ends[0][k], ends[1][k]))
            assert_same(result, k, alone(own, k, method))


def test_a_million_coordinates_take_no_memory_each():
    """What a search says of every node is the same, and stands once."""
    result = solve_ensemble(Problem(graphs.complete(3), np.zeros((3, 5000)), scale=1), "search")
    for told in (result.first_inside, result.lower, result.upper, result.x):
        assert told.shape == (5000, 3)
        assert told.strides == (0, 0)


# Windows


@pytest.mark.parametrize("kind", ["rgg", "tree", "complete"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stop", [Exact(), Certified()])
def test_joining_and_closing_ranks(monkeypatch, kind, workers, stop):
    """A window far smaller than the ensemble gives what all at once gives: dense, sparse or one graph."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(30, 11))
    several = [Problem(graphs.make(kind, 11, rng=k), row) for k, row in enumerate(values)]
    at_once = solve_ensemble(several, Consensus(stop=stop), rng=4)
    monkeypatch.setattr(ensemble, "_NUMBERS", 11 * 7)
    for runs in (several, Problem(several[0].graph, values.T)) if kind == "complete" else (several,):
        result = solve_ensemble(runs, Consensus(stop=stop), rng=4, workers=workers)
        np.testing.assert_array_equal(result.iterations, at_once.iterations)
        np.testing.assert_array_equal(result.probes, at_once.probes)
        np.testing.assert_array_equal(result.first_inside, at_once.first_inside)
        np.testing.assert_allclose(result.x, at_once.x, rtol=0, atol=1e-12)


def test_blocks_of_runs_that_share_other_numbers(monkeypatch):
    """c and the unit stand once where all runs of a block have the same; the next block may have others."""
    values = np.random.default_rng(3).permutation(np.linspace(-1, 1, 11)).repeat(30).reshape(11, 30)
    values = values * np.repeat([1.0, 64.0, 1e200], 10)
    problem = Problem(graphs.rgg(11, rng=1), values)
    assert len(set(problem.scale.tolist())) == 3
    at_once = solve_ensemble(problem, Consensus(), rng=4)
    monkeypatch.setattr(ensemble, "_NUMBERS", 11 * 5)
    for workers in (1, 3):
        result = solve_ensemble(problem, Consensus(), rng=4, workers=workers)
        np.testing.assert_array_equal(result.iterations, at_once.iterations)
        np.testing.assert_array_equal(result.first_inside, at_once.first_inside)
        np.testing.assert_allclose(result.x, at_once.x, rtol=1e-12)
    for k in (0, 10, 29):
        assert_same(at_once, k, alone(Problem(problem.graph, values[:, k]), 4, Consensus(), run=k))


SIZES = (12, 5, 30, 7, 3, 29, 13, 16, 8, 11, 31)  # so that some are padded, and none to more than twice its size


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("objective", ["low median", "maximum", "mean"])
def test_graphs_of_different_sizes(objective, stop):
    """Run k is what it is alone, whatever the size of those beside it."""
    if not suits(objective, STOPS[stop]):
        pytest.skip("no search finds it")
    rng = np.random.default_rng(2)
    make = {"objective": OBJECTIVES[objective]}
    several = [
        Problem(
            graphs.make(("rgg", "tree")[k % 2], n, rng=k), rng.normal(size=n), weights=rng.integers(1, 4, n), **make
        )
        for k, n in enumerate(SIZES)
    ]
    result = solve_ensemble(several, rng=7, method=STOPS[stop])
    assert result.x.shape == (len(SIZES), max(SIZES))
    for k in range(len(SIZES)):
        assert_same(result, k, alone(several[k], 7, STOPS[stop], run=k))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_window_over_different_sizes(monkeypatch, workers):
    """Runs that join late, beside larger or smaller ones, are still what they are alone."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(5, 12, 40).tolist()
    several = [Problem(graphs.rgg(n, rng=k), rng.normal(size=n)) for k, n in enumerate(sizes)]
    monkeypatch.setattr(ensemble, "_NUMBERS", 11 * 6)
    for stop in (Certified(), Exact()):
        result = solve_ensemble(several, Consensus(stop=stop), rng=[*range(40)], workers=workers)
        for k, problem in enumerate(several):
            assert_same(result, k, alone(problem, k, Consensus(stop=stop)))


def test_a_run_without_a_proof_says_so():
    result = solve_ensemble(Problem(graphs.ring(9), np.arange(18.0).reshape(9, 2)), Consensus(limit=5), rng=1)
    assert not result.certified.any()
    assert result.iterations.tolist() == [5, 5]
    assert result.probes.tolist() == [0, 0]
    assert result.rounds.tolist() == [5, 5]


def test_without_bounds():
    problem = Problem(graphs.ring(9), np.arange(18.0).reshape(9, 2))
    expected = solve_ensemble(problem, Consensus(), rng=1)
    result = solve_ensemble(problem, Consensus(), rng=1, bounds=False)
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(result.first_inside, expected.first_inside)


def test_a_generator_is_used_up():
    """A generator gives each ensemble other numbers, those that `solve` would have been given."""
    problem = Problem(graphs.ring(5), np.arange(10.0).reshape(5, 2))
    rng, same = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(2):
        result = solve_ensemble(problem, rng=rng, method=Consensus(stop=After(3)))
        together = solve(problem, Consensus(stop=After(3)), rng=same, record="all")
        np.testing.assert_allclose(result.x, together.trace.x[-1].T, rtol=0, atol=1e-12)


def test_a_single_run():
    problem = Problem(graphs.ring(5), [5.0, 1, 4, 2, 3])
    assert solve_ensemble(problem, rng=1).value.tolist() == [3.0]


def test_private_values_are_not_shown():
    result = solve_ensemble(Problem(graphs.ring(5), [48151.623, 1, 4, 2, 3]), rng=1)
    assert "48151" not in repr(result)


SCALAR = Problem(graphs.ring(5), np.arange(5.0), objective=Quantile(0.5))


EVEN = Problem(graphs.ring(6), np.arange(6.0), objective=Quantile(0.5, "any"))
AVERAGE = Problem(graphs.ring(6), np.ones((6, 2)), objective=Mean())


def by(**options):
    return {"method": Consensus(**options)}


@pytest.mark.parametrize(
    ("runs", "options", "words"),
    [
        ([], {}, "sequence of problems"),
        ([1], {}, "sequence of problems"),
        ([SCALAR, Problem(graphs.ring(5), np.ones((5, 2)))], {}, "run 1 has coordinates"),
        ([SCALAR, Problem(graphs.ring(5), np.arange(5.0), objective=Mean())], {}, "run 1 seeks a mean"),
        (SCALAR, {"method": "count"}, "method must be 'search', 'consensus' or 'paper'"),
        ([SCALAR, EVEN], by(stop=Exact()), "is no one value to search for"),
        (AVERAGE, by(stop=Exact()), "is no one value to search for"),
        (EVEN, {"method": "search"}, "is no one value to search for"),
        (SCALAR, {"method": Search(), "device": "cpu"}, "device is of method consensus"),
        (SCALAR, {"method": Search(), "rng": -1}, "rng must be"),
        (SCALAR, by(z0=np.zeros(10)), "z0 is one run's; give it to midst.solve"),
        (SCALAR, {"workers": 1.5}, "workers must be"),
        (SCALAR, {"rng": -1}, "rng must be"),
        (SCALAR, {"rng": [1, 2]}, "2 generators for 1 runs"),
        (SCALAR, by(c=[1.0, 2.0]), "c must be a number, or one for each of the 1 runs"),
        (SCALAR, {"bounds": (0, 10)}, "bounds is True or False here"),
    ],
)
def test_bad_input(runs, options, words):
    with pytest.raises(InputError, match=words):
        solve_ensemble(runs, **options)


def test_runs_that_cannot_all_be_exact():
    """Where one of them lies between two values, all are certified, and none is searched for."""
    result = solve_ensemble([SCALAR, EVEN], rng=1)
    assert result.certified.all()
    assert not result.probes.any()


@given(
    st.integers(3, 16),
    st.integers(1, 60),
    st.sampled_from(["none", "bounds", "of each"]),
    st.booleans(),
    st.sampled_from([None, "0.01", "1"]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_workers_and_blocks_change_no_search(n, runs, bounded, weighted, resolution, seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(n, runs)) * 10.0 ** rng.integers(-2, 3), int(rng.integers(0, 4)))
    ends = {"none": None, "bounds": (values.min() - 1, values.max() + 1), "of each": (values.min(0) - 1, values.max(0))}
    weights = rng.integers(0, 4, n) + (np.arange(n) == 0) if weighted else None
    problem = Problem(graphs.complete(n), values, bounds=ends[bounded], weights=weights, resolution=resolution)
    plain = [
        solve(Problem(graphs.complete(n), column, bounds=each, weights=weights, resolution=resolution), "search")
        for column, each in zip(
            values.T, [None] * runs if bounded == "none" else np.column_stack(problem.bounds).tolist(), strict=True
        )
    ]
    for workers, numbers in ((1, 1_000_000), (3, 1), (2, 50)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ensemble_search, "_NUMBERS", numbers)
            found = solve_ensemble(problem, "search", workers=workers)
        assert found.value.tolist() == [one.value for one in plain]
        assert found.probes.tolist() == [one.probes for one in plain]
        assert found.rounds.tolist() == [one.rounds for one in plain]
        assert found.error.tolist() == [one.error for one in plain]
        assert not found.exposed.any()


def test_a_search_leaves_a_generator_as_it_was():
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    solve_ensemble(SCALAR, Search(), rng=one)
    assert one.bit_generator.seed_seq.n_children_spawned == other.bit_generator.seed_seq.n_children_spawned
