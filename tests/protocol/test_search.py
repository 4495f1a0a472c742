"""A search finds the value at a rank, to the last bit, whatever the values are; and asks no more than it may."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_strategies import SPACINGS, Case, Participant, cases, own_values, play, rules_of
from searches import search_trace

from midst import InputError
from midst.protocol.keys import Floats, Grid, first_bracket, make_keys
from midst.protocol.search import (
    SPACING_ORDERS,
    Cells,
    Goal,
    Impossible,
    KeySum,
    Rules,
    SearchState,
    by_key,
    contribution,
    rank_shares,
    roundest,
)

TENTH = Grid(Fraction(1, 10))


def case_of(values, *, ranks, keys=None, weights=None, bounds=None, **rest):
    """One value a participant."""
    keys = Floats() if keys is None else keys
    weights = [1] * len(values) if weights is None else weights
    goals = tuple(Goal(0, rank if isinstance(rank, tuple) else (rank,)) for rank in ranks)
    rules = rules_of(keys, [values], weights, bounds, goals=goals, **rest)
    return Case(rules, tuple(Participant(((keys.key(v),),), w) for v, w in zip(values, weights, strict=True)))


def same_bits(one, two):
    return np.float64(one).tobytes() == np.float64(two).tobytes()


@given(cases())
@settings(max_examples=300)
def test_answer_is_the_one_of_the_sorted_values(case):
    search, _ = play(case)
    assert search.answers == case.answers()
    assert all(same_bits(search.value(g), value) for g, value in enumerate(case.values()))


@given(cases(most=40))
def test_proof_counts_what_lies_below_and_above(case):
    """Of a midpoint, below the lower of the two values and above the higher."""
    search, _ = play(case)
    for g, goal in enumerate(case.rules.goals):
        keys = case.ordered(goal.coordinate)
        first, last = keys[goal.ranks[0] - 1], keys[goal.ranks[-1] - 1]
        below, above = sum(key < first for key in keys), sum(key > last for key in keys)
        assert search.proof(g) == (below, above, len(keys))


@given(cases(most=40, coordinates=1, goals=1))
def test_everybody_learns_the_same_from_totals_alone(case):
    search, steps = play(case)
    again = SearchState.begin(case.rules)
    for question, totals in steps:
        assert again.question == question
        again = again.fold(totals)
    assert again == search
    assert again.question is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.data())
def test_any_floats(values, choose):
    rank, arity = choose.draw(st.integers(1, len(values))), choose.draw(st.integers(1, 7))
    case = case_of(values, ranks=[rank], arity=arity, spacing=choose.draw(st.sampled_from(SPACINGS)))
    search, _ = play(case)
    assert same_bits(search.value(0), sorted(v + 0.0 for v in values)[rank - 1])


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("arity", [1, 3, 7])
def test_no_more_probes_than_promised_on_data_made_to_need_many(spacing, arity):
    steep = [float(np.ldexp(1.0, -8 * k)) for k in range(100)]  # each half of the values in a sliver of the bracket
    for values in (steep, [1 / 3] * 50, [1 / 3] * 25 + [np.nextafter(1 / 3, 1)] * 25):
        for rank in (1, 2, len(values) // 2, len(values)):
            case = case_of(values, ranks=[rank], arity=arity, spacing=spacing)
            search, _ = play(case)  # which counts
            assert search.value(0) == sorted(values)[rank - 1]


def test_bounds_of_one_number_need_no_question():
    search = SearchState.begin(case_of([2.5] * 4, ranks=[2], bounds=(2.5, 2.5)).rules)
    assert (search.question, search.value(0), search.steps) == (None, 2.5, 0)


def test_one_value_in_the_bounds_is_asked_for_by_a_sum_alone():
    search, steps = play(case_of([2.5], ranks=[1]))
    assert search.value(0) == 2.5
    assert [type(part) for question, _ in steps for part in question] == [KeySum]


def test_values_without_weight_are_not_counted_and_not_summed():
    search, steps = play(case_of([1.0, 2.0, 2.0, 3.0], weights=[1, 0, 1, 1], ranks=[2], bounds=(0, 4)))
    assert search.value(0) == 2.0
    assert any(isinstance(part, KeySum) for question, _ in steps for part in question)


def test_different_weights_end_without_a_sum():
    _, steps = play(case_of([1.0, 2.0, 3.0], weights=[1, 2, 1], ranks=[2], bounds=(0, 4)))
    assert all(isinstance(part, Cells) for question, _ in steps for part in question)


def test_bracket_of_two_values_is_never_summed():
    """The sum of two, less the answer, would be the other one."""
    case = case_of([1.0, 1.0 + 2**-52], ranks=[1], bounds=(0, 4))
    search, steps = play(case)
    assert search.value(0) == 1.0
    for question, totals in steps[:-1]:
        assert all(isinstance(part, Cells) for part in question)
        assert sum(totals) == 2


def test_wanted_ranks_of_one_run_share_its_probes():
    values = np.random.default_rng(1).normal(size=99).tolist()
    search, steps = play(case_of(values, ranks=[25, 50, 75], bounds=(-5, 5)))
    assert [search.value(g) for g in range(3)] == [sorted(values)[rank - 1] for rank in (25, 50, 75)]
    alone = [play(case_of(values, ranks=[rank], bounds=(-5, 5)))[0].steps for rank in (25, 50, 75)]
    assert len(steps) <= max(alone) + 1


def test_midpoint_is_one_sum_over_both():
    case = case_of([1.0, 2.1, 4.4, 9.0], ranks=[(2, 3)], keys=TENTH, bounds=(0, 10))
    search, steps = play(case)
    assert search.value(0) == 3.25
    assert isinstance(steps[-1][0][-1], KeySum)


@pytest.mark.parametrize("values", [[1.0, 2.1, 2.1, 9.0], [2.1] * 4, [1.0, 2.1, 2.2, 9.0], [0.0, 0.0, 0.1, 0.1]])
def test_midpoint_of_neighbours_and_ties(values):
    search, _ = play(case_of(values, ranks=[(2, 3)], keys=TENTH, bounds=(0, 10)))
    middle = sorted(round(10 * v) for v in values)[1:3]
    assert search.value(0) == float(Fraction(sum(middle), 20))


@pytest.mark.parametrize("weight", [2, 3])
def test_midpoint_whose_ranks_are_of_one_value(weight):
    """Neither bracket could be counted, and nothing was asked, for ever."""
    search, _ = play(case_of([1.0, 2.1, 9.0], weights=[weight] * 3, ranks=[(weight + 1, weight + 2)], keys=TENTH))
    assert search.value(0) == 2.1


def test_sum_for_a_midpoint_is_not_taken_for_another_goal_with_the_same_bracket():
    search, _ = play(case_of([0.7, 4.5], ranks=[1, (1, 2)], keys=TENTH))
    assert [search.value(0), search.value(1)] == [0.7, 2.6]


def test_midpoint_needs_a_resolution():
    search, _ = play(case_of([1.0, 2.0], ranks=[(1, 2)], bounds=(1.0, 2.0)))
    with pytest.raises(InputError, match="needs a public resolution"):
        search.value(0)


def test_public_quantiles_place_the_first_thresholds():
    case = case_of([1.0, 2.0, 3.0], ranks=[2], bounds=(-10, 10), quantiles=(-10.0, 1.5, 2.5, 10.0), arity=1)
    (cells,) = SearchState.begin(case.rules).question
    assert Floats().value(cells.edges[1]) == 2.0


def test_opening_says_where_to_look_first_and_nothing_about_the_way():
    case = case_of([1.0, 2.0, 3.0, 4.0], ranks=[2], bounds=(0, 10))
    opening = tuple(Floats().key(x) for x in (8.0, 5.0, 12.0, 5.0))
    search = SearchState.begin(replace(case.rules, opening=(opening,)))
    (cells,) = search.question
    assert [Floats().value(edge) for edge in cells.edges[1:]] == [5.0, 8.0, 10.0]
    after = search.fold([4, 0, 0])
    assert after.tracks == search.tracks
    assert play(Case(search.rules, case.participants))[0].value(0) == 2.0


# Totals that no values have


def test_wrong_number_of_totals_is_impossible():
    search = SearchState.begin(case_of([1.0, 2.0, 3.0], ranks=[2], bounds=(0, 4)).rules)
    for totals in ([1, 1, 1], [1, 1, 1, 0, 0]):
        with pytest.raises(Impossible, match=f"{len(totals)} totals for a question of 4"):
            search.fold(totals)


@pytest.mark.parametrize("totals", [[0, 1, 1, 0], [1, 1, 1, 1], [2**64 - 1, 1, 3, 0]])
def test_cells_must_add_up_to_their_bracket(totals):
    search = SearchState.begin(case_of([1.0, 2.0, 3.0], ranks=[2], bounds=(0, 4)).rules)
    with pytest.raises(Impossible, match="do not add up"):
        search.fold(totals)


@given(cases(most=20, coordinates=2, goals=2), st.data())
def test_a_sum_outside_its_bracket_is_no_answer(case, choose):
    search = SearchState.begin(case.rules)
    for question, totals in play(case)[1]:
        sums = [k for k, part in enumerate(question) if isinstance(part, KeySum)]
        if sums:
            start = sum(part.numbers for part in question[: sums[0]])
            a, *_, b = question[sums[0]].edges
            wrong = choose.draw(st.sampled_from([0, 2 * (b - a) + 1, 2**64 - 1]))
            after = search.fold([*totals[:start], wrong, *totals[start + 1 :]])
            (goal,) = after.without_sum
            assert after.answers[goal] is None
            assert any(isinstance(part, Cells) for part in after.question)
            return
        search = search.fold(totals)


# Parts


def test_contribution_tells_cells_in_order_and_one_sum():
    question = (Cells(0, (0, 10, 20)), Cells(1, (5, 6, 7)), KeySum(0, (10, 20)))
    own = own_values([[0, 3, 10, 12], [6, 7]])
    assert contribution(question, own, 3) == [6, 3, 3, 3, 2]
    assert contribution(question, own, 0) == [0, 0, 0, 0, 0]


@given(st.integers(1, 1000), st.integers(1, 7), st.data())
def test_rank_shares_lie_about_the_wanted_one(inside, arity, choose):
    rank = choose.draw(st.integers(1, inside))
    shares = rank_shares(rank, inside, arity)
    assert len(shares) == arity
    assert shares == sorted(shares)
    assert sum(shares) / arity == pytest.approx((rank - 0.5) / inside)


@given(st.integers(0, 2**64 - 2), st.integers(1, 2**64 - 1), st.integers(1, 7))
def test_cells_by_key_are_even(a, width, count):
    b = min(2**64 - 1, a + width)
    edges = [a, *by_key(a, b, count), b]
    widths = np.diff(np.array(edges, object))
    assert widths.min() >= (b - a) // (count + 1)
    assert widths.max() <= -(-(b - a) // (count + 1))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
@example(0.1, 0.30000000000000004)
@example(5e-324, 1e-323)
@example(1.7e308, 1.7976931348623157e308)
@example(-3.0, -0.0)
def test_roundest_lies_in_the_bracket_and_has_the_fewest_digits(low, high):
    low, high = min(low, high), max(low, high)
    x = roundest(low, high)
    assert low <= x <= high
    if not low <= 0 <= high:
        digits = len(f"{abs(x):.17g}".split("e")[0].replace(".", "").strip("0"))
        shortest = min(len(repr(abs(v)).split("e")[0].replace(".", "").strip("0")) for v in (low, high))
        assert digits <= max(shortest, 17)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1, 2, 0.0),
        (0.3, 0.7, 0.3),
        (7, 13, 10.0),
        (19, 45, 20.0),
        (-45, -19, -20.0),
        (1234, 1239, 1234.0),
        (0.26, 0.29, 0.26),
    ],
)
def test_roundest_by_hand(low, high, expected):
    assert roundest(low, high) == expected


@pytest.mark.parametrize("spacing", SPACINGS)
def test_most_probes_is_what_the_specification_says(spacing):
    rules = Rules(Floats(), (first_bracket(Floats(), None),), 1000, 1, (Goal(0, (500,)),), 3, spacing)
    assert rules.most_probes == 32 + 6 + (len(SPACING_ORDERS[spacing]) - 1) * 10 + 2 + 32


def test_resolution_makes_ties():
    keys = make_keys("0.5")
    search, _ = play(case_of([0.1, 0.2, 0.74, 0.76], ranks=[2], keys=keys, bounds=(0, 1)))
    assert search.value(0) == 0.0


@pytest.mark.parametrize("value", [3.141592653589793, 2**0.5 * 1e10, -1e-7 / 3])
@pytest.mark.parametrize("arity", [1, 3, 7])
def test_one_number_alone_is_asked_about_six_times_and_then_the_search_goes_by_key(value, arity):
    """Of a constant that no short decimal is near, round numbers would be tried until nothing else is left."""
    probes = search_trace([value] * 5, arity=arity).probes
    wide = [probe.edges for probe in probes if probe.edges[-1] - probe.edges[0] > 2**20]
    assert 5 <= sum(any(b - a == 1 for a, b in pairwise(edges)) for edges in wide) <= 6
