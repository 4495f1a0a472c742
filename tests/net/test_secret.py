"""A marked value in every node, searched for wherever others could look: 0 hits but where the audit says so.

Rules:
- A value is searched for as binary and as text. Binary: 48 bits of its mantissa in either order of bytes, which finds
  it in any power-of-two unit, and their hexadecimal digits. Text: its first six digits where a number begins, in the
  units of the data and in working units, so in every spelling from %g on.
- Where it must be found is searched too: a search that finds nothing there proves nothing elsewhere.
- A value's key in a search is its bits with the sign turned, so what finds a value finds its key.
- A node that was exposed sent x = s: its neighbours' journals may hold that. The proved answer is its holder's value,
  which everybody prints. Nobody else may hold anything, and packets, logs, metrics, argv and environment nothing of
  anybody. In a search nobody is exposed, and the answer lies in everybody's journal as anybody's.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import struct
import subprocess
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from parties import free_port
from processes import Network, Outcome, Relays, Running, Shelf, network, port_of, read_journal, rounds_done, until

from midst import graphs
from midst.cli import main
from midst.net.driver import Driver
from midst.net.events import moment
from midst.net.gossip import Gossip
from midst.net.identity.keys import load_identity
from midst.net.journal import Journal
from midst.net.lockstep import LockStep
from midst.net.notary import CertifiedNotary
from midst.net.records import Began, Inputs
from midst.net.session import Session, resume
from midst.net.setup import Opening, Setup, make_setup
from midst.net.transports.tls import TlsTransport

pytestmark = pytest.mark.timeout(300)

# Two far below the middle of the bounds, two far above, and the median near it.
VALUES = (11273946.13579246, 52731984.24681357, 94628317.35792468, 87194623.46813579, 16842739.57924681)
HOLDER = 1
BOUNDS = (0.0, 1e8)
Evidence = Mapping[str, bytes]


def pattern(value: float, unit: float) -> re.Pattern[bytes]:
    """What gives a value away."""
    little = struct.pack("<d", value)[:6]
    raw = {little, little[::-1]}
    digits = {part.hex().encode() for part in raw} | {value.hex().partition(".")[2].partition("p")[0].encode()}
    numbers = {text for number in (value, value / unit) for text in spelled(number)}
    return re.compile(b"|".join([*map(re.escape, raw | digits), *numbers]), re.DOTALL)


def spelled(number: float) -> set[bytes]:
    """The first six digits of a number, in every spelling that has as many; fewer where the others are zeros."""
    texts = {f"{number:.{digits}g}" for digits in range(6, 18)}
    first = {re.sub(r"e.*|\D", "", text).lstrip("0")[:6] for text in texts}
    start, end = r"(?<![0-9.])(?:0\.0*)?", r"(?![0-9])"
    return {(start + r"[.,_]?".join(digits) + end * (len(digits) < 6)).encode() for digits in first}


def places(evidence: Evidence, setup: Setup) -> list[str]:
    """Where a participant's value is."""
    looked_for = pattern(VALUES[setup.number], unit_of(setup))
    return [place for place, data in evidence.items() if looked_for.search(data)]


def unit_of(setup: Setup) -> float:
    """The working unit of an iteration."""
    return 1.0 if setup.iteration is None else float(setup.iteration.parameters.unit)


def setup_of(net: Network, name: str) -> Setup:
    notary = CertifiedNotary(net.charter, load_identity(net.key(name)))
    return make_setup(net.charter, name, VALUES[net.charter.number(name)], notary)


# A run with somebody at every window


@contextmanager
def watched(folder: Path, **settings: Any) -> Iterator[tuple[Network, Relays]]:
    """A ring whose every byte passes a relay."""
    graph = graphs.make("ring", 5, rng=np.random.default_rng(0))
    ports = [free_port() for _ in VALUES]
    with network(folder, graph, VALUES, listening=ports, **{"bounds": list(BOUNDS)} | settings) as net:
        ways = {port_of(net.charter, i): ports[i] for i in range(5)}
        with Relays(ways) as relays:
            yield net, relays


class Onlooker:
    """Looks at processes while they run: their command lines, their environment, their pages."""

    def __init__(self, net: Network) -> None:
        self._net = net
        self._ports = {name: free_port() for name in net.charter.names}
        self.seen: dict[str, bytes] = defaultdict(bytes)
        self.pages = 0
        self.running: dict[str, Running] = {}
        for i, name in enumerate(net.charter.names):
            text = f"# of {name}\n{VALUES[i]!r}\n"
            ways: list[tuple[list[str] | None, str | None]] = [
                (None, None),
                ([], text),
                (["--value-command", f"cat {net.value_file(name)}"], None),
            ]
            given, stdin = ways[i % 3]
            options = ("--log", "json", "--metrics", f"127.0.0.1:{self._ports[name]}")
            self.running[name] = net.start(name, *options, given=given, stdin=stdin, env={"MIDST_DEBUG": "1"})

    def look(self) -> None:
        for name, one in self.running.items():
            for part in ("cmdline", "environ"):
                with suppress(OSError):  # it has ended; or it is nobody else's business, for all but root
                    self.seen[f"{part} of {name}"] = Path(f"/proc/{one.process.pid}/{part}").read_bytes()
            for page in ("/metrics", "/healthz", "/elsewhere"):
                asked = http.client.HTTPConnection("127.0.0.1", self._ports[name], timeout=1)
                with suppress(OSError, http.client.HTTPException), closing(asked) as line:
                    line.request("GET", page)
                    self.seen[f"{page} of {name}"] += line.getresponse().read()
                    self.pages += 1

    def until(self, over: Callable[[], object]) -> None:
        """Look again and again."""
        until(lambda: (self.look(), over())[1], 120)

    def until_all_have_ended(self) -> None:
        """Look until nobody runs any more; who ends badly is not waited out by the others."""
        self.until(lambda: self.failed() or not any(one.alive for one in self.running.values()))
        for one in self.failed():
            raise AssertionError(f"{one.name} has ended: {one.wait().err}")

    def failed(self) -> list[Running]:
        return [one for one in self.running.values() if one.process.poll()]

    def ends(self) -> dict[str, Outcome]:
        return {name: one.wait() for name, one in self.running.items()}


def names_under(folder: Path) -> bytes:
    """The names of all files, without the folder they are in."""
    return "\n".join(str(path.relative_to(folder)) for path in folder.rglob("*")).encode()


SETTINGS: dict[str, dict[str, Any]] = {
    "consensus": {},
    "search": {"method": "search", "arity": 1, "spacing": "key", "bounds": None},
}


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_nothing_but_what_the_audit_says(tmp_path: Path, method: str) -> None:
    with watched(tmp_path, **SETTINGS[method]) as (net, relays), Shelf(net) as shelf:
        onlooker = Onlooker(net)
        onlooker.until_all_have_ended()
        ends = onlooker.ends()
        heard = relays.heard
    answers = {name: end.answer for name, end in ends.items()}
    assert {one["value"] for one in answers.values()} == {VALUES[HOLDER]}
    assert onlooker.pages > 10
    assert b"midst_rounds_total" in b"".join(onlooker.seen.values())
    assert len(heard) > 5 * 1000

    public = {"packets": heard, "file names": names_under(tmp_path), **onlooker.seen}
    public |= {f"stderr of {name}": end.err.encode() for name, end in ends.items()}
    printed = {f"stdout of {name}": end.out.encode() for name, end in ends.items()}
    journals = {name: shelf.bytes_of(name) for name in net.charter.names}
    hidden = 0
    for name in net.charter.names:
        setup = setup_of(net, name)
        assert places({"own": journals[name], "file": net.value_file(name).read_bytes()}, setup) == ["own", "file"]
        assert places(public, setup) == []
        if setup.number == HOLDER:
            assert len(places(printed, setup)) == 5
            continue
        assert places(printed, setup) == []
        assert places({"its own, after the end": net.journal(name).read_bytes()}, setup) == []
        if not answers[name]["exposed"]:
            hidden += 1
            assert places({other: data for other, data in journals.items() if other != name}, setup) == []
    assert hidden, "choose values of which some stay hidden"
    if method == "search":
        assert hidden == 4, "nobody is exposed by a search"


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_a_run_that_is_stopped(tmp_path: Path, method: str) -> None:
    """Journals are as they were in the middle of it, and everybody is told why it is over."""
    with watched(tmp_path, **SETTINGS[method]) as (net, relays):
        onlooker = Onlooker(net)
        until(lambda: rounds_done(net.journal("p1")) >= 3)
        onlooker.running["p1"].signal(signal.SIGSTOP)  # so nobody gets any further
        onlooker.until(lambda: all(rounds_done(net.journal(name)) >= 2 for name in net.charter.names))
        onlooker.running["p3"].signal(signal.SIGINT)
        onlooker.running["p1"].signal(signal.SIGCONT)
        ends = onlooker.ends()
        heard = relays.heard
    assert {end.code for end in ends.values()} == {1}  # with MIDST_DEBUG an abort is a traceback
    public = {"packets": heard, "file names": names_under(tmp_path), **onlooker.seen}
    for name, end in ends.items():
        assert "Traceback (most recent call last)" in end.err
        assert re.search(r"Aborted: p3 (withdrew \(stopped\), and says: p3 )?was stopped by its operator", end.err)
        public |= {f"stderr of {name}": end.err.encode(), f"stdout of {name}": end.out.encode()}
    journals = {name: net.journal(name).read_bytes() for name in net.charter.names}
    hidden = 0
    for each in net.charter.names:
        setup = setup_of(net, each)
        assert places(public, setup) == []
        assert places({"own": journals[setup.name]}, setup) == ["own"]
        shown = method == "consensus" and was_exposed(net, setup)
        hidden += not shown
        if shown:  # the largest and the smallest x, too, are told on
            near = [net.charter.names[j] for j in setup.neighbours]
            assert set(near) <= set(places(journals, setup))
        else:
            assert places({name: data for name, data in journals.items() if name != setup.name}, setup) == []
    assert hidden == 5 if method == "search" else hidden


def was_exposed(net: Network, setup: Setup) -> bool:
    """Whether a participant has sent its value, from its own journal."""
    first, *records = read_journal(net.journal(setup.name))
    assert isinstance(first, Began)
    assert setup.iteration is not None
    part = LockStep(setup, setup.iteration, first.opening)
    for record in records:
        if isinstance(record, Inputs) and record.frames[:1] == b"S":
            part.step(part.unpack(record.frames))
    return part.exposed


@pytest.mark.parametrize("method", ["consensus", "search"])
def test_up_prints_the_answer_and_nothing_else(tmp_path: Path, method: str) -> None:
    (tmp_path / "values").mkdir()
    (tmp_path / "left").mkdir()
    (tmp_path / "values" / "v.txt").write_text("\n".join(map(repr, VALUES)))
    line = [sys.executable, "-m", "midst", "up", "--graph", "ring", "--values", str(tmp_path / "values" / "v.txt")]
    line += ["--method", method, "--out", str(tmp_path / "result.json")]
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path / "left")}
    )
    seen: dict[str, bytes] = {}
    while process.poll() is None:
        with suppress(psutil.Error):
            for one in [psutil.Process(process.pid), *psutil.Process(process.pid).children()]:
                for part in ("cmdline", "environ"):
                    with suppress(OSError):  # as above
                        seen[f"{part} of {one.pid}"] = Path(f"/proc/{one.pid}/{part}").read_bytes()
        with suppress(OSError):
            seen["names"] = seen.get("names", b"") + names_under(tmp_path / "left")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(seen) > 5
    result = (tmp_path / "result.json").read_bytes()
    for i, value in enumerate(VALUES):
        looked_for = pattern(value, 1.0)
        assert bool(looked_for.search(result)) == (i == HOLDER)
        assert not [place for place, data in {**seen, "stderr": err}.items() if looked_for.search(data)]
        assert bool(looked_for.search(out)) == (i == HOLDER)


# When something goes wrong

SECRET = repr(VALUES[0])
WRONG: dict[str, tuple[list[str], bytes, bytes]] = {
    "a letter": ([], SECRET.encode() + b"O\n", b""),
    "a currency": ([], b"EUR " + SECRET.encode(), b""),
    "two lines": ([], SECRET.encode() + b"\n" + SECRET.encode(), b""),
    "rows of two lengths": ([], b"1 2\n" + SECRET.encode(), b""),
    "beyond the bounds": ([], b"-" + SECRET.encode(), b""),
    "not finite": ([], SECRET.encode() + b"e999", b""),
    "not a text": ([], SECRET.encode() + b" \xff", b""),
    "on standard input": (["-"], b"", SECRET.encode() + b"x"),
    "bytes on standard input": (["-"], b"", SECRET.encode() + b"\xff"),
    "from a command": (["--value-command", "cat value.txt"], SECRET.encode() + b"x", b""),
    "from a command that fails": (["--value-command", "sh -c 'cat value.txt; exit 3'"], SECRET.encode(), b""),
    "bytes from a command": (["--value-command", "cat value.txt"], SECRET.encode() + b"\xff", b""),
    "for a charter about two numbers": ([], SECRET.encode(), b""),
    "with a key of somebody else": ([], SECRET.encode(), b""),
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    graph = graphs.make("path", 3, rng=np.random.default_rng(0))
    with network(tmp_path_factory.mktemp("net"), graph, VALUES, bounds=list(BOUNDS)) as net:
        yield net


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_errors_and_tracebacks(
    three: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, debug: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if debug:
        monkeypatch.setenv("MIDST_DEBUG", "1")
    given, data, stdin = WRONG[case]
    Path("value.txt").touch(mode=0o600)
    Path("value.txt").write_bytes(data)
    line = three.arguments("p0", given=[] if given == ["-"] else given or ["--value-file", "value.txt"])
    if "two numbers" in case:
        text = three.charter_file.read_text().replace("coordinates = 1", "coordinates = 2")
        Path("charter.toml").write_text(text)
        line[line.index("--charter") + 1] = "charter.toml"
    if "somebody else" in case:
        line[line.index("--key") + 1] = str(three.key("p1"))
    done = CliRunner().invoke(main, line, input=stdin)
    assert done.exception is not None
    trace = "".join(traceback.format_exception(done.exception))
    assert ("InputError: " in trace) == debug
    assert done.exit_code == (1 if debug else 2)
    looked_for = pattern(VALUES[0], unit_of(setup_of(three, "p0")))
    for said in (done.stdout, done.stderr, trace):
        assert looked_for.search(said.encode()) is None


class _Memory:
    """A disk."""

    def __init__(self) -> None:
        self.data = b""

    def read(self) -> bytes:
        return self.data

    def append(self, data: bytes, mark: bytes) -> None:
        self.data += data + mark

    def replace(self, data: bytes) -> None:
        self.data = data


def held(net: Network) -> dict[str, object]:
    """The objects of a running node that hold its value, or what hides it."""
    setup = setup_of(net, "p0")
    journal = Journal(_Memory(), "journal")
    transport: Any = object.__new__(TlsTransport)
    session = resume(setup, journal, os.urandom)
    assert isinstance(session, Session)
    driver = Driver(session, transport)
    peer = driver.peer
    problem = net.charter.problem([VALUES[0], 1.0, 2.0])
    iteration = setup.iteration
    assert iteration is not None
    gossip, holding = Gossip(setup, peer.opening), setup.holding(peer.opening)
    return {
        "seat": setup, "iteration": iteration, "node": iteration.node, "terms": iteration.node.terms, "peer": peer,
        "part": peer.exchange, "state": peer.exchange.state, "driver": driver, "session": session,
        "moment": moment(peer), "journal": journal, "problem": problem,
        "opening": peer.opening, "began": Began(peer.opening), "gossip": gossip, "holding": holding,
        "agreement": setup.agreement(()), "participant": gossip._participant, "notary": setup.notary,
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    "seat iteration node terms peer part state driver session moment journal problem opening began gossip holding"
    " agreement participant notary".split(),
)
def test_no_repr_shows_it(three: Network, name: str) -> None:
    setup = setup_of(three, "p0")
    everything = held(three)
    shown, opening = repr(everything[name]), everything["opening"]
    assert pattern(VALUES[0], unit_of(setup)).search(shown.encode()) is None
    assert repr(setup.plain_value())[2:-1] not in shown
    assert str(setup.charter.keys.key(VALUES[0])) not in shown
    assert isinstance(opening, Opening)
    assert repr(opening.secret)[2:-1] not in shown


# The search itself


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("unit", [1.0, 32.0, 2.0**25])
def test_the_search_finds_what_there_is_to_find(value: float, unit: float) -> None:
    looked_for = pattern(value, unit)
    inside = value / unit
    texts = [repr(value), str(inside), f"{value:.6g}", f"{value:.9g}", f"{value:,.2f}", f"{value:e}", f"-{inside:.8f}"]
    texts += [f'{{"value": {value}}}', f"[{inside!r}, 3]", value.hex(), inside.hex(), struct.pack(">d", value).hex()]
    raw = [np.array([1.0, number], order).tobytes() for number in (value, inside, -value) for order in ("<f8", ">f8")]
    for data in [*(text.encode() for text in texts), *raw]:
        assert looked_for.search(b"x" + b" = " + data), data
    for other in VALUES:
        if other != value:
            assert looked_for.search(repr(other).encode() + struct.pack("<d", other)) is None
    assert looked_for.search(np.random.default_rng(0).bytes(1_000_000)) is None
