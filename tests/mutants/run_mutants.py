"""Plant each attack of tests/mutants by itself in a copy of the code, and see that the tests it names catch it.

    python tests/mutants/run_mutants.py            # all of them, as `make mutants` does
    python tests/mutants/run_mutants.py journal    # those with this in the name of the patch or of a file it changes

An attack is a patch that an adversary, or a subtle error, could be: `FOLDER/NAME.patch` holds a sentence that says what
the attack does, a line `caught by TEST` for each test that may catch it (one of them must fail), and a unified diff.

Rules:
- The checkout is never written to: each worker has a copy of src and tests.
- All named tests must pass without an attack first, else their failing says nothing.
- Caught means that a test failed. Tests that cannot be collected or take too long give no verdict, and neither does a
  patch that no longer applies. Both count as much as an attack that survives.
- `git apply` plants a patch wherever its lines stand now. It needs only one line of context on each side of a change
  (-C1), so that edits nearby do no harm, and it counts the lines itself (--recount), so that patches can be edited by
  hand. Less context could plant an attack in the wrong place.

To write a patch, or to renew one: change the code, write the head, append `git diff src`, and restore the code.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_S = 600.0  # of the tests of one attack; the slowest take half a minute


@dataclass(frozen=True)
class Attack:
    """A patch: its file, its name, what it does, the tests that may catch it, and the files it changes."""

    path: Path
    name: str
    does: str
    tests: tuple[str, ...]
    files: tuple[str, ...]


def read_attacks(folder: Path) -> list[Attack]:
    """All patches of a folder and its folders, by name."""
    attacks = []
    for path in sorted(folder.rglob("*.patch")):
        head, _, diff = path.read_text().partition("\n--- ")
        tests = tuple(re.findall(r"^caught by (.+)$", head, re.MULTILINE))
        files = tuple(re.findall(r"^\+\+\+ b/(.+)$", diff, re.MULTILINE))
        if not (tests and files):
            raise SystemExit(f"{path}: a patch needs a line 'caught by TEST', and a diff with a/ and b/")
        name = str(path.relative_to(folder).with_suffix(""))
        attacks.append(Attack(path, name, head.partition("\n")[0], tests, files))
    return attacks


def apply(attack: Attack, copy: Path, *options: str) -> tuple[int, str]:
    """Apply a patch to a copy; how git exits (0, 1 if the patch does not fit, 128 if it is none) and what git says."""
    line = ["git", "apply", "-C1", "--recount", "--whitespace=nowarn", *options, str(attack.path.resolve())]
    apart = os.environ | {"GIT_CEILING_DIRECTORIES": str(copy.resolve().parent)}  # the copy is in no repository
    done = subprocess.run(line, cwd=copy, env=apart, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def run_tests(copy: Path, tests: Sequence[str]) -> tuple[int | None, str]:
    """Run tests in a copy; how pytest exits, None if not in time, and the first test that failed or the last words."""
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


def judge(attack: Attack, copy: Path) -> tuple[str, str]:
    """Plant an attack in a copy, run its tests, and restore the copy: "caught" or not, and what was said."""
    texts = {copy / file: (copy / file).read_text() for file in attack.files if (copy / file).is_file()}
    code, said = apply(attack, copy)
    if code != 0:
        return "no verdict", f"the patch no longer applies: {said}"
    code, said = run_tests(copy, attack.tests)
    for file, text in texts.items():
        file.write_text(text)
    return {0: "survived", 1: "caught"}.get(code, "no verdict"), said.partition(" - ")[0]  # as pytest exits


def in_copies(root: Path, workers: int, task: Callable[[Any, Path], None], over: Iterable[Any]) -> None:
    """Do a task for each, so many at once, each worker in a copy of what the tests need of a checkout."""
    unwanted = shutil.ignore_patterns("__pycache__", ".hypothesis")
    with tempfile.TemporaryDirectory(prefix="midst-mutants-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for k in range(workers):
            copy = Path(folder) / str(k)
            for part in ("src", "tests"):
                shutil.copytree(root / part, copy / part, ignore=unwanted)
            shutil.copy(root / "pyproject.toml", copy)
            free.put(copy)

        def do(each: Any) -> None:
            copy = free.get()
            try:
                task(each, copy)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(do, over))


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """The command; 1 if anything but "caught" came of an attack, or if tests fail without one."""
    parser = argparse.ArgumentParser(description="Plant attacks, one at a time; the tests must catch each.")
    parser.add_argument("part", nargs="?", default="", help="only those with this in their name or a file they change")
    parser.add_argument("--workers", type=int, default=2, help="how many at once (default 2)")
    asked = parser.parse_args(arguments)
    attacks = read_attacks(root / "tests" / "mutants")
    chosen = [each for each in attacks if any(asked.part in name for name in (each.name, *each.files))]
    by_file: dict[str, list[str]] = {}
    for test in dict.fromkeys(test for each in chosen for test in each.tests):
        by_file.setdefault(test.partition("::")[0], []).append(test)
    wrong, outcomes = [], []

    def check(tests: list[str], copy: Path) -> None:
        code, said = run_tests(copy, tests)
        if code != 0:
            wrong.append(f"does not pass without an attack: {said}")

    def one(attack: Attack, copy: Path) -> None:
        start = time.monotonic()
        outcome, said = judge(attack, copy)
        outcomes.append(outcome)
        took = time.monotonic() - start
        print(f"{outcome:10}  {took:5.1f} s  {attack.name}: {attack.does}\n{'':12}{said}", flush=True)

    in_copies(root, asked.workers, check, by_file.values())
    if wrong:
        print(*wrong, sep="\n")
        return 1
    in_copies(root, asked.workers, one, chosen)
    caught = outcomes.count("caught")
    print(f"{caught} of {len(chosen)} attacks caught")
    return 0 if 0 < caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
