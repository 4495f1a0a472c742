"""Algorithms of one's own: what one node does, and the driver that runs it and keeps what was sent.

Rules:
- An `Algorithm` is a state machine without I/O, as `protocol/node.py` is: `begin` and `step` take values and give
  values. What they are given they do not change.
- A node knows what its `Local` says: its own value, its neighbours, and what is public. Whatever else it comes to know,
  somebody has sent it.
- A round delivers all messages at once; then every node steps. A node need not write to all neighbours, or to any.
- A message is a number, several numbers, or bytes. What a run gives away follows from its messages, so the driver keeps
  them all.
- What is random comes from the generator that a node is given, which is its own: in which order nodes are asked
  changes nothing.

`midst.contracts.check_algorithm` tries whether an algorithm keeps to this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar

import numpy as np

from midst.errors import InputError, whole_number
from midst.graphs import Graph
from midst.objectives import Objective
from midst.problems import Bounds, Problem
from midst.protocol.node import plain
from midst.system import RNG, streams
from midst.types import Array

Message = float | tuple[float, ...] | Array | bytes
Outbox = Mapping[int, Message]  # to whom, what
Inbox = Mapping[int, Message]  # from whom, what
State = TypeVar("State")

_NUMBER = 8  # bytes


@dataclass(frozen=True, eq=False)
class Local:
    """What one node knows before the first round.

    Attributes:
        node: its number.
        neighbours: theirs, in ascending order.
        value: its own: a float; an array with one number a coordinate; or, where lists are pooled, its list.
        weight: how much it counts.
        graph: who talks to whom: public, as is all below.
        objective: what is to be found.
        scale: about how far values lie from each other; one number, or one a coordinate, like all below.
        centre: about where they lie.
        bounds: between which numbers; None where nobody has said.
    """

    node: int
    neighbours: tuple[int, ...]
    value: float | Array = field(repr=False)
    weight: float
    graph: Graph = field(repr=False)
    objective: Objective
    scale: float | Array
    centre: float | Array
    bounds: Bounds | None


class Algorithm(Protocol[State]):
    """What every node does, round by round. A state is whatever an algorithm likes, and is nobody else's business."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    def begin(self, local: Local, rng: np.random.Generator) -> tuple[State, Outbox]:
        """Where a node starts, and its first messages.

        Args:
            local: what it knows.
            rng: its own source of random numbers, the same object in every call.
        """

    def step(self, local: Local, state: State, inbox: Inbox, rng: np.random.Generator) -> tuple[State, Outbox]:
        """One round: what has arrived goes in, where the node then stands and what it sends next come out.

        Args:
            local: what it knows.
            state: where it stands; not to be changed.
            inbox: the messages of this round, by who has sent them; empty where nobody wrote.
            rng: as in `begin`.
        """

    def estimate(self, state: State) -> float | Array:
        """What a node takes the answer to be: a number, or one a coordinate."""


@dataclass(frozen=True, eq=False, repr=False)
class Round:
    """One round.

    Attributes:
        sent: what each node sent in it, by node and by whom it was for.
        estimates: what each node takes the answer to be once all that has arrived; a row a node.
    """

    sent: tuple[Outbox, ...]
    estimates: Array

    @property
    def messages(self) -> int:
        """How many were sent."""
        return sum(map(len, self.sent))

    @property
    def bytes(self) -> int:
        """What was sent in them: 8 bytes a number. What a wire puts around a message is not counted."""
        return sum(size_of(message) for outbox in self.sent for message in outbox.values())


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What an algorithm has done, and everything that was sent.

    Attributes:
        algorithm: its name.
        estimates: what each node took the answer to be before the first round and after each: (rounds + 1, n), or
            (rounds + 1, n, m) for m coordinates.
        sent: of each round, what each node sent to whom; none where it was not to be kept.
        messages: how many were sent.
        bytes: what was in them: 8 bytes a number, and nothing for what a wire puts around them.
    """

    algorithm: str
    estimates: Array
    sent: tuple[tuple[Outbox, ...], ...]
    messages: int
    bytes: int
    _problem: Problem

    def __repr__(self) -> str:
        return f"<Run of {self.algorithm} over {self._problem.graph!r}: {self.rounds:,} rounds>"

    @property
    def rounds(self) -> int:
        """How many there were."""
        return len(self.estimates) - 1

    @property
    def value(self) -> float | Array:
        """The answer: the middle of what all nodes ended with."""
        last = self.estimates[-1]
        return plain(np.asarray(last.min(axis=0) / 2 + last.max(axis=0) / 2))

    @property
    def error(self) -> float:
        """How far the answer lies from the nearest right one, which only a simulation knows."""
        return float(np.max(self._problem.distance(self.value)))

    @property
    def errors(self) -> Array:
        """The same of whichever node is farthest off, before the first round and after each."""
        far = self._problem.distance(self.estimates)
        return np.asarray(far.reshape(len(far), -1).max(axis=1))


def run_algorithm(
    problem: Problem, algorithm: Algorithm[State], rounds: int, rng: RNG = None, *, keep: bool = True
) -> Run:
    """Run an algorithm for so many rounds.

    Args:
        problem: what is to be found, by whom.
        algorithm: how.
        rounds: how many.
        rng: a seed or a generator from which every node's own is made.
        keep: whether to keep what was sent; only counted where not.

    Raises:
        InputError: the algorithm refuses this problem, or a node wrote to somebody who is no neighbour, sent something
            that is neither finite numbers nor bytes, or has no finite estimate.
    """
    whole_number("rounds", rounds)
    played = play(problem, algorithm, rng)
    estimates, sent = [next(played).estimates], []
    messages = size = 0
    for each in islice(played, rounds):
        estimates.append(each.estimates)
        messages += each.messages
        size += each.bytes
        if keep:
            sent.append(each.sent)
    return Run(algorithm.name, np.array(estimates), tuple(sent), messages, size, problem)


def play(problem: Problem, algorithm: Algorithm[State], rng: RNG = None) -> Iterator[Round]:
    """Run an algorithm for ever: first how all nodes start, with nothing sent yet, and then round after round.

    Raises:
        InputError: see `run_algorithm`.
    """
    nodes = [local_of(problem, i) for i in range(problem.graph.n)]
    generators = streams(rng).nodes.spawn(len(nodes))
    begun = [algorithm.begin(local, own) for local, own in zip(nodes, generators, strict=True)]
    sent: tuple[Outbox, ...] = ()
    while True:
        states, outboxes = [state for state, _ in begun], tuple(outbox for _, outbox in begun)
        yield Round(sent, _estimates(algorithm, states, problem))
        for local, outbox in zip(nodes, outboxes, strict=True):
            _refuse_bad(algorithm.name, local, outbox)
        inboxes: list[dict[int, Message]] = [{} for _ in nodes]
        for i, outbox in enumerate(outboxes):
            for j, message in outbox.items():
                inboxes[j][i] = message
        sent = outboxes
        begun = [algorithm.step(*each) for each in zip(nodes, states, inboxes, generators, strict=True)]


def local_of(problem: Problem, node: int) -> Local:
    """What one node of a problem knows before the first round."""
    values = problem.values[node] if problem.owners is None else problem.values[problem.owners == node]
    return Local(
        node,
        tuple(problem.graph.neighbours(node).tolist()),
        plain(values),
        problem.unit_weight * int(problem.whole_weights[node]),
        problem.graph,
        problem.objective,
        plain(problem.scale),
        plain(problem.centre),
        problem.bounds,
    )


def size_of(message: Message) -> int:
    """The bytes of a message: its own, or 8 a number."""
    if isinstance(message, float):  # nearly all are
        return _NUMBER
    return len(message) if isinstance(message, bytes) else _NUMBER * int(np.size(message))


def _estimates(algorithm: Algorithm[State], states: list[State], problem: Problem) -> Array:
    estimates = np.array([algorithm.estimate(state) for state in states], np.float64)
    wanted = (problem.graph.n, *problem.values.shape[1:])
    if estimates.shape != wanted or not np.isfinite(estimates).all():
        raise InputError(f"{algorithm.name}: a node's estimate must be one finite number a coordinate")
    return estimates


def _refuse_bad(name: str, local: Local, outbox: Outbox) -> None:
    for stranger in outbox.keys() - set(local.neighbours):
        raise InputError(f"{name}: node {local.node} wrote to {stranger}, which is no neighbour of it")
    for message in {id(message): message for message in outbox.values()}.values():  # a broadcast is looked at once
        if not isinstance(message, bytes) and not _are_finite(message):
            raise InputError(f"{name}: node {local.node} sent something that is neither finite numbers nor bytes")


def _are_finite(message: Message) -> bool:
    try:
        return bool(np.isfinite(np.asarray(message, np.float64)).all())
    except (TypeError, ValueError):
        return False
