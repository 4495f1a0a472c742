"""One participant: refuses what cannot be right before it touches the state."""

from __future__ import annotations

import numpy as np
import pytest

from midst import InputError, Problem, graphs
from midst.engines.reference import iterate
from midst.node import Message, Node, rows
from midst.node import make_node as node_of
from midst.system import assemble, draw_z0, settle
from midst.update import Terms

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


# Links that lose messages


def wake_all(problem, z0, rng, loss, rounds):
    """x(t) of all nodes that wake in turn, every offer lost with some probability; one row an iteration."""
    parameters = settle(problem)
    system = assemble(problem, parameters, z0)
    nodes = [node_of(system, i) for i in range(problem.graph.n)]
    drawn = np.split(z0, problem.graph.offsets[1:-1])
    states = [node.begin(rows(z))[0] for node, z in zip(nodes, drawn, strict=True)]
    offers = [{} for _ in nodes]
    path = []
    for _ in range(rounds):
        woken = [node.wake(state, heard) for node, state, heard in zip(nodes, states, offers, strict=True)]
        states = [state for state, _ in woken]
        offers = [{i: woken[i][1][j] for i in nodes[j].neighbours if rng.random() >= loss} for j in range(len(nodes))]
        path.append([float(state.x) for state in states])
    return np.array(path) * parameters.unit


def random_problem(kind, n, seed):
    rng = np.random.default_rng(seed)
    problem = Problem(graphs.make(kind, n, rng=rng), rng.normal(size=n), scale=1.0)
    return problem, draw_z0(problem, settle(problem), rng), rng


@pytest.mark.parametrize("kind", ["ring", "complete", "rgg"])
def test_without_loss_waking_is_stepping(kind):
    problem, z0, rng = random_problem(kind, 7, 3)
    path = wake_all(problem, z0, rng, 0.0, 60)
    system = assemble(problem, settle(problem), z0)
    for t, (x, _) in zip(range(60), iterate(system), strict=False):
        assert path[t].tobytes() == (x * settle(problem).unit).tobytes()


@pytest.mark.parametrize("kind", ["ring", "complete", "rgg"])
def test_thirty_per_cent_loss_costs_less_than_half_as_many_iterations_again(kind):
    """Iterations after which the error stays below 1e-6: the same answer, a little later."""
    ratios = []
    for seed in range(3):
        problem, z0, rng = random_problem(kind, 7, seed)
        settled = []
        for loss in (0.0, 0.3):
            error = problem.distance(wake_all(problem, z0, rng, loss, 1500)).max(axis=1)
            assert error[-1] < 1e-6
            settled.append(int(np.flatnonzero(error >= 1e-6)[-1]) + 1)
        ratios.append(settled[1] / settled[0])
    assert np.median(ratios) < 1.5


def test_an_offer_that_cannot_be_is_refused():
    node = make_node()
    state, _ = node.begin([0.0, 0.0])
    with pytest.raises(InputError, match="offer from 0 is not finite"):
        node.wake(state, {0: np.nan})
