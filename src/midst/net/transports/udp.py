"""Frames in datagrams, sealed from end to end: for a search, where whoever lacks a statement asks for it.

Rules:
- A datagram is the sender's number (four bytes, the highest first) and a message of `seal.py`. Who sent it is settled
  by the seal; the number only says whose key to try, and where it came from does not matter.
- Everybody needs an address: answers go to the charter's, never to where a datagram came from. So do cookies
  (`seal.py`): who only pretends to be a neighbour never gets one, whatever address it sends from, and costs a hash a
  datagram.
- Nothing longer than `DATAGRAM` bytes is sent, so that nothing is cut in pieces on the way. `sent` and `received` count
  the datagrams' contents.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from midst.errors import InputError
from midst.net.charter import split_address
from midst.net.transports.seal import OVERHEAD, TICK, Seals, hello_bytes
from midst.net.transports.transport import Endpoint, Listener, cannot_bind, end_task

DATAGRAM = 1200  # bytes, as QUIC's: they pass wherever IPv6 does

_NUMBER = 4  # bytes
_LARGEST_WAITING = 2**18  # bytes
_RESOLVE_AGAIN = 20  # ticks


class UdpTransport:
    """Frames in sealed datagrams; see the head of this file."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Nothing is opened yet."""
        self.sent = 0
        self.received = 0
        self._end = endpoint
        self._addresses: dict[int, Any] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def open(self, listener: Listener) -> None:
        """Bind, and begin to shake hands.

        Raises:
            InputError: frames do not fit into a datagram, somebody has no address, or the own one cannot be bound.
        """
        end = self._end
        largest = max(end.largest + OVERHEAD, hello_bytes(end.identity)) + _NUMBER
        if largest > DATAGRAM:
            advice = "have fewer coordinates, or no verification (verify = false), or use TLS"
            raise InputError(f"messages of {largest} bytes do not fit into a datagram of {DATAGRAM}; {advice}")
        for one in (end.own, *(end.charter.participants[j] for j in end.neighbours)):
            if one.address is None:
                raise InputError(f"{one.name} has no address in the charter; UDP needs one")
        assert end.address is not None
        self._seals = Seals(end, listener, self._put)
        try:
            self._transport, self._wire = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: _Wire(self._take), local_addr=end.address
            )
        except OSError as error:
            raise cannot_bind(end.own.name, *end.address, error) from None
        self._keeping = asyncio.create_task(self._keep())

    def send(self, j: int, frame: bytes) -> None:
        """Send a frame; dropped where there is no session, too much waits, or the frame is too large."""
        self._seals.send(j, frame)

    async def close(self) -> None:
        """Send what waits, then end."""
        if self._transport is None or self._keeping is None:
            return
        await end_task(self._keeping)
        self._transport.close()
        await self._wire.ended.wait()

    async def _keep(self) -> None:
        """Find the neighbours' addresses, and shake hands, until there is a session with each; and then again."""
        ticks = 0
        while True:
            if ticks % _RESOLVE_AGAIN == 0:
                await asyncio.gather(*(self._resolve(j) for j in self._end.neighbours if not self._seals.linked(j)))
            ticks += 1
            self._seals.tick()
            await asyncio.sleep(TICK)

    async def _resolve(self, j: int) -> None:
        assert self._transport is not None
        family = self._transport.get_extra_info("socket").family
        other = self._end.charter.participants[j]
        host, port = split_address(other.address or "")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM)
        except OSError as error:
            text = f"{other.name}: {other.address} cannot be found ({error.strerror}); check the charter"
            self._seals.notices.tell(j, "unreachable", text)
        else:
            self._addresses[j] = found[0][4]

    def _put(self, j: int, message: bytes) -> None:
        datagram = self._end.number.to_bytes(_NUMBER, "big") + message
        to = self._addresses.get(j)
        if to is None or self._transport is None or self._transport.is_closing() or len(datagram) > DATAGRAM:
            return
        if self._transport.get_write_buffer_size() < _LARGEST_WAITING:  # type: ignore[attr-defined]  # it has one
            self.sent += len(datagram)
            self._transport.sendto(datagram, to)

    def _take(self, datagram: bytes) -> None:
        self.received += len(datagram)
        if len(datagram) <= DATAGRAM and self._transport is not None and not self._transport.is_closing():
            self._seals.take(int.from_bytes(datagram[:_NUMBER], "big"), datagram[_NUMBER:])


class _Wire(asyncio.DatagramProtocol):
    """What asyncio calls."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self.ended = asyncio.Event()

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
