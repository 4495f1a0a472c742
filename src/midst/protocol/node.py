"""One participant, without I/O.

Rules:
- A `Node` is what a participant knows from the start and never changes; a `State` is where it stands. `begin` and
  `step` take values and give values: no socket, clock, file or random number is touched, so the same node runs in a
  unit test, in the reference engine, under a fault simulator, and on a wire.
- One round is one message to every neighbour and one from every neighbour. Round 0 carries z(0), which only that
  neighbour may see; round t + 1 carries x(t), the same to all.
- A message that cannot be right (not finite, wrong shape, wrong round, not from a neighbour) is refused before it
  touches the state.
- A number (`Array` in the types, as in `step.py`) is a float, or an array of one a coordinate where values are
  vectors. Of an edge's numbers there is one a neighbour, in the order of the neighbours: a node has few of them, and
  Python is faster with few numbers than NumPy is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import Any

import msgspec
import numpy as np

from midst.errors import InputError
from midst.protocol.message import Message
from midst.protocol.step import OwnTerms, Terms, next_z, x_update
from midst.types import Array, Branch


class State(msgspec.Struct, frozen=True, eq=False):
    """Where a node stands after a round.

    Attributes:
        round: the round it last sent; x is x(round − 1).
        z: z_{i|j}, one a neighbour.
        mirror: z_{j|i}, one a neighbour; none before the first iteration.
        x: what it last broadcast; None before the first iteration.
        branch: the branch that x came from.
    """

    round: int
    z: Sequence[Array]
    mirror: Sequence[Array] | None = None
    x: Array | None = None
    branch: Branch | None = None

    def __repr__(self) -> str:
        return f"<State after round {self.round}>"


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """What one participant knows.

    Attributes:
        id: its own number.
        neighbours: their numbers, in ascending order.
        terms: its local objective.
        c: the convergence parameter.
        theta: the averaging constant.
    """

    id: int
    neighbours: tuple[int, ...]
    terms: Terms | OwnTerms
    c: Array
    theta: float

    def __repr__(self) -> str:
        return f"<Node {self.id}, neighbours {self.neighbours}>"

    @cached_property
    def sign(self) -> tuple[int, ...]:
        """A_ij for every neighbour j: 1 where this node has the smaller number, else −1."""
        return tuple(1 if j > self.id else -1 for j in self.neighbours)

    @cached_property
    def _everybody(self) -> frozenset[int]:
        return frozenset(self.neighbours)

    @cached_property
    def _next_x(self) -> Callable[[Array, Any], tuple[Array, Branch]]:
        return x_update(self.terms)

    @property
    def sign_column(self) -> Array:
        """The same as a column, to stand beside an array of a row a neighbour."""
        return np.reshape(np.array(self.sign, np.float64), (-1, *(1,) * len(self.shape)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of a number: () for a float."""
        return np.shape(self.terms.cd)

    def begin(self, z: Sequence[Array]) -> tuple[State, dict[int, Message]]:
        """Round 0: each neighbour is told its z_{i|j}(0), of which `z` has one a neighbour."""
        if len(z) != len(self.neighbours):
            raise InputError(f"node {self.id}: z(0) has {len(z)} numbers for {len(self.neighbours)} neighbours")
        for number in z:
            self._refuse_bad(number, "z(0)")
        return State(0, z), {j: Message(0, z[k]) for k, j in enumerate(self.neighbours)}

    def step(self, state: State, inbox: Mapping[int, Message]) -> tuple[State, dict[int, Message]]:
        """One iteration of Algorithm 1: take in a message from every neighbour, update, and broadcast.

        Args:
            state: where the node stands; it is not changed.
            inbox: one message a neighbour, of the round the node has just sent.

        Returns:
            The next state, and a message for every neighbour, the same for all.
        """
        received = self._open(state, inbox)
        if state.mirror is None or state.x is None:
            z, mirror = state.z, received
        else:
            x, c, theta = state.x, self.c, self.theta
            edges = list(zip(state.z, state.mirror, self.sign, received, strict=True))
            z = [next_z(near, far, -A, their_x, c, theta) for near, far, A, their_x in edges]
            mirror = [next_z(far, near, A, x, c, theta) for near, far, A, _ in edges]
        S: Array = sum(map(mul, self.sign, z))
        x, branch = self._next_x(S, self.terms)
        after = State(state.round + 1, z, mirror, x, branch)
        return after, dict.fromkeys(self.neighbours, Message(after.round, x))

    def _open(self, state: State, inbox: Mapping[int, Message]) -> list[Array]:
        if inbox.keys() != self._everybody:
            strangers = sorted(self._everybody ^ inbox.keys())
            raise InputError(f"node {self.id} needs one message from every neighbour and no other; see {strangers}")
        received = []
        for j in self.neighbours:
            message = inbox[j]
            if message.round != state.round:
                raise InputError(f"node {self.id} got round {message.round} from {j} in round {state.round}")
            number = message.number
            self._refuse_bad(number, "message from", j)
            received.append(number)
        return received

    def _refuse_bad(self, number: Array, *what: object) -> None:
        if isinstance(number, float) and not self.shape:
            finite = math.isfinite(number)
        elif np.shape(number) == self.shape != ():
            finite = bool(np.isfinite(number).all())
        else:
            found, wanted = np.shape(number), self.shape or "a float"
            raise InputError(f"node {self.id}: {' '.join(map(str, what))} has shape {found}, expected {wanted}")
        if not finite:
            raise InputError(f"node {self.id}: {' '.join(map(str, what))} is not finite")


def plain(number: Array) -> Array:
    """A float, where an array holds but one number."""
    return number if np.ndim(number) else float(number)  # type: ignore[return-value]


def rows(numbers: Array) -> list[Array]:
    """What stands in an array, one row a neighbour, as a node takes it."""
    return [plain(row) for row in numbers]
