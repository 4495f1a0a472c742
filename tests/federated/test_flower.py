"""Flower's own strategy, messages and apps; clients that find the aggregate among themselves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midst.errors import Aborted, InputError

pytest.importorskip("flwr", reason="Flower is not installed; make flower has it")

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.exception import AggregationError

from midst import graphs
from midst.federated import Client
from midst.federated.flower import AmongClients, _digest, reply_with_aggregate
from midst.net.local import make_party

sys.path.append(str(Path(__file__).parents[2] / "examples" / "flower"))
from thread_grid import ThreadGrid

EXAMPLE = Path(sys.path[-1])
NODES = 4


def record(**arrays):
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


class Watched(ThreadGrid):
    """A grid whose replies are kept, and may be tampered with on the way."""

    def __init__(self, app, nodes=NODES, tamper=lambda number, reply: reply):
        super().__init__(app, [{"number": i} for i in range(nodes)], {})
        self.replies = []
        self._tamper = tamper

    def send_and_receive(self, messages, *, timeout=None):
        replies = [self._tamper(r.metadata.src_node_id - 1000, r) for r in super().send_and_receive(messages)]
        self.replies.append([reply for reply in replies if reply is not None])
        return self.replies[-1]


class Agreed:
    """A client whose session finds one, then two …, whatever is submitted."""

    def __init__(self):
        self.rounds_done = 0
        self.handed = []

    def aggregate(self, update, number):
        if number == self.rounds_done:
            self.handed.append(update)
            self.rounds_done += 1
        assert number == self.rounds_done - 1
        return SimpleNamespace(value={"w": np.full(3, number + 1.0)})


def agreeing(clients):
    """A ClientApp in which each node is one of these clients."""
    app = ClientApp()

    @app.train()
    def answer(message, context):
        number, model = context.node_config["number"], message.content["arrays"]["w"].numpy()
        return reply_with_aggregate(message, record(w=model + number), clients[number], {"loss": float(number)})

    return app


@pytest.fixture
def clients():
    return [Agreed() for _ in range(NODES + 1)]


def start(grid, rounds=1, nodes=NODES, **keywords):
    strategy = AmongClients(nodes, fraction_evaluate=0.0)
    return strategy.start(grid, record(w=np.zeros(3)), num_rounds=rounds, **keywords)


def test_the_model_is_the_aggregate_and_every_client_brings_it_once(clients):
    grid = Watched(agreeing(clients))
    result = start(grid, rounds=NODES)
    assert np.array_equal(result.arrays["w"].numpy(), np.full(3, NODES))
    assert result.train_metrics_clientapp[1]["loss"] == np.mean(range(NODES))
    replies = [reply for one_round in grid.replies for reply in one_round]
    brought = Counter(reply.metadata.src_node_id for reply in replies if reply.content.array_records)
    assert set(brought.values()) == {1}
    assert len(brought) == NODES


def bent(reply, **records):
    """A reply with other records."""
    reply.content = RecordDict({name: r for name, r in (dict(reply.content) | records).items() if r is not None})
    return reply


def brings(reply, **records):
    """Of the client that brings the aggregate only."""
    return bent(reply, **records) if reply.content.array_records else reply


TAMPERED = {
    "lost": (lambda i, r: None if i == 2 else r, "node 1002: no answer in time"),
    "another aggregate": (
        lambda i, r: bent(r, midst=ConfigRecord({"digest": b"x"})) if i == 3 else r,
        "node 1003: another aggregate than most",
    ),
    "no word of it": (lambda i, r: bent(r, midst=None) if i == 0 else r, "node 1000: another aggregate than most"),
    "a word of another kind": (
        lambda i, r: bent(r, midst=MetricRecord({"digest": 1})) if i == 0 else r,
        "node 1000: another aggregate",
    ),
    "a digest of another kind": (
        lambda i, r: bent(r, midst=ConfigRecord({"digest": "x"})) if i == 0 else r,
        "node 1000: another aggregate",
    ),
    "a list of digests": (
        lambda i, r: bent(r, midst=ConfigRecord({"digest": [b"x"]})) if i == 0 else r,
        "node 1000: another aggregate",
    ),
    "no word of anybody": (lambda i, r: bent(r, midst=None), "vouch for no aggregate; let each"),
    "not brought": (lambda i, r: brings(r, arrays=None), "node 1001 was to bring"),
    "another brought": (lambda i, r: brings(r, arrays=record(w=np.full(3, 1.5))), "node 1001 brought"),
    "of another name": (lambda i, r: brings(r, arrays=record(v=np.ones(3))), "node 1001 brought"),
    "of another shape": (lambda i, r: brings(r, arrays=record(w=np.ones((3, 1)))), "node 1001 brought"),
    "said to be of another shape": (
        lambda i, r: brings(
            r, arrays=ArrayRecord({"w": Array("float64", (1, 3), "numpy.ndarray", record(w=np.ones(3))["w"].data)})
        ),
        "node 1001 brought",
    ),
    "one too many": (lambda i, r: brings(r, arrays=record(w=np.ones(3), v=np.ones(1))), "node 1001 brought"),
    "unreadable": (
        lambda i, r: brings(r, arrays=ArrayRecord({"w": Array("float64", (3,), "numpy.ndarray", b"?")})),
        "node 1001 brought",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_an_aggregate_that_not_all_vouch_for_is_not_taken(name, clients):
    tamper, message = TAMPERED[name]
    with pytest.raises(AggregationError, match=message) as caught:
        start(Watched(agreeing(clients), tamper=tamper))
    assert str(caught.value).startswith("round 1: ")
    assert "\n" not in str(caught.value)


def test_clients_that_fail_are_named_and_first_those_whose_reason_is_their_own():
    app = ClientApp()

    @app.train()
    def answer(message, context):
        if context.node_config["number"] == 5:
            raise InputError("port 7001 is taken\nby another")
        if context.node_config["number"] == 0:
            raise Aborted("waited", "client4", "client4 withdrew")
        raise Aborted("waited", "client4", "waited for client4")

    with pytest.raises(AggregationError) as caught:
        start(Watched(app, nodes=6), nodes=6)
    told = re.sub(r"<.*?>:<'(.*?)'>", r"\1", str(caught.value))
    assert told == (
        "round 1: node 1005: port 7001 is taken by another; node 1000: client4 withdrew; "
        "node 1001, 1002, 1003 and 1 more: waited for client4"
    )


def test_one_node_too_many_is_refused_before_anything_is_sent(clients):
    with pytest.raises(AggregationError, match="5 nodes are connected, and the charter has 4 clients"):
        start(Watched(agreeing(clients), nodes=NODES + 1))
    assert not any(client.handed for client in clients)


@pytest.mark.parametrize("clients", [1, 0])
def test_a_client_alone(clients):
    with pytest.raises(InputError, match="at least two"):
        AmongClients(clients)


@pytest.mark.parametrize("option", ["fraction_train", "min_train_nodes", "min_available_nodes"])
def test_who_takes_part_is_no_option(option):
    with pytest.raises(TypeError, match=option):
        AmongClients(4, **{option: 1})


class Inconsistent(AmongClients):
    """A server that sends one client another model in the second round."""

    def configure_train(self, server_round, arrays, config, grid):
        messages = list(super().configure_train(server_round, arrays, config, grid))
        if server_round == 2:
            messages[0].content = RecordDict({**messages[0].content, "arrays": record(w=np.full(3, 7.0))})
        return messages


def test_a_model_that_is_not_the_last_aggregate_is_refused_before_the_update_is_handed_on(clients):
    grid = Watched(agreeing(clients))
    with pytest.raises(AggregationError, match=r"round 2: node 100.: .*not the aggregate of the last round"):
        Inconsistent(NODES, fraction_evaluate=0.0).start(grid, record(w=np.zeros(3)), num_rounds=2)
    assert sum(len(client.handed) for client in clients) == 2 * NODES - 1


def asking(number, model, **more):
    ours = {"midst": ConfigRecord({"round": number, "bring": True})} if number is not None else {}
    return Message(RecordDict({"arrays": record(w=model), **ours, **more}), dst_node_id=1, message_type="train")


def test_a_round_that_is_over_gives_the_same_again_whatever_the_server_sends(clients):
    Watched(None)  # as whoever starts an app does: messages are made only then
    client, update = clients[0], record(w=np.full(3, 5.0))
    _, first, again = (
        reply_with_aggregate(asking(number, model), update, client).content["midst"]
        for number, model in [(0, np.zeros(3)), (1, np.ones(3)), (1, np.full(3, 7.0))]
    )
    assert first == again
    assert len(client.handed) == 2


def test_the_digest_does_not_depend_on_how_a_client_lays_out_memory():
    Watched(None)
    found = np.arange(6.0).reshape(2, 3)
    told = [
        reply_with_aggregate(asking(0, found), record(w=found), SimpleNamespace(aggregate=aggregate)).content["midst"]
        for aggregate in (
            lambda *_: SimpleNamespace(value={"w": found}),
            lambda *_: SimpleNamespace(value={"w": found.T.copy().T}),
        )
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("message", [(None, 1.0, {}), (0, 1.0, {"more": record(w=2.0)})], ids=["FedAvg", "two models"])
def test_a_message_of_another_strategy(message, clients):
    Watched(None)
    number, model, more = message
    with pytest.raises(InputError, match="not one of AmongClients"):
        reply_with_aggregate(asking(number, model, **more), record(w=1.0), clients[0])
    assert not clients[0].handed


ARRAYS = st.dictionaries(
    st.text(max_size=3),
    st.builds(
        lambda dtype, shape: np.ones(shape, dtype), st.sampled_from("f4 f8 i8".split()), st.lists(st.integers(0, 2))
    ).filter(lambda array: array.ndim < 4),
    max_size=3,
)


@given(ARRAYS, ARRAYS)
def test_digests_are_the_same_where_all_is_the_same(one, other):
    same = one.keys() == other.keys() and all(
        a.shape == other[k].shape and a.dtype == other[k].dtype for k, a in one.items()
    )
    assert (_digest(record(**one)) == _digest(record(**other))) == same
    assert _digest(record(**one)) == _digest(record(**dict(reversed(one.items()))))


# Real clients, over TLS


PATIENT = {"start": 60.0, "wait": 60.0, "total": 300.0, "linger": 5.0}


def party_of(clients, rounds, **deadlines):
    arrays = [{"name": "w", "shape": [3, 5], "dtype": "float32"}, {"name": "b", "shape": [], "dtype": "float32"}]
    return make_party(
        graphs.make("complete", clients),
        method="search",
        arrays=arrays,
        aggregates=rounds,
        deadlines=PATIENT | deadlines,
    )


def networked(party, make_update):
    """A ClientApp that opens its client for every message, as a process of its own would."""
    app = ClientApp()

    @app.train()
    def answer(message, context):
        number, asked = context.node_config["number"], message.content["config"]["server-round"]
        update = make_update(number, asked, message.content["arrays"])
        own = party.identities[number]
        with Client(party.charter, own.name, own, state=party.folder / f"state{number}") as client:
            return reply_with_aggregate(message, update, client, {"num-examples": 10})

    return app


def trained(number, asked, model):
    rng = np.random.default_rng([number, asked])
    return record(**{name: a.numpy() + rng.standard_normal(a.shape, np.float32) for name, a in sorted(model.items())})


def test_the_server_is_shown_the_aggregate_and_no_update():
    first = record(w=np.zeros((3, 5), np.float32), b=np.float32(0))
    with party_of(5, rounds=3) as party:
        grid = Watched(networked(party, trained), nodes=5)
        result = AmongClients(5, fraction_evaluate=0.0).start(grid, first, num_rounds=3)
    model, received = first, [replies for replies in grid.replies if replies]
    for asked, replies in enumerate(received, 1):
        updates = [trained(number, asked, model) for number in range(5)]
        medians = {name: np.median([update[name].numpy() for update in updates], axis=0) for name in model}
        model = record(**{name: median.astype(np.float32) for name, median in medians.items()})
        assert len(replies) == 5
        for reply in replies:
            assert set(reply.content) <= {"midst", "metrics", "arrays"}
            assert dict(reply.content["metrics"]) == {"num-examples": 10}
            assert dict(reply.content["midst"]) == {"digest": _digest(model)}
        [brought] = [reply.content["arrays"] for reply in replies if "arrays" in reply.content]
        assert _digest(brought) == _digest(model)
    assert len(received) == 3
    assert _digest(result.arrays) == _digest(model)


def test_a_client_that_stays_away_ends_the_run_and_is_named():
    def leaves(number, asked, model):
        if (number, asked) == (1, 2):
            raise RuntimeError("out of memory")
        return trained(number, asked, model)

    first = record(w=np.zeros((3, 5), np.float32), b=np.float32(0))
    with party_of(3, rounds=3, start=3.0, wait=3.0) as party:
        grid = Watched(networked(party, leaves), nodes=3)
        with pytest.raises(AggregationError, match=r"round 2: node 1001: .*out of memory.*node1") as caught:
            AmongClients(3, fraction_evaluate=0.0).start(grid, first, num_rounds=3)
    assert "Aborted" in str(caught.value)
    assert len(grid.replies[2]) == 3


@pytest.mark.parametrize("how", [(), ("--supernodes",)], ids=["threads", "supernodes"])
@pytest.mark.torture
def test_the_example(how, tmp_path):
    if how and "MIDST_RUNS" not in os.environ:
        pytest.skip("takes minutes; make flower")
    command = [sys.executable, EXAMPLE / "run.py", "--clients", "4", "--rounds", "2", "--out", "accuracy.png", *how]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads((tmp_path / "accuracy.json").read_text())
    assert [len(accuracies) for accuracies in measured.values()] == [3] * 4
    ends = {name.split(",")[0]: accuracies[-1] for name, accuracies in measured.items() if "nobody" not in name}
    assert ends.pop("FedAvg") < 0.2
    assert min(ends.values()) > 0.8
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000
