"""What a node's process leaves to others, and how many a machine holds."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import network, until

from midst.errors import InputError
from midst.graphs import path
from midst.net import process
from midst.net.process import make_room

PORTS = 12_000


def dies_with_a_core(line: list[str], folder: Path) -> bool:
    """Whether a process that says when it is ready leaves a core dump when it is told to."""
    with subprocess.Popen(line, stdout=subprocess.PIPE, cwd=folder) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        os.kill(child.pid, signal.SIGABRT)
        _, status = os.waitpid(child.pid, 0)
        child.returncode = -signal.SIGABRT
    return os.WCOREDUMP(status)


def test_no_core_is_left(tmp_path: Path) -> None:
    wait = "import time; print('ready', flush=True); time.sleep(60)"
    forbid = "from midst.net.process import forbid_dumps; forbid_dumps(); "
    raised = "import resource as r; r.setrlimit(r.RLIMIT_CORE, (r.getrlimit(r.RLIMIT_CORE)[1],) * 2); "
    if not dies_with_a_core([sys.executable, "-c", raised + wait], tmp_path):
        pytest.skip("nothing leaves a core dump on this machine")
    assert not dies_with_a_core([sys.executable, "-c", raised + forbid + wait], tmp_path)
    if sys.platform == "linux":  # where the limit is not all that there is
        assert not dies_with_a_core([sys.executable, "-c", forbid + raised + wait], tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the limits of others")
def test_a_real_node_leaves_none(tmp_path: Path) -> None:
    with network(tmp_path, path(3), [1.0, 2.0, 3.0], method="search") as net:
        node = net.start("p1")
        until(lambda: net.journal("p1").exists())
        limits = Path(f"/proc/{node.process.pid}/limits").read_text().splitlines()
        node.kill()
    (core,) = (line.split() for line in limits if line.startswith("Max core file size"))
    assert core[4] == "0"


def test_the_token_of_a_page_is_not_in_a_log(tmp_path: Path) -> None:
    with network(tmp_path, path(3), [1.0, 2.0, 3.0], method="search") as net:
        node = net.start("p1", "--explore", "--log", "json")
        assert node.process.stderr is not None
        line = node.process.stderr.readline()
        event = json.loads(line)
        page = Path(event["text"].removeprefix("follow this node at file://"))
        token = page.read_text().split("#token=")[1].split('"')[0]
        assert event["event"] == "explore"
        assert page.parent.stat().st_mode & 0o777 == 0o700
        line += node.process.stderr.readline()  # about p2, who is not there: it runs
        node.signal(signal.SIGTERM)
        outcome = node.wait()
    assert len(token) == 43
    assert token not in line + outcome.out + outcome.err
    assert not page.exists()


# Room


def limits(
    monkeypatch: pytest.MonkeyPatch, memory: int, files: int = 10**6, soft: int = 10**6
) -> list[tuple[int, int]]:
    """A machine with so much; the limits that were set on it."""
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(process, "_memory", lambda: memory)
    monkeypatch.setattr(process, "_groups", lambda controller: [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, files))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: made.append(limits))
    return made


@pytest.mark.parametrize("memory", [2**30, 2**34, 2**38])
def test_as_many_as_it_says_and_no_more(monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    limits(monkeypatch, memory)
    with pytest.raises(InputError) as refused:
        make_room(5000, PORTS)
    text = str(refused.value)
    assert text.startswith("5000 nodes are too many: ")
    assert "GiB of memory are free" in text
    room = int(text.split("; try ")[1].split(",")[0])
    make_room(room, PORTS)
    with pytest.raises(InputError):
        make_room(room + 1, PORTS)
    assert room * 12 * 2**20 < memory


def test_files_are_had_if_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    made = limits(monkeypatch, 2**40, files=4096, soft=256)
    make_room(10, PORTS)
    assert made == []
    make_room(500, PORTS)
    ((soft, hard),) = made
    assert hard == 4096
    assert 3 * 500 < soft <= 4096
    with pytest.raises(InputError, match=r"a process may have 4,096 files open .*; try 1008, or midst run"):
        make_room(2000, PORTS)


def test_ports_and_processes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 2**50)
    with pytest.raises(InputError, match="there are 12,000 ports for them; try 12000"):
        make_room(12_001, PORTS)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(process, "_running", lambda: 40)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 10**6))
    with pytest.raises(InputError, match=r"you may have 100 processes \(ulimit -u\); try 60"):
        make_room(61, PORTS)


def test_a_group_of_processes_has_limits_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "_groups", lambda controller: [tmp_path])
    everything = process._memory()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text(f"{2**20}\n")
    assert everything is not None
    assert process._memory() == pytest.approx(everything, rel=0.2)
    (tmp_path / "memory.max").write_text(f"{2**26}\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 1000\n")
    assert process._memory() == 2**26 - 2**20 + 1000
    (tmp_path / "pids.max").write_text("30\n")
    (tmp_path / "pids.current").write_text("20\n")
    assert (10, "this group of processes may have 30 (pids.max)") in list(process._limits(PORTS, 10**6))


def test_this_machine_says_what_it_has() -> None:
    found = process._memory()
    assert found is not None
    assert 2**20 < found < 2**50
    assert process._running() > 0
