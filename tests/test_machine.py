"""Where there is no fcntl, no fork, no resource: what works all the same, and what is said of what does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"


@pytest.fixture
def foreign(tmp_path: Path):
    """Runs `midst`, or Python, on a system that is not POSIX."""
    place = tmp_path / "system"
    place.mkdir()
    shutil.copy(HERE / "foreign_system.py", place / "sitecustomize.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(SOURCE)])}

    def run(*words: str, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        line = [sys.executable, *(words if words[0] == "-c" else ("-m", "midst", *words))]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, input=stdin)
        assert done.returncode == code, done.stderr
        return done

    return run


def test_it_is_another_system(foreign):
    code = """
        import asyncio, os, sys
        for name in ("fcntl", "resource", "pwd", "termios"):
            try:
                __import__(name)
            except ImportError:
                continue
            sys.exit(name)
        assert not hasattr(os, "geteuid") and not hasattr(os, "fork")

        async def main():
            asyncio.get_running_loop().add_signal_handler(15, print)

        try:
            asyncio.run(main())
        except NotImplementedError:
            sys.exit(0)
        sys.exit("signals")
    """
    foreign("-c", textwrap.dedent(code))


def test_everything_can_be_imported(foreign):
    """But for what needs an extra, as on any system."""
    code = """
        import importlib, pkgutil, midst
        from midst.errors import MissingExtra
        for module in pkgutil.walk_packages(midst.__path__, "midst."):
            try:
                if module.name != "midst.__main__":
                    importlib.import_module(module.name)
            except MissingExtra:
                assert module.name == "midst.federated.flower"
    """
    foreign("-c", textwrap.dedent(code))


def test_simulations(foreign, tmp_path):
    found = json.loads(
        foreign("run", *"--graph rgg --nodes 9 --seed 3 --save run.npz --record audit --json".split()).stdout
    )
    assert found["certified"]
    assert "bits" in foreign("audit", "run.npz").stdout
    assert "search" in foreign("plan", *"--graph ring --nodes 5 --bounds 0:1".split()).stdout
    (tmp_path / "spec.toml").write_text('runs = 2\n[grid]\ngraph = ["ring"]\nn = [5]\n')
    foreign("sweep", "spec.toml", "--out", "results", "--workers", "2")
    simnet = f"import sys; sys.path.append({str(HERE)!r}); from simnet.__main__ import main; main(['--seeds', '0:2'])"
    assert "2 ended with the answer" in foreign("-c", simnet).stdout


def test_a_ledger(foreign, tmp_path):
    foreign("ledger", "new", "own.ledger", "--max-bits", "50")
    (tmp_path / "values.txt").write_text("1\n2\n3\n4\n5\n")
    words = "run --graph ring --values values.txt --seed 1 --record audit --ledger own.ledger".split()
    for _ in range(2):
        assert foreign(*words, "--prior", "normal:0,5").stderr == ""
    assert "2 runs" in foreign("ledger", "show", "own.ledger").stdout
    (tmp_path / "own.txt").write_text("1\n")
    (tmp_path / "own.txt").chmod(0o644)
    checked = foreign("ledger", "check", "own.ledger", "--value-file", "own.txt")
    assert checked.stderr.splitlines() == [
        "midst: warning: own.txt: who else may read this value cannot be checked on this system; "
        "see to it that nobody may",
        "own.ledger: one more run is within the budget",
    ]


def test_one_process_at_a_time_has_a_lock(foreign, tmp_path):
    """Two processes, one lock: the second sees what the first has written."""
    code = """
        import sys, time
        from pathlib import Path
        from midst.files import Lock
        path = Path("count")

        def have():
            while True:
                try:
                    return Lock(Path("count.lock"))
                except BlockingIOError:
                    time.sleep(0.001)

        for _ in range(30):
            lock = have()
            number = int(path.read_text())
            time.sleep(0.002)
            path.write_text(str(number + 1))
            lock.release()
        lock = have()
        try:
            Lock(Path("count.lock"))
        except BlockingIOError:
            print("blocked")
    """
    (tmp_path / "count").write_text("0")
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "system"), str(SOURCE)])}
    line = [sys.executable, "-c", textwrap.dedent(code)]
    both = [subprocess.Popen(line, cwd=tmp_path, env=place, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.communicate()[0] for each in both] == ["blocked\n", "blocked\n"]
    assert (tmp_path / "count").read_text() == "60"


@pytest.mark.parametrize("method", ["search", "consensus"])
def test_a_network(foreign, method):
    done = foreign("up", "--graph", "ring", "--nodes", "3", "--method", method, "--deadline", "60", "--json")
    assert json.loads(done.stdout)["certified"]
    assert done.stderr == ""


def test_too_many_are_refused(foreign):
    done = foreign("up", *"--graph ring --nodes 61 --method search".split(), code=2)
    assert done.stderr == (
        "midst: error: 61 nodes are too many: this system cannot wait for more than 60 processes; "
        "try 60, or midst run, which simulates them\n"
    )


def test_locks_are_needed(foreign):
    code = """
        import sys
        from pathlib import Path
        sys.modules["msvcrt"] = None
        from midst.errors import InputError
        from midst.files import Lock
        try:
            Lock(Path("a.lock"))
        except InputError as error:
            print(error)
    """
    assert foreign("-c", textwrap.dedent(code)).stdout.startswith("this system locks no files")


def test_an_old_code_page_does_not_cost_the_answer(tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "cp437", "PYTHONPATH": str(SOURCE)}
    line = [sys.executable, "-m", "midst", "run", "--help"]
    done = subprocess.run(line, env=environment, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"--statistics NAME,?" in done.stdout
