"""Whoever alters a sum on its way is noticed, and where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst.protocol.vectors.formats import word_of
from midst.protocol.vectors.lanes import pack
from midst.protocol.vectors.search import Part
from midst.protocol.vectors.tampering import add_combined, combine, decode_combined, encode_combined, same

QUESTIONS = [(Part(700, 4), Part(300, 24)), (Part(500, 4),), (Part(90, 64), Part(5, 32))]


def draw(seed):
    rng = np.random.default_rng(seed)
    return [
        [rng.integers(0, 1 << part.bits, part.size, np.uint64, endpoint=False).astype(word_of(part.bits))
         if part.bits < 64 else rng.integers(0, 2**64, part.size, np.uint64) for part in question]
        for question in QUESTIONS
    ]  # fmt: skip


def packed(vectors):
    return [pack(numbers, question) for numbers, question in zip(vectors, QUESTIONS, strict=True)]


def total(*clients):
    sums = [[sum(parts[1:], parts[0]) for parts in zip(*step, strict=True)] for step in zip(*clients, strict=True)]
    return [
        [each & each.dtype.type((1 << part.bits) - 1) for each, part in zip(step, question, strict=True)]
        for step, question in zip(sums, QUESTIONS, strict=True)
    ]


@given(st.integers(0, 2**32), st.binary(min_size=32, max_size=32))
def test_sums_over_clients_are_the_totals(seed, drawn):
    clients = [draw((seed, i)) for i in range(3)]
    parts = [combine(packed(each), QUESTIONS, drawn) for each in clients]
    assert same(add_combined(parts), combine(packed(total(*clients)), QUESTIONS, drawn))


@pytest.mark.parametrize("bit", [0, 3])
@pytest.mark.parametrize("place", [0, 349, 699])
def test_one_altered_bit_is_noticed(place, bit):
    vectors = draw(1)
    before = combine(packed(vectors), QUESTIONS, b"seed")
    vectors[0][0][place] ^= np.uint8(1 << bit)
    assert not same(before, combine(packed(vectors), QUESTIONS, b"seed"))


def test_errors_that_cancel_in_a_plain_sum_are_noticed():
    vectors = draw(2)
    before = combine(packed(vectors), QUESTIONS, b"seed")
    for k, step in ((3, 8), (4, -8)):  # the highest bit, of which half of all sums see nothing
        vectors[0][0][k] = (int(vectors[0][0][k]) + step) % 16
    assert not same(before, combine(packed(vectors), QUESTIONS, b"seed"))


def test_each_of_the_sums_misses_an_error_half_of_the_time():
    vectors, altered = draw(3), draw(3)
    altered[0][0][5] ^= np.uint8(8)
    missed = [
        np.mean(
            combine(packed(vectors), QUESTIONS, bytes([s]))[4] == combine(packed(altered), QUESTIONS, bytes([s]))[4]
        )
        for s in range(40)
    ]
    assert 0.45 < np.mean(missed) < 0.55


def test_bytes_of_sums():
    found = combine(packed(draw(4)), QUESTIONS, b"s")
    raw = encode_combined(found)
    back = decode_combined(raw, QUESTIONS)
    assert back is not None
    assert same(found, back)
    assert decode_combined(raw[:-1], QUESTIONS) is None
