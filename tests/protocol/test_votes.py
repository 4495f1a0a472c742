"""Votes that hold whoever gives them to one value: what a liar can do, and how everybody else sees it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simnet.notary import SimNotary
from test_participant import NAMES, Room, agree, sign

from midst.protocol import commitments, participant
from midst.protocol.commitments import IDENTITY, ORDER, G, H, Invalid, add, commit, encode_scalars, multiply, subtract
from midst.protocol.course import Evidence, judge, verify_transcript
from midst.protocol.hashes import hash_parts
from midst.protocol.participant import Distrust, transcript_of
from midst.protocol.search import Cells, Impossible, KeySum
from midst.protocol.statements import Malformed, make_body
from midst.protocol.votes import (
    Vote,
    bind,
    commit_to_masks,
    decode_vote,
    mask,
    number_weights,
    own_masks,
    randomness,
)

VALUES = [3.0, -2.5, 11.0, 7.25, -40.0]
LIAR = 1
TORSION = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")  # of order 8


# A room with a liar in it


def play(room, lie, liar=LIAR):
    """Everybody talks, the liar by what `lie` makes of each of its statements; how it ended for the others."""
    ends = {}
    others = [one for i, one in enumerate(room.all) if i != liar]
    for _ in range(400):
        said = [one.own[-1] for one in room.all]
        said[liar] = lie(room.all[liar], said[liar])
        for i, one in enumerate(room.all):
            for statement in said:
                if statement.signer != i and i not in ends:
                    with suppress(Malformed):
                        one.take(statement)
        room.all[liar].own[-1] = said[liar]
        for i, one in enumerate(room.all):
            try:
                if i not in ends and (statements := one.ready()) is not None:
                    one.advance(statements)
            except Distrust as error:
                ends[i] = error
            except Impossible:
                ends[i] = None  # the liar itself, which has lost count
        if all(one.certified or one._holding.number in ends for one in others):
            return [ends.get(one._holding.number) for one in others]
    raise AssertionError("it never ended")


def named(room, ends):
    """Whom all the others name, each with evidence that convinces a stranger."""
    accused = {judge(end.evidence, room.agreement, SimNotary(0).verifier).accused for end in ends}
    assert accused == {end.about for end in ends}
    (about,) = accused
    return about


def verified(values=VALUES, **how):
    return Room(values, agree([1] * len(values), verify=True, **how))


def on(kind, change, step=None):
    """A lie about one kind of statement: the content is changed, and signed."""

    def lie(one, statement):
        if statement.kind != kind or step not in (None, statement.step):
            return statement
        content = change(one, statement.content)
        return sign(statement.signer, statement.body[: 5 + 32] + content)

    return lie


def vote(one, change):
    """Another vote in place of the right one."""
    question, values = one.course.question, one.course.values(one._holding.number)
    return lambda content: change(decode_vote(content, question, values)).encode()


def revote(change):
    return lambda one, content: vote(one, change)(content)


def add_one(ballot):
    (y, r), *rest = ballot.masked
    return replace(ballot, masked=((y + 1, r), *rest))


def first_proof(scalars):
    return lambda ballot: replace(ballot, proofs=(*scalars, *ballot.proofs[len(scalars) :]))


def first_point(point):
    return lambda ballot: replace(ballot, points=(point, *ballot.points[1:]))


def raw_scalar(one, content):
    """A scalar of a proof, plus L: the same number, in another spelling."""
    start = 32 * len(decode_vote(content, one.course.question, 1).points)
    number = int.from_bytes(content[start : start + 32], "little") + ORDER
    return content[:start] + number.to_bytes(32, "little") + content[start + 32 :]


LIES = {
    "numbers that it has not voted": on(b"C", revote(add_one), 1),
    "the same in a later step": on(b"C", revote(add_one), 2),
    "a point of small order": on(b"C", revote(first_point(TORSION)), 1),
    "no point at all": on(b"C", revote(first_point(b"\xff" * 32)), 1),
    "the identity": on(b"C", revote(first_point(IDENTITY)), 1),
    "another commitment": on(b"C", revote(first_point(commit(1, 5))), 1),
    "a proof of zeros": on(b"C", revote(first_proof([0, 0, 0, 0])), 1),
    "a scalar that is too large": on(b"C", raw_scalar, 1),
    "too short": on(b"C", lambda one, content: content[:-32], 1),
    "too long": on(b"C", lambda one, content: content + bytes(32), 1),
    "another kind": lambda one, said: sign(LIAR, b"F" + said.body[1 : 5 + 32]) if said.step == 1 else said,
    "numbers as without proofs": on(b"C", lambda one, content: bytes(8 * one.course.numbers), 1),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_names_the_liar_with_evidence(name):
    room = verified()
    assert named(room, play(room, LIES[name])) == (LIAR,)


def both(*lies):
    def lie(one, statement):
        for each in lies:
            statement = each(one, statement)
        return statement

    return lie


DISPUTES = {
    "no points": lambda one, content: b"\xff" * len(content),
    "too few": lambda one, content: content[:-32],
    "one too many": lambda one, content: content + content[:32],
    "the identity": lambda one, content: IDENTITY + content[32:],
    "another mask": lambda one, content: commit(1, 2) + content[32:],
}


@pytest.mark.parametrize("name", DISPUTES)
def test_who_lies_in_the_dispute_too_is_named(name):
    room = verified()
    assert LIAR in named(room, play(room, both(on(b"C", revote(add_one), 1), on(b"D", DISPUTES[name]))))


def test_a_false_mask_that_is_stood_by_names_the_pair():
    """The liar uses another key with 4, all the time; nobody can tell which of the two does."""
    room = verified()

    def lie(one, statement):
        if one.course is not None and one._pairs[4] != b"x" * 32:
            one._pairs[4] = b"x" * 32
            own = one._vote(one.course.question)
            masked = mask(own.plain, number_weights(one.course.question, 1), one._masks().values())
            return sign(LIAR, statement.body[: 5 + 32] + Vote(own.points, own.proofs, masked).encode())
        return statement

    assert named(room, play(room, lie)) == (1, 4)


def test_copied_votes_name_the_copier():
    """Commitments and proofs of another participant, sent as one's own: proofs hold for their signer only."""
    room = verified()
    theirs = []

    def lie(one, statement):
        if statement.kind != b"C":
            return statement
        theirs.append(decode_vote(room.all[3].own[-1].content, one.course.question, 1))
        return on(b"C", revote(lambda own: replace(theirs[0], masked=own.masked)))(one, statement)

    assert named(room, play(room, lie)) == (LIAR,)


def test_two_votes_for_minus_one_are_no_vote(monkeypatch):
    room = verified()

    def lie(one, statement):
        if statement.step != 1:
            return statement
        monkeypatch.setattr(participant, "make_vote", forge([2, -1] + [0] * (one.course.numbers - 2)))
        own = one._vote(one.course.question)
        masked = mask(own.plain, number_weights(one.course.question, 1), one._masks().values())
        monkeypatch.undo()
        return sign(LIAR, statement.body[: 5 + 32] + Vote(own.points, own.proofs, masked).encode())

    assert named(room, play(room, lie)) == (LIAR,)


def forge(wanted):
    """Commitments to any numbers that add up to one, with the best proofs there are."""

    def make(question, keys, committed, opened, seed, digest, context, signer):
        rng = Random(1)
        blindings = [rng.randrange(ORDER) for _ in wanted]
        blindings[-1] = -sum(blindings[:-1]) % ORDER
        points = [commit(number, blinding) for number, blinding in zip(wanted, blindings, strict=True)]
        about = bind(digest, context, signer, points)
        proofs = []
        for k, (number, blinding, point) in enumerate(zip(wanted, blindings, points, strict=True)):
            branches = [[point], [subtract(point, H)]]
            draw = lambda: rng.randrange(ORDER)  # noqa: E731
            proofs += commitments.prove_one_of(branches, number % 2, [blinding], about + k.to_bytes(4, "big"), draw)
        plain = tuple(zip(wanted, blindings, strict=True))
        return participant.OwnVote(tuple(points), tuple(proofs), plain, {})

    return make


class Inside(Cells):
    """Votes for the cell where the liar is not."""

    def answer(self, keys, weight):
        return [1, *([0] * (self.numbers - 1))]


def test_nobody_appears_in_a_bracket_that_it_was_not_in():
    room = verified()

    def lie(one, statement):
        if statement.kind != b"C" or any(one._plain) or not isinstance(one.course.question[0], Cells):
            return statement
        part = one.course.question[0]
        bracket = part.coordinate, part.edges[0], part.edges[-1]
        one._shown[LIAR].committed[bracket], one._opened[bracket] = H, (1, 0)  # as if it were inside
        own = one._vote((Inside(part.coordinate, part.edges),))
        masked = mask(own.plain, number_weights(one.course.question, 1), one._masks().values())
        return sign(LIAR, statement.body[: 5 + 32] + Vote(own.points, own.proofs, masked).encode())

    assert named(room, play(room, lie)) == (LIAR,)


class More(KeySum):
    def answer(self, keys, weight):
        return [super().answer(keys, weight)[0] + 7]


def test_who_is_outside_adds_nothing_to_the_last_sum():
    room = verified()

    def lie(one, statement):
        if statement.kind != b"C" or not isinstance(one.course.question[0], KeySum):
            return statement
        assert not any(one._plain), "the liar is outside"
        part = one.course.question[0]
        own = one._vote((More(part.coordinate, part.edges),))
        masked = mask(own.plain, [1], one._masks().values())
        return sign(LIAR, statement.body[: 5 + 32] + Vote(own.points, own.proofs, masked).encode())

    assert named(room, play(room, lie)) == (LIAR,)


@given(st.lists(st.integers(-50, 50).map(float), min_size=3, max_size=6), st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_whoever_lies_the_answer_is_within_one_rank_or_the_liar_is_named(values, seed):
    """A liar that changes bytes of what it says at random, or votes for another value than it has, from the start."""
    rng = Random(seed)
    room = verified(values)
    if rng.random() < 0.5:
        other = rng.uniform(-60, 60)
        room.all[LIAR]._holding = replace(room.all[LIAR]._holding, keys=verified([other] * 3).holdings[0].keys)

    def lie(one, statement):
        if statement.kind == b"A" or rng.random() < 0.7:
            return statement
        content = bytearray(statement.content)
        if content:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        return sign(LIAR, statement.body[: 5 + 32] + bytes(content))

    ends = play(room, lie)
    if any(ends):
        assert all(ends)
        assert LIAR in named(room, ends)
        return
    honest = sorted(value for i, value in enumerate(values) if i != LIAR)
    rank = (len(values) - 1) // 2  # with one of the others', any rank of the honest from rank − 1 to rank
    low, high = honest[max(rank - 1, 0)], honest[min(rank, len(honest) - 1)]
    for i, one in enumerate(room.all):
        assert i == LIAR or low <= one.search.value(0) <= high


# What is no evidence


def test_evidence_shows_nothing_once_anything_in_it_is_changed():
    room = verified()
    evidence = play(room, LIES["numbers that it has not voted"])[0].evidence
    check = SimNotary(0).verifier
    assert judge(evidence, room.agreement, check).accused == (LIAR,)
    body, signature = evidence.statements[1]
    honest = room.all[0]
    blank = (bytes(32), *evidence.seals[1:])
    statements = evidence.statements
    wrong = [
        replace(evidence, statements=statements[:-1]),
        replace(evidence, statements=statements[1:]),
        replace(evidence, statements=((body, signature[:-1] + b"x"), *statements[1:])),
        replace(evidence, statements=()),
        replace(evidence, certificates=()),
        replace(evidence, certificates=(b"another",)),
        replace(evidence, tags=evidence.tags[::-1]),
        replace(evidence, tags=()),
        replace(evidence, seals=blank),
        replace(evidence, seals=()),
        replace(evidence, totals=((1, 2),)),
        replace(evidence, opening=((1, 2),)),
        Evidence(
            tuple((each.body, each.signature) for each in honest.own), (SimNotary(0).certificate,), *rest_of(evidence)
        ),
    ]
    for each in wrong:
        with pytest.raises((Malformed, Impossible)):
            judge(each, room.agreement, check)


def rest_of(evidence):
    return evidence.tags, evidence.opening, evidence.totals, evidence.seals


def test_no_honest_participant_can_be_framed_by_its_own_words():
    """Whatever subset of an honest run is shown, nobody is found to lie."""
    room = verified().run()
    rng = Random(3)
    everything = [each for one in room.all for each in one.own]
    course = room.all[0].course
    for _ in range(300):
        chosen = rng.sample(everything, rng.randint(1, 5))
        signers = sorted({each.signer for each in chosen})
        shown = Evidence(
            tuple((each.body, each.signature) for each in chosen),
            tuple(SimNotary(i).certificate for i in signers),
            course.tags,
            (),
            course.totals[: rng.randint(0, len(course.totals))],
            course.seals[: rng.randint(0, len(course.seals))],
        )
        with pytest.raises(Malformed):
            judge(shown, room.agreement, SimNotary(0).verifier)


def test_evidence_without_a_good_signature_shows_nothing():
    room = verified()
    evidence = play(room, LIES["numbers that it has not voted"])[0].evidence
    forged = tuple((body, bytes(64)) for body, _ in evidence.statements)
    assert judge(evidence, room.agreement, SimNotary(0).verifier).accused == (LIAR,)
    with pytest.raises(Malformed, match="signature"):
        judge(replace(evidence, statements=forged), room.agreement, SimNotary(0).verifier)


def test_what_was_signed_in_another_context_convicts_nobody():
    """A liar tells others another instance of its own; what they then sign is right there, and nowhere else."""
    here, there = (Room(VALUES, agree([1] * 5, verify=True), session=k).run(1) for k in (0, 1))
    said = here.all[2].own[:2]
    tags = list(there.all[0].course.tags)
    tags[2] = said[0].tag
    shown = Evidence(
        tuple((each.body, each.signature) for each in said), (SimNotary(2).certificate,), tuple(tags), (), (), ()
    )
    with pytest.raises(Malformed, match="shows nothing"):
        judge(shown, here.agreement, SimNotary(0).verifier)


def dispute(room, signer, context):
    masks = own_masks(signer, room.all[signer]._pairs, context, 4)
    return sign(signer, make_body(b"D", signer, 2, context + commit_to_masks(masks)))


def test_no_honest_pair_is_convicted_by_disputes_about_different_things():
    """A liar may have led the two to different contributions: their masks for these do not cancel."""
    room = verified().run(1)
    certificates = tuple(SimNotary(i).certificate for i in (2, 3))
    for contexts in ((b"1" * 32, b"2" * 32), (b"1" * 32, b"1" * 32)):
        said = [dispute(room, i, context) for i, context in zip((2, 3), contexts, strict=True)]
        shown = Evidence(tuple((each.body, each.signature) for each in said), certificates)
        with pytest.raises(Malformed):
            judge(shown, room.agreement, SimNotary(0).verifier)


def test_a_certificate_of_votes_is_of_these_contributions():
    room = verified().run()
    transcript = transcript_of(room.all[0])
    assert verify_transcript(transcript, room.agreement, SimNotary(0).verifier, NAMES).answers
    for seals in [(), (bytes(32), *transcript.seals[1:]), transcript.seals[:-1]]:
        with pytest.raises(Malformed):
            verify_transcript(replace(transcript, seals=seals), room.agreement, SimNotary(0).verifier, NAMES)


# Commitments


@given(st.integers(0, ORDER - 1), st.integers(0, ORDER - 1), st.integers(0, ORDER - 1), st.integers(0, ORDER - 1))
@settings(max_examples=30, deadline=None)
def test_commitments_add_up(a, r, b, s):
    assert add((commit(a, r), commit(b, s))) == commit(a + b, r + s)
    assert subtract(commit(a, r), commit(b, s)) == commit(a - b, r - s)
    assert multiply(b, commit(a, r)) == commit(a * b, r * b)


def test_the_second_generator_is_from_a_hash_and_no_multiple_anybody_knows():
    again = commitments.sodium.crypto_core_ed25519_from_uniform(
        blake2b(b"midst pedersen H v1", digest_size=32).digest()
    )
    assert again == H
    assert commitments.sodium.crypto_core_ed25519_is_valid_point(H)
    assert H not in {multiply(k, G) for k in range(1, 50)}


@pytest.mark.parametrize("raw", [bytes(32), IDENTITY, TORSION, b"\xff" * 32, bytes([2]) + bytes(31)])
def test_odd_points_are_refused(raw):
    with pytest.raises(Invalid):
        commitments.decode_points(raw)


@pytest.mark.parametrize("number", [ORDER, ORDER + 1, 2**256 - 1])
def test_odd_scalars_are_refused(number):
    with pytest.raises(Invalid):
        commitments.decode_scalars(number.to_bytes(32, "little"))
    assert commitments.decode_scalars(encode_scalars([ORDER - 1, 0])) == [ORDER - 1, 0]


def test_no_two_lists_of_parts_have_one_hash():
    lists = ((b"ab", b"c"), (b"a", b"bc"), (b"abc",), (b"abc", b""))
    assert len({hash_parts(*parts) for parts in lists}) == 4


def test_a_proof_belongs_to_its_signer_and_its_step():
    about = [
        (b"c", b"s", 1, [G]),
        (b"d", b"s", 1, [G]),
        (b"c", b"t", 1, [G]),
        (b"c", b"s", 2, [G]),
        (b"c", b"s", 1, [H]),
    ]
    assert len({bind(*each) for each in about}) == len(about)


def test_no_nonce_serves_two_answers():
    draws = [randomness(b"seed", context, answers)() for context in (b"a", b"b") for answers in ([0, 1], [1, 0])]
    assert len(set(draws)) == 4


def test_a_proof_is_of_its_nonces():
    """Challenges that add up to a hash of something else, with any answers, prove nothing."""
    branches = [[commit(5, 3)], [subtract(commit(5, 3), H)]]
    for known in ([], branches):
        whole = commitments._challenge(branches, known, b"about")
        with pytest.raises(Invalid):
            commitments.check_one_of(branches, [7, (whole - 7) % ORDER, 1, 2], b"about")


def test_a_vote_says_nothing_of_its_own_without_the_secret():
    """The same vote by another secret shares no byte of commitments, proofs or masked numbers."""
    one, other = (Room(VALUES, agree([1] * 5, verify=True), session=k).run(1) for k in (0, 1))
    votes = [decode_vote(each.all[2].own[1].content, each.all[2].course.question, 1) for each in (one, other)]
    for left, right in zip(votes[0].points, votes[1].points, strict=True):
        assert left != right
    assert not set(votes[0].proofs) & set(votes[1].proofs)
