"""The step, held against the paper's equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst.protocol.step import Terms, next_sums, next_x, next_z

finite = st.floats(-1e6, 1e6)


def median_terms(s, cd):
    s, cd = np.asarray(s, float), np.asarray(cd, float)
    return Terms(s, -np.ones_like(s), np.ones_like(s), cd, cd)


@given(finite, finite, st.floats(1e-3, 1e3))
def test_x_is_the_papers_three_way_update(s, S, cd):
    """Equation (x update) as it stands in the paper, against the clip."""
    x, branch = next_x(np.array(S), median_terms(s, cd))
    if (-1 - S) / cd > s:
        expected = (-1 - S) / cd, 1
    elif (1 - S) / cd < s:
        expected = (1 - S) / cd, -1
    else:
        expected = s, 0
    assert (float(x), int(branch)) == expected


@given(finite, finite, st.floats(1e-3, 1e3), finite, finite, st.floats(0.01, 1), st.booleans())
def test_one_number_is_an_array_of_one(s, S, cd, z, mirror, theta, smooth):
    """A float and an array of floats take the same steps, to the last bit."""
    one, many = (Terms(*map(kind, (s, -1.0, 1.0, cd, cd)), smooth=smooth) for kind in (float, np.array))
    x, branch = next_x(S, one)
    xs, branches = next_x(np.array(S), many)
    assert (x, branch) == (xs, branches)
    after = next_z(z, mirror, -1, x, cd, theta)
    assert after == next_z(np.array(z), np.array(mirror), np.array(-1.0), xs, np.array(cd), theta)
    assert [type(part) for part in (x, branch, after)] == [float, int, float]


@given(finite, finite, st.floats(1e-3, 1e3), st.floats(0, 5), st.floats(0, 5), st.floats(0, 5))
def test_x_minimises(s, S, cd, left, right, curvature):
    """No nearby x does better on f(x) + S x + ½ cd x²."""
    s, S = s / 1e3, S / 1e3
    terms = Terms(*map(np.asarray, (s, curvature * s - right, curvature * s + left, curvature + cd, cd)))
    best = float(next_x(np.array(S), terms)[0])

    def f(x):
        pinball = left * max(s - x, 0) + right * max(x - s, 0)
        return pinball + 0.5 * curvature * (x - s) ** 2 + S * x + 0.5 * cd * x * x

    slack = 1e-9 * (1 + abs(f(best)))
    for step in (1e-3, 0.1, 1.0):
        assert f(best) <= f(best + step) + slack
        assert f(best) <= f(best - step) + slack


@pytest.mark.parametrize("kind", [float, np.array])
def test_ends_of_the_interval_are_inside(kind):
    """Theorem 1's interval is closed: low = s and high = s both send s, for one number and for many."""
    for S in (-1.0, 1.0):
        x, branch = next_x(kind(S), Terms(*map(kind, (0.0, -1.0, 1.0, 1.0, 1.0))))
        assert (float(x), int(branch)) == (0.0, 0)


def test_smooth_objectives_are_on_branch_0():
    """The mean has no branches: its x tells s to whoever knows S."""
    terms = Terms(*(np.array([1.0, 2.0]),) * 5, smooth=True)
    assert next_x(np.array([5.0, -5.0]), terms)[1].tolist() == [0, 0]


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1))
def test_node_form_is_the_edge_form_summed(seed, theta):
    """next_sums is next_z added up over a node's edges, for every θ."""
    rng = np.random.default_rng(seed)
    d = 4
    A = rng.choice([-1.0, 1.0], d)
    z, mirror, xs = rng.normal(size=(3, d))
    x, c = rng.normal(), 0.7
    S, R = np.sum(A * z), np.sum(-A * mirror)
    after = np.sum(A * next_z(z, mirror, -A, xs, c, theta)), np.sum(-A * next_z(mirror, z, A, x, c, theta))
    np.testing.assert_allclose(next_sums(S, R, x, xs.sum(), c * d, c, theta), after, atol=1e-12)
