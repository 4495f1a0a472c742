"""Plants every bug of `bugs.py` by itself in a copy of the code and sees whether its tests catch it.

    python tests/mutants/run_mutants.py            # all of them; what `make mutants` does
    python tests/mutants/run_mutants.py journal    # those with this in their name or file

Rules:
- The checkout is never written to: every worker has a copy of src and tests, and what tests leave behind stays there.
- All selections must pass without a bug first, else their failing says nothing.
- Caught means that a test failed. Tests that cannot be collected, or take too long, give no verdict, which is as bad as
  a bug that survives.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, TypeVar

from bugs import BUGS, SOURCE, Bug

ROOT = Path(__file__).parents[2]
LIMIT_S = 600.0  # of one selection; the slowest takes half a minute
_PASSED, _FAILED = 0, 1  # as pytest exits

Outcome = Literal["caught", "survived", "no verdict"]
T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """What came of one bug, after how long, and what pytest said: which test failed."""

    bug: Bug
    outcome: Outcome
    seconds: float
    said: str


def misplaced(bugs: Iterable[Bug], root: Path = ROOT) -> list[str]:
    """What is wrong with the list itself, a line each: a bug must change one place, and have tests that exist."""
    found, names = [], set()
    for bug in bugs:
        path = root / SOURCE / bug.file
        places = path.read_text().count(bug.old) if path.is_file() else 0
        if places != 1:
            found.append(f"{bug.name}: its line is {places} times in {bug.file}")
        if bug.old == bug.new or bug.name in names:
            found.append(f"{bug.name}: changes nothing, or is there twice")
        names.add(bug.name)
        for selection in bug.tests:
            file, _, test = selection.partition("::")
            if not (root / file).is_file() or f"def {test.partition('[')[0]}" not in (root / file).read_text():
                found.append(f"{bug.name}: there is no {selection}")
    return found


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[int | None, str]:
    """How pytest exits in a copy, None if it does not in time; and the first test that failed, or its last words."""
    line = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    line += ["--hypothesis-profile=mutants", *tests]  # that one example fails is enough
    kept = {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            line, cwd=copy, env=os.environ | kept, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"not done after {LIMIT_S:g} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    failed = [each.partition(" ")[2] for each in lines if each.startswith("FAILED ")]
    return done.returncode, (failed or lines[-1:] or [""])[0]


@contextmanager
def planted(copy: Path, bug: Bug) -> Iterator[None]:
    """A copy with the bug in it."""
    path = copy / SOURCE / bug.file
    text = path.read_text()
    path.write_text(text.replace(bug.old, bug.new))
    try:
        yield
    finally:
        path.write_text(text)


def judge(copy: Path, bug: Bug) -> Verdict:
    """Plant a bug in a copy and run its tests."""
    start = time.monotonic()
    with planted(copy, bug):
        code, said = run_tests(copy, bug.tests)
    outcome: Outcome = "caught" if code == _FAILED else "survived" if code == _PASSED else "no verdict"
    return Verdict(bug, outcome, time.monotonic() - start, said)


def make_copy(root: Path, folder: Path) -> Path:
    """What the tests need of a checkout."""
    unwanted = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for part in ("src", "tests"):
        shutil.copytree(root / part, folder / part, ignore=unwanted)
    shutil.copy(root / "pyproject.toml", folder)
    return folder


def in_copies(root: Path, workers: int, task: Callable[[Path, T], None], over: Iterable[T]) -> None:
    """Do a task for each, so many at once, each worker in a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="midst-mutants-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for k in range(workers):
            free.put(make_copy(root, Path(folder) / str(k)))

        def do(each: T) -> None:
            copy = free.get()
            try:
                task(copy, each)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(do, over))


def failing(bugs: Iterable[Bug], root: Path, workers: int) -> list[str]:
    """What does not even pass without a bug, a line for each file of tests."""
    by_file: dict[str, list[str]] = {}
    for selection in dict.fromkeys(each for bug in bugs for each in bug.tests):
        by_file.setdefault(selection.partition("::")[0], []).append(selection)
    found = []

    def check(copy: Path, tests: list[str]) -> None:
        code, said = run_tests(copy, tests)
        if code != _PASSED:
            found.append(f"does not pass without a bug: {said}")

    in_copies(root, workers, check, by_file.values())
    return found


def judge_all(bugs: Sequence[Bug], root: Path, workers: int) -> list[Verdict]:
    """Every bug by itself; each verdict is printed when it is there."""
    verdicts: list[Verdict] = []

    def one(copy: Path, bug: Bug) -> None:
        verdict = judge(copy, bug)
        verdicts.append(verdict)
        said = verdict.said.partition(" - ")[0] if verdict.outcome == "caught" else verdict.said
        print(f"{verdict.outcome:10}  {verdict.seconds:5.1f} s  {bug.file}: {bug.name}\n{'':12}{said}", flush=True)

    in_copies(root, workers, one, bugs)
    return verdicts


def main(arguments: Sequence[str] | None = None, bugs: Sequence[Bug] = BUGS, root: Path = ROOT) -> int:
    """The command; 1 if anything but "caught" came of a bug."""
    parser = argparse.ArgumentParser(description="Plant bugs, one at a time; the tests must catch each.")
    parser.add_argument("part", nargs="?", default="", help="only bugs with this in their name or file")
    parser.add_argument("--workers", type=int, default=2, help="how many at once (default 2)")
    asked = parser.parse_args(arguments)
    chosen = [bug for bug in bugs if asked.part in bug.name or asked.part in bug.file]
    wrong = misplaced(chosen, root) or failing(chosen, root, asked.workers)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong or not chosen:
        return 1
    verdicts = judge_all(chosen, root, asked.workers)
    caught = sum(verdict.outcome == "caught" for verdict in verdicts)
    print(f"{caught} of {len(verdicts)} planted bugs caught")
    return 0 if caught == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
