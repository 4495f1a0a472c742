"""What noised numbers tell, against brute force over all values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import laplace, norm, skellam

from midst import InputError, Problem, graphs
from midst.baselines.curator import most_bits, run_curator
from midst.baselines.grid import make_grid
from midst.baselines.joint_noise import likelihood_of_totals, run_joint_noise
from midst.baselines.local_noise import likelihood, run_local_noise
from midst.dp import GaussianNoise, JointNoise, LaplaceNoise, information
from midst.privacy.priors import Normal, Uniform

SMALL = make_grid(Normal(2, 1), 0.0, 4.0, 1.0)


def make_problem(n, seed, **more):
    values = np.round(np.random.default_rng(seed).normal(50, 15, n).clip(0, 100), 2)
    return Problem(graphs.ring(n), values, bounds=(0, 100), **more)


@given(st.floats(-10, 10), st.sampled_from((LaplaceNoise(1.0, (0, 4)), GaussianNoise(1.0, 1e-5, (0, 4)))))
def test_the_posterior_of_local_noise(number, mechanism):
    kind = (
        laplace(scale=mechanism.noise_std / np.sqrt(2))
        if isinstance(mechanism, LaplaceNoise)
        else norm(scale=mechanism.noise_std)
    )
    after = SMALL.mass * kind.pdf(number - SMALL.points)
    after /= after.sum()
    wanted = np.sum(after * np.log2(after / SMALL.mass))
    assert SMALL.bits(likelihood(mechanism, number - SMALL.points)) == pytest.approx(wanted, abs=1e-9)


def test_local_noise_tells_in_the_mean_what_theory_says():
    mechanism = LaplaceNoise(20.0, (0, 100))
    grid = make_grid(Normal(50, 15), 0.0, 100.0, 0.1)
    outcome = run_local_noise(make_problem(501, 1), grid, mechanism, np.random.default_rng(2))
    assert outcome.bits == pytest.approx(information(mechanism, 15), rel=0.1)
    assert (outcome.exposed, outcome.why) == (0, None)
    assert 0 <= outcome.answers <= 100


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(st.sampled_from((0.0, 1.0, 2.0, 3.0)), st.lists(st.integers(-3, 6), min_size=1, max_size=2)),
    st.integers(2, 4),
    st.sampled_from((0.5, 2.0, 10.0)),
)
def test_the_posterior_of_totals_with_noise(totals, n, variance):
    """Against all values that the others can have."""
    pmf = {k: skellam.pmf(k, variance / 2, variance / 2) for k in range(-9, 10)}
    wanted = np.zeros(5)
    for own in range(5):
        for others in product(range(5), repeat=n - 1):
            chance = np.prod(SMALL.mass[list(others)])
            for threshold, told in totals.items():
                count = sum(value <= threshold for value in (own, *others))
                chance *= np.prod([pmf[total - count] for total in told])
            wanted[own] += chance
    found = likelihood_of_totals(SMALL, n, totals, variance)
    assert found / found.max() == pytest.approx(wanted / wanted.max(), rel=1e-6)


def test_joint_noise_gives_away_less_than_it_promises():
    grid = make_grid(Normal(50, 15), 0.0, 100.0, 0.01)
    outcome = run_joint_noise(
        make_problem(301, 5, resolution="0.01"), grid, JointNoise(1.0, 1e-6), np.random.default_rng(1)
    )
    assert 0 < outcome.bits < most_bits(1.0)
    assert outcome.exposed == 0
    assert outcome.rounds == 16 * 150  # of a diameter each: 14 probes, keys and signatures


def test_joint_noise_refuses_too_few():
    grid = make_grid(Normal(50, 15), 0.0, 100.0, 0.01)
    with pytest.raises(InputError, match="values or more"):
        run_joint_noise(make_problem(5, 5, resolution="0.01"), grid, JointNoise(1.0, 1e-6), np.random.default_rng(1))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
def test_the_most_that_an_epsilon_allows(epsilon):
    """By two values of r a factor e^ε apart, and their best chances; and never more by any others."""
    rng = np.random.default_rng(1)

    def bits(chances, ratio):
        r = ratio / (chances @ ratio)
        return chances @ (r * np.log2(r))

    def two(p):
        return -bits(np.array([p, 1 - p]), np.array([1.0, np.exp(epsilon)]))

    best = minimize_scalar(two, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12})
    assert most_bits(epsilon) == pytest.approx(-best.fun, rel=1e-4)
    for _ in range(100):
        assert bits(rng.dirichlet(np.ones(6)), np.exp(rng.uniform(0, epsilon, 6))) <= most_bits(epsilon)


def test_a_curator_answers_near_the_median():
    pytest.importorskip("opendp")
    problem = make_problem(501, 3)
    outcome = run_curator(problem, make_grid(Uniform(0, 100), 0.0, 100.0, 0.01), 5.0)
    assert problem.distance(outcome.answers) < 5
    assert (outcome.rounds, outcome.exposed, outcome.bits) == (2, 0, None)
    assert "by epsilon" in outcome.why
