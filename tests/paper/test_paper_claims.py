"""Intervals that cover what they should, and verdicts that follow from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from scipy import stats

from midst.studies.paper.choices import FAR, NEAR
from midst.studies.paper.claims import (
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
)
from midst.studies.paper.gallery import show_measured, sort_claims, tabulate

SAMPLERS: dict[str, tuple[Callable[[Generator], Interval], float]] = {
    "mean": (lambda rng: mean_of(rng.normal(3, 2, 12)), 3.0),
    "share": (lambda rng: share_of(rng.random(40) < 0.3), 0.3),
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
    assert mean_share_of([1.0, 1.0, 0.9]) == (pytest.approx(2.9 / 3), pytest.approx(0.250, abs=1e-3), 1.0)
    assert exactly(2) == (2.0, 2.0, 2.0)


# Near the ends, where all runs easily agree


BETAS = {f"beta {a}, {b}": (lambda rng, n, a=a, b=b: rng.beta(a, b, n), a / (a + b)) for a, b in ((0.05, 1), (0.5, 20))}
NODES = {f"of 15 nodes, {p}": (lambda rng, n, p=p: rng.binomial(15, p, n) / 15, p) for p in (0.001, 0.01, 0.03)}


@pytest.mark.parametrize("n", [2, 7, 25, 100])
@pytest.mark.parametrize("name", BETAS | NODES)
def test_near_an_end_the_mean_of_shares_is_covered(name: str, n: int) -> None:
    draw, mean = (BETAS | NODES)[name]
    rng = np.random.default_rng(5)
    samples = [draw(rng, n) for _ in range(500)]
    for shares, truth in ((samples, mean), ([1 - each for each in samples], 1 - mean)):
        found = [mean_share_of(each) for each in shares]
        assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.95


def test_far_from_an_end_the_mean_of_shares_is_as_sure_as_students() -> None:
    shares = np.random.default_rng(5).normal(0.45, 0.03, 25)
    assert mean_share_of(shares) == pytest.approx(mean_of(shares), abs=0.01)


@pytest.mark.parametrize("n", [2, 7, 25, 100])
def test_near_an_end_shares_of_all_or_nothing_are_covered(n: int) -> None:
    """The worst there is: every run at one end or the other. Coverage is then a sum, and goes up and down with p."""
    hits = np.arange(n + 1)
    found = [mean_share_of(np.arange(n) < each) for each in hits]
    p = np.geomspace(1e-4, 0.1, 60)
    covers = np.array([[each.low <= chance <= each.high for each in found] for chance in p])
    coverage = (stats.binom.pmf(hits, n, p[:, None]) * covers).sum(axis=1)
    assert coverage.min() >= 0.95


@given(st.integers(2, 200), st.floats(0, 1))
def test_runs_that_agree_leave_a_width(n: int, share: float) -> None:
    found = mean_share_of([share] * n)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high - found.low > 1 / (2 * n)
    gain = 2 * share - 1
    for within, value in (((0, 1), share), ((-1, 1), gain)):
        found = mean_of([value] * n, within)
        assert within[0] <= found.low <= found.value <= found.high <= within[1]
        assert found.high - found.low == pytest.approx((within[1] - within[0]) * (1 - 0.05 ** (1 / n)))


@pytest.mark.parametrize("n", [7, 25, 100])
def test_runs_that_agree_are_covered_as_often_as_said(n: int) -> None:
    """The chance that all agree, where the mean lies just outside what is then said, is one in twenty."""
    gain = 1.001 * mean_of(np.zeros(n), (-1, 1)).high
    assert (1 - gain) ** n == pytest.approx(0.05, abs=0.002)
    assert mean_of(np.arange(n), (0, n)) == mean_of(np.arange(n))


def test_a_claim_may_hold_as_drawn_and_fail_in_its_range() -> None:
    claim = judge("It grows.", {"as drawn": [Interval(2, 1, 3)], "c = 3": [Interval(-1, -2, 1)]}, is_positive)
    assert (claim.at, claim.value, claim.low, claim.high, claim.holds) == ("as drawn", 2, 1, 3, True)
    assert claim.failing == ("c = 3",)
    assert judge("It grows.", {"as drawn": [Interval(0, -1, 2)]}, is_positive).holds is False
    assert judge("All do.", {"as drawn": [share_of([True, False])]}, is_everywhere).holds is False


def test_too_few_runs_leave_a_claim_open_and_make_it_no_failure() -> None:
    claim = judge("It grows.", {"as drawn": [Interval(1, -1, 3)], "c = 3": [Interval(1, -1, 3)]}, is_positive)
    assert (claim.holds, claim.failing) == (None, ())
    assert show_measured(claim)[0] == "unsure"


def test_other_draws_are_counted_beside_the_one_shown() -> None:
    draws = [Interval(2, 1, 3), Interval(1, -1, 3), Interval(3, 2, 4), Interval(-1, -2, 0)]
    found = judge("It grows.", {"as drawn": draws}, is_positive)
    assert (found.value, found.holds, found.draws, found.held) == (2, True, (1, 3, -1), 1)
    assert show_measured(found) == ("yes", "2", "1 to 3", "1 ± 2", "1 of 3")
    finding = judge("So much.", {"as drawn": draws})
    assert (finding.holds, finding.held) == (None, None)
    assert show_measured(finding) == ("", "2", "1 to 3", "1 ± 2", "")


def test_experiments_are_named_after_the_first() -> None:
    assert over({NEAR: [1.0], FAR: [2.0, 3.0]}, exactly) == {
        AS_DRAWN: [exactly(1)],
        "μ = −10, σ = 1": [exactly(2), exactly(3)],
    }


def test_the_papers_claims_and_ours_stand_under_headings_of_their_own() -> None:
    quoted = judge("“It grows” (how much).", {"as drawn": [Interval(2, 1, 3)]}, is_positive, place="Fig. 3")
    ours = judge("It shrinks.", {"as drawn": [Interval(2, 1, 3)]}, lambda found: found.high < 0)
    assert sort_claims([ours, quoted]) == {"the paper's claims": [quoted], "beyond the paper": [ours]}
    first, _, second = tabulate([ours, quoted]).partition("**Beyond the paper**")
    assert "| **“It grows” (how much).** (Fig. 3) | 2 | 1 to 3 | yes |" in first
    assert "| **It shrinks.** | 2 | 1 to 3 | **no** |" in second
    assert "no" not in first.split("Fig. 3")[1]
