"""Networks of real processes on loopback: everybody's keys, one charter, and `midst node` for each.

Rules:
- A process is started as an operator starts it: by the command line, with a key, a charter, a value and a folder.
- Whatever a network has started is over when its block is.
- Journals are read with midst's own reader. `Shelf` keeps every version of them: a node that is done throws away all
  but the answer, and a test wants to see what was there before.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from parties import free_port

from midst.graphs import Graph
from midst.net.charter import Charter, make_charter
from midst.net.identity import keys
from midst.net.journal import Journal
from midst.net.notary import CertifiedNotary
from midst.net.records import Began, Inputs, Record, decode_record
from midst.net.setup import Opening, Setup, make_setup
from midst.net.wire import StepFrame, pack_numbers


class Outcome(NamedTuple):
    """What a process left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """What it found, of a process that was asked for JSON."""
        assert self.code == 0, self.err
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass
class Running:
    """One `midst node`."""

    name: str
    process: subprocess.Popen[str]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float = 120.0) -> Outcome:
        """Its end, which must come by itself and in time."""
        out, err = self.process.communicate(timeout=seconds)
        return Outcome(self.process.returncode, out, err)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Gone, as when the power fails."""
        self.process.kill()
        self.process.communicate()


@dataclass
class Network:
    """Participants with keys and a charter, and those of their processes that run."""

    folder: Path
    charter: Charter
    values: Sequence[Any]
    listening: tuple[int, ...]
    started: list[Running] = field(default_factory=list)

    @property
    def charter_file(self) -> Path:
        return self.folder / "charter.toml"

    def key(self, name: str) -> Path:
        return self.folder / "keys" / name / f"{name}.key"

    def state(self, name: str) -> Path:
        return self.folder / "state" / name

    def journal(self, name: str) -> Path:
        return self.state(name) / f"{self.charter.session}.{self.charter.digest.hex()[:12]}.{name}.journal"

    def setups(self) -> list[Setup]:
        """Everybody's, with its own key."""
        loaded = [keys.load_identity(self.key(name)) for name in self.charter.names]
        return [
            make_setup(self.charter, one.name, value, CertifiedNotary(self.charter, one))
            for one, value in zip(loaded, self.values, strict=True)
        ]

    def value_file(self, name: str) -> Path:
        """The value of a participant, in a file."""
        path = self.folder / f"{name}.txt"
        row = np.atleast_1d(self.values[self.charter.number(name)])
        path.touch(mode=0o600)
        path.write_text(" ".join(repr(float(part)) for part in row) + "\n")
        return path

    def arguments(self, name: str, *options: str, given: Sequence[str] | None = None) -> list[str]:
        """The command line of a participant; `given` in place of --value-file."""
        value = ["--value-file", str(self.value_file(name))] if given is None else list(given)
        fixed = {"--charter": self.charter_file, "--name": name, "--key": self.key(name), "--state": self.state(name)}
        line = ["node", *(str(part) for pair in fixed.items() for part in pair), *value]
        own = self.charter.participants[self.charter.number(name)].address
        listen = f"127.0.0.1:{self.listening[self.charter.number(name)]}"
        return [*line, *([] if own == listen else ["--listen", listen]), *options]

    def start(
        self,
        name: str,
        *options: str,
        given: Sequence[str] | None = None,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> Running:
        """A participant's process, which answers in JSON; `within` goes before its command line."""
        line = [*within, sys.executable, "-m", "midst", *self.arguments(name, "--json", *options, given=given)]
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        if stdin is not None:
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
            process.stdin = None
        running = Running(name, process)
        self.started.append(running)
        return running

    def start_all(self, *options: str) -> list[Running]:
        return [self.start(name, *options) for name in self.charter.names]

    def run(self, *options: str) -> list[Outcome]:
        """Everybody, until all have ended."""
        return [one.wait() for one in self.start_all(*options)]

    def written(self) -> list[Path]:
        """The files that nodes have made."""
        return [path for path in (self.folder / "state").rglob("*") if path.is_file()]


@contextmanager
def network(
    folder: Path,
    graph: Graph,
    values: Sequence[Any],
    *,
    listening: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
    **settings: Any,
) -> Iterator[Network]:
    """A network that is ready to be started.

    Args:
        folder: where everything is kept.
        graph: who talks to whom.
        values: one, or one row, a participant.
        listening: ports to bind, where those of the charter are somebody else's (a relay that listens in).
        weights: of the participants, where they are not all 1.
        settings: further keys of the charter; None leaves one out.
    """
    names = [f"p{i}" for i in range(graph.n)]
    made = [keys.make_identity(name, folder / "keys" / name) for name in names]
    edges = [[names[i], names[j]] for i, j in zip(graph.source, graph.target, strict=True) if i < j]
    for i, one in enumerate(made):
        near = [(made[j].name, made[j].certificate) for j in graph.neighbours(i)]
        keys.trust(near, one.key_file.parent)
    ports = [free_port() for _ in names]
    participants = [
        {"name": one.name, "fingerprint": one.fingerprint, "address": f"127.0.0.1:{port}", "weight": weight}
        for one, port, weight in zip(made, ports, weights or [1] * len(made), strict=True)
    ]
    plain = {"session": "s1", "method": "consensus", "participants": participants, "edges": edges, "bounds": [0, 100]}
    plain |= settings
    plain = {key: setting for key, setting in plain.items() if setting is not None}
    plain["deadlines"] = {"start": 120, "wait": 60, "total": 300, "linger": 10} | settings.get("deadlines", {})
    charter = make_charter(plain, "charter.toml")
    whole = Network(folder, charter, values, tuple(ports if listening is None else listening))
    whole.charter_file.write_text(charter.to_toml())
    try:
        yield whole
    finally:
        for one in whole.started:
            if one.alive or not one.process.stdout.closed:  # type: ignore[union-attr]
                one.kill()


def port_of(charter: Charter, i: int) -> int:
    return int((charter.participants[i].address or "").rpartition(":")[2])


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something to come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


# Journals


class _Bytes:
    """A journal's bytes, as a file that cannot be changed."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data

    def append(self, data: bytes, mark: bytes) -> None:
        raise AssertionError("this file is only read")

    def replace(self, data: bytes) -> None:
        """Where a write was cut short, the reader would mend the file."""


def read_journal(path: Path) -> list[Record]:
    """The whole records of a journal."""
    records = Journal(_Bytes(path.read_bytes()), str(path)).records
    return [decode_record(record, str(path)) for record in records]


def rounds_done(path: Path) -> int:
    """How many steps a journal holds; none of one that is not there yet."""
    with suppress(FileNotFoundError):
        return sum(isinstance(record, Inputs) for record in read_journal(path))
    return 0


class Shelf:
    """Every version of every journal: a second name for a file keeps it when the first is given to another."""

    def __init__(self, net: Network) -> None:
        self._net = net
        self._folder = net.folder / "shelf"
        self._folder.mkdir()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Shelf:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            self._look()

    def _look(self) -> None:
        for name in self._net.charter.names:
            path = self._net.journal(name)
            with suppress(FileNotFoundError, FileExistsError):
                os.link(path, self._folder / f"{name}.{path.stat().st_ino}")

    def versions(self, name: str) -> list[list[Record]]:
        return [read_journal(path) for path in sorted(self._folder.glob(f"{name}.*"))]

    def openings(self, name: str) -> list[Opening]:
        return [records[0].opening for records in self.versions(name) if records and isinstance(records[0], Began)]

    def bytes_of(self, name: str) -> bytes:
        return b"\n".join(path.read_bytes() for path in sorted(self._folder.glob(f"{name}.*")))


def check_journals(net: Network, shelf: Shelf) -> int:
    """What must hold of what was ever on disk; how many frames and statements were looked at.

    What is random was drawn once. Nobody has sent two different frames of one round to one neighbour, nor signed two
    statements for one step. And nobody has sent a frame, or signed a statement, of a round that it had no right to by
    its own journal: the state is on disk before the message leaves.
    """
    setups = net.setups()
    frames: dict[tuple[int, int, int], bytes] = {}
    signed: dict[tuple[int, int], bytes] = {}
    most: dict[int, int] = {}
    searched: dict[int, int] = {}
    for i, setup in enumerate(setups):
        assert len(set(shelf.openings(setup.name))) == 1, f"{setup.name} has drawn twice"
        for records in shelf.versions(setup.name):
            steps = [record.frames for record in records if isinstance(record, Inputs)]
            iterated = [step for step in steps if step[:1] == b"S"]
            told = [setup.codec.decode_all(step) for step in steps if step[:1] == b"G"]
            most[i] = max(most.get(i, 0), len(iterated))
            searched[i] = max(searched.get(i, 0), len(told))
            size = setup.codec.step_bytes
            for t, step in enumerate(iterated):
                for k, j in enumerate(setup.neighbours):
                    frame = step[k * size : (k + 1) * size]
                    assert frames.setdefault((j, i, t), frame) == frame, f"{j} sent {i} two frames of round {t}"
            for t, statements in enumerate(told):
                assert [one.signer for one in statements] == list(range(len(setups)))
                for one in statements:
                    assert one.step == t
                    assert signed.setdefault((one.signer, t), one.body) == one.body, f"{one.signer} signed two"
    for (j, i, t), frame in frames.items():
        decoded = setups[i].codec.decode(frame)
        assert isinstance(decoded, StepFrame)
        assert decoded.message.round == t
        assert t <= most[j], f"{j} sent round {t} with {most[j]} rounds on disk"
        if t == 0:
            own = setups[j]
            drawn = own.iteration.z_of(shelf.openings(own.name)[0])[own.neighbours.index(i)]
            assert pack_numbers(decoded.message.number) == pack_numbers(drawn)
    for signer, t in signed:
        assert t <= searched[signer], f"{signer} signed step {t} with {searched[signer]} steps on disk"
    return len(frames) + len(signed)


# Sockets


@contextmanager
def nobody_calls(*ports: int) -> Iterator[None]:
    """Listens at ports of loopback, where nobody may connect."""
    open_now: list[socket.socket] = []
    try:
        for port in ports:
            sock = socket.socket()
            open_now.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", port))
            sock.setblocking(False)
            sock.listen()
        yield
        for sock in list(open_now):
            with suppress(BlockingIOError):
                open_now.append(sock.accept()[0])
                raise AssertionError("somebody called")
    finally:
        for sock in open_now:
            sock.close()


class Relays:
    """Stand between participants, pass everything on, and keep a copy of it."""

    def __init__(self, ways: Mapping[int, int]) -> None:
        """Nothing is open yet.

        Args:
            ways: where each relay listens, and where it passes on to: ports of loopback.
        """
        self._ways = ways
        self._streams: dict[int, bytearray] = {}
        self._number = count()
        self._loop = asyncio.new_event_loop()
        self._ready, self._over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._live()))

    def __enter__(self) -> Relays:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    @property
    def heard(self) -> bytes:
        """All that has passed, one stream after the other."""
        return b"".join(bytes(stream) for stream in list(self._streams.values()))

    async def _live(self) -> None:
        open_now = []
        for here, there in self._ways.items():
            open_now.append(await asyncio.start_server(self._pass_on(there), "127.0.0.1", here))
        self._ready.set()
        await self._over.wait()
        for one in open_now:
            one.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _pass_on(self, there: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", there)
            except OSError:
                writer.transport.abort()
                return
            try:
                await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
            finally:
                writer.transport.abort()
                far_writer.transport.abort()

        return connected

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        copy = self._streams[next(self._number)] = bytearray()
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                copy += data
                writer.write(data)
                await writer.drain()
            writer.write_eof()
