"""Frames: what a message looks like as bytes.

Rules:
- Two families. **Steps** carry the iteration: one fixed size a charter, whatever they say, so that their length tells
  nothing; a fixed binary layout, little-endian, drawn below. **Talk** (HELLO, WELCOME, REFUSED, WANT, NOT YET, DONE,
  ABORT) is msgpack, typed by msgspec, and never longer than `TALK_BYTES`.
- A length is checked before anything is allocated, and every number before anybody uses it: finite, and within what
  the charter makes possible. Whatever cannot be right raises `BadFrame`, and nothing else is ever raised.
- One meaning, one encoding: what is absent is zero on the wire, and a frame in which it is not is refused.

    step frame   | "S" | session 8 | round u32 | digest 16 | share 32 | number f64 × m
                 | words 93 × m, or levels f64 × 3m where there is no count |
    loose frame  | "L" | session 8 | sequence u32 | share 32 | number f64 × m
                 | round u32 | words 93 × m | words of the round before 93 × m |
    word         | flags u8 | distance u32 | parent u32 | proposal: since u32, holder u32, value f64
                 | sum: number u32, below u64, above u64
                 | candidate: number u32, value f64, holder u32, since u32, announced u32
                 | verdict: number u32, below u64, above u64, decided u32 |

`share` is the sender's share of the edge's secret in round 0 and zero afterwards; a loose frame (lossy mode) repeats
it, and carries the words of its round of the count and of the one before.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from midst.counting import Candidate, Proposal, Sum, Verdict, Word
from midst.masks import SHARE_BYTES
from midst.node import Message

Array = NDArray[np.float64]

PROTOCOL = 1
TALK_BYTES = 1024
TEXT_BYTES = 512  # of anything in words
SESSION_BYTES = 8
DIGEST_BYTES = 16

_WORD = struct.Struct("<BIIIIdIQQIdIIIIQQI")
_STEP = struct.Struct(f"<c{SESSION_BYTES}sI{DIGEST_BYTES}s{SHARE_BYTES}s")
_NUMBER = struct.Struct("<d")
_LOOSE = struct.Struct(f"<c{SESSION_BYTES}sI{SHARE_BYTES}s")
_NO_SHARE = bytes(SHARE_BYTES)
_WORDS_KEPT = 256  # a word is the same from one round to the next, most of the time


class BadFrame(Exception):  # noqa: N818
    """Bytes that no peer keeping to the protocol sends."""


@dataclass(frozen=True)
class Limits:
    """What numbers a charter makes possible; see `seat.py` for where they come from.

    Attributes:
        nodes: how many participants there are.
        total: the total weight, in units.
        z: an honest z(0) lies between these.
        x: every honest x.
        y: every honest offer (lossy mode).
        value: every value that may be proposed.
    """

    nodes: int
    total: int
    z: tuple[float, float]
    x: tuple[float, float]
    y: tuple[float, float]
    value: tuple[float, float]


class Step(msgspec.Struct, frozen=True, eq=False):
    """A frame of the iteration in lock-step, as received: its bytes and what they say."""

    frame: bytes
    message: Message
    digest: bytes
    level: Array

    def __repr__(self) -> str:
        return f"<Step of round {self.message.round}>"


class Loose(msgspec.Struct, frozen=True, eq=False):
    """A frame of the iteration in lossy mode, as received."""

    frame: bytes
    sequence: int
    share: bytes
    number: Array
    round: int
    words: tuple[Word, ...]
    previous: tuple[Word, ...]

    def __repr__(self) -> str:
        return f"<Loose {self.sequence}>"


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """Who is calling, whom, about which charter, and which round is wanted."""

    version: int
    sender: str
    receiver: str
    digest: bytes
    fields: dict[str, bytes]
    instance: bytes
    wants: int


class Welcome(msgspec.Struct, frozen=True, tag="welcome", array_like=True):
    """The answer to a HELLO that is accepted."""

    instance: bytes
    wants: int


class Want(msgspec.Struct, frozen=True, tag="want", array_like=True):
    """A round is still missing; please send it again."""

    round: int


class NotYet(msgspec.Struct, frozen=True, tag="not yet", array_like=True):
    """The answer to a WANT for a round that is not there: the sender is alive, and waits for others itself."""

    round: int
    waiting: tuple[str, ...]


class Done(msgspec.Struct, frozen=True, tag="done", array_like=True):
    """The sender has the answer; and whether it knows that the receiver has."""

    heard: bool


class Refused(msgspec.Struct, frozen=True, tag="refused", array_like=True):
    """The answer to a HELLO that is not accepted, in words for a person."""

    kind: str
    text: str


class Abort(msgspec.Struct, frozen=True, tag="abort", array_like=True):
    """The run is over without an answer: why, about whom, who found out, in words for a person."""

    kind: str
    about: str
    origin: str
    text: str


Talk = Hello | Welcome | Want | NotYet | Done | Refused | Abort
_talk = msgspec.msgpack.Decoder(Talk)


def encode_talk(talk: Talk) -> bytes:
    """A talk frame."""
    frame = b"T" + msgspec.msgpack.encode(talk)
    assert len(frame) <= TALK_BYTES, "whoever makes one keeps its words short"
    return frame


def printable(text: str, most: int = TEXT_BYTES) -> str:
    """Words that came from elsewhere, or go there: on one line, and not too many."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


class Codec:
    """Frames of one charter."""

    def __init__(self, digest: bytes, coordinates: int | None, counted: bool, limits: Limits) -> None:
        """What fixes the layout.

        Args:
            digest: of the charter; its first bytes mark every frame of the session.
            coordinates: m, or None where a value is one number and not a row of one.
            counted: whether frames carry words of a count, or levels of a tide.
            limits: what numbers are possible.
        """
        self._session = digest[:SESSION_BYTES]
        self._shape = () if coordinates is None else (coordinates,)
        self._numbers = coordinates or 1
        self._no_level = np.zeros((*self._shape, 3))
        self._counted = counted
        self._limits = limits
        self._words_bytes = _WORD.size * self._numbers
        self._word = lru_cache(_WORDS_KEPT)(self._read_word)
        self._packed: tuple[Word | None, bytes] = None, b""  # the last one
        self.step_bytes = _STEP.size + 8 * self._numbers + (self._words_bytes if counted else 24 * self._numbers)
        self.loose_bytes = _LOOSE.size + 8 * self._numbers + 4 + 2 * self._words_bytes

    def largest(self, lossy: bool) -> int:
        """No frame of this mode is longer than this."""
        return max(self.loose_bytes if lossy else self.step_bytes, TALK_BYTES)

    # Lock-step

    def encode_step(self, message: Message, digest: bytes, level: Array) -> bytes:
        """A step frame."""
        head = _STEP.pack(b"S", self._session, message.round, digest, message.share or _NO_SHARE)
        tail = b"".join(map(self._pack, message.words)) if self._counted else pack_numbers(level)
        return head + pack_numbers(message.number) + tail

    def decode(self, frame: bytes) -> Step | Loose | Talk:
        """What a frame says.

        Raises:
            BadFrame: it is not one, or says something that cannot be.
        """
        match frame[:1]:
            case b"S":
                return self._decode_step(frame)
            case b"L":
                return self._decode_loose(frame)
            case b"T":
                return decode_talk(frame)
            case _:
                raise BadFrame("a frame of an unknown kind")

    def _decode_step(self, frame: bytes) -> Step:
        if len(frame) != self.step_bytes:
            raise BadFrame(f"a step frame of {len(frame)} bytes; this charter's have {self.step_bytes}")
        _, session, round, digest, share = _STEP.unpack_from(frame)
        self._check_session(session)
        if round > 0 and share != _NO_SHARE:
            raise BadFrame("a share after round 0")
        number, end = self._numbers_at(frame, _STEP.size, self._limits.z if round == 0 else self._limits.x)
        words: tuple[Word, ...] = ()
        level = self._no_level
        if self._counted:
            words = self._words_at(frame, end)
        else:
            level = np.frombuffer(frame, "<f8", 3 * self._numbers, end).reshape(level.shape)
            if not np.isfinite(level).all():
                raise BadFrame("a level that is not finite")
        return Step(frame, Message(round, number, words, share if round == 0 and self._counted else b""), digest, level)

    # Lossy mode

    def encode_loose(
        self,
        sequence: int,
        share: bytes,
        number: Array,
        round: int,
        words: tuple[Word, ...],
        previous: tuple[Word, ...],
    ) -> bytes:
        """A loose frame."""
        head = _LOOSE.pack(b"L", self._session, sequence, share)
        tail = b"".join(map(self._pack, (*words, *previous)))
        return head + pack_numbers(number) + struct.pack("<I", round) + tail

    def _decode_loose(self, frame: bytes) -> Loose:
        if len(frame) != self.loose_bytes or not self._counted:
            raise BadFrame(f"a loose frame of {len(frame)} bytes; this charter's have {self.loose_bytes}")
        _, session, sequence, share = _LOOSE.unpack_from(frame)
        self._check_session(session)
        number, end = self._numbers_at(frame, _LOOSE.size, self._limits.y)
        (round,) = struct.unpack_from("<I", frame, end)
        words, previous = self._words_at(frame, end + 4), self._words_at(frame, end + 4 + self._words_bytes)
        return Loose(frame, sequence, share, number, round, words, previous)

    # Parts

    def _pack(self, word: Word) -> bytes:
        if word is not self._packed[0]:
            self._packed = word, _pack_word(word)
        return self._packed[1]

    def _check_session(self, session: bytes) -> None:
        if session != self._session:
            raise BadFrame("a frame of another session")

    def _numbers_at(self, frame: bytes, start: int, limits: tuple[float, float]) -> tuple[Array, int]:
        low, high = limits
        number: Array
        if self._shape:
            number = np.frombuffer(frame, "<f8", self._numbers, start)
            right = bool(((number >= low) & (number <= high)).all())
        else:
            (number,) = _NUMBER.unpack_from(frame, start)
            right = bool(low <= number <= high)
        if not right:  # as a NaN is not
            raise BadFrame("a number that is not finite, or beyond what the charter makes possible")
        return number, start + 8 * self._numbers

    def _words_at(self, frame: bytes, start: int) -> tuple[Word, ...]:
        places = range(start, start + self._words_bytes, _WORD.size)
        return tuple(self._word(frame[place : place + _WORD.size]) for place in places)

    def _read_word(self, raw: bytes) -> Word:
        flags, *parts = _WORD.unpack(raw)
        word = Word(
            distance=parts[0] if flags & 1 else None,
            parent=parts[1] if flags & 2 else None,
            proposal=Proposal(*parts[2:5]) if flags & 4 else None,
            sum=Sum(*parts[5:8]) if flags & 8 else None,
            candidate=Candidate(*parts[8:13]) if flags & 16 else None,
            verdict=Verdict(*parts[13:17]) if flags & 32 else None,
        )
        if _pack_word(word) != raw:
            raise BadFrame("a word that says what its flags deny")
        self._check_word(word)
        return word

    def _check_word(self, word: Word) -> None:
        nodes, (low, high) = self._limits.nodes, self._limits.value
        told = [part for part in (word.proposal, word.candidate) if part is not None]
        if any(i is not None and i >= nodes for i in (word.distance, word.parent, *(part.holder for part in told))):
            raise BadFrame("a word about a participant that does not exist")
        if not all(low <= part.value <= high for part in told):
            raise BadFrame("a candidate that is not finite, or outside the charter's bounds")
        if word.verdict is not None and word.verdict.below + word.verdict.above > self._limits.total:
            raise BadFrame("totals of more weight than there is")


def edge_digest(session: bytes, round: int, ends: tuple[bytes, bytes]) -> bytes:
    """The digest of (z, mirror, t) that both ends of an edge must find the same; the lower end's z first."""
    return hashlib.blake2b(session + struct.pack("<I", round) + b"".join(ends), digest_size=DIGEST_BYTES).digest()


def decode_talk(frame: bytes) -> Talk:
    """What a talk frame says.

    Raises:
        BadFrame: nothing that this version knows.
    """
    if len(frame) > TALK_BYTES:
        raise BadFrame(f"a talk frame of {len(frame)} bytes; {TALK_BYTES} at most")
    try:
        talk: Talk = _talk.decode(frame[1:])
        return talk
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadFrame("a talk frame that says nothing this version knows") from None


def pack_numbers(numbers: Array) -> bytes:
    """One number, or one a coordinate, as bytes."""
    return _NUMBER.pack(numbers) if isinstance(numbers, float) else np.asarray(numbers, "<f8").tobytes()


def _pack_word(word: Word) -> bytes:
    proposal, total, candidate, verdict = word.proposal, word.sum, word.candidate, word.verdict
    there = (word.distance, word.parent, proposal, total, candidate, verdict)
    return _WORD.pack(
        sum(1 << bit for bit, part in enumerate(there) if part is not None),
        word.distance or 0,
        word.parent or 0,
        *((proposal.since, proposal.holder, proposal.value) if proposal else (0, 0, 0.0)),
        *(total or (0, 0, 0)),
        *(
            (candidate.number, candidate.value, candidate.holder, candidate.since, candidate.announced)
            if candidate
            else (0, 0.0, 0, 0, 0)
        ),
        *(verdict or (0, 0, 0, 0)),
    )
