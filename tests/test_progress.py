"""What is shown while work goes on: in a real notebook's kernel too, which has no widgets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import midst
from midst import graphs
from midst.progress import tell, watch_run, watch_tasks

CELL = """
import numpy as np
import midst, midst.progress, midst.solving
from midst.studies.sweep import run_sweep
from midst.studies.sweep.spec import parse_spec
midst.progress._BETWEEN = midst.solving._BETWEEN_REPORTS = 0.0
result = midst.median(np.arange(31.0), "ring", method="consensus", rng=1, progress=True)
run_sweep(parse_spec({"runs": 2, "grid": {"n": [5, 6, 7]}}), "sweep", progress=True).cells
"""


def test_a_bar_in_a_notebook(tmp_path: Path) -> None:
    """A line that is replaced in place, and goes away; nothing on stdout or stderr."""
    client = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    said: list[dict[str, Any]] = []
    source = str(Path(midst.__file__).parents[1])
    manager, kernel = client.start_new_kernel(cwd=tmp_path, env={"PYTHONPATH": source, "PATH": "/usr/bin:/bin"})
    try:
        done = kernel.execute_interactive(CELL, timeout=60, output_hook=said.append)
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
    assert done["content"]["status"] == "ok", done["content"]
    lines = [(m["msg_type"], m["content"]) for m in said if m["msg_type"] not in ("status", "execute_input")]
    assert not [content for kind, content in lines if kind == "stream"]
    shown = [content for kind, content in lines if kind in ("display_data", "update_display_data")]
    ids = list(dict.fromkeys(content["transient"]["display_id"] for content in shown))
    assert len(ids) == 2
    run, sweep = ([c["data"]["text/html"] for c in shown if c["transient"]["display_id"] == one] for one in ids)
    assert any("iteration" in line and "of the scale" in line for line in run)
    assert "searching" in run[-2]
    assert "3/3" in sweep[-2]
    assert run[-1] == sweep[-1] == ""
    assert lines[-1][1]["data"]["text/plain"] == "3"


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    midst.median(np.arange(9.0), "ring", method="consensus", rng=1, progress=True)
    midst.information(midst.Problem(graphs.ring(5), np.arange(5.0)), "search", runs=2, progress=True)
    shown = capsys.readouterr().err
    assert "searching" in shown
    assert "2/2" in shown


@pytest.mark.parametrize("progress", [True, False, None])
def test_nothing_elsewhere(progress: bool | None, capsys: pytest.CaptureFixture[str]) -> None:
    midst.median(np.arange(9.0), "ring", method="consensus", rng=1, progress=progress)
    assert capsys.readouterr() == ("", "")


def test_a_function_is_told_as_before() -> None:
    told: list[tuple[int, float | None]] = []
    result = midst.median(
        np.arange(9.0), "ring", method="consensus", rng=1, progress=lambda t, spread: told.append((t, spread))
    )
    assert told[-1] == (result.iterations - 1, None)
    for watch in (watch_tasks(told.append, "x", "runs"), watch_run(told.append)):  # type: ignore[arg-type]
        with watch as given:
            assert given == told.append


def test_words_for_an_iteration() -> None:
    said: list[str] = []
    tell(said.append, 1233, 0.25)
    tell(said.append, 1234, None)
    assert said == ["iteration 1,234, spread 2.5e-01 of the scale", "searching"]
