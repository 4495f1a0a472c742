"""What is not to be asked for."""

from __future__ import annotations

import numpy as np
import pytest

from midst import InputError
from midst.disclosure import Disclosure
from midst.statistics import parse_statistics


def refusals(names, sizes, **rules):
    return list(Disclosure(**rules).refusals(parse_statistics(names), sizes))


def test_usual_ones_of_enough_values_are_not_refused():
    assert refusals(["median", "quartiles", "mean", "variance", "top:3"], [100] * 5) == []
    assert refusals(["median"], [1] * 5) == []
    assert refusals(["median", "mean"], [1] * 5) == []


@pytest.mark.parametrize(
    ("names", "sizes", "rules", "words"),
    [
        (["mean"], [50, 50], {}, "2 participants, and at least 3"),
        (["mean"], [1, 1, 2], {}, "4 values in all, and at least 5"),
        (["mean"], [90, 5, 5], {"share": 0.8}, "one participant has 90 of 100 values, more than a share of 0.8"),
        (["mean", "max"], [50] * 5, {"support": 3}, "max is over 1 of the values, and at least 3"),
        (["trimmed:0.4"], [4] * 5, {"support": 5}, "trimmed:0.4 is over 4 of the values"),
        (["top:9"], [2] * 4, {}, "top:9 of 8 values; it takes 9"),
    ],
)
def test_each_rule_refuses_in_words(names, sizes, rules, words):
    assert any(words in line for line in refusals(names, sizes, **rules))


def test_answers_that_determine_all_values_are_refused():
    """Minimum, maximum, median, mean and variance of five values: solved here, and refused there."""
    names = ["min", "max", "median", "mean", "variance"]
    assert any("5 equations about 4 values" in line for line in refusals(names, [1] * 5))
    values = np.array([1.0, 2.5, 4.0, 4.75, 9.0])
    rest_sum = values.sum() - values[[0, 2, 4]].sum()
    rest_squares = (values**2).sum() - (values[[0, 2, 4]] ** 2).sum()
    difference = np.sqrt(2 * rest_squares - rest_sum**2)
    assert np.allclose([(rest_sum - difference) / 2, (rest_sum + difference) / 2], values[[1, 3]])
    assert refusals(names, [2] * 5) == []  # ten values, of which somebody lacks eight


def test_who_has_much_of_it_knows_much_of_it():
    names = ["quartiles", "mean"]
    assert refusals(names, [4, 4, 4]) == []
    assert any("4 equations about 5 values" in line for line in refusals(names, [20, 2, 3]))


def test_small_counts_are_left_out_and_not_one_alone():
    rule = Disclosure(cell=5)
    assert rule.shown([10, 0, 7, 30]) == [10, 0, 7, 30]
    assert rule.shown([10, 3, 7, 30]) == [10, None, None, 30]
    assert rule.shown([3, 4, 7]) == [None, None, 7]


@pytest.mark.parametrize("rules", [{"participants": 0}, {"share": 0.0}, {"share": 1.5}, {"free": 0}])
def test_rules_that_are_none_are_refused(rules):
    with pytest.raises(InputError):
        Disclosure(**rules)
