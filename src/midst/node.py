"""One participant, without I/O.

Rules:
- A `Node` is what a participant knows from the start and never changes; a `State` is where it stands. `begin` and
  `step` take values and give values: no socket, clock, file or random number is touched, so the same node runs in a
  unit test, in the reference engine, under a fault simulator, and on a wire.
- One round is one message to every neighbour and one from every neighbour. Round 0 carries z(0) and a share of the
  edge's secret, which only that neighbour may see; round t + 1 carries x(t), the same to all. Every message carries
  a word a coordinate about the count (`counting.py`), where the nodes have agreed to finish by one.
- Where links lose messages for good, `wake` takes the place of `step`: offers y travel in place of x, no mirror is
  kept, and an offer that is lost leaves z as it was. The count goes on in rounds of its own.
- A message that cannot be right (not finite, wrong shape, wrong round, not from a neighbour) is refused before it
  touches the state.
- A number (`Array` in the types, as in `update.py`) is a float, or an array of one a coordinate where values are
  vectors. Of an edge's numbers there is one a neighbour, in the order of the neighbours: a node has few of them, and
  Python is faster with few numbers than NumPy is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from midst.counting import Count, Counter, Word
from midst.errors import InputError
from midst.masks import edge_key, node_mask
from midst.system import System
from midst.update import Array, Branch, Terms, average, next_x, next_z, offer


class Message(msgspec.Struct, frozen=True, eq=False):
    """What travels along an edge in one round.

    Attributes:
        round: which.
        number: z_{i|j}(0) in round 0, x_i(t) in round t + 1.
        words: about the count, one a coordinate.
        share: in round 0, the sender's share of the edge's secret.
    """

    round: int
    number: Array
    words: tuple[Word, ...] = ()
    share: bytes = b""

    def __repr__(self) -> str:
        return f"<Message of round {self.round}>"


class State(msgspec.Struct, frozen=True, eq=False):
    """Where a node stands after a round.

    Attributes:
        round: the round it last sent; x is x(round − 1).
        z: z_{i|j}, one a neighbour.
        shares: its own shares of the edges' secrets, one a neighbour.
        mirror: z_{j|i}, one a neighbour; none before the first iteration.
        keys: of the edges' masks, one a neighbour.
        x: what it last broadcast; None before the first iteration.
        branch: the branch that x came from.
        counts: where it stands in the count, one a coordinate.
    """

    round: int
    z: Sequence[Array]
    shares: tuple[bytes, ...] = ()
    mirror: Sequence[Array] | None = None
    keys: tuple[bytes, ...] = ()
    x: Array | None = None
    branch: Branch | None = None
    counts: tuple[Count, ...] = ()

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
        counters: its part in the count, one a coordinate; none where there is no count.
    """

    id: int
    neighbours: tuple[int, ...]
    terms: Terms
    c: Array
    theta: float
    counters: tuple[Counter, ...] = ()

    def __repr__(self) -> str:
        return f"<Node {self.id}, neighbours {self.neighbours}>"

    @cached_property
    def sign(self) -> tuple[int, ...]:
        """A_ij for every neighbour j: 1 where this node has the smaller number, else −1."""
        return tuple(1 if j > self.id else -1 for j in self.neighbours)

    @property
    def signs(self) -> Array:
        """The same as a column, to stand beside an array of a row a neighbour."""
        return np.reshape(np.array(self.sign, np.float64), (-1, *(1,) * len(self.shape)))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of a number: () for a float."""
        return np.shape(self.terms.s)

    def begin(self, z: Sequence[Array], shares: Sequence[bytes] = ()) -> tuple[State, dict[int, Message]]:
        """Round 0: each neighbour is told its z_{i|j}(0), and its share of the secret.

        Args:
            z: the drawn z(0), one a neighbour.
            shares: random bytes, one string a neighbour; none where there is no count.
        """
        if len(z) != len(self.neighbours):
            raise InputError(f"node {self.id}: z(0) has {len(z)} numbers for {len(self.neighbours)} neighbours")
        for number in z:
            self._refuse_bad(number, "z(0)")
        given = tuple(shares) or (b"",) * len(self.neighbours)
        counts = tuple(Count(word=counter.first_word()) for counter in self.counters)
        words = tuple(count.word for count in counts)
        outbox = {j: Message(0, z[k], words, given[k]) for k, j in enumerate(self.neighbours)}
        return State(0, z, given, counts=counts), outbox

    def step(self, state: State, inbox: Mapping[int, Message]) -> tuple[State, dict[int, Message]]:
        """One iteration of Algorithm 1: take in a message from every neighbour, update, and broadcast.

        Args:
            state: where the node stands; it is not changed.
            inbox: one message a neighbour, of the round the node has just sent.

        Returns:
            The next state, and a message for every neighbour: the same x for all, the count's sums for the parent only.
        """
        received = self._open(state, inbox)
        if state.mirror is None or state.x is None:
            shares = {j: message.share for j, message in inbox.items()}
            z, mirror, keys = state.z, received, self.agree_on_keys(state.shares, shares)
        else:
            x, c, theta, keys = state.x, self.c, self.theta, state.keys
            edges = list(zip(state.z, state.mirror, self.sign, received, strict=True))
            z = [next_z(near, far, -A, told, c, theta) for near, far, A, told in edges]
            mirror = [next_z(far, near, A, x, c, theta) for near, far, A, _ in edges]
        x, branch = self._answer(z)
        words = {j: message.words for j, message in inbox.items()}
        counts = self.count(state.counts, state.round, branch, words, keys)
        after = State(state.round + 1, z, state.shares, mirror, keys, x, branch, counts)
        outbox = {j: Message(after.round, x, tuple(count.word_to(j) for count in counts)) for j in self.neighbours}
        return after, outbox

    def wake(self, state: State, offers: Mapping[int, Array]) -> tuple[State, dict[int, Array]]:
        """One iteration where messages get lost: average with the offers that came, keep the z of the others.

        Args:
            state: where the node stands; its mirror is not used.
            offers: y_{j|i} of those neighbours that were heard.

        Returns:
            The next state, with the count where it was, and an offer y_{i|j} for every neighbour.
        """
        for j, number in offers.items():
            self._refuse_bad(number, f"offer from {j}")
        edges = zip(self.neighbours, state.z, strict=True)
        z = [average(near, offers[j], self.theta) if j in offers else near for j, near in edges]
        x, branch = self._answer(z)
        after = msgspec.structs.replace(state, round=state.round + 1, z=z, x=x, branch=branch)
        made = [offer(near, A, x, self.c) for near, A in zip(z, self.sign, strict=True)]
        return after, dict(zip(self.neighbours, made, strict=True))

    def count(
        self,
        counts: tuple[Count, ...],
        t: int,
        branch: Branch,
        words: Mapping[int, tuple[Word, ...]],
        keys: tuple[bytes, ...],
    ) -> tuple[Count, ...]:
        """One round of the count, of every coordinate: what the neighbours said in round t, and where this node is."""
        inside = (branch == 0).tolist() if self.shape else [branch == 0]
        return tuple(
            counter.step(
                count,
                t=t,
                inside=inside[k],
                inbox={j: said[k] for j, said in words.items()},
                mask=lambda number, k=k: node_mask(keys, self.sign, number, k),  # type: ignore[misc]
            )
            for k, (counter, count) in enumerate(zip(self.counters, counts, strict=True))
        )

    def agree_on_keys(self, own: Sequence[bytes], theirs: Mapping[int, bytes]) -> tuple[bytes, ...]:
        """The keys of the edges' masks, from both ends' shares; none where there is no count."""
        if not self.counters:
            return ()
        ends = [(share, theirs[j]) for share, j in zip(own, self.neighbours, strict=True)]
        return tuple(edge_key(*(end if turn > 0 else end[::-1])) for end, turn in zip(ends, self.sign, strict=True))

    def _answer(self, z: Sequence[Array]) -> tuple[Array, Branch]:
        """What to send, and its branch."""
        S: Array = sum(A * near for A, near in zip(self.sign, z, strict=True))  # type: ignore[assignment]
        return next_x(S, self.terms)

    def _open(self, state: State, inbox: Mapping[int, Message]) -> list[Array]:
        if set(inbox) != set(self.neighbours):
            strangers = sorted(set(inbox) ^ set(self.neighbours))
            raise InputError(f"node {self.id} needs one message from every neighbour and no other; see {strangers}")
        for j, message in inbox.items():
            if message.round != state.round:
                raise InputError(f"node {self.id} got round {message.round} from {j} in round {state.round}")
            self._refuse_bad(message.number, f"message from {j}")
            if len(message.words) != len(self.counters):
                raise InputError(f"node {self.id}: message from {j} says nothing, or too much, about the count")
        return [inbox[j].number for j in self.neighbours]

    def _refuse_bad(self, number: Array, what: str) -> None:
        if isinstance(number, float) and not self.shape:
            finite = math.isfinite(number)
        elif np.shape(number) == self.shape != ():
            finite = bool(np.isfinite(number).all())
        else:
            raise InputError(f"node {self.id}: {what} has shape {np.shape(number)}, expected {self.shape or 'a float'}")
        if not finite:
            raise InputError(f"node {self.id}: {what} is not finite")


def plain(number: Array) -> Array:
    """A float, where an array holds but one number."""
    return number if np.ndim(number) else float(number)  # type: ignore[return-value]


def rows(numbers: Array) -> list[Array]:
    """What stands in an array, one row a neighbour, as a node takes it."""
    return [plain(row) for row in numbers]


def make_node(system: System, i: int) -> Node:
    """Participant i of a system, with its own value and nothing of the others'."""
    own, rules = system.terms[i], system.rules
    values = np.atleast_1d(own.s).tolist()
    return Node(
        id=i,
        neighbours=tuple(system.graph.neighbours(i).tolist()),
        terms=Terms(plain(own.s), plain(own.above), plain(own.below), plain(own.weight), plain(own.cd), own.smooth),
        c=plain(system.c),
        theta=system.theta,
        counters=() if rules is None else tuple(Counter(i, value, int(system.counts[i]), rules) for value in values),
    )
