"""A participant on a real network: the peer, a transport and the clock, joined.

Rules:
- Everything runs in one thread, in the order in which it happens. The peer decides; nothing is decided here.
- No wait is without end: the peer has the charter's deadlines, and is shown the clock at least every half second.
- A log does not grow with links that come and go: of a neighbour that flaps, a line is said now and then.
- SIGTERM is a pause: neighbours are told, and wait; the journal stays, and the same command goes on. SIGINT withdraws.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from functools import partial

from midst.errors import Aborted
from midst.machine import catching
from midst.net.answer import Answer
from midst.net.peer import RETRY, Peer, Standing, Watch
from midst.net.session import Session
from midst.net.transports.transport import Sparing, Transport

Tell = Callable[[str, str], None]


class Driver:
    """Runs one participant to its end.

    Attributes:
        peer: the participant.
        transport: how frames travel.
        started: when, by the clock that never goes back.
        links: the neighbours to which there is a link.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        *,
        watch: Watch | None = None,
        tell: Tell = lambda kind, text: None,
        linking: Callable[[int, bool], None] = lambda j, up: None,
        report: Callable[[Standing], None] | None = None,
    ) -> None:
        """Ready to run.

        Args:
            session: who, and from where it goes on.
            transport: how frames travel.
            watch: called after every step, and every half second.
            tell: told what a person should know: a kind and one line.
            linking: told of a neighbour whether there is a link to it, whenever that changes before the end.
            report: told every half second what the participant does, and for whom it waits.
        """
        self.transport = transport
        self.started = time.monotonic()
        self.peer = Peer(session, transport.send, self.started, watch, lambda action: self._loop.call_soon(action))
        self.links: set[int] = set()
        self._tell, self._linking, self._report, self._watch = tell, linking, report, watch
        self._sparing = Sparing()

    async def run(self) -> Answer | Aborted:
        """Until the end of the session.

        Raises:
            InputError: the address cannot be bound; nothing was sent.
        """
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[Answer | Aborted] = self._loop.create_future()
        await self.transport.open(self)
        signals = {signal.SIGTERM: self.peer.pause, signal.SIGINT: self.peer.stop}
        with catching(self._loop, {number: partial(self._interrupt, action) for number, action in signals.items()}):
            self._tick()
            try:
                return await self._ending
            finally:
                self._timer.cancel()
                await self.transport.close()

    # What its owner says, in the loop's thread

    def wake(self) -> None:
        """Something was handed to the participant: look at it now."""
        self.peer.tick(time.monotonic())
        if self.peer.over:
            self._end()

    def leave(self) -> None:
        """Go, to come back."""
        self._interrupt(self.peer.pause)

    # What a transport says

    def linked(self, j: int) -> None:
        """A link is up."""
        self.links.add(j)
        self._linking(j, True)
        self._sparing.note(j)
        self._tell_link(j)
        self.peer.linked(j, time.monotonic())

    def unlinked(self, j: int) -> None:
        """A link is down; after the end that is as it should be."""
        self.links.discard(j)
        if self.peer.ending is None:
            self._linking(j, False)
            self._sparing.note(j)
            self._tell_link(j)

    def hear(self, j: int, frame: bytes) -> None:
        """A frame has come."""
        try:
            self.peer.hear(j, frame, time.monotonic())
        except Exception as error:
            self._fail(error)
        if self.peer.over:
            self._end()

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        """A neighbour cannot be reached, or refuses."""
        self.peer.trouble(j, text)
        self._tell(kind, text)

    # What the clock says

    def _tick(self) -> None:
        for j in self._sparing.unsaid:
            self._tell_link(j)
        try:
            self.peer.tick(time.monotonic())
        except Exception as error:
            self._fail(error)
        if self.peer.over:
            self._end()
        else:
            self._look()
        self._timer = self._loop.call_later(RETRY, self._tick)

    def _look(self) -> None:
        """Show whoever asked for it how it stands."""
        if self._report is not None:
            self._report(self.peer.standing(time.monotonic()))
        if self._watch is not None:
            self._watch(self.peer)

    def _tell_link(self, j: int) -> None:
        """Say whether there is a link to j, unless too much was said of that just now; then a tick says it later."""
        changes = self._sparing.take(j, time.monotonic())
        if not changes:
            return
        kind, name = "linked" if j in self.links else "unlinked", self.peer.neighbours[j].name
        text = f"linked to {name}" if j in self.links else f"lost the link to {name}, and waits for it to come back"
        if j not in self.links and self.peer.neighbours[j].visited:
            kind, text = "visited", f"{name} looked whether it could take part, and left"
        self._tell(kind, text + (f" ({changes} changes since this was last said)" if changes > 1 else ""))

    def _fail(self, error: Exception) -> None:
        """What the peer raises is not lost in a callback."""
        if not self._ending.done():
            self._ending.set_exception(error)

    def _end(self) -> None:
        if self.peer.ending is not None and not self._ending.done():
            self._ending.set_result(self.peer.ending)

    def _interrupt(self, action: Callable[[], None]) -> None:
        action()
        self._end()
