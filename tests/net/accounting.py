"""From frames on a wire to the messages that views account for; whatever is in a frame besides fails.

`python accounting.py LOG PYTHON -m midst node …` is that node, with every frame it hears or sends written to LOG.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from midst.net import peer, wire
from midst.net.setup import Setup
from midst.net.wire import Statements, StepFrame, encode_control
from midst.net.withdrawal import SignedWithdrawal, read_withdrawal
from midst.protocol.message import Message

if TYPE_CHECKING:
    from raw_messages import Messages

# What talk carries, and why no view counts it: it is the same whatever anybody's value is.
CONTROL = {
    wire.Hello: {"version", "sender", "receiver", "digest", "fields", "instance", "wants"},  # who, and which charter
    wire.Welcome: {"instance", "wants", "step", "digest"},  # how far it has come; a hash of what it was sent
    wire.Want: {"round", "lacks", "vectors"},  # what it has not heard
    wire.NotYet: {"round", "waiting"},  # whom it waits for
    wire.Done: {"heard"},  # that it has the answer
    wire.Refused: {"kind", "text"},  # what of the charter differs
    wire.Away: set(),  # that it was stopped
    wire.Visit: set(),  # that somebody looks in
}

Frame = tuple[int, int, bytes]  # from whom, to whom, what


def account(messages: Messages, setup: Setup, frame: Frame) -> StepFrame | None:
    """Put what a frame says where a view counts it; the step, whose digest is for `check_digests`."""
    i, j, raw = frame
    said = setup.codec.decode(raw)
    match said:
        case StepFrame():
            assert setup.codec.encode_step(said.message, said.digest, said.maxima) == raw
            messages.hear(i, j, Message(said.message.round, said.message.number))
            messages.hear(i, j, (said.message.round, np.array(said.maxima)))
            return said
        case Statements():
            assert setup.codec.encode_all(said.statements) == raw
            for statement in said.statements:
                messages.hear(i, j, statement)
        case SignedWithdrawal():  # who did what; the answer, where it was known
            assert setup.codec.encode_withdrawal(said) == raw
            read_withdrawal(said, setup.session, len(setup.charter.names), setup.notary)
        case _:
            assert set(said.__struct_fields__) == CONTROL[type(said)]
            assert encode_control(said) == raw
    return None


def read_log(path: Path) -> list[Frame]:
    raw, place, frames = path.read_bytes(), 0, []
    while place < len(raw):
        i, j, size = _HEAD.unpack_from(raw, place)
        frames.append((i, j, raw[place + _HEAD.size : place + _HEAD.size + size]))
        place += _HEAD.size + size
    return frames


_HEAD = struct.Struct("<HHI")


def keep_log(path: str) -> None:
    begin, hear = peer.Peer.__init__, peer.Peer.hear
    log = Path(path).open("ab", buffering=0)  # noqa: SIM115 (for as long as the process runs)

    def logged(self, session, send, *rest):
        def tell(j, frame):
            log.write(_HEAD.pack(session.setup.number, j, len(frame)) + frame)
            return send(j, frame)

        begin(self, session, tell, *rest)

    def heard(self, j, frame, now):
        log.write(_HEAD.pack(j, self.setup.number, len(frame)) + frame)
        hear(self, j, frame, now)

    peer.Peer.__init__, peer.Peer.hear = logged, heard


if __name__ == "__main__":
    from midst.cli import main

    keep_log(sys.argv[1])
    main(sys.argv[5:])
