"""Many small numbers as bytes: behind masks, added up on their way, and in as few bytes as hold a total.

Rules:
- A number is modulo 2^bits, as its part of the question says. In memory it has a byte or more to itself, where it may
  run over into bits that do not count; on the wire it has its bits alone.
- The mask of a pair is a key stream (AES-256 in counter mode) under a key that follows from the pair's own and from
  the step's context: everything that was agreed, told and asked so far. No stream is ever used twice. The participant
  with the lower number adds it, the other takes it off; in the total it is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from midst.protocol.vectors.formats import Words, little, modulo, split_bytes, word_of
from midst.protocol.vectors.search import Numbers, Part, Question

_PERSON = b"midst lanes v1"


def packed_bytes(question: Question) -> int:
    """How many bytes the numbers of a question take."""
    return sum(_bytes(part) for part in question)


def pack(numbers: Numbers, question: Question) -> bytes:
    """Numbers as bytes; of each the bits that count."""
    return b"".join(_pack(each, part) for each, part in zip(numbers, question, strict=True))


def unpack(data: bytes | memoryview, question: Question) -> Numbers:
    """Inverse of `pack`; `data` has as many bytes as the question's numbers take."""
    sizes = ((np.dtype(np.uint8), _bytes(part)) for part in question)
    return list(map(_unpack, split_bytes(data, sizes), question))


def add(numbers: Numbers, more: Numbers) -> None:
    """Add to numbers, in place."""
    for each, other in zip(numbers, more, strict=True):
        each += other


def cut(numbers: Numbers, question: Question) -> Numbers:
    """Without the bits that do not count."""
    return [modulo(each, part.bits) for each, part in zip(numbers, question, strict=True)]


def hide(numbers: Numbers, number: int, keys: Mapping[int, bytes], context: bytes, question: Question) -> Numbers:
    """One participant's answers, behind its masks with all the others; `keys` are by the other's number."""
    hidden = [each.copy() for each in numbers]
    for other, key in keys.items():
        for each, mask in zip(hidden, _stream(key, context, question), strict=True):
            if number < other:
                each += mask
            else:
                each -= mask
    return cut(hidden, question)


def _stream(key: bytes, context: bytes, question: Question) -> Numbers:
    """The numbers of a pair for a step, the same at both ends."""
    kinds = [(little(part.bits), part.size) for part in question]
    once = hashlib.blake2b(context, key=key, person=_PERSON, digest_size=32).digest()
    stream = key_stream(once, sum(size * word.itemsize for word, size in kinds))
    return [each.astype(each.dtype.newbyteorder("="), copy=False) for each in split_bytes(stream, kinds)]


def key_stream(key: bytes, count: int) -> bytes:
    """So many bytes of AES-256 in counter mode, under a key that is used once."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(count))


def _bytes(part: Part) -> int:
    return -(-part.size * part.bits // 8)


def _pack(numbers: Words, part: Part) -> bytes:
    if part.bits < 8:  # as many to a byte as fit, the first in the lowest bits
        each = 8 // part.bits
        padded = np.zeros(-(-part.size // each) * each, np.uint8)
        padded[: part.size] = modulo(numbers, part.bits)
        rows = padded.reshape(-1, each)
        packed = rows[:, 0].copy()
        for k in range(1, each):
            packed |= rows[:, k] << np.uint8(k * part.bits)
        return packed.tobytes()
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(part.size, -1)[:, : part.bits // 8].tobytes()


def _unpack(data: Words, part: Part) -> Words:
    if part.bits < 8:
        each = 8 // part.bits
        rows = np.empty((len(data), each), np.uint8)
        for k in range(each):
            rows[:, k] = modulo(data >> np.uint8(k * part.bits), part.bits)
        return rows.reshape(-1)[: part.size]
    word = word_of(part.bits)
    wide = np.zeros((part.size, word.itemsize), np.uint8)
    wide[:, : part.bits // 8] = data.reshape(part.size, -1)
    return wide.reshape(-1).view(word.newbyteorder("<")).astype(word, copy=False)
