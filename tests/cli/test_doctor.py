"""`midst doctor`, with real files, sockets and TLS on loopback; neighbours are real transports in a thread."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from certificates_made import make_dated
from click.testing import CliRunner, Result

from midst.cli import doctor, main
from midst.net.charter import Charter, ParticipantEntry, make_charter, split_address
from midst.net.identity import keys
from midst.net.identity.keys import Identity
from midst.net.local import hold_ports
from midst.net.transports import tls
from midst.net.transports.tls import TlsTransport
from midst.net.transports.transport import Endpoint
from midst.net.wire import CONTROL_BYTES, PROTOCOL, Hello, Visit, decode_control, encode_control

NAMES = ("alice", "bob", "carol")


@dataclass
class Place:
    """A folder in which three people, alice - bob - carol, have their keys and one charter.

    Who has the smaller number dials: alice calls bob, and bob calls carol.
    """

    folder: Path
    charter: Charter
    people: dict[str, Identity]

    def key(self, name: str) -> Path:
        return self.folder / name / f"{name}.key"

    def write(self, charter: Charter | None = None) -> Path:
        path = self.folder / "charter.toml"
        path.write_text((charter or self.charter).to_toml())
        return path

    def change(self, **others: Any) -> Charter:
        return make_charter(_plain(self.charter) | others, "charter.toml")


def _plain(charter: Charter) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(charter)
    return plain


def agree(folder: Path, people: dict[str, Identity], **others: Any) -> Place:
    with hold_ports(len(people)) as ports:
        pass  # others may listen there
    charter = Charter(
        **{"session": "s-1", "method": "consensus"} | others,
        participants=tuple(
            ParticipantEntry(name=name, fingerprint=one.fingerprint, address=f"127.0.0.1:{port}")
            for (name, one), port in zip(people.items(), ports, strict=True)
        ),
        edges=(("alice", "bob"), ("bob", "carol")),
        bounds=(0.0, 100.0),
    )
    for name, one in people.items():
        others = [(other.name, other.certificate) for other in people.values() if other is not one]
        keys.trust(others, folder / name)
    place = Place(folder, charter, {name: keys.load_identity(one.key_file) for name, one in people.items()})
    place.write()
    return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return agree(tmp_path, {name: keys.make_identity(name, tmp_path / name) for name in NAMES})


@dataclass
class Greeter:
    """Says HELLO to whoever is there, as a node does."""

    charter: Charter
    number: int
    transport: Any = None
    lines: list[str] = field(default_factory=list)

    def linked(self, j: int) -> None:
        own, other, digests = self.charter.names[self.number], self.charter.names[j], self.charter.field_digests
        hello = Hello(PROTOCOL, own, other, self.charter.digest, digests, bytes(16), 0)
        self.transport.send(j, b"T?")  # no frame that means anything; it does no harm
        self.transport.send(j, encode_control(hello))

    def unlinked(self, j: int) -> None:
        pass

    def hear(self, j: int, frame: bytes) -> None:
        assert decode_control(frame) == Visit(), "the doctor says nothing else"

    def trouble(self, j: int | None, kind: str, text: str) -> None:
        self.lines.append(text)


@contextmanager
def up(charter: Charter, identity: Identity, number: int | None = None, **settings: Any) -> Iterator[Greeter]:
    """A neighbour that is up, as long as the block lasts."""
    listener = Greeter(charter, charter.number(identity.name) if number is None else number)
    ready, over = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def live() -> None:
        listener.transport = TlsTransport(Endpoint(charter, identity, listener.number, CONTROL_BYTES), **settings)
        await listener.transport.open(listener)
        ready.set()
        await over.wait()
        await listener.transport.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(live()))
    thread.start()
    assert ready.wait(10)
    try:
        yield listener
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
    assert not thread.is_alive()


@contextmanager
def answering(place: Place, banner: bytes) -> Iterator[None]:
    """At bob's address something listens that is no node."""
    with socket.create_server(split_address(str(place.charter.participants[1].address))) as server:

        def serve() -> None:
            while True:
                with server.accept()[0] as line:
                    if ended.is_set():
                        return
                    line.sendall(banner)

        ended = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            socket.create_connection(server.getsockname()).close()
            thread.join(10)


def ask(place: Place, name: str = "bob", *more: str, key: Path | None = None) -> Result:
    arguments = ["doctor", "--charter", place.folder / "charter.toml", "--name", name, "--key", key or place.key(name)]
    return CliRunner().invoke(main, [str(one) for one in (*arguments, *more)])


def lines(done: Result) -> dict[str, str]:
    """What was said about each thing, with how bad it is."""
    found = {}
    for line in done.stdout.splitlines():
        level, what, text = line.split(": ", 2)
        assert level in ("ok", "warning", "problem")
        found[what] = f"{level}: {text}"
    return found


def failed(done: Result, problems: int = 1) -> None:
    """Exit code 2, and one line about it."""
    assert done.exit_code == 2
    assert done.stderr.startswith(f"midst: error: {problems} problem")
    assert len(done.stderr.splitlines()) == 1


def test_all_is_well(place: Place) -> None:
    with up(place.charter, place.people["alice"]), up(place.charter, place.people["carol"]):
        done = ask(place)
    assert (done.exit_code, done.stderr) == (0, "")
    said = lines(done)
    assert {line.partition(":")[0] for line in said.values()} == {"ok"}
    assert said["alice"] == said["carol"] == "ok: is up and has the same charter"
    assert said["address"].startswith("ok: can listen at 127.0.0.1:")
    assert set(said) == {
        "charter", "key", "your certificate", "name", "fingerprint", "alice's certificate", "carol's certificate",
        "address", "alice", "carol", "expect",
    }  # fmt: skip


def test_json(place: Place) -> None:
    with up(place.charter, place.people["bob"]):
        done = ask(place, "alice", "--json")
    found = json.loads(done.stdout)
    assert found["problems"] == 0
    assert {"level": "ok", "what": "bob", "text": "is up and has the same charter"} in found["checks"]


def test_nobody_is_up_yet(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines(ask(place, "bob", "--wait", "0.1"))["carol"] == "warning: did not answer within 0.1 s; is its node up?"
    monkeypatch.setattr(tls, "GRACE", 0.0)
    done = ask(place, "bob", "--wait", "0.3")
    assert (done.exit_code, done.stderr) == (0, "")
    said = lines(done)
    assert said["alice"].startswith("warning: did not call within 0.3 s; is its node up")
    assert said["carol"].startswith("warning: ")
    assert "connection refused" in said["carol"]


def test_another_charter_is_told_by_what_differs(place: Place) -> None:
    other = place.change(sigma=0.5, session="s-2")
    with up(other, place.people["bob"]):
        done = ask(place, "alice")
    failed(done)
    assert "problem: has another charter; it differs in: session, sigma;" in lines(done)["bob"]


def test_a_neighbour_whose_clock_is_wrong(place: Place) -> None:
    with (
        up(place.charter, place.people["alice"], clock=lambda: time.time() + 7_300),
        up(place.charter, place.people["carol"]),
    ):
        done = ask(place)
    assert done.exit_code == 0
    said = lines(done)
    assert said["alice"] == said["carol"] == "ok: is up and has the same charter"
    assert "the clock of alice is 2 hours ahead of this host's; certificates are judged by it" in said["clock"]


def test_a_neighbour_that_does_not_trust_us(place: Place) -> None:
    (place.folder / "bob" / "trusted" / "alice.crt").unlink()
    with up(place.charter, keys.load_identity(place.key("bob"))):
        done = ask(place, "alice", "--wait", "1")
    failed(done)
    assert lines(done)["bob"].startswith("problem: bob does not trust this node's certificate")


def test_a_neighbour_with_a_certificate_that_is_not_the_charters(place: Place, tmp_path: Path) -> None:
    renewed = keys.make_identity("bob", tmp_path / "renewed")
    keys.trust([("file", place.people["alice"].certificate)], tmp_path / "renewed")
    keys.trust([("file", renewed.certificate)], tmp_path / "alice", replace=True)
    with up(place.charter, keys.load_identity(renewed.key_file)):
        done = ask(place, "alice", "--wait", "1")
    failed(done, 2)
    assert "its certificate is not trusted" in done.stdout
    assert "bob has certificate sha256:" in lines(done)["bob"]


def test_something_else_listens_where_a_neighbour_should(place: Place) -> None:
    with answering(place, b"220 mail.example.org ESMTP\r\n"):
        done = ask(place, "alice", "--wait", "0.5")
    failed(done)
    assert lines(done)["bob"].startswith("problem: bob does not speak TLS")


def test_a_neighbour_that_says_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Greeter, "linked", lambda *_: None)
    with up(place.charter, place.people["bob"]):
        done = ask(place, "alice", "--wait", "0.5")
    assert done.exit_code == 0
    assert "warning: is up, but did not say" in lines(done)["bob"]


def test_a_stranger_calls(place: Place, tmp_path: Path) -> None:
    """Somebody nobody knows takes alice's part; bob hears about it."""
    mallory = keys.make_identity("alice", tmp_path / "mallory")
    keys.trust([("file", place.people["bob"].certificate)], tmp_path / "mallory")
    with up(place.charter, keys.load_identity(mallory.key_file)):
        done = ask(place, "bob", "--wait", "1")
    assert "somebody" in lines(done)
    assert lines(done)["somebody"].startswith("warning: ")
    assert "alice" in lines(done)


# The own address


def test_the_own_node_runs_already(place: Place) -> None:
    with up(place.charter, place.people["bob"]):
        done = ask(place)
    assert done.exit_code == 0
    assert lines(done)["address"].startswith("ok: your node runs already")


def test_the_own_address_is_taken(place: Place) -> None:
    with answering(place, b""):
        done = ask(place)
    failed(done)
    assert "problem: bob cannot listen" in lines(done)["address"]
    assert "in use" in lines(done)["address"]


def test_the_address_of_another_host(place: Place) -> None:
    participants = _plain(place.charter)["participants"]
    participants[1]["address"] = "192.0.2.1:7001"
    place.write(place.change(participants=participants))
    done = ask(place, "bob", "--wait", "0.3")
    failed(done)
    assert "problem: bob cannot listen" in lines(done)["address"]


def test_who_only_dials_needs_no_address(place: Place) -> None:
    participants = _plain(place.charter)["participants"]
    participants[2]["address"] = None
    charter = place.change(participants=participants)
    place.write(charter)
    with up(charter, place.people["bob"]):
        done = ask(place, "carol")
    assert done.exit_code == 0
    assert lines(done)["address"] == "ok: none; this participant only dials"
    assert lines(done)["bob"] == "ok: is up and has the same charter"


def test_a_host_that_does_not_exist(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    find = socket.getaddrinfo

    def missing(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "bob.example.org":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return find(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", missing)
    participants = _plain(place.charter)["participants"]
    participants[1]["address"] = "bob.example.org:7001"
    place.write(place.change(participants=participants))
    done = ask(place, "alice", "--wait", "0.3")
    failed(done)
    assert "problem: bob: no host is called bob.example.org" in done.stdout


def test_a_search_is_looked_at_alike(tmp_path: Path) -> None:
    people = {name: keys.make_identity(name, tmp_path / name) for name in NAMES}
    place = agree(tmp_path, people, method="search")
    with up(place.charter, place.people["bob"]):
        done = ask(place, "alice")
    assert done.exit_code == 0
    assert lines(done)["bob"] == "ok: is up and has the same charter"


def test_another_method_is_another_charter(place: Place) -> None:
    with up(place.change(method="search"), place.people["bob"]):
        done = ask(place, "alice")
    failed(done)
    assert "method" in lines(done)["bob"]


# Files


def test_others_may_read_the_key(place: Place) -> None:
    place.key("bob").chmod(0o644)
    done = ask(place)
    failed(done)
    assert "chmod 600" in lines(done)["key"]
    assert "ok: bob is participant 1" in lines(done)["name"]


def test_others_may_write_the_folder(place: Place) -> None:
    (place.folder / "bob" / "trusted").chmod(0o777)
    done = ask(place, "bob", "--wait", "0.1")
    assert done.exit_code == 0
    assert lines(done)["folder"].startswith("warning: others may put files into")


def test_no_charter(place: Place) -> None:
    (place.folder / "charter.toml").write_text("31337.4242")
    done = ask(place)
    failed(done)
    assert lines(done)["charter"].startswith("problem: ")
    assert lines(done)["key"].startswith("ok: ")
    assert "31337" not in done.output


def test_nothing_is_there(place: Place) -> None:
    (place.folder / "charter.toml").unlink()
    done = ask(place, key=place.folder / "none.key")
    failed(done, 2)


def test_not_a_participant(place: Place) -> None:
    done = ask(place, "dave", key=place.key("bob"))
    failed(done)
    assert "problem: dave is no participant" in lines(done)["name"]


def test_the_key_of_another(place: Place) -> None:
    done = ask(place, "alice", key=place.key("bob"))
    failed(done)
    assert "is the key of bob, not of alice" in lines(done)["fingerprint"]
    assert lines(done)["neighbours"].startswith("warning: not called")


def test_a_neighbour_who_is_not_trusted_here(place: Place) -> None:
    (place.folder / "bob" / "trusted" / "carol.crt").unlink()
    done = ask(place, "bob", "--wait", "0.1")
    failed(done)
    assert "problem: carol: its certificate is not trusted; try: midst keys trust carol.crt" in done.stdout


@pytest.mark.parametrize(
    ("begins", "expires", "level"), [(-20, -10, "problem"), (10, 20, "problem"), (-10, 10, "warning")]
)
def test_dates(tmp_path: Path, begins: int, expires: int, level: str) -> None:
    """One's own certificate and a neighbour's, out of date or nearly so."""
    now = datetime.now(UTC)
    dates = {"begins": now + timedelta(days=begins), "expires": now + timedelta(days=expires)}
    people = {name: make_dated(tmp_path / name, name, **dates) for name in NAMES}
    place = agree(tmp_path, people)
    done = ask(place, "bob", "--wait", "0.1")
    said = lines(done)
    assert [said[f"{who} certificate"].partition(":")[0] for who in ("your", "alice's", "carol's")] == [level] * 3
    assert done.exit_code == (2 if level == "problem" else 0)


def test_every_line_is_one_line() -> None:
    line = doctor._attempt("what", lambda: _raise("two\nlines"))
    assert line == doctor.Line("problem", "what", "two lines")


def _raise(text: str) -> None:
    from midst.errors import InputError

    raise InputError(text)
