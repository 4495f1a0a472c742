"""How a sum that somebody altered on its way is noticed, and where it happened.

Sums go up a tree: nobody but a client's parent sees what it sends. So everybody first signs a hash of the vectors that
it contributed, of those that it sent up, and of the totals that it was told. From all of these a seed is hashed, which
nobody could know before. Then everybody signs 64 random sums over its vectors, and checks everybody's: what a client
sent up must be what it contributed and what its children sent up, and what the root sent up are the totals.

Rules:
- Numbers are modulo 2^bits, and so are sums over them. Numbers of the same bits form one long row y, and sum j is
  Σ_k r_{j+k}·y_k with random bits r (a Toeplitz matrix). An error e ≠ 0 is 2^v·e′ with an odd number in e′; modulo 2
  the matrix hashes e′ to 0 with a chance of 2^−64, so that is the chance of an error nobody notices.
- What a client alters as if it had contributed it is its own contribution, and no lie about others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from midst.protocol.vectors.formats import Words, little, modulo, split_bytes
from midst.protocol.vectors.lanes import key_stream, unpack
from midst.protocol.vectors.search import Question
from midst.types import Ints

SUMS = 64
_LABEL = b"midst tampering v1"
_BLOCK = 1 << 14  # numbers below 256, times 0 or 1: their sum is exact in a float32

Combined = dict[int, Words]  # by bits, the sums over all numbers of so many


def combine(vectors: Sequence[bytes], questions: Sequence[Question], seed: bytes) -> Combined:
    """The random sums, drawn from a seed, over some packed vectors, one a question."""
    rows: dict[int, list[Words]] = {}
    for vector, question in zip(vectors, questions, strict=True):
        for part, numbers in zip(question, unpack(vector, question), strict=True):
            rows.setdefault(part.bits, []).append(numbers)
    return {bits: _sums(np.concatenate(rows[bits]), bits, seed) for bits in sorted(rows)}


def add_combined(parts: Iterable[Combined]) -> Combined:
    """The sums over several clients' vectors."""
    found: Combined = {}
    for part in parts:
        for bits, sums in part.items():
            found[bits] = modulo(found.get(bits, np.zeros(SUMS, np.uint64)) + sums, bits)
    return found


def same(one: Combined, other: Combined) -> bool:
    """Whether sums are the same."""
    return one.keys() == other.keys() and all(np.array_equal(one[bits], other[bits]) for bits in one)


def encode_combined(combined: Combined) -> bytes:
    """Sums as bytes."""
    return b"".join(sums.astype(little(bits)).tobytes() for bits, sums in sorted(combined.items()))


def decode_combined(raw: bytes, questions: Iterable[Question]) -> Combined | None:
    """Inverse of `encode_combined`; None where these are no sums over answers to such questions."""
    widths = sorted({part.bits for question in questions for part in question})
    if len(raw) != most_combined(widths):
        return None
    sums = split_bytes(raw, ((little(bits), SUMS) for bits in widths))
    return {bits: each.astype(np.uint64) for bits, each in zip(widths, sums, strict=True)}


def most_combined(bits: Iterable[int]) -> int:
    """Bytes of sums over numbers of these bits."""
    return sum(SUMS * little(each).itemsize for each in set(bits))


def _sums(numbers: Words, bits: int, seed: bytes) -> Words:
    drawn = _random_bits(seed, bits, len(numbers) + SUMS - 1)
    planes = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).view(np.uint8).reshape(len(numbers), -1)
    found = np.zeros(SUMS, np.uint64)
    for k in range(-(-bits // 8)):
        found += _sums_of_bytes(np.ascontiguousarray(planes[:, k]), drawn).astype(np.uint64) << np.uint64(8 * k)
    return modulo(found, bits)


def _sums_of_bytes(numbers: Words, drawn: Words) -> Ints:
    found = np.zeros(SUMS, np.int64)
    for start in range(0, len(numbers), _BLOCK):
        some = numbers[start : start + _BLOCK].astype(np.float32)
        stop = start + len(some)
        found += np.array([np.dot(drawn[start + j : stop + j], some) for j in range(SUMS)]).astype(np.int64)
    return found


def _random_bits(seed: bytes, bits: int, count: int) -> Words:
    key = hashlib.blake2b(_LABEL + seed + bytes([bits]), digest_size=32).digest()
    stream = np.frombuffer(key_stream(key, -(-count // 8)), np.uint8)
    return np.unpackbits(stream)[:count].astype(np.float32)
