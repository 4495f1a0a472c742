"""Frames: what a message looks like as bytes.

Rules:
- Four families. **Steps** carry the iteration: one fixed size a charter, whatever they say, so that their length tells
  nothing; a fixed binary layout, little-endian, drawn below. **Statements** carry the search, as
  `protocol/participant.py` draws them. **Vectors** carry sums of long updates up a tree, and totals down. **Control**
  (HELLO, WELCOME, REFUSED, WANT, NOT YET, AWAY, DONE) is msgpack, typed by msgspec, and never longer than
  `CONTROL_BYTES`. Beside these, a **withdrawal** (`withdrawal.py`).
- A length is checked before anything is allocated, and every number before anybody uses it: finite, and within what
  the charter makes possible. Whatever cannot be right raises `BadFrame`, and nothing else is ever raised.

    step frame        | "S" | session 8 | round u32 | digest 16 | number f64 × m | maxima f64 × 2m, or 3m |
    statements frame  | "G" | session 8 | (length u32 | signature's length u8 | statement | signature) … |
    vector frame      | "V" | session 8 | up u8 | round u32 | chunk u32 | step u16 | context 16 | numbers, packed |
    withdrawal frame  | "W" | session 8 | msgpack of what is said, certificate, signature |

Maxima are on their way to everybody (`maxima.py`): two a coordinate where a search ends the run, three where
residuals prove the answer.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from midst.net.withdrawal import SignedWithdrawal, withdrawal_bytes
from midst.protocol.message import Message
from midst.protocol.statements import Statement
from midst.types import Array

if TYPE_CHECKING:
    from midst.protocol.maxima import Maxima

PROTOCOL = 7
CONTROL_BYTES = 1024
TEXT_BYTES = 512  # of anything in words
SESSION_BYTES = 8
DIGEST_BYTES = 16

_STEP = struct.Struct(f"<c{SESSION_BYTES}sI{DIGEST_BYTES}s")
_VECTOR = struct.Struct(f"<c{SESSION_BYTES}s?IIH{DIGEST_BYTES}s")
_NUMBER = struct.Struct("<d")
_ROUND, _EDGE = struct.Struct("<I"), struct.Struct("<Idd")
_LENGTHS = struct.Struct("<IB")
_LONGEST_SIGNATURE = 72  # bytes, and eight to spare: it settles how many statements travel in one frame
_LONGEST_CERTIFICATE = 4096
_HEAD_BYTES = 1 + SESSION_BYTES
_NO_NUMBER = "a number that is not finite, or beyond what the charter makes possible"
_NO_LEVEL = "a level that is not finite"
_Said = TypeVar("_Said")


class BadFrame(Exception):  # noqa: N818
    """Bytes that no peer keeping to the protocol sends."""


@dataclass(frozen=True)
class Limits:
    """What numbers a charter makes possible; see `iteration.py` for where they come from.

    Attributes:
        z: an honest z(0) lies between these.
        x: every honest x.
    """

    z: tuple[float, float]
    x: tuple[float, float]


class StepFrame(msgspec.Struct, frozen=True, eq=False):
    """A frame of the iteration in lock-step, as received: its bytes and what they say."""

    frame: bytes
    message: Message
    digest: bytes
    maxima: Maxima

    def __repr__(self) -> str:
        return f"<Step of round {self.message.round}>"


class Statements(msgspec.Struct, frozen=True, eq=False):
    """A frame of a search, as received."""

    statements: tuple[Statement, ...]

    def __repr__(self) -> str:
        return f"<{len(self.statements)} statements>"


class VectorFrame(msgspec.Struct, frozen=True, eq=False):
    """A vector on its way up the tree, a sum, or down, the totals; as received."""

    up: bool
    round: int
    chunk: int
    step: int
    context: bytes
    vector: bytes

    def __repr__(self) -> str:
        return f"<Vector of round {self.round}, chunk {self.chunk}, step {self.step}>"


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
    """The answer to a HELLO that is accepted.

    Attributes:
        instance: of the sender.
        wants: the round it waits for.
        step: of the newest statement that it has of the receiver; −1 for none.
        digest: of that statement.
    """

    instance: bytes
    wants: int
    step: int = -1
    digest: bytes = b""


class Want(msgspec.Struct, frozen=True, tag="want", array_like=True):
    """A round is still missing; please send it again: all of it, or what is named.

    Attributes:
        round: which.
        lacks: the participants whose statements of it are missing, as bits.
        vectors: the vectors that are: of which chunks, and which steps of them.
    """

    round: int
    lacks: bytes = b""
    vectors: tuple[tuple[int, int], ...] = ()


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


class Away(msgspec.Struct, frozen=True, tag="away", array_like=True):
    """The sender was stopped by its operator, and will be back."""


class Visit(msgspec.Struct, frozen=True, tag="visit", array_like=True):
    """The sender only looks whether it could take part, and leaves again."""


Control = Hello | Welcome | Want | NotYet | Away | Visit | Done | Refused
_control: msgspec.msgpack.Decoder[Control] = msgspec.msgpack.Decoder(Control)
_withdrawal = msgspec.msgpack.Decoder(SignedWithdrawal)


def encode_control(control: Control) -> bytes:
    """A control frame."""
    frame = b"T" + msgspec.msgpack.encode(control)
    assert len(frame) <= CONTROL_BYTES, "whoever makes one keeps its words short"
    return frame


def printable(text: str, most: int = TEXT_BYTES) -> str:
    """Words that came from elsewhere, or go there: on one line, and not too many."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


class Codec:
    """Frames of one charter."""

    def __init__(
        self, digest: bytes, coordinates: int | None, maxima_each: int, limits: Limits, statement: int, vector: int = 0
    ) -> None:
        """What fixes the layout.

        Args:
            digest: of the charter; its first bytes mark every frame of the session.
            coordinates: m, or None where a value is one number and not a row of one.
            maxima_each: how many, a coordinate; 0 where there is no iteration.
            limits: what numbers are possible in it.
            statement: bytes of the longest one of a search, but for announcements; 0 where there is none.
            vector: bytes of the longest one, where an update is about vectors.
        """
        self._session = digest[:SESSION_BYTES]
        self._shape = () if coordinates is None else (coordinates,)
        self._coordinates = coordinates or 1
        self._maxima = maxima_each
        self._possible = limits.z, limits.x  # between which numbers those of round 0 lie, and all later ones
        self._single = struct.Struct(f"{_STEP.format}{1 + maxima_each}d")  # a step about one number
        self.step_bytes = _STEP.size + 8 * self._coordinates * (1 + maxima_each) if maxima_each else 0
        self._statement = statement
        self._vector = vector
        self._together = self.largest(0)  # bytes of statements that travel in one frame

    def largest(self, certificate: int = _LONGEST_CERTIFICATE) -> int:
        """No frame is longer than this.

        Args:
            certificate: bytes of the longest one that announcements carry.
        """
        statement = max(self._statement, 5 + 52 + certificate) if self._statement else 0
        leaving = _HEAD_BYTES + withdrawal_bytes(certificate, _LONGEST_SIGNATURE)
        statements = _HEAD_BYTES + _LENGTHS.size + statement + _LONGEST_SIGNATURE
        vector = _VECTOR.size + self._vector if self._vector else 0
        return max(self.step_bytes, CONTROL_BYTES, statements, leaving, vector)

    def decode(self, frame: bytes) -> StepFrame | Statements | VectorFrame | SignedWithdrawal | Control:
        """What a frame says.

        Raises:
            BadFrame: it is not one, or says something that cannot be.
        """
        kind = frame[:1]
        if kind == b"S" and self._maxima:  # first: there is no time to lose with these
            if len(frame) != self.step_bytes:
                raise BadFrame(f"a step frame of {len(frame)} bytes; this charter's have {self.step_bytes}")
            return self._decode_rows(frame) if self._shape else self._decode_single(frame)
        match kind:
            case b"G" if self._statement:
                return Statements(self.decode_all(frame))
            case b"V" if self._vector and len(frame) >= _VECTOR.size:
                _, session, up, round, chunk, step, context = _VECTOR.unpack_from(frame)
                self._check_session(session)
                return VectorFrame(up, round, chunk, step, context, frame[_VECTOR.size :])
            case b"T":
                return decode_control(frame)
            case b"W":
                self._check_session(frame[1:_HEAD_BYTES])
                return _read(_withdrawal, frame[_HEAD_BYTES:], "a withdrawal")
            case _:
                raise BadFrame("a frame of an unknown kind")

    # The iteration

    def encode_step(self, message: Message, digest: bytes, maxima: Maxima) -> bytes:
        """A step frame."""
        if not self._shape:
            return self._single.pack(b"S", self._session, message.round, digest, message.number, *maxima)
        head = _STEP.pack(b"S", self._session, message.round, digest)
        return head + pack_numbers(message.number) + pack_numbers(np.stack(maxima, axis=-1))

    def _decode_rows(self, frame: bytes) -> StepFrame:
        _, session, round, digest = _STEP.unpack_from(frame)
        self._check_session(session)
        low, high = self._possible[round > 0]
        number = np.frombuffer(frame, "<f8", self._coordinates, _STEP.size)
        if not ((number >= low) & (number <= high)).all():  # as a NaN is not
            raise BadFrame(_NO_NUMBER)
        maxima = np.frombuffer(frame, "<f8", -1, _STEP.size + 8 * self._coordinates)
        if not np.isfinite(maxima).all():
            raise BadFrame(_NO_LEVEL)
        return StepFrame(frame, Message(round, number), digest, tuple(maxima.reshape(-1, self._maxima).T))

    def _decode_single(self, frame: bytes) -> StepFrame:
        """The same for one number, in floats: for few numbers, Python is faster than NumPy."""
        _, session, round, digest, number, *maxima = self._single.unpack(frame)
        self._check_session(session)
        low, high = self._possible[round > 0]
        if not low <= number <= high:  # as a NaN is not
            raise BadFrame(_NO_NUMBER)
        if not all(map(isfinite, maxima)):
            raise BadFrame(_NO_LEVEL)
        return StepFrame(frame, Message(round, number), digest, tuple(maxima))

    # The search

    def encode(self, statements: Sequence[Statement]) -> list[bytes]:
        """Statements in frames, as many in each as fit."""
        frames: list[bytes] = []
        for statement in statements:
            packed = _pack_statement(statement)
            if frames and len(frames[-1]) + len(packed) <= self._together:
                frames[-1] += packed
            else:
                frames.append(b"G" + self._session + packed)
        return frames

    def encode_all(self, statements: Iterable[Statement]) -> bytes:
        """Statements in one frame, however long it gets: for a journal."""
        return b"G" + self._session + b"".join(map(_pack_statement, statements))

    def decode_all(self, frame: bytes) -> tuple[Statement, ...]:
        """And back.

        Raises:
            BadFrame: it does not hold whole statements of this session.
        """
        self._check_session(frame[1:_HEAD_BYTES])
        found, place = [], _HEAD_BYTES
        while place < len(frame):
            if place + _LENGTHS.size > len(frame):
                raise BadFrame("statements that are cut off")
            length, signed = _LENGTHS.unpack_from(frame, place)
            start = place + _LENGTHS.size
            middle, place = start + length, start + length + signed
            if place > len(frame):
                raise BadFrame("statements that are cut off")
            found.append(Statement(frame[start:middle], frame[middle:place]))
        return tuple(found)

    # Vectors

    def encode_vector(self, up: bool, round: int, chunk: int, step: int, context: bytes, vector: bytes) -> bytes:
        """A vector frame; of the context its first bytes."""
        return _VECTOR.pack(b"V", self._session, up, round, chunk, step, context[:DIGEST_BYTES]) + vector

    # Leaving

    def encode_withdrawal(self, withdrawal: SignedWithdrawal) -> bytes:
        """A withdrawal frame."""
        return b"W" + self._session + msgspec.msgpack.encode(withdrawal)

    # Parts

    def _check_session(self, session: bytes) -> None:
        if session != self._session:
            raise BadFrame("a frame of another session")


def edge_digest(session: bytes, round: int, low: Array, high: Array) -> bytes:
    """The digest of both z of an edge, the lower end's and the higher's, that both ends must find the same."""
    if isinstance(low, float):
        edge = _EDGE.pack(round, low, high)
    else:
        edge = _ROUND.pack(round) + pack_numbers(low) + pack_numbers(high)
    return hashlib.blake2b(session + edge, digest_size=DIGEST_BYTES).digest()


def decode_control(frame: bytes) -> Control:
    """What a control frame says.

    Raises:
        BadFrame: nothing that this version knows.
    """
    if len(frame) > CONTROL_BYTES:
        raise BadFrame(f"a control frame of {len(frame)} bytes; {CONTROL_BYTES} at most")
    return _read(_control, frame[1:], "a control frame")


def _read(decoder: msgspec.msgpack.Decoder[_Said], data: bytes, what: str) -> _Said:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadFrame(f"{what} that says nothing this version knows") from None


def pack_numbers(numbers: Array) -> bytes:
    """One number, or one a coordinate, as bytes."""
    return _NUMBER.pack(numbers) if isinstance(numbers, float) else np.asarray(numbers, "<f8").tobytes()


def _pack_statement(statement: Statement) -> bytes:
    lengths = _LENGTHS.pack(len(statement.body), len(statement.signature))
    return lengths + statement.body + statement.signature
