"""What is to be found, and the interval of right answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_strategies import problems
from test_certificate import right_answers

from midst import InputError, Mean, Quantile


@given(problems())
def test_answer_is_the_definition(problem):
    """The sorted-data answer equals the definition in exact arithmetic."""
    low, high = problem.answer
    exact_low, exact_high = map(float, right_answers(problem))
    size = max(abs(exact_low), abs(exact_high), 1e-300)
    if isinstance(problem.objective, Mean):  # by the weights as given, of which whole ones may be rounded
        weights, values = problem.search_weights.tolist(), map(Fraction, problem.values.tolist())
        exact_low = float(sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights))
        assert abs(float(low) - exact_low) <= 1e-12 * np.abs(problem.values).max() + 1e-12 * size
    else:
        assert (float(low), float(high)) == (exact_low, exact_high)


@pytest.mark.parametrize(
    ("objective", "total", "title"),
    [
        (Quantile(0.5, "any"), 15, "median"),
        (Quantile(0.5, "any"), 14, "median between low and high"),
        (Quantile(0.5), 14, "low median"),
        (Quantile(0.5, "inverted_cdf_high"), 14, "high median"),
        (Quantile(0.5), 15, "median"),
        (Quantile(0.9), 10, "low quantile 0.9"),
        (Quantile(0.9), 11, "quantile 0.9"),
        (Quantile(1), 3, "maximum"),
        (Quantile(0), 3, "minimum"),
        (Mean(), 3, "mean"),
    ],
)
def test_title_says_which(objective, total, title):
    assert objective.title(total) == title


def test_level_moves_only_where_it_must():
    assert Quantile(0.5).exact_q(15) == Fraction(1, 2)
    assert Quantile(0.5).exact_q(14) == Fraction(1, 2) - Fraction(1, 28)
    assert Quantile(0.5, "inverted_cdf_high").exact_q(14) == Fraction(1, 2) + Fraction(1, 28)
    assert Quantile(1).exact_q(4) == Fraction(7, 8)


@given(st.floats(0, 1))
def test_tau_is_kept_to_the_float(q):
    assert float(Quantile(q).q) == q


def test_decimal_tau_is_the_decimal():
    assert Quantile(0.9).q == Fraction(9, 10)
    assert Quantile(1 / 3).q == Fraction(1, 3)


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), float("inf"), "half", None])
def test_bad_tau(q):
    with pytest.raises(InputError, match="quantile must be"):
        Quantile(q)


def test_bad_side():
    with pytest.raises(InputError, match="definition must be"):
        Quantile(0.5, "left")


@given(st.integers(1, 12), st.integers(1, 4), st.sampled_from((0, 0.25, 1 / 3, 0.5, 0.9, 1)), st.integers(0, 2**32 - 1))
def test_answers_of_values_that_weigh_alike_are_those_by_order(n, weight, q, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (n, 3)).astype(float)
    for definition in ("inverted_cdf", "inverted_cdf_high", "any"):
        objective = Quantile(q, definition)
        alike = objective.answer(values, np.full(n, weight))
        # one more value of no weight takes the way by order of all
        more = np.concatenate([values, [[-7.0, 2.5, 99.0]]])
        by_order = objective.answer(more, np.array([weight] * n + [0]))
        np.testing.assert_array_equal(alike, by_order)
