"""Short signed statements of a session about vectors, told on along the tree until everybody has everybody's.

    announcement "A"   instance, session key, certificate: as in a search (`protocol/statements.py`)
    beginning    "B"   round u32, 0 u32, and a hash by which an update is known again, and nothing learnt of it
    commitment   "M"   round u32, chunk u32, transcript 32, chains of what was contributed and was sent up, 32 each
    check        "K"   round u32, chunk u32, random sums over both (`protocol/vectors/tampering.py`)

Rules:
- Two different notes of one signer about the same are evidence against it: it lied, ran twice, or lost its disk.
- Notes of this round and of the next are held, and those of the last for who lacks them still; no others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from midst.protocol.participant import Distrust
from midst.protocol.statements import Malformed, Notary, Signers, Statement, check_form, make_body

_HEAD = 5  # bytes before what a note says
_ABOUT = struct.Struct("<II")
MOST_SIGNERS = 1 << 16  # that a statement can tell apart


class About(NamedTuple):
    """What a note is about.

    Attributes:
        kind: one of the four.
        round: of the session; 0 for an announcement.
        chunk: of the update; 0 where it is about none.
    """

    kind: bytes
    round: int
    chunk: int


ANNOUNCED = About(b"A", 0, 0)


def about(statement: Statement) -> About:
    """What a note is about.

    Raises:
        Malformed: it is none.
    """
    body = statement.body
    if statement.kind == b"A":
        check_form(body, MOST_SIGNERS)
        return ANNOUNCED
    if statement.kind not in (b"B", b"M", b"K") or len(body) < _HEAD + _ABOUT.size:
        raise Malformed("a note of an unknown kind")
    return About(statement.kind, *_ABOUT.unpack_from(body, _HEAD))


def content(statement: Statement) -> bytes:
    """What a note says, but for an announcement."""
    return statement.body[_HEAD + _ABOUT.size :]


class Notes:
    """Everybody's notes, as far as they are here.

    Attributes:
        round: that goes on.
    """

    def __init__(self, session: bytes, number: int, count: int, chunks: int, notary: Notary) -> None:
        """None is here, of so many participants about so many chunks of an update."""
        self._number, self._count, self._chunks = number, count, chunks
        self._signers = Signers(session, number, notary)
        self._held: dict[About, dict[int, Statement]] = {}
        self.round = 0

    def sign(self, on: About, says: bytes) -> Statement:
        """A note of one's own, which is held from now on."""
        written = says if on == ANNOUNCED else _ABOUT.pack(on.round, on.chunk) + says
        note = self._signers.sign(make_body(on.kind, self._number, 0, written))
        self._held.setdefault(on, {})[self._number] = note
        return note

    def take(self, note: Statement) -> bool:
        """Hold a note; whether it was news. One of another time is left to be asked for.

        Raises:
            Malformed: it is none, or its signature is wrong.
            Distrust: its signer has signed another one.
        """
        on, signer = about(note), note.signer
        if signer >= self._count or on.chunk >= self._chunks:
            raise Malformed("a note of nobody, or about nothing, in the charter")
        known = self._held.get(on, {}).get(signer)
        if known is not None and known.body == note.body:
            return False
        if not self.round - 1 <= on.round <= self.round + 1 and on != ANNOUNCED:
            return False
        if on != ANNOUNCED and signer not in self._signers.known and signer != self._number:
            return False  # it has overtaken its signer's announcement
        self._signers.check(note)
        if signer == self._number:
            text = "has signed what its journal knows nothing of: it ran twice, or its disk was put back"
            raise Distrust("journal lost", (signer,), text)
        if known is not None:
            raise Distrust(
                "equivocation", (signer,), "signed two notes about the same: lied, ran twice, or lost its disk"
            )
        self._held.setdefault(on, {})[signer] = note
        return True

    def hold(self, notes: Iterable[Statement]) -> None:
        """Notes as a journal has them."""
        for note in notes:
            if about(note) == ANNOUNCED:
                self._signers.check(note)
            self._held.setdefault(about(note), {})[note.signer] = note

    def all(self, on: About) -> list[Statement] | None:
        """Everybody's notes about something, in order; None where one is not here."""
        here = self._held.get(on, {})
        return [here[i] for i in range(self._count)] if len(here) == self._count else None

    def missing(self, on: About) -> list[int]:
        """Whose note is not here."""
        here = self._held.get(on, {})
        return [i for i in range(self._count) if i not in here]

    def own(self, on: About) -> Statement | None:
        """One's own, if there is one."""
        return self._held.get(on, {}).get(self._number)

    def everything(self) -> list[Statement]:
        """All that is held, the oldest first."""
        return self.of(range(self._count))

    def of(self, signers: Iterable[int]) -> list[Statement]:
        """All that is held of some, the oldest first."""
        order = sorted(self._held, key=lambda on: (on.kind != b"A", on.round, on.chunk, b"ABMK".index(on.kind)))
        return [self._held[on][i] for on in order for i in signers if i in self._held[on]]

    def forget_before(self, round: int) -> None:
        """Let go of the notes of earlier rounds."""
        self.round = round + 1
        self._held = {on: notes for on, notes in self._held.items() if on == ANNOUNCED or on.round >= round}
