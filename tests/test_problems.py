"""Validation: refused before anything happens, in one line, without the number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst import InputError, Mean, Problem, Quantile, graphs
from midst.problems import binary_unit, check_values

SECRET = 48151.623  # a value that must never be seen in an error or a repr
RING = graphs.ring(4)
FINE = [1.0, 2.0, 3.0, 4.0]


def refused(match, *args, **kwargs):
    with pytest.raises(InputError, match=match) as caught:
        Problem(*args, **kwargs)
    message = str(caught.value)
    assert "\n" not in message
    assert "48151" not in message


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([SECRET, np.nan, 1, 2], "value of node 1 is missing or not a finite number"),
        ([SECRET, np.inf, 1, -np.inf], "values, node 1: not a finite number"),
        (np.array([SECRET, np.inf, 1, -np.inf]), "value of node 1 and 1 more is missing or not a finite number"),
        ([], "not be empty"),
        ([SECRET], "at least two nodes"),
        ([SECRET, 2, 3], "3 values for 4 nodes"),
        (["SECRET", "a", "b", "c"], "values, node 0: not a number"),
        (np.zeros((2, 2, 2)), "values: give a number, a list, an array"),
        (np.full((4, 2), np.nan), "node 0 and 3 more"),
        (5.0, "at least two nodes"),
    ],
)
def test_bad_values(values, match):
    refused(match, RING, values)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"weights": [1, 2, 3]}, r"weights have shape \(3,\)"),
        ({"weights": [1, -SECRET, 1, 1]}, "weight of node 1 is negative"),
        ({"weights": [0, 0, 0, 0]}, "all weights are zero"),
        ({"weights": [1, np.nan, 1, 1]}, "weight of node 1 is missing or not a finite"),
        ({"weights": ["a", 1, 1, 1]}, "weights, node 0: not a number"),
        ({"weights": [True, SECRET, 1, 1]}, "weights, node 0: true or false is not a number"),
        ({"weights": np.ma.array(FINE, mask=[0, 0, 1, 0])}, "weight of node 2 is missing"),
        ({"weights": [1, 1, 1, 2**53 + 1]}, "weights, node 3: a whole number that a float64 cannot hold"),
        ({"weights": [1, 2, 3, 4], "weight_unit": 0}, "weight_unit must be"),
        ({"weights": [1.25, 2, 3, 4], "weight_unit": 0.5}, "not a multiple of weight_unit"),
        ({"weights": [1e18, 2, 3, 4], "weight_unit": 1}, "more than 2\\^50 units"),
        ({"scale": 0}, "scale must be between"),
        ({"scale": -1}, "scale must be between"),
        ({"scale": np.inf}, "scale must be between"),
        ({"scale": "big"}, "scale must be a positive number"),
        ({"scale": [1, 2]}, "scale must be a positive number"),
        ({"bounds": (3, 1)}, "bounds must be finite and the lower below"),
        ({"bounds": (0, np.inf)}, "bounds must be finite"),
        ({"bounds": 5}, "bounds must be two numbers"),
        ({"bounds": (0, 3)}, "value of node 3 lies outside"),
        ({"objective": "median"}, "objective must be"),
    ],
)
def test_bad_options(options, match):
    refused(match, RING, FINE, **options)


def test_bad_graph():
    refused("graph must be a midst.Graph", "ring", FINE)
    refused("2 components", graphs.from_edges(4, [(0, 1), (2, 3)]), FINE)


@pytest.mark.parametrize(
    ("weights", "unit", "counts"),
    [
        ([1, 2, 3, 0], 1.0, [1, 2, 3, 0]),
        ([0.2, 0.3, 0.5, 1.0], 0.1, [2, 3, 5, 10]),
        ([0.25, 0.5, 0.75, 1], 0.01, [25, 50, 75, 100]),
    ],
)
def test_weights_are_counted_in_a_public_unit(weights, unit, counts):
    problem = Problem(RING, FINE, weights=weights)
    assert problem.unit_weight == unit
    assert problem.whole_weights.tolist() == counts


def test_real_weights_are_rounded_to_30_bits():
    weights = np.random.default_rng(1).random(4)
    problem = Problem(RING, FINE, weights=weights)
    np.testing.assert_allclose(problem.whole_weights * problem.unit_weight, weights, rtol=1e-8)


def test_given_unit():
    assert Problem(RING, FINE, weights=[0.5, 1, 1.5, 2], weight_unit=0.5).whole_weights.tolist() == [1, 2, 3, 4]


def test_bounds_give_scale_and_centre():
    problem = Problem(RING, FINE, bounds=(0, 8))
    assert (float(problem.scale), float(problem.centre), problem.public) == (2.0, 4.0, "given")
    assert float(Problem(RING, FINE, bounds=(0, 8), scale=5).scale) == 5


def test_estimate_is_robust_and_a_power_of_two():
    values = np.random.default_rng(1).normal(size=101) + 1000
    values[:3] = 1e9
    problem = Problem(graphs.ring(101), values)
    assert problem.public == "estimated"
    assert 0.25 <= float(problem.scale) <= 4
    assert abs(float(problem.centre) - 1000) <= float(problem.scale)
    assert float(problem.scale) == float(binary_unit(problem.scale))


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1.0, 1e300, 1.7e308])
def test_estimate_at_the_ends_of_the_range(size):
    for values in (np.full(4, size), np.array([-size, 0, size, size])):
        problem = Problem(RING, values)
        assert 1e-301 < float(problem.scale) < 1e301
        assert np.isfinite(problem.centre)


def test_values_are_the_problems_own_and_read_only():
    values = np.array(FINE)
    problem = Problem(RING, values)
    values[0] = 99
    assert problem.values[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        problem.values[0] = 5


def test_with_values_keeps_what_is_public():
    problem = Problem(RING, FINE, bounds=(0, 8), weights=[1, 2, 3, 4], objective=Quantile(0.9))
    other = problem.with_values([8, 7, 6, 5])
    assert other.answer != problem.answer
    assert other.scale == problem.scale
    assert other.whole_weights is problem.whole_weights
    with pytest.raises(InputError, match="expected"):
        problem.with_values(np.zeros((4, 2)))


def test_repr_shows_no_value():
    text = repr(Problem(RING, [SECRET, 1, 2, 3], weights=[1, 1, 1, 2]))
    assert text == "<Problem: median over <Graph ring: 4 nodes, 4 edges>, weighted>"
    assert "2 coordinates" in repr(Problem(RING, np.zeros((4, 2))))


def test_check_values_takes_what_numpy_takes():
    assert check_values(range(3)).tolist() == [0, 1, 2]


def test_what_is_read_off_the_values_stays_that_of_the_first():
    values = np.random.default_rng(5).normal(size=9)
    problem, untouched = (Problem(graphs.ring(9), values) for _ in range(2))
    other = untouched.with_values(100 * values)  # nobody has asked yet
    assert other.scale == problem.scale == untouched.scale
    assert other.centre == problem.centre
    for each in (problem.scale, problem.centre):
        assert not each.flags.writeable


@given(st.integers(2, 30), st.sampled_from((None, 0, 0.3, 0.5, 1)), st.integers(0, 2**32 - 1))
def test_scale_and_centre_are_those_by_order(n, q, seed):
    values = np.random.default_rng(seed).normal(size=(n, 2)) * 10.0 ** np.arange(2)
    objective = Mean() if q is None else Quantile(q)
    problem = Problem(graphs.complete(n), values, objective=objective)
    share = 0.5 if q is None else float(q)
    ranked = np.sort(values, axis=0)
    low, high = ranked[int(max(share - 0.25, 0) * (n - 1))], ranked[math.ceil(min(share + 0.25, 1) * (n - 1))]
    width = np.where(high > low, high - low, np.maximum(np.abs(low), np.abs(high)))
    np.testing.assert_array_equal(problem.scale, np.exp2(np.round(np.log2(width))))
    np.testing.assert_array_equal(problem.centre, np.rint((low + high) / 2 / problem.scale) * problem.scale)
