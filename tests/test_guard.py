"""The guard: exact as before, the same in every engine, and far fewer nodes near their own value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import problems

import midst
from midst import Guard, InputError, Problem, Quantile, graphs, solve
from midst.update import Terms, next_x, step_aside

QUANTILES = st.sampled_from([Quantile(0.5, "low"), Quantile(0.9, "high"), Quantile(0)])
PAPER = {"c": 1.0, "mu": -10.0, "sigma": 1.0}


@settings(max_examples=40)
@given(problems(max_nodes=20, objectives=QUANTILES), st.integers(0, 2**32 - 1))
def test_every_engine_guards_alike(problem, seed):
    runs = [
        solve(problem, rng=seed, guard=True, engine=engine, iterations=60, record="all").trace
        for engine in ("arrays", "edges", "reference")
    ]
    size = max(np.abs(problem.values).max(), np.abs(runs[0].x).max())
    for run in runs[1:]:
        np.testing.assert_allclose(run.x, runs[0].x, rtol=0, atol=1e-11 * size)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(("count", "certified")))
def test_exact_as_before(seed, stop):
    graph = graphs.rgg(15, rng=seed)
    values = np.random.default_rng(seed).normal(size=15)
    result = solve(Problem(graph, values, scale=1.0), rng=seed, guard=True, stop=stop, **PAPER)
    assert result.certified
    assert result.error <= (0 if stop == "count" else 1e-6)


def test_proposing_still_works_and_is_what_exposes():
    """A guarded node knows that it is inside; whoever's value was counted has told it to everybody."""
    values = np.random.default_rng(3).normal(size=15)
    result = midst.median(values, "rgg", rng=3, guard=True)
    proof = result.proofs[0]
    assert result.value == np.median(values)
    assert result.exposed == tuple(sorted({proof.holder, *(refused.holder for refused in proof.refused)}))
    assert proof.holder == int(np.argsort(values)[7])
    assert result.trace.parameters["guard"] == {"amplitude": 0.5, "decay": 0.9}


@pytest.mark.parametrize(("kind", "unguarded", "most"), [("ring", 7, 3.7), ("rgg", 5, 1.8), ("complete", 5, 2.0)])
def test_far_fewer_nodes_near_their_own_value(kind, unguarded, most):
    """The setting of Fig. 2: nodes but the holder of the median that ever send a number within 0.01 of theirs."""
    near = {False: [], True: []}
    rounds = {False: [], True: []}
    for seed in range(40):
        graph = graphs.make(kind, 15, rng=seed)
        values = np.random.default_rng(seed).normal(size=15)
        for guard in (False, True):
            result = solve(
                Problem(graph, values, scale=1.0), rng=seed, guard=guard, stop="certified", record="all", **PAPER
            )
            close = (np.abs(result.trace.x - values) < 0.01).any(axis=0)
            close[np.argsort(values)[7]] = False
            near[guard].append(close.sum())
            rounds[guard].append(result.iterations)
    assert np.mean(near[False]) > unguarded
    assert np.mean(near[True]) <= most
    assert np.mean(rounds[True]) <= 1.3 * np.mean(rounds[False])


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.1, 10), st.floats(0.01, 2), st.floats(0.5, 1))
def test_a_step_aside_stays_in_its_place(s, S, cd, distance, u):
    """Inside it stays strictly inside the interval, outside on the same side; never nearer to s than it says."""
    terms = Terms(*map(np.asarray, (s, -1.0, 1.0, cd, cd)))
    x, branch = next_x(np.array(S), terms)
    sent, moved = step_aside(np.array(S), terms, x, branch, np.array(distance), np.array(u))
    low, high = (-1 - S) / cd, (1 - S) / cd
    if branch == 0:
        assert moved
        assert low < sent < high
        assert abs(sent - s) == pytest.approx(u * min(distance, max(high - s, s - low) / 2))
    else:
        assert np.sign(sent - s) == branch
        assert abs(sent - s) >= abs(x - s)
        assert bool(moved) == (sent != x)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Guard(0, 0.9), "amplitude"),
        (lambda: Guard(np.inf, 0.9), "amplitude"),
        (lambda: Guard(0.5, 1), "decay"),
        (lambda: Guard(0.5, "fast"), "decay"),
        (lambda: midst.median([1.0, 2.0, 3.0], "ring", guard="on"), "guard must be"),
        (lambda: midst.mean([1.0, 2.0, 3.0], "ring", guard=True), "guard is for quantiles"),
    ],
)
def test_bad_guards(make, match):
    with pytest.raises(InputError, match=match):
        make()
