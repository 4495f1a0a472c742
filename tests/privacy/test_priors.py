"""Masses against SciPy's and mpmath-free closed forms, in the middle, in far tails and over narrow intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from midst import InputError
from midst.privacy.priors import (
    Density,
    Laplace,
    Normal,
    Samples,
    Uniform,
    cut_normal,
    log_mass_of_one,
    log_normal_mass,
    parse_prior,
    prior_of_each,
)

GRID = np.linspace(-6, 6, 4001)
PRIORS = {
    "normal": (Normal(1, 2), stats.norm(1, 2)),
    "uniform": (Uniform(-1, 3), stats.uniform(-1, 4)),
    "laplace": (Laplace(0.5, 2), stats.laplace(0.5, 2)),
    "density": (Density(GRID, np.exp(-0.5 * GRID**2)), stats.norm(0, 1)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_masses_and_densities(name):
    prior, reference = PRIORS[name]
    close = 1e-5 if name == "density" else 1e-12
    for lower, upper in ((-0.5, 0.25), (-np.inf, 0.3), (1.5, np.inf), (0.4, 0.6), (2.0, 2.9)):
        assert math.exp(prior.log_mass(lower, upper)) == pytest.approx(
            reference.cdf(upper) - reference.cdf(lower), rel=close
        )
    for value in (-0.7, 0.1, 1.3):
        assert math.exp(prior.log_density(value)) == pytest.approx(reference.pdf(value), rel=1e-4)
    for level in (0.01, 0.3, 0.5, 0.9):
        assert prior.quantile(level) == pytest.approx(reference.ppf(level), abs=1e-4)
    assert prior.log_mass(1.0, 1.0) == -math.inf
    assert prior.log_mass(2.0, 1.0) == -math.inf


def test_far_tails_have_a_mass():
    assert Normal().log_mass(40, math.inf) == pytest.approx(stats.norm.logsf(40))
    assert Normal().log_mass(-math.inf, -40) == pytest.approx(stats.norm.logsf(40))
    assert Normal().log_mass(30, 31) == pytest.approx(stats.norm.logsf(30) + math.log1p(-math.exp(-30.5)), rel=1e-9)
    assert Laplace().log_mass(1000, math.inf) == pytest.approx(-1000 - math.log(2))
    assert Laplace().log_mass(-2000, -1000) == pytest.approx(-1000 - math.log(2))
    assert Samples(np.arange(10.0)).log_mass(100, math.inf) < -500


def test_narrow_intervals_are_density_times_width():
    for prior in (Normal(), Laplace(), Samples(np.linspace(-2, 2, 50))):
        for at in (0.0, 0.3, -2.5, 8.0):
            for width in (1e-3, 1e-6, 1e-12):
                mass = prior.log_mass(at, at + width)
                assert mass == pytest.approx(prior.log_density(at + width / 2) + math.log(width), abs=2e-3)


def test_samples_smooth_what_they_are_given():
    samples = np.random.default_rng(0).normal(3, 2, 4000)
    prior = Samples(samples)
    assert prior.scale == pytest.approx(2, rel=0.05)
    assert math.exp(prior.log_mass(1, 5)) == pytest.approx(0.683, abs=0.03)
    assert prior.quantile(0.5) == pytest.approx(3, abs=0.15)
    assert math.exp(prior.log_mass(-math.inf, math.inf)) == pytest.approx(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Normal(0, 0),
        lambda: Normal(math.nan, 1),
        lambda: Normal("a", 1),
        lambda: Uniform(2, 1),
        lambda: Laplace(0, -1),
        lambda: Density([0, 1], [0, 0]),
        lambda: Density([1, 0], [1, 1]),
        lambda: Density([0, 1, 2], [1, 1]),
        lambda: Density([0, 1], [1, -1]),
        lambda: Density(["a"], [1]),
        lambda: Samples([1.0]),
        lambda: Samples([1.0, 1.0]),
        lambda: Samples(["x", "y"]),
        lambda: prior_of_each([Normal()], 2),
        lambda: prior_of_each(3, 2),
        lambda: parse_prior("normal"),
        lambda: parse_prior("normal:1"),
        lambda: parse_prior("normal:0,x"),
        lambda: parse_prior("cauchy:0,1"),
        lambda: parse_prior("uniform:1,0"),
    ],
)
def test_bad_priors_are_refused_in_one_line(make):
    with pytest.raises(InputError) as refusal:
        make()
    assert "\n" not in str(refusal.value)


def test_parsing():
    assert parse_prior("normal:0,1") == Normal(0, 1)
    assert parse_prior(" uniform:-1,2.5 ") == Uniform(-1, 2.5)
    assert parse_prior("laplace:1,2") == Laplace(1, 2)
    assert prior_of_each([Normal(), Uniform()], 2) == [Normal(), Uniform()]


ENDS = st.one_of(st.floats(-60, 60), st.floats(allow_nan=False), st.sampled_from([-math.inf, math.inf, 0.0]))


@given(ENDS, st.one_of(ENDS, st.floats(1e-14, 1e-3)), st.booleans())
def test_the_mass_of_one_interval_is_that_of_many(a, b, near):
    b = a + b if near else b
    np.testing.assert_array_equal(log_mass_of_one(a, b), log_normal_mass(np.array(a), np.array(b)))


@given(st.floats(-30, 30), st.floats(1e-3, 60), st.floats(0.001, 0.999))
def test_a_cut_normal_has_its_share_below_the_point(a, width, share):
    mass, point = (float(each) for each in cut_normal(np.array(a), np.array(a + width), np.array(share)))
    assert mass == log_mass_of_one(a, a + width)
    assert a <= point <= a + width
    # in a tail a step of the last digit of the point is a share too
    slack = 1e-6 + 4e-15 * (1 + abs(point)) * (1 + abs(point))
    assert math.exp(log_mass_of_one(a, point) - mass) == pytest.approx(share, abs=slack)
