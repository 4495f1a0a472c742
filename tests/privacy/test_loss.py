"""The privacy loss of many runs: against closed forms, an integral, and convolutions on a finer grid; from above."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import ceil, expm1, floor, inf, log1p, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.signal import fftconvolve
from scipy.special import ndtr

from midst.dp.loss import LARGEST, composed_epsilon

epsilons = st.floats(-3, np.log10(LARGEST)).map(lambda power: 10.0**power)
deltas = st.floats(-14, -0.3).map(lambda power: 10.0**power)
runs = st.integers(1, 1000)

TIGHT = 1.003


def delta_of_one(epsilon, total):
    """δ(total) of one Laplace run."""
    if total >= epsilon:
        return 0.0
    return -expm1((total - epsilon) / 2) if total > -epsilon else -expm1(total)


def delta_of_two(first, second, total):
    """δ(total) of two Laplace runs: over the first one's loss, that of the second at what is left."""
    edges = sorted({-first, first, *np.clip([total - second, total + second], -first, first)})
    inside = sum(
        quad(lambda loss: np.exp((loss - first) / 2) / 4 * delta_of_one(second, total - loss), *ends, epsabs=1e-14)[0]
        for ends in pairwise(edges)
    )
    ends = 0.5 * delta_of_one(second, total - first) + 0.5 * np.exp(-first) * delta_of_one(second, total + first)
    return inside + ends


def laplace_cdf(epsilon):
    return lambda at: np.where(at >= epsilon, 1.0, np.where(at < -epsilon, 0.0, 0.5 * np.exp((at - epsilon) / 2)))


def gaussian_cdf(precision):
    return lambda at: ndtr((at - precision / 2) / sqrt(precision))


def on_a_grid(cdf, bottom, top, step, up):
    """First multiple of the step, and the chances of a loss that is rounded up or down to one."""
    at = np.arange(floor(bottom / step) - 1, ceil(top / step) + 2)
    return at[int(up)], np.diff(cdf(at * step))


def brute(laplace, precision, delta, step, up):
    """The ε of the plain convolution of losses on a fine grid, rounded one way."""
    parts = [on_a_grid(laplace_cdf(each), -each, each, step, up) for each in Counter(laplace).elements()]
    if precision:
        middle, reach = precision / 2, 8 * sqrt(precision)
        parts.append(on_a_grid(gaussian_cdf(precision), middle - reach, middle + reach, step, up))
    first, chances = 0, np.ones(1)
    for start, each in parts:
        first, chances = first + start, fftconvolve(chances, each)
    losses = (first + np.arange(len(chances))) * step
    low, high = 0.0, float(losses[-1])
    for _ in range(50):
        middle = (low + high) / 2
        over = losses > middle
        more = -np.expm1(middle - losses[over]) @ chances[over] > delta
        low, high = (middle, high) if more else (low, middle)
    return high


@given(epsilons, deltas)
def test_one_run_by_its_closed_form(epsilon, delta):
    exact = max(epsilon + 2 * log1p(-delta), 0.0)
    total = composed_epsilon({epsilon: 1}, 0.0, delta)
    assert exact * (1 - 1e-12) <= total <= exact + 0.003 * epsilon + delta


@given(st.floats(0.05, 8), st.floats(0.05, 8), st.floats(-8, -0.5).map(lambda power: 10.0**power))
@settings(deadline=None)
def test_two_runs_by_an_integral(first, second, delta):
    laplace = {first: 1, second: 1} if first != second else {first: 2}
    total = composed_epsilon(laplace, 0.0, delta)
    assert delta_of_two(first, second, total) <= delta * (1 + 1e-6)
    less = total - 0.004 * (first + second)
    assert less < 0 or delta_of_two(first, second, less) >= delta * (1 - 1e-6)


@given(
    st.dictionaries(st.floats(0.2, 3), st.integers(1, 3), min_size=1, max_size=2),
    st.one_of(st.just(0.0), st.floats(0.01, 4)),
    st.floats(-7, -1).map(lambda power: 10.0**power),
)
@settings(max_examples=25, deadline=None)
def test_a_few_runs_by_convolution_on_a_finer_grid(laplace, precision, delta):
    total = composed_epsilon(laplace, precision, delta)
    step = 5e-4
    assert brute(laplace, precision, delta, step, up=False) <= total + 1e-9
    assert total <= TIGHT * brute(laplace, precision, delta, step, up=True) + 0.01


@given(epsilons, deltas, runs)
@settings(max_examples=25, deadline=None)
@example(1.0, 1e-6, 9999)
def test_more_runs_and_a_smaller_delta_cost_more(epsilon, delta, count):
    total = composed_epsilon({epsilon: count}, 0.0, delta)
    assert total <= composed_epsilon({epsilon: count + 1}, 0.0, delta) * (1 + 1e-6)
    assert total <= composed_epsilon({epsilon: count}, 0.0, delta / 2) * (1 + 1e-6)
    assert total <= composed_epsilon({epsilon: count}, 1e-3 * epsilon**2, delta) * (1 + 1e-3)  # another grid
    assert total <= composed_epsilon({epsilon: count, epsilon / 2: 1}, 0.0, delta) * (1 + 1e-3)


@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-30])
def test_a_tiny_delta_is_not_lost_in_rounding(delta):
    """As many runs as it takes for the loss to be nearly normal: beside the Gaussian of that mean and variance."""
    total = composed_epsilon({1e-3: 1_000_000}, 0.0, delta)
    gaussian = composed_epsilon({1e-9: 1}, 1.0, delta)
    assert total == pytest.approx(gaussian, rel=0.01)


@pytest.mark.parametrize("epsilon", [1e-150, 1e-9, LARGEST])
@pytest.mark.parametrize("count", [1, 1000])
@pytest.mark.parametrize("precision", [0.0, 1e-300, 1e-6, 1e6])
@pytest.mark.parametrize("delta", [5e-324, 1e-6, 1 - 2**-53])
def test_the_ends_of_the_floats(epsilon, count, precision, delta):
    total = composed_epsilon({epsilon: count}, precision, delta)
    assert 0 <= total <= inf
    assert total < inf or epsilon * delta == 0  # which is too small for a float


def test_a_gaussian_that_no_grid_holds():
    assert composed_epsilon({1.0: 3}, 1e12, 1e-6) == inf
