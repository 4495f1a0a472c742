"""Answers to a question that hold whoever gives them to one value: nobody can vote twice, or for another than before.

A participant answers with commitments to how many of its values lie in each cell, digit by digit, each proved to be 0
or 1; and with its numbers and blindings behind masks modulo L. All add up the masked ones, and check
that the sum opens the sum of the commitments.

Rules:
- Nested: the commitments of a bracket's cells add up, as points, to the participant's own commitment for that bracket,
  and those of the first bracket to its number of values times H. So the last blinding follows from the others, nothing
  is opened, and nobody appears in a bracket that it was not in.
- Of the last sum it is proved that whoever is outside the bracket adds 0. What somebody inside adds is its own vote.
- Digits are worth 1, 2, 4 … and the last one what these lack to the most that the number can be: 1, 2, 4 and 3 for at
  most 10. So nobody counts more in a bracket than it has values, or than all have there; and of a sum over all values
  nobody adds more than its values can.
- Where a total does not open, everybody signs commitments to its masks, ±(u·H + v·G): where those of a pair do not
  cancel, one of the two lies; where somebody's own do not explain its numbers, it does. The masks stay hidden, since
  v does: u·H alone would let anybody try both votes.
- Everything random derives from the session's secret, the context and the answer, so that who is started again says
  the same, and never uses a nonce for two answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import mul

from midst.protocol.commitments import (
    IDENTITY,
    ORDER,
    POINT_BYTES,
    SCALAR_BYTES,
    Alternatives,
    Draw,
    H,
    Invalid,
    Point,
    add,
    check_one_of,
    commit,
    decode_points,
    decode_scalars,
    encode_scalars,
    multiply,
    proof_length,
    prove_one_of,
    subtract,
)
from midst.protocol.hashes import hash_parts, secret_blocks
from midst.protocol.search import Cells, ClippedSum, KeySum, OwnValues, Question, contribution

CellPlace = tuple[int, int, int]  # coordinate, and the ends of a bracket or cell
Committed = dict[CellPlace, Point]  # how many of a participant's values lie where: for everybody to see
Openings = dict[CellPlace, tuple[int, int]]  # number and blinding: for itself
Blinded = tuple[int, int]  # a number and its blinding, masked or not

_ABOUT_LABEL = b"midst vote v2"
_RANDOM_LABEL = b"midst random v1"
_MASK_PERSON = b"midst scalars v1"


def begin_committed(brackets: Sequence[tuple[int, int]], values: int) -> Committed:
    """All of a participant's values lie in the first brackets."""
    return {(k, a, b): multiply(values, H) for k, (a, b) in enumerate(brackets)}


def begin_opened(brackets: Sequence[tuple[int, int]], values: int) -> Openings:
    """And what it knows of these commitments itself."""
    return {(k, a, b): (values, 0) for k, (a, b) in enumerate(brackets)}


@dataclass(frozen=True, eq=False, repr=False)
class Vote:
    """One participant's answer.

    Attributes:
        points: commitments to digits, and to what is added to a sum.
        proofs: of each of them, one after the other.
        masked: number and blinding behind masks, one of each number that the question asks for.
    """

    points: tuple[Point, ...]
    proofs: tuple[int, ...]
    masked: tuple[Blinded, ...]

    def encode(self) -> bytes:
        """As bytes: points, proofs, masked numbers."""
        return b"".join(self.points) + encode_scalars((*self.proofs, *chain.from_iterable(self.masked)))


def vote_sizes(question: Question, values: int) -> tuple[int, int, int]:
    """How many points, scalars of proofs and numbers answer a question, for a participant with so many values."""
    points = proofs = numbers = 0
    for part in question:
        own = min(values, 1) if isinstance(part, KeySum) else part.numbers * len(digit_values(part, values))
        points, numbers = points + own, numbers + part.numbers
        proofs += own * (3 + 2 * min(values, 2)) if isinstance(part, KeySum) else own * 4
    return points, proofs, numbers


def digit_values(part: Cells | ClippedSum, values: int) -> list[int]:
    """What each digit of a number is worth, for a participant with so many values: together, the most it can be."""
    most = min(values, part.inside) if isinstance(part, Cells) else part.most * values
    powers = [1 << q for q in range(most.bit_length() - 1)]
    return [*powers, most - sum(powers)] if most else []


def _digits(number: int, worth: Sequence[int]) -> list[int]:
    """The digits of a number, the last of which may be worth less than a power of two."""
    if not worth:
        return []
    last = int(number >= worth[-1])
    rest = number - last * worth[-1]
    return [*(rest >> q & 1 for q in range(len(worth) - 1)), last]


def vote_bytes(question: Question, values: int) -> int:
    """How long a vote is."""
    points, proofs, numbers = vote_sizes(question, values)
    return points * POINT_BYTES + (proofs + 2 * numbers) * SCALAR_BYTES


def decode_vote(raw: bytes, question: Question, values: int) -> Vote:
    """A vote from bytes.

    Raises:
        Invalid: it is none.
    """
    points, proofs, _ = vote_sizes(question, values)
    if len(raw) != vote_bytes(question, values):
        raise Invalid("a vote of the wrong length")
    scalars = decode_scalars(raw[points * POINT_BYTES :])
    masked = scalars[proofs:]
    pairs = zip(masked[::2], masked[1::2], strict=True)
    return Vote(tuple(decode_points(raw[: points * POINT_BYTES])), tuple(scalars[:proofs]), tuple(pairs))


@dataclass(frozen=True, eq=False, repr=False)
class Claims:
    """What a vote's commitments say.

    Attributes:
        numbers: the commitment of each number that the question asks for.
        cells: those of the cells.
        proved: what is to be proved, in order.
    """

    numbers: tuple[Point, ...]
    cells: Committed
    proved: tuple[Alternatives, ...]


def read_claims(question: Question, values: int, committed: Committed, points: Iterable[Point]) -> Claims:
    """What the points say to which somebody with so many values commits now, and what is to be proved of them.

    Raises:
        Invalid: the cells of a bracket do not add up to what it has committed to before.
    """
    rest = iter(points)
    numbers: list[Point] = []
    proved: list[Alternatives] = []
    cells: Committed = {}
    for part in question:
        if isinstance(part, KeySum):
            inside = add(committed[each] for each in intervals_of(part))
            numbers.append(next(rest) if values else IDENTITY)
            if values:
                held = ([subtract(inside, multiply(k, H))] for k in range(1, min(values, 2) + 1))
                proved.append([[inside, numbers[-1]], *held])
            continue
        worth = digit_values(part, values)
        for _ in range(part.numbers):
            digits = [next(rest) for _ in worth]
            proved += [[[digit], [subtract(digit, H)]] for digit in digits]
            numbers.append(add(multiply(one, digit) for one, digit in zip(worth, digits, strict=True)))
        if isinstance(part, ClippedSum):
            continue
        cells |= zip(intervals_of(part), numbers[-part.numbers :], strict=True)
        if add(cells[each] for each in intervals_of(part)) != committed[part.coordinate, part.edges[0], part.edges[-1]]:
            raise Invalid("cells that do not add up to what it committed to before")
    return Claims(tuple(numbers), cells, tuple(proved))


def intervals_of(part: Cells | KeySum) -> list[CellPlace]:
    """The cells of a probe, or the brackets of a sum."""
    ends = pairwise(part.edges) if isinstance(part, Cells) else zip(part.edges[::2], part.edges[1::2], strict=True)
    return [(part.coordinate, a, b) for a, b in ends]


def number_weights(question: Question, weight: int) -> list[int]:
    """What each of a participant's numbers counts: its weight in a cell, itself in a sum."""
    return [1 if isinstance(part, KeySum) else weight for part in question for _ in range(part.numbers)]


def check_vote(vote: Vote, claims: Claims, about: bytes) -> None:
    """Check every proof of a vote.

    Raises:
        Invalid: one proves nothing.
    """
    start = 0
    for k, branches in enumerate(claims.proved):
        end = start + proof_length(branches)
        check_one_of(branches, vote.proofs[start:end], about + k.to_bytes(4, "big"))
        start = end


def bind(digest: bytes, context: bytes, signer: int, points: Iterable[Point]) -> bytes:
    """What the proofs of a vote belong to: charter, transcript, participant, and all commitments of the step."""
    return hash_parts(_ABOUT_LABEL, digest, context, signer.to_bytes(2, "big"), *points)


# One's own


@dataclass(frozen=True, eq=False, repr=False)
class OwnVote:
    """One's own answer, before it is masked.

    Attributes:
        points: commitments.
        proofs: of each.
        plain: number and blinding of each number.
        opened: of the cells.
    """

    points: tuple[Point, ...]
    proofs: tuple[int, ...]
    plain: tuple[Blinded, ...]
    opened: Openings


def make_vote(
    question: Question,
    values: OwnValues,
    committed: Committed,
    opened: Openings,
    seed: bytes,
    digest: bytes,
    context: bytes,
    signer: int,
) -> OwnVote:
    """One's own answer, with its proofs, after one has committed to `committed` by the blindings `opened`."""
    draw = randomness(seed, context, contribution(question, values, 1))
    count = len(values.keys[0])
    points: list[Point] = []
    known: list[tuple[int, list[int]]] = []  # of each proof: which branch is true, and its secrets
    plain: list[Blinded] = []
    fresh: Openings = {}
    for part in question:
        own = part.answer(values.about(part), 1)
        if not isinstance(part, KeySum):
            worth = digit_values(part, count)
            parent = opened[part.coordinate, part.edges[0], part.edges[-1]][1] if isinstance(part, Cells) else None
            for number, blindings in zip(own, _blindings(len(own), worth, parent, draw), strict=True):
                digits = _digits(number, worth)
                points += map(commit, digits, blindings)
                known += [(digit, [blinding]) for digit, blinding in zip(digits, blindings, strict=True)]
                plain.append((number, _whole(blindings, worth)))
            if isinstance(part, Cells):
                fresh |= zip(intervals_of(part), plain[-len(own) :], strict=True)
        elif count:
            held = [opened[each] for each in intervals_of(part)]
            number, blinding = sum(count for count, _ in held), sum(each for _, each in held)
            plain.append((own[0], draw()))
            points.append(commit(*plain[-1]))
            known.append((number, [blinding] if number else [blinding, plain[-1][1]]))
        else:
            plain.append((0, 0))
    claims = read_claims(question, count, committed, points)
    about = bind(digest, context, signer, points)
    proofs = [
        prove_one_of(branches, true, secrets, about + k.to_bytes(4, "big"), draw)
        for k, (branches, (true, secrets)) in enumerate(zip(claims.proved, known, strict=True))
    ]
    return OwnVote(tuple(points), tuple(chain.from_iterable(proofs)), tuple(plain), fresh)


def _blindings(numbers: int, worth: Sequence[int], parent: int | None, draw: Draw) -> list[list[int]]:
    """Of every digit of every number; of cells, each times what its digit is worth, they are together the parent's."""
    drawn = [[draw() for _ in worth] for _ in range(numbers)]
    if worth and parent is not None:
        drawn[-1][0] += parent - sum(_whole(each, worth) for each in drawn)
        drawn[-1][0] %= ORDER
    return drawn


def _whole(digits: Sequence[int], worth: Sequence[int]) -> int:
    whole: int = sum(map(mul, digits, worth))
    return whole % ORDER


def randomness(seed: bytes, context: bytes, answers: Sequence[int]) -> Draw:
    """Scalars that follow from a secret, and from what they are for."""
    blocks = secret_blocks(seed, _RANDOM_LABEL, context, answers)
    return lambda: int.from_bytes(next(blocks), "big") % ORDER


# Masks modulo L


def own_masks(number: int, pairs: Mapping[int, bytes], context: bytes, count: int) -> dict[int, list[Blinded]]:
    """One's masks for a step with each of the others, of number and blinding: the lower number adds."""
    contexts = [context + k.to_bytes(4, "big") for k in range(2 * count)]
    masks = {}
    for other, key in pairs.items():
        sign = 1 if number < other else -1
        drawn = (hashlib.blake2b(each, key=key, person=_MASK_PERSON).digest() for each in contexts)
        scalars = [sign * int.from_bytes(each, "big") % ORDER for each in drawn]
        masks[other] = list(zip(scalars[::2], scalars[1::2], strict=True))
    return masks


def mask(plain: Sequence[Blinded], weights: Sequence[int], masks: Iterable[Sequence[Blinded]]) -> tuple[Blinded, ...]:
    """Numbers and blindings, times what they count, behind all masks."""
    hidden = [(weight * number, weight * blinding) for (number, blinding), weight in zip(plain, weights, strict=True)]
    for each in masks:
        hidden = [(y + u, r + v) for (y, r), (u, v) in zip(hidden, each, strict=True)]
    return tuple((y % ORDER, r % ORDER) for y, r in hidden)


def commit_to_masks(masks: Mapping[int, Sequence[Blinded]]) -> bytes:
    """What is signed in a dispute: commitments to one's masks with each of the others, in order."""
    return b"".join(commit(u, v) for other in sorted(masks) for u, v in masks[other])


# What they add up to


def open_totals(weighted: Sequence[Sequence[Point]], masked: Sequence[Sequence[Blinded]]) -> tuple[int, ...] | None:
    """The totals of everybody's numbers; None where one does not open the commitments, each times what it counts."""
    totals = []
    for points, pairs in zip(zip(*weighted, strict=True), zip(*masked, strict=True), strict=True):
        number, blinding = (sum(each) % ORDER for each in zip(*pairs, strict=True))
        if add(points) != commit(number, blinding):
            return None
        totals.append(number)
    return tuple(totals)


def cancel(one: Sequence[Point], other: Sequence[Point]) -> bool:
    """Whether a pair's commitments to its masks cancel: if not, one of the two lies."""
    return all(add(each) == IDENTITY for each in zip(one, other, strict=True))


def explain(weighted: Sequence[Point], masked: Sequence[Blinded], said: Mapping[int, Sequence[Point]]) -> bool:
    """Whether a participant's masked numbers are what it committed to, and `said` of its masks: if not, it lies."""
    masks = zip(*said.values(), strict=True)
    explained = (add((point, *each)) for point, each in zip(weighted, masks, strict=True))
    return all(point == commit(*pair) for point, pair in zip(explained, masked, strict=True))
