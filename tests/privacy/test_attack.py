"""The attack kit against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import midst
from midst import graphs
from midst.privacy.adversaries import Adversary
from midst.privacy.attack import reconstruct
from midst.privacy.priors import Normal
from midst.privacy.views import view

SEALED = Adversary(init="sealed")


def solve(seed, sigma=1.0, n=7, record="all", iterations=200):
    values = np.random.default_rng([seed, 5]).normal(size=n)
    problem = midst.Problem(graphs.complete(n), values)
    trace = midst.solve(
        problem, midst.Consensus(c=1.0, mu=0.0, sigma=sigma, stop=midst.After(iterations)), rng=seed, record=record
    ).trace
    return values, trace


def test_estimates_beat_the_prior():
    """The mean error is below that of guessing 0, which is E|S| = 0.80; more so for what is better seen."""
    errors = {"prior": [], "sealed": [], "clear": []}
    for seed in range(25):
        values, trace = solve(seed)
        errors["prior"].append(np.abs(values).mean())
        for name, adversary in (("sealed", SEALED), ("clear", Adversary())):
            errors[name].append(np.abs(reconstruct(view(trace, adversary)).estimate - values).mean())
    mean = {name: np.mean(each) for name, each in errors.items()}
    assert mean["clear"] < mean["sealed"] < mean["prior"]
    assert mean["clear"] < 0.5 * mean["prior"]


def test_certainty_is_calibrated():
    said, was = [], []
    for seed in range(60):
        values, trace = solve(seed, n=5, iterations=100)
        try:
            found = reconstruct(view(trace, SEALED), tolerance=0.5)
        except midst.InputError:
            continue
        said += found.certainty.tolist()
        was += (np.abs(found.estimate - values) <= 0.5).tolist()
    said, was = np.array(said), np.array(was)
    spread = np.sqrt((said * (1 - said)).sum()) / len(said)
    assert abs(said.mean() - was.mean()) < 4 * spread + 1e-3


def test_how_each_estimate_was_had():
    values, trace = solve(3)
    clear = reconstruct(view(trace, Adversary()))
    assert set(clear.how) == {"plateau", "bounds"}
    sealed = reconstruct(view(trace, SEALED))
    assert set(sealed.how) <= {"plateau", "bounds", "side"}
    assert "side" in sealed.how
    passive = reconstruct(view(trace, Adversary((0,), eavesdrops=False)))
    assert passive.how[0] == ""
    assert np.isnan(passive.estimate[0])
    assert set(passive.how[1:]) <= {"plateau", "prior"}
    np.testing.assert_array_equal(passive.estimate[passive.known], values[passive.known])
    assert "values known" in repr(sealed)
    with pytest.raises(midst.InputError, match="tolerance"):
        reconstruct(view(trace, SEALED), tolerance=0.0)


def test_without_raw_messages_the_view_s_own_reading_is_used():
    values, trace = solve(4, record="audit")
    found = reconstruct(view(trace, Adversary()), Normal(0, 1))
    assert found.known.any()
    np.testing.assert_array_equal(found.estimate[found.known], values[found.known])
