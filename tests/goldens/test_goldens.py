"""midst does what is written down here; `make_goldens.py` says what that is, and how to write it anew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from make_goldens import AUDITED, HERE, PARTS, TRACES, plain, record_trace

TOLERANCE = 1e-9
BLOCK = 20  # traces in a test


def read(part: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((HERE / f"{part}.json").read_text(encoding="utf-8"))
    return found


def differences(found: Any, golden: Any, place: str = "") -> list[str]:
    """Name the places where two differ: floats by more than the tolerance, anything else at all."""
    if isinstance(golden, float) and isinstance(found, float | int):
        return [] if abs(found - golden) <= TOLERANCE * max(1.0, abs(golden)) else [f"{place}: {found} for {golden}"]
    if isinstance(golden, dict) and isinstance(found, dict):
        missing = [f"{place}.{name}: only one has it" for name in golden.keys() ^ found.keys()]
        return missing + [
            each
            for name in golden.keys() & found.keys()
            for each in differences(found[name], golden[name], f"{place}.{name}")
        ]
    if isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        pairs = enumerate(zip(found, golden, strict=True))
        return [each for k, (one, other) in pairs for each in differences(one, other, f"{place}[{k}]")]
    return [] if found == golden else [f"{place}: {found} for {golden}"]


@pytest.mark.parametrize("first", range(0, TRACES, BLOCK))
def test_traces(first: int) -> None:
    found = [plain(record_trace(k)) for k in range(first, first + BLOCK)]
    assert differences(found, read("traces")[first : first + BLOCK]) == []


@pytest.mark.parametrize("part", [part for part in PARTS if part != "traces"])
def test_parts(part: str) -> None:
    found = json.loads(json.dumps([plain(row) for row in PARTS[part]()]))
    assert differences(found, read(part)) == []


def test_what_is_written_down_is_worth_it() -> None:
    """A golden that froze refusals, or runs that never end, would hold nothing."""
    runs = read("traces")
    assert len({row["run"] for row in runs}) > 0.8 * TRACES
    assert sum(row["certified"] for row in runs) > 0.7 * TRACES
    assert sum("bits" in row for row in read("audits")) > 2 * len(AUDITED)
    ends = [end for row in read("sessions") for end in row["ends"]]
    assert sum(isinstance(end, list) for end in ends) > 0.8 * len(ends)


def test_a_difference_is_found() -> None:
    assert differences([1.0, {"a": 2.0}], [1.0 + 1e-12, {"a": 2.0}]) == []
    assert differences([1.0, {"a": 2.0 + 1e-6}], [1.0, {"a": 2.0}]) == ["[1].a: 2.000001 for 2.0"]
    assert differences([1], [1, 2]) != []
    assert differences({"a": 1}, {"b": 1}) != []
