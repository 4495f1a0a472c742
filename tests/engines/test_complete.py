"""A complete graph without its edges: the same iteration, the same law of z(0), and O(n) of everything."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner

import midst
from midst import After, Certified, Consensus, InputError, Mean, Problem, Quantile, audit, graphs, solve
from midst.cli.run import command
from midst.engines import ENGINES
from midst.engines.arrays import sums_at_start
from midst.engines.ensemble import solve_ensemble
from midst.normals import EdgeNormals
from midst.system import Sums, assemble, draw_z0, settle
from midst.trace import load as load_trace

RNG = np.random.default_rng(1)
BARE = graphs.complete(30, listed=False)
FEW = Consensus(stop=After(9))
OBJECTIVES = {"median": Quantile(0.5), "quantile": Quantile(0.9), "maximum": Quantile(1), "mean": Mean()}


def moments(sums):
    """Mean and covariance of (S, R) over the coordinates, each of which is a draw of its own."""
    both = np.concatenate([sums.S, sums.R] if isinstance(sums, Sums) else sums)
    return both.mean(axis=1), np.cov(both)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_law_of_the_sums(n, listed):
    """Drawn as sums or edge by edge, S(0) and R(0) have the mean and the covariance that the docstring claims."""
    draws, mu, sigma = 40_000, -0.7, 0.3
    problem = Problem(graphs.complete(n, listed=listed), np.zeros((n, draws)))
    parameters = settle(problem, c=1.0, mu=mu, sigma=sigma)
    start = draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(n), shape=(draws,)))
    assert isinstance(start, Sums) != listed
    mean, covariance = moments(sums_at_start(problem.graph, start))
    both = np.ones((n, n)) - np.eye(n)
    expected = sigma**2 * np.block([[(n - 1) * np.eye(n), both], [both, (n - 1) * np.eye(n)]])
    of_mean = np.sqrt(np.diag(expected) / draws)
    of_covariance = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / draws)
    assert (np.abs(mean - mu * (n - 1)) < 5 * of_mean).all()
    assert (np.abs(covariance - expected) < 5 * of_covariance).all()


def test_both_sums_are_of_the_same_numbers():
    """Rows and columns of one matrix add up to the same: what the iteration converges to hangs on it."""
    problem = Problem(graphs.complete(100_000), np.zeros(100_000))
    start = draw_z0(
        problem.graph, settle(problem, c=1.0, mu=-3.0, sigma=10.0), EdgeNormals.drawn(np.random.default_rng(1))
    )
    assert start.S.sum() == pytest.approx(start.R.sum(), rel=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_same_trajectory_from_the_sums_of_z0(objective):
    """Given the sums of a z(0) instead of it, and no edges, the run is the one of the edge form."""
    listed, values = graphs.complete(30), RNG.normal(size=(30, 2)) * 5
    weights = RNG.integers(1, 4, 30)
    for theta in (0.5, 0.3):
        problems = [Problem(g, values, objective=OBJECTIVES[objective], weights=weights) for g in (listed, BARE)]
        parameters = settle(problems[0], theta=theta)
        z0 = draw_z0(listed, parameters, EdgeNormals.drawn(np.random.default_rng(3), shape=(2,)))
        whole = assemble(problems[0], parameters, z0)
        signed = (listed.sign[:, None] * z0).reshape(30, 29, 2)
        other = (listed.sign[:, None] * z0)[listed.reverse].reshape(30, 29, 2)
        bare = assemble(problems[1], parameters, Sums(signed.sum(axis=1), other.sum(axis=1)))
        runs = ENGINES["edges"](whole), ENGINES["arrays"](bare)
        for (x, branch), (found, taken) in itertools.islice(zip(*runs, strict=False), 200):
            np.testing.assert_allclose(found, x, rtol=0, atol=1e-12 * np.abs(x).max())
            assert (branch != taken).mean() < 0.02


def test_a_given_z0_may_have_edges():
    """z(0) of every edge can be given all the same; it is then as if they were listed."""
    values, z0 = RNG.normal(size=30), RNG.normal(size=30 * 29)
    for engine in ("arrays", "edges", "reference"):
        runs = [
            solve(Problem(graph, values), Consensus(c=1.0, z0=z0, stop=After(40)), engine=engine, record="all")
            for graph in (graphs.complete(30), BARE)
        ]
        np.testing.assert_allclose(runs[0].trace.x, runs[1].trace.x, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(runs[1].trace.z0, z0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_found_and_proved(objective):
    result = solve(Problem(BARE, RNG.normal(size=30), objective=OBJECTIVES[objective]), Consensus(), rng=2)
    assert result.certified
    assert result.error <= (0 if result.certificate is None else result.certificate.tolerance)


def test_a_hundred_thousand_nodes():
    """5e9 edges, none in memory; c of the order of 1/n, with which a complete graph of any size agrees within tens."""
    n = 100_001
    values = np.random.default_rng(4).normal(size=n)
    result = midst.median(values, graph=graphs.complete(n), method=Consensus(c=1e-4), rng=1, record="none")
    assert result.value == np.median(values)
    assert result.certified
    assert result.iterations < 200
    assert (result.nodes, result.edges) == (n, n * (n - 1) // 2)


def test_command_line():
    arguments = [
        "--graph",
        "complete",
        "--nodes",
        "20000",
        "--method",
        "consensus",
        "--c",
        "5e-4",
        "--seed",
        "3",
        "--json",
    ]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    report = json.loads(done.stdout)
    assert (report["certified"], report["edges"]) == (True, 20_000 * 19_999 // 2)
    assert report["error"] == 0
    small = ["--graph", "complete:listed=false", "--nodes", "9", "--method", "consensus", "--seed", "3", "--json"]
    assert json.loads(CliRunner().invoke(command, small, catch_exceptions=False).stdout)["error"] == 0


def test_runs_of_an_ensemble():
    """Run k is `solve` with child k, also where z(0) is drawn as sums."""
    values = RNG.normal(size=(30, 4))
    own = [Problem(graphs.complete(30, listed=False), column) for column in values.T]
    for runs in (Problem(BARE, values), own):
        method = Consensus(stop=Certified())
        result = solve_ensemble(runs, method, rng=[*range(4)])
        for k in range(4):
            alone = solve(Problem(BARE, values[:, k]), method, rng=k)
            np.testing.assert_allclose(result.x[k], alone.trace.x[-1], rtol=0, atol=1e-12)
            assert result.iterations[k] == alone.iterations
    assert not any("_listed" in vars(problem.graph) for problem in own), "no edge has been made for it"


def test_trace_without_edges(tmp_path):
    trace = solve(Problem(graphs.complete(6_000), RNG.normal(size=6_000)), FEW, rng=1).trace
    trace.save(tmp_path / "run.npz")
    again = load_trace(tmp_path / "run.npz")
    assert again.graph.ends is None
    assert repr(again.graph) == repr(trace.graph)
    np.testing.assert_array_equal(again.x, trace.x)
    assert (tmp_path / "run.npz").stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "edges"}, "drawn as sums, and not on its edges; try engine arrays, or list its edges"),
        ({"engine": "reference"}, "drawn as sums, and not on its edges"),
        ({"record": "all"}, "record all keeps z.0. of every edge, .* try record auto, or list its edges"),
        ({"record": "audit"}, "record audit keeps z.0. of every edge"),
        ({"method": Consensus(z0=np.zeros(869))}, r"z0 has shape \(869,\); expected \(870,\)"),
    ],
)
def test_what_needs_edges_is_refused(options, words):
    with pytest.raises(InputError, match=words) as caught:
        solve(Problem(BARE, RNG.normal(size=30)), **{"method": "consensus", "rng": 1} | options)
    assert "\n" not in str(caught.value)


def test_audits():
    """One that needs no z(0) of an edge is as good as ever; the others say what they miss, in a line."""
    values = np.random.default_rng(7).normal(size=30)  # the same in whichever order tests are run
    result = solve(Problem(BARE, values), FEW, rng=1)
    for init in ("clear", "sealed"):
        leakage = audit(result.trace, midst.Adversary(init=init), midst.priors.Normal(0, 1))
        assert 0 < leakage.exposed_count <= len(result.exposed)  # nobody sees who was inside in the last one
    with pytest.raises(InputError, match=r"knows some of z\(0\), which this trace has not; run with record audit"):
        audit(result.trace, midst.Adversary(corrupt=[1], eavesdrops=False), midst.priors.Normal(0, 1))
