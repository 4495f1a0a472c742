"""The clock, the links and the participants: everything that happens, happens in an order that the seed decides.

Rules:
- One random generator decides all faults, in the order in which things happen; participants draw from their own, so
  that the same z(0) is drawn with and without faults.
- A participant is a `Peer` while it is up, and only its disk while it is down.
- A liar's peer is like any other; a `Liar` stands between it and its links.
- What was done is hashed as it happens: two runs with the same hash did the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Mapping
from itertools import count
from random import Random

import numpy as np

from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.journal import Journal
from midst.net.peer import RETRY, Peer
from midst.net.session import resume
from midst.net.setup import Setup

from .disk import Crash, SimFile
from .faults import Faults
from .liars import Liar, RolledBack

_BUSY = 20.0  # seconds from the start in which crashes, partitions and full disks begin
_DOWN = (0.05, 8.0)  # how long a participant stays down
_APART = (0.5, 10.0)  # how long a partition, or a full disk, lasts
_TALKS = 100.0  # seconds for which a liar talks
_LIES = (0.0, 3.0)  # how long until the power fails after a sync that lies
_OFTEN = 60  # a fatal write is one of the next so many


class SimulatedParticipant:
    """One setup: its disk, and its peer while it is up."""

    def __init__(self, setup: Setup, disk: SimFile) -> None:
        self.setup = setup
        self.disk = disk
        self.peer: Peer | None = None
        self.starts = 0
        self.result: Answer | Aborted | None = None
        self.trajectory: dict[int, bytes] = {}


class World:
    """A run of all participants of a charter, under faults.

    Attributes:
        now: the simulated time, in seconds.
        frames: sent so far.
        crashes: suffered so far.
        twice: edges over which two different frames of one round were sent.
        masks_twice: participants that hid two different answers behind one mask, or signed two statements for a step.
        participants: by number.
    """

    def __init__(self, setups: list[Setup], seed: int, faults: Faults, liars: Mapping[int, Liar] | None = None) -> None:
        """Everything in place, nothing started.

        Args:
            setups: of everybody.
            seed: decides what fails.
            faults: how often.
            liars: by number.
        """
        self._liars = liars or {}
        self._faults = faults
        self._seed = seed
        self._rng = Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._hash = hashlib.blake2b(digest_size=16)
        self._sides: list[frozenset[int]] = []
        self.now = 0.0
        self.frames = 0
        self.crashes = 0
        self.twice: set[tuple[int, int]] = set()
        self.masks_twice: set[int] = set()
        self._steps: dict[tuple[int, int, bytes], bytes] = {}
        self._signed: dict[tuple[object, ...], bytes] = {}
        self.participants = [SimulatedParticipant(setup, SimFile(self._rng)) for setup in setups]

    @property
    def digest(self) -> str:
        """The hash of everything that has happened."""
        return self._hash.hexdigest()

    def run(self) -> list[Answer | Aborted]:
        """Run until every participant has a result."""
        for i in range(len(self.participants)):
            self._at(self._rng.uniform(0, 1), lambda i=i: self._start(i))  # type: ignore[misc]
        self._plan_faults()
        for i in self._liars:
            self._talk(i)
        honest = [each for i, each in enumerate(self.participants) if i not in self._liars]
        while self._events and any(each.result is None or each.peer for each in honest):
            self.now, _, event = heapq.heappop(self._events)
            event()
        return [each.result for each in self.participants if each.result is not None]

    # Time

    def _at(self, when: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), event))

    def _note(self, *what: object) -> None:
        self._hash.update(repr((round(self.now, 9), *what)).encode())

    # Participants

    def _start(self, i: int) -> None:
        one = self.participants[i]
        one.starts += 1
        self._note("start", i)
        incarnation = one.starts - 1 if self._faults.draws_anew else 0
        entropy = Random(f"{self._seed}/{one.setup.name}/{incarnation}").randbytes

        def begin() -> None:
            session = resume(one.setup, Journal(one.disk, one.setup.name), entropy)
            if isinstance(session, Answer):
                one.result = session
                return
            one.peer = Peer(
                session, lambda j, frame: self._send(i, j, frame), self.now, lambda peer: self._watch(one, peer)
            )

        if self._alive(i, begin) and one.peer is not None:
            self._tick(i, one.peer)

    def _alive(self, i: int, action: Callable[[], object]) -> bool:
        """Let a participant do something; whether it survived."""
        one = self.participants[i]
        try:
            action()
        except Crash:
            self._die(i)
            return False
        except Aborted as aborted:
            one.result = aborted
            return False
        except OSError:
            one.result = Aborted("disk", one.setup.name, "no space for a journal")
            return False
        except InputError as error:  # a damaged journal
            one.result = Aborted("disk", one.setup.name, str(error))
            return False
        except Exception:
            if i not in self._liars:
                raise
            one.peer, one.result = None, Aborted("lied", one.setup.name, "its own lies have brought it down")
            return False
        self._close_if_over(one)
        return True

    def _close_if_over(self, one: SimulatedParticipant) -> None:
        if one.peer is None or one.peer.ending is None:
            return
        one.result = one.peer.ending
        if one.peer.over:
            one.peer = None

    def _die(self, i: int) -> None:
        one = self.participants[i]
        self._note("crash", i)
        self.crashes += 1
        one.peer = one.result = None
        if self._faults.forgetful:
            one.disk.data = b""
        self._at(self.now + self._rng.uniform(*_DOWN), lambda: self._start(i))

    def _tick(self, i: int, peer: Peer) -> None:
        one = self.participants[i]
        if one.peer is not peer:
            return
        if self._alive(i, lambda: peer.tick(self.now)):
            self._at(self.now + RETRY, lambda: self._tick(i, peer))

    def _watch(self, one: SimulatedParticipant, peer: Peer) -> None:
        if (liar := self._liars.get(one.setup.number)) is not None:
            liar.watch(peer)
            return
        state = peer.exchange.state
        if state is not None and state.x is not None:
            t, sent = state.round - 1, np.asarray(state.x).tobytes()
            if one.trajectory.setdefault(t, sent) != sent:
                raise AssertionError(f"{one.setup.name} computed two different x({t}) in one session")

    # Links

    def _send(self, i: int, j: int, frame: bytes) -> None:
        liar = self._liars.get(i)
        for out in [frame] if liar is None else liar.frames(j, frame):
            self._put(i, j, out)

    def _put(self, i: int, j: int, frame: bytes) -> None:
        self.frames += 1
        self._note("send", i, j, frame)
        honest = i not in self._liars
        if honest and frame[:1] == b"S" and self._steps.setdefault((i, j, frame[:13]), frame) != frame:
            self.twice.add((i, j))
        if honest and frame[:1] == b"G":
            self._check_statements(i, frame)
        copies = 1 + (self._rng.random() < self._faults.duplicates)
        for _ in range(copies):
            if self._rng.random() >= self._faults.loss:
                when = self.now + self._rng.uniform(1e-4, self._faults.delay)
                self._at(when, lambda: self._deliver(i, j, frame))

    def _check_statements(self, i: int, frame: bytes) -> None:
        """A participant signs one statement a step of one instance, and uses a mask once."""
        one = self.participants[i]
        for statement in one.setup.codec.decode_all(frame):
            if statement.signer != i:
                continue
            life = b"" if one.peer is None else one.peer.opening.instance
            about: list[tuple[object, ...]] = [(i, life, statement.step)]
            about += [(i, statement.context)] if statement.kind == b"C" else []
            for key in about:
                if self._signed.setdefault(key, statement.body) != statement.body:
                    self.masks_twice.add(i)

    def _deliver(self, i: int, j: int, frame: bytes) -> None:
        peer = self.participants[j].peer
        if peer is not None and not any((i in side) != (j in side) for side in self._sides):
            self._note("hear", i, j, frame)
            if j in self._liars:
                self._liars[j].hear(frame)
            self._alive(j, lambda: peer.hear(i, frame, self.now))

    # Faults

    def _plan_faults(self) -> None:
        rng, nodes = self._rng, range(len(self.participants))
        for k in range(self._faults.crashes):
            i = rng.choice(nodes)
            when = rng.uniform(0, _BUSY)
            self._at(when, (lambda i=i: self._make_fatal(i)) if k % 2 else (lambda i=i: self._kill(i)))  # type: ignore[misc]
        for _ in range(self._faults.partitions):
            side = frozenset(i for i in nodes if rng.random() < 0.5)
            when = rng.uniform(0, _BUSY)
            self._at(when, lambda side=side: self._sides.append(side))  # type: ignore[misc]
            self._at(when + rng.uniform(*_APART), lambda side=side: self._sides.remove(side))  # type: ignore[misc]
        for _ in range(self._faults.full_disks):
            i, when = rng.choice(nodes), rng.uniform(0, _BUSY)
            self._at(when, lambda i=i: self._fill(i, True))  # type: ignore[misc]
            self._at(when + rng.uniform(*_APART), lambda i=i: self._fill(i, False))  # type: ignore[misc]
        damages = [SimFile.flip_bit] * self._faults.bit_flips + [SimFile.truncate] * self._faults.truncations
        for damage in damages:
            i, when = rng.choice(nodes), rng.uniform(0, _BUSY)
            self._at(when, lambda i=i, damage=damage: self._spoil(i, damage))  # type: ignore[misc]
        for _ in range(self._faults.lost_syncs):
            i, when = rng.choice(nodes), rng.uniform(0, _BUSY)
            self._at(when, lambda i=i: self._lie(i))  # type: ignore[misc]
            self._at(when + rng.uniform(*_LIES), lambda i=i: self._spoil(i, SimFile.cut_power))  # type: ignore[misc]

    def _talk(self, i: int) -> None:
        """A liar says what it likes, as long as it runs; the disk of one that is put back is put back once."""
        liar, one = self._liars[i], self.participants[i]
        if isinstance(liar, RolledBack):
            if self.now == 0.0:
                self._put_back(i)
            return
        if one.peer is not None:
            for j, frame in liar.talk():
                self._put(i, j, frame)
        if self.now < _TALKS:
            self._at(self.now + RETRY, lambda: self._talk(i))

    def _put_back(self, i: int) -> None:
        one, rng = self.participants[i], self._liars[i].rng
        kept: list[bytes] = []
        first = rng.uniform(0, _BUSY / 4)
        self._at(first, lambda: kept.append(one.disk.data))

        def put_back() -> None:
            if one.peer is not None and one.peer.ending is None:
                one.disk.data = kept[0]
                self._die(i)

        self._at(first + rng.uniform(0.1, _BUSY / 4), put_back)

    def _make_fatal(self, i: int) -> None:
        self.participants[i].disk.fatal = self._rng.randrange(_OFTEN)

    def _kill(self, i: int) -> None:
        if self.participants[i].peer is not None:
            self._die(i)

    def _spoil(self, i: int, damage: Callable[[SimFile], None]) -> None:
        """A participant that is up dies, and its disk is not what it was."""
        if self.participants[i].peer is not None:
            self._die(i)
            damage(self.participants[i].disk)

    def _lie(self, i: int) -> None:
        self.participants[i].disk.lies = self._rng.randint(1, 3)

    def _fill(self, i: int, full: bool) -> None:
        self.participants[i].disk.full = full
