"""The yardstick of the network node: a bare loop of pings over asyncio's own mutual TLS, and nothing else.

One process a node. In a round each sends one frame of a fixed size to every neighbour and waits for one from each: what
a node of midst must do at least. The same loop over midst's TLS transport shows what the transport alone costs.

    python -m bench.ping [--quick] [--out bench/results]
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from bench.tables import Row, run_parts

from midst import graphs
from midst.net.charter import Charter, make_charter
from midst.net.identity.keys import Identity, load_identity, make_identity
from midst.net.local import hold_ports
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint

Edges = Sequence[tuple[int, int]]
NODES, FRAME_BYTES, ROUNDS, TRIES = 5, 180, 5_000, 3
PATIENCE = 60  # seconds until a process that does not come is given up


class Rounds:
    """Sends to all when something of the round has come from all."""

    def __init__(
        self, neighbours: Sequence[int], rounds: int, send: Callable[[int], None], keep: Callable[[], object]
    ) -> None:
        self.heard = dict.fromkeys(neighbours, 0)
        self.rounds, self.send, self.keep = rounds, send, keep
        self.round = 0
        self.done = asyncio.Event()

    def start(self) -> None:
        for j in self.heard:
            self.send(j)

    def hear(self, j: int) -> None:
        self.heard[j] += 1
        while self.round < self.rounds and min(self.heard.values()) > self.round:
            self.round += 1
            if self.round == self.rounds:
                self.done.set()
            else:
                self.keep()
                self.start()


class Wire(asyncio.Protocol):
    """A bare connection: who dials says its number in one byte, and then frames follow."""

    def __init__(self, own: int, size: int, dialled: int | None, up: Callable[[int, Wire], None]) -> None:
        self.own, self.size, self.j, self.up = own, size, dialled, up
        self.waiting = 0
        self.hear: Callable[[int], None] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.j is not None:
            transport.write(bytes([self.own]))
            self.up(self.j, self)

    def data_received(self, data: bytes) -> None:
        if self.j is None:
            self.j, data = data[0], data[1:]
            self.up(self.j, self)
        self.waiting += len(data)
        while self.waiting >= self.size and self.hear is not None:
            self.waiting -= self.size
            self.hear(self.j)


class Listener:
    """The listener of midst's transport."""

    def __init__(self, up: Callable[[int, None], None]) -> None:
        self.linked = lambda j: up(j, None)
        self.rounds: Rounds | None = None

    def hear(self, j: int, frame: bytes) -> None:
        if self.rounds is not None:
            self.rounds.hear(j)

    def unlinked(self, j: int) -> None:
        """A neighbour that has ended."""

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        """Neighbours that are still starting."""


async def take_part(
    own: int,
    gate: Callable[[float], object],
    plain: dict[str, Any],
    folder: Path,
    size: int,
    rounds: int,
    through_midst: bool,
    keep: Callable[[], object] = lambda: None,
) -> float:
    """Seconds that the rounds took; the gate is passed when everybody has come to it, `keep` is called every round."""
    loop = asyncio.get_running_loop()
    charter = make_charter(plain, "bench")
    identity = load_identity(folder / charter.names[own] / f"{charter.names[own]}.key")
    neighbours = charter.neighbours(charter.names[own])
    wires: dict[int, Any] = {}
    all_up = asyncio.Event()

    def up(j: int, wire: Any) -> None:
        wires[j] = wire
        if len(wires) == len(neighbours):
            all_up.set()

    frame = bytes(size)
    if through_midst:
        transport = TlsTransport(Endpoint(charter, identity, own, size))
        listener = Listener(up)
        await transport.open(listener)
        run = Rounds(neighbours, rounds, lambda j: transport.send(j, frame), keep)
        listener.rounds = run
        close: Callable[[], Any] = transport.close
    else:
        close = await _open_bare(charter, identity, own, size, up)
        run = Rounds(neighbours, rounds, lambda j: wires[j].transport.write(frame), keep)
    await all_up.wait()
    for wire in wires.values():
        if wire is not None:
            wire.hear = run.hear
    await loop.run_in_executor(None, gate, PATIENCE)
    began = time.perf_counter()
    run.start()
    await run.done.wait()
    seconds = time.perf_counter() - began
    await loop.run_in_executor(None, gate, PATIENCE)
    await close()
    return seconds


async def _open_bare(
    charter: Charter, identity: Identity, own: int, size: int, up: Callable[[int, Wire], None]
) -> Callable[[], Any]:
    loop = asyncio.get_running_loop()
    ports = [int((one.address or "").rpartition(":")[2]) for one in charter.participants]
    server = await loop.create_server(
        lambda: Wire(own, size, None, up), "127.0.0.1", ports[own], ssl=identity.context(server=True)
    )
    opened = []
    for j in charter.neighbours(charter.names[own]):
        if own < j:
            context = identity.context(server=False)
            while True:
                try:
                    made = await loop.create_connection(
                        partial(Wire, own, size, j, up), "127.0.0.1", ports[j], ssl=context, server_hostname=""
                    )
                    break
                except ConnectionRefusedError:
                    await asyncio.sleep(0.02)
            opened.append(made[0])

    async def close() -> None:
        for transport in opened:
            transport.close()
        server.close()
        await asyncio.sleep(0.05)

    return close


def _process(own: int, results: Queue[float], together: Barrier, *arguments: Any) -> None:
    results.put(asyncio.run(take_part(own, together.wait, *arguments)))


def ping(edges: Edges, frame_size: int, rounds: int, *, through_midst: bool = False) -> float:
    """Rounds a second.

    Args:
        edges: of the graph; nodes are numbered from 0, at most 256 of them.
        frame_size: bytes.
        rounds: how many.
        through_midst: over midst's TLS transport in place of asyncio's own TLS.
    """
    n = 1 + max(max(edge) for edge in edges)
    names = [f"p{i}" for i in range(n)]
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as place, hold_ports(n) as ports:
        folder = Path(place)
        identities = [make_identity(name, folder / name) for name in names]
        for name in names:
            (folder / name / "trusted").mkdir()
            for other in identities:
                shutil.copy(other.certificate_file, folder / name / "trusted")
        participants = [
            {"name": one.name, "fingerprint": one.fingerprint, "address": f"127.0.0.1:{port}"}
            for one, port in zip(identities, ports, strict=True)
        ]
        named = [[names[i], names[j]] for i, j in edges]
        plain = {"session": "bench", "method": "consensus", "participants": participants, "edges": named, "scale": 1.0}
        results: Queue[float] = spawn.Queue()
        shared = (results, spawn.Barrier(n), plain, folder, frame_size, rounds, through_midst)
        processes = [spawn.Process(target=_process, args=(i, *shared), daemon=True) for i in range(n)]
        for process in processes:
            process.start()
        slowest = max(results.get(timeout=PATIENCE + rounds) for _ in range(n))
        for process in processes:
            process.join()
    return rounds / slowest


def over_graphs(quick: bool) -> Iterator[Row]:
    """One row a graph: rounds a second, the best of several tries."""
    nodes, rounds, tries = (2, 200, 1) if quick else (NODES, ROUNDS, TRIES)
    for kind in ("complete",) if quick else ("ring", "complete"):
        graph = graphs.make(kind, nodes)
        edges = [(int(i), int(j)) for i, j in zip(graph.source, graph.target, strict=True) if i < j]
        both = [[ping(edges, FRAME_BYTES, rounds, through_midst=way) for way in (False, True)] for _ in range(tries)]
        bare, midst = map(max, zip(*both, strict=True))
        about = {"graph": f"{kind} of {nodes}", "bytes": FRAME_BYTES, "tries": tries}
        yield {**about, "bare, rounds/s": bare, "over midst's TLS": midst}


if __name__ == "__main__":
    run_parts("ping", {"ping": over_graphs})
