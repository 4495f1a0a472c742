"""`midst up`: real processes on this machine, the right answer, and nothing left behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

pytestmark = pytest.mark.timeout(300)

TORTURE = "MIDST_RUNS" in os.environ
MANY = 100 if TORTURE else 25
MEMORY = 4 * 2**30  # bytes, for a hundred
VALUES = (3.25, 71.5, 12.125, 40.0, 66.75)


class Up:
    """A `midst up` of its own: its own session, and its own folder for whatever is temporary."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder / "temporary"
        self.folder.mkdir()
        (folder / "values.txt").write_text("\n".join(map(str, VALUES)))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "midst", "up", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(self.folder)},
        )

    def until_alone(self) -> None:
        """Until all that it has started are gone."""
        deadline = time.monotonic() + 10
        while self.others():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def others(self) -> list[int]:
        """The processes it has started, whoever is their parent by now."""
        found = []
        for one in psutil.process_iter():
            with suppress(ProcessLookupError):
                if one.pid != self.process.pid and os.getsid(one.pid) == self.process.pid:
                    found.append(one.pid)
        return found

    def until_running(self, nodes: int, rounds: int = 0) -> None:
        """Until so many have begun a journal, and gone on for so many rounds."""
        deadline = time.monotonic() + 120
        while sum(path.stat().st_size >= 200 + 70 * rounds for path in self.folder.glob("*/*.journal")) < nodes:
            assert self.process.poll() is None, "it ended before it began"
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self, seconds: float = 120.0) -> tuple[int, str, str]:
        """Exit code and words; after which nothing is left."""
        out, err = self.process.communicate(timeout=seconds)
        assert self.others() == []
        assert list(self.folder.rglob("*")) == []
        return self.process.returncode, out, err


@contextmanager
def up(folder: Path, *arguments: str) -> Iterator[Up]:
    one = Up(folder, *arguments)
    try:
        yield one
    finally:
        for pid in [one.process.pid, *one.others()]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        one.process.communicate()


def answer(folder: Path, *arguments: str, seconds: float = 120.0) -> dict[str, Any]:
    with up(folder, *arguments, "--json") as one:
        code, out, err = one.end(seconds)
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


# What it finds


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ((), 40.0),
        (("--method", "consensus"), 40.0),
        (("--method", "search", "--arity", "1", "--quantile", "0.7"), 66.75),
        (("--method", "search", "--resolution", "10"), 40.0),
        (("--objective", "maximum"), 71.5),
        (("--method", "consensus", "--objective", "minimum"), 3.25),
        (("--objective", "mean", "--bounds", "0:100", "--resolution", "0.005"), sum(VALUES) / 5),
        (("--objective", "mean", "--method", "consensus"), sum(VALUES) / 5),
        (("--quantile", "0.25", "--bounds", "0:100"), 12.125),
    ],
)
def test_answers(tmp_path: Path, arguments: tuple[str, ...], value: float) -> None:
    found = answer(tmp_path, "--graph", "complete", "--values", "values.txt", *arguments)
    assert found["value"] == pytest.approx(value, abs=1e-4 if "mean" in arguments else 0)
    assert (found["certified"], found["nodes"]) == (True, 5)
    assert found["method"] == ("consensus" if "consensus" in arguments else "search")
    assert (found["probes"] > 0) == (not {"mean", "consensus"} <= {*arguments})
    if "consensus" not in arguments:
        assert found["exposed"] == []


def test_nodes_have_the_names_of_the_graph(tmp_path: Path) -> None:
    for names in ("12345", ("anna", "bob", "carl", "dora", "emil")):
        folder = tmp_path / names[0]
        folder.mkdir()
        (folder / "graph.txt").write_text(
            "".join(f"{a} {b}\n" for a, b in zip(names, [*names[1:], names[0]], strict=True))
        )
        asked = ("--graph", "graph.txt", "--values", "values.txt", "--method", "consensus", "--out", "result.json")
        found = answer(folder, *asked)
        assert found["exposed"]
        assert set(found["exposed"]) <= {*names}
        signed = json.loads((folder / "result.json").read_text())
        assert [one["name"] for one in signed["participants"]] == [*names]


def test_a_name_that_no_participant_can_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("Anna bob\nbob ../carl\n../carl Anna\n")
    with up(tmp_path, "--graph", "graph.txt") as one:
        code, out, err = one.end()
    assert (code, out) == (2, "")
    assert err.startswith("midst: error: the name of node 'Anna' must be 1 to 64 of the characters a-z")


def test_json_has_the_promised_keys(tmp_path: Path) -> None:
    found = answer(tmp_path, "--graph", "ring", "--values", "values.txt")
    promised = {"value", "certified", "method", "rounds", "probes", "seconds", "bytes_per_node", "exposed", "nodes"}
    assert promised <= found.keys()
    assert 0 < found["first_round"] < found["answered"] < found["seconds"]
    assert min(found["rounds"], found["bytes_per_node"]) > 0
    assert found["seed_values"] is None


def test_a_network_does_without_scipy() -> None:
    """It takes longer to load than all that a node needs."""
    code = """if True:
        import sys
        from midst.cli import main
        try:
            main(["up", "--graph", "ring", "--nodes", "3", "--method", sys.argv[1]])
        except SystemExit as end:
            sys.exit(end.code or "scipy" in sys.modules)"""
    for method in ("search", "consensus"):
        subprocess.run([sys.executable, "-c", code, method], check=True, stdout=subprocess.DEVNULL)


def test_rows_are_vectors(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("1, 30\n2, 20\n3, 10\n")
    assert answer(tmp_path, "--graph", "path", "--values", "rows.txt")["value"] == [2.0, 20.0]


def test_lines_are_lists(tmp_path: Path) -> None:
    (tmp_path / "lists.txt").write_text("1 2 3 4\n9\n5 6\n")
    found = answer(tmp_path, "--graph", "path", "--values", "lists.txt", "--method", "search", "--pooled")
    assert found["value"] == 4.0


def test_drawn_values_can_be_repeated(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first = answer(folders[0], "--graph", "rgg", "--nodes", "6")
    again = answer(folders[1], "--graph", "rgg", "--nodes", "6", "--seed-values", str(first["seed_values"]))
    assert again["value"] == first["value"]


def test_the_report_for_people(tmp_path: Path) -> None:
    with up(tmp_path, "--graph", "ring", "--values", "values.txt", "--method", "consensus") as one:
        code, out, err = one.end()
    assert (code, err) == (0, "")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert rows["median"] == "40.0"
    assert rows["proof"] == "2 below, 2 above, of 5, told by every node"
    assert out.splitlines()[-1].endswith("--method search exposes nobody")
    assert rows["nodes"] == "5 processes, 5 links"
    assert " a node, sent and received" in rows["bytes"]
    assert " of 5: " in rows["exposed"]


def test_live_progress_on_a_terminal(tmp_path: Path) -> None:
    """It is shown where somebody looks, on stderr, and wiped away."""
    ours, theirs = pty.openpty()
    (tmp_path / "values.txt").write_text("\n".join(map(str, VALUES)))
    line = [sys.executable, "-m", "midst", "up", "--graph", "ring", "--values", "values.txt", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                shown += data
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["value"] == 40.0
    os.close(ours)
    assert b"5 processes, round " in shown
    assert b"have the answer" in shown
    assert shown.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h")), shown[-80:]


# What it leaves


# A thousand rounds: tens of seconds, if nobody interrupts them.
SLOW = ("--graph", "path", "--nodes", "20", "--seed-values", "1", "--objective", "mean", "--method", "consensus")
SLOW = (*SLOW, "--deadline", "100")


@pytest.mark.parametrize("everybody", [True, False], ids=["from the keyboard", "to it alone"])
def test_interrupted_it_leaves_nothing(tmp_path: Path, everybody: bool) -> None:
    with up(tmp_path, *SLOW) as one:
        one.until_running(20, rounds=3)
        if everybody:
            os.killpg(one.process.pid, signal.SIGINT)
        else:
            one.process.send_signal(signal.SIGINT)
        code, out, err = one.end()
    assert (code, out) == (130, "")
    assert err.strip() == "midst: interrupted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with up(tmp_path, *SLOW) as one:
        one.until_running(20, rounds=3)
        one.process.send_signal(number)
        code, out, _ = one.end()
    assert (code, out) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_starts(tmp_path: Path, number: signal.Signals) -> None:
    for attempt in (0, 3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with up(folder, *SLOW) as one:
            one.until_running(1 + attempt)
            one.process.send_signal(number)
            code, out, err = one.end()
        assert (code, out, err.strip()) == (130, "", "midst: interrupted")


def test_killed_it_leaves_nobody_behind(tmp_path: Path) -> None:
    """Nor anything: nobody but those it has started can clear up after it."""
    with up(tmp_path, *SLOW) as one:
        one.until_running(20, rounds=3)
        assert len(one.others()) == 20
        one.process.kill()
        one.process.wait()
        one.until_alone()
        assert list(one.folder.rglob("*")) == []
        _, err = one.process.communicate()
    assert err == ""


def test_killed_while_it_does_not_listen_it_leaves_nobody_behind(tmp_path: Path) -> None:
    """Those who have more to say than its pipes hold wait for it; they must not wait for ever."""
    with up(
        tmp_path, "--graph", "ring", "--nodes", "12", "--objective", "mean", "--method", "consensus", "--explore"
    ) as one:
        one.until_running(12, rounds=3)
        one.process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        one.process.kill()
        one.process.wait()
        one.until_alone()


def test_what_the_machine_cannot_hold_is_refused(tmp_path: Path) -> None:
    with up(tmp_path, "--graph", "ring", "--nodes", "100000") as one:
        code, out, err = one.end(60)
    assert (code, out) == (2, "")
    assert err.startswith("midst: error: 100000 nodes are too many: ")
    assert len(err.splitlines()) == 1


def test_told_to_end_among_many_it_ends_soon(tmp_path: Path) -> None:
    with up(tmp_path, "--graph", "ring", "--nodes", "40", "--method", "search", "--no-verify") as one:
        one.until_running(10)  # while others are still being started
        began = time.monotonic()
        one.process.send_signal(signal.SIGTERM)
        code, out, _ = one.end(30)
        assert time.monotonic() - began < 5
    assert (code, out) == (130, "")


def test_the_token_of_its_page_is_not_in_a_log(tmp_path: Path) -> None:
    with up(tmp_path, *SLOW, "--explore") as one:
        assert one.process.stderr is not None
        line = one.process.stderr.readline()
        file = Path(line.split("file://")[1].strip())
        token = file.read_text().split("#token=")[1].split('"')[0]
        assert len(token) == 43
        assert file.parent.stat().st_mode & 0o777 == 0o700
        one.process.send_signal(signal.SIGTERM)
        _, _, err = one.end()
    assert token not in line + err


def test_a_process_that_dies_ends_it(tmp_path: Path) -> None:
    with up(tmp_path, *SLOW[:-1], "4") as one:
        one.until_running(20, rounds=3)
        os.kill(one.others()[0], signal.SIGKILL)
        code, out, err = one.end(30)
    assert (code, out) == (4, "")
    assert err.startswith("midst: aborted: ")
    assert len(err.splitlines()) == 1


# Many


def memory(pids: list[int]) -> int:
    """The memory of some processes together, in bytes; what they share counts once."""
    total = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
    return total


@pytest.mark.torture
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.geteuid() != 0, reason="how much memory they have, they tell to root alone")
@pytest.mark.parametrize("kind", ["ring", "rgg"])
def test_many_processes(tmp_path: Path, kind: str) -> None:
    values = np.random.default_rng(5).normal(size=MANY)
    (tmp_path / "many.txt").write_text("\n".join(map(repr, values.tolist())))
    with up(tmp_path, "--graph", kind, "--values", "many.txt", "--deadline", "600", "--json") as one:
        most = seen = 0
        while one.process.poll() is None:
            pids = one.others()
            seen = max(seen, len(pids))
            most = max(most, memory([one.process.pid, *pids]))
            time.sleep(0.2)
        code, out, err = one.end(10)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["value"] == np.sort(values)[(MANY - 1) // 2]
    assert found["nodes"] == seen == MANY
    assert 0 < most <= MEMORY * MANY / 100
    print(f"\n{MANY} processes on a {kind}: {found['rounds']} rounds, {found['seconds']} s, {most / 2**30:.2f} GiB")


TAKEN = """
import sys
from contextlib import nullcontext
from midst.cli import main
from midst.net import local
port = int(sys.argv[1])
local.hold_ports = lambda count: nullcontext([port + i for i in range(count)])  # the others may be taken, too
local._LAST_WORDS = 1.0
main(["up", "--graph", "ring", "--nodes", "4", "--method", "search"])
"""


def test_a_port_that_somebody_took_ends_it_soon() -> None:
    """Before anybody is started: others would wait for the one that cannot listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-c", TAKEN, str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1 port {port}" in done.stderr
