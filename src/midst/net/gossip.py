"""A masked search among neighbours: statements are told on until everybody has heard everybody.

Rules:
- No I/O, no clock. What the statements mean is `protocol/participant.py`'s business; here is only who is told what.
- The graph is public, so everybody knows by which neighbour a statement reaches whom: the lowest-numbered one that is
  nearer to its signer. Nobody is told what it is known to have, and each statement crosses as few links as it can.
- Who lacks a statement asks for it: first the neighbour that should have told it, then all of them. So a neighbour that
  withholds, loses or is slow holds up nobody who has another.
- Where statements of one step have different contexts, their signers were told different things before: then everything
  earlier is told to all neighbours, until two statements of one signer meet.
- Nothing of one's own is told before every neighbour has said what it has heard from this participant (`Peer`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from midst.graphs import Graph
from midst.net.answer import Answer, read_search
from midst.net.setup import Opening, Setup
from midst.net.wire import Statements, Want
from midst.protocol.noisy_search import AnySearch
from midst.protocol.participant import Participant, transcript_of
from midst.protocol.statements import Statement


class Gossip:
    """One participant's part in a search."""

    awaits_everybody = True
    vectors = None
    state = None  # there is no iteration, or `ExactFinish` has it

    def __init__(
        self, setup: Setup, opening: Opening, first: int = 0, thresholds: tuple[tuple[int, ...], ...] = ()
    ) -> None:
        """Ready to announce itself.

        Args:
            setup: who, and by which charter.
            opening: what was drawn for the session.
            first: the round in which the search begins: after those of an iteration, where there was one.
            thresholds: of the first probe, where the iteration before has found them.
        """
        self._setup, self._first = setup, first
        self._routes = Routes(setup.charter.graph, setup.number)
        self._participant = Participant(setup.agreement(thresholds), setup.holding(opening), setup.notary)
        self._has: dict[int, set[tuple[int, int]]] = {j: set() for j in setup.neighbours}
        self._outbox: list[tuple[int, Statement]] = []
        self._asked = -1
        self._begun = False
        self.exposed = False
        self.answer: Answer | None = None

    @property
    def round(self) -> int:
        """The step whose statements are awaited, counted from the session's first round."""
        return self._first + self._participant.step

    @property
    def search(self) -> AnySearch | None:
        """Where the search stands; None before all announcements are there."""
        return self._participant.search

    def own(self, step: int) -> Statement | None:
        """Our own statement of a step, if there is one."""
        return self._participant.held(step, self._setup.number)

    # What is told

    def begin(self) -> None:
        """Every neighbour has said what it knows of us: from now on our own statements are told."""
        self._begun = True
        self._tell(self._participant.own[self._participant.step])

    def outbox(self) -> list[tuple[int, bytes]]:
        """What is to be sent now; it is not given a second time."""
        told: dict[int, list[Statement]] = {}
        for j, statement in self._outbox:
            told.setdefault(j, []).append(statement)
        self._outbox = []
        return [(j, frame) for j, statements in told.items() for frame in self._setup.codec.encode(statements)]

    def frames(self, j: int, since: int, lacks: bytes = b"") -> list[bytes]:
        """What a neighbour asks for: what it lacks of a round; or, when it is new, all it should have from us since."""
        step = max(since - self._first, 0)
        if lacks:
            wanted = [self._held(step, signer) for signer in unpack_bits(lacks, len(self._setup.charter.names))]
        else:
            steps = range(step, self._participant.step + 2)  # others may be a step ahead, never two
            wanted = [self._held(s, signer) for s in steps for signer in self._routes.signers_told_to[j]]
            self._outbox = [(k, told) for k, told in self._outbox if k != j or told not in wanted]  # it is told now
        return self._setup.codec.encode([statement for statement in wanted if statement is not None])

    def ask(self, j: int) -> Want | None:
        """What to ask a neighbour for; nothing of the ones who need not have it, the first time."""
        step = self._participant.step
        missing = self._participant.missing()
        if self._asked < step:
            missing = [k for k in missing if self._routes.nearest[k] == j]
        return Want(self.round, pack_bits(missing, len(self._setup.charter.names))) if missing else None

    def asked(self) -> None:
        """Everybody has been asked who need be: the next time ask all; and show what was heard if others heard else."""
        self._asked = self._participant.step
        if self._participant.apart:
            earlier = [s for step in range(self._participant.step) for s in self._participant.statements(step)]
            self._outbox += [(j, statement) for statement in earlier for j in self._setup.neighbours]

    def newest_of(self, j: int) -> Statement | None:
        """The newest statement that we have of somebody."""
        steps = range(self._participant.step + 1, -1, -1)
        return next((answer for s in steps if (answer := self._participant.held(s, j)) is not None), None)

    # What is heard

    def heard(self) -> list[Statement]:
        """All statements of this step that are here."""
        return self._participant.statements(self._participant.step)

    def missing(self) -> list[int]:
        """Whose statement of this step is not here."""
        return self._participant.missing()

    def take(self, j: int, said: Statements) -> bool:
        """Hold what a neighbour tells; whether any of it was news.

        Raises:
            Malformed: it tells what no participant could have signed now.
            Distrust: somebody has signed what it must not.
        """
        news = False
        for statement in said.statements:
            # First that j has it, then to whom it is told on: else j would be sent back what it has just told.
            self._has[j].add((statement.signer, statement.step))
            if self._participant.take(statement):
                self._tell(statement)
                news = True
        return news

    def forget(self, j: int) -> None:
        """A neighbour has greeted anew: nothing is known of what it has."""
        self._has[j].clear()

    # Going on

    def inputs(self, now: float) -> Sequence[Statement] | None:
        """What the next step is made from, once everybody's statement is here."""
        return self._participant.ready() if self._begun else None

    def pack(self, inputs: Sequence[Statement]) -> bytes:
        """A step's inputs for the journal."""
        return self._setup.codec.encode_all(inputs)

    def unpack(self, record: bytes) -> Sequence[Statement]:
        """And back."""
        return self._setup.codec.decode_all(record)

    def step(self, inputs: Sequence[Statement]) -> None:
        """The next step.

        Raises:
            Distrust: somebody has announced a key that hides nothing.
            Impossible: no values can have these totals.
        """
        # Our next statement follows from these inputs: it may be told only since `Peer` has them on disk.
        self._participant.advance(inputs)
        if self._participant.certified:
            self.answer = self._read()
        elif self._begun:
            self._tell(self._participant.own[self._participant.step])

    def _read(self) -> Answer:
        search, charter = self._participant.search, self._setup.charter
        assert search is not None
        found = read_search(charter, search)
        return Answer(
            value=found.values,
            proof=found.proofs,
            bound=0.0 if found.rank_error is None else None,
            rounds=self._first + (search.steps + 2) * charter.graph.diameter(),
            exposed=self.exposed,
            probes=search.steps,
            contradicted=self._participant.contradicted,
            transcript=transcript_of(self._participant),
            statistics=found.statistics,
            rank_error=found.rank_error,
        )

    def _held(self, step: int, signer: int) -> Statement | None:
        if signer == self._setup.number and not self._begun:
            return None
        return self._participant.held(step, signer)

    def _tell(self, statement: Statement) -> None:
        """To those neighbours that hear of it by us, and are not known to have it."""
        about = statement.signer, statement.step
        self._outbox += [(j, statement) for j in self._routes.told_on[statement.signer] if about not in self._has[j]]


class Routes:
    """By which neighbour a statement reaches whom."""

    def __init__(self, graph: Graph, number: int) -> None:
        """From the graph that everybody has.

        Args:
            graph: connected.
            number: whose routes.
        """
        self._graph, self._number = graph, number
        self._known: dict[int, list[int]] = {}  # distances from those asked about
        self._near = {i: tuple(graph.neighbours(i).tolist()) for i in (number, *graph.neighbours(number).tolist())}

    @cached_property
    def nearest(self) -> tuple[int, ...]:
        """Of each signer, the neighbour by which its statements come here."""
        return self._tellers(self._number)

    @cached_property
    def told_on(self) -> tuple[tuple[int, ...], ...]:
        """Of each signer, the neighbours that hear of it by us."""
        told: list[list[int]] = [[] for _ in range(self._graph.n)]
        for j, signers in self.signers_told_to.items():
            for signer in signers:
                told[signer].append(j)
        return tuple(map(tuple, told))

    @cached_property
    def signers_told_to(self) -> dict[int, list[int]]:
        """Of each neighbour, the signers of whom it hears by us."""
        tellers = ((j, self._tellers(j)) for j in self._near[self._number])
        return {j: [signer for signer, by in enumerate(told_by) if by == self._number] for j, told_by in tellers}

    def _tellers(self, k: int) -> tuple[int, ...]:
        """Of each signer, the lowest-numbered neighbour of k that is nearest to it; k itself of its own."""
        near = sorted(self._near[k])
        nearest = np.argmin([self._distances(j) for j in near], axis=0)  # of equals, the first
        return tuple(k if signer == k else near[place] for signer, place in enumerate(nearest.tolist()))

    def _distances(self, start: int) -> list[int]:
        if start not in self._known:
            self._known[start] = breadth_first(self._lists, start)
        return self._known[start]

    @cached_property
    def _lists(self) -> list[list[int]]:
        return [self._graph.neighbours(i).tolist() for i in range(self._graph.n)]


def breadth_first(lists: Sequence[Sequence[int]], start: int) -> list[int]:
    """How many hops everybody is away."""
    distance = [-1] * len(lists)
    distance[start] = 0
    line = deque([start])
    while line:
        i = line.popleft()
        for j in lists[i]:
            if distance[j] < 0:
                distance[j] = distance[i] + 1
                line.append(j)
    return distance


def pack_bits(numbers: Iterable[int], count: int) -> bytes:
    """A set of participants as bits."""
    return sum(1 << k for k in numbers).to_bytes(-(-count // 8), "little")


def unpack_bits(raw: bytes, count: int) -> list[int]:
    """And back; what is beyond the participants is left out."""
    bits = int.from_bytes(raw, "little")
    return [k for k in range(count) if bits >> k & 1]
