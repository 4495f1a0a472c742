"""The comparison with MPyC still runs, with three parties."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_midst_and_mpyc_find_the_same_median_and_are_put_side_by_side(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.mpyc", "--quick", "--python", sys.executable, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]  # it compares all answers with the right one itself
    rows = json.loads((tmp_path / "mpyc.json").read_text())["rows"]
    theirs = [f"MPyC, {numbers}" for numbers in ("16 bits", "32 bits", "fixed point")]
    assert [row["by"] for row in rows] == [*theirs, "midst, complete graph", "midst, ring"]
    assert all(0 < row["seconds"] < row["whole"] and row["bytes sent"] > 0 for row in rows)
    assert (tmp_path / "mpyc.md").read_text() in done.stdout
