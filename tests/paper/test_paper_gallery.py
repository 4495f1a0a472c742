"""Figures as files: complete, mergeable, whole or not at all; and the command that makes them."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from midst.cli import COMMANDS, main, paper
from midst.errors import InputError
from midst.studies.paper import choices, gallery
from midst.studies.paper.runs import StudySettings

SMALL = ("--runs", "8", "--workers", "1")
FILES = {"fig1.png", "fig1.pdf", "fig1.csv", "fig1.claims.txt", "claims.json"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder to work in, and the command in the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(COMMANDS, "paper", ("midst.cli.paper", "Reproduce the paper's figures."))
    return tmp_path


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["paper", *map(str, arguments)])


# What is written


def test_files_of_a_figure(folder: Path) -> None:
    before = dict(mpl.rcParams)
    done = invoke("fig1", "--out", "made", *SMALL)
    assert (done.exit_code, done.stderr) == (0, "")
    assert {path.name for path in (folder / "made").iterdir()} == FILES
    with Image.open("made/fig1.png") as picture:
        assert picture.size[0] > 1000
    pdf = Path("made/fig1.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/Subtype /CIDFontType2" in pdf
    assert b"/Subtype /Type3" not in pdf  # which journals refuse
    with open("made/fig1.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["error"]) < 1e-11
    assert dict(mpl.rcParams) == before


def test_claims_as_json_are_those_in_the_file() -> None:
    done = invoke("fig1", "--json", *SMALL)
    told = json.loads(done.stdout)
    assert told == json.loads(Path("figures/claims.json").read_text())
    assert (told["fig1"]["runs"], told["fig1"]["seed"]) == (8, 1)
    for claim in told["fig1"]["claims"]:
        assert {"at", "text", "place", "value", "low", "high", "holds", "draws", "held", "cases"} == set(claim)


def test_the_report_names_claims_and_where_they_fail() -> None:
    done = invoke("fig1", *SMALL)
    first, _, second = done.stdout.partition("  beyond the paper\n")
    assert "  the paper's claims\n    holds   Sec. IV-A, Fig. 1(a): “the convergence of the entire network” (" in first
    assert "8 runs (2 at other settings) on one draw of the data and one graph, as in the paper" in first
    assert re.search(r"other draws: [\d.]+ ± [\d.]+; holds in \d+ of 24", first)
    assert "other settings of ours: c = 0.3" in first
    assert "How often only the median's holder" in second
    assert "Fig. 1" not in second  # ours has no place in the paper
    assert "FAILS" not in second
    assert done.stdout.endswith("written to figures\n")


def test_own_settings(folder: Path) -> None:
    Path("numbers.txt").write_text("5\n1\n4\n2\n3\n")
    Path("edges.txt").write_text("0 1\n1 2\n2 3\n3 4\n")
    done = invoke("fig2", "--values", "numbers.txt", "--graph", "edges.txt", "--c", "2", "--theta", "0.6", *SMALL)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Own setting: c = 2, θ = 0.6, n = 5, graph = edges.txt, data as given; θ = ½ in Algorithm 1." in done.stdout
    assert "other draws" not in done.stdout  # nothing is drawn but z(0)
    assert "settings of ours" not in done.stdout
    with open("figures/fig2.csv", newline="") as file:
        assert "x_5" in next(csv.DictReader(file))
    assert "24 draws" not in Path("figures/fig2.claims.txt").read_text()
    caption = json.loads(Path("figures/claims.json").read_text())["fig2"]["caption"]
    assert caption.startswith("Own setting: c = 2")


def test_without_a_name_an_option_is_for_the_figures_that_do_not_vary_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, StudySettings] = {}

    def make(name: str, settings: StudySettings) -> gallery.Plate:
        asked[name] = settings
        return gallery.Plate(name, settings, [], {})

    monkeypatch.setattr(gallery, "make", make)
    assert invoke("--c", "3", "--graph", "complete", "--nodes", "7", "--mu", "-3").exit_code == 0
    assert list(asked) == ["fig1", "fig2", "fig3", "fig4"]
    assert all(settings.own["n"] == 7 and settings.own["mu"] == -3 for settings in asked.values())
    assert [name for name in asked if "c" in asked[name].own] == ["fig1", "fig2", "fig3"]
    assert [name for name in asked if "graph" in asked[name].own] == ["fig1", "fig2", "fig4"]
    asked.clear()
    assert invoke("--c", "3").exit_code == 0
    assert asked["fig4"].own == {}
    asked.clear()
    assert invoke().exit_code == 0
    assert tuple(asked) == paper.FIGURES


def test_the_same_seed_writes_the_same_files(folder: Path) -> None:
    for place, workers in (("one", "1"), ("two", "2")):
        assert invoke("fig1", "--out", place, "--runs", "8", "--workers", workers).exit_code == 0
    for name in FILES:
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes(), name


def test_figures_made_later_join_those_in_the_folder() -> None:
    for name, runs in (("fig2", 2), ("fig1", 2), ("fig2", 3)):
        gallery.publish(gallery.make(name, StudySettings(runs=runs)), Path("made"))
    entries = json.loads(Path("made/claims.json").read_text())
    assert list(entries) == ["fig1", "fig2"]
    assert entries["fig2"]["runs"] == 3


def test_a_figure_that_cannot_be_drawn_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery.fig1, "draw", lambda data: 1 / 0)
    assert invoke("fig1", *SMALL).exit_code == 1
    assert not Path("figures").exists()


# What is refused


REFUSALS: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown figure": (("fig9",), "unknown figure 'fig9'; the figures are fig1, fig2, fig3, fig4, beyond"),
    "one of two unknown": (("fig1", "tables"), "unknown figure 'tables'; the figures are"),
    "no runs": (("--runs", "0"), "runs must be a whole number of at least 2"),
    "negative runs": (("--runs", "-5"), "runs must be a whole number of at least 2"),
    "runs in words": (("--runs", "many"), "'many' is not a valid integer"),
    "negative seed": (("--seed", "-1"), "seed must be a whole number of at least 0"),
    "values of other length": (("--values", "three", "--nodes", "5"), "3 values for 5 nodes"),
    "rows": (("fig1", "--values", "rows"), "rows has rows of several numbers; a figure needs one number a line"),
    "graph of other size": (("fig1", "--values", "three", "--graph", "edges.txt"), "edges.txt has 2 nodes, not 3"),
    "a graph for three": (("fig3", "--graph", "ring"), "--graph is not for fig3, which varies it itself"),
    "one of two varies it": (("fig3", "fig4", "--c", "3"), "--c is not for fig4, which varies it itself"),
    "beyond": (("beyond", "--mu", "1"), "--mu is not for beyond, which varies it itself; leave one of them out"),
    "no c": (("fig3", "--c", "0"), "c must be positive"),
    "theta": (("--theta", "1"), "theta = 1 does not converge"),
    "sigma": (("--sigma", "-1"), "sigma must not be negative"),
    "one node": (("--nodes", "1"), "1 is not in the range"),
    "no ring": (("--nodes", "2"), "n must be at least 3"),
    "unknown graph": (("fig4", "--graph", "rign"), "unknown kind of graph 'rign'"),
    "no workers": (("--workers", "0"), "workers must be a whole number of at least 1"),
    "folder in nowhere": (("--out", "no/where"), "folder no does not exist; make it first"),
    "folder is a file": (("--out", "file"), "file is a file; give a folder"),
    "foreign claims": (("--out", "foreign"), "claims.json is not a file of claims; move it away"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "make", None)  # refused before anything is computed
    Path("file").write_text("mine")
    Path("three").write_text("1\n2\n3\n")
    Path("rows").write_text("1 2\n3 4\n5 6\n")
    Path("edges.txt").write_text("0 1\n")
    Path("foreign").mkdir()
    Path("foreign/claims.json").write_text("[]")
    before = sorted(folder.rglob("*"))
    arguments, message = REFUSALS[name]
    done = invoke(*arguments)
    assert message in done.stderr
    assert done.stderr.startswith("midst: error: ")
    assert len(done.stderr.splitlines()) == 1
    assert (done.exit_code, done.stdout) == (2, "")
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_that_cannot_be_written(made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if made:
        Path("figures").mkdir()
    monkeypatch.setattr("midst.files.os.access", lambda *_: False)  # for root everything can be written
    with pytest.raises(InputError, match="cannot be written"):
        gallery.check_folder(Path("figures"))
    done = invoke("fig1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith("cannot be written\n")


def test_missing_matplotlib_is_said_in_one_line() -> None:
    script = "import sys; sys.modules['matplotlib.axes'] = None; import midst.studies.paper.gallery"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert re.search(r"matplotlib is not installed; try: .*pip install .*\[plot\]'$", done.stderr.splitlines()[-1])


# The page in the docs


def test_the_page_repeats_the_choices_and_shows_every_figure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
    table = [line for line in (choices.__doc__ or "").splitlines() if line.startswith("|")]
    assert table
    assert "\n".join(table) in page
    for name in gallery.FIGURES:
        assert f"figures/{name}.png" in page
        assert f"figures/{name}.claims.txt" in page
