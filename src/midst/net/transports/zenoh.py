"""Frames over zenoh, sealed from end to end: for networks that outgrow point-to-point links.

Rules:
- A message of `seal.py` from i to j is published at midst/<first 16 digits of the charter's digest>/<i>/<j>.
  Participants with different charters therefore never meet: to each the other is silent.
- Either peers listen at the charter's addresses and dial each other as in `transport.py`; or all are clients of
  routers, which see who talks to whom, when and how much, and nothing else. Nobody is sought by multicast or gossip.
- zenoh calls from threads of its own. What it brings is put down there (a bounded number of messages; more are
  dropped) and taken up by the event loop.
- `sent` and `received` count messages and their keys; what zenoh adds is not counted.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from midst.errors import MissingExtra
from midst.net.transports.seal import OVERHEAD, TICK, Seals, hello_bytes
from midst.net.transports.transport import Endpoint, Listener, cannot_bind

try:
    import zenoh
except ImportError:
    raise MissingExtra("zenoh", "zenoh") from None

_MOST_HELD = 4096  # messages
_FIRST_RETRY, _LONGEST_RETRY = 100, 2000  # milliseconds


class ZenohTransport:
    """Frames over zenoh; see the head of this file."""

    def __init__(self, endpoint: Endpoint, *, routers: Sequence[str] = ()) -> None:
        """Nothing is opened yet.

        Args:
            endpoint: whose; with routers, nothing is bound.
            routers: zenoh's, such as tcp/router.example.org:7447; without any, neighbours dial each other.
        """
        self.sent = 0
        self.received = 0
        self._end = endpoint
        self._routers = list(routers)
        self._room = f"midst/{endpoint.charter.digest.hex()[:16]}"
        self._session: Any = None
        self._held: deque[tuple[str, bytes]] = deque(maxlen=_MOST_HELD)
        self._called = False  # whether the event loop has been told that messages are held
        self._closing = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def open(self, listener: Listener) -> None:
        """Open zenoh, and begin to shake hands; does not wait for a router.

        Raises:
            InputError: the own address cannot be bound.
        """
        self._loop = asyncio.get_running_loop()
        self._seals = Seals(self._end, listener, self._put)
        self._most = max(self._end.largest + OVERHEAD, hello_bytes(self._end.identity), 4096)
        if not self._routers:
            try:
                await self._connect()
            except zenoh.ZError as error:
                if self._end.address is None:
                    raise
                reason = "address already in use" if "in use" in str(error) else "zenoh cannot bind it"
                raise cannot_bind(self._end.own.name, *self._end.address, reason) from None
        self._keeping = asyncio.create_task(self._keep())

    def send(self, j: int, frame: bytes) -> None:
        """Send a frame; dropped where there is no session, or the frame is too large."""
        self._seals.send(j, frame)

    async def close(self) -> None:
        """Hand what waits to zenoh, then end."""
        self._closing.set()
        if self._keeping is not None:
            await self._keeping
        if self._session is not None:
            session, self._session = self._session, None
            await asyncio.to_thread(session.close)

    async def _keep(self) -> None:
        """Find a router where there are some, and shake hands."""
        while not self._closing.is_set():
            if self._session is None:
                try:
                    await self._connect()
                except zenoh.ZError:
                    text = f"no zenoh router answers at {', '.join(self._routers)}; is one running there?"
                    self._seals.notices.tell(None, "unreachable", text)
            self._seals.tick()
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._closing.wait()

    async def _connect(self) -> None:
        session = await asyncio.to_thread(zenoh.open, zenoh.Config.from_json5(json.dumps(self._settings())))
        session.declare_subscriber(f"{self._room}/*/{self._end.number}", self._put_down)
        self._session = session

    def _settings(self) -> dict[str, Any]:
        """The configuration; see DEFAULT_CONFIG.json5 in zenoh's repository for what each of it means."""
        end = self._end
        dialled = [end.charter.participants[j].address for j in end.dialled]
        retry = {"period_init_ms": _FIRST_RETRY, "period_max_ms": _LONGEST_RETRY, "period_increase_factor": 2}
        listening = [] if end.address is None or self._routers else [_endpoint(*end.address)]
        return {
            "mode": "client" if self._routers else "peer",
            "listen": {"endpoints": listening, "exit_on_failure": True, "timeout_ms": 0},
            "connect": {
                "endpoints": self._routers or [f"tcp/{address}" for address in dialled],
                "exit_on_failure": False,
                "timeout_ms": 0 if self._routers else -1,
                "retry": retry,
            },
            "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
            "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
            "transport": {
                "unicast": {"open_timeout": 3000, "max_sessions": len(end.neighbours) + 32},
                "link": {"rx": {"max_message_size": 2 * self._most}, "tx": {"queue": {"size": {"data": 16}}}},
                "shared_memory": {"enabled": False},
            },
        }

    def _put(self, j: int, message: bytes) -> None:
        if self._session is None:
            return
        key = f"{self._room}/{self._end.number}/{j}"
        self.sent += len(key) + len(message)
        with suppress(zenoh.ZError):  # the session is ending
            self._session.put(key, message, express=True, congestion_control=zenoh.CongestionControl.DROP)

    def _put_down(self, sample: Any) -> None:
        """A message came; this is a thread of zenoh's."""
        if len(sample.payload) > self._most:
            return
        self._held.append((str(sample.key_expr), sample.payload.to_bytes()))
        if not self._called:  # looked at after the message was put down, and reset before messages are taken up
            self._called = True
            with suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._take_up)

    def _take_up(self) -> None:
        self._called = False
        while self._held and not self._closing.is_set():
            key, message = self._held.popleft()
            self.received += len(key) + len(message)
            sender = key.split("/")[-2]
            if sender.isascii() and sender.isdecimal() and len(sender) < 10:
                self._seals.take(int(sender), message)


def _endpoint(host: str, port: int) -> str:
    return f"tcp/[{host}]:{port}" if ":" in host else f"tcp/{host}:{port}"
