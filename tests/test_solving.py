"""Problem in, result out."""

from __future__ import annotations

import json
from inspect import Parameter, signature

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import graph_of
from scipy import sparse

import midst
from midst import InputError, Problem, Quantile, graphs, solve
from midst.cli import Commands
from midst.methods import After, Consensus

VALUES = np.random.default_rng(8).normal(size=15)


def test_the_contract_of_the_readme():
    r = midst.median(VALUES, graph="ring", rng=7)
    assert r.certified
    assert r.value == np.median(VALUES)
    assert isinstance(r.iterations, int)
    assert all(isinstance(i, int) for i in r.exposed)
    g = midst.graphs.ring(15)
    z0 = np.random.default_rng(1).normal(size=len(g.source))
    r = midst.solve(
        midst.Problem(g, VALUES),
        midst.Consensus(c=1.0, theta=0.5, z0=z0, stop=midst.After(500)),
        engine="arrays",
        record="all",
    )
    assert r.trace.x.shape == r.trace.inside.shape == (500, 15)
    assert r.trace.inside.dtype == bool
    np.testing.assert_array_equal(r.trace.z0, z0)
    assert r.exposed == tuple(np.flatnonzero(r.trace.inside.any(axis=0)).tolist())


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        (lambda v, **o: midst.median(v, **o), np.median),
        (lambda v, **o: midst.quantile(v, 0.9, **o), lambda v: np.quantile(v, 0.9, method="inverted_cdf")),
        (lambda v, **o: midst.max(v, **o), np.max),
        (lambda v, **o: midst.min(v, **o), np.min),
        (lambda v, **o: midst.mean(v, **o), np.mean),
    ],
)
@pytest.mark.parametrize("graph", ["complete", "rgg", "star"])
def test_against_numpy(find, expected, graph):
    result = find(VALUES, graph=graph, rng=1)
    assert result.certified
    assert result.value == pytest.approx(expected(VALUES), abs=1e-5)
    assert result.error <= (1e-5 if result.certificate else 0)


def test_even_n_has_two_medians():
    values = VALUES[:14]
    low, high = np.sort(values)[6:8]
    assert midst.median(values, "complete", rng=1).value == pytest.approx(low, abs=1e-6)
    assert midst.median(values, "complete", rng=1, definition="inverted_cdf_high").value == pytest.approx(
        high, abs=1e-6
    )
    between = midst.median(values, "complete", rng=1, definition="any")
    assert low - 1e-6 <= between.value <= high + 1e-6
    assert between.objective == "median between low and high"
    assert between.error <= 1e-6
    assert midst.median(values, "complete", rng=1).objective == "low median"


def test_weights_count_like_copies():
    weights = [3, 1, 1, 1, 1]
    values = [10.0, 1.0, 2.0, 3.0, 4.0]
    result = midst.median(values, "complete", weights=weights, rng=1)
    assert result.value == pytest.approx(np.median(np.repeat(values, weights)), abs=1e-5)
    assert midst.mean(values, "complete", weights=weights, rng=1).value == pytest.approx(40 / 7, abs=1e-4)


def test_vectors_are_coordinate_wise():
    values = np.random.default_rng(1).normal(size=(15, 4)) * (1, 1e3, 1e-3, 1) + (0, 5e4, 0, -7)
    result = midst.median(values, "rgg", rng=1)
    np.testing.assert_allclose(result.value, np.median(values, axis=0), rtol=1e-3, atol=1e-6)
    assert result.certified
    assert len(result.to_dict()["value"]) == 4


@pytest.mark.parametrize(
    "make", [lambda: nx.cycle_graph(15), lambda: sparse.csr_array(nx.to_numpy_array(nx.cycle_graph(15)))]
)
def test_graphs_from_elsewhere(make):
    assert midst.median(VALUES, make(), rng=1).value == midst.median(VALUES, "ring", rng=1).value


@settings(max_examples=40)
@given(graph_of(3, 30), st.integers(0, 2**32 - 1))
def test_permuting_nodes_permutes_everything(graph, seed):
    """Renaming nodes (and carrying z(0) along) renames the trajectory and changes nothing else."""
    rng = np.random.default_rng(seed)
    n = graph.n
    values, zeta = rng.normal(size=n), rng.normal(size=len(graph.source))
    new = rng.permutation(n)
    once = graph.source < graph.target
    other = graphs.from_edges(n, np.column_stack([new[graph.source[once]], new[graph.target[once]]]))
    place = {pair: k for k, pair in enumerate(zip(other.source.tolist(), other.target.tolist(), strict=True))}
    order = [place[int(new[i]), int(new[j])] for i, j in zip(graph.source, graph.target, strict=True)]
    # A_ij z_{i|j} is what the iteration sees; a renaming may turn the sign of an edge around
    moved_zeta, moved_values = np.empty(len(zeta)), np.empty(n)
    moved_zeta[order], moved_values[new] = zeta, values
    here = solve(Problem(graph, values), Consensus(c=1.0, z0=zeta * graph.sign, stop=After(60)), record="all").trace
    there = solve(
        Problem(other, moved_values), Consensus(c=1.0, z0=moved_zeta * other.sign, stop=After(60)), record="all"
    ).trace
    np.testing.assert_allclose(there.x[:, new], here.x, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(there.branch[:, new], here.branch)


@given(st.integers(-900, 900), st.integers(0, 2**32 - 1))
def test_scaling_by_two_to_the_k_is_exact(k, seed):
    """With the public scale scaled along, the trajectory is the same to the last bit, from 1e-270 to 1e270."""
    values = np.random.default_rng(seed).normal(size=9)
    graph = graphs.ring(9)
    factor = 2.0**k
    one = solve(Problem(graph, values, scale=1.0), Consensus(stop=After(50)), rng=seed, record="all").trace
    two = solve(Problem(graph, values * factor, scale=factor), Consensus(stop=After(50)), rng=seed, record="all").trace
    np.testing.assert_array_equal(two.x, one.x * factor)
    np.testing.assert_array_equal(two.branch, one.branch)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1))
def test_shifting_and_scaling_bounds_along_changes_nothing_else(shift, factor, seed):
    """The run depends on the data only relative to what is public about it."""
    values = np.random.default_rng(seed).uniform(size=9)
    graph = graphs.ring(9)
    one = solve(Problem(graph, values, bounds=(0, 1)), Consensus(stop=After(50)), rng=seed, record="all").trace
    moved = Problem(graph, values * factor + shift, bounds=(shift - 1e-9 * factor, shift + factor * (1 + 1e-9)))
    two = solve(moved, Consensus(stop=After(50)), rng=seed, record="all").trace
    np.testing.assert_allclose((two.x - shift) / factor, one.x, rtol=0, atol=1e-6 * (1 + abs(shift) / factor))


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("objective", [midst.median, midst.mean, midst.max])
def test_extreme_sizes(size, objective):
    result = objective(VALUES * size, "complete", rng=1)
    assert result.certified
    assert result.error <= 1e-5 * size


def test_c_given_means_the_papers_c():
    """No hidden rescaling: with c given and nothing public, tolerance and z(0) are absolute."""
    r = midst.median(VALUES * 3, "complete", method=midst.Consensus(c=1.0, stop=midst.Certified()), rng=1)
    assert r.trace.parameters == {"c": 1.0, "theta": 0.5, "mu": 0.0, "sigma": 0.1, "scale": 1.0}
    assert r.certificate.tolerance == 1e-6


def test_same_seed_same_run():
    one, two = (midst.median(VALUES, "rgg", method="consensus", rng=5, record="all").trace for _ in range(2))
    np.testing.assert_array_equal(one.x, two.x)
    assert one.seed == 5
    three = midst.median(VALUES, "rgg", method="consensus", rng=np.random.default_rng(5), record="all").trace
    assert three.seed is None
    other = midst.median(VALUES, "rgg", method="consensus", rng=6, record="all").trace
    assert other.x.shape != one.x.shape or (other.x != one.x).any()


def test_result_for_people_and_programs():
    result = midst.median(VALUES, "ring", rng=1)
    as_dict = json.loads(json.dumps(result.to_dict()))
    assert {"value", "objective", "nodes", "edges", "iterations", "certified", "exposed", "error"} <= set(as_dict)
    assert {"method", "rounds", "probes"} <= set(as_dict)
    assert "probes: 7 below, 1 equal, 7 above" in repr(result)
    assert "certified to within" in repr(
        midst.median(VALUES, "ring", method=midst.Consensus(stop=midst.Certified()), rng=1)
    )
    assert "<table>" in result._repr_html_()
    assert "every node, to an observer of z(0)" in repr(midst.mean(VALUES, "ring", method="consensus", rng=1))
    assert "…" in repr(
        midst.median(np.arange(80.0), "complete", method=midst.Consensus(c=1, mu=-70, stop=midst.Certified()), rng=1)
    )
    assert "[" in repr(midst.median(VALUES.reshape(5, 3), "ring", rng=1))


def test_nobody_exposed_reads_well():
    quiet = solve(Problem(graphs.ring(3), [1.0, 2.0, 3.0]), Consensus(c=1.0, mu=-1e4, stop=After(2)), rng=1)
    assert "0 of 3 nodes" in repr(quiet)


def test_progress_is_reported(monkeypatch):
    monkeypatch.setattr(midst.solving, "_BETWEEN_REPORTS", 0.0)
    seen = []
    midst.median(
        VALUES,
        "ring",
        method=midst.Consensus(stop=midst.Certified()),
        rng=1,
        progress=lambda t, spread: seen.append((t, spread)),
    )
    assert len(seen) > 100
    assert seen[0][1] > seen[-1][1]


def test_a_mean_by_the_iteration_exposes_every_node_to_an_observer_of_z0():
    assert midst.mean(VALUES, "ring", method="consensus", rng=1).exposed == tuple(range(15))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"c": 0}, "c must be positive"),
        ({"c": -1.0}, "c must be positive"),
        ({"c": np.nan}, "c must be finite"),
        ({"c": "x"}, "c must be a number"),
        ({"c": 1e-310}, "c is out of range"),
        ({"theta": 0}, "theta must be in"),
        ({"theta": 1.5}, "theta must be in"),
        ({"theta": "half"}, "theta must be in"),
        ({"theta": 1}, "theta = 1 does not converge"),
        ({"sigma": -0.1}, "sigma must not be negative"),
        ({"sigma": np.inf}, "sigma must be finite"),
        ({"mu": np.nan}, "mu must be finite"),
        ({"z0": np.zeros(3)}, "z0 has shape"),
        ({"z0": np.full(30, np.nan)}, "not finite"),
        ({"z0": ["a"] * 30}, "z0 must be numbers"),
        ({"stop": "soon"}, "stop must be"),
        ({"limit": 0}, "limit must be"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises(InputError, match=match) as caught:
        solve(Problem(graphs.ring(15), VALUES), Consensus(**options))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"engine": "warp"}, "no engine 'warp' for search"),
        ({"method": "guess"}, "method must be 'search', 'consensus' or 'paper'"),
        ({"method": "search", "engine": "edges"}, "no engine 'edges' for search"),
        ({"rng": -1}, "rng must be"),
        ({"rng": "seven"}, "rng must be"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(InputError, match=match):
        solve(Problem(graphs.ring(15), VALUES), **options)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: midst.Certified(0), "tolerance must be"),
        (lambda: midst.Certified(np.inf), "tolerance must be"),
        (lambda: midst.After(0), "iterations must be"),
        (lambda: midst.After(2.5), "iterations must be"),
    ],
)
def test_bad_stops(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_bad_graph_argument():
    with pytest.raises(InputError, match="graph must be"):
        midst.median(VALUES, 42)
    with pytest.raises(InputError, match="did you mean ring"):
        midst.median(VALUES, "rings")


def test_theta_1_is_fine_for_the_mean():
    assert midst.mean(VALUES, "complete", method=midst.Consensus(theta=1), rng=1).certified


def test_the_default_definition_is_the_low_one():
    assert midst.quantile(np.arange(10.0), 0.9, "complete", rng=1).value == pytest.approx(8, abs=1e-4)
    assert Problem(graphs.ring(4), [1, 2, 3, 4], objective=Quantile(0.5)).title == "low median"
    assert Problem(graphs.ring(4), [1, 2, 3, 4]).objective == Quantile(0.5)


@pytest.mark.parametrize("graph", ["ring", "rgg", "complete:listed=true"])
def test_absurd_size_on_the_command_line(capsys, graph):
    """One line with the estimate, exit code 2, and nothing allocated."""
    with pytest.raises(SystemExit) as stop:
        Commands("midst").main(["run", "--graph", graph, "--nodes", str(10**13)])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "iB of memory, and this machine has" in error


def test_a_value_that_is_tiny_beside_the_scale_keeps_its_last_bit():
    values = [0.0, -12.0, -3.301103330593192e-307]
    result = midst.median(values, "complete", rng=3)
    assert result.value == values[2]


@pytest.mark.parametrize("find", [midst.median, midst.quantile, midst.max, midst.min, midst.mean])
def test_every_option_of_problem_and_solve_is_one_of_the_short_forms(find):
    shown = set(signature(find).parameters) - {"values", "q", "graph", "definition"}
    known = set(signature(Problem).parameters) | set(signature(solve).parameters)
    assert shown == known - {"graph", "values", "objective", "problem"}
    assert not any(each.kind is Parameter.VAR_KEYWORD for each in signature(find).parameters.values())
