"""The process in which runs are made, so that one can be ended at any moment.

Rules:
- A line of JSON comes in for each run: {"settings": …, "file": …}. Frames go out: a letter, a length, a body.
  J is a message in JSON; R is the run and A its audit, packed. A run ends with the message "done" or "refused".
- Nothing else reaches stdout, and nothing at all is said about an error nobody foresaw but its type.
- It ends when its input does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from midst.errors import MidstError
from midst.explorer.fields import FieldError, parse
from midst.explorer.packing import HEAD
from midst.explorer.replay import pack_each, to_json
from midst.explorer.simulate import open_file, prepare

Send = Callable[[bytes, bytes], None]


def make(settings: Mapping[str, Any], file: str | None, send: Send) -> None:
    """One run: checked, made, packed, audited; each step is sent when it is there.

    Raises:
        FieldError: nothing was run.
    """

    def say(kind: str, **facts: Any) -> None:
        send(b"J", json.dumps({"kind": kind, **to_json(facts)}, allow_nan=False).encode())

    asked = parse(settings, file=file is not None)
    if asked.source == "file" and file is not None:
        say("started", step="reading the file", most=None)
        made, name = open_file(Path(file), asked), Path(file).name
    else:
        ready = prepare(asked)
        exactly = asked.stop == "iterations"
        say("started", step="running", most=asked.iterations if exactly else None)

        def tell(t: int, spread: float | None) -> None:
            if spread is not None:
                say("progress", t=t, spread=spread)

        made, name = ready.run(tell), None
    parts = pack_each(made, name)
    send(b"R", next(parts))
    say("auditing")
    send(b"A", next(parts))
    say("done")


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Make runs as they are asked for, until there is nothing more to read."""

    def send(letter: bytes, body: bytes) -> None:
        outgoing.write(HEAD.pack(letter, len(body)) + body)
        outgoing.flush()

    for line in incoming:
        asked = json.loads(line)
        try:
            make(asked["settings"], asked["file"], send)
            continue
        except FieldError as error:
            wrong = error.fields
        except MidstError as error:
            wrong = {"": str(error)}
        except MemoryError:
            wrong = {"": "out of memory; try fewer nodes or iterations"}
        except Exception as error:
            if os.environ.get("MIDST_DEBUG"):
                raise
            wrong = {"": f"unexpected {type(error).__name__}; run with MIDST_DEBUG=1 for the traceback"}
        send(b"J", json.dumps({"kind": "refused", "fields": wrong}).encode())


def main() -> None:
    """Serve on the standard streams; what anybody prints goes to stderr."""
    outgoing = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        serve(sys.stdin.buffer, outgoing)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(0)  # whoever asked is gone


if __name__ == "__main__":
    main()
