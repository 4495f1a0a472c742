"""The test vectors say what this implementation does."""

from __future__ import annotations

import json

import pytest
from make_vectors import FILE, make, masked, outcome, parts, written

VECTORS = json.loads(FILE.read_text(encoding="utf-8"))


def test_parts_are_those_that_are_written_down():
    assert parts() == VECTORS["parts"]


@pytest.mark.parametrize("vector", VECTORS["searches"], ids=lambda vector: vector["given"]["name"])
def test_search_takes_the_course_that_is_written_down(vector):
    assert outcome(vector["given"]) == vector["expected"]


def test_masks_are_those_that_are_written_down():
    assert masked(VECTORS["masks"]["given"]) == VECTORS["masks"]["expected"]


def test_contributions_that_are_written_down_add_up():
    given, expected = VECTORS["masks"]["given"], VECTORS["masks"]["expected"]
    columns = zip(*(map(int, each["answers"]) for each in given["participants"]), strict=True)
    hidden = zip(*(map(int, each) for each in expected["contributions"]), strict=True)
    assert [sum(column) % 2**64 for column in hidden] == [sum(column) % 2**64 for column in columns]


EXACT = [vector for vector in VECTORS["searches"] if vector["given"]["resolution"] is None]


@pytest.mark.parametrize("vector", EXACT, ids=lambda vector: vector["given"]["name"])
def test_values_that_are_written_down_are_those_of_the_sorted_data(vector):
    given = vector["given"]
    for goal, answer in zip(given["goals"], vector["expected"]["answers"], strict=True):
        ordered = sorted(
            value
            for each in given["participants"]
            for value in each["values"][goal["coordinate"]]
            for _ in range(each["weight"])
        )
        assert answer["value"] == ordered[goal["ranks"][0] - 1]


def test_file_is_what_the_script_makes():
    assert FILE.read_text(encoding="utf-8") == written(make()) + "\n"
