from __future__ import annotations

import os
import random
import tracemalloc

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memory_network import MemoryNetwork, charter_of

from midst.net import wire
from midst.net.wire import BadFrame, Codec, Limits, Refused, Statements, StepFrame
from midst.protocol.keys import Floats
from midst.protocol.message import Message
from midst.protocol.search import Goal, Rules
from midst.protocol.statements import Statement, longest_statement

LIMITS = Limits(z=(-2.0, 2.0), x=(-100.0, 100.0))
statements = st.lists(st.builds(Statement, st.binary(max_size=600), st.binary(max_size=72)), max_size=9)


def make(coordinates=None, levels=2, numbers=4, digest=b"d" * 32):
    return Codec(digest, coordinates, levels, LIMITS, numbers)


@given(
    st.integers(1, 2**32 - 1),
    st.lists(st.floats(-100, 100), min_size=2, max_size=2),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6, max_size=6),
    st.sampled_from([2, 3]),
)
def test_steps_come_back_as_they_went(round, numbers, maxima, levels):
    codec, maxima = make(2, levels), [np.array(maxima[2 * k : 2 * k + 2]) for k in range(levels)]
    frame = codec.encode_step(Message(round, np.array(numbers)), b"e" * 16, tuple(maxima))
    step = codec.decode(frame)
    assert isinstance(step, StepFrame)
    assert len(frame) == codec.step_bytes
    assert (step.message.round, step.digest) == (round, b"e" * 16)
    assert step.message.number.tobytes() == np.array(numbers).tobytes()
    assert [each.tobytes() for each in step.maxima] == [each.tobytes() for each in maxima]


@given(
    st.integers(1, 2**32 - 1),
    st.floats(-100, 100),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=3),
)
def test_steps_about_one_number_are_those_of_a_row_of_one(round, number, maxima):
    """In floats, and the same bytes."""
    codec, rows = make(None, len(maxima)), make(1, len(maxima))
    frame = codec.encode_step(Message(round, number), b"e" * 16, tuple(maxima))
    columns = tuple(np.array([each]) for each in maxima)
    assert frame == rows.encode_step(Message(round, np.array([number])), b"e" * 16, columns)
    step, row = codec.decode(frame), rows.decode(frame)
    assert (step.message.round, step.digest) == (round, b"e" * 16)
    assert type(step.message.number) is float
    assert wire.pack_numbers(step.message.number) == wire.pack_numbers(number) == row.message.number.tobytes()
    assert [wire.pack_numbers(each) for each in step.maxima] == [each.tobytes() for each in row.maxima]


@given(statements)
def test_statements_come_back_as_they_went(said):
    codec = make()
    frames = codec.encode(said)
    assert all(isinstance(codec.decode(frame), Statements) for frame in frames)
    assert [each for frame in frames for each in codec.decode(frame).statements] == said
    assert list(codec.decode_all(codec.encode_all(said))) == said
    for frame in frames:  # of more than one, none is longer than the longest of talk and contributions
        assert len(frame) <= max(codec.largest(0), 12 + max(len(one.body) + len(one.signature) for one in said))


@given(statements.filter(bool), st.data())
def test_statements_that_are_cut_off_are_refused(said, data):
    codec = make()
    (frame,) = [codec.encode_all(said)]
    ends = {9}
    for one in said:
        ends.add(max(ends) + codec_overhead(codec) + len(one.body) + len(one.signature))
    cut = data.draw(st.integers(0, len(frame) - 1).filter(lambda place: place not in ends))
    with pytest.raises(BadFrame):
        codec.decode(frame[:cut])


def codec_overhead(codec):
    return len(codec.encode_all([Statement(b"", b"")])) - len(codec.encode_all([]))


def test_a_contribution_of_many_coordinates_fits():
    """As the iteration takes any number of coordinates, so does the search after it."""
    rules = Rules(Floats(), ((0, 9),) * 20_000, 3, 1, tuple(Goal(k, (2,)) for k in range(20_000)))
    body = bytes(longest_statement(rules, 3, pooled=False, verify=False))
    codec = make(20_000, 2, len(body))
    (frame,) = codec.encode([Statement(body, bytes(72))])
    assert len(frame) <= codec.largest()
    assert codec.decode(frame).statements == (Statement(body, bytes(72)),)


@pytest.mark.parametrize(
    ("codec", "kinds"), [(make(levels=0), b"S"), (make(numbers=0), b"G"), (make(levels=0, numbers=0), b"SG")]
)
def test_what_a_charter_has_no_use_for_is_refused(codec, kinds):
    full = make()
    frames = {
        b"S": full.encode_step(Message(1, np.array(0.0)), bytes(16), np.zeros(2)),
        b"G": full.encode_all([Statement(b"body", b"signature")]),
    }
    for kind, frame in frames.items():
        if kind in kinds:
            with pytest.raises(BadFrame, match="unknown kind"):
                codec.decode(frame)
        else:
            codec.decode(frame)


BAD_NUMBERS = (np.nan, np.inf, -np.inf, 100.5, -1e300)


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_numbers_beyond_what_can_be_are_refused(number):
    codec = make()
    with pytest.raises(BadFrame, match="not finite, or beyond"):
        codec.decode(codec.encode_step(Message(1, np.array(number)), bytes(16), np.zeros(2)))
    with pytest.raises(BadFrame, match="level"):
        codec.decode(codec.encode_step(Message(1, np.array(0.0)), bytes(16), np.array([0.0, np.nan])))
    with pytest.raises(BadFrame, match="level"):
        make(1).decode(make(1).encode_step(Message(1, np.zeros(1)), bytes(16), (np.zeros(1), np.array([np.nan]))))


@pytest.mark.parametrize("number", BAD_NUMBERS)
@pytest.mark.parametrize("place", range(3))
def test_every_coordinate_is_checked(number, place):
    codec, numbers = make(3), np.zeros(3)
    numbers[place] = number
    with pytest.raises(BadFrame, match="not finite, or beyond"):
        codec.decode(codec.encode_step(Message(1, numbers), bytes(16), (np.zeros(3), np.zeros(3))))


def test_what_can_be_depends_on_the_round():
    """An honest z(0) lies nearer than an honest x may."""
    codec = make()
    for round, number in ((0, 2.0), (1, -100.0)):
        assert codec.decode(codec.encode_step(Message(round, np.array(number)), bytes(16), np.zeros(2)))
    with pytest.raises(BadFrame, match="not finite, or beyond"):
        codec.decode(codec.encode_step(Message(0, np.array(2.5)), bytes(16), np.zeros(2)))


def test_ends_of_an_edge_agree_on_all_that_a_digest_is_of():
    """Session, round, and both ends' z, in their order."""
    parts = [(b"s" * 8, 7, 1.0, 2.0), (b"t" * 8, 7, 1.0, 2.0), (b"s" * 8, 8, 1.0, 2.0)]
    parts += [(b"s" * 8, 7, 2.0, 1.0), (b"s" * 8, 7, 1.0, 2.5), (b"s" * 8, 7, 1.5, 2.0)]
    digests = [wire.edge_digest(*each) for each in parts]
    assert digests == [wire.edge_digest(*head, np.array([low]), np.array([high])) for *head, low, high in parts]
    assert len(set(digests)) == len(digests)
    assert {len(each) for each in digests} == {wire.DIGEST_BYTES}


def test_every_byte_counts():
    """One meaning, one encoding: a frame with any one bit turned is refused, or says something else."""
    codec = make()
    step = codec.encode_step(Message(7, np.array(1.5)), b"e" * 16, np.array([2.5, -1.5]))
    told = codec.encode_all([Statement(b"one body", b"its signature"), Statement(b"another", b"and its")])
    for frame in (step, told):
        for place in range(len(frame)):
            for bit in range(8):
                changed = bytearray(frame)
                changed[place] ^= 1 << bit
                try:
                    said = codec.decode(bytes(changed))
                except BadFrame:
                    continue
                if isinstance(said, StepFrame):
                    again = codec.encode_step(said.message, said.digest, said.maxima)
                else:
                    again = codec.encode_all(said.statements)
                assert again == bytes(changed), f"byte {place}"


@pytest.mark.parametrize("length", [0, 1, 8, 12, 60, 10**6])
@pytest.mark.parametrize("kind", [b"S", b"G", b"T", b"R", b"\x00"])
def test_wrong_lengths_are_refused(kind, length):
    with pytest.raises(BadFrame):
        make().decode((kind + bytes(length))[:length])


def test_a_step_has_one_length():
    """What is too long is refused, not cut off."""
    codec = make()
    frame = codec.encode_step(Message(1, np.array(0.0)), bytes(16), np.zeros(2))
    assert isinstance(codec.decode(frame), StepFrame)
    for wrong in (frame[:-1], frame[:-8], frame + b"\0", frame + bytes(8)):
        with pytest.raises(BadFrame, match=f"a step frame of {len(wrong)} bytes; this charter's have {len(frame)}"):
            codec.decode(wrong)


def test_a_frame_of_another_session_is_refused():
    other = make(digest=b"other123" * 4)
    for frame in (
        other.encode_step(Message(1, np.array(0.0)), bytes(16), np.zeros(2)),
        other.encode_all([Statement(b"body", b"signature")]),
    ):
        with pytest.raises(BadFrame, match="another session"):
            make().decode(frame)


@given(st.binary(max_size=1100))
@example(wire.encode_control(wire.Want(7, b"\x05"))[1:])
@example(wire.encode_control(wire.Done(heard=True))[1:] + b"and more")
def test_talk_that_says_nothing_is_refused_and_nothing_else_is_raised(noise):
    """Bytes that are accepted are talk, and say it as well when told on."""
    try:
        said = wire.decode_control(b"T" + noise)
    except BadFrame:
        return
    assert isinstance(said, wire.Control)
    assert wire.decode_control(wire.encode_control(said)) == said


def test_talk_is_no_longer_than_it_may_be():
    """However sensible: a length is refused, not cut off."""

    def frame_of(words):
        return b"T" + msgspec.msgpack.encode(Refused("charter", "x" * words))

    room = wire.CONTROL_BYTES - len(frame_of(600)) + 600
    assert len(frame_of(room)) == wire.CONTROL_BYTES
    assert wire.decode_control(frame_of(room)).text == "x" * room
    with pytest.raises(BadFrame, match="1024 at most"):
        wire.decode_control(frame_of(room + 1))


@given(st.text())
@example("x" * 10_000)
@example("é" * 10_000)
@example("\ud800\n\x1b[2J")
def test_words_from_elsewhere_are_made_fit_to_print(text):
    shown = wire.printable(text)
    assert shown.isprintable()
    assert len(shown.encode()) <= wire.TEXT_BYTES
    assert len(wire.printable(text, 5).encode()) <= 5


def fuzz(runs, seed):
    """Frames of a real session with bytes changed, cut, joined and repeated, through the decoder."""
    rng = random.Random(seed)
    corpus, codecs = [], []
    for settings in ({}, {"objective": "mean"}, {"method": "search"}, {"coordinates": 2}):
        rows = [[1.0, 2.0]] * 3 if "coordinates" in settings else [1.0, -2.0, 5.0]
        net = MemoryNetwork(charter_of(**settings), rows)
        net.run()
        corpus += [frame for _, _, frame in net.sent][:: max(1, len(net.sent) // 40)]
        iteration = net.setups[0].iteration
        codecs.append((net.setups[0].codec, iteration.limits.x[1] if iteration else 0.0))
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
        codec, farthest = rng.choice(codecs)
        try:
            said = codec.decode(bytes(frame))
        except BadFrame:
            continue
        accepted += 1
        number = said.message.number if isinstance(said, StepFrame) else 0.0
        assert np.isfinite(number).all()
        assert np.abs(number).max(initial=0.0) <= farthest
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
    assert fuzz(1000 * int(os.environ.get("MIDST_RUNS", "20")), 3) > 100
