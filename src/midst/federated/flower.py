"""Flower: the clients of a federation find the aggregate among themselves, and the server is shown that and no more.

On the server `AmongClients` stands in FedAvg's place; in the ClientApp `reply_with_aggregate` makes the reply.

Rules:
- A client's own update is in no message to the server. A reply holds the metrics that its user chose to send, the
  digest of the aggregate and, from one client a round, the aggregate.
- The server takes the aggregate that all clients vouch for by the same digest, and which has that digest. Otherwise it
  stops, and says because of which node.
- All clients of the charter take part in every round. Where one fails the others cannot find the aggregate either: the
  run ends, as it does between nodes.
- Flower's first round is the first of the session, and so on. A round that the server asks for again gives the same
  aggregate again, whatever the client has trained meanwhile.
- After the first round a client takes part only if the model that it was sent is the aggregate of the round before. A
  server that sends each client a model of its own making could tell by the aggregate whose update is whose.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from midst.errors import Aborted, InputError, MissingExtra

try:
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp import Grid
    from flwr.serverapp.exception import AggregationError
    from flwr.serverapp.strategy import FedAvg
except ImportError:
    raise MissingExtra("Flower", "flower") from None

if TYPE_CHECKING:
    from midst.federated.client import Client

_OURS = "midst"  # the record that is ours, in messages and replies
_FEW = 3  # nodes, and reasons, named in an error


class AmongClients(FedAvg):
    """A strategy by which the clients find the aggregate among themselves; what it is, their charter says.

    A client that lies in their protocol, about its counts, can put any number of it anywhere, and nobody notices.
    """

    def __init__(self, clients: int, **options: Any) -> None:
        """Nothing is sent yet.

        Args:
            clients: how many the charter has; a round waits until so many nodes are connected.
            **options: those of Flower's FedAvg that are about evaluation, metrics and the keys of records.

        Raises:
            InputError: fewer than two clients.
        """
        if clients < 2:
            raise InputError("one client alone has nobody to hide its update from; at least two are needed")
        super().__init__(fraction_train=1.0, min_train_nodes=clients, min_available_nodes=clients, **options)
        self._clients = clients
        self._bearer = 0
        self._asked: set[int] = set()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The model for every client, one of whom is to bring the aggregate: another one each round."""
        messages = {m.metadata.dst_node_id: m for m in super().configure_train(server_round, arrays, config, grid)}
        if len(messages) != self._clients:
            which = f"{len(messages)} nodes are connected, and the charter has {self._clients} clients"
            raise AggregationError(f"round {server_round}: {which}; start one node a client, and no others")
        self._asked = set(messages)
        self._bearer = sorted(messages)[server_round % self._clients]
        for node, message in messages.items():
            ours = ConfigRecord({"round": server_round - 1, "bring": node == self._bearer})
            message.content = RecordDict({**message.content, _OURS: ours})
        return messages.values()

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The aggregate that all clients vouch for, and their metrics.

        Raises:
            AggregationError: a client failed or did not answer, their aggregates differ, or the one brought is another.
        """
        answers = {reply.metadata.src_node_id: reply for reply in replies}
        fault = self._missing(answers) or _differing(answers) or self._misbrought(answers)
        if fault is not None:
            raise AggregationError(f"round {server_round}: {fault}")
        contents = [reply.content for reply in answers.values()]
        return _brought(answers[self._bearer]), self.train_metrics_aggr_fn(contents, self.weighted_by_key)

    def _missing(self, answers: Mapping[int, Message]) -> str | None:
        """Whose answer is not there, and why."""
        failed = {node: reply.error.reason for node, reply in answers.items() if reply.has_error()}
        silent = dict.fromkeys(self._asked - answers.keys(), "no answer in time")
        return _name_few(failed | silent) if failed or silent else None

    def _misbrought(self, answers: Mapping[int, Message]) -> str | None:
        """Whether the aggregate that was brought is the one that all vouch for."""
        reply = answers[self._bearer]
        arrays = _brought(reply)
        if arrays is None:
            return f"node {self._bearer} was to bring the aggregate, and did not"
        if _digest(arrays) != _vouched(reply):
            return f"node {self._bearer} brought an aggregate that is not the one that all clients vouch for"
        return None


def reply_with_aggregate(
    message: Message, update: ArrayRecord, client: Client, metrics: Mapping[str, Any] | None = None
) -> Message:
    """Find the aggregate with the other clients, and tell the server what it may know; for use in a ClientApp.

    Args:
        message: the server's.
        update: the model as this client trained it: what would have been the reply, and now stays here.
        client: this client's part in the session, open.
        metrics: what else the server is told, such as "num-examples", by which it weighs them; 1 if that is not given.

    Returns:
        The reply.

    Raises:
        InputError: the message is not from `AmongClients`, its model is not the last aggregate, or the update is not
            what the charter says. Nothing was sent to anybody.
        Aborted: the clients found no aggregate; says because of whom.
    """
    models = list(message.content.array_records.values())
    if _OURS not in message.content or len(models) != 1:
        raise InputError("the server's message is not one of AmongClients; let that be its strategy")
    asked = message.content[_OURS]
    _check_model(models[0], asked["round"], client)
    arrays = _aggregate(update, asked["round"], client)
    told = ConfigRecord({"digest": _digest(arrays)})
    content = RecordDict({_OURS: told, "metrics": MetricRecord({"num-examples": 1, **(metrics or {})})})
    if asked["bring"]:
        content["arrays"] = arrays
    return Message(content, reply_to=message)


def _aggregate(update: ArrayRecord, number: int, client: Client) -> ArrayRecord:
    """What the clients find in a round; of one that is over, what they have found."""
    found = client.aggregate({name: array.numpy() for name, array in update.items()}, number).value
    return ArrayRecord({name: Array(np.asarray(array, order="C")) for name, array in found.items()})


def _check_model(model: ArrayRecord, number: int, client: Client) -> None:
    """Refuse a model that is not the last aggregate; of the first one nothing is known."""
    if 0 < number == client.rounds_done and _digest(_aggregate(model, number - 1, client)) != _digest(model):
        raise InputError("the server's model is not the aggregate of the last round; nothing was sent to anybody")


def _digest(arrays: ArrayRecord) -> bytes:
    """SHA-256 of the arrays as they are sent; a server does not read them before it knows that all vouch for them."""
    whole = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        head = repr((name, array.dtype, tuple(array.shape), array.stype, len(array.data))).encode()
        whole.update(len(head).to_bytes(8, "big") + head + array.data)
    return whole.digest()


def _vouched(reply: Message) -> bytes | None:
    """The digest that a client sent; whatever else it may have sent in its place is none."""
    digest = reply.content.get(_OURS, {}).get("digest")
    return digest if isinstance(digest, bytes) else None


def _brought(reply: Message) -> ArrayRecord | None:
    """The aggregate in a reply."""
    return next(iter(reply.content.array_records.values()), None)


def _differing(answers: Mapping[int, Message]) -> str | None:
    """Who does not vouch for what most do."""
    said = {node: _vouched(reply) for node, reply in answers.items()}
    usual, _ = Counter(said.values()).most_common(1)[0]
    if usual is None:
        return "the clients vouch for no aggregate; let each of them answer by reply_with_aggregate"
    others = [node for node, digest in said.items() if digest != usual]
    return _name_few(dict.fromkeys(others, "another aggregate than most clients found")) if others else None


def _name_few(faults: Mapping[int, str | None]) -> str:
    """Nodes and what is the matter with them, on one line; aborted ones last: that is about others."""
    nodes: dict[str, list[int]] = {}
    for node, why in sorted(faults.items()):
        nodes.setdefault(" ".join(str(why).split()), []).append(node)
    reasons = sorted(nodes, key=lambda why: (Aborted.__name__ in why, len(nodes[why])))
    named = [f"node {_few(nodes[why])}: {why}" for why in reasons[:_FEW]]
    return "; ".join(named) + (f"; and {len(reasons) - _FEW} more" if len(reasons) > _FEW else "")


def _few(nodes: list[int]) -> str:
    return ", ".join(map(str, nodes[:_FEW])) + (f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else "")
