"""`midst doctor`: whether a participant could take part now, and if not, what to do.

Rules:
- Every check is a line: how it went, what was checked, and what was found or what to do about it. One failed check does
  not keep the others from being made, unless they need what it was about.
- Neighbours are met over the transport that the node itself uses. The doctor says that it looks in, and nothing about
  the run: a neighbour that is up and waits goes on waiting, is not alarmed, and no session is used up.
- What the participant has to change is a problem. What may well be right later, such as a neighbour that is not up yet,
  is a warning.
"""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from collections.abc import Callable, Container, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import click

from midst.cli.options import offer_names
from midst.errors import InputError
from midst.net.identity.certificates import describe, expiry_warning, fingerprint, read_certificate
from midst.net.identity.keys import Identity, load_identity

if TYPE_CHECKING:
    from midst.net.charter import Charter
    from midst.net.transports.transport import Transport

Checked = TypeVar("Checked")

_A_FILE = click.Path(path_type=Path)
_OWN_ANSWER = 2.0  # seconds


@dataclass(frozen=True)
class Line:
    """What a check found.

    Attributes:
        level: how bad it is.
        what: was checked.
        text: what was found and, unless it is well, what to do.
    """

    level: Literal["ok", "warning", "problem"]
    what: str
    text: str


@click.command(context_settings={"max_content_width": 100})
@click.option("--charter", "charter_file", type=_A_FILE, required=True, metavar="FILE", help="What all agreed on.")
@click.option("--name", shell_complete=offer_names, required=True, help="Your participant in it.")
@click.option("--key", "key_file", type=_A_FILE, required=True, metavar="FILE", help="Your key, as in keys/NAME.key.")
@click.option("--wait", type=click.FloatRange(0.1, 600), default=5.0, show_default=True, help="Seconds for neighbours.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout.")
def command(charter_file: Path, name: str, key_file: Path, wait: float, as_json: bool) -> None:
    """Check files, clock, address and neighbours of a participant, and say how to fix what is wrong.

    Exit code 0 if there is no problem (there may be warnings), else 2.
    """
    lines: list[Line] = []
    for line in examine(charter_file, name, key_file, wait):
        lines.append(line)
        if not as_json:
            click.echo(f"{line.level}: {line.what}: {line.text}")
    problems = sum(line.level == "problem" for line in lines)
    if as_json:
        click.echo(json.dumps({"problems": problems, "checks": [asdict(line) for line in lines]}))
    if problems:
        raise InputError(f"{problems} problem{'s' if problems > 1 else ''}; {name} could not take part now")


def examine(charter_file: Path, name: str, key_file: Path, wait: float) -> Iterator[Line]:
    """All checks, as they are made."""
    from midst.cli.charter import UNVERIFIED, expectations
    from midst.cli.noise import accuracy, require_promise
    from midst.net.charter import check_identity
    from midst.net.charter_files import read_invitation

    now = datetime.now(UTC)
    invited = _attempt("charter", lambda: read_invitation(charter_file))
    charter, inside = (invited, {}) if isinstance(invited, Line) else invited
    yield charter if isinstance(charter, Line) else Line("ok", "charter", f"digest {charter.digest.hex()}")
    if not isinstance(charter, Line):
        for text in expectations(charter, None):
            yield Line("ok", "expect", " ".join(text.split()))
        if charter.noise is not None:
            kept = _attempt("noise", lambda: require_promise(charter))
            promised = f"{charter.noise.promise.describe()}; {accuracy(charter)}"
            yield kept if isinstance(kept, Line) else Line("ok", "noise", promised)
        elif charter.stop == "exact" and not charter.is_verified:
            yield Line("warning", "verify", f"{UNVERIFIED}; have a charter with verify = true")
    identity = _attempt("key", lambda: load_identity(key_file))
    if isinstance(identity, Line):
        yield identity
    else:
        yield Line("ok", "key", f"{key_file}, of {identity.name}, readable by you alone")
        yield from _check_folder(key_file)
        yield from _check_expiry("your certificate", identity.certificate, now)
    if isinstance(charter, Line):
        return
    number = _attempt("name", lambda: charter.number(name))
    yield number if isinstance(number, Line) else Line("ok", "name", f"{name} is participant {number}")
    if isinstance(number, Line) or isinstance(identity, Line):
        return
    matching = _attempt("fingerprint", lambda: check_identity(charter, name, identity))
    yield matching if isinstance(matching, Line) else Line("ok", "fingerprint", "your certificate is the charter's")
    if isinstance(matching, Line):
        yield Line("warning", "neighbours", "not called, since they would refuse this certificate")
        return
    yield from _check_trusted(charter, name, identity, now, charter_file, inside)
    yield from asyncio.run(_meet(charter, identity, number, wait))


# Files and clock


def _attempt(what: str, check: Callable[[], Checked]) -> Checked | Line:
    """What a check gave, or the problem that it raised."""
    try:
        return check()
    except InputError as error:
        return Line("problem", what, " ".join(str(error).split()))


def _check_folder(key_file: Path) -> Iterator[Line]:
    from midst.machine import HAS_MODES

    if not HAS_MODES:
        folder = key_file.absolute().parent
        advice = "cannot be checked here; see that only you may"
        yield Line("warning", "folder", f"who may put files into {folder} {advice}")
        return
    for folder in (key_file.absolute().parent, key_file.absolute().parent / "trusted"):
        if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o022:
            yield Line("warning", "folder", f"others may put files into {folder}; try: chmod 700 {folder}")


def _check_expiry(what: str, certificate: bytes, now: datetime) -> Iterator[Line]:
    said = describe(certificate)
    warning = expiry_warning(certificate, now)
    if warning is None:
        yield Line("ok", what, f"valid until {said.expires:%Y-%m-%d}; this host's clock says {now:%Y-%m-%d %H:%M} UTC")
    else:
        yield Line("warning" if said.begins <= now <= said.expires else "problem", what, warning)


def _check_trusted(
    charter: Charter, name: str, identity: Identity, now: datetime, file: Path, inside: Container[str]
) -> Iterator[Line]:
    """Whether the neighbours are trusted; the certificates of those `inside` are in the charter's file."""
    from midst.net.charter import strangers

    for stranger in strangers(charter, name, identity):
        brings = file if stranger in inside else f"{stranger}.crt"
        yield Line("problem", stranger, f"its certificate is not trusted; try: midst keys trust {brings}")
    known = {fingerprint(der): der for der in map(read_certificate, identity.trusted)}
    for j in charter.neighbours(name):
        other = charter.participants[j]
        if other.fingerprint in known:
            yield from _check_expiry(f"{other.name}'s certificate", known[other.fingerprint], now)


# Address and neighbours


@dataclass
class _Calls:
    """What a transport tells while neighbours are being met.

    Attributes:
        charter: whose participants are meant.
        transport: by which they are met.
        awaited: neighbours that are not done with.
        done: set when nobody is awaited any more.
        linked_to: neighbours with which there was a link.
        troubles: the latest kind and text of trouble, by neighbour; None for somebody unknown.
        charters: in what the neighbours' charters differ, where they have said so.
        clocks: what is to be said about the neighbours' clocks.
    """

    charter: Charter
    transport: Transport
    awaited: set[int]
    done: asyncio.Event
    linked_to: set[int] = field(default_factory=set)
    troubles: dict[int | None, tuple[str, str]] = field(default_factory=dict)
    charters: dict[int, list[str]] = field(default_factory=dict)
    clocks: dict[int, str] = field(default_factory=dict)

    def linked(self, j: int) -> None:
        """Both ends know each other."""
        from midst.net.wire import Visit, encode_control

        self.linked_to.add(j)
        self.transport.send(j, encode_control(Visit()))

    def unlinked(self, j: int) -> None:
        """It was there, which is all that is asked."""

    def hear(self, j: int, frame: bytes) -> None:
        """A neighbour that is up says HELLO, with the digest of its charter."""
        from midst.net.charter import differing
        from midst.net.wire import BadFrame, Hello, decode_control

        try:
            hello = decode_control(frame)
        except BadFrame:
            return
        if not isinstance(hello, Hello):
            return
        same = hello.digest == self.charter.digest
        self.charters[j] = [] if same else differing(self.charter.field_digests, hello.fields)
        self.awaited.discard(j)
        if not self.awaited:
            self.done.set()

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        """Something did not work; the transport goes on trying."""
        if j is not None and kind == "clock":
            self.clocks[j] = text
        else:
            self.troubles[j] = kind, text


async def _meet(charter: Charter, identity: Identity, number: int, wait: float) -> list[Line]:
    """Bind, dial, be dialled, and listen, for as long as it takes or `wait` seconds."""
    import numpy as np

    from midst.net.notary import CertifiedNotary
    from midst.net.setup import make_setup
    from midst.net.transports.tls import TlsTransport
    from midst.net.transports.transport import Endpoint

    lines = await _find_names(charter, number)
    any_value = np.array([min(max(0.0, low), high) for low, high in charter.column_ranges])  # none is sent
    setup = make_setup(charter, identity.name, any_value, CertifiedNotary(charter, identity))
    transport = TlsTransport(Endpoint(charter, identity, number, setup.codec.largest()))
    calls = _Calls(charter, transport, set(charter.neighbours(identity.name)), asyncio.Event())
    address = charter.participants[number].address
    try:
        await transport.open(calls)
    except InputError as error:
        if address is not None and await asyncio.to_thread(_is_own_node, identity, address):
            running = f"your node runs already at {address}; it says itself how its neighbours are"
            return [*lines, Line("ok", "address", running)]
        return [*lines, Line("problem", "address", " ".join(str(error).split()))]
    lines.append(Line("ok", "address", f"can listen at {address}" if address else "none; this participant only dials"))
    try:
        async with asyncio.timeout(wait):
            await calls.done.wait()
    except TimeoutError:
        pass
    finally:
        await transport.close()
    lines += [_neighbour(calls, identity.name, j, wait) for j in charter.neighbours(identity.name)]
    lines += [Line("warning", "clock", text) for text in calls.clocks.values()]
    if None in calls.troubles:
        lines.append(Line("warning", "somebody", calls.troubles[None][1]))
    return lines


async def _find_names(charter: Charter, number: int) -> list[Line]:
    """Whether the hosts of the neighbours that are dialled can be found."""
    from midst.net.charter import split_address
    from midst.net.transports.transport import dials

    lines = []
    for j in charter.neighbours(charter.names[number]):
        address = charter.participants[j].address
        if address is None or not dials(charter, number, j):
            continue
        host, port = split_address(address)
        try:
            await asyncio.get_running_loop().getaddrinfo(host, port)
        except OSError:
            advice = "check the name in the charter, and this host's name service"
            lines.append(Line("problem", charter.names[j], f"no host is called {host}; {advice}"))
    return lines


def _neighbour(calls: _Calls, own: str, j: int, wait: float) -> Line:
    """How it went with a neighbour."""
    from midst.net.transports.transport import dials

    charter = calls.charter
    name = charter.names[j]
    if j in calls.charters:
        if not calls.charters[j]:
            return Line("ok", name, "is up and has the same charter")
        keys = ", ".join(calls.charters[j])
        return Line("problem", name, f"has another charter; it differs in: {keys}; compare with midst charter show")
    if j in calls.troubles and j not in calls.linked_to:
        kind, text = calls.troubles[j]
        return Line("warning" if kind == "unreachable" else "problem", name, text)
    if j in calls.linked_to:
        text = f"is up, but did not say within {wait:g} s which charter it has; try a longer --wait"
    elif dials(charter, charter.number(own), j):
        text = f"did not answer within {wait:g} s; is its node up?"
    else:
        place = charter.participants[charter.number(own)].address
        text = f"did not call within {wait:g} s; is its node up, and does a firewall let it reach {place}?"
    return Line("warning", name, text)


def _is_own_node(identity: Identity, address: str) -> bool:
    """Whether whoever listens at the own address has the own certificate."""
    from midst.net.charter import split_address

    context = identity.context(server=False)
    try:
        with (
            socket.create_connection(split_address(address), timeout=_OWN_ANSWER) as plain,
            context.wrap_socket(plain) as tls,
        ):
            return tls.getpeercert(binary_form=True) == identity.certificate
    except OSError:
        return False
