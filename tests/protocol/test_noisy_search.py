"""The noisy search: exact without noise, a fixed number of probes, and an answer whatever the totals are."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst.protocol.keys import MODULUS, SIGN, Grid, first_bracket
from midst.protocol.noisy_search import NoisyRules, NoisySearchState, count_probes
from midst.protocol.search import Impossible, OwnValues, contribution

arities = st.integers(1, 7)


@st.composite
def searches(draw):
    """Rules with bounds 0 to some number of steps, and values as steps, often tied."""
    step, most = draw(st.fractions(Fraction(1, 1000), 1000)), draw(st.integers(0, 3000))
    values = draw(st.lists(st.integers(0, most), min_size=1, max_size=40))
    ranks = draw(st.lists(st.integers(1, len(values)), min_size=1, max_size=3))
    return NoisyRules(Grid(step), (SIGN - 1, SIGN + most), tuple(ranks), draw(arities)), values


def own(keys):
    """Values with these keys, as questions are about them."""
    return OwnValues((np.array(sorted(keys), np.uint64),))


def run(rules, answer):
    """Every state of a search whose totals are so."""
    states = [NoisySearchState.begin(rules)]
    while states[-1].question is not None:
        states.append(states[-1].fold(answer(states[-1].question)))
    return states


@given(searches())
def test_without_noise_it_finds_the_exact_quantiles(search):
    rules, values = search
    keys = sorted(value + SIGN for value in values)
    end = run(rules, lambda question: contribution(question, own(keys), 1))[-1]
    for goal, rank in enumerate(rules.ranks):
        assert end.value(goal) == rules.keys.value(keys[rank - 1])


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), arities, st.data())
def test_values_between_the_steps_are_rounded_to_them(values, arity, data):
    keys, rank = Grid(Fraction(1, 8)), data.draw(st.integers(1, len(values)))
    rules = NoisyRules(keys, first_bracket(keys, (-100.0, 100.0)), (rank,), arity)
    end = run(rules, lambda question: contribution(question, own(map(keys.key, values)), 1))[-1]
    assert abs(end.value() - sorted(values)[rank - 1]) <= 1 / 16


@given(searches(), st.data())
def test_whatever_the_totals_are_it_ends_within_the_bounds_after_as_many_probes(search, data):
    rules, _ = search
    some = st.one_of(st.integers(-60, 60), st.integers(0, MODULUS - 1))

    def answer(question):
        (cells,) = question
        assert 1 <= cells.numbers <= rules.most_numbers
        assert cells.edges[0] == rules.bracket[0]  # all the way down
        assert all(low < high for low, high in pairwise(cells.edges))
        assert rules.bracket[0] < cells.edges[1]
        assert cells.edges[-1] <= rules.bracket[1]
        return [data.draw(some) % MODULUS for _ in range(cells.numbers)]

    states = run(rules, answer)
    assert len(states) == rules.probes + 1
    for before, after in pairwise(states):
        for (a, b), (low, high) in zip(before.brackets, after.brackets, strict=True):
            assert a <= low < high <= b
    for a, b in states[-1].brackets:
        assert b - a == 1


@given(searches())
def test_a_probe_of_one_rank_with_one_threshold_tells_one_number(search):
    rules, values = search
    rules = NoisyRules(rules.keys, rules.bracket, rules.ranks[:1])
    assert rules.most_numbers == 1
    for state in run(rules, lambda question: contribution(question, own(values), 1))[:-1]:
        assert sum(part.numbers for part in state.question) == 1


@given(searches())
def test_a_value_is_in_one_cell_at_most_whatever_the_number_of_ranks(search):
    rules, values = search
    keys = sorted(value + SIGN for value in values)
    for state in run(rules, lambda question: contribution(question, own(keys), 1))[:-1]:
        for key in keys:
            assert sum(contribution(state.question, own([key]), 1)) <= 1


@given(st.integers(1, 2**62), arities)
def test_as_many_probes_as_are_needed(width, arity):
    probes = count_probes((0, width), arity)
    assert (arity + 1) ** probes >= width
    assert probes == 0 or (arity + 1) ** (probes - 1) < width


def test_the_first_threshold_that_reaches_the_rank_is_taken_also_where_totals_fall():
    state = NoisySearchState.begin(NoisyRules(Grid(Fraction(1)), (0, 64), (5,), 3))
    assert state.question[0].edges == (0, 16, 32, 48)
    assert state.fold([2, 3, -4]).brackets == ((16, 32),)  # running 2, 5, 1
    assert state.fold([5, -9 % MODULUS, 20]).brackets == ((0, 16),)  # running 5, −4, 16
    assert state.fold([-1 % MODULUS, -3, 2]).brackets == ((48, 64),)
    assert state.fold([0, 0, 5]).brackets == ((32, 48),)


def test_an_error_leads_back_to_the_threshold_and_does_not_grow():
    """The first probe goes to the wrong side of 32; the others, exact, end beside it."""
    keys = [10] * 50 + [33] * 50
    state = NoisySearchState.begin(NoisyRules(Grid(Fraction(1)), (0, 64), (51,)))
    state = state.fold([51])  # there are 50 up to 32
    while state.question is not None:
        state = state.fold(contribution(state.question, own(keys), 1))
    assert state.brackets == ((31, 32),)


def test_the_number_of_totals_is_that_of_the_cells():
    state = NoisySearchState.begin(NoisyRules(Grid(Fraction(1)), (0, 64), (5,), 3))
    for totals in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(Impossible, match="totals for a question of 3"):
            state.fold(totals)


def test_several_ranks_share_the_probes():
    keys = np.sort(np.random.default_rng(3).integers(SIGN, SIGN + 1000, 200, dtype=np.uint64)).tolist()
    rules = NoisyRules(Grid(Fraction(1)), (SIGN - 1, SIGN + 999), (50, 100, 150), 1)
    states = run(rules, lambda question: contribution(question, own(keys), 1))
    assert len(states) == 11
    assert [b for _, b in states[-1].brackets] == [keys[49], keys[99], keys[149]]
    assert max(state.question[0].numbers for state in states[:-1]) == 3
