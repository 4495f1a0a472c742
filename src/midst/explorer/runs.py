"""The processes that make runs, and the runs that are kept.

Rules:
- A client has one run at a time, and there are at most `MOST_AT_ONCE` altogether.
- Whoever stops listening ends its run: the process is killed, whatever it was doing.
- At most `MOST_KEPT` runs and `MOST_BYTES` are kept; the oldest goes first.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from midst.explorer.packing import HEAD, Parts

MOST_AT_ONCE = 2
MOST_KEPT = 8
MOST_BYTES = 256 * 2**20

_PARTS = {b"R": "run", b"A": "audit"}


class Busy(Exception):  # noqa: N818  (it says what is)
    """No run can be started now; says why."""


class RunStore:
    """Starts runs in processes of their own and keeps what they send."""

    def __init__(self, file: Path | None = None) -> None:
        """Start with none.

        Args:
            file: a saved run that may be looked at.
        """
        self._file = file
        self._clients: set[str] = set()
        self._idle: list[Process] = []
        self._working: set[Process] = set()
        self._kept: OrderedDict[str, dict[str, bytes]] = OrderedDict()

    def part(self, run: str, name: str) -> bytes | None:
        """What is kept of a run: "run", or "audit"."""
        return self._kept.get(run, {}).get(name)

    def parts(self, run: str) -> Parts | None:
        """All of a run; None if not all is there."""
        kept = self._kept.get(run, {})
        return Parts(**kept) if len(kept) == len(_PARTS) else None

    async def warm(self) -> None:
        """Start a process before it is needed."""
        if not self._idle:
            self._idle.append(await _spawn())

    async def close(self) -> None:
        """End all processes."""
        for process in (*self._idle, *self._working):
            await _end(process)
        self._idle.clear()

    async def make(self, client: str, settings: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Make a run, and tell how it goes; the last message is "done", "refused" or "failed".

        Raises:
            Busy: this client has a run already, or there are too many.
        """
        if client in self._clients:
            raise Busy("a run is under way on this page; cancel it first")
        if len(self._clients) >= MOST_AT_ONCE:
            raise Busy(f"{MOST_AT_ONCE} runs are under way on other pages; try again when one is done")
        self._clients.add(client)
        process = None
        finished = False
        try:
            self._idle = [each for each in self._idle if each.returncode is None]
            process = self._idle.pop() if self._idle else await _spawn()
            self._working.add(process)
            async for message in self._talk(process, settings):
                finished = message["kind"] in ("done", "refused")
                yield message
        finally:
            self._clients.discard(client)
            if process is not None:
                self._working.discard(process)
                if finished and process.returncode is None and len(self._idle) < MOST_AT_ONCE:
                    self._idle.append(process)
                else:
                    await asyncio.shield(_end(process))

    async def _talk(self, process: Process, settings: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        assert process.stdin is not None
        assert process.stdout is not None
        run = secrets.token_hex(8)
        asked = {"settings": dict(settings), "file": None if self._file is None else str(self._file)}
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            while True:
                letter, length = HEAD.unpack(await process.stdout.readexactly(HEAD.size))
                body = await process.stdout.readexactly(length)
                if letter in _PARTS:
                    self._keep(run, _PARTS[letter], body)
                    yield {"kind": _PARTS[letter], "run": run, "bytes": len(body)}
                    continue
                message: dict[str, Any] = json.loads(body)
                yield message
                if message["kind"] in ("done", "refused"):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            yield {"kind": "failed", "text": "the process that made the run ended; try fewer nodes or iterations"}

    def _keep(self, run: str, part: str, body: bytes) -> None:
        self._kept.setdefault(run, {})[part] = body
        while len(self._kept) > 1 and (len(self._kept) > MOST_KEPT or self._size() > MOST_BYTES):
            self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(len(body) for parts in self._kept.values() for body in parts.values())


async def _spawn() -> Process:
    errors = None if os.environ.get("MIDST_DEBUG") else DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "midst.explorer.worker", stdin=PIPE, stdout=PIPE, stderr=errors
    )


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
    if process.stdin is not None:
        process.stdin.close()
