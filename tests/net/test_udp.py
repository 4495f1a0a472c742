"""Datagrams, with somebody in between who loses, doubles, delays and alters them."""

from __future__ import annotations

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest
from parties import Memory, Party, free_port, make_party, opened, until

from midst.errors import InputError
from midst.net.charter import make_charter
from midst.net.transports import udp
from midst.net.transports.seal import OVERHEAD
from midst.net.transports.transport import Endpoint
from midst.net.transports.udp import DATAGRAM, UdpTransport

FITS = DATAGRAM - OVERHEAD - 4


@pytest.fixture
def party(keys: Party, tmp_path: Path) -> Party:
    return make_party(tmp_path, [(0, 1), (1, 2)], identities=keys.identities, ports=ports(3))


def ports(n: int) -> list[int]:
    return [free_port() for _ in range(n)]


def port_of(party: Party, i: int) -> int:
    return int((party.charter.participants[i].address or "").rpartition(":")[2])


class Between(asyncio.DatagramProtocol):
    """Holds the charter's address of one participant, and passes on to where it really is."""

    def __init__(self, rng: random.Random, to: int, seen: list[bytes], honest: bool) -> None:
        self.rng, self.to, self.seen, self.honest = rng, ("127.0.0.1", to), seen, honest

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.seen.append(data)
        if self.honest:
            self.transport.sendto(data, self.to)
            return
        if self.rng.random() < 0.3:
            return
        copies = [data] * self.rng.choice([1, 1, 1, 2])
        if self.rng.random() < 0.2:
            place = self.rng.randrange(len(data))
            copies.append(data[:place] + bytes([data[place] ^ 1 << self.rng.randrange(8)]) + data[place + 1 :])
        if self.rng.random() < 0.1:
            copies.append(self.rng.choice(self.seen))
        for copy in copies:
            delay = self.rng.random() * 0.02
            asyncio.get_running_loop().call_later(delay, self.transport.sendto, copy, self.to)


@pytest.mark.parametrize("honest", [True, False])
def test_somebody_in_between_reads_nothing_and_alters_nothing(party: Party, honest: bool) -> None:
    async def main() -> None:
        rng, seen, real = random.Random(7), list[bytes](), ports(2)
        loop = asyncio.get_running_loop()
        relays = [
            await loop.create_datagram_endpoint(
                lambda i=i: Between(rng, real[i], seen, honest), local_addr=("127.0.0.1", port_of(party, i))
            )
            for i in range(2)
        ]
        ends = [UdpTransport(party.endpoint(i, 500, listen=("127.0.0.1", real[i]))) for i in range(2)]
        async with opened(*ends) as memories:
            await until(lambda: all(memory.links for memory in memories))
            sent = [f"planted-secret {k}".encode() * 10 for k in range(300)]
            for k, frame in enumerate(sent):
                ends[0].send(1, frame)
                ends[1].send(0, frame)
                if k % 10 == 0:
                    await asyncio.sleep(0.002)
            await until(lambda: all(len(memory.frames) > (299 if honest else 150) for memory in memories))
            await asyncio.sleep(0.03)
        for transport, _ in relays:
            transport.close()
        for i, memory in enumerate(memories):
            frames = [frame for _, frame in memory.frames]
            assert {j for j, _ in memory.frames} == {1 - i}
            assert set(frames) <= set(sent)
            assert len(set(frames)) == len(frames)
        assert len(seen) > 600
        assert not any(b"planted" in datagram for datagram in seen)
        assert max(map(len, seen)) <= DATAGRAM

    asyncio.run(main())


def test_frames_must_fit_into_a_datagram(party: Party) -> None:
    async def main() -> None:
        transport = UdpTransport(party.endpoint(0, FITS + 1))
        with pytest.raises(InputError, match=f"messages of {DATAGRAM + 1} bytes do not fit into a datagram of"):
            await transport.open(Memory())
        ends = [UdpTransport(party.endpoint(i, FITS)) for i in range(2)]
        async with opened(*ends) as (alice, bob):
            await until(lambda: alice.links and bob.links)
            ends[0].send(1, bytes(FITS))
            await until(lambda: bob.frames)
            assert bob.frames == [(0, bytes(FITS))]

    asyncio.run(main())


@pytest.mark.parametrize("i", [0, 1])
def test_everybody_needs_an_address(keys: Party, tmp_path: Path, i: int) -> None:
    party = make_party(tmp_path, [(0, 1), (1, 2)], identities=keys.identities, addressless=[0])

    async def main() -> None:
        with pytest.raises(InputError, match="alice has no address in the charter; UDP needs one"):
            await UdpTransport(party.endpoint(i, 100)).open(Memory())

    asyncio.run(main())


def test_noise_is_harmless(party: Party) -> None:
    async def main() -> None:
        ends = [UdpTransport(party.endpoint(i, 100)) for i in range(2)]
        rng = random.Random(3)
        async with opened(*ends) as (alice, bob):
            await until(lambda: alice.links and bob.links)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for _ in range(400):
                    number = rng.choice([0, 1, 2, 9, 2**32 - 1]).to_bytes(4, "big")
                    head = rng.choice([b"", b"H", b"A", b"C", b"R", b"F"])
                    noise = number + head + rng.randbytes(rng.choice([0, 3, 16, 33, 200, 1190, 5000]))
                    stranger.sendto(noise[rng.choice([0, 0, 0, 2]) :], ("127.0.0.1", port_of(party, 1)))
            await until(lambda: ends[0].send(1, b"still here") or bob.frames)  # the noise may have filled the socket
            assert set(bob.frames) == {(0, b"still here")}
            assert bob.links == [0]

    asyncio.run(main())


def test_a_name_that_cannot_be_found_is_told_and_looked_up_again(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    found = socket.getaddrinfo
    names = {"alice": port_of(party, 0), "bob": port_of(party, 1)}
    known = {"alice"}

    def look_up(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if host == "bob.test" and "bob" not in known:
            raise socket.gaierror(-2, "Name or service not known")
        return found("127.0.0.1" if host == "bob.test" else host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(udp, "_RESOLVE_AGAIN", 1)
    people = [
        {"name": name, "fingerprint": identity.fingerprint, "address": f"{host}:{names[name]}"}
        for (name, host), identity in zip(
            [("alice", "127.0.0.1"), ("bob", "bob.test")], party.identities[:2], strict=True
        )
    ]
    plain = {"method": "consensus", "session": "s", "participants": people, "edges": [["alice", "bob"]], "scale": 1.0}

    charter = make_charter(plain, "charter")

    async def main() -> None:
        ends = [UdpTransport(Endpoint(charter, party.identities[i], i, 100)) for i in range(2)]
        async with opened(ends[0]) as (alice,):
            await until(lambda: alice.troubles)
            ((j, kind, text),) = alice.troubles
            assert (j, kind) == (1, "unreachable")
            assert f"bob: bob.test:{names['bob']} cannot be found" in text
            known.add("bob")
            async with opened(ends[1]) as (bob,):
                await until(lambda: alice.links and bob.links)

    asyncio.run(main())
