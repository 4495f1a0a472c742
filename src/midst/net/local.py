"""A whole network on this machine: throw-away keys, real processes, real TLS on loopback, and nothing left behind.

Rules:
- Every participant is a process of its own with its own key, journal and value; they share nothing but the charter.
- Processes are forked from one that has loaded everything, so a hundred of them start in a second and share memory.
- Keys and journals are in a temporary folder that goes when it is over.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import random
import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from midst.errors import Aborted, InputError, MidstError
from midst.graphs import Graph
from midst.net.charter import Charter, make_charter
from midst.net.driver import Driver
from midst.net.events import Event, moment
from midst.net.identity.keys import Identity, make_identity
from midst.net.journal import DiskFile, Journal
from midst.net.notary import CertifiedNotary
from midst.net.peer import Peer
from midst.net.setup import Setup, make_setup
from midst.net.transports.making import TransportName, largest_frame, make_transport
from midst.net.transports.transport import Endpoint
from midst.protocol.masks import SECRET_BYTES, public_key
from midst.types import Array

_PORTS = range(20_000, 32_000)  # below those that the system hands out to whoever dials
_ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_GRACE = 5.0  # seconds for a process to go by itself


@dataclass(frozen=True)
class Party:
    """What a network of this machine is made of."""

    charter: Charter
    identities: tuple[Identity, ...]
    folder: Path


@contextmanager
def make_party(graph: Graph, **settings: Any) -> Iterator[Party]:
    """Throw-away keys and a charter for a graph, in a folder that is removed afterwards.

    Args:
        graph: who talks to whom.
        settings: further keys of the charter.
    """
    folder = Path(tempfile.mkdtemp(prefix="midst-"))
    try:
        names = [f"node{i}" for i in range(graph.n)]
        made = [make_identity(name, folder / name, days=1) for name in names]
        ports = free_ports(graph.n)
        participants = [
            {"name": one.name, "fingerprint": one.fingerprint, "address": f"127.0.0.1:{port}"}
            for one, port in zip(made, ports, strict=True)
        ]
        edges = [[names[i], names[j]] for i, j in zip(graph.source, graph.target, strict=True) if i < j]
        plain = {"session": f"up-{secrets.token_hex(8)}", "participants": participants, "edges": edges, **settings}
        charter = make_charter(plain, "midst up")
        trusting = tuple(
            replace(one, trusted=tuple(made[j].certificate_file for j in charter.neighbours(one.name))) for one in made
        )
        yield Party(charter, trusting, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody uses now."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise InputError(f"{count} free ports are needed, and there are {len(found)}; try fewer nodes")


def run_party(
    party: Party,
    values: Sequence[Array | float] | Array,
    transport: TransportName,
    follow: Callable[[Event], None] | None = None,
    *,
    every: float = 0.05,
) -> list[Event]:
    """Run every participant in a process of its own, until all have ended.

    Args:
        party: the charter and the keys.
        values: one, one row, or one list, a participant.
        transport: how they talk.
        follow: told about rounds now and then, and about ends.
        every: seconds between two events about rounds of one participant; 0 for all of them.

    Returns:
        One event of kind "end" a participant, in their order.

    Raises:
        InputError: a value is none that the charter allows; nothing was started.
    """
    charter = party.charter
    notaries = [CertifiedNotary(charter, identity) for identity in party.identities]
    setups = [make_setup(charter, *each) for each in zip(charter.names, values, notaries, strict=True)]
    for needed in (f"midst.net.transports.{transport}", "cryptography.hazmat.primitives.kdf.hkdf"):
        importlib.import_module(needed)  # once here, and not in every process
    public_key(bytes(SECRET_BYTES))  # which loads OpenSSL's bindings
    context = multiprocessing.get_context("fork")
    pipes: dict[Connection, int] = {}
    processes: list[Any] = []
    ends: dict[int, Event] = {}
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # what is raised inside a fork is lost
        try:
            for i, setup in enumerate(setups):
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_live, args=(party, setup, transport, every, theirs), daemon=True)
                process.start()
                theirs.close()
                pipes[ours] = i
                processes.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        while pipes:
            for ready in wait(list(pipes)):
                assert isinstance(ready, Connection)
                i = pipes[ready]
                try:
                    event = ready.recv()
                except EOFError:
                    del pipes[ready]
                    ends.setdefault(i, _end(i, error="its process died"))
                    continue
                if event["kind"] == "end":
                    ends[i] = event
                if follow is not None:
                    follow(event)
    finally:
        for process in processes:
            process.join(_GRACE if not pipes else 0.0)
            if process.is_alive():
                process.kill()
                process.join()
    return [ends[i] for i in range(len(values))]


def _live(party: Party, setup: Setup, transport: TransportName, every: float, pipe: Connection) -> None:
    """A participant's process."""
    for number in _ENDS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    try:
        event = asyncio.run(_participate(party, setup, transport, every, pipe))
    except MidstError as error:
        event = _end(setup.number, error=str(error))
    except BaseException as error:
        event = _end(setup.number, error=f"unexpected {type(error).__name__}")
    pipe.send(event)
    pipe.close()
    os._exit(0)  # what the parent had open is the parent's to close


async def _participate(party: Party, setup: Setup, kind: TransportName, every: float, pipe: Connection) -> Event:
    charter, i, started, last, first = party.charter, setup.number, time.monotonic(), [0.0], [0.0]
    file = DiskFile(party.folder / f"{setup.name}.journal")
    transport = make_transport(kind, Endpoint(charter, party.identities[i], i, largest_frame(setup, kind)))

    def watch(peer: Peer) -> None:
        now = time.monotonic()
        if peer.exchange.round > 0 and not first[0]:
            first[0] = now - started
        if now - last[0] >= every or peer.exchange.answer is not None:
            last[0] = now
            pipe.send(moment(peer))

    driver = Driver(setup, Journal(file, setup.name), transport, watch=watch)
    ending = await driver.run()
    costs: dict[str, Any] = {"sent": transport.sent, "received": transport.received, "first": first[0]}
    if ending.answer is None:
        assert isinstance(ending.aborted, Aborted)
        return _end(i, error=str(ending.aborted), **costs)
    return _end(i, **ending.answer.to_dict(), found=ending.answer, **costs)


def _end(i: int, error: str = "", **result: Any) -> Event:
    return {"kind": "end", "node": i, "error": error, **result}


def unanimous(ends: Sequence[Event]) -> Any:
    """The value that all have found.

    Raises:
        Aborted: somebody has none.
    """
    for end in ends:
        if end["error"]:
            raise Aborted("aborted", f"node{end['node']}", end["error"])
    values = {str(end["value"]) for end in ends}
    assert len(values) == 1, "participants proved different answers"
    return ends[0]["value"]
