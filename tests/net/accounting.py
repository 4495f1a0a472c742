"""From frames on a wire to the messages that views account for; whatever is in a frame besides fails.

`python accounting.py LOG PYTHON -m midst node …` is that node, with every frame it hears or sends written to LOG.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from midst.net import peer, wire
from midst.net.seat import Seat
from midst.net.wire import Statements, Step, encode_talk
from midst.node import Message
from midst.privacy.messages import Messages

# What talk carries, and why no view counts it: it is the same whatever anybody's value is.
TALK = {
    wire.Hello: {"version", "sender", "receiver", "digest", "fields", "instance", "wants"},  # who, and which charter
    wire.Welcome: {"instance", "wants", "step", "digest"},  # how far it has come; a hash of what it was sent
    wire.Want: {"round", "lacks"},  # what it has not heard
    wire.NotYet: {"round", "waiting"},  # whom it waits for
    wire.Done: {"heard"},  # that it has the answer
    wire.Refused: {"kind", "text"},  # what of the charter differs
    wire.Abort: {"kind", "about", "origin", "text"},  # who did what; the answer, where it was known
}

Frame = tuple[int, int, bytes]  # from whom, to whom, what


def account(messages: Messages, seat: Seat, frame: Frame) -> Step | None:
    """Put what a frame says where a view counts it; the step, whose digest is for `check_digests`."""
    i, j, raw = frame
    said = seat.codec.decode(raw)
    match said:
        case Step():
            assert seat.codec.encode_step(said.message, said.digest, said.level) == raw
            messages.hear(i, j, Message(said.message.round, said.message.number))
            messages.hear(i, j, (said.message.round, said.level))
            return said
        case Statements():
            assert seat.codec.encode_all(said.statements) == raw
            for statement in said.statements:
                messages.hear(i, j, statement)
        case _:
            assert set(said.__struct_fields__) == TALK[type(said)]
            assert encode_talk(said) == raw
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

    def logged(self, seat, journal, send, *rest):
        def tell(j, frame):
            log.write(_HEAD.pack(seat.number, j, len(frame)) + frame)
            return send(j, frame)

        begin(self, seat, journal, tell, *rest)

    def heard(self, j, frame, now):
        log.write(_HEAD.pack(j, self.seat.number, len(frame)) + frame)
        hear(self, j, frame, now)

    peer.Peer.__init__, peer.Peer.hear = logged, heard


if __name__ == "__main__":
    from midst.cli import main

    keep_log(sys.argv[1])
    main(sys.argv[5:])
