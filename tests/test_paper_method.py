"""`method="paper"` is Algorithm 1 as written, on every engine, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import midst
from midst import After, Certified, Exact, InputError, NotCertified, Paper, Problem, Quantile, Search, graphs
from midst.cli import main
from midst.engines.arrays import edge_form
from midst.system import assemble, settle

GRAPH = graphs.rgg(7, rng=3)
VALUES = np.random.default_rng(1).normal(size=7)


def algorithm_1(
    edges: list[tuple[int, int]], s: Any, z: dict[tuple[int, int], float], c: float, iterations: int
) -> tuple[Any, dict[tuple[int, int], float]]:
    """The paper's Algorithm 1, line by line, and x of every iteration; z[i, j] is z_{i|j}."""
    neighbours = {i: [b if a == i else a for a, b in edges if i in (a, b)] for i in range(len(s))}
    sign = {(i, j): 1 if i < j else -1 for i in neighbours for j in neighbours[i]}
    x = np.zeros((iterations, len(s)))
    for t in range(iterations):
        for i in neighbours:  # equation (4)
            total, width = sum(sign[i, j] * z[i, j] for j in neighbours[i]), c * len(neighbours[i])
            low, high = (-1 - total) / width, (1 - total) / width
            x[t, i] = low if low > s[i] else high if high < s[i] else s[i]
        after = {}
        for i in neighbours:
            for j in neighbours[i]:  # equation (5)
                after[j, i] = z[j, i] / 2 + (z[i, j] + 2 * c * sign[i, j] * x[t, i]) / 2
        z = after
    return x, z


@pytest.mark.parametrize("seed", range(100))
def test_it_is_algorithm_1(seed: int) -> None:
    """Random graphs and values, odd and even: x on every engine, z on the edges."""
    rng = np.random.default_rng(seed)
    n = 2 + seed % 14
    kinds = ["path", "star", "complete", "tree", "rgg", "er"]
    graph = graphs.make(kinds[seed % 6], n, rng=seed)
    s, c = rng.normal(size=n) * 10.0 ** rng.integers(-2, 3), float(rng.uniform(0.2, 4))
    z0 = rng.normal(size=len(graph.source)) * rng.choice([0.1, 1, 10]) + rng.normal()
    pairs = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    start = dict(zip(pairs, z0.tolist(), strict=True))
    expected, z = algorithm_1([(i, j) for i, j in pairs if i < j], s.tolist(), start, c, 200)
    scale = max(1.0, np.abs(expected).max())
    for engine in ("arrays", "edges", "reference") if seed % 5 == 0 else ("arrays", "edges"):
        found = midst.solve(
            Problem(graph, s), Paper(c=c, z0=z0, stop=After(200)), engine=engine, record="all", throw=False
        )
        np.testing.assert_allclose(found.trace.x, expected, rtol=0, atol=1e-9 * scale)
        assert found.method == "paper"
        inside = expected == s
        assert set(found.exposed) >= set(np.flatnonzero(inside.any(axis=0)).tolist())
    problem = Problem(graph, s, objective=Quantile(0.5, "any"))
    steps = edge_form(assemble(problem, settle(problem, c=c), z0))
    for _ in range(201):
        next(steps)
    own = steps.gi_frame.f_locals["z"]  # z(200), which x(200) was computed from
    np.testing.assert_allclose(own, [z[pair] for pair in pairs], rtol=0, atol=1e-9 * max(1, np.abs(own).max()))


def test_an_ensemble_is_its_runs() -> None:
    problem = Problem(GRAPH, VALUES)
    found = midst.solve_ensemble(problem, "paper", runs=5, rng=3)
    assert found.runs == 5
    assert found.certified.all()
    for k in range(5):
        one = midst.solve(problem, "paper", rng=3, run=k)
        assert (one.method, one.probes) == ("paper", 0)
        assert (found.iterations[k], found.rounds[k]) == (one.iterations, one.iterations)
        np.testing.assert_allclose(found.x[k], one.trace.x[-1], rtol=0, atol=1e-12)
        assert tuple(np.flatnonzero(found.exposed[k])) == one.exposed
    several = midst.solve_ensemble([problem] * 5, Paper(), rng=3)
    np.testing.assert_array_equal(several.iterations, found.iterations)


def test_it_stops_when_it_is_proved() -> None:
    """For an even number of values any median will do, and no search follows."""
    low, high = np.sort(VALUES[:6])[2:4]
    found = midst.median(VALUES[:6], "complete", method="paper", rng=1)
    assert found.certified
    assert found.certificate is not None
    assert low - found.certificate.tolerance <= found.value <= high + found.certificate.tolerance
    assert found.objective == "median between low and high"
    assert not found.trace.probes
    assert "paper" in repr(found)
    with pytest.raises(NotCertified):
        midst.median(VALUES, GRAPH, method=Paper(limit=3), rng=1)
    after = midst.median(VALUES, GRAPH, method=Paper(c=1.0, stop=After(4)), rng=1)
    assert (after.iterations, after.certified) == (4, False)


def test_runs_is_for_one_problem() -> None:
    assert midst.solve_ensemble(Problem(GRAPH, VALUES), runs=4).value.tolist() == [np.median(VALUES)] * 4
    bounded = Problem(GRAPH, VALUES, bounds=(-9, 9))
    assert midst.solve_ensemble(bounded, "consensus", runs=4, rng=1).value.tolist() == [np.median(VALUES)] * 4
    for problems in ([bounded], Problem(GRAPH, np.column_stack([VALUES] * 2))):
        with pytest.raises(InputError, match="runs is for one problem with one number a node"):
            midst.solve_ensemble(problems, runs=4)
    with pytest.raises(InputError, match="runs must be"):
        midst.solve_ensemble(bounded, runs=0)


@pytest.mark.parametrize(
    "find",
    [
        lambda: midst.mean(VALUES, GRAPH, method="paper"),
        lambda: midst.quantile(VALUES, 0.4, GRAPH, method="paper"),
        lambda: midst.median(VALUES, GRAPH, method="paper", definition="inverted_cdf_high"),
        lambda: midst.median(VALUES, GRAPH, method="paper", weights=[2, 1, 1, 1, 1, 1, 1]),
        lambda: midst.median(VALUES, GRAPH, method="paper", resolution=0.1),
        lambda: midst.median([[1, 2], [3], [4]], "path", method="paper", pooled=True),
        lambda: midst.solve_ensemble(Problem(GRAPH, VALUES, objective=midst.Mean()), "paper", runs=2),
    ],
)
def test_it_finds_what_the_paper_finds(find: Any) -> None:
    with pytest.raises(InputError, match=r"the paper's algorithm finds the median of one number a node.*try method"):
        find()


def test_no_search_follows_it() -> None:
    with pytest.raises(InputError, match="no search follows it"):
        Paper(stop=Exact())
    with pytest.raises(InputError, match="finds no statistics; try method search"):
        midst.describe(VALUES, GRAPH, ["median"], method="paper")
    assert midst.median(VALUES, GRAPH, method=Search()).method == "search"
    assert Paper(stop=Certified(1e-3)).iteration.theta == 0.5


def test_the_commands(tmp_path: Any) -> None:
    arguments = ["--graph", "ring", "--nodes", "6", "--method", "paper", "--json"]
    for command in (["run", "--seed", "3"], ["up", "--seed-values", "3"]):
        typed = [sys.executable, "-m", "midst", *command, *arguments]
        told = json.loads(subprocess.run(typed, capture_output=True, text=True, check=True).stdout)
        assert (told["method"], told["certified"], told["probes"]) == ("paper", True, 0)
    for option in ("--theta=0.4", "--stop=certified", "--force"):
        done = CliRunner().invoke(main, ["run", *arguments, option])
        assert (done.exit_code, "is an option of --method consensus" in done.output) == (2, True)
    done = CliRunner().invoke(main, ["run", *arguments, "--arity", "3"])
    assert (done.exit_code, "is an option of --method search" in done.output) == (2, True)
    spec = tmp_path / "spec.toml"
    spec.write_text('runs = 5\nseed = 1\n[grid]\ngraph = "ring"\nn = [5, 6]\nmethod = "paper"\nc = [0.5, 1.0]\n')
    done = CliRunner().invoke(main, ["sweep", str(spec), "--out", str(tmp_path / "out"), "--workers", "1"])
    assert done.exit_code == 0, done.output


def test_the_smallest_counterexample_to_theorem_1() -> None:
    """Node 0 never sends its value, nothing but its value differs, and its neighbour sees 3 or 5: one bit."""
    sent = {}
    for s in (2.5, 6.0):
        problem = Problem(graphs.path(2), [s, 0.0])
        run = midst.solve(problem, Paper(c=1.0, z0=[-4.0, -4.0], stop=After(50)), record="all", throw=False)
        assert 0 not in run.exposed
        sent[s] = run.trace.x
    assert sent[2.5][:5].tolist() == [[3, -3], [2, 0], [2, 0], [1, 1], [1, 1]]
    assert sent[6.0][:4].tolist() == [[5, -3], [2, 0], [1, 1], [1, 1]]
    bits = midst.audit(run.trace, midst.Adversary(corrupt=(1,), eavesdrops=False), midst.priors.Uniform(0, 8)).bits
    assert bits[0] >= 1
