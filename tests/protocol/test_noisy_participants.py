"""Participants who add noise: the totals of a simulation with the same noise; a restart signs the same; liars."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from simnet.notary import SimNotary

import midst
from midst.engines.reference_search import listen, search_problem
from midst.engines.searching import search_with_noise
from midst.methods import noisy_rules
from midst.objectives import Quantile
from midst.protocol.course import Course, judge, verify_transcript
from midst.protocol.keys import MODULUS, first_bracket, make_keys
from midst.protocol.masks import derive_seed
from midst.protocol.noise import add_noise, share_of
from midst.protocol.participant import Distrust, Holding, Participant, transcript_of
from midst.protocol.search import OwnValues, contribution
from midst.protocol.statements import Agreement, Malformed, Statement, make_body, signed_bytes

KEYS, BOUNDS, VARIANCE = make_keys("0.5"), (0.0, 100.0), Fraction(9)
LISTS = [np.random.default_rng(k).normal(50, 15, 40 + k).clip(*BOUNDS).round() for k in range(4)]
NAMES = [f"p{k}" for k in range(4)]


def rules_of(sizes, arity=1, colluders=1):
    bracket = first_bracket(KEYS, BOUNDS)
    return noisy_rules(arity, Quantile("0.5"), KEYS, bracket, sum(sizes), VARIANCE, len(sizes), colluders)


def agree(arity=1):
    return Agreement(b"c" * 32, (1,) * 4, True, lambda sizes: rules_of(sizes, arity))


def participant(k, agreement, values=None):
    drawn = hashlib.blake2b(f"secrets of {k}".encode()).digest()
    keys = KEYS.keys(LISTS[k] if values is None else values)
    return Participant(agreement, Holding(k, (keys,), drawn[:32], drawn[32:48]), SimNotary(k))


def talk(everybody, steps=10**6):
    """Everybody hears everybody, step by step."""
    while steps and not all(one.certified for one in everybody):
        said = [one.own[-1] for one in everybody]
        for one in everybody:
            listen(one, [each for each in said if each.signer != one._holding.number])
        steps -= 1
    return everybody


def noise_of(everybody):
    """What all have added to each number, in all, in the order in which it was asked for."""
    added, first = [], everybody[0]
    for step, statement in enumerate(first.own):
        if statement.kind != b"C":
            continue
        question = asked(first, step)
        each = [own_noise(one, question, statement.context) for one in everybody]
        added += np.sum(each, axis=0).tolist()
    return added


def asked(one, step):
    """The question of a step."""
    course = Course.begin(one._agreement, one.course.tags)
    for totals in one.totals[: step - 1]:
        course = course.fold(totals)
    return course.question


def own_noise(one, question, context):
    own = OwnValues.of(one.search.rules, one._holding.keys)
    plain = contribution(question, own, 1)
    seed, share = derive_seed(one._holding.secret), share_of(VARIANCE, 4, 1)
    return np.subtract(add_noise(plain, share, seed, context), plain).tolist()


@pytest.mark.parametrize("arity", [1, 3])
def test_participants_and_the_simulation_with_the_same_noise_agree(arity):
    everybody = talk([participant(k, agree(arity)) for k in range(4)])
    drawn = iter(noise := noise_of(everybody))
    rules = rules_of([len(own) for own in LISTS], arity)
    search, steps = search_with_noise(rules, KEYS.keys(np.concatenate(LISTS)), lambda: next(drawn))
    for one in everybody:
        assert one.totals == tuple(step.totals for step in steps)
        assert one.search.answers == search.answers
        assert not one.contradicted
    assert list(drawn) == []
    assert any(noise)
    assert np.std(noise) < 3 * float(VARIANCE * 4 / 3) ** 0.5
    transcript = transcript_of(everybody[0])
    proved = verify_transcript(transcript, agree(arity), SimNotary(0).verifier, NAMES)
    assert proved.answers == search.answers
    damaged = (*transcript.totals[:-1], (*transcript.totals[-1], 1))
    with pytest.raises(Malformed, match="totals for a question of"):
        verify_transcript(replace(transcript, totals=damaged), agree(arity), SimNotary(0).verifier, NAMES)


def test_who_is_started_again_adds_the_same_noise():
    """From the same inputs, as a journal has them, the same statements; nothing is drawn a second time."""
    everybody = talk([participant(k, agree()) for k in range(4)])
    again = participant(2, agree())
    for step in range(len(everybody[0].own)):
        again.advance([one.own[step] for one in everybody])
    assert [each.body for each in again.own] == [each.body for each in everybody[2].own]


def test_other_answers_never_go_out_under_the_same_noise():
    """Else the difference of two sums would be that of the answers."""
    everybody = talk([participant(k, agree()) for k in range(4)], 1)
    question, context = asked(everybody[0], 1), everybody[0].own[1].context
    one, other = (own_noise(participant_with(everybody[0], own), question, context) for own in ([1.0], [99.0]))
    assert one != other


def participant_with(one, values):
    """The same secrets and course, other values."""
    other = participant(one._holding.number, one._agreement, values)
    other.course = one.course
    return other


@pytest.mark.parametrize("total", [-5000, 1])
def test_totals_contradict_nobody_and_nothing_is_impossible(total):
    """A total below 0, or below one's own count: noise, or a lie, and nobody can tell."""
    everybody = talk([participant(k, agree()) for k in range(4)], 1)
    said = [one.own[1] for one in everybody]
    others = sum(each.numbers[0] for each in said[:3])
    said[3] = sign(3, said[3].body[:37] + ((total - others) % MODULUS).to_bytes(8, "little"))
    for one in everybody[:3]:
        listen(one, [each for each in said if each.signer != one._holding.number])
        assert one.totals == ((total % MODULUS,),)
        assert one.step == 2
        assert not one.contradicted


def sign(signer, body):
    return Statement(body, SimNotary(signer).sign(signed_bytes(b"c" * 32, body)))


def test_a_statement_of_the_wrong_length_is_evidence():
    everybody = [participant(k, agree()) for k in range(4)]
    talk(everybody, 1)
    said = [one.own[1] for one in everybody]
    long = sign(1, said[1].body + bytes(8))
    with pytest.raises(Distrust, match="signed a statement of the wrong length") as caught:
        listen(everybody[0], [long, *said[2:]])
    assert judge(caught.value.evidence, agree(), SimNotary(0).verifier).accused == (1,)


def test_there_is_no_dispute_and_no_other_kind_of_statement():
    everybody = [participant(k, agree()) for k in range(4)]
    talk(everybody, 1)
    said = [one.own[1] for one in everybody]
    other = sign(1, make_body(b"F", 1, 1, said[1].context))
    with pytest.raises(Distrust, match="of the wrong kind"):
        listen(everybody[0], [other, *said[2:]])


def test_the_shares_are_of_those_who_do_not_collude():
    assert rules_of([1, 1, 1, 1], colluders=0).share == VARIANCE / 4
    assert rules_of([1, 1, 1, 1], colluders=2).share == VARIANCE / 2
    with pytest.raises(midst.InputError, match="colluders must be from 0 to 3"):
        rules_of([1, 1, 1, 1], colluders=4)


def test_whole_participants_of_a_problem_repeat_by_their_seed():
    problem = midst.Problem(midst.graphs.ring(4), LISTS, bounds=BOUNDS, resolution="0.5", pooled=True)
    rules = rules_of([len(own) for own in LISTS])
    found = [
        search_problem(problem, rules, draw=np.random.default_rng(seed).bytes).search.brackets for seed in (1, 1, 2, 3)
    ]
    assert found[0] == found[1]
    assert len(set(found)) > 1
