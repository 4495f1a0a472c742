"""What carries frames between neighbours, and who listens to it.

Rules:
- A transport guarantees who is at the other end and that nobody else reads or alters a frame. It does not guarantee
  that a frame arrives, arrives once, or in order: the peer above it asks again and answers duplicates.
- It calls its `Listener` from the event loop's thread only, and never after `close` has returned.
- It keeps trying until it is closed. What a person should know about a neighbour that cannot be reached or is
  refused goes to `Listener.trouble`, in one line, once, and again only after the link has been up in between. However
  often that happens, a log grows by few lines at once, and then by one each `REPEAT_AFTER` seconds (`Sparing`).
- Frames go up and down as they are. A transport's own messages (`refusal` and what opens a link) are never heard.
- Of two neighbours, one dials (`dials`): who has no address of its own, otherwise the one with the smaller number.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from dataclasses import dataclass
from typing import Protocol, get_args

import msgspec

from midst.errors import InputError
from midst.net.charter import Charter, ParticipantEntry, split_address
from midst.net.identity.certificates import Fault
from midst.net.identity.keys import Identity
from midst.net.wire import printable

REPEAT_AFTER = 10.0  # seconds until more is told of somebody who gives too much to tell, or of nobody in particular
AT_ONCE = 10  # lines about one neighbour, of one sort, until they become sparse
LARGEST_REFUSAL = 4096  # bytes


@dataclass(frozen=True, repr=False)
class Endpoint:
    """One participant's end of all its links: what a transport is made for.

    Attributes:
        charter: whose participants are meant.
        identity: of this participant.
        number: of this participant.
        largest: bytes of the largest frame.
        listen: host and port to bind, where they are not those of the charter (a container, a gateway).
        listening: a socket that listens there already; taken in place of one of its own.
    """

    charter: Charter
    identity: Identity
    number: int
    largest: int
    listen: tuple[str, int] | None = None
    listening: socket.socket | None = None

    @property
    def own(self) -> ParticipantEntry:
        """This participant, as the charter has it."""
        return self.charter.participants[self.number]

    @property
    def neighbours(self) -> tuple[int, ...]:
        """Whom it has links to."""
        return self.charter.neighbours(self.own.name)

    @property
    def dialled(self) -> list[int]:
        """Whom it calls; the others call it."""
        return [j for j in self.neighbours if dials(self.charter, self.number, j)]

    @property
    def address(self) -> tuple[str, int] | None:
        """Where to bind; None for one that only dials."""
        return self.listen or (split_address(self.own.address) if self.own.address is not None else None)


class Listener(Protocol):
    """Who listens to a transport."""

    def linked(self, j: int) -> None:
        """A link to neighbour j is up, or up again."""

    def unlinked(self, j: int) -> None:
        """It is down, as far as the transport can tell; it keeps trying."""

    def hear(self, j: int, frame: bytes) -> None:
        """A frame from neighbour j, of at most the agreed size, just as it was sent."""

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        """Something a person should know; the transport keeps trying.

        Args:
            j: the neighbour it is about, where that is known.
            kind: for programs: "unreachable", "refused", "expired", "unknown", …
            text: one line: what, and what to try.
        """


class Transport(Protocol):
    """Carries frames to neighbours as well as it can.

    Attributes:
        sent: bytes put on the wire so far; each transport says what it can count.
        received: bytes taken from it.
    """

    sent: int
    received: int

    async def open(self, listener: Listener) -> None:
        """Bind and begin to reach the neighbours; does not wait for them.

        Raises:
            InputError: the own address cannot be bound.
        """

    def send(self, j: int, frame: bytes) -> None:
        """Send, without waiting and without raising; the frame is dropped where there is no link or too much waits."""

    async def close(self) -> None:
        """Send what waits, as far as the other ends take it; then end, and leave no task behind."""


class Sparing:
    """Keeps a log short, whatever a neighbour does: of each, `AT_ONCE` lines, then one every `REPEAT_AFTER` seconds.

    One line more may be said at once for every `REPEAT_AFTER` seconds that have passed.
    """

    def __init__(self) -> None:
        self._full: dict[int, float] = {}  # when all lines may be said at once again
        self._unsaid: dict[int, int] = {}  # things to say

    def note(self, j: int) -> None:
        """There is something to say about j."""
        self._unsaid[j] = self._unsaid.get(j, 0) + 1

    def take(self, j: int, now: float) -> int:
        """How much there is to say about j, to be said in one line now; 0 where it is too early for a line."""
        full = max(self._full.get(j, now), now)
        if full - now > (AT_ONCE - 1) * REPEAT_AFTER or j not in self._unsaid:
            return 0
        self._full[j] = full + REPEAT_AFTER
        return self._unsaid.pop(j)

    @property
    def unsaid(self) -> list[int]:
        """Those about whom there is something to say."""
        return list(self._unsaid)


class Notices:
    """Trouble on its way to the listener: each kind of it once, until the link has been up again."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._sparing = Sparing()
        self._told: dict[tuple[int | None, str], tuple[str, float]] = {}

    def tell(self, j: int | None, kind: str, text: str) -> None:
        """Pass it on, unless it was said already."""
        now = time.monotonic()
        said, when = self._told.get((j, kind), ("", -REPEAT_AFTER))
        # Whoever connects may cause trouble with nobody in particular, as often and in as many words as it likes.
        if now - when < REPEAT_AFTER if j is None else said == text:
            return
        # A neighbour may have links come and go, and word its refusals, as often and as variously as it likes.
        more = ""
        if j is not None:
            self._sparing.note(j)
            things = self._sparing.take(j, now)
            if not things:
                return
            more = f" ({things - 1} lines about it were left out before)" if things > 1 else ""
        self._told[j, kind] = text, now
        self._listener.trouble(j, kind, text + more)

    def forget(self, j: int) -> None:
        """The link is up: the next trouble with this neighbour is news."""
        for key in [key for key in self._told if key[0] == j]:
            del self._told[key]


def refusal(kind: str, text: str) -> bytes:
    """What is sent, before a link is closed, to somebody who is refused."""
    return b"R" + msgspec.msgpack.encode([kind[:64], text[:512]])


def read_refusal(message: bytes) -> tuple[str, str] | None:
    """Kind and text of a refusal, fit to be shown; a kind that is not known becomes "refused". None if it is none."""
    if message[:1] != b"R" or len(message) > LARGEST_REFUSAL:
        return None
    try:
        kind, text = msgspec.msgpack.decode(message[1:], type=tuple[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return kind if kind in get_args(Fault) else "refused", printable(text, LARGEST_REFUSAL)


def dials(charter: Charter, i: int, j: int) -> bool:
    """Whether i dials j, and not j i."""
    if charter.participants[i].address is None or charter.participants[j].address is None:
        return charter.participants[i].address is None
    return i < j


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel a task of a transport and wait for its end; what it died of, if it did, is raised."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


def cannot_bind(name: str, host: str, port: int, error: OSError) -> InputError:
    """What `open` raises where a participant cannot listen."""
    reason = str(error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)).lower()
    advice = "is it in use, or the address of another host?"
    return InputError(f"{name} cannot listen at {host} port {port}: {reason}; {advice}")
