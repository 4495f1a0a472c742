"""TLS on real sockets: who is let in, who is told what, and what strangers can do."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import accumulate, combinations, cycle, pairwise, takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from certificates_made import certify, make_dated
from hypothesis import given, settings
from hypothesis import strategies as st
from parties import Memory, Party, free_port, make_party, opened, until

from midst.net.identity.certificates import fingerprint
from midst.net.identity.keys import Identity, load_identity, make_identity
from midst.net.transports import tls
from midst.net.transports.tls import Link, TlsTransport
from midst.net.transports.transport import Endpoint, read_refusal, refusal

LARGEST = 1000


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """People are told at once, and nobody is waited for long."""
    monkeypatch.setattr(tls, "GRACE", 0.0)
    monkeypatch.setattr(tls, "HANDSHAKE", 0.4)
    monkeypatch.setattr(tls, "FLUSH", 0.4)


def make(
    party: Party, i: int, largest: int = LARGEST, identity: Identity | None = None, **settings: Any
) -> TlsTransport:
    return TlsTransport(Endpoint(party.charter, identity or party.identities[i], i, largest), **settings)


def welcome() -> bytes:
    """What begins a link, as it stands on the stream."""
    return (9).to_bytes(4, "big") + b"W" + int(time.time()).to_bytes(8, "big")


def port_of(party: Party, i: int) -> int:
    return int((party.charter.participants[i].address or "").rpartition(":")[2])


def issue(folder: Path, *names: str, **dates: datetime) -> list[Identity]:
    """Identities with certificates of any date, in a folder where all are trusted that were made before or now."""
    (folder / "trusted").mkdir(parents=True, exist_ok=True)
    for name in names:
        place = folder / secrets.token_hex(4)
        make_dated(place, name, **dates)
        (place / "trusted").symlink_to(folder / "trusted")
        shutil.copy(place / f"{name}.crt", folder / "trusted" / f"{place.name}.crt")
    return [load_identity(path) for name in names for path in sorted(folder.glob(f"*/{name}.key"))]


@asynccontextmanager
async def pretending(party: Party, i: int, to: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of participant i that does not keep to the rules."""
    context = party.identities[i].context(server=False)
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(party, to), ssl=context)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


class Relay:
    """A TCP relay: alters, records, and stops forwarding when told."""

    def __init__(self, port: int, piece: int = 2**16) -> None:
        self.port, self.piece = port, piece
        self.seen = bytearray()
        self.stuck = self.altering = False
        self.writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Relay:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.own_port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers += [writer, onward_writer]
        await asyncio.gather(self._pump(reader, onward_writer), self._pump(onward_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(self.piece):
                self.seen += data
                while self.stuck:
                    await asyncio.sleep(0.01)
                if self.altering:
                    self.altering, data = False, data[:-1] + bytes([data[-1] ^ 1])
                writer.write(data)
                await writer.drain()
            writer.close()
        except (ConnectionError, asyncio.CancelledError):
            writer.transport.abort()


# Honest neighbours


def test_fifteen_nodes_of_a_complete_graph_in_one_process(tmp_path: Path) -> None:
    party = make_party(tmp_path, list(combinations(range(15), 2)))

    async def main() -> None:
        transports = [make(party, i) for i in range(15)]
        async with opened(*reversed(transports)) as memories:
            memories.reverse()
            await until(lambda: all(len(set(memory.links)) == 14 for memory in memories), 20)
            for i, transport in enumerate(transports):
                for j in range(15):
                    if i != j:
                        transport.send(j, f"{i} to {j}".encode())
            await until(lambda: all(len(memory.frames) == 14 for memory in memories))
            for j, memory in enumerate(memories):
                assert sorted(memory.frames) == sorted((i, f"{i} to {j}".encode()) for i in range(15) if i != j)
                assert memory.troubles == []

    asyncio.run(main())


def test_who_has_no_address_dials(keys: Party, tmp_path: Path) -> None:
    party = make_party(tmp_path, [(0, 1), (1, 2)], identities=keys.identities, addressless=[0, 2])

    async def main() -> None:
        async with opened(*(make(party, i) for i in range(3))) as memories:
            await until(lambda: set(memories[1].links) == {0, 2} and memories[0].links and memories[2].links)

    asyncio.run(main())


@pytest.mark.parametrize("who", [0, 1])
def test_an_end_that_dies_without_a_word_is_linked_again(party: Party, who: int) -> None:
    async def main() -> None:
        staying, dying = make(party, 1 - who), make(party, who)
        async with opened(staying) as (memory,):
            async with opened(dying) as (gone,):
                await until(lambda: memory.links and gone.links)
                for link in list(dying.links.values()):
                    link.abort()
                await until(lambda: memory.losses == [who])
            (back,) = [make(party, who)]
            async with opened(back) as (again,):
                await until(lambda: again.links and memory.links.count(who) >= 2)
                staying.send(who, b"still here")
                await until(lambda: again.frames)

    asyncio.run(main())


def test_a_newer_link_replaces_one_that_is_half_dead(party: Party) -> None:
    """The first connection hangs in a relay: bob cannot know that alice has gone and come back."""

    async def main() -> None:
        transport = make(party, 1)
        async with opened(transport) as (bob,), Relay(port_of(party, 1)) as relay:
            plain = make_party_at(party, 1, relay.own_port)
            async with opened(make(plain, 0)) as (first,):
                await until(lambda: bob.links and first.links)
                relay.stuck = True
                second = make(party, 0)
                async with opened_at(second, free_port()) as again:
                    await until(lambda: again.links and bob.links.count(0) == 2)
                    second.send(1, b"I am back")
                    transport.send(0, b"so I see")
                    await until(lambda: (0, b"I am back") in bob.frames and again.frames == [(1, b"so I see")])
                    assert len([link for link in transport._all if link.j == 0]) == 1
                    assert bob.losses == [], "there has been a link all the time"
                relay.stuck = False

    asyncio.run(main())


def make_party_at(party: Party, i: int, port: int) -> Party:
    """The same, except that others believe participant i to be at another port."""
    ports = [port if k == i else port_of(party, k) for k in range(len(party.identities))]
    return make_party(Path(), [(0, 1), (1, 2)], identities=party.identities, ports=ports)


@asynccontextmanager
async def opened_at(transport: TlsTransport, port: int) -> AsyncIterator[Memory]:
    transport._listen = ("127.0.0.1", port)
    async with opened(transport) as (memory,):
        yield memory


def test_nothing_sent_can_be_read_in_between_and_pieces_do_not_matter(party: Party) -> None:
    async def main() -> None:
        async with Relay(port_of(party, 1), piece=7) as relay, opened(make(party, 1)) as (bob,):
            alice = make(make_party_at(party, 1, relay.own_port), 0)
            async with opened(alice) as (memory,):
                await until(lambda: memory.links and bob.links)
                frames = [b"planted-secret" * k for k in (1, 2, 30)]
                for frame in frames:
                    alice.send(1, frame)
                await until(lambda: len(bob.frames) == 3)
                assert bob.frames == [(0, frame) for frame in frames]
                assert len(relay.seen) > 1000
                assert b"planted" not in relay.seen

    asyncio.run(main())


@settings(max_examples=100)
@given(
    messages=st.lists(st.integers(0, LARGEST).map(lambda size: bytes([size % 251]) * size), max_size=6),
    pieces=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    oversized=st.booleans(),
)
def test_a_stream_is_cut_into_the_same_frames_however_it_comes(
    keys: Party, messages: list[bytes], pieces: list[int], oversized: bool
) -> None:
    stream = b"".join(len(message).to_bytes(4, "big") + message for message in messages)
    if oversized:
        stream += (LARGEST + 1).to_bytes(4, "big") + bytes(50)
    memory = Memory()

    async def main() -> None:
        link = _link(keys, memory)
        places = takewhile(lambda place: place < len(stream), accumulate(cycle(pieces), initial=0))
        for start, end in pairwise((*places, len(stream))):
            if not link._closing:
                link._split(stream[start:end])
            assert len(link._buffer) <= LARGEST + 4
        assert link._closing == oversized

    asyncio.run(main())
    assert memory.frames == [(0, message) for message in messages]
    assert memory.kinds() == ({"oversized"} if oversized else set())


def _link(party: Party, memory: Memory) -> Link:
    """A link that is up, without a socket."""
    transport = make(party, 1)
    transport.listener, transport.notices = memory, tls.Notices(memory)
    link = Link(transport, party.identities[1].context(server=True), None)
    link._transport = SimpleNamespace(abort=lambda: None)  # type: ignore[assignment]
    link.up, link.j = True, 0
    return link


def test_an_altered_byte_ends_the_link_and_a_new_one_is_made(party: Party) -> None:
    async def main() -> None:
        async with Relay(port_of(party, 1)) as relay, opened(make(party, 1)) as (bob,):
            alice = make(make_party_at(party, 1, relay.own_port), 0)
            async with opened(alice) as (memory,):
                await until(lambda: memory.links and bob.links)
                relay.altering = True
                alice.send(1, b"altered on the way")
                await until(lambda: len(memory.links) == len(bob.links) == 2)
                alice.send(1, b"as it was")
                await until(lambda: bob.frames)
                assert bob.frames == [(0, b"as it was")]

    asyncio.run(main())


def test_after_a_good_link_dialling_begins_quickly_again(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "STEADY", 0.0)
    monkeypatch.setattr(tls, "LONGEST_WAIT", 30.0)

    async def main() -> None:
        alice = make(party, 0)
        async with opened(alice, make(party, 1)) as (memory, _):
            for k in range(12):  # doubling each time would take 100 s
                await until(lambda k=k: len(memory.links) == k + 1 and alice.links)  # type: ignore[misc]
                alice.links[1].abort()

    asyncio.run(main())


# Who is refused, and what both ends are told


def refused(party: Party, identities: tuple[Identity, Identity]) -> tuple[Memory, Memory]:
    """What alice and bob are told when they meet with these identities."""

    async def main() -> tuple[Memory, Memory]:
        ends = make(party, 0, identity=identities[0]), make(party, 1, identity=identities[1])
        async with opened(*reversed(ends)) as (bob, alice):
            await until(lambda: alice.troubles and bob.troubles)
            assert alice.links == []
            assert bob.links == []
        for _, _, text in alice.troubles + bob.troubles:
            assert "\n" not in text
        return alice, bob

    return asyncio.run(main())


def test_another_certificate_of_the_same_name(tmp_path: Path) -> None:
    """Alice has a new certificate, which bob trusts, too; but the charter has the old one."""
    (new,) = issue(tmp_path, "alice")
    old, bob = issue(tmp_path / "x", "alice", "bob")
    shutil.copy(new.certificate_file, tmp_path / "x" / "trusted" / "new.crt")
    shutil.copy(bob.certificate_file, tmp_path / "trusted")
    new, bob = load_identity(new.key_file), load_identity(bob.key_file)
    at_alice, at_bob = refused(make_party(tmp_path, identities=(old, bob)), (new, bob))
    (j, kind, text), *_ = at_bob.troubles
    assert (j, kind) == (0, "unknown")
    assert old.fingerprint in text
    (j, kind, text), *_ = at_alice.troubles
    assert (j, kind) == (1, "unknown")
    assert text.startswith(f"bob refuses: alice has certificate {new.fingerprint}")


def test_who_dials_refuses_too(tmp_path: Path) -> None:
    alice, bob, mallory = issue(tmp_path, "alice", "bob", "mallory")
    at_alice, at_bob = refused(make_party(tmp_path, identities=(alice, bob)), (alice, mallory))
    assert at_alice.troubles[0][:2] == (1, "wrong name")
    assert "expected bob, but the certificate is of mallory" in at_alice.troubles[0][2]
    assert at_bob.troubles[0][:2] == (0, "wrong name")
    assert at_bob.troubles[0][2].startswith("alice refuses: expected bob")


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize(("begins", "ends", "kind"), [(-9, -2, "expired"), (2, 9, "not yet valid")])
def test_a_certificate_out_of_time(tmp_path: Path, who: int, begins: int, ends: int, kind: str) -> None:
    now = datetime.now(UTC)
    names = ("alice", "bob")
    issue(tmp_path, names[1 - who])
    issue(tmp_path, names[who], begins=now + timedelta(days=begins), expires=now + timedelta(days=ends))
    alice, bob = (load_identity(next(tmp_path.glob(f"*/{name}.key"))) for name in names)
    memories = refused(make_party(tmp_path, identities=(alice, bob)), (alice, bob))
    (j, found, text), *_ = memories[1 - who].troubles
    assert (j, found) == (who, kind)
    assert names[who] in text
    (j, found, text), *_ = memories[who].troubles
    assert (j, found) == (1 - who, kind)
    assert text.startswith(f"{names[1 - who]} refuses: ")


def test_somebody_untrusted_who_dials(party: Party, tmp_path: Path) -> None:
    """TLS itself refuses; what it says is translated at both ends."""
    make_identity("alice", tmp_path / "x")
    stranger = Identity(**vars(load_identity(tmp_path / "x" / "alice.key")) | {"trusted": party.identities[0].trusted})
    alice, bob = refused(party, (stranger, party.identities[1]))
    (j, kind, text), *_ = bob.troubles
    assert (j, kind) == (None, "untrusted")
    assert "somebody at 127.0.0.1" in text
    assert "midst keys trust" in text
    (j, kind, text), *_ = alice.troubles
    assert (j, kind) == (1, "refused")
    assert text.startswith("bob does not trust this node's certificate")


def test_somebody_untrusted_who_listens(party: Party, tmp_path: Path) -> None:
    make_identity("bob", tmp_path / "x")
    stranger = Identity(**vars(load_identity(tmp_path / "x" / "bob.key")) | {"trusted": party.identities[1].trusted})
    alice, bob = refused(party, (party.identities[0], stranger))
    assert alice.troubles[0][:2] == (1, "untrusted")
    assert "the certificate of bob is not trusted here" in alice.troubles[0][2]
    assert bob.troubles[0][:2] == (None, "refused")
    assert "somebody at 127.0.0.1 does not trust this node's certificate" in bob.troubles[0][2]


def test_a_participant_who_is_no_neighbour(party: Party, keys: Party) -> None:
    """Carol dials alice, whom the charter does not join to her."""

    async def main() -> None:
        async with opened(make(party, 0)) as (alice,), pretending(party, 2, 0) as (reader, _):
            message = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            kind, text = read_refusal(message) or ("", "")
            assert kind == "unknown"
            assert text.startswith("carol is no neighbour of alice")
            assert await reader.read() == b""
            assert alice.troubles[0][:2] == (None, "unknown")

    asyncio.run(main())


def test_somebody_trusted_who_is_in_no_charter(party: Party, tmp_path: Path) -> None:
    (dave,) = issue(tmp_path, "dave")
    transport = make(party, 0)
    nameless = certify([])
    for der in (dave.certificate, nameless):
        j, problem = transport.judge(der, None)
        assert j is None
        assert problem is not None
        assert problem.kind == "unknown"
        assert problem.text.startswith(f"certificate {fingerprint(der)} is of no neighbour of alice")


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("says", "kind", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "refused", "bob does not speak TLS"),
        (b"\x15\x03\x01\0\2\2\x46", "refused", "bob does not speak TLS 1.3"),  # an alert of TLS 1.2
        (b"\x15\x03\x03\0\2\2\x50", "tls", "TLS with bob failed (TLSV1_ALERT_INTERNAL_ERROR)"),
        (b"", "cut", "bob closed the connection during the handshake"),
        (None, "slow", "bob did not finish the handshake"),
    ],
)
def test_something_else_listens_at_a_neighbours_address(
    party: Party, says: bytes | None, kind: str, words: str
) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            if says is not None:
                writer.write(says)
                writer.close()
            else:
                await reader.read()
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", port_of(party, 1))
        async with opened(make(party, 0)) as (alice,):
            await until(lambda: alice.troubles)
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)
        assert alice.troubles[0][:2] == (1, kind)
        assert alice.troubles[0][2].startswith(words)

    asyncio.run(main())


@pytest.mark.usefixtures("brief")
def test_nobody_is_there(party: Party, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(make(party, 0)) as (alice,):
            await until(lambda: alice.troubles)
            await asyncio.sleep(0.5)
        ((j, kind, text),) = alice.troubles
        assert (j, kind) == (1, "unreachable")
        assert text == f"bob: connection refused at 127.0.0.1:{port_of(party, 1)}; is its node running?"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "no answer from h:1"),
        (socket.gaierror(-2, "Name or service not known"), "h:1 is not a name that can be found"),
        (OSError(113, "No route to host"), "h:1 cannot be reached: No route to host"),
        (OSError("Multiple exceptions: one, two"), "h:1 cannot be reached: Multiple exceptions: one, two"),
    ],
)
def test_reasons_why_nobody_is_reached(error: OSError, words: str) -> None:
    assert tls._unreachable("bob", "h:1", error).startswith(f"bob: {words}")


def test_an_alert_without_a_translation() -> None:
    assert tls._translate("bob", ssl.SSLError(1, "odd")) == (
        "tls",
        "TLS with bob failed (no reason given); check what listens at its address",
    )


@pytest.mark.parametrize(
    ("ahead", "at_bob", "at_alice"),
    [
        (200, None, None),
        (-1000, "17 minutes behind", "17 minutes ahead of"),
        (10_000, "3 hours ahead of", "3 hours behind"),
        (20 * 86_400, "20 days ahead of", "20 days behind"),
    ],
)
def test_a_clock_that_is_wrong_is_said_and_the_link_is_up_all_the_same(
    party: Party, ahead: int, at_bob: str | None, at_alice: str | None
) -> None:
    async def main() -> None:
        async with opened(make(party, 0, clock=lambda: time.time() + ahead), make(party, 1)) as (alice, bob):
            await until(lambda: alice.links and bob.links)
            for memory, said, name in ((bob, at_bob, "alice"), (alice, at_alice, "bob")):
                texts = [text for _, kind, text in memory.troubles if kind == "clock"]
                assert len(texts) == (said is not None)
                assert all(f"the clock of {name} is {said} this host's" in text for text in texts)

    asyncio.run(main())


# What a neighbour, or a stranger, can do


def test_a_frame_too_large_ends_the_link_before_it_is_kept(party: Party) -> None:
    async def main() -> None:
        transport = make(party, 1)
        async with opened(transport) as (bob,), pretending(party, 0, 1) as (reader, writer):
            assert (await reader.readexactly(13))[:5] == welcome()[:5]
            writer.write(welcome())
            await until(lambda: bob.links)
            writer.write((2**31).to_bytes(4, "big") + bytes(1000))
            assert await reader.read() == b""
            assert bob.frames == []
            (trouble,) = bob.troubles
            assert trouble[:2] == (0, "oversized")
            assert f"message of {2**31} bytes, {LARGEST} at most" in trouble[2]
            assert transport.links == {}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("first", "kind", "words"),
    [
        (refusal("expired", "your certificate"), "expired", "alice refuses: your certificate"),
        (refusal("odd kind", "because"), "refused", "alice refuses: because"),
        (b"?", "refused", "alice refuses: it did not begin as midst does"),
        (bytes(5000), "oversized", "alice sent a message of 5000 bytes"),
    ],
)
def test_a_link_that_does_not_begin_with_a_welcome(party: Party, first: bytes, kind: str, words: str) -> None:
    async def main() -> None:
        async with opened(make(party, 1, largest=10)) as (bob,), pretending(party, 0, 1) as (reader, writer):
            writer.write(len(first).to_bytes(4, "big") + first + welcome() + b"\0\0\0\1x")
            await reader.read()
            assert bob.troubles[0][:2] == (0, kind)
            assert bob.troubles[0][2].startswith(words)
            assert bob.links == []
            assert bob.frames == []

    asyncio.run(main())


def test_what_a_neighbour_does_not_read_is_bounded(party: Party) -> None:
    async def main() -> None:
        transport = make(party, 1)
        async with opened(transport) as (bob,), pretending(party, 0, 1) as (_, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(welcome())
            await until(lambda: bob.links)
            frame = bytes(LARGEST)
            for _ in range(30_000):
                transport.send(0, frame)
            waiting = transport.links[0]._transport.get_write_buffer_size()
            assert 0 < waiting < transport.most_waiting + 2 * LARGEST
            transport.links[0].abort()

    asyncio.run(main())


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    "noise",
    [b"GET / HTTP/1.1\r\n\r\n", bytes(10_000), b"\x16\x03\x01\x40\x00" + b"\xff" * 70_000, b"\x16\x03\x01", b""],
    ids=["http", "zeros", "tls-like", "cut", "silence"],
)
def test_noise_before_tls_is_harmless(party: Party, noise: bytes) -> None:
    async def main() -> None:
        transport = make(party, 1)
        async with opened(transport) as (bob,):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(party, 1))
            writer.write(noise)
            async with asyncio.timeout(5):
                with suppress(ConnectionError):
                    while await reader.read(1000):
                        pass
            writer.transport.abort()
            await until(lambda: not transport._all)
            async with opened(make(party, 0)) as (alice,):
                await until(lambda: alice.links)
            assert {kind for j, kind, _ in bob.troubles if j != 2} <= {"tls", "refused", "slow"}
            assert all(j is None or j == 2 for j, _, _ in bob.troubles)  # bob also misses carol

    asyncio.run(main())


@pytest.mark.usefixtures("brief")
def test_a_crowd_of_strangers_keeps_nobody_out(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE", 30.0)

    async def main() -> None:
        transport = make(party, 1)
        async with opened(transport) as (bob,):
            most = transport.strangers.of_one
            crowd = [await asyncio.open_connection("127.0.0.1", port_of(party, 1)) for _ in range(3 * most)]
            await until(lambda: len(transport._all) <= most)
            async with opened(make(party, 0)) as (alice,):
                await until(lambda: alice.links and bob.links)
            assert len(transport._all) <= most
            for _, writer in crowd:
                writer.transport.abort()
            await until(lambda: not transport._all)

    asyncio.run(main())


def test_who_comes_while_it_closes_is_not_let_in(party: Party) -> None:
    async def main() -> None:
        transport = make(party, 1)
        async with opened(transport):
            transport._closed = True
            with suppress(ConnectionError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port_of(party, 1))
                assert await reader.read() == b""
            writer.transport.abort()
            await until(lambda: not transport._all)

    asyncio.run(main())


def test_closing_does_not_wait_for_who_does_not_answer(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "FLUSH", 0.3)

    async def main() -> None:
        transport = make(party, 1)
        memory = Memory()
        await transport.open(memory)
        async with pretending(party, 0, 1) as (_, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(welcome())
            await until(lambda: memory.links)
            for _ in range(30_000):
                transport.send(0, bytes(LARGEST))
            async with asyncio.timeout(3):
                await transport.close()

    asyncio.run(main())
