"""`/metrics` for Prometheus and `/healthz`, where they are asked for.

Rules:
- Numbers about the work, never about the value: rounds, bytes, links, for whom it waits, whether it is over.
- A server of fifty lines: two pages, GET, no keep-alive, small requests, few at a time.
"""

from __future__ import annotations

import asyncio
import time

from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.driver import Driver

_MOST_BYTES = 4096
_LONGEST_WAIT = 5.0  # seconds for a request to arrive


async def serve(driver: Driver, host: str, port: int) -> asyncio.Server:
    """Answer at an address until the server is closed.

    Raises:
        InputError: the address cannot be bound.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), _LONGEST_WAIT)
            status, body = respond(driver, line)
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
            await writer.drain()
        except (TimeoutError, ValueError, ConnectionError):
            pass
        finally:
            writer.close()

    try:
        return await asyncio.start_server(answer, host, port, limit=_MOST_BYTES, backlog=8)
    except OSError as error:
        reason = error.strerror or "cannot be bound"
        raise InputError(f"--metrics {host}:{port}: {reason}; choose another port") from None


def respond(driver: Driver, line: bytes) -> tuple[str, bytes]:
    """Status and body for a request line."""
    match line.split():
        case [b"GET", b"/metrics", *_]:
            return "200 OK", page(driver).encode()
        case [b"GET", b"/healthz", *_]:
            waiting = driver.peer.standing(time.monotonic()).names
            return "200 OK", (f"waiting for {waiting}\n" if waiting else "ok\n").encode()
        case [b"GET", *_]:
            return "404 Not Found", b"try /metrics or /healthz\n"
        case _:
            return "405 Method Not Allowed", b"GET only\n"


def page(driver: Driver) -> str:
    """The numbers, in Prometheus's text format."""
    peer = driver.peer
    standing = peer.standing(time.monotonic())
    greeted = sum(each.greeted for each in peer.neighbours.values())
    rows = [
        ("rounds_total", "counter", "Rounds completed.", peer.exchange.round),
        ("sent_bytes_total", "counter", "Bytes sent.", driver.transport.sent),
        ("received_bytes_total", "counter", "Bytes received.", driver.transport.received),
        ("neighbours", "gauge", "Neighbours in the charter.", len(peer.neighbours)),
        ("links", "gauge", "Neighbours with a link to them.", len(driver.links)),
        ("neighbours_greeted", "gauge", "Neighbours that have shown the same charter.", greeted),
        ("waiting_seconds", "gauge", "Seconds without progress.", round(standing.since, 3)),
        ("finished", "gauge", "1 once the answer is proved.", int(isinstance(peer.ending, Answer))),
        ("aborted", "gauge", "1 once the run was aborted.", int(isinstance(peer.ending, Aborted))),
        ("uptime_seconds", "gauge", "Seconds since the start.", round(time.monotonic() - driver.started, 3)),
    ]
    lines = [
        f"# HELP midst_{name} {text}\n# TYPE midst_{name} {kind}\nmidst_{name} {number}\n"
        for name, kind, text, number in rows
    ]
    lines.append("# HELP midst_waiting_for Participants this node waits for.\n# TYPE midst_waiting_for gauge\n")
    lines += [f'midst_waiting_for{{participant="{name}"}} 1\n' for name in peer.awaited]
    return "".join(lines)
