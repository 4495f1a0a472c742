"""zenoh, with routers in between, strangers on the same network, and threads of its own."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import zenoh
from click.testing import CliRunner
from parties import Memory, Party, free_port, make_party, opened, until

from midst.cli import main
from midst.errors import MissingExtra
from midst.net.transports import zenoh as zenoh_module
from midst.net.transports.making import make_transport
from midst.net.transports.zenoh import ZenohTransport, _endpoint

LARGEST = 1000


def port_of(party: Party, i: int) -> int:
    return int((party.charter.participants[i].address or "").rpartition(":")[2])


def open_zenoh(mode: str, listen: list[str], connect: list[str]) -> Any:
    settings = {
        "mode": mode,
        "listen": {"endpoints": listen},
        "connect": {"endpoints": connect},
        "open": {"return_conditions": {"connect_scouted": False, "declares": False}},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}, "delay": 0},
    }
    return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))


def test_a_router_in_between_sees_who_talks_to_whom_and_nothing_else(party: Party) -> None:
    """And it may come later than its clients, who say so."""
    endpoint = f"tcp/127.0.0.1:{free_port()}"
    seen: list[tuple[str, bytes]] = []

    async def main() -> None:
        ends = [ZenohTransport(party.endpoint(i, LARGEST), routers=[endpoint]) for i in range(3)]
        async with opened(*ends) as (alice, bob, carol):
            await until(lambda: all(memory.troubles for memory in (alice, bob, carol)))
            assert alice.troubles == [
                (None, "unreachable", f"no zenoh router answers at {endpoint}; is one running there?")
            ]
            router = await asyncio.to_thread(open_zenoh, "router", [endpoint], [])
            router.declare_subscriber("midst/**", lambda s: seen.append((str(s.key_expr), s.payload.to_bytes())))
            await until(lambda: set(bob.links) == {0, 2} and alice.links and carol.links)
            ends[0].send(1, b"planted-secret")
            ends[1].send(2, b"planted-secret" * 50)
            await until(lambda: bob.frames and carol.frames)
            assert bob.frames == [(0, b"planted-secret")]
            assert carol.frames == [(1, b"planted-secret" * 50)]
        await asyncio.to_thread(router.close)

    asyncio.run(main())
    room = f"midst/{party.charter.digest.hex()[:16]}"
    assert {key for key, _ in seen} == {f"{room}/{i}/{j}" for i, j in [(0, 1), (1, 0), (1, 2), (2, 1)]}
    assert not any(b"planted" in payload for _, payload in seen)


def test_strangers_on_the_same_network_are_harmless(party: Party) -> None:
    room = f"midst/{party.charter.digest.hex()[:16]}"

    async def main() -> None:
        ends = [ZenohTransport(party.endpoint(i, LARGEST)) for i in range(2)]
        async with opened(*ends) as (alice, bob):
            await until(lambda: alice.links and bob.links)
            stranger = await asyncio.to_thread(open_zenoh, "client", [], [f"tcp/127.0.0.1:{port_of(party, 1)}"])
            before = ends[1].received
            for key in (f"{room}/0/1", f"{room}/7/1", f"{room}/x/1", f"{room}/99999999999999999999/1", f"{room}/-1/1"):
                for noise in (b"", b"H" + bytes(900), b"C" + bytes(40), b"noise", bytes(6000), bytes(50_000)):
                    stranger.put(key, noise, congestion_control=zenoh.CongestionControl.BLOCK)
            await until(lambda: ends[1].received - before > 5 * 900)
            ends[0].send(1, b"still here")
            await until(lambda: bob.frames)
            assert bob.frames == [(0, b"still here")]
            assert bob.links == [0]
            assert ends[1].received - before < 25_000, "what is too large is not even taken up"
            await asyncio.to_thread(stranger.close)

    asyncio.run(main())


def test_who_has_no_address_opens_no_port(keys: Party, tmp_path: Path) -> None:
    party = make_party(tmp_path, [(0, 1), (1, 2)], identities=keys.identities, addressless=[0])

    def listening() -> set[int]:
        return {c.laddr.port for c in psutil.Process().net_connections("inet") if c.status == "LISTEN" or c.type == 2}

    async def main() -> None:
        before = listening()
        ends = [ZenohTransport(party.endpoint(i, LARGEST)) for i in range(2)]
        async with opened(ends[0]) as (alice,):
            assert listening() == before
            async with opened(ends[1]) as (bob,):
                assert listening() == before | {port_of(party, 1)}
                await until(lambda: alice.links and bob.links)

    asyncio.run(main())


def test_what_comes_faster_than_it_is_taken_up_is_dropped(party: Party) -> None:
    async def main() -> None:
        transport = ZenohTransport(party.endpoint(0, LARGEST))
        async with opened(transport):
            key = f"{transport._room}/1/0"
            sample = SimpleNamespace(key_expr=key, payload=zenoh.ZBytes(b"noise"))

            def flood() -> None:
                for _ in range(3 * zenoh_module._MOST_HELD):
                    transport._put_down(sample)

            thread = threading.Thread(target=flood)
            thread.start()
            thread.join()  # the event loop stands still meanwhile
            assert len(transport._held) == zenoh_module._MOST_HELD
            await asyncio.sleep(0.05)
            assert len(transport._held) == 0
            assert transport.received == zenoh_module._MOST_HELD * (len(key) + 5)

    asyncio.run(main())


def test_closing_while_the_router_is_away(party: Party) -> None:
    async def main() -> None:
        transport = ZenohTransport(party.endpoint(0, LARGEST), routers=[f"tcp/127.0.0.1:{free_port()}"])
        async with asyncio.timeout(5), opened(transport):
            pass

    asyncio.run(main())


def test_without_zenoh_it_says_what_to_install(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "midst.net.transports.zenoh")
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[zenoh\]'$"):
        make_transport("zenoh", party.endpoint(0, LARGEST))
    done = CliRunner().invoke(main, ["up", "--graph", "ring", "--nodes", "3", "--transport", "zenoh"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert re.search(r"pip install .*\[zenoh\]'\n", done.stderr)


def test_endpoints() -> None:
    assert _endpoint("127.0.0.1", 7) == "tcp/127.0.0.1:7"
    assert _endpoint("::1", 7) == "tcp/[::1]:7"


def test_nothing_is_heard_after_closing(party: Party) -> None:
    async def main() -> None:
        memory = Memory()
        transport = ZenohTransport(party.endpoint(0, LARGEST))
        await transport.open(memory)
        await transport.close()
        transport._put_down(SimpleNamespace(key_expr=f"{transport._room}/1/0", payload=zenoh.ZBytes(b"late")))
        await asyncio.sleep(0)
        assert (memory.frames, memory.links, transport.received) == ([], [], 0)

    asyncio.run(main())
