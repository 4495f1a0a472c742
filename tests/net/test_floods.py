"""Strangers who flood a node that waits for its neighbours, across a network as slow as an ocean is wide.

Rules:
- Delays, sockets and keys are real. Everybody is on loopback, so the flood has the neighbours' own source address,
  which is the worst case: nothing tells them apart but what they say.
- What is asserted is what an operator sees: that links come up, within seconds, while the flood goes on.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from parties import Party, free_port, make_party, opened, until
from processes import network, port_of

from midst.graphs import path
from midst.net.identity.keys import load_identity
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import AT_ONCE

DELAY = 0.06  # seconds each way
SOON = 8.0  # seconds
CONNECTIONS = 250  # a second
BEAT = 0.02  # seconds


@asynccontextmanager
async def far_away(port: int, to: int) -> AsyncIterator[None]:
    """At `port`, whatever listens at `to`, `DELAY` away."""
    writers: set[asyncio.StreamWriter] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                loop.call_later(DELAY, writer.write, data)
        loop.call_later(DELAY, writer.close)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to)
        writers.update((writer, far_writer))
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(2 * DELAY)


@asynccontextmanager
async def flood(once: Callable[[], None], rate: int) -> AsyncIterator[list[int]]:
    """Does it so many times a second, as long as the context lasts; how often it was done, so far."""
    done = [0]

    async def go_on() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            while done[0] < rate * (loop.time() - began):
                once()
                done[0] += 1
            await asyncio.sleep(BEAT)

    task = asyncio.create_task(go_on())
    try:
        yield done
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), "the flood broke off"


def client_hello() -> bytes:
    """What any TLS client says first; it can be said as often as one likes."""
    leaving = ssl.MemoryBIO()
    tls_end = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), leaving, server_hostname="bob")
    with suppress(ssl.SSLWantReadError):
        tls_end.do_handshake()
    return leaving.read()


@pytest.mark.parametrize("said", [b"", client_hello()], ids=["silent", "shaking hands"])
def test_a_flood_of_connections_keeps_no_neighbour_out(keys: Party, tmp_path: Path, said: bytes) -> None:
    here, there = free_port(), free_port()
    party = make_party(tmp_path, identities=keys.identities[:2], ports=[free_port(), there])

    crowd: deque[socket.socket] = deque()

    async def main() -> None:

        def connect() -> None:
            one = socket.socket()
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(("127.0.0.1", here))
            crowd.append(one)
            if said and len(crowd) > 10:  # by now it is connected
                with suppress(OSError):
                    crowd[-10].send(said)
            if len(crowd) > 2000:
                crowd.popleft().close()

        bob = TlsTransport(party.endpoint(1, 100, listen=("127.0.0.1", here)))
        async with far_away(there, here), opened(bob) as (heard,), flood(connect, CONNECTIONS) as done:
            await until(lambda: done[0] > 1.2 * CONNECTIONS)
            alice = TlsTransport(party.endpoint(0, 100))
            async with opened(alice) as (answers,):
                await until(lambda: heard.links and answers.links, SOON)
                alice.send(1, b"through")
                await until(lambda: heard.frames)

    try:
        asyncio.run(main())
    finally:
        for one in crowd:
            one.close()


def test_a_neighbour_that_comes_and_goes_does_not_fill_a_log(tmp_path: Path) -> None:
    """A real node, and somebody with its neighbour's key who connects a hundred times."""

    async def come_and_go(port: int, context: ssl.SSLContext) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write((9).to_bytes(4, "big") + b"W" + int(time.time()).to_bytes(8, "big"))
        await reader.readexactly(13)
        writer.transport.abort()

    async def main() -> None:
        context = load_identity(net.key("p0")).context(server=False)
        for _ in range(100):
            async with asyncio.timeout(30):
                while True:
                    with suppress(OSError):  # it is still starting
                        await come_and_go(port_of(net.charter, 1), context)
                        break
                    await asyncio.sleep(0.05)

    with network(tmp_path, path(3), [1.0, 2.0, 3.0], method="search") as net:
        node = net.start("p1", "--log", "json")
        asyncio.run(main())
        node.signal(signal.SIGTERM)
        said = node.wait().err.splitlines()
    about_links = [line for line in said if '"linked"' in line or '"unlinked"' in line]
    assert AT_ONCE <= len(about_links) <= AT_ONCE + 2
