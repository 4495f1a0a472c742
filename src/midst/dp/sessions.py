"""The sessions of a quantity, as one participant's ledger knows them, and which of them are too near each other.

Two answers about nearly the same participants are together about those in whom they differ. So a session that differs
from an earlier one by one or two is refused: who is there once only, or counts otherwise, counts as one, and so does a
value that has changed.

Rules:
- A session is marked by its charter's digest: taken up again, it is the same one.
- Whether it ended does not matter: who broke it off may know what was told until then. One of which nothing is known
  but that it began counts like any other.
- A participant is the same as one of an earlier session if it has the same name or the same certificate: a renewed
  certificate keeps the name, and another name the certificate. Who changes both at once is somebody else here. So are
  people who take part for somebody: that is for their owner to know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from midst.errors import InputError

APART = 3  # sessions that differ by so many, or not at all, may follow each other

State = Literal["begun", "silent", "aborted", "over"]
_STATES: dict[str, str] = {
    "begun": "never heard of again",
    "silent": "aborted before your value counted",
    "aborted": "aborted",
    "over": "over",
}


@dataclass(frozen=True)
class Member:
    """A participant of a session: its name, the fingerprint of its certificate, its weight."""

    name: str
    fingerprint: str
    weight: int = 1

    def is_same(self, other: Member) -> bool:
        """Whether both are one participant; see the head of this module."""
        return self.name == other.name or self.fingerprint == other.fingerprint


@dataclass(frozen=True)
class KnownSession:
    """A session that the ledger's owner took part in, or began to.

    Attributes:
        name: the charter's.
        digest: of the charter.
        members: all participants, in the charter's order.
        state: "begun"; then "over", or "aborted", or "silent" where it was aborted before anything was sent that
            depends on the value.
        value: "" of the ledger's datum, else the mark of another value.
    """

    name: str
    digest: str
    members: tuple[Member, ...]
    state: State = "begun"
    value: str = ""

    def __post_init__(self) -> None:
        if self.state not in _STATES:
            raise InputError("a session is begun, silent, aborted or over")

    @property
    def among(self) -> str:
        """Whose values take part, for `Entry.among`."""
        who = [(one.name, one.weight) for one in self.members]
        return hashlib.blake2b(json.dumps(who).encode(), digest_size=16).hexdigest()

    @property
    def state_in_words(self) -> str:
        """What became of it."""
        return _STATES[self.state]


def differences(one: Sequence[Member], other: Sequence[Member]) -> int:
    """In how many participants two sessions differ: who is in one only, and who counts otherwise."""
    alone = sum(not any(a.is_same(b) for b in there) for here, there in ((one, other), (other, one)) for a in here)
    return alone + sum(any(a.is_same(b) and a.weight != b.weight for b in other) for a in one)


def refuse_near(session: KnownSession, earlier: Iterable[KnownSession], where: str) -> None:
    """Refuse a session that lies too near an earlier one.

    Raises:
        InputError: it does; which one, and by how many they differ.
    """
    for known in earlier:
        count = differences(session.members, known.members)
        if 0 < count < APART:
            who = "one participant" if count == 1 else f"{count} participants"
            raise InputError(
                f"{where}: session {session.name} differs from {known.name} ({known.state_in_words}) by {who}: both "
                f"together tell about them; wait until {APART} differ, or give --despite-ledger"
            )
