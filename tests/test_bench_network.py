"""The network's bench still runs: the comparison with MPyC, with three parties."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_midst_and_mpyc_find_the_same_median_and_are_put_side_by_side(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.network", "--quick", "--only", "mpyc", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]  # it compares both answers with the right one itself
    rows = json.loads((tmp_path / "network.json").read_text())["parts"]["mpyc"]
    ours = [f"midst {method}, {graph}" for method in ("search", "consensus") for graph in ("complete", "ring")]
    assert [row["by"] for row in rows] == ["MPyC", *ours]
    assert all(0 < row["seconds"] < row["with start-up"] and row["bytes sent a party"] > 0 for row in rows)
    assert (tmp_path / "network.md").read_text() in done.stdout
