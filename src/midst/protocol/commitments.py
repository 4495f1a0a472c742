"""Commitments to whole numbers, and proofs about them that tell nothing else.

Pedersen's, on edwards25519: a number v with blinding r is committed to as v·H + r·G. Nobody knows a number h with
H = h·G, so whoever made a commitment can open it in one way only; and without r it fits every v. Blindings are large
and numbers mostly 0 or 1, and libsodium multiplies its base point G five times faster than any other: hence this way
round.

Rules:
- Points and scalars from elsewhere are checked before anything is computed: points are canonical, of prime order and
  not the identity; scalars are below L. Everything else raises `Invalid`.
- libsodium refuses 0·P, and any result that is the identity: a verifier that asks for it would crash on a liar's word.
  So both are handled here, and nowhere else.
- A challenge is a hash of everything that the proof is about, each part with its length before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from nacl import bindings as sodium

from midst.protocol.hashes import hash_parts

ORDER = 2**252 + 27742317777372353535851937790883648493  # L: of the group
POINT_BYTES = SCALAR_BYTES = 32
IDENTITY = bytes([1]) + bytes(31)
_H_LABEL = b"midst pedersen H v1"
_PROOF_LABEL = b"midst one of v2"

Point = bytes
Draw = Callable[[], int]  # a scalar that nobody else can guess
Alternatives = Sequence[Sequence[Point]]  # "of one of these lists every point is a multiple of G, and I know of what"


class Invalid(Exception):  # noqa: N818
    """Bytes that are no point or no scalar, or a proof that proves nothing."""


def multiply(k: int, point: Point) -> Point:
    """K times a point."""
    k %= ORDER
    if k == 0 or point == IDENTITY:
        return IDENTITY
    return point if k == 1 else sodium.crypto_scalarmult_ed25519_noclamp(_encode(k), point)


def multiply_base(k: int) -> Point:
    """k·G."""
    k %= ORDER
    return IDENTITY if k == 0 else sodium.crypto_scalarmult_ed25519_base_noclamp(_encode(k))


def add(points: Iterable[Point]) -> Point:
    """The sum of points."""
    total = IDENTITY
    for point in points:
        total = point if total == IDENTITY else sodium.crypto_core_ed25519_add(total, point)
    return total


def subtract(one: Point, other: Point) -> Point:
    """Their difference."""
    return sodium.crypto_core_ed25519_sub(one, other)


def _encode(k: int) -> bytes:
    return k.to_bytes(SCALAR_BYTES, "little")


G = sodium.crypto_scalarmult_ed25519_base_noclamp(_encode(1))
H = sodium.crypto_core_ed25519_from_uniform(hashlib.blake2b(_H_LABEL, digest_size=32).digest())


def commit(number: int, blinding: int) -> Point:
    """number·H + blinding·G."""
    return add((multiply(number, H), multiply_base(blinding)))


# Bytes


def encode_scalars(scalars: Iterable[int]) -> bytes:
    """Scalars, one after the other."""
    return b"".join(_encode(each % ORDER) for each in scalars)


def decode_scalars(raw: bytes) -> list[int]:
    """Inverse of `encode_scalars`.

    Raises:
        Invalid: one is not below L.
    """
    scalars = [int.from_bytes(each, "little") for each in _cut(raw)]
    if any(each >= ORDER for each in scalars):
        raise Invalid("a scalar that is too large")
    return scalars


def decode_points(raw: bytes) -> list[Point]:
    """Points, one after the other.

    Raises:
        Invalid: one is no point, or none of prime order.
    """
    points = _cut(raw)
    if not all(sodium.crypto_core_ed25519_is_valid_point(each) for each in points):
        raise Invalid("a point that is none")
    return points


def _cut(raw: bytes) -> list[bytes]:
    return [raw[start : start + 32] for start in range(0, len(raw), 32)]


# Proofs that one of several things is true, and not which (Cramer, Damgård and Schoenmakers)


def prove_one_of(branches: Alternatives, true: int, secrets: Sequence[int], about: bytes, draw: Draw) -> list[int]:
    """Prove that every point of one of the lists is a known multiple of G.

    The lists that are not true are simulated: with the challenge chosen before the answer, anybody can. All challenges
    must add up to the hash, so one of them could not be chosen.

    Args:
        branches: the lists.
        true: which one.
        secrets: its points are these multiples of G.
        about: what the proof belongs to; it proves nothing elsewhere.
        draw: where randomness comes from.

    Returns:
        A challenge a branch, then an answer a point.
    """
    challenges = [0 if k == true else draw() for k in range(len(branches))]
    answers = [[draw() for _ in points] for points in branches]
    # in the true branch the challenge is 0 so far, so these "answers" are the nonces
    nonces = [_nonce_points(*each) for each in zip(branches, challenges, answers, strict=True)]
    challenges[true] = (_challenge(branches, nonces, about) - sum(challenges)) % ORDER
    answers[true] = [
        (nonce + challenges[true] * secret) % ORDER for nonce, secret in zip(answers[true], secrets, strict=True)
    ]
    return [*challenges, *chain.from_iterable(answers)]


def check_one_of(branches: Alternatives, proof: Sequence[int], about: bytes) -> None:
    """Check such a proof.

    Raises:
        Invalid: it proves nothing.
    """
    challenges, rest = proof[: len(branches)], iter(proof[len(branches) :])
    answers = [[next(rest) for _ in points] for points in branches]
    nonces = [_nonce_points(*each) for each in zip(branches, challenges, answers, strict=True)]
    if (sum(challenges) - _challenge(branches, nonces, about)) % ORDER:
        raise Invalid("a proof that proves nothing")


def proof_length(branches: Alternatives) -> int:
    """How many scalars it has."""
    return len(branches) + sum(map(len, branches))


def _nonce_points(points: Sequence[Point], challenge: int, answers: Sequence[int]) -> list[Point]:
    return [
        subtract(multiply_base(answer), multiply(challenge, point))
        for point, answer in zip(points, answers, strict=True)
    ]


def _challenge(branches: Alternatives, nonces: Alternatives, about: bytes) -> int:
    points = chain.from_iterable((*branches, *nonces))
    return int.from_bytes(hash_parts(_PROOF_LABEL, G, H, about, *points), "little") % ORDER
