"""The benchmarks still run: every part of `make bench`, by a little of each, with figures that make sense.

They compare answers with the right ones themselves, and end with another code than 0 where one is wrong.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from midst.engines import ENGINES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench import tables  # noqa: E402

Rows = list[dict[str, Any]]
Found = dict[str, Rows]  # of each section

PARTS = re.findall(r"python -m bench\.(\w+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
PATIENCE = 400  # seconds, on a machine that others use too


def start(part: str, out: Path, *options: str) -> str:
    """What a benchmark prints."""
    command = [sys.executable, "-m", f"bench.{part}", *options, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def engines(found: Found) -> None:
    assert [row["engine"] for row in found["engines"]] == list(ENGINES)
    assert len({round(row["mean x(10)"], 6) for row in found["engines"]}) == 1


def run(found: Found) -> None:
    assert {row["largest_error"] for row in found["exact"]} == {0}
    (figure,) = found["figure 3"]
    assert all(0 < figure[f"secure_{kind}"] < 1 for kind in ("ring", "rgg", "complete"))
    assert [row["kind"] for row in found["scaling"]] == ["grid", "regular"]


def rounds(found: Found) -> None:
    assert all(row["search"] < row["exact finish"] < row["plain to 1e-6"] for row in found["rounds"])


def choose_c(found: Found) -> None:
    cells = {text for row in chain(*found.values()) for name, text in row.items() if name.startswith("c = ")}
    assert {re.sub(r"[\d.,]+", "0", cell) for cell in cells} == {"0 / 0 / 0%", "same"}


def leakage(found: Found) -> None:
    bits = ("bits by the exact finish", "bits of the plain run")
    assert all(row[name] > 0 for row in found["leakage"] for name in bits)


def ping(found: Found) -> None:
    assert all(row["bare, rounds/s"] > 0 < row["over midst's TLS"] for row in found["ping"])


def network(found: Found) -> None:
    assert [row["loop"].startswith("midst") for row in found["rounds"]] == [False, True, True, False]
    assert [row["method"] for row in found["hundred"]] == ["search", "consensus"]
    assert all(row["steps"] > 0 for row in found["start"])


def search(found: Found) -> None:
    assert all(1 <= row["probes"] <= row["most"] for row in found["sizes"])
    assert all(int(row["K = 3: mean, most"].split(", ")[1]) <= row["limit at K = 3"] for row in found["hard"])
    assert all(row["search"] < row["iteration, then search"] for row in found["rounds"])


def calls(found: Found) -> None:
    typed = {row["call"].split()[1] for row in chain(*found.values()) if row["call"].startswith("midst ")}
    assert typed >= {"run", "audit", "plan", "--help"}


def verify(found: Found) -> None:
    assert all(row["bytes, proved"] > row["bytes, not proved"] > 0 for row in found["sizes"])


def mpyc(found: Found) -> None:
    for rows in found.values():
        theirs = [f"MPyC, {numbers}" for numbers in ("16 bits", "32 bits", "fixed point")]
        assert [row["by"] for row in rows] == [*theirs, "midst, complete graph", "midst, ring"]
        assert all(0 < row["seconds"] < row["whole"] and row["bytes sent"] > 0 for row in rows)


def federated(found: Found) -> None:
    exact, coarse = (row["MB sent, most"] for row in found["networks"])
    assert 0 < coarse < exact


CHECKS: dict[str, Callable[[Found], None]] = {
    check.__name__: check
    for check in (engines, run, rounds, choose_c, leakage, ping, network, search, calls, verify, mpyc, federated)
}


def look(part: str, out: Path, printed: str) -> None:
    found = json.loads((out / f"{part}.json").read_text())["parts"]
    assert all(found.values())
    numbers = [x for rows in found.values() for row in rows for x in row.values() if isinstance(x, int | float)]
    assert all(map(isfinite, numbers))
    assert set((out / f"{part}.md").read_text().splitlines()) <= set(printed.splitlines())
    CHECKS[part](found)


@pytest.mark.parametrize("part", CHECKS)
def test_a_little_of_every_part(part: str, tmp_path: Path) -> None:
    if part == "mpyc":
        pytest.importorskip("mpyc")
    look(part, tmp_path, start(part, tmp_path, "--quick"))


def test_these_are_the_parts() -> None:
    assert [*CHECKS] == PARTS


@pytest.mark.torture
def test_seven_parties(tmp_path: Path) -> None:
    pytest.importorskip("mpyc")
    look("mpyc", tmp_path, start("mpyc", tmp_path, "--parties", "7", "--repeats", "1"))


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is one")
    assert re.fullmatch(r"no (GPU|JAX) here, .*\n", start("gpu", tmp_path, "--quick"))


@pytest.mark.parametrize(("typed", "folder"), [((), "."), (("--quick",), "quick"), (("--quick", "--out", "x"), "../x")])
def test_a_quick_run_leaves_results_alone(
    typed: tuple[str, ...], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", *typed])
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(tables.signal, "signal", lambda *given: None)
    out = tables.parse(tables.make_parser()).out
    assert out.is_dir()
    assert out.resolve() == (tmp_path / "results" / folder).resolve()
