"""What `midst node` says while it runs: lines that stay, and how it stands.

Rules:
- On a terminal how it stands is one line, written over twice a second; what is said besides goes above it. Nothing is
  left of it.
- Elsewhere, and in JSON, it is said when there has been no progress for ten seconds, and then after twice as long each
  time, once a minute at most.
- Who writes to a terminal escapes nothing: names, rounds and seconds are all there is in it, and remarks that were made
  printable where they came in.
"""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from midst.net.peer import Standing

_FIRST, _LONGEST = 10.0, 60.0  # seconds without progress before that is said, and between two times at most
_CLEAR = "\r\x1b[K"


class Status:
    """Writes what a node has to say to stderr."""

    def __init__(self, log: str = "text") -> None:
        """Nothing said yet; `log` is "text" for people, "json" for an object a line."""
        self._json = log == "json"
        self._live = not self._json and sys.stderr.isatty()
        self._line = ""
        self._next = _FIRST

    def tell(self, kind: str, text: str) -> None:
        """Say something that stays."""
        self._write(_CLEAR if self._line else "")
        if self._json:
            time = datetime.now(UTC).isoformat(timespec="milliseconds")
            click.echo(json.dumps({"time": time, "event": kind, "text": text}), err=True)
        else:
            click.echo(f"midst: {text}", err=True)
        self._write(self._line)

    def report(self, standing: Standing) -> None:
        """Show how it stands, or say it now and then."""
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._line = in_words(standing)[:width]
            self._write(_CLEAR + self._line)
        elif standing.since < _FIRST:
            self._next = _FIRST
        elif standing.since >= self._next:
            self._next = standing.since + min(standing.since, _LONGEST)
            self.tell("progress", in_words(standing))

    def close(self) -> None:
        """Leave nothing behind."""
        self._write(_CLEAR if self._line else "")
        self._line = ""

    def _write(self, text: str) -> None:
        if text:
            click.echo(text, err=True, nl=False)


def in_words(standing: Standing) -> str:
    """How it stands, in a line."""
    if not standing.waiting:
        return standing.doing
    waits = f"waits for {standing.names} since {standing.since:.0f} s"
    return f"{standing.doing}: {waits}, {standing.left:.0f} s left"
