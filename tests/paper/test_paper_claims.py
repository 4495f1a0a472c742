"""Intervals that cover what they should, and verdicts that follow from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from midst.paper.choices import FAR, NEAR
from midst.paper.claims import (
    AS_DRAWN,
    Interval,
    exactly,
    geometric_mean_of,
    is_everywhere,
    is_positive,
    judge,
    mean_of,
    mean_share_of,
    over,
    share_of,
    variance_of,
)

SAMPLERS: dict[str, tuple[Callable[[Generator], Interval], float]] = {
    "mean": (lambda rng: mean_of(rng.normal(3, 2, 12)), 3.0),
    "share": (lambda rng: share_of(rng.random(40) < 0.3), 0.3),
    "variance": (lambda rng: variance_of(rng.normal(0, 2, 15)), 4.0),
    "ratio": (lambda rng: geometric_mean_of(np.exp(rng.normal(1, 0.5, 12))), np.e),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_intervals_cover_the_truth_nineteen_times_in_twenty(name: str) -> None:
    sample, truth = SAMPLERS[name]
    rng = np.random.default_rng(5)
    intervals = [sample(rng) for _ in range(2000)]
    covered = np.mean([interval.low <= truth <= interval.high for interval in intervals])
    assert 0.93 < covered < 0.97


def test_intervals_as_scipy_has_them() -> None:
    samples = np.random.default_rng(5).normal(1, 2, 9)
    t = stats.ttest_1samp(samples, 0).confidence_interval(0.95)
    assert mean_of(samples)[1:] == pytest.approx([t.low, t.high])
    for hits in (0, 1, 13, 20):
        wilson = stats.binomtest(hits, 20).proportion_ci(0.95, method="wilson")
        assert share_of(np.arange(20) < hits)[1:] == pytest.approx([wilson.low, wilson.high])


def test_an_interval_holds_its_value_and_shares_stay_shares() -> None:
    assert share_of([True] * 10).high == 1.0
    assert share_of([True] * 10).low < 0.8  # ten of ten are no proof of all
    assert mean_share_of([1.0, 1.0, 0.9]) == (pytest.approx(2.9 / 3), pytest.approx(0.823, abs=1e-3), 1.0)
    assert exactly(2) == (2.0, 2.0, 2.0)


def test_a_claim_may_hold_as_drawn_and_fail_in_its_range() -> None:
    claim = judge("It grows.", {"as drawn": Interval(2, 1, 3), "c = 3": Interval(1, -1, 3)}, is_positive)
    assert (claim.value, claim.low, claim.high, claim.holds) == (2, 1, 3, True)
    assert claim.failing == ("c = 3",)
    assert not judge("It grows.", {"as drawn": Interval(1, 0, 2)}, is_positive).holds
    assert not judge("All do.", {"as drawn": share_of([True, False])}, is_everywhere).holds


def test_experiments_are_named_after_the_first() -> None:
    assert over({NEAR: 1.0, FAR: 2.0}, exactly) == {AS_DRAWN: exactly(1), "μ = −10, σ = 1": exactly(2)}
