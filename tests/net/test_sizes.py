"""Bytes that are reckoned are those of real frames."""

from __future__ import annotations

import pytest

from midst import graphs
from midst.engines.reference_search import listen, make_participants
from midst.methods import Search, rules_of
from midst.net.sizes import ANNOUNCEMENT, FRAME_HEAD, contribution_bytes, sent_in_iteration, sent_in_search, step_bytes
from midst.net.wire import Codec, Limits
from midst.problems import Problem
from midst.protocol.message import Message


@pytest.mark.parametrize("maxima", [2, 3])
def test_a_step_frame(maxima):
    codec = Codec(bytes(16), None, maxima, Limits((-1.0, 1.0), (-1.0, 1.0)), 0)
    frame = codec.encode_step(Message(3, 0.5), bytes(16), (0.25,) * maxima)
    assert step_bytes(maxima) == len(frame) == FRAME_HEAD + 8 * (1 + maxima)


def test_sums_over_a_run():
    ring = graphs.ring(5)
    assert sent_in_iteration(ring, 10, 2) == 10 * 2 * step_bytes(2)
    asked = sent_in_search(ring, [4, 4, 1])
    assert asked == 4 * (ANNOUNCEMENT + 2 * contribution_bytes(4) + contribution_bytes(1) + contribution_bytes(0))


def test_a_contribution_of_real_participants():
    problem = Problem(graphs.ring(3), [1.0, 2.0, 3.0], bounds=(0, 4), resolution="0.5")
    first, *others = make_participants(problem, rules_of(problem, Search(3)))
    listen(first, [other.own[0] for other in others])
    statement = first.own[1]
    assert statement.kind == b"C"
    frame = Codec(bytes(16), None, 0, Limits((0.0, 0.0), (0.0, 0.0)), 1).encode([statement])[0]
    assert len(frame) == contribution_bytes(len(statement.numbers))
