"""One participant: refuses what cannot be right before it touches the state."""

from __future__ import annotations

import numpy as np
import pytest

from midst import InputError
from midst.protocol.message import Message
from midst.protocol.node import Node
from midst.protocol.step import Terms

SECRET = 48151.623


def make_node():
    return Node(1, (0, 2), Terms(SECRET, -1.0, 1.0, 2.0, 2.0), 1.0, 0.5)


def test_a_step_is_value_in_value_out():
    node = make_node()
    begun, outbox = node.begin([0.5, -0.5])
    assert outbox[0].number == 0.5
    assert outbox[2].number == -0.5
    inbox = {j: Message(0, 0.25) for j in (0, 2)}
    first, sent = node.step(begun, inbox)
    again, _ = node.step(begun, inbox)
    assert first.x == again.x
    assert begun.x is None
    assert sent[0].number is sent[2].number is first.x
    assert sent[0].round == first.round == 1


@pytest.mark.parametrize(
    ("inbox", "match"),
    [
        ({0: Message(0, 1.0)}, "needs one message from every neighbour"),
        ({j: Message(0, 1.0) for j in (0, 2, 3)}, "no other"),
        ({0: Message(0, 1.0), 2: Message(1, 1.0)}, "got round 1 from 2 in round 0"),
        ({0: Message(0, np.nan), 2: Message(0, 1.0)}, "message from 0 is not finite"),
        ({0: Message(0, np.array([1.0, 2.0])), 2: Message(0, 1.0)}, "message from 0 has shape"),
        ({0: Message(0, np.array(1.0)), 2: Message(0, 1.0)}, "message from 0 has shape"),
    ],
)
def test_bad_messages(inbox, match):
    node = make_node()
    state, _ = node.begin([0.0, 0.0])
    with pytest.raises(InputError, match=match):
        node.step(state, inbox)


@pytest.mark.parametrize("round", [0, 2])
def test_a_message_of_another_round_is_refused(round):
    """Neither one of a round that is over nor one of a round to come."""
    node = make_node()
    state, _ = node.begin([0.0, 0.0])
    state, _ = node.step(state, {j: Message(0, 0.0) for j in (0, 2)})
    with pytest.raises(InputError, match=f"got round {round} from 0 in round 1"):
        node.step(state, {0: Message(round, 1.0), 2: Message(1, 1.0)})


def test_a_vector_needs_all_of_its_coordinates():
    node = Node(1, (0,), Terms(*(np.ones(2),) * 5), np.ones(2), 0.5)
    state, _ = node.begin([np.zeros(2)])
    for number in (0.0, np.zeros(3)):
        with pytest.raises(InputError, match="message from 0 has shape"):
            node.step(state, {0: Message(0, number)})
    with pytest.raises(InputError, match="message from 0 is not finite"):
        node.step(state, {0: Message(0, np.array([0.0, np.inf]))})


@pytest.mark.parametrize("z", [[0.0] * 3, [np.inf, 0.0], [0.0, np.zeros(1)]])
def test_bad_start(z):
    with pytest.raises(InputError, match=r"z\(0\)"):
        make_node().begin(z)


def test_repr_shows_no_value():
    node = make_node()
    state, outbox = node.begin([SECRET, 0.0])
    assert "48151" not in repr(node) + repr(state) + repr(outbox) + repr(node.terms)
