"""Frames over mutual TLS 1.3: one connection a neighbour.

Rules:
- On the stream a message is its length (four bytes, the highest first) and that many bytes. A length past `largest`
  ends the connection before anything is kept.
- The first message each way is the transport's own, sent after looking at the other's certificate: "you are who the
  charter says, and my clock says this", or a refusal that a person can read. TLS 1.3 alone gives none: who dials has
  finished its handshake before the other end looks at its certificate. A link is up when the other's welcome is there;
  all after it are frames.
- Certificates are judged by the clock, so a person is told where the clocks of two neighbours differ.
- A newer link of the same neighbour replaces the older, which may be half dead.
- TLS runs in memory beside a plain TCP connection: no task, queue or future for a frame, and what goes wrong in a
  handshake is known at both ends. `sent` and `received` count the bytes of the TCP stream, TLS included.
- Until a link is up, whoever it is has `HANDSHAKE` seconds. How many such connections are kept, and which of them goes
  where there is one too many, `strangers.py` says; who dials decides whom, so nobody can fill up that side. What waits
  to be sent is bounded: frames past that are dropped.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

from midst.errors import InputError
from midst.net.charter import split_address
from midst.net.identity.certificates import CertificateFault, check_certificate, describe, fingerprint
from midst.net.transports.strangers import Strangers
from midst.net.transports.transport import (
    LARGEST_REFUSAL,
    Endpoint,
    Listener,
    Notices,
    cannot_bind,
    end_task,
    read_refusal,
    refusal,
)

HANDSHAKE = 10.0  # seconds
FLUSH = 5.0  # seconds that closing may take
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0  # seconds between two attempts to dial
GRACE = 1.0  # seconds that a neighbour may be away before a person is told
STEADY = 1.0  # a link that lasts this many seconds was a good one
CLOCKS = 300.0  # seconds by which two clocks may differ

_LARGEST_WAITING = 2**20  # bytes, or eight frames
_SILENT = 20  # seconds without a sign of life after which TCP gives a connection up
_RECORD = 16384  # bytes
_ARRIVING = 65536  # bytes read at a time
_WELCOME = struct.Struct(">cQ")  # "W", and seconds since 1970
_UNITS = {"days": 86_400, "hours": 3_600, "minutes": 60}
_ALERTS = {  # OpenSSL's words for what the other end has sent
    "TLSV1_ALERT_UNKNOWN_CA": "does not trust this node's certificate; give it yours, and let it run: midst keys trust",
    "SSLV3_ALERT_BAD_CERTIFICATE": "cannot read this node's certificate; both ends need the same version of midst",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "says that this node's certificate has expired; make a new one",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "does not accept this node's certificate; give it yours again",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "cannot use this node's certificate; make one with: midst keys init",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "saw no certificate of this node; is something else using its address?",
    "TLSV1_ALERT_PROTOCOL_VERSION": "does not speak TLS 1.3; check what listens at its address",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "has no cipher in common with this node; check what listens at its address",
    "WRONG_VERSION_NUMBER": "does not speak TLS; check what listens at its address",
    "HTTP_REQUEST": "speaks HTTP and not TLS",
    "UNSUPPORTED_PROTOCOL": "does not speak TLS 1.3; check what listens at its address",
}


class TlsTransport:
    """Frames over mutual TLS; see the head of this file."""

    def __init__(self, endpoint: Endpoint, *, clock: Callable[[], float] = time.time) -> None:
        """Nothing is opened yet; the clock gives seconds since 1970."""
        self.clock = clock
        self.sent = 0
        self.received = 0
        self.largest = endpoint.largest
        self.most_waiting = max(_LARGEST_WAITING, 8 * endpoint.largest)
        self.own, self.participants = endpoint.own, endpoint.charter.participants
        self._endpoint, self._listen = endpoint, endpoint.address
        self._server_context = endpoint.identity.context(server=True)
        self._client_context = endpoint.identity.context(server=False)
        self._server: asyncio.Server | None = None
        self._dialling: list[asyncio.Task[None]] = []
        self.arriving = memoryview(bytearray(_ARRIVING))  # of whichever link; taken up before the next may put its own
        self.links: dict[int, Link] = {}
        self._all: set[Link] = set()
        self.strangers: Strangers[Link] = Strangers()  # connections that came in and are not up
        self._closed = False

    async def open(self, listener: Listener) -> None:
        """Listen where the charter says, and dial.

        Raises:
            InputError: the address cannot be bound.
        """
        self.listener = listener
        self.notices = Notices(listener)
        loop = asyncio.get_running_loop()
        if self._endpoint.listening is not None:
            self._server = await loop.create_server(self._receive, sock=self._endpoint.listening)
        elif self._listen is not None:
            try:
                self._server = await loop.create_server(self._receive, *self._listen)
            except OSError as error:
                raise cannot_bind(self.own.name, *self._listen, error) from None
        self._dialling = [loop.create_task(self._dial(j)) for j in self._endpoint.dialled]

    def _receive(self) -> Link:
        return Link(self, self._server_context, None)

    def send(self, j: int, frame: bytes) -> None:
        """Send a frame; dropped where there is no link, too much waits, or the frame is too large."""
        link = self.links.get(j)
        if link is not None and len(frame) <= self.largest:
            link.send(frame)

    async def close(self) -> None:
        """Send what waits, then end."""
        self._closed = True
        for task in self._dialling:
            await end_task(task)
        if self._server is not None:
            self._server.close()
        for link in list(self._all):
            if link in self.strangers:
                link.abort()  # nothing waits for them
            else:
                link.finish()
        for link in list(self._all):
            await link.ended.wait()  # `finish` sees to it that it ends
        if self._server is not None:
            await self._server.wait_closed()

    # Dialling

    async def _dial(self, j: int) -> None:
        """Keep a link to j, for ever."""
        loop = asyncio.get_running_loop()
        other = self.participants[j]
        assert other.address is not None, "one of two neighbours has an address"
        host, port = split_address(other.address)
        wait, failing_since = FIRST_WAIT, loop.time()
        while True:
            link = Link(self, self._client_context, j)
            began = loop.time()
            try:
                async with asyncio.timeout(HANDSHAKE):
                    await loop.create_connection(lambda link=link: link, host, port)  # type: ignore[misc]
            except (OSError, TimeoutError) as error:
                if loop.time() - failing_since > GRACE:  # it may just be starting, too
                    self.notices.tell(j, "unreachable", _unreachable(other.name, other.address, error))
            else:
                # A link that comes up and breaks at once (a refusal, two nodes of one name) must not be dialled at full
                # speed: only one that has lasted sets the wait back.
                await link.ended.wait()
                if link.up and loop.time() - began > STEADY:
                    wait, failing_since = FIRST_WAIT, loop.time()
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, LONGEST_WAIT)

    # What links report

    def began(self, link: Link) -> None:
        """A connection is there; nobody knows whose."""
        self._all.add(link)
        if self._closed:
            link.abort()
        elif link.dialled is None:
            leaving = self.strangers.add(link, link.host)
            if leaving is not None:
                leaving.abort()

    def accepted(self, link: Link, j: int) -> None:
        """Both ends know each other."""
        self.strangers.discard(link)
        # In this order: the end of the old link must not find itself in `links`, or j would be reported as lost.
        old = self.links.get(j)
        self.links[j] = link
        if old is not None:
            old.abort()
        self.notices.forget(j)
        self.listener.linked(j)

    def over(self, link: Link) -> None:
        """A connection has ended."""
        self._all.discard(link)
        self.strangers.discard(link)
        if link.j is not None and self.links.get(link.j) is link:
            del self.links[link.j]
            if not self._closed:
                self.listener.unlinked(link.j)

    def judge(self, der: bytes, dialled: int | None) -> tuple[int | None, CertificateFault | None]:
        """Whose certificate it is, as far as it is a neighbour's, and what is wrong with it."""
        j = self._whose(der) if dialled is None else dialled
        if j is not None:
            other = self.participants[j]
            now = datetime.fromtimestamp(self.clock(), UTC)
            return j, check_certificate(der, other.name, other.fingerprint, now)
        shown = fingerprint(der)
        for one in self.participants:
            if one.fingerprint == shown:
                text = f"{one.name} is no neighbour of {self.own.name} here; compare the charters"
                return None, CertificateFault("unknown", text)
        advice = "compare midst keys show with the charter"
        return None, CertificateFault("unknown", f"certificate {shown} is of no neighbour of {self.own.name}; {advice}")

    def _whose(self, der: bytes) -> int | None:
        """The neighbour who has this certificate; else the one whose name is in it."""
        shown, by_print = fingerprint(der), {self.participants[j].fingerprint: j for j in self._endpoint.neighbours}
        if shown in by_print:
            return by_print[shown]
        try:
            name = describe(der).name
        except InputError:
            return None
        return next((j for j in by_print.values() if self.participants[j].name == name), None)


class Link(asyncio.BufferedProtocol):
    """One connection, from TCP to frames."""

    def __init__(self, owner: TlsTransport, context: ssl.SSLContext, dialled: int | None) -> None:
        """Before the connection is there; `dialled` is None for one that came in."""
        self._owner = owner
        self.dialled = dialled
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arriving, self._leaving, server_side=dialled is None)
        self._buffer = bytearray()
        self._wanted = 4  # bytes that the buffer needs before it is worth looking
        self._shaken = False
        self._closing = False
        self._timer: asyncio.TimerHandle | None = None
        self.j: int | None = None
        self.up = False
        self.ended = asyncio.Event()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP is there; TLS begins."""
        self._transport = cast(asyncio.Transport, transport)
        _set_options(transport.get_extra_info("socket"))
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE, self._too_slow)
        self._owner.began(self)
        if not self._closing:
            self._shake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where bytes may be put; left to itself, asyncio makes new room for 256 KiB at every read."""
        return self._owner.arriving

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        self._owner.received += nbytes
        if self._closing:
            return
        self._arriving.write(self._owner.arriving[:nbytes])
        if not self._shaken:
            self._shake()
        if not self._shaken:
            return
        # One read takes all of a record, and OpenSSL takes no bytes of the next: when none wait, nothing can be read.
        while self._arriving.pending and not self._closing:
            try:
                chunk = self._tls.read(_RECORD)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError as error:
                self._fail(error)
                return
            if not chunk:  # the other end says goodbye
                self.finish()
                return
            self._split(chunk)

    def eof_received(self) -> None:
        """The other end sends no more; asyncio closes the connection."""

    def connection_lost(self, exc: Exception | None) -> None:
        """TCP is gone."""
        if self.dialled is not None and not self.up and not self._closing:
            j, who = self._who()
            advice = "check what listens at its address"
            self._owner.notices.tell(j, "cut", f"{who} closed the connection during the handshake; {advice}")
        self._stop_timer()
        self._closing = True
        self._owner.over(self)
        self.ended.set()

    # Called by the transport

    @property
    def host(self) -> str:
        """Where the other end is."""
        return str((self._transport.get_extra_info("peername") or ("an unknown address",))[0])

    def send(self, frame: bytes) -> None:
        """Send a message, unless too much waits already."""
        if self._closing or self._transport.get_write_buffer_size() > self._owner.most_waiting:
            return
        self._tls.write(len(frame).to_bytes(4, "big") + frame)
        self._flush()

    def finish(self) -> None:
        """Send what waits, say goodbye, and close when the other end has taken it."""
        if self._closing:
            return
        self._closing = True
        self._stop_timer()
        with suppress(ssl.SSLError):  # it would wait for the other's goodbye, which does not matter
            self._tls.unwrap()
        self._flush()
        # Closing at once could make TCP discard what the other end has not yet read; so it is told first.
        self._transport.write_eof()
        self._timer = asyncio.get_running_loop().call_later(FLUSH, self.abort)

    def abort(self) -> None:
        """Close, and forget what waits."""
        self._closing = True
        self._stop_timer()
        self._transport.abort()

    # Inside

    def _shake(self) -> None:
        """A step of the handshake; when it is done, the word of welcome or refusal."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._shaken = True
        shown = self._tls.getpeercert(binary_form=True)
        assert shown is not None, "the context requires a certificate"
        if self.dialled is None and fingerprint(shown) == self._owner.own.fingerprint:
            self.finish()  # our own doctor looks whether we are here
            return
        self.j, problem = self._owner.judge(shown, self.dialled)
        if problem is None:
            self.send(_WELCOME.pack(b"W", int(self._owner.clock())))
            return
        self._owner.notices.tell(self.j, problem.kind, problem.text)
        self.send(refusal(problem.kind, problem.text))
        self.finish()

    def _flush(self) -> None:
        if data := self._leaving.read():
            self._owner.sent += len(data)
            self._transport.write(data)

    def _split(self, chunk: bytes) -> None:
        """Cut the stream into messages."""
        if self._buffer:
            self._buffer += chunk
            if len(self._buffer) < self._wanted:
                return
            chunk = bytes(self._buffer)
            self._buffer.clear()
        start, end = 0, len(chunk)
        self._wanted = 4
        while end - start >= 4:
            length = int.from_bytes(chunk[start : start + 4], "big")
            most = self._owner.largest if self.up else LARGEST_REFUSAL
            if length > most:
                _, who = self._who()
                text = f"{who} sent a message of {length} bytes, {most} at most are allowed"
                self._owner.notices.tell(self.j, "oversized", f"{text}; both ends need the same charter")
                self.abort()
                return
            if end - start < 4 + length:
                self._wanted = 4 + length
                break
            start += 4 + length
            message = chunk[start - length : start]
            if self.up and self.j is not None:
                self._owner.listener.hear(self.j, message)
            else:
                self._first(message)
            if self._closing:
                return
        self._buffer += chunk[start:]

    def _first(self, message: bytes) -> None:
        """The other end's word of welcome or refusal."""
        assert self.j is not None, "who is not known has been refused"
        _, who = self._who()
        if message[:1] == b"W" and len(message) == _WELCOME.size:
            self._stop_timer()
            self.up = True
            self._compare_clocks(self.j, who, _WELCOME.unpack(message)[1])
            self._owner.accepted(self, self.j)
            return
        kind, text = read_refusal(message) or ("refused", "it did not begin as midst does; use one version of midst")
        self._owner.notices.tell(self.j, kind, f"{who} refuses: {text}")
        self.finish()

    def _compare_clocks(self, j: int, who: str, theirs: int) -> None:
        ahead = theirs - self._owner.clock()
        if abs(ahead) > CLOCKS:
            by = f"{_duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this host's"
            advice = "certificates are judged by it: set the wrong one"
            self._owner.notices.tell(j, "clock", f"the clock of {who} is {by}; {advice}")

    def _fail(self, error: ssl.SSLError) -> None:
        """Tell people what TLS says, send the other end TLS's own alert, and close."""
        if not self.up:
            j, who = self._who()
            kind, text = _translate(who, error)
            self._owner.notices.tell(j, kind, text)
        self._flush()
        self.finish()

    def _too_slow(self) -> None:
        j, who = self._who()
        self._owner.notices.tell(j, "slow", f"{who} did not finish the handshake within {HANDSHAKE:g} s")
        self.abort()

    def _who(self) -> tuple[int | None, str]:
        """The neighbour this is, as far as it is known, and what to call it."""
        j = self.dialled if self.j is None else self.j
        if j is not None:
            return j, self._owner.participants[j].name
        return None, f"somebody at {self.host}"

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _set_options(sock: socket.socket) -> None:
    """No waiting for more to send; and a dead other end is noticed."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    often = _SILENT // 4
    options = {"TCP_KEEPIDLE": often, "TCP_KEEPINTVL": often, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 1000 * _SILENT}
    for name, setting in options.items():
        if hasattr(socket, name):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), setting)


def _duration(seconds: float) -> str:
    name, unit = next((name, unit) for name, unit in _UNITS.items() if seconds > 2 * unit)
    return f"{seconds / unit:.0f} {name}"


def _unreachable(name: str, address: str, error: OSError | TimeoutError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"{name}: connection refused at {address}; is its node running?"
    if isinstance(error, socket.gaierror):
        return f"{name}: {address} is not a name that can be found; check the charter and the name service"
    if isinstance(error, TimeoutError):
        return f"{name}: no answer from {address}; check the address, and firewalls in between"
    return f"{name}: {address} cannot be reached: {os.strerror(error.errno) if error.errno else error}"


def _translate(who: str, error: ssl.SSLError) -> tuple[str, str]:
    """What TLS says, for a person."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = "compare its fingerprint with its owner, then run: midst keys trust FILE"
        return "untrusted", f"the certificate of {who} is not trusted here; {advice}"
    reason = getattr(error, "reason", None)
    if reason in _ALERTS:
        return "refused", f"{who} {_ALERTS[reason]}"
    return "tls", f"TLS with {who} failed ({reason or 'no reason given'}); check what listens at its address"
