from __future__ import annotations

import contextlib
import os
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table import Table, charter_of

from midst.counting import Candidate, Proposal, Sum, Verdict, Word
from midst.net import wire
from midst.net.wire import BadFrame, Codec, Limits, Loose, Step
from midst.node import Message

LIMITS = Limits(nodes=9, total=50, z=(-2.0, 2.0), x=(-100.0, 100.0), y=(-300.0, 300.0), value=(-10.0, 10.0))
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
node = st.integers(0, 8)
value = st.floats(-10, 10)
verdicts = st.tuples(st.integers(0, 50), st.integers(0, 50)).filter(lambda pair: sum(pair) <= 50)
words = st.builds(
    Word,
    distance=st.none() | node,
    parent=st.none() | node,
    proposal=st.none() | st.builds(Proposal, u32, node, value),
    sum=st.none() | st.builds(Sum, u32, u64, u64),
    candidate=st.none() | st.builds(Candidate, u32, value, node, u32, u32),
    verdict=st.none() | st.builds(lambda n, pair, t: Verdict(n, *pair, t), u32, verdicts, u32),
)


def make(coordinates=None, counted=True):
    return Codec(b"d" * 32, coordinates, counted, LIMITS)


@given(st.integers(1, 2**32 - 1), st.lists(st.floats(-100, 100), min_size=2, max_size=2), st.tuples(words, words))
def test_steps_come_back_as_they_went(round, numbers, said):
    codec = make(2)
    frame = codec.encode_step(Message(round, np.array(numbers), said), b"e" * 16, np.zeros((2, 3)))
    step = codec.decode(frame)
    assert isinstance(step, Step)
    assert len(frame) == codec.step_bytes
    assert (step.message.round, step.message.words, step.digest) == (round, said, b"e" * 16)
    assert step.message.number.tobytes() == np.array(numbers).tobytes()


def test_round_zero_carries_the_share():
    codec = make()
    step = codec.decode(codec.encode_step(Message(0, np.array(0.5), (Word(),), b"s" * 32), bytes(16), np.zeros(3)))
    assert step.message.share == b"s" * 32
    assert step.message.number == 0.5


@given(words, words, u32, u32, st.floats(-300, 300))
def test_loose_frames_come_back_as_they_went(now, before, sequence, round, number):
    codec = make()
    frame = codec.encode_loose(sequence, b"s" * 32, np.array(number), round, (now,), (before,))
    loose = codec.decode(frame)
    assert isinstance(loose, Loose)
    assert len(frame) == codec.loose_bytes
    assert (loose.sequence, loose.share, loose.round, loose.words, loose.previous) == (
        sequence, b"s" * 32, round, (now,), (before,)
    )  # fmt: skip
    assert loose.number == number


def test_levels_travel_where_there_is_no_count():
    codec, level = make(counted=False), np.array([1.0, -2.0, 0.25])
    assert (codec.decode(codec.encode_step(Message(3, np.array(1.0)), bytes(16), level)).level == level).all()


BAD_NUMBERS = (np.nan, np.inf, -np.inf, 100.5, -1e300)


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_numbers_beyond_what_can_be_are_refused(number):
    codec = make()
    with pytest.raises(BadFrame, match="not finite, or beyond"):
        codec.decode(codec.encode_step(Message(1, np.array(number), (Word(),)), bytes(16), np.zeros(3)))


@pytest.mark.parametrize(
    "word",
    [
        Word(distance=9),
        Word(parent=9),
        Word(proposal=Proposal(1, 9, 0.0)),
        Word(proposal=Proposal(1, 0, float("nan"))),
        Word(proposal=Proposal(1, 0, 10.5)),
        Word(candidate=Candidate(1, 0.0, 77, 0, 0)),
        Word(candidate=Candidate(1, float("inf"), 0, 0, 0)),
        Word(verdict=Verdict(1, 30, 21, 0)),
    ],
    ids=str,
)
def test_words_about_what_cannot_be_are_refused(word):
    codec = make()
    with pytest.raises(BadFrame):
        codec.decode(codec.encode_step(Message(1, np.array(0.0), (word,)), bytes(16), np.zeros(3)))


def test_every_byte_counts():
    """One meaning, one encoding: a frame with any one bit turned is refused, or says something else."""
    codec = make()
    word = Word(distance=3, candidate=Candidate(1, 2.5, 4, 5, 6))
    frame = codec.encode_step(Message(7, np.array(1.5), (word,)), b"e" * 16, np.zeros(3))
    for place in range(len(frame)):
        for bit in range(8):
            changed = bytearray(frame)
            changed[place] ^= 1 << bit
            try:
                step = codec.decode(bytes(changed))
            except BadFrame:
                continue
            again = codec.encode_step(step.message, step.digest, step.level)
            assert again == bytes(changed), f"byte {place}"


@pytest.mark.parametrize("length", [0, 1, 12, 60, 10**6])
@pytest.mark.parametrize("kind", [b"S", b"L", b"T", b"R", b"\x00"])
def test_wrong_lengths_are_refused(kind, length):
    with pytest.raises(BadFrame):
        make().decode((kind + bytes(length))[:length])


def test_a_frame_of_another_session_is_refused():
    frame = Codec(b"other123" * 4, None, True, LIMITS).encode_step(
        Message(1, np.array(0.0), (Word(),)), bytes(16), np.zeros(3)
    )
    with pytest.raises(BadFrame, match="another session"):
        make().decode(frame)


@given(st.binary(max_size=1100))
def test_talk_that_says_nothing_is_refused_and_nothing_else_is_raised(noise):
    with contextlib.suppress(BadFrame):
        wire.decode_talk(b"T" + noise)


@given(st.text())
def test_words_from_elsewhere_are_made_fit_to_print(text):
    shown = wire.printable(text)
    assert shown.isprintable()
    assert len(shown.encode()) <= wire.TEXT_BYTES


def fuzz(runs, seed):
    """Frames of a real session with bytes changed, cut, joined and repeated, through the decoder."""
    rng = random.Random(seed)
    corpus, codecs = [], []
    for settings in ({}, {"objective": "mean"}, {"mode": "lossy"}, {"coordinates": 2}):
        rows = [[1.0, 2.0]] * 3 if "coordinates" in settings else [1.0, -2.0, 5.0]
        table = Table(charter_of(**settings), rows)
        table.run()
        corpus += [frame for _, _, frame in table.sent][:: max(1, len(table.sent) // 40)]
        codecs.append((table.seats[0].codec, table.seats[0].limits))
    accepted = 0
    for _ in range(runs):
        frame = bytearray(rng.choice(corpus))
        for _ in range(rng.choice((0, 1, 1, 2, 8))):
            match rng.randrange(4):
                case 0 if frame:
                    frame[rng.randrange(len(frame))] = rng.randrange(256)
                case 1:
                    del frame[rng.randrange(len(frame) + 1) :]
                case 2:
                    frame += rng.randbytes(rng.randrange(16))
                case _ if len(frame) > 80:
                    start = rng.randrange(len(frame) - 8)
                    frame[start : start + 8] = rng.choice(
                        (b"\xff" * 8, b"\x00" * 8, b"\x00\x00\x00\x00\x00\x00\xf8\x7f")
                    )
        codec, limits = rng.choice(codecs)
        try:
            said = codec.decode(bytes(frame))
        except BadFrame:
            continue
        accepted += 1
        number = said.message.number if isinstance(said, Step) else said.number if isinstance(said, Loose) else 0.0
        assert np.isfinite(number).all()
        assert np.abs(number).max(initial=0.0) <= max(limits.x[1], limits.y[1])
    return accepted


def test_decoding_anything_never_raises_anything_else():
    assert fuzz(20_000, 1) > 100


def test_decoding_needs_bounded_memory():
    tracemalloc.start()
    fuzz(2_000, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 2**20


@pytest.mark.torture
def test_decoding_ten_million_frames():
    fuzz(1000 * int(os.environ.get("MIDST_RUNS", "20")), 3)
