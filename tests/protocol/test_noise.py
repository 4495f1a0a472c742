"""Shares of noise: the distribution to 30 digits and by chi-square, their sums, and that a restart draws the same."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import chi2

from midst import InputError
from midst.protocol.noise import MOST_SHARE, _thresholds, add_noise, noise_bytes, share_of, skellam

VARIANCES = [Fraction(1, 9), Fraction(7, 3), Fraction(999, 4), Fraction(999, 4) / 13]
DRAWS = 20_000


def draws(variance, purpose, count=DRAWS):
    draw = noise_bytes(b"seed", purpose, [])
    return np.array([skellam(variance, draw) for _ in range(count)])


def check_distribution(numbers, variance):
    """Mean, variance and a chi-square test of cells that are likely enough."""
    variance = float(variance)
    assert abs(np.mean(numbers)) < 4 * sqrt(variance / len(numbers))
    # the fourth central moment is 3v² + v
    assert abs(np.var(numbers) - variance) < 4 * sqrt((2 * variance**2 + variance) / len(numbers))
    reach = int(3 * sqrt(variance)) + 1
    ends = np.unique(np.linspace(-reach, reach, min(2 * reach + 1, 25)).astype(int))
    far = int(12 * sqrt(variance)) + 60
    chances = ive(np.abs(np.arange(-far, far + 1)), variance)
    cells = np.searchsorted(ends, np.arange(-far, far + 1))
    expected = np.bincount(cells, chances) * len(numbers)
    seen = np.bincount(np.searchsorted(ends, numbers), minlength=len(expected))
    likely = expected > 5
    score = np.sum((seen[likely] - expected[likely]) ** 2 / expected[likely])
    assert chi2.sf(score, np.sum(likely) - 1) > 1e-3


@pytest.mark.parametrize("variance", VARIANCES)
def test_draws_are_skellam_s(variance):
    check_distribution(draws(variance, b"draws"), variance)


@pytest.mark.parametrize("others", [1, 4])
def test_shares_add_up_to_the_noise_of_the_total(others):
    variance = Fraction(7, 2)
    share = share_of(variance, others + 3, 2)
    numbers = sum(draws(share, bytes([k])) for k in range(others + 1))  # those who do not collude
    check_distribution(numbers, variance)


def test_a_wrong_distribution_is_seen():
    with pytest.raises(AssertionError):
        check_distribution(draws(Fraction(7, 3), b"draws"), Fraction(7, 3) * Fraction(11, 10))


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(1, 10**6), Fraction(10**4)])
def test_the_chances_are_right_to_a_hundred_bits(variance):
    thresholds = _thresholds(variance)
    with mpmath.workdps(60):
        v = mpmath.mpf(variance.numerator) / variance.denominator
        scale, off, reached = mpmath.exp(-v), mpmath.mpf(0), 0
        for k, threshold in enumerate(thresholds[:400]):
            exact = (2 if k else 1) * scale * mpmath.besseli(k, v)
            off += abs(exact - mpmath.mpf(threshold - reached) / 2**128)
            reached = threshold
        assert off / 2 < mpmath.mpf(2) ** -105
    assert thresholds[-1] == 2**128
    assert list(thresholds) == sorted(thresholds)


def test_without_variance_there_is_no_noise():
    assert set(draws(Fraction(0), b"none", 100)) == {0}


def test_a_draw_takes_so_many_bytes_whatever_comes_out():
    asked = []

    def draw(count):
        asked.append(count)
        return bytes([255] * count)

    assert skellam(Fraction(100), draw) < -100  # the farthest there is
    assert skellam(Fraction(100), lambda count: bytes(count)) == 0
    assert asked == [17]


@given(st.integers(1, 200), st.binary(max_size=8), st.lists(st.integers(0, 2**64 - 1), max_size=5))
def test_who_is_started_again_draws_the_same(count, context, answers):
    first, again = (noise_bytes(b"seed", context, answers) for _ in range(2))
    told = [first(count), first(count)]
    assert told == [again(count), again(count)]
    assert [len(each) for each in told] == [count, count]
    if count > 8:
        assert told[0] != told[1]
        assert told[0] != noise_bytes(b"seed", context, [*answers, 0])(count)
        assert told[0] != noise_bytes(b"seed", context + b"x", answers)(count)
        assert told[0] != noise_bytes(b"seeds", context, answers)(count)


def test_noise_is_added_to_every_answer_and_repeats():
    answers = [5] * 2000
    noised = add_noise(answers, Fraction(9), b"seed", b"context")
    assert noised == add_noise(answers, Fraction(9), b"seed", b"context")
    check_distribution(np.subtract(noised, answers), 9)
    assert add_noise(answers, Fraction(0), b"seed", b"context") == answers


@given(st.integers(1, 10**6), st.integers(1, 100), st.data())
def test_those_who_do_not_collude_have_all_the_noise(quarters, participants, data):
    colluders = data.draw(st.integers(0, participants - 1))
    share = share_of(Fraction(quarters, 4), participants, colluders)
    assert share * (participants - colluders) == Fraction(quarters, 4)


@pytest.mark.parametrize(("variance", "participants", "colluders"), [(1, 3, 3), (1, 3, -1), (MOST_SHARE + 1, 3, 2)])
def test_what_nobody_could_add_is_refused(variance, participants, colluders):
    with pytest.raises(InputError, match=r"colluders must be from 0 to 2|beyond what can be drawn"):
        share_of(Fraction(variance), participants, colluders)


def test_no_table_is_begun_for_what_is_too_large():
    for variance in (Fraction(-1), Fraction(MOST_SHARE + 1)):
        with pytest.raises(ValueError, match="variance must be from 0"):
            skellam(variance, bytes)
