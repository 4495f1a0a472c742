"""One participant, without I/O.

Rules:
- A `Node` is what a participant knows from the start and never changes; a `State` is where it stands. `begin` and
  `step` take values and give values: no socket, clock, file or random number is touched, so the same node runs in a
  unit test, in the reference engine, under a fault simulator, and on a wire.
- One round is one message to every neighbour and one from every neighbour. Round 0 carries z(0), which only that
  neighbour may see; round t + 1 carries x(t), the same to all.
- A message that cannot be right (not finite, wrong shape, wrong round, not from a neighbour) is refused before it
  touches the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.update import Array, Branch, Terms, next_x, next_z


@dataclass(frozen=True, eq=False)
class Message:
    """What travels along an edge in one round: z_{i|j}(0) in round 0, x_i(t) in round t + 1."""

    round: int
    number: Array = field(repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Where a node stands after a round.

    Attributes:
        round: the round it last sent; x is x(round − 1).
        z: z_{i|j}, one row a neighbour.
        mirror: z_{j|i}, one row a neighbour.
        x: what it last broadcast; None before the first iteration.
        branch: the branch that x came from.
    """

    round: int
    z: Array
    mirror: Array | None = None
    x: Array | None = None
    branch: Branch | None = None


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
    terms: Terms
    c: Array
    theta: float

    def __repr__(self) -> str:
        return f"<Node {self.id}, neighbours {self.neighbours}>"

    @property
    def sign(self) -> Array:
        """A_ij for every neighbour j: 1 where this node has the smaller number, else −1; a column beside z."""
        signs = np.where(np.array(self.neighbours) > self.id, 1.0, -1.0)
        return signs.reshape(-1, *(1,) * np.ndim(self.terms.s))

    def begin(self, z: Array) -> tuple[State, dict[int, Message]]:
        """Round 0: each neighbour is told its z_{i|j}(0).

        Args:
            z: the drawn z(0), one row a neighbour.
        """
        self._refuse_bad(z, (len(self.neighbours), *np.shape(self.terms.s)), "z(0)")
        return State(0, z), {j: Message(0, row) for j, row in zip(self.neighbours, z, strict=True)}

    def step(self, state: State, inbox: Mapping[int, Message]) -> tuple[State, dict[int, Message]]:
        """One iteration of Algorithm 1: take in a message from every neighbour, update, and broadcast.

        Args:
            state: where the node stands; it is not changed.
            inbox: one message a neighbour, of the round the node has just sent.

        Returns:
            The next state, and the same x for every neighbour.
        """
        received = self._open(state, inbox)
        if state.mirror is None or state.x is None:
            z, mirror = state.z, received
        else:
            z = next_z(state.z, state.mirror, -self.sign, received, self.c, self.theta)
            mirror = next_z(state.mirror, state.z, self.sign, state.x, self.c, self.theta)
        x, branch = next_x(np.sum(self.sign * z, axis=0), self.terms)
        after = State(state.round + 1, z, mirror, x, branch)
        return after, dict.fromkeys(self.neighbours, Message(after.round, x))

    def _open(self, state: State, inbox: Mapping[int, Message]) -> Array:
        if set(inbox) != set(self.neighbours):
            strangers = sorted(set(inbox) ^ set(self.neighbours))
            raise InputError(f"node {self.id} needs one message from every neighbour and no other; see {strangers}")
        for j, message in inbox.items():
            if message.round != state.round:
                raise InputError(f"node {self.id} got round {message.round} from {j} in round {state.round}")
            self._refuse_bad(message.number, np.shape(self.terms.s), f"message from {j}")
        return np.array([inbox[j].number for j in self.neighbours])

    def _refuse_bad(self, number: NDArray[np.float64], shape: tuple[int, ...], what: str) -> None:
        if np.shape(number) != shape:
            raise InputError(f"node {self.id}: {what} has shape {np.shape(number)}, expected {shape}")
        if not np.isfinite(number).all():
            raise InputError(f"node {self.id}: {what} is not finite")
