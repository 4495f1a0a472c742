"""A sweep that is done: its frame, its summary and its picture say what its table says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from midst import InputError
from midst.cli import main
from midst.plots.sweeps import find_axis
from midst.studies.sweep import Sweep, load_sweep, run_sweep
from midst.studies.sweep.spec import parse_spec

pd = pytest.importorskip("pandas")

GRID = {"graph": ["ring", "complete"], "n": [5, 9], "method": ["consensus", "search"], "c": [1.0, 3.0]}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return run_sweep(parse_spec({"runs": 7, "grid": GRID}), tmp_path_factory.mktemp("out") / "sweep")


def test_the_frame_is_the_table(sweep: Sweep) -> None:
    frame = sweep.to_pandas()
    assert len(frame) == sweep.runs == 7 * 12
    assert frame["certified"].dtype == bool
    assert set(frame["graph"]) == {"ring", "complete"}
    assert frame.loc[frame["method"] == "search", "c"].isna().all()
    words = (Sweep.to_pandas.__doc__ or "").split("`")[1::2]
    assert set(frame) == set(words)


def test_the_summary_is_that_of_the_frame(sweep: Sweep) -> None:
    frame = sweep.to_pandas()
    assert [cell.cell for cell in sweep.summary] == list(range(12))
    for cell in sweep.summary:
        rows = frame[frame["cell"] == cell.cell]
        assert cell.runs == len(rows) == 7
        assert cell.certified == rows["certified"].sum()
        assert cell.rounds == rows["rounds"].median()
        ranked = np.sort(rows["rounds"])
        assert (cell.fewest_rounds, cell.most_rounds) == (ranked[0], ranked[6])  # a tenth of seven, and nine tenths
        assert cell.exposed == pytest.approx((rows["exposed"] / rows["n"]).mean())
        assert cell.error == rows["error"].max()
        assert cell.bits is None


def test_only_what_differs_is_told(sweep: Sweep) -> None:
    for cell in sweep.summary:
        names = {"graph", "n", "method"} | ({"c"} if cell.settings["method"] == "consensus" else set())
        assert set(cell.settings) == names
    assert sweep.summary[0].name == "ring, n 5, consensus, c 1.0"


def test_bits_and_one_cell(tmp_path: Path) -> None:
    one = run_sweep(parse_spec({"runs": 2, "grid": {"n": 5, "adversary": "eavesdropper"}}), tmp_path / "one")
    [cell] = one.summary
    assert cell.name == "all runs"
    assert cell.bits == pytest.approx(one.to_pandas()["bits"].mean())
    assert len(one.plot().axes) == 3


def test_it_can_be_read_again(sweep: Sweep, tmp_path: Path) -> None:
    again = load_sweep(sweep.folder)
    assert (again.cells, again.runs, again.certified, again.tables) == (12, 84, sweep.certified, sweep.tables)
    assert again.computed == 0
    assert again.summary == sweep.summary
    with pytest.raises(InputError, match="holds no sweep"):
        load_sweep(tmp_path)
    (tmp_path / "manifest.json").write_bytes((sweep.folder / "manifest.json").read_bytes())
    with pytest.raises(InputError, match="was not finished"):
        load_sweep(tmp_path)


@pytest.mark.parametrize(
    ("settings", "axis"),
    [
        ([{"n": "5", "c": "1.0"}, {"n": "9", "c": "1.0"}], "n"),
        ([{"c": "1.0", "n": "5"}, {"c": "2.0", "n": "5"}, {"c": "3.0", "n": "9"}], "c"),
        ([{"c": "1.0", "method": "consensus"}, {"c": "2.0", "method": "consensus"}, {"method": "search"}], None),
        ([{"c": "chosen"}, {"c": "2.0"}], None),
        ([{"graph": "ring"}, {"graph": "complete"}], None),
        ([{}], None),
    ],
)
def test_along_what_a_sweep_is_drawn(settings: list[dict[str, str]], axis: str | None) -> None:
    assert find_axis(settings) == axis


def test_curves_are_what_the_summary_says(sweep: Sweep) -> None:
    axes = sweep.plot(of="rounds").axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert len(labels) == 6  # two graphs, by two c or a search
    for container, label in zip(axes.containers, labels, strict=True):
        line: Any = container[0]
        drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
        told = {float(cell.settings["n"]): cell.rounds for cell in sweep.summary if cell.name_without("n") == label}
        assert drawn == told


SPEC = 'runs = 3\n[grid]\ngraph = ["ring", "complete"]\nn = [5, 7]\nadversary = ["none", "eavesdropper"]\n'


def test_the_command_ends_with_a_summary_and_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(SPEC)
    command = ["sweep", "spec.toml", "--out", "out"]
    done = CliRunner().invoke(main, [*command, "--plot", "sweep.pdf", "--width", "page"])
    assert done.exit_code == 0, done.stderr
    first, *table = done.stdout.splitlines()
    assert first.startswith("8 cells, 24 runs, 24 of them proved")
    assert sum("3 of 3" in line for line in table) == 8
    assert Path("sweep.pdf").read_bytes().startswith(b"%PDF")
    told = json.loads(CliRunner().invoke(main, [*command, "--resume", "--json"]).stdout)
    assert [cell["settings"]["n"] for cell in told["summary"]] == ["5", "5", "7", "7"] * 2
    assert [cell["bits"] is None for cell in told["summary"]] == [True, False] * 4


def test_a_picture_that_cannot_be_written_stops_it_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.toml").write_text(SPEC)
    for bad in (["--plot", "sweep.gif"], ["--width", "page"]):
        done = CliRunner().invoke(main, ["sweep", "spec.toml", "--out", "out", *bad])
        assert (done.exit_code, done.stdout) == (2, "")
        assert not Path("out").exists()


def test_of_many_cells_some_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("midst.cli.sweep._MOST_SHOWN", 3)
    Path("spec.toml").write_text(SPEC)
    done = CliRunner().invoke(main, ["sweep", "spec.toml", "--out", "out"])
    assert sum("3 of 3" in line for line in done.stdout.splitlines()) == 3
    assert done.stdout.endswith("and 5 more cells; --json has all of them\n")
