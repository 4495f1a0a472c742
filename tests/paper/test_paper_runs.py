"""Experiments by the hundred: the same for any number of workers, paired by draw, exposure told by the branch."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from algorithm1 import algorithm_1

from midst import graphs
from midst.engines.ensemble import NEVER
from midst.errors import InputError
from midst.solving import solve
from midst.studies.paper.beyond import observe_limits
from midst.studies.paper.choices import FAR, NEAR, perform_drawn
from midst.studies.paper.runs import (
    Experiment,
    Outcome,
    Run,
    StudySettings,
    draw,
    measure,
    measure_outcomes,
    perform,
)

PLAN = {NEAR: 5, replace(FAR, offset=0.1): 3, Experiment(n=6, graph="ring", c=3.0): 4}


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def noise(run: Run, experiment: Experiment) -> Any:
    """What is random in z(0)."""
    assert run.result.trace.z0 is not None
    return (run.result.trace.z0 - experiment.mu * run.truth.graph.sign) / experiment.sigma


def test_any_number_of_workers_gives_the_same_numbers() -> None:
    alone, other = StudySettings(seed=3, draws=2), StudySettings(seed=3, draws=2, workers=2)
    before = dict(os.environ)
    one, two = [measure_outcomes(PLAN, settings) for settings in (alone, other)]
    assert dict(os.environ) == before
    assert list(one) == list(two) == list(PLAN)
    for experiment, runs in PLAN.items():
        assert len(one[experiment]) == 3  # the draw that is shown, and both
        for a, b in zip(one[experiment], two[experiment], strict=True):
            assert a.exposed.shape == (runs, experiment.n)
            assert same(a, b)


def test_more_runs_leave_the_first_as_they_were() -> None:
    settings = StudySettings(draws=2)
    few, many = (measure_outcomes({NEAR: runs}, settings)[NEAR] for runs in (2, 4))
    for one, other in zip(few, many, strict=True):
        assert same(one._replace(error=0), Outcome(*(array[:2] for array in other))._replace(error=0))
        assert one.error == pytest.approx(other.error[:2], abs=1e-12)


def test_all_runs_of_a_draw_have_its_data_and_its_graph_and_a_z0_of_their_own() -> None:
    settings = StudySettings(draws=3)
    shown, *draws = measure_outcomes({NEAR: 6}, settings, shown=2)[NEAR]
    assert same(shown, draws[2])
    for found in (shown, *draws):
        assert len(np.unique(found.side, axis=0)) == 1
        assert len(set(found.iterations.tolist())) > 1
    assert len({tuple(found.side[0]) for found in draws}) > 1


def test_another_seed_gives_other_numbers() -> None:
    one, other = (measure_outcomes({NEAR: 3}, StudySettings(seed=seed))[NEAR][0] for seed in (1, 2))
    assert not same(one, other)


@pytest.mark.parametrize("experiment", PLAN)
def test_an_ensemble_has_the_runs_that_are_performed(experiment: Experiment) -> None:
    _, *found = measure_outcomes({experiment: 2}, StudySettings(draws=2))[experiment]
    for k, outcome in enumerate(found):
        truth, drawn = draw(experiment, 1, k)
        for run in range(2):
            problem = experiment.blur(truth, drawn.values)
            result = solve(problem, experiment.method(), rng=drawn.z0, record="all")
            if run == 0:
                assert np.array_equal(perform(experiment, 1, k, record="all").result.trace.x, result.trace.x)
            inside, middle = result.trace.inside, truth.answer[0]
            first = np.where(inside.any(axis=0), inside.argmax(axis=0), NEVER)
            assert np.array_equal(outcome.first_inside[run], first)
            if experiment.n % 2:
                assert np.array_equal(outcome.side[run], np.sign(truth.values - middle))
                error = np.abs(result.trace.x[-1] - middle).max()
                assert outcome.error[run] == pytest.approx(error, abs=1e-12)
            assert outcome.iterations[run] == result.iterations


def test_data_and_graph_of_ones_own_are_the_same_in_every_draw() -> None:
    path = graphs.path(3)
    own = Experiment(n=3, graph="mine.txt", own_graph=path, values=(3.0, 1.0, 2.0))
    assert own.redrawn == ""
    assert len(measure_outcomes({own: 2}, StudySettings())[own]) == 1
    assert draw(own, 1, 5)[0].graph is path
    assert replace(own, values=None).redrawn == "the data"
    assert replace(NEAR, values=own.values).redrawn == "the graph"
    assert NEAR.redrawn == "the data and the graph"
    assert replace(NEAR, graph="er:p=0.5").redrawn == "the data and the graph"


def test_a_setting_of_ones_own_is_that_alone() -> None:
    assert StudySettings(runs=8).plan(NEAR, (FAR,)) == {NEAR: 8, FAR: 2}
    own = StudySettings(runs=8, own={"c": 3.0, "theta": 0.6})
    assert own.plan(NEAR, (FAR,)) == {replace(NEAR, c=3.0, theta=0.6): 8}
    assert own.setting == "Own setting: c = 3, θ = 0.6; θ = ½ in Algorithm 1. "
    assert StudySettings().setting == ""


@pytest.mark.parametrize("change", [{"c": 3.0}, {"mu": -10.0}, {"sigma": 5.0}, {"offset": 0.1}, {"graph": "ring"}])
def test_what_an_experiment_changes_leaves_the_draws_as_they_are(change: dict[str, Any]) -> None:
    one, other = perform(NEAR, 1, 0, record="all"), perform(replace(NEAR, **change), 1, 0, record="all")
    assert np.array_equal(one.truth.values, other.truth.values)
    if "graph" not in change:
        assert np.array_equal(one.truth.graph.source, other.truth.graph.source)
        assert np.allclose(noise(one, NEAR), noise(other, replace(NEAR, **change)), atol=1e-12)


def test_a_run_is_algorithm_1() -> None:
    run = perform(NEAR, 1, 0, record="all")
    trace = run.result.trace
    x, branch = algorithm_1(run.truth.graph, run.truth.values, NEAR.c, trace.z0, trace.iterations)
    inside = branch == 0
    assert np.allclose(trace.x, x, atol=1e-12)
    assert np.array_equal(trace.inside, inside)


def test_shares_over_time_end_where_the_shares_are() -> None:
    found = measure_outcomes({NEAR: 6}, StudySettings(draws=2))[NEAR][0]
    over_time = found.secure_over_time(np.arange(found.iterations.max()))
    assert np.allclose(over_time[:, -1], found.secure_share)
    assert (np.diff(over_time, axis=1) <= 0).all()
    assert np.allclose(
        5 * found.secure_share, 2 * found.secure_share_on(-1) + found.secure_share_on(0) + 2 * found.secure_share_on(1)
    )


def test_copies_are_runs_of_their_own() -> None:
    many = perform(NEAR, 1, 0, copies=3, record="all")
    for j in range(3):
        assert np.array_equal(many.truth.values[:, j], perform(NEAR, 1, 0).truth.values)
    assert len(np.unique(many.result.trace.x[0], axis=1).T) == 3


def test_the_draw_shown_is_the_same_in_both_figures() -> None:
    near, far = (perform_drawn(each, StudySettings()) for each in (NEAR, replace(FAR, offset=0.1)))
    assert np.array_equal(near.truth.values, far.truth.values)
    assert len(near.result.exposed) == 1


@pytest.mark.parametrize(
    "wrong", [{"runs": 0}, {"runs": -3}, {"runs": 1}, {"runs": True}, {"seed": -1}, {"workers": 0}]
)
def test_settings_that_make_no_sense(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be a whole number of at least"):
        StudySettings(**wrong)


def test_an_experiment_is_named_by_what_is_different() -> None:
    assert replace(NEAR, mu=-10.0, c=0.3).apart_from(NEAR) == "c = 0.3, μ = −10"
    assert NEAR.apart_from(replace(NEAR, radius=0.6)) == "radius = the default"
    assert replace(NEAR, graph="ring").apart_from(NEAR) == "ring"
    assert NEAR.apart_from(replace(NEAR, graph="ring")) == "random geometric"
    assert NEAR.apart_from(NEAR) == ""


def test_progress_counts_every_task() -> None:
    seen: list[tuple[int, int]] = []
    settings = StudySettings(draws=2, progress=lambda done, total: seen.append((done, total)))
    found = measure(observe_limits, {replace(NEAR, n=4): 3}, settings)
    assert [{name: array.shape for name, array in each.items()} for each in found.values()] == [{"position": (3, 100)}]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    measure_outcomes({NEAR: 3, FAR: 2}, settings)
    assert seen[3:] == [(1, 2), (2, 2)]
