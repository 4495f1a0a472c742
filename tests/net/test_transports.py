"""What every transport keeps to."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from parties import Memory, Party, free_port, make_party, opened, until

from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.driver import Driver
from midst.net.journal import DiskFile, Journal
from midst.net.notary import CertifiedNotary
from midst.net.session import Session, resume
from midst.net.setup import make_setup
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import (
    AT_ONCE,
    REPEAT_AFTER,
    Endpoint,
    Listener,
    Notices,
    Transport,
    dials,
    end_task,
    read_refusal,
    refusal,
)

LARGEST = 1000
Make = Callable[..., Transport]
KINDS: dict[str, Make] = {"tls": TlsTransport}


@pytest.fixture(params=list(KINDS))
def make(request: pytest.FixtureRequest) -> Make:
    return KINDS[request.param]


def all_of(make: Make, party: Party, numbers: Sequence[int] = (0, 1, 2)) -> list[Transport]:
    return [make(party.endpoint(i, LARGEST)) for i in numbers]


def test_frames_go_both_ways_and_only_to_neighbours(make: Make, party: Party) -> None:
    async def main() -> None:
        transports = all_of(make, party)
        async with opened(*reversed(transports)) as (carol, bob, alice):
            await until(lambda: set(bob.links) == {0, 2} and alice.links and carol.links)
            frames = [bytes([k]) * size for k, size in enumerate((0, 1, 2, 255, 256, LARGEST - 1, LARGEST))]
            for frame in frames:
                transports[0].send(1, frame)
                transports[1].send(0, frame)
                transports[1].send(2, frame[::-1])
            await until(lambda: len(bob.frames) + len(alice.frames) + len(carol.frames) == 3 * len(frames))
            assert sorted(bob.frames) == sorted((0, frame) for frame in frames)
            assert sorted(alice.frames) == sorted((1, frame) for frame in frames)
            assert sorted(carol.frames) == sorted((1, frame[::-1]) for frame in frames)
            payload = sum(map(len, frames))
            assert all(payload < transport.sent < payload + 10_000 for transport in (transports[0],))
            assert all(payload < transport.received < payload + 10_000 for transport in (transports[0], transports[2]))
        assert not alice.troubles + bob.troubles + carol.troubles

    asyncio.run(main())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_either_may_start_first(make: Make, party: Party, order: tuple[int, int]) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            memories: dict[int, Memory] = {}
            transports: dict[int, Transport] = {}
            for i in order:
                (transports[i],) = all_of(make, party, [i])
                (memories[i],) = await stack.enter_async_context(opened(transports[i]))
                transports[i].send(1 - i, b"dropped, since nobody is there")
                await asyncio.sleep(0.2)
            await until(lambda: all(1 - i in memories[i].links for i in order))
            transports[0].send(1, b"now")
            await until(lambda: memories[1].frames)
            assert memories[1].frames == [(0, b"now")]

    asyncio.run(main())


@pytest.mark.parametrize("who", [0, 1])
def test_an_end_that_comes_back_is_linked_again(make: Make, party: Party, who: int) -> None:
    async def main() -> None:
        staying, leaving = all_of(make, party, [1 - who, who])
        async with opened(staying) as (memory,):
            async with opened(leaving) as (first,):
                await until(lambda: memory.links and first.links)
            (back,) = all_of(make, party, [who])
            async with opened(back) as (second,):
                await until(lambda: second.links and memory.links.count(who) >= 2)
                back.send(1 - who, b"back")
                staying.send(who, b"welcome")
                await until(lambda: memory.frames and second.frames)
        assert memory.frames == [(who, b"back")]
        assert second.frames == [(1 - who, b"welcome")]

    asyncio.run(main())


def test_sending_never_raises(make: Make, party: Party) -> None:
    async def main() -> None:
        one, other = all_of(make, party, [0, 1])
        async with opened(one, other) as (_, bob):
            await until(lambda: bob.links)
            await until(lambda: one.send(1, b"fits") or bob.frames)
            bob.frames.clear()
            one.send(1, bytes(LARGEST + 1))
            one.send(1, bytes(10_000_000))
            one.send(1, b"after")
            await until(lambda: (0, b"after") in bob.frames)
            assert {frame for _, frame in bob.frames} <= {b"fits", b"after"}
        one.send(1, b"after closing")
        await other.close()

    asyncio.run(main())


def test_an_address_that_is_taken_is_refused_in_one_line(make: Make, party: Party) -> None:
    (transport,) = all_of(make, party, [0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int((party.charter.participants[0].address or "").rpartition(":")[2])))
        taken.listen()

        async def main() -> None:
            with pytest.raises(InputError, match=r"alice cannot listen at 127.0.0.1 port \d+: address already in use;"):
                await transport.open(Memory())
            await transport.close()

        asyncio.run(main())


def test_it_may_listen_elsewhere_than_the_charter_says(make: Make, party: Party) -> None:
    async def main() -> None:
        port = free_port()
        transport = make(party.endpoint(0, LARGEST, listen=("127.0.0.1", port)))
        with socket.socket() as probe:
            async with opened(transport):
                with pytest.raises(OSError, match="in use"):
                    probe.bind(("127.0.0.1", port))

    asyncio.run(main())


def test_somebody_else_at_a_neighbours_address_is_never_linked(make: Make, party: Party, tmp_path: Path) -> None:
    """Mallory has bob's charter, address and name; only the key is another."""
    mallory = make_party(tmp_path / "other", [(0, 1), (1, 2)]).identities[1]

    async def main() -> None:
        (alice,) = all_of(make, party, [0])
        impostor = make(Endpoint(party.charter, mallory, 1, LARGEST))
        async with opened(alice, impostor) as (memory, heard):
            await until(lambda: memory.kinds() & {"untrusted", "unknown"})
            alice.send(1, b"never")
            await asyncio.sleep(0.2)
            assert memory.links == []
            assert heard.frames == []
            for j, _, text in memory.troubles:
                assert j == 1
                assert "bob" in text
                assert "\n" not in text

    asyncio.run(main())


def test_what_is_sent_before_closing_arrives(make: Make, party: Party) -> None:
    async def main() -> None:
        one, other = all_of(make, party, [0, 1])
        async with opened(other) as (bob,):
            async with opened(one) as (alice,):
                await until(lambda: alice.links and bob.links)
                for k in range(10):
                    one.send(1, bytes([k]) * LARGEST)
            await until(lambda: len(bob.frames) == 10)

    asyncio.run(main())


def test_large_frames(make: Make, party: Party) -> None:
    async def main() -> None:
        size = 2**20
        one, other = (make(party.endpoint(i, size)) for i in (0, 1))
        async with opened(other, one) as (bob, alice):
            await until(lambda: alice.links and bob.links)
            one.send(1, b"x" * size)
            await until(lambda: bob.frames)
            assert bob.frames == [(0, b"x" * size)]

    asyncio.run(main())


def test_closing_what_was_never_opened_is_fine(make: Make, party: Party) -> None:
    async def main() -> None:
        for transport in all_of(make, party):
            for _ in range(2):
                await transport.close()
            assert (transport.sent, transport.received) == (0, 0)

    asyncio.run(main())


class Direct:
    """A transport of one's own: participants of one process, who hear each other at the next turn of the loop."""

    def __init__(self, number: int, others: dict[int, Direct]) -> None:
        self.sent = self.received = 0
        self.number, self.others = number, others

    async def open(self, listener: Listener) -> None:
        self.listener = listener
        self.others[self.number] = self
        for j, other in self.others.items():
            if j != self.number:
                listener.linked(j)
                other.listener.linked(self.number)

    def send(self, j: int, frame: bytes) -> None:
        if j in self.others:
            self.sent += len(frame)
            asyncio.get_running_loop().call_soon(self.others[j].listener.hear, self.number, frame)

    async def close(self) -> None:
        self.others.pop(self.number, None)


def test_a_driver_takes_any_transport(tmp_path: Path) -> None:
    values, others = [3.0, 1.0, 2.0], dict[int, Direct]()
    party = make_party(tmp_path, [(0, 1), (1, 2), (0, 2)], method="search")

    async def take_part(i: int) -> Answer | Aborted:
        notary = CertifiedNotary(party.charter, party.identities[i])
        setup = make_setup(party.charter, party.charter.names[i], values[i] / 4, notary)
        file = DiskFile(tmp_path / f"{setup.name}.journal")
        session = resume(setup, Journal(file, setup.name), os.urandom)
        assert isinstance(session, Session)
        try:
            return await Driver(session, Direct(i, others)).run()
        finally:
            file.close()

    async def main() -> list[Answer | Aborted]:
        return await asyncio.gather(*(take_part(i) for i in range(3)))

    for ending in asyncio.run(main()):
        assert isinstance(ending, Answer)
        assert ending.value == (0.5,)


# The small parts


def test_refusals_can_be_read() -> None:
    assert read_refusal(refusal("expired", "make a new one")) == ("expired", "make a new one")
    assert read_refusal(refusal("odd", "new\nlines\x1b[2J")) == ("refused", "new lines [2J")
    for noise in (b"", b"R", b"S" + refusal("a", "b")[1:], b"R\xc1", b"R\x92\xa1\xff\xa1a", refusal("a", "b") + b"x"):
        assert read_refusal(noise) is None
    assert len(refusal("k" * 1000, "é" * 10_000)) < 4096


def test_one_of_two_dials(tmp_path: Path) -> None:
    charter = make_party(tmp_path, [(0, 1), (1, 2), (0, 2), (2, 3)], addressless=[2]).charter
    for i, j in [(0, 1), (1, 2), (0, 2), (2, 3)]:
        assert dials(charter, i, j) != dials(charter, j, i)
    assert dials(charter, 0, 1)
    assert dials(charter, 2, 0)
    assert dials(charter, 2, 3)


def test_a_task_that_died_is_not_passed_over() -> None:
    async def die() -> None:
        raise KeyError("why")

    async def main() -> None:
        task = asyncio.create_task(die())
        await asyncio.sleep(0)
        with pytest.raises(KeyError):
            await end_task(task)

    asyncio.run(main())


def test_trouble_is_told_once_until_the_link_was_up() -> None:
    memory = Memory()
    notices = Notices(memory)
    for _ in range(3):
        notices.tell(1, "unreachable", "bob is away")
        notices.tell(None, "tls", "somebody at 10.0.0.1")
        notices.tell(None, "tls", "somebody at 10.0.0.2")
    notices.tell(1, "unreachable", "bob is somewhere else")
    assert [text for _, _, text in memory.troubles] == ["bob is away", "somebody at 10.0.0.1", "bob is somewhere else"]
    notices.forget(1)
    notices.tell(1, "unreachable", "bob is somewhere else")
    assert len(memory.troubles) == 4


def test_a_neighbour_cannot_fill_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often its link comes and goes, and however it words its refusals."""
    now = [0.0]
    monkeypatch.setattr("midst.net.transports.transport.time.monotonic", lambda: now[0])
    memory = Memory()
    notices = Notices(memory)
    for k in range(100_000):
        now[0] = k / 100
        notices.tell(1, "refused", f"bob refuses: {k}")
        notices.forget(1)
    told = len(memory.troubles)
    assert told <= AT_ONCE + 1000 / REPEAT_AFTER + 1
    assert told > 1000 / REPEAT_AFTER
    assert memory.troubles[-1][2].endswith(" lines about it were left out before)")
    notices.tell(2, "refused", "carol refuses")
    assert memory.troubles[-1] == (2, "refused", "carol refuses")
