"""Runs a Python program as the command line would, and counts what its sockets carry.

    python counted.py FILE SCRIPT [ARGUMENT …]

When the program ends, FILE holds a JSON object: `sent` and `received`: bytes of all its TCP streams, as handed to and
taken from the operating system: handshakes and TLS included, headers of TCP and IP not. Both sides of a comparison are
counted by this.
"""

from __future__ import annotations

import _socket
import json
import runpy
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

counts = {"sent": 0, "received": 0}


def count(name: str, kind: str, size: Callable[[Any], int]) -> None:
    """Count what a method of every socket returns."""
    real, family, local = getattr(socket.socket, name), _socket.socket.family.__get__, int(socket.AF_UNIX)

    def counted(self: socket.socket, *args: Any) -> Any:
        done = real(self, *args)
        if family(self) != local:  # by which an event loop wakes itself
            counts[kind] += size(done)
        return done

    setattr(socket.socket, name, counted)


def main() -> None:
    """Count, and run the program."""
    for name, kind, size in (
        ("send", "sent", int),
        ("sendmsg", "sent", int),
        ("recv", "received", len),
        ("recv_into", "received", int),
    ):
        count(name, kind, size)
    file, *arguments = sys.argv[1:]
    sys.path.pop(0)  # this folder: its modules are none of the program's
    try:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
    finally:
        Path(file).write_text(json.dumps(counts))


if __name__ == "__main__":
    main()
