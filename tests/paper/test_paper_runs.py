"""Experiments by the hundred: the same for any number of workers, paired by draw, exposure told by the branch."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from algorithm1 import algorithm_1

from midst.engines.ensemble import NEVER
from midst.errors import InputError
from midst.studies.paper.choices import FAR, NEAR, perform_drawn
from midst.studies.paper.runs import (
    Experiment,
    Outcome,
    Run,
    StudySettings,
    measure,
    measure_outcomes,
    observe_plateaus,
    perform,
    plateaus,
)

PLAN = {NEAR: 5, replace(FAR, offset=0.1): 3, Experiment(n=6, graph="ring", c=3.0): 4}


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def noise(run: Run, experiment: Experiment) -> Any:
    """What is random in z(0)."""
    assert run.result.trace.z0 is not None
    return (run.result.trace.z0 - experiment.mu * run.truth.graph.sign) / experiment.sigma


def test_any_number_of_workers_gives_the_same_numbers() -> None:
    alone, other = StudySettings(seed=3), StudySettings(seed=3, workers=2)
    before = dict(os.environ)
    outcomes = [measure_outcomes(PLAN, settings) for settings in (alone, other)]
    caught = [measure(observe_plateaus, PLAN, settings) for settings in (alone, other)]
    assert dict(os.environ) == before
    assert all(list(found) == list(PLAN) for found in (*outcomes, *caught))
    for experiment, runs in PLAN.items():
        assert outcomes[0][experiment].exposed.shape == caught[0][experiment].shift.shape == (runs, experiment.n)
        assert same(outcomes[0][experiment], outcomes[1][experiment])
        assert same(caught[0][experiment], caught[1][experiment])


def test_more_runs_leave_the_first_as_they_were() -> None:
    few, many = (measure_outcomes({NEAR: runs}, StudySettings())[NEAR] for runs in (2, 4))
    assert same(few._replace(error=0), Outcome(*(array[:2] for array in many))._replace(error=0))
    assert few.error == pytest.approx(many.error[:2], abs=1e-12)


def test_another_seed_gives_other_numbers() -> None:
    one, other = (measure_outcomes({NEAR: 3}, StudySettings(seed=seed))[NEAR] for seed in (1, 2))
    assert not same(one, other)


@pytest.mark.parametrize("experiment", PLAN)
def test_an_ensemble_has_the_runs_that_are_performed(experiment: Experiment) -> None:
    found = measure_outcomes({experiment: 4}, StudySettings())[experiment]
    caught = measure(observe_plateaus, {experiment: 4}, StudySettings())[experiment]
    assert np.array_equal(found.exposed, ~np.isnan(caught.shift))
    for k in range(4):
        truth, problem, result = perform(experiment, 1, k)
        middle = truth.answer[0]
        assert np.array_equal(found.first_inside[k], plateaus(result.trace)[0])
        assert np.array_equal(found.side[k], np.sign(truth.values - middle))
        assert found.iterations[k] == result.iterations
        assert found.error[k] == pytest.approx(np.abs(result.trace.x[-1] - middle).max(), abs=1e-12)
        assert np.array_equal(caught.offset[k], problem.values - truth.values)


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
    first, sent = plateaus(trace)
    assert np.array_equal(first != NEVER, inside.any(axis=0))
    caught = first != NEVER
    assert np.array_equal(first[caught], inside.argmax(axis=0)[caught])
    assert np.array_equal(sent[caught], run.truth.values[caught])
    assert np.isnan(sent[~caught]).all()


def test_shares_over_time_end_where_the_shares_are() -> None:
    found = measure_outcomes({NEAR: 6}, StudySettings())[NEAR]
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
    near, far = (perform_drawn(experiment, StudySettings()) for experiment in (NEAR, replace(FAR, offset=0.1)))
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
    settings = StudySettings(progress=lambda done, total: seen.append((done, total)))
    measure(observe_plateaus, {NEAR: 3}, settings)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    measure_outcomes({NEAR: 3, FAR: 2}, settings)
    assert seen[3:] == [(1, 2), (2, 2)]
