"""Participants in one memory: the right answer whatever is lost or late; what nobody honest signs names its signer."""

from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from simnet.notary import SimNotary

from midst.engines.searching import search_values
from midst.methods import Search, search_rules
from midst.objectives import Quantile
from midst.protocol.course import judge, verify_transcript
from midst.protocol.keys import MODULUS, first_bracket, make_keys
from midst.protocol.masks import public_key
from midst.protocol.participant import Distrust, Holding, Participant, transcript_of
from midst.protocol.search import Cells, Impossible, KeySum, OwnValues, SearchState, contribution
from midst.protocol.statements import (
    Agreement,
    Malformed,
    Statement,
    announce,
    final_hash,
    first_transcript,
    make_body,
    next_transcript,
    signed_bytes,
    step_context,
)
from midst.protocol.votes import Vote, mask

DIGEST = b"c" * 32
NAMES = [f"p{i}" for i in range(12)]


def agree(
    weights,
    *,
    verify=False,
    pooled=False,
    q=0.5,
    definition="inverted_cdf",
    resolution=None,
    bounds=(-100.0, 100.0),
    digest=DIGEST,
    **how,
):
    """What participants with these weights have agreed on."""
    keys = make_keys(resolution)
    units = {weight for weight in weights if weight}

    def rules(counts):
        total = sum(weight * count for weight, count in zip(weights, counts, strict=True))
        unit = units.pop() if len(units) == 1 else None
        if unit is not None:
            units.add(unit)
        return search_rules(Search(**how), Quantile(q, definition), keys, [first_bracket(keys, bounds)], total, unit)

    return Agreement(digest, tuple(weights), pooled, rules, verify)


def holding_of(i, values, resolution=None, session=0):
    keys = make_keys(resolution).keys(np.sort(np.array(values, np.float64)))
    drawn = hashlib.blake2b(f"{session} {i}".encode()).digest()
    return Holding(i, (keys,), drawn[:32], drawn[32:48])


class Room:
    """Participants, and what they say to each other."""

    def __init__(self, values, agreement=None, session=0, resolution=None):
        lists = [[each] if np.ndim(each) == 0 else list(each) for each in values]
        self.values = lists
        self.agreement = agreement or agree([1] * len(values))
        self.holdings = [holding_of(i, own, resolution, session) for i, own in enumerate(lists)]
        self.all = [Participant(self.agreement, each, SimNotary(each.number)) for each in self.holdings]

    def talk(self):
        """Everybody hears everybody, and goes on by one step."""
        said = [one.own[one.step] for one in self.all]
        for one in self.all:
            for statement in said:
                if statement.signer != one._holding.number:
                    one.take(statement)
        for one in self.all:
            statements = one.ready()
            if statements is not None:
                one.advance(statements)

    def run(self, steps=10**6):
        """So many steps, or to the end."""
        while steps and not all(one.certified for one in self.all):
            self.talk()
            steps -= 1
        return self


def sign(signer, body, digest=DIGEST):
    return Statement(body, SimNotary(signer).sign(signed_bytes(digest, body)))


def contributed(statement, numbers):
    """The same statement with other numbers, rightly signed."""
    head = statement.body[: 5 + 32]
    return sign(statement.signer, head + struct.pack(f"<{len(numbers)}Q", *(n % MODULUS for n in numbers)))


def announced(i, key=None, count=1, instance=b"i" * 16, certificate=None, digest=DIGEST):
    key = public_key(bytes([i + 1] * 32)) if key is None else key
    says = announce(instance, key, count, certificate or SimNotary(i).certificate)
    return sign(i, make_body(b"A", i, 0, says), digest)


VALUES = [3.0, -2.5, 11.0, 7.25, -40.0]


def judged(distrust, agreement=None):
    """Whom the evidence shows to lie, to somebody who has the charter and nothing else."""
    accused = judge(distrust.evidence, agreement or agree([1] * 5), SimNotary(0).verifier).accused
    assert accused == distrust.about
    return accused


def bodies(distrust):
    return {body for body, _ in distrust.evidence.statements}


# The answer


@st.composite
def parties(draw):
    """Values of any kind, and what is agreed about them."""
    n = draw(st.integers(3, 7))
    pooled = draw(st.booleans())
    resolution = draw(st.none() | st.sampled_from(["0.01", "1", "7"]))
    value = st.floats(-100, 100) | st.integers(-3, 3).map(float)
    lists = [draw(st.lists(value, min_size=1, max_size=4 if pooled else 1)) for _ in range(n)]
    weights = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any) | st.just([1] * n))
    ends = ["inverted_cdf", "inverted_cdf_high"]
    definition = draw(st.sampled_from([*ends, "averaged_inverted_cdf"] if resolution else ends))
    how = {"arity": draw(st.integers(1, 7)), "spacing": draw(st.sampled_from(["rank", "value", "key"]))}
    bounds = draw(st.sampled_from([(-100.0, 100.0), (-1e6, 1e6), None]))
    q = draw(st.sampled_from([0, 0.1, 0.5, 0.75, 1]))
    resolution = None if resolution is None else Fraction(resolution)
    verify = draw(st.booleans())
    agreement = agree(
        weights, verify=verify, pooled=pooled, q=q, definition=definition, resolution=resolution, bounds=bounds, **how
    )
    return lists, agreement, resolution


def plain_search(room):
    """The same search by whoever has all values at hand."""
    rules = room.agreement.make_rules([len(own) for own in room.values])
    keys = np.array([key for each in room.holdings for key in each.keys[0]], np.uint64)
    weights = np.repeat(room.agreement.weights, [len(own) for own in room.values])
    return search_values(rules, keys, weights)


@given(parties())
@settings(max_examples=60, deadline=None)
def test_everybody_finds_what_is_right(party):
    lists, agreement, resolution = party
    room = Room(lists, agreement, resolution=resolution).run()
    search, steps = plain_search(room)
    for one in room.all:
        assert one.search.answers == search.answers
        assert one.course.totals == tuple(step.totals for step in steps)
        assert not one.contradicted
        assert not one.missing()
        assert one.ready() is None
    transcripts = {transcript_of(one) for one in room.all}
    assert len(transcripts) == 1
    proved = verify_transcript(transcripts.pop(), agreement, SimNotary(0).verifier, NAMES)
    assert proved.answers == search.answers


@given(st.lists(st.floats(-100, 100), min_size=3, max_size=6), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_order_loss_and_repetition_change_nothing(values, seed):
    """Statements in any order, of any age, any number of times: the same is signed, and nothing else."""
    rng = Random(seed)
    calm = Room(values).run()
    room = Room(values)
    said = [room.all[i].own[0] for i in range(len(values))]
    for _ in range(100_000):
        one = rng.choice(room.all)
        statement = rng.choice(said if rng.random() < 0.3 else said[-2 * len(values) :])
        if statement.signer == one._holding.number:
            continue
        one.take(statement)
        while (statements := one.ready()) is not None:
            one.advance(statements)
            if not one.certified:
                said.append(one.own[-1])
        if all(each.certified for each in room.all):
            break
    else:
        raise AssertionError("it never ended")
    for one, other in zip(room.all, calm.all, strict=True):
        assert one.own == other.own
        assert transcript_of(one) == transcript_of(other)


@pytest.mark.parametrize("steps", range(8))
def test_who_is_started_again_signs_the_same(steps):
    """A journal holds everybody's statements of each step, and nothing else is needed."""
    room = Room(VALUES).run(steps)
    for one, holding in zip(room.all, room.holdings, strict=True):
        again = Participant(room.agreement, holding, SimNotary(holding.number))
        for step in range(min(steps, one.step)):
            again.advance(tuple(one.statements(step)))
        assert again.own == one.own[: again.step + 1]
        assert again.totals == one.totals[: len(again.totals)]


def test_what_is_said_looks_alike_for_all():
    """One statement a step from everybody, of one length, whatever its values."""
    agreement = agree([1] * 5, pooled=True)
    room = Room([[1.0], [2.0, 3.0, 99.0], [-100.0] * 9, [50.0], [1.0, 1.0]], agreement).run()
    lengths = [{len(one.own[step].body) for one in room.all} for step in range(1, room.all[0].step + 1)]
    assert all(len(each) == 1 for each in lengths)
    assert len({len(one.own) for one in room.all}) == 1


def test_whose_value_has_no_room_in_the_totals_is_told_so_alone():
    """A liar has it that all lie in the first cell: those who do not know better, and none of them says so."""
    room = Room(VALUES).run(1)
    liar, question = room.all[0], room.all[0].search.question
    plain = [contribution(question, OwnValues(each.keys), 1) for each in room.holdings]
    wanted = [5] + [0] * (len(plain[0]) - 1)
    shift = [want - sum(column) for want, column in zip(wanted, zip(*plain, strict=True), strict=True)]
    liar.own[1] = contributed(liar.own[1], [n + by for n, by in zip(liar.own[1].numbers, shift, strict=True)])
    room.talk()
    assert all(one.totals == (tuple(wanted),) for one in room.all)
    assert [one.contradicted for one in room.all[1:]] == [not own[0] for own in plain[1:]]
    assert any(one.contradicted for one in room.all[1:])
    assert len({len(one.own[-1].body) for one in room.all}) == 1
    assert [one.missing() for one in room.all] == [[k for k in range(5) if k != i] for i in range(5)]


# What cannot be


@pytest.mark.parametrize("length", [0, 1, 4, 5, 30, 36, 37, 41, 44, 57])
@pytest.mark.parametrize("kind", [b"A", b"C", b"F", b"X", b"\0"])
def test_wrong_lengths_and_kinds_are_refused(kind, length):
    step = b"\0\0" if kind == b"A" else b"\1\0"
    body = (kind + b"\1\0" + step + bytes(60))[:length]
    right = {b"F": length == 37, b"C": length > 37 and (length - 37) % 8 == 0, b"A": length > 57}.get(kind, False)
    room = Room(VALUES).run(1)
    if right:
        room.all[0].take(sign(1, body))
        return
    with pytest.raises(Malformed):
        room.all[0].take(sign(1, body))


@given(st.binary(max_size=120), st.integers(0, 4))
def test_any_bytes_are_a_statement_or_malformed(body, steps):
    one = Room(VALUES).run(steps).all[0]
    with suppress(Malformed):
        assert not one.take(Statement(body, b"nobody's signature"))


@pytest.mark.parametrize("signer", [5, 6, 255, 2**16 - 1])
def test_a_stranger_is_refused(signer):
    one = Room(VALUES).all[0]
    body = b"A" + struct.pack("<HH", signer, 0) + bytes(80)
    with pytest.raises(Malformed, match="nobody in the charter"):
        one.take(sign(signer, body))


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_wrong_signature_is_refused_and_nobody_is_blamed(steps):
    room = Room(VALUES).run(steps)
    statement = room.all[1].own[-1]
    for forged in (
        Statement(statement.body, b""),
        Statement(statement.body, statement.signature[:-1]),
        Statement(statement.body, SimNotary(2).sign(signed_bytes(DIGEST, statement.body))),
        Statement(statement.body, SimNotary(1).sign(statement.body)),
        sign(1, statement.body, b"d" * 32),
    ):
        with pytest.raises(Malformed, match="signature"):
            room.all[0].take(forged)
    assert room.all[0].take(statement)


def test_a_statement_of_another_session_is_refused():
    room, other = Room(VALUES), Room(VALUES, agree([1] * 5, digest=b"d" * 32))
    with pytest.raises(Malformed, match="signature"):
        room.all[0].take(other.all[1].own[0])


def test_another_certificate_is_refused():
    with pytest.raises(Malformed, match="another certificate"):
        Room(VALUES).all[0].take(announced(1, certificate=SimNotary(2).certificate))


def test_what_overtakes_its_signers_announcement_is_left_to_be_asked_for():
    room, late = Room(VALUES).run(1), Room(VALUES).all[0]
    assert not late.take(room.all[1].own[1])
    assert late.held(1, 1) is None
    assert late.take(room.all[1].own[0])
    assert late.take(room.all[1].own[1])


@pytest.mark.parametrize("ahead", [2, 3, 60_000])
def test_what_is_not_due_yet_is_left_to_be_asked_for(ahead):
    """Who tells it on may be a step ahead itself, and cannot know: it is not to blame."""
    one = Room(VALUES).run(2).all[0]
    early = sign(1, b"C" + struct.pack("<HH", 1, one.step + ahead) + bytes(32 + 8))
    assert not one.take(early)
    assert one.held(one.step + ahead, 1) is None
    assert one.take(sign(1, b"C" + struct.pack("<HH", 1, one.step + 1) + bytes(32 + 8)))


def test_what_is_long_past_is_no_news_and_another_one_is_evidence():
    room = Room(VALUES).run(4)
    one = room.all[0]
    for step in range(4):
        old = room.all[1].own[step]
        assert not one.take(old)
        other = announced(1) if step == 0 else contributed(old, [n + 1 for n in old.numbers])
        with pytest.raises(Distrust) as told:
            one.take(other)
        assert (told.value.kind, judged(told.value)) == ("equivocation", (1,))
        assert bodies(told.value) == {old.body, other.body}


@pytest.mark.parametrize("steps", range(6))
def test_two_contents_by_one_signer_are_evidence(steps):
    room = Room(VALUES).run(steps)
    one, first = room.all[0], room.all[1].own[-1]
    assert one.take(first)
    assert not one.take(Statement(first.body, b"signed once more, as ECDSA does")), "contents are compared"
    second = sign(1, first.body[:-1] + bytes([first.body[-1] ^ 1])) if steps else announced(1)
    with pytest.raises(Distrust, match="signed two statements for step") as told:
        one.take(second)
    assert (told.value.kind, judged(told.value)) == ("equivocation", (1,))
    assert bodies(told.value) == {first.body, second.body}
    assert one.held(one.step, 1) == first


@given(st.integers(0, 5), st.integers(0, 4), st.integers(1, 200))
@example(0, 3, 1)
@settings(max_examples=30, deadline=None)
def test_two_contents_without_both_signatures_are_no_evidence(steps, signer, change):
    """Nobody can be accused by others."""
    room = Room(VALUES).run(steps)
    statement = room.all[signer].own[-1]
    one = room.all[(signer + 1) % 5]
    one.take(statement)
    body = bytearray(statement.body)
    body[-1 - change % (len(body) - 6)] ^= change
    with pytest.raises(Malformed):
        one.take(Statement(bytes(body), statement.signature))


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("ahead", [0, 1, 2, 40])
def test_an_own_statement_that_is_not_known_is_a_lost_journal(steps, ahead):
    """Whatever it is about, and however far ahead: never sign again in this session."""
    one = Room(VALUES).run(steps).all[2]
    step = max(one.step + ahead, 1)
    strange = sign(2, b"C" + struct.pack("<HH", 2, step) + bytes(32 + 8))
    with pytest.raises(Distrust, match="ran twice, or its disk was put back") as told:
        one.take(strange)
    assert (told.value.kind, told.value.about, told.value.evidence) == ("journal lost", (2,), None)
    for known in one.own:
        assert not one.take(known)
    with pytest.raises(Malformed, match="signature"):
        one.take(Statement(strange.body, SimNotary(1).sign(signed_bytes(DIGEST, strange.body))))


# Announcements

LOW_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 19 - 1).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 19 + 1).to_bytes(32, "little"),
]


@pytest.mark.parametrize("key", LOW_ORDER)
def test_a_key_of_low_order_names_its_signer(key):
    room = Room(VALUES)
    said = [one.own[0] for one in room.all]
    said[3] = announced(3, key)
    for one in (each for each in room.all if each._holding.number != 3):
        for statement in said:
            if statement.signer != one._holding.number:
                one.take(statement)
        with pytest.raises(Distrust, match="a key that hides nothing") as told:
            one.advance(one.ready())
        assert (told.value.kind, judged(told.value)) == ("broken protocol", (3,))
        assert bodies(told.value) == {said[3].body}
        assert len(one.own) == 1, "and nothing is contributed"


@pytest.mark.parametrize(("pooled", "count"), [(False, 0), (False, 2), (False, 2**32 - 1), (True, 0)])
def test_a_number_of_values_against_the_charter_names_its_signer(pooled, count):
    room = Room(VALUES, agree([1] * 5, pooled=pooled))
    said = [one.own[0] for one in room.all]
    said[3] = announced(3, count=count)
    one = room.all[0]
    for statement in said[1:]:
        one.take(statement)
    with pytest.raises(Distrust, match=f"announced {count} values") as told:
        one.advance(one.ready())
    assert (told.value.kind, judged(told.value, room.agreement)) == ("broken protocol", (3,))


def test_a_copied_key_is_harmless():
    """The third copies the second's key: the first's two masks do not cancel, so its answer is hidden all the same."""
    room = Room([1.0, 2.0, 3.0])
    copied = room.all[1].own[0].announced()[1]
    said = [room.all[0].own[0], room.all[1].own[0], announced(2, copied)]
    bare, hidden = [], []
    for one in room.all[:2]:
        for statement in said:
            if statement.signer != one._holding.number:
                one.take(statement)
        one.advance(one.ready())
        bare.append(contribution(one.search.question, OwnValues(room.holdings[one._holding.number].keys), 1))
        hidden.append(one.own[1].numbers)
    for plain, masked in zip(bare, hidden, strict=True):
        assert all(own != shown for own, shown in zip(plain, masked, strict=True))
    together = [sum(column) % MODULUS for column in zip(*hidden, strict=True)]
    assert all(total > 2 for total in together), "what the two have with the third does not cancel either"


# Contributions


@pytest.mark.parametrize("change", [lambda n: [*n, 0], lambda n: n[:-1], lambda n: [*n, *n]])
def test_another_number_of_numbers_names_its_signer(change):
    room = Room(VALUES).run(1)
    one, statement = room.all[0], room.all[3].own[1]
    for other in (room.all[k].own[1] for k in (1, 2, 4)):
        one.take(other)
    one.take(contributed(statement, change(list(statement.numbers))))
    with pytest.raises(Distrust, match="wrong length") as told:
        one.advance(one.ready())
    assert (told.value.kind, judged(told.value, room.agreement)) == ("broken protocol", (3,))


def test_a_final_hash_in_place_of_a_contribution_names_its_signer():
    room = Room(VALUES).run(1)
    one, statement = room.all[0], room.all[3].own[1]
    for other in (room.all[k].own[1] for k in (1, 2, 4)):
        one.take(other)
    one.take(sign(3, b"F" + statement.body[1:5] + statement.context))
    with pytest.raises(Distrust) as told:
        one.advance(one.ready())
    assert judged(told.value) == (3,)


@pytest.mark.parametrize("extra", [1, 7, 2**63, MODULUS - 1])
def test_totals_that_cannot_be_name_nobody(extra):
    room = Room(VALUES).run(1)
    liar = room.all[3].own[1]
    room.all[3].own[1] = contributed(liar, [liar.numbers[0] + extra, *liar.numbers[1:]])
    with pytest.raises(Impossible):
        room.talk()


@pytest.mark.parametrize("verify", [False, True])
def test_a_sum_outside_its_bracket_is_no_answer_and_the_search_goes_on_by_key(verify):
    room = Room(VALUES, agree([1] * 5, verify=verify)).run(1)
    while type(room.all[0].search.question[0]).__name__ == "Cells":
        room.talk()
    holder = next(one for one in room.all if any(one._plain))  # whoever is inside may say what it likes of its value
    if verify:
        part = holder.course.question[0]
        own = holder._vote((Lying(part.coordinate, part.edges),))
        masked = mask(own.plain, [1], holder._masks().values())
        body = holder.own[-1].body[: 5 + 32] + Vote(own.points, own.proofs, masked).encode()
        holder.own[-1] = sign(holder._holding.number, body)
    else:
        holder.own[-1] = contributed(holder.own[-1], [holder.own[-1].numbers[0] + 2**62])
    room.run()
    assert {one.search.value(0) for one in room.all} == {sorted(VALUES)[2]}


class Lying(KeySum):
    def answer(self, keys, weight):
        return [super().answer(keys, weight)[0] + 2**62]


# Contexts


def led_apart(values, liar=4):
    """Two groups who heard other announcements of one participant."""
    room = Room(values)
    said = [one.own[0] for one in room.all]
    other = Participant(room.agreement, holding_of(liar, [values[liar]], session=1), SimNotary(liar)).own[0]
    for one in room.all:
        number = one._holding.number
        if number == liar:
            continue
        for statement in said:
            heard = other if statement.signer == liar and number % 2 else statement
            if statement.signer != number:
                one.take(heard)
        one.advance(one.ready())
    return room, said[liar], other


def test_those_who_were_told_different_things_do_not_add_up():
    room, first, second = led_apart(VALUES)
    even, odd = room.all[0], room.all[1]
    assert even.own[1].context != odd.own[1].context
    for one in (even, odd):
        assert not one.apart
        for other in room.all[:4]:
            if other is not one:
                one.take(other.own[1])
        assert one.apart
        assert one.ready() is None
        assert one.missing() == [k for k in range(5) if k == 4 or k % 2 != one._holding.number % 2]
    with pytest.raises(Distrust) as told:
        even.take(second)
    assert (judged(told.value), bodies(told.value)) == ((4,), {first.body, second.body})


def test_contributions_in_two_contexts_tell_nothing_together():
    """The old attack, at one step: under one mask, their difference would be the difference of two answers."""
    differences = []
    for session in range(150):
        contexts = []
        for told in range(2):
            room = Room(VALUES[:3], session=session)
            other = holding_of(2, [VALUES[2]], session=1000 + told)
            said = [
                room.all[1].own[0],
                Participant(room.agreement, other, SimNotary(2)).own[0],
            ]
            victim = room.all[0]
            for statement in said:
                victim.take(statement)
            victim.advance(victim.ready())
            contexts.append(victim.own[1])
        assert contexts[0].context != contexts[1].context
        pairs = zip(contexts[0].numbers, contexts[1].numbers, strict=True)
        differences += [(a - b) % MODULUS for a, b in pairs]
    assert len(set(differences)) == len(differences)
    bins = np.bincount([each >> 60 for each in differences], minlength=16)
    assert chisquare(bins).pvalue > 1e-4
    bins = np.bincount([each & 15 for each in differences], minlength=16)
    assert chisquare(bins).pvalue > 1e-4


def test_contributions_of_two_sessions_tell_nothing_together():
    """A second session on the same values, to the same neighbours: other masks at every step."""
    rooms = [Room(VALUES, agree([1] * 5, digest=bytes([k]) * 32), session=k) for k in range(60)]
    for room in rooms:
        for one in room.all:
            one._agreement = room.agreement
        room.run(2)
    for left, right in combinations(rooms[:8], 2):
        a, b = (room.all[0].own[1].numbers for room in (left, right))
        assert not set(a) & set(b)
    first = [number for room in rooms for number in room.all[0].own[1].numbers]
    bins = np.bincount([each >> 60 for each in first], minlength=16)
    assert chisquare(bins).pvalue > 1e-4


def test_a_step_is_answered_once_ever():
    """Whatever is heard afterwards, there is one own statement a step, and no way to ask for another."""
    room = Room(VALUES).run(3)
    victim = room.all[0]
    own = list(victim.own)
    for liar in range(1, 5):
        for step in range(1, 3):
            old = room.all[liar].own[step]
            with pytest.raises(Distrust):
                victim.take(contributed(old, [n ^ 1 for n in old.numbers]))
    assert victim.own == own
    room.run()
    assert victim.own[: len(own)] == own


# Certificates


def certified():
    room = Room(VALUES).run()
    return room.agreement, transcript_of(room.all[0])


AGREEMENT, TRUE = certified()


def proved(transcript, agreement=AGREEMENT):
    return verify_transcript(transcript, agreement, SimNotary(0).verifier, NAMES)


def test_a_true_certificate_is_accepted():
    search = proved(TRUE)
    assert isinstance(search, SearchState)
    assert search.value(0) == 3.0
    assert search.proof(0) == (2, 2, 5)


def test_certificates_of_others_are_refused():
    with pytest.raises(Malformed):
        proved(TRUE, agree([1] * 5, digest=b"d" * 32))
    with pytest.raises(Malformed):
        proved(TRUE, agree([1, 1, 1, 1, 2]))
    with pytest.raises(Malformed):
        proved(TRUE, agree([1] * 4))
    with pytest.raises(Malformed):
        proved(TRUE, agree([1] * 5, arity=2))
    with pytest.raises(Malformed):
        proved(TRUE, agree([1] * 5, q=0.75))


def signed_by_all(totals):
    """A transcript of these totals, as far as they are a search, with everybody's signature on it."""
    announcements = [Statement(body, b"") for body in TRUE.announcements]
    search = SearchState.begin(AGREEMENT.make_rules([1] * 5))
    hashed = first_transcript(DIGEST, [each.tag for each in announcements], search.rules)
    for each in totals:
        if search.question is not None:
            hashed = next_transcript(step_context(hashed, search.question), each)
            search = search.fold(each)
    body = final_hash(hashed, search)
    said = [struct.pack("<cHH", b"F", i, len(totals) + 1) + body for i in range(5)]
    signatures = tuple(SimNotary(i).sign(signed_bytes(DIGEST, each)) for i, each in enumerate(said))
    return replace(TRUE, totals=tuple(totals), signatures=signatures)


def test_what_all_have_signed_must_be_a_search_from_its_beginning_to_its_end():
    assert signed_by_all(TRUE.totals) == TRUE
    with pytest.raises(Malformed, match="ends before the answer is known"):
        proved(signed_by_all(TRUE.totals[:-1]))
    with pytest.raises(Malformed, match="goes on after the answer was known"):
        proved(signed_by_all((*TRUE.totals, TRUE.totals[0])))


def test_hashes_are_of_all_that_was_agreed():
    """What differs in anything has another hash: nothing is left out, and nothing can be taken for something else."""
    rules = AGREEMENT.make_rules([1] * 5)
    tags = [b"t" * 54, b"u" * 54]
    openings = [(), ((),), ((1,),), ((2,),), ((1, 2),), ((1,), (2,))]
    first = [first_transcript(DIGEST, tags, replace(rules, opening=each)) for each in openings]
    first += [first_transcript(b"d" * 32, tags, rules), first_transcript(DIGEST, tags[::-1], rules)]
    first += [first_transcript(DIGEST, tags[:1], rules)]
    assert len(set(first)) == len(first)
    questions = [(Cells(0, (1, 2, 3)),), (Cells(1, (1, 2, 3)),), (Cells(0, (1, 2, 4)),), (Cells(0, (1, 2)),)]
    questions += [(KeySum(0, (1, 2)),), (Cells(0, (1, 2)), KeySum(0, (1, 2))), (KeySum(0, (1, 2)), Cells(0, (1, 2)))]
    asked = [step_context(before, each) for before in first[:2] for each in questions]
    assert len(set(asked)) == len(asked)
    told = [next_transcript(before, totals) for before in asked[:2] for totals in ((), (0,), (1,), (0, 1), (1, 0))]
    assert len(set(told)) == len(told)
    ends = [final_hash(before, replace(SearchState.begin(rules), answers=(k,))) for before in told[:2] for k in (1, 2)]
    assert len(set(ends)) == len(ends)


@st.composite
def changes(draw):
    """The true transcript with one thing changed."""
    whole = TRUE

    def put(field, k, entry):
        entries = list(getattr(whole, field))
        entries[k] = entry
        return replace(whole, **{field: tuple(entries)})

    match draw(st.sampled_from(["byte", "signature", "total", "move", "drop", "add", "swap", "opening", "cut"])):
        case "byte":
            k = draw(st.integers(0, 4))
            body = bytearray(whole.announcements[k])
            body[draw(st.integers(0, len(body) - 1))] ^= draw(st.integers(1, 255))
            return put("announcements", k, bytes(body))
        case "signature":
            k = draw(st.integers(0, 4))
            signature = bytearray(whole.signatures[k])
            signature[draw(st.integers(0, len(signature) - 1))] ^= draw(st.integers(1, 255))
            return put("signatures", k, bytes(signature))
        case "total":
            k = draw(st.integers(0, len(whole.totals) - 1))
            totals = list(whole.totals[k])
            place = draw(st.integers(0, len(totals) - 1))
            totals[place] = draw(st.integers(-2, 2**65).filter(lambda number: number != totals[place]))
            return put("totals", k, tuple(totals))
        case "move":  # as many in all, elsewhere
            k = draw(st.integers(0, len(whole.totals) - 1).filter(lambda k: len(whole.totals[k]) > 1))
            totals = list(whole.totals[k])
            a, b = draw(st.permutations(range(len(totals))))[:2]
            by = draw(st.integers(-3, 3).filter(bool))
            totals[a], totals[b] = totals[a] + by, totals[b] - by
            return put("totals", k, tuple(totals))
        case "drop":
            field = draw(st.sampled_from(["announcements", "totals", "signatures"]))
            entries = getattr(whole, field)
            k = draw(st.integers(0, len(entries) - 1))
            return replace(whole, **{field: entries[:k] + entries[k + 1 :]})
        case "add":
            field = draw(st.sampled_from(["announcements", "totals", "signatures"]))
            entries = getattr(whole, field)
            return replace(whole, **{field: (*entries, draw(st.sampled_from(entries)))})
        case "swap":
            field = draw(st.sampled_from(["announcements", "totals", "signatures"]))
            entries = list(getattr(whole, field))
            a, b = draw(st.permutations(range(len(entries))))[:2]
            entries[a], entries[b] = entries[b], entries[a]
            return replace(whole, **{field: tuple(entries)})
        case "opening":
            keys = st.lists(st.integers(-1, 2**64), max_size=3).map(tuple)
            return replace(whole, opening=draw(st.lists(keys, min_size=1, max_size=3).map(tuple)))
        case _:
            k = draw(st.integers(0, len(whole.totals) - 1))
            return put("totals", k, whole.totals[k][: draw(st.integers(0, len(whole.totals[k]) - 1))])


@given(changes())
@settings(max_examples=500, deadline=None)
def test_a_certificate_with_anything_changed_is_refused(changed):
    if changed == TRUE:
        return
    opening = changed.opening
    lenient = replace(AGREEMENT, make_rules=lambda counts: replace(AGREEMENT.make_rules(counts), opening=opening))
    for agreement in (AGREEMENT, lenient):
        with pytest.raises(Malformed):
            proved(changed, agreement)
