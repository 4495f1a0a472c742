"""Participants of a network, for tests: real keys, a charter, and listener that remember."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midst.net.charter import Charter, make_charter
from midst.net.identity.keys import Identity, load_identity, make_identity
from midst.net.transports.transport import Endpoint, Transport

NAMES = ("alice", "bob", "carol", "dave", "erin", *(f"p{k}" for k in range(5, 20)))


@dataclass(frozen=True)
class Party:
    """Everybody: the charter, and each one's identity."""

    charter: Charter
    identities: tuple[Identity, ...]

    def endpoint(self, i: int, largest: int, **settings: Any) -> Endpoint:
        return Endpoint(self.charter, self.identities[i], i, largest, **settings)


def _own_ports() -> list[int]:
    """Ports for this process of the test run alone, in an order of its own: others may have found the same free."""
    worker, of = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    mine = range(15_000 + int(worker.removeprefix("gw")), 32_000, of)
    return random.sample(mine, len(mine))


_PORTS = itertools.cycle(_own_ports())  # each of them once before any comes again


def free_port() -> int:
    """A port that is free, not given before, and below those that the system gives to whoever dials."""
    for port in _PORTS:
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise AssertionError("there is always another")


def make_party(
    folder: Path,
    edges: Sequence[tuple[int, int]] = ((0, 1),),
    *,
    identities: Sequence[Identity] | None = None,
    addressless: Iterable[int] = (),
    ports: Sequence[int] | None = None,
    session: str = "s1",
    method: str = "consensus",
) -> Party:
    """Participants on loopback who trust each other's certificates."""
    n = 1 + max(max(edge) for edge in edges)
    if identities is None:
        for name in NAMES[:n]:
            make_identity(name, folder / name)
        identities = [trusting(folder / name / f"{name}.key", folder, NAMES[:n]) for name in NAMES[:n]]
    ports = ports or [free_port() for _ in range(n)]
    participants = [
        {"name": one.name, "fingerprint": one.fingerprint}
        | ({} if i in addressless else {"address": f"127.0.0.1:{ports[i]}"})
        for i, one in enumerate(identities)
    ]
    named = [[identities[i].name, identities[j].name] for i, j in edges]
    plain = {"method": method, "session": session, "participants": participants, "edges": named, "bounds": [0, 1]}
    return Party(make_charter(plain, "charter"), tuple(identities))


def trusting(key_file: Path, folder: Path, names: Iterable[str]) -> Identity:
    """The identity, with the certificates of these others in its folder trusted."""
    trusted = key_file.parent / "trusted"
    trusted.mkdir(exist_ok=True)
    for name in names:
        shutil.copy(folder / name / f"{name}.crt", trusted)
    return load_identity(key_file)


class Memory:
    """Listener that remember what they heard."""

    def __init__(self) -> None:
        self.links: list[int] = []
        self.losses: list[int] = []
        self.frames: list[tuple[int, bytes]] = []
        self.troubles: list[tuple[int | None, str, str]] = []

    def linked(self, j: int) -> None:
        self.links.append(j)

    def unlinked(self, j: int) -> None:
        self.losses.append(j)

    def hear(self, j: int, frame: bytes) -> None:
        self.frames.append((j, frame))

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        self.troubles.append((j, kind, text))

    def kinds(self) -> set[str]:
        return {kind for _, kind, _ in self.troubles}


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for something to come true."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.003)


def tasks_of_midst() -> set[asyncio.Task[object]]:
    return {task for task in asyncio.all_tasks() if "midst" in task.get_coro().cr_code.co_filename.split("/")}  # type: ignore[union-attr]


@asynccontextmanager
async def opened(*transports: Transport) -> AsyncIterator[list[Memory]]:
    """The transports, open; closed in the end, after which nothing is left running."""
    before = tasks_of_midst()
    memories = [Memory() for _ in transports]
    try:
        for transport, memory in zip(transports, memories, strict=True):
            await transport.open(memory)
        yield memories
    finally:
        await asyncio.gather(*(transport.close() for transport in transports))
    assert tasks_of_midst() <= before
