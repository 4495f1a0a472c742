"""Sums over all values: what participants find behind masks, with proofs and without, and what a liar can do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simnet.notary import SimNotary
from test_participant import DIGEST, NAMES, Room, contributed
from test_votes import LIAR, named, on, play, revote

from midst.engines.searching import search_values
from midst.methods import Search
from midst.protocol import participant
from midst.protocol.commitments import H, add, commit
from midst.protocol.course import Course, verify_transcript
from midst.protocol.keys import first_bracket, make_keys
from midst.protocol.masks import add_up, join, split
from midst.protocol.participant import transcript_of
from midst.protocol.search import Cells, ClippedSum, Impossible, KeySum
from midst.protocol.statements import Agreement, longest_statement, step_context
from midst.protocol.votes import digit_values
from midst.statistics import Plan, parse_statistics, read_statistics

STEP = "0.25"
BOUNDS = (-100.0, 100.0)
DATA = [[3.0, 7.25], [-2.5], [11.0, 11.0, 4.5], [7.25, -40.0]]


def room_of(names, data=DATA, verify=False, step=STEP, bounds=BOUNDS):
    keys = make_keys(step)

    def rules(sizes):
        plan = Plan(parse_statistics(names), sum(sizes))
        return plan.rules(Search(), keys, [first_bracket(keys, bounds)])

    agreement = Agreement(DIGEST, (1,) * len(data), True, rules, verify)
    return Room(data, agreement, resolution=step)


def answers(names, data, search):
    return read_statistics(Plan(parse_statistics(names), sum(map(len, data))), search)[0]


@given(
    st.lists(st.lists(st.integers(-400, 400).map(lambda k: k / 4), min_size=1, max_size=4), min_size=3, max_size=5),
    st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_participants_find_what_one_who_had_all_would(data, verify):
    names = ["sum", "variance", "trimmed:0.2", "mad"] if sum(map(len, data)) < 8 else ["mean", "winsorised:0.1"]
    room = room_of(names, data, verify).run()
    keys, pooled = make_keys(STEP), np.concatenate([np.array(part) for part in data])
    rules = room.agreement.make_rules([len(part) for part in data])
    alone, steps = search_values(rules, keys.keys(pooled), np.ones(len(pooled), np.int64))
    for one in room.all:
        assert one.totals == tuple(step.totals for step in steps)
        assert str(answers(names, data, one.search)) == str(answers(names, data, alone))
        assert not one.contradicted
    shown = verify_transcript(transcript_of(room.all[0]), room.agreement, SimNotary(0).verifier, NAMES)
    assert shown.sums == alone.sums


def test_a_sum_may_be_wider_than_a_word():
    """Squares of 2^60 steps: three words, behind masks as wide."""
    far = float(2**57)
    data = [[far, -far], [far - 512.0], [3.0], [-far]]
    for verify in (False, True):
        room = room_of(["variance", "sum"], data, verify, "0.25", (-far, far)).run()
        pooled = [int(value * 4) for part in data for value in part]
        found = answers(["variance", "sum"], data, room.all[0].search)
        mean = sum(pooled) / 5
        assert found["sum"] == sum(pooled) / 4
        assert found["variance"] == pytest.approx(sum((value - mean) ** 2 for value in pooled) / 4 / 16, rel=1e-12)
        widths = [part.words for part in first_question(room) if isinstance(part, ClippedSum)]
        assert sorted(widths) == [1, 2]


def first_question(room):
    return Course.begin(room.agreement, [one.own[0].tag for one in room.all]).question


@given(st.lists(st.lists(st.integers(0, 2**192 - 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_words_are_added_with_their_carries(rows):
    widths = [1, 3, 2]
    words = [split(row, widths) for row in rows]
    whole = [sum(column) % 2 ** (64 * width) for column, width in zip(zip(*rows, strict=True), widths, strict=True)]
    assert join(add_up(words, widths), widths) == whole


def test_masked_sums_say_nothing_of_one_participant():
    """Of every word, its own answer is not what is sent; and the same answer is sent as another in each session."""
    room = room_of(["mean", "variance"]).run(1)
    plain, sent = room.all[0]._plain, room.all[0].own[1].numbers
    assert all(own != masked for own, masked in zip(plain, join(sent, room.all[0].course.widths), strict=True))


def test_two_questions_never_have_one_context():
    """What a mask is for says which sum is asked for, and in how many words."""
    asked = [ClippedSum(0, (3, 9), power, words) for power in (1, 2) for words in (1, 2)]
    asked += [ClippedSum(1, (3, 9), 1, 1), ClippedSum(0, (3, 8), 1, 1), KeySum(0, (3, 9)), Cells(0, (3, 9))]
    assert len({step_context(bytes(32), (part,)) for part in asked}) == len(asked)


# Lies


def test_without_proofs_a_sum_beyond_all_values_is_noticed_by_everybody():
    room = room_of(["mean"]).run(1)
    liar = room.all[LIAR]
    liar.own[1] = contributed(liar.own[1], [liar.own[1].numbers[0] + 2**60])
    with pytest.raises(Impossible, match="larger than all values together"):
        room.talk()


def test_without_proofs_squares_that_do_not_fit_are_noticed():
    room = room_of(["variance"]).run(1)
    liar = room.all[LIAR]
    first, second = liar.own[1].numbers
    liar.own[1] = contributed(liar.own[1], [first, second - 10**6])
    with pytest.raises(Impossible, match="do not fit"):
        room.talk()


@pytest.mark.parametrize("number", [801, 2**40, -1])
def test_with_proofs_nobody_adds_more_than_its_values_can(number, monkeypatch):
    """The liar has one value, so from 0 to 800 steps of a quarter; whatever it claims besides, it is named."""
    room = room_of(["mean"], verify=True)
    real = participant.make_vote

    def forge(question, own, *rest):
        if rest[-1] != LIAR:
            return real(question, own, *rest)
        made = real(question, own, *rest)
        (old, blinding), *others = made.plain
        worth = digit_values(question[0], 1)
        shift = [commit((number - old) % 2**252 * (q == 0), 0) for q in range(len(worth))]
        points = tuple(add(pair) for pair in zip(made.points, shift, strict=True))
        return replace(made, points=points, plain=((number, blinding), *others))

    monkeypatch.setattr(participant, "make_vote", forge)
    assert named(room, play(room, lambda one, statement: statement)) == (LIAR,)


def test_with_proofs_the_most_it_can_add_is_what_its_values_can():
    """A digit is worth so much that all of them together are exactly the most."""
    part = ClippedSum(0, (1000, 1800), 1, 1)
    for values in range(1, 9):
        worth = digit_values(part, values)
        assert sum(worth) == 800 * values
        reachable = {0}
        for one in worth:
            reachable |= {one + each for each in reachable}
        assert reachable == set(range(800 * values + 1))


def test_with_proofs_another_number_behind_the_mask_is_named():
    room = room_of(["mean"], verify=True)

    def more(ballot):
        (y, r), *rest = ballot.masked
        return replace(ballot, masked=((y + 1, r), *rest))

    assert named(room, play(room, on(b"C", revote(more)))) == (LIAR,)


def test_with_proofs_a_digit_that_is_two_is_named():
    room = room_of(["mean"], verify=True)
    twice = revote(lambda ballot: replace(ballot, points=(add([ballot.points[0], H, H]), *ballot.points[1:])))
    assert named(room, play(room, on(b"C", twice))) == (LIAR,)


@pytest.mark.parametrize("verify", [False, True])
def test_no_statement_is_longer_than_a_charter_allows_for(verify):
    names = ["quartiles", "variance", "trimmed:0.2", "histogram:0,1,2,3", "mad"]
    room = room_of(names, verify=verify).run()
    rules = room.agreement.make_rules([1] * 4)
    longest = max(len(statement.body) for one in room.all for statement in one.own)
    assert longest <= longest_statement(rules, 4, pooled=True, verify=verify)
