"""Bits of a value on a grid, against sums over all its points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst.baselines.grid import make_grid
from midst.privacy.posterior import Piece, Posterior
from midst.privacy.priors import Normal, Uniform, Within

PRIORS = (Uniform(0, 2), Normal(1, 0.5), Normal(5, 0.3))
ENDS = st.floats(-0.5, 2.5)


@given(st.sampled_from(PRIORS), ENDS, ENDS)
def test_bounds_tell_what_they_leave(prior, one, other):
    grid = make_grid(prior, 0.0, 2.0, 0.1)
    low, high = sorted((one, other))
    inside = (grid.points > low) & (grid.points < high)
    if not inside.any():
        return
    (bits,), (single,) = grid.bits_between(np.array([low]), np.array([high]))
    assert bits == pytest.approx(grid.bits(inside.astype(float)), rel=1e-6, abs=1e-9)
    assert single == (inside.sum() == 1)


@given(st.integers(0, 20), st.sampled_from(PRIORS))
def test_a_value_that_is_told_tells_its_mass(place, prior):
    grid = make_grid(prior, 0.0, 2.0, 0.1)
    (bits,) = grid.bits_of_values(grid.points[[place]])
    assert bits == pytest.approx(-np.log2(grid.mass[place]))
    assert bits == pytest.approx(grid.bits(np.eye(21)[place]))


@given(st.lists(st.floats(1e-6, 1), min_size=21, max_size=21))
def test_bits_are_those_of_bayes(likelihood):
    grid = make_grid(Normal(1, 0.5), 0.0, 2.0, 0.1)
    after = grid.mass * np.array(likelihood)
    after /= after.sum()
    assert grid.bits(np.array(likelihood)) == pytest.approx(np.sum(after * np.log2(after / grid.mass)), abs=1e-12)


def test_masses_are_those_of_the_audit():
    """A value that is told is worth as many bits here as there."""
    prior = Within(Normal(50, 15), 0, 100)
    grid = make_grid(prior, 0.0, 100.0, 0.01)
    assert grid.mass.sum() == pytest.approx(1)
    for value in (0.01, 12.34, 50.0, 99.99):
        told = Posterior(prior, (Piece(1.0, value, value),)).bits(0.01)
        assert grid.bits_of_values(np.array([value]))[0] == pytest.approx(told, rel=1e-6)
