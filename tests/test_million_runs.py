"""The bench of a million runs, by a few of them: it finds nothing wrong, and would if there were something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench import million_runs  # noqa: E402
from bench.million_runs import SHAPES, Setting, Share, check_runs, cut, find_right, run_piece  # noqa: E402

RUNS = max(100 * len(SHAPES), int(os.environ.get("MIDST_RUNS", "0")))
FEW: dict[str, Any] = {"settings": 100, "seed": 3, "device": None, "workers": 1}


@given(
    values=st.lists(st.integers(-4, 4), min_size=1, max_size=12),
    weights=st.data(),
    q=st.fractions(0, 1, max_denominator=12),
    definition=st.sampled_from(["inverted_cdf", "inverted_cdf_high"]),
)
def test_the_right_answer_by_its_definition(values: list[int], weights: Any, q: Fraction, definition: Any) -> None:
    """At most τ of the weight lies below it, at most 1 − τ above; of several, it is the lowest, or the highest."""
    held = weights.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)).filter(any))
    total = sum(held)

    def is_right(x: int) -> bool:
        below = sum(w for v, w in zip(values, held, strict=True) if v < x)
        above = sum(w for v, w in zip(values, held, strict=True) if v > x)
        return below <= q * total and above <= (1 - q) * total

    definition = {0: "inverted_cdf_high", 1: "inverted_cdf"}.get(
        q, definition
    )  # every number beyond the last value is one; the last value is meant
    right = [v for v, w in zip(values, held, strict=True) if w and is_right(v)]
    found = find_right(np.array(values, float)[:, None], np.array(held, float), q, definition)
    assert found == [min(right) if definition == "inverted_cdf" else max(right)]


@pytest.mark.torture
@pytest.mark.parametrize("method", million_runs.METHODS)
def test_of_every_shape_and_size_none_is_wrong(method: Any) -> None:
    piece = run_piece(range(RUNS), method, **FEW)
    assert piece["wrong runs"] == []
    assert set(piece["data"]) == set(SHAPES)
    assert set(piece["graph"]) == set(million_runs.FAMILIES)
    for part in ("data", "graph"):
        counts = piece[part].values()
        assert sum(each["runs"] for each in counts) == RUNS
        assert all(each["wrong"] == each["without proof"] == 0 for each in counts)


def test_through_jax_too() -> None:
    """The way of a GPU, on the CPU."""
    pytest.importorskip("jax")
    found = check_runs(Share(3, 47, 0, len(SHAPES)), "consensus", "cpu")
    assert Setting.make(3, 47).weights is not None
    assert found.right.all()
    assert found.certified.all()
    one = run_piece(range(47, 48), "consensus", settings=48, seed=3, device="cpu", workers=2)
    assert sum(each["runs"] for each in one["graph"].values()) == 1
    assert one["wrong runs"] == []


@pytest.mark.parametrize("method", million_runs.METHODS)
def test_a_wrong_answer_is_seen(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is off by a last bit, and one that is right by chance but not proved."""
    solved = million_runs.solve_ensemble

    def spoilt(*given: Any, **options: Any) -> Any:
        found = solved(*given, **options)
        found.value[3] = np.nextafter(found.value[3], np.inf)
        return replace(found, certified=found.certified & (np.arange(found.runs) != 5))

    monkeypatch.setattr(million_runs, "solve_ensemble", spoilt)
    piece = run_piece(range(0, 160), method, **FEW | {"settings": 20})
    assert piece["wrong runs"] == [*range(60, 80)]
    assert sum(each["wrong"] for each in piece["graph"].values()) == 20
    assert sum(each["without proof"] for each in piece["data"].values()) == 20


@settings(max_examples=20, deadline=None)
@given(first=st.integers(0, 30), middle=st.integers(1, 30), last=st.integers(1, 30), number=st.integers(0, 120))
def test_runs_are_the_same_in_any_pieces(first: int, middle: int, last: int, number: int) -> None:
    setting = Setting.make(3, number)
    whole = setting.draw(3, range(first, first + middle + last))
    parts = [
        setting.draw(3, range(first, first + middle)),
        setting.draw(3, range(first + middle, first + middle + last)),
    ]
    assert np.array_equal(whole, np.column_stack(parts))
    assert 2 <= setting.graph.n <= 101
    assert setting.weights is None or setting.weights.any()


def test_z0_is_the_same_in_any_pieces() -> None:
    whole, *parts = (check_runs(Share(3, 7, *ends), "consensus") for ends in ((0, 20), (0, 13), (13, 20)))
    assert whole.rounds.tolist() == [*parts[0].rounds, *parts[1].rounds]


@given(
    first=st.integers(0, 300_000),
    runs=st.integers(1, 400_000),
    done=st.lists(st.tuples(st.integers(0, 500_000), st.integers(1, 200_000)), max_size=4),
)
def test_what_is_left(first: int, runs: int, done: list[tuple[int, int]]) -> None:
    known = [range(a, a + count) for a, count in done]
    left = cut(first, runs, known)
    assert all(0 < len(piece) <= million_runs.PIECE for piece in left)
    for run in {
        first,
        first + runs - 1,
        *(end for piece in known for end in (piece.start - 1, piece.start, piece.stop)),
    }:
        wanted = first <= run < first + runs and not any(run in other for other in known)
        assert sum(run in piece for piece in left) == wanted


def test_the_command_goes_on_where_it_was(tmp_path: Path) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bench.million_runs", "--out", str(tmp_path), "--workers", "1", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)

    first = call("--runs", "40", "--graphs", "20")
    assert first.returncode == 0, first.stderr
    assert [line.partition(",")[0] for line in first.stdout.splitlines()[:2]] == [
        "consensus: runs 0 to 40",
        "search: runs 0 to 40",
    ]
    more = call("--runs", "60", "--graphs", "20", "--method", "search")
    assert more.stdout.startswith("search: runs 40 to 60, ")
    known = json.loads((tmp_path / "million_runs.json").read_text())
    assert [(piece["method"], piece["first"], piece["stop"]) for piece in known["pieces"]] == [
        ("consensus", 0, 40),
        ("search", 0, 40),
        ("search", 40, 60),
    ]
    assert "| search | 60 | 0 | 0 |" in (tmp_path / "million_runs.md").read_text()
    other = call("--runs", "60", "--graphs", "30")
    assert other.returncode == 1
    assert "another --seed or --graphs" in other.stderr
