"""What a journal holds, record by record.

A session is one `Began`; then a `Met` a neighbour and an `Inputs` a step, in the order in which they happened; perhaps
a `Broken`. When it is over for everybody, one `Ended` takes the place of them all.
"""

from __future__ import annotations

import msgspec

from midst.errors import InputError
from midst.net.answer import Answer
from midst.net.setup import Opening
from midst.protocol.course import Evidence


class Began(msgspec.Struct, frozen=True, array_like=True, tag="began"):
    """In the journal, first: what was drawn at random; and of rounds that are over what is needed of them."""

    opening: Opening
    settled: bytes = b""


class Met(msgspec.Struct, frozen=True, array_like=True, tag="met"):
    """In the journal: a neighbour was greeted, with this instance number."""

    neighbour: int
    instance: bytes


class Inputs(msgspec.Struct, frozen=True, array_like=True, tag="inputs"):
    """In the journal: what a step was made from."""

    frames: bytes


class Broken(msgspec.Struct, frozen=True, array_like=True, tag="broken"):
    """In the journal: this session cannot be resumed; and what shows whose fault that is, where something does."""

    kind: str
    about: str
    text: str
    evidence: Evidence | None = None


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """In the journal, last: all neighbours are done; what was found is all that is kept."""

    digest: bytes
    name: str
    instance: bytes
    answer: Answer


Record = Began | Met | Inputs | Ended | Broken
_encoder, _decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """A record as bytes."""
    return _encoder.encode(record)


def decode_record(raw: bytes, where: str) -> Record:
    """And back.

    Raises:
        InputError: it is none that this version writes.
    """
    try:
        record: Record = _decoder.decode(raw)
    except msgspec.DecodeError:
        raise InputError(f"{where}: a journal of another version of midst; start a new session") from None
    return record
