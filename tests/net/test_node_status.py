"""What a node says while it runs: how it stands, for whom it waits, and that a session was over before."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import urllib.request
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from memory_network import MemoryNetwork, charter_of
from parties import free_port
from processes import network, until

from midst import graphs
from midst.cli import main
from midst.cli.node_status import Status, in_words
from midst.dp.ledger import Ledger
from midst.net.peer import Standing

pytestmark = pytest.mark.timeout(90)
ROW = [(0, 1), (1, 2), (2, 3), (3, 4)]


# How it stands


def without(net: MemoryNetwork, gone: int, steps: int = 8) -> None:
    """Time passes, and one participant hears and says nothing."""
    for _ in range(steps):
        net.pass_time()
        net.deliver(change=lambda i, j, frame: None if gone in (i, j) else frame)


@pytest.mark.parametrize("method", ["search", "consensus"])
def test_a_node_far_from_the_trouble_knows_of_it(method: str) -> None:
    net = MemoryNetwork(charter_of(n=5, edges=ROW, method=method), [1.0, 2.0, 3.0, 4.0, 5.0])
    without(net, 4)
    near, far = (net.peers[i].standing(net.now) for i in (3, 0))
    assert list(near.waiting) == ["eve"]
    assert near.doing == "meets its neighbours"
    assert "eve" in far.names
    assert "eve" in net.peers[0].awaited
    assert far.since > 0
    assert 0 < far.left <= 300
    if method == "consensus":
        assert far.waiting == {"ben": "which says that it waits for eve"}


@pytest.mark.parametrize("method", ["search", "consensus"])
def test_also_in_the_middle_of_a_run(method: str) -> None:
    slow = {"arity": 1, "spacing": "key"}
    net = MemoryNetwork(charter_of(n=5, edges=ROW, method=method, **slow), [1.0, 2.0, 3.0, 4.0, 5.0])
    while net.peers[0].exchange.round < 3:
        if not net.mail:
            net.pass_time()
        net.deliver(most=1)
    assert all(peer.ending is None for peer in net.peers)
    without(net, 4, steps=20)
    standing = net.peers[0].standing(net.now)
    assert "eve" in standing.names
    assert standing.doing.startswith("probe" if method == "search" else "round")
    assert standing.since > 5
    assert standing.left < 60
    assert standing.names in in_words(standing)


def test_who_waits_for_whom_is_forgotten_when_it_is_old_news() -> None:
    net = MemoryNetwork(charter_of(n=5, edges=ROW, method="consensus"), [1.0, 2.0, 3.0, 4.0, 5.0])
    without(net, 4)
    assert net.peers[0].awaited == ["eve"]
    net.now += 30
    net.peers[0]._now = net.now
    assert net.peers[0].awaited == ["ben"], "who is not there says nothing any more"


def standing(since: float, doing: str = "round 7") -> Standing:
    return Standing(doing, {"ben": "", "cat": "cannot be reached"}, since, 60 - since)


def test_a_log_says_it_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status()
    for tick in range(1200):
        status.report(standing(tick / 2))
    lines = capsys.readouterr().err.splitlines()
    said = [int(found.group(1)) for line in lines if (found := re.search(r"since (\d+) s", line))]
    assert lines[0] == "midst: round 7: waits for ben, cat (cannot be reached) since 10 s, 50 s left"
    assert len(said) == len(lines)
    assert all(10 <= b - a <= 60 for a, b in pairwise(said))
    assert 10 < len(said) < 16
    status.report(standing(1.0))
    assert not capsys.readouterr().err, "there was progress"
    status.report(standing(11.0))
    assert capsys.readouterr().err


def test_a_log_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    Status("json").report(standing(12.0))
    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "progress"
    assert "waits for ben" in line["text"]


def test_many_names_are_not_all_said() -> None:
    many = Standing("probe 1", {f"p{i}": "" for i in range(30)}, 3.0, 50.0)
    assert in_words(many) == "probe 1: waits for p0, p1, p2, p3, p4, p5, p6, p7 and 22 more since 3 s, 50 s left"


# Of real processes


def test_a_terminal_shows_one_line_that_goes_away(tmp_path: Path) -> None:
    graph = graphs.make("path", 3, rng=np.random.default_rng(0))
    with network(tmp_path, graph, [1.0, 2.0, 3.0], method="search", deadlines={"start": 3}) as net:
        terminal, own = pty.openpty()
        line = [sys.executable, "-m", "midst", *net.arguments("p0")]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=own, stdin=subprocess.DEVNULL)
        os.close(own)
        shown = b""
        while process.poll() is None or not shown:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # its end is closed
                break
        assert process.wait() == 4
        os.close(terminal)
    text = shown.decode()
    assert re.search(r"\r\x1b\[Kmeets its neighbours: waits for p1", text)
    assert "p2" not in text, "nobody here waits for it yet"
    last = text.rstrip().splitlines()[-1]
    assert re.search(r"(?:\r|\x1b\[K|^)midst: aborted: p0 waited", last)


def test_metrics_name_who_is_waited_for(tmp_path: Path) -> None:
    graph = graphs.make("path", 4, rng=np.random.default_rng(0))
    with network(tmp_path, graph, [1.0, 2.0, 3.0, 4.0], method="consensus") as net:
        watched = f"127.0.0.1:{free_port()}"
        net.start("p0", "--metrics", watched)
        net.start("p1")
        net.start("p2")

        def page(name: str) -> str:
            with urllib.request.urlopen(f"http://{watched}/{name}", timeout=5) as found:
                return str(found.read().decode())

        def says_so() -> bool:
            try:
                return 'midst_waiting_for{participant="p3"} 1' in page("metrics")
            except OSError:
                return False

        until(says_so, 30)
        assert "waiting for p1 (which says that it waits for p3)" in page("healthz")
        assert re.search(r"^midst_waiting_seconds \d", page("metrics"), re.MULTILINE)


def test_a_doctor_does_not_alarm_a_node_that_runs(tmp_path: Path) -> None:
    graph = graphs.make("complete", 3, rng=np.random.default_rng(0))
    with network(tmp_path, graph, [1.0, 2.0, 3.0], method="search") as net:
        running = net.start("p1")
        until(lambda: net.journal("p1").exists())
        for name in ("p0", "p1"):
            line = ["doctor", "--charter", net.charter_file, "--name", name, "--key", net.key(name), "--wait", "2"]
            done = CliRunner().invoke(main, list(map(str, line)))
            assert done.exit_code == 0, done.stdout
            expected = "p1: is up and has the same charter" if name == "p0" else "your node runs already"
            assert expected in done.stdout
        others = [net.start("p0"), net.start("p2")]
        ends = [one.wait() for one in (running, *others)]
    assert [end.answer["value"] for end in ends] == [2.0] * 3, "no session was used up"
    assert "p0 looked whether it could take part, and left" in ends[0].err
    assert "lost the link" not in ends[0].err
    assert "not trusted" not in ends[0].err
    assert "somebody" not in ends[0].err


@pytest.mark.parametrize("kept", [False, True])
def test_a_session_that_is_over_says_so_and_reads_no_value(tmp_path: Path, kept: bool) -> None:
    graph = graphs.make("complete", 3, rng=np.random.default_rng(0))
    book, saved = tmp_path / "pay.json", tmp_path / "own.npz"
    Ledger.new(book)
    account = ["--ledger", str(book)] if kept else []
    with network(tmp_path, graph, [1.0, 2.0, 4.0], method="search", bounds=[0, 10]) as net:
        own = net.start("p0", "--save", str(saved), *account)
        others = [net.start(name) for name in ("p1", "p2")]
        found = [one.wait().answer for one in (own, *others)]
        assert [one["value"] for one in found] == [2.0] * 3
        assert not found[0]["over_before"]
        value = tmp_path / "gone.txt"
        again = CliRunner().invoke(main, net.arguments("p0", *account, given=["--value-file", str(value)]))
        assert again.exit_code == 0
        assert "session" in again.stderr
        assert (
            "is over, and this is its answer; your value was not read; for another run: midst charter new --from"
            in (again.stderr)
        )
        assert "2.0" in again.stdout
        assert "bytes" not in again.stdout
        later = CliRunner().invoke(main, net.arguments("p0", "--json", "--save", str(tmp_path / "later.npz")))
        assert json.loads(later.stdout)["over_before"]
    looked = [CliRunner().invoke(main, ["audit", str(path), "--json", "--prior", "uniform:0,10"]) for path in (
        saved, tmp_path / "later.npz")]  # fmt: skip
    bits = [json.loads(one.stdout)["totals"]["bits"] for one in looked]
    assert bits[0] == bits[1] > 0
    assert saved.stat().st_mode & 0o077 == 0
    if kept:
        assert [one.state for one in Ledger.open(book).sessions] == ["over"]


def test_a_ledger_that_was_not_written_is_written_when_the_answer_is_read_again(tmp_path: Path) -> None:
    graph = graphs.make("complete", 3, rng=np.random.default_rng(0))
    book = tmp_path / "pay.json"
    with network(tmp_path, graph, [1.0, 2.0, 4.0], method="search", bounds=[0, 10]) as net:
        for one in [net.start(name) for name in net.charter.names]:
            assert one.wait().code == 0
        Ledger.new(book)
        again = CliRunner().invoke(main, net.arguments("p0", "--ledger", str(book)))
        assert again.exit_code == 0, again.stderr
        assert "your value was read for the ledger alone" in again.stderr
    assert [one.state for one in Ledger.open(book).sessions] == ["over"]


def test_what_cannot_be_audited_is_not_saved(tmp_path: Path) -> None:
    graph = graphs.make("complete", 3, rng=np.random.default_rng(0))
    settings = {"statistics": ["median"], "bounds": [0, 10], "resolution": 1.0}
    with network(tmp_path, graph, [[1.0], [2.0], [4.0]], method="search", **settings) as net:
        done = CliRunner().invoke(main, net.arguments("p0", "--save", str(tmp_path / "own.npz")))
    assert done.exit_code == 2
    assert "knows nothing of statistics; keep a --ledger" in done.stderr
    assert not (tmp_path / "own.npz").exists()
