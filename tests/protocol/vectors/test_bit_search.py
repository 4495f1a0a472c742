"""The search by bits against sorting, over all types of numbers; and what clients send, behind masks, in few bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from midst.engines.vectors import add_up, drive, network, search_sorted, sort_rows
from midst.errors import InputError
from midst.protocol.search import Impossible
from midst.protocol.vectors import lanes
from midst.protocol.vectors.formats import Format, find_dtype, word_of
from midst.protocol.vectors.search import Goal, Part, VectorSearch

TYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64"]


@st.composite
def numbers(draw: st.DrawFn) -> Any:
    """Arrays of several clients, with ties and with all of a type's numbers."""
    name = draw(st.sampled_from(TYPES))
    dtype, shape = find_dtype(name), (draw(st.integers(3, 9)), draw(st.integers(1, 12)))
    raw = draw(hnp.arrays(word_of(8 * dtype.itemsize), shape))
    values = raw.view(dtype)
    if dtype.kind not in "iu":
        with np.errstate(invalid="ignore"):
            values = np.where(np.isfinite(values.astype(np.float64)), values, dtype.type(0))
    if draw(st.booleans()):
        values[:, ::2] = values[0, ::2]
    return name, values


def as_floats_or_ints(values: Any) -> Any:
    return values if values.dtype.kind in "iu" else values.astype(np.float64) + 0.0


@given(numbers())
def test_offsets_sort_as_numbers_do_and_lead_back(drawn):
    name, values = drawn
    of = Format(name)
    offsets = of.offsets(values)
    assert offsets.dtype == of.word
    assert np.array_equal(as_floats_or_ints(of.values(offsets)), as_floats_or_ints(values))
    flat, keys = as_floats_or_ints(values).ravel(), offsets.ravel()
    assert (np.less.outer(flat, flat) == np.less.outer(keys, keys)).all()


@pytest.mark.parametrize("name", TYPES)
def test_no_more_bits_than_the_type_has(name):
    assert Format(name).bits == 8 * find_dtype(name).itemsize
    assert Format(name, (0, 100)).bits < 8 * find_dtype(name).itemsize
    assert Format(name, (0, 100), 1.0).bits == 7


@settings(max_examples=200)
@given(numbers(), st.data())
def test_every_rank_in_at_most_as_many_probes_as_bits(drawn, data):
    name, values = drawn
    of, n = Format(name), len(values)
    offsets, rank = of.offsets(values), data.draw(st.integers(1, n))
    goal = Goal("quantile", n, rank)
    found = drive(offsets, of.bits, of.most, goal, [1] * n)
    assert np.array_equal(found.answer, np.sort(offsets, axis=0)[rank - 1])
    assert len(found.questions) <= of.bits
    fast = search_sorted(offsets, of.bits, of.most, goal)
    assert np.array_equal(fast.answer, found.answer)
    assert fast.questions == found.questions


@settings(max_examples=100)
@given(numbers(), st.data())
def test_weights_count_a_client_more_than_once(drawn, data):
    name, values = drawn
    of, n = Format(name), len(values)
    weights = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    total = sum(weights)
    rank = data.draw(st.integers(1, total))
    found = drive(of.offsets(values), of.bits, of.most, Goal("quantile", total, rank, alike=False), weights)
    repeated = np.repeat(of.offsets(values), weights, axis=0)
    assert np.array_equal(found.answer, np.sort(repeated, axis=0)[rank - 1])


@st.composite
def on_a_grid(draw: st.DrawFn) -> Any:
    n = draw(st.integers(3, 9))
    steps = draw(hnp.arrays(np.int64, (n, draw(st.integers(1, 10))), elements=st.integers(-40, 40)))
    return Format("float32", (-10, 10), 0.25), (steps / 4).astype(np.float32)


@settings(max_examples=150)
@given(on_a_grid(), st.data())
def test_trimmed_means_and_means_around_the_median(drawn, data):
    of, values = drawn
    n, offsets = len(values), of.offsets(values)
    exact, trim = np.sort(offsets.astype(np.int64), axis=0), data.draw(st.integers(0, (n - 1) // 2))
    goals = {Goal("trimmed mean", n, trim=trim): exact[trim : n - trim].sum(axis=0), Goal("mean", n): exact.sum(axis=0)}
    left_out, rank = data.draw(st.integers(0, n - 1)), (n + 1) // 2
    far = 2 * np.abs(exact - exact[rank - 1]) - (exact < exact[rank - 1])
    nearest = np.argsort(far, axis=0, kind="stable")[: n - left_out]
    goals[Goal("mean around median", n, rank, left_out)] = np.take_along_axis(exact, nearest, axis=0).sum(axis=0)
    for goal, expected in goals.items():
        found = drive(offsets, of.bits, of.most, goal, [1] * n)
        assert np.array_equal(found.answer, expected.astype(np.uint64))
        means = of.means(found.answer, goal.kept).astype(np.float64)
        assert np.allclose(means, (expected / goal.kept) / 4 - 10, atol=1e-6)
        fast = search_sorted(offsets, of.bits, of.most, goal)
        assert np.array_equal(fast.answer, found.answer)
        assert fast.questions == found.questions


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 33, 300])
def test_a_network_of_comparisons_sorts(n):
    rows = np.random.default_rng(n).integers(0, 50, (n, 500)).astype(np.uint16)
    assert np.array_equal(np.stack(sort_rows(rows)), np.sort(rows, axis=0))
    assert all(i < j for i, j in network(n))


def test_a_sum_is_asked_only_of_a_bracket_that_holds_one_value():
    rng = np.random.default_rng(1)
    of = Format("float32")
    offsets = of.offsets(rng.standard_normal((7, 2000)).round(1).astype(np.float32))
    search = VectorSearch(2000, of.bits, of.most, Goal("quantile", 7, 4))
    while (question := search.question) is not None:
        assert search.bracket is not None
        alone = search.bracket.lanes[~search.bracket.counted]
        prefix = search.bracket.prefix[~search.bracket.counted]
        here = (offsets[:, alone] >> np.uint32(search.bracket.left)) == prefix
        assert (here.sum(axis=0) == 1).all()
        search.fold(add_up([search.answers(own) for own in offsets], question))


@pytest.mark.parametrize("most", ["counts", "sum"])
def test_totals_that_cannot_be_are_noticed(most):
    of = Format("float32", (0, 100), 1.0)
    goal = Goal("quantile" if most == "counts" else "mean", 5, 3)
    search = VectorSearch(4, of.bits, of.most, goal)
    question = search.question
    assert question is not None
    with pytest.raises(Impossible):
        search.fold([np.full(4, 6 if most == "counts" else 501, word_of(part.bits)) for part in question])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Format("complex64"), "only real numbers"),
        (lambda: Format("float32", (1, 0)), "the lower first"),
        (lambda: Format("float32", (0, np.inf)), "finite"),
        (lambda: Format("float32", None, 0.1), "needs bounds"),
        (lambda: Format("float64", (-1e9, 1e9), 1e-12), "too fine"),
        (lambda: Format("float16", (1.0, 1.0001)), "no two numbers"),
        (lambda: Goal("trimmed mean", 5, trim=3), "leaves none of 5"),
        (lambda: Goal("mean around median", 5, 3, 5), "leaves none of 5"),
        (lambda: Goal("trimmed mean", 5, trim=1, alike=False), "leave weights out"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_what_does_not_fit_is_said_and_where():
    of = Format("bfloat16", (-1.0, 1.0))
    values = np.array([0.5, np.nan, 0.1], ml_dtypes.bfloat16)
    words, wrong = of.misfits(values) or ("", values)
    assert "not finite" in words
    assert wrong.tolist() == [False, True, False]
    words, wrong = of.misfits(np.array([0.5, 2.0, 0.1], ml_dtypes.bfloat16)) or ("", values)
    assert "outside the public bounds" in words
    assert of.misfits(np.array([1.0, -1.0], ml_dtypes.bfloat16)) is None


# Bytes and masks

BITS = st.sampled_from([2, 4, 8, 16, 24, 32, 40, 48, 56, 64])


@st.composite
def asked(draw: st.DrawFn) -> Any:
    question = tuple(Part(draw(st.integers(1, 9)), bits) for bits in draw(st.lists(BITS, min_size=1, max_size=3)))
    most = [(1 << part.bits) - 1 for part in question]
    rows = [
        [
            np.array(draw(st.lists(st.integers(0, top), min_size=part.size, max_size=part.size)), word_of(part.bits))
            for part, top in zip(question, most, strict=True)
        ]
        for _ in range(3)
    ]
    return question, rows


@given(asked())
def test_packed_numbers_come_back_in_as_few_bytes(drawn):
    question, rows = drawn
    packed = lanes.pack(rows[0], question)
    assert len(packed) == lanes.packed_bytes(question) == sum(-(-part.size * part.bits // 8) for part in question)
    for back, number in zip(lanes.unpack(packed, question), rows[0], strict=True):
        assert np.array_equal(back, number)
        assert back.dtype == number.dtype


@given(asked(), st.binary(min_size=32, max_size=32))
def test_masks_are_gone_in_the_total_and_only_there(drawn, context):
    question, rows = drawn
    keys = [{j: bytes([min(i, j), max(i, j)]) * 16 for j in range(3) if j != i} for i in range(3)]
    hidden = [lanes.hide(row, i, keys[i], context, question) for i, row in enumerate(rows)]
    sums = lanes.unpack(lanes.pack(hidden[0], question), question)
    for each in hidden[1:]:
        lanes.add(sums, lanes.unpack(lanes.pack(each, question), question))
    plain = [np.zeros_like(each) for each in rows[0]]
    for row in rows:
        lanes.add(plain, row)
    for got, expected in zip(lanes.cut(sums, question), lanes.cut(plain, question), strict=True):
        assert np.array_equal(got, expected)


def test_a_masked_vector_looks_alike_whatever_it_hides():
    question = (Part(4000, 4),)
    keys = {1: b"k" * 32}
    zeros, ones = (np.full(4000, value, np.uint8) for value in (0, 1))
    seen = [lanes.hide([each], 0, keys, b"c", question)[0] for each in (zeros, ones)]
    for each in seen:
        counts = np.bincount(each, minlength=16)
        assert len(counts) == 16
        assert counts.min() > 180  # 250 expected, of a uniform one
    assert not np.array_equal(lanes.hide([zeros], 0, keys, b"d", question)[0], seen[0])
