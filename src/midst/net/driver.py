"""A participant on a real network: the peer, a transport and the clock, joined.

Rules:
- Everything runs in one thread, in the order in which it happens. The peer decides; nothing is decided here.
- No wait is without end: the peer has the charter's deadlines, and is shown the clock at least every half second.
- SIGTERM and SIGINT end it cleanly: the neighbours are told, and the journal stays, so that it can be run again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from midst.net.journal import Journal
from midst.net.peer import Ending, Peer, Watch
from midst.net.setup import Entropy, Setup
from midst.net.transports.transport import Transport

Tell = Callable[[str, str], None]


@dataclass
class Driver:
    """Runs one participant to its end.

    Attributes:
        setup: who, and by which charter.
        journal: where it stands.
        transport: how frames travel.
        entropy: random bytes.
        watch: called after every step.
        tell: told what a person should know: a kind and one line.
        linking: told of a neighbour whether there is a link to it, whenever that changes before the end.
        links: the neighbours to which there is one.
    """

    setup: Setup
    journal: Journal
    transport: Transport
    entropy: Entropy = os.urandom
    watch: Watch | None = None
    tell: Tell = lambda kind, text: None
    linking: Callable[[int, bool], None] = lambda j, up: None
    started: float = field(default_factory=time.monotonic)
    links: set[int] = field(default_factory=set)
    peer: Peer | None = None

    async def run(self) -> Ending:
        """Until the end of the session.

        Raises:
            InputError: the journal is of another session, or the address cannot be bound; nothing was sent.
            Aborted: the journal says that this session cannot be resumed; nothing was sent.
        """
        self._over = asyncio.Event()
        self._failure: Exception | None = None
        self._loop = asyncio.get_running_loop()
        now = time.monotonic()
        peer = self.peer = Peer(self.setup, self.journal, self.transport.send, self.entropy, now, self.watch)
        if not peer.over:
            await self.transport.open(self)
            for number in (signal.SIGTERM, signal.SIGINT):
                with suppress(NotImplementedError, ValueError):  # not in the main thread
                    self._loop.add_signal_handler(number, self._interrupted)
            self._tick()
            await self._over.wait()
            self._timer.cancel()
            await self.transport.close()
        if self._failure is not None:
            raise self._failure
        assert peer.ending is not None
        return peer.ending

    # What a transport says

    def linked(self, j: int) -> None:
        """A link is up."""
        assert self.peer is not None
        self.links.add(j)
        self.linking(j, True)
        self.tell("linked", f"linked to {self.setup.charter.names[j]}")
        self.peer.linked(j, time.monotonic())

    def unlinked(self, j: int) -> None:
        """A link is down; after the end that is as it should be."""
        assert self.peer is not None
        self.links.discard(j)
        if self.peer.ending is None:
            self.linking(j, False)
            self.tell("unlinked", f"lost the link to {self.setup.charter.names[j]}, and waits for it to come back")

    def hear(self, j: int, frame: bytes) -> None:
        """A frame has come."""
        assert self.peer is not None
        try:
            self.peer.hear(j, frame, time.monotonic())
        except Exception as error:  # raised again by `run`, and not lost in a callback
            self._fail(error)
        if self.peer.over:
            self._over.set()

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        """A neighbour cannot be reached, or refuses."""
        assert self.peer is not None
        self.peer.trouble(j, text)
        self.tell(kind, text)

    # What the clock says

    def _tick(self) -> None:
        assert self.peer is not None
        now = following = time.monotonic()
        try:
            following = self.peer.tick(now)
        except Exception as error:
            self._fail(error)
        self._timer = self._loop.call_later(max(following - now, 0.0), self._tick)
        if self.peer.over:
            self._over.set()

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._over.set()

    def _interrupted(self) -> None:
        assert self.peer is not None
        self.peer.stop("stopped", "was stopped by its operator")
        self._over.set()
