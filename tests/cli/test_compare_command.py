"""`midst compare`: the whole of it through the command, files, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from midst.cli import Commands, main
from midst.cli.compare import command
from midst.studies.compare import COLUMNS
from midst.studies.contenders import METHODS

FEW = ("--graphs", "ring", "--nodes", "5", "--runs", "1", "--methods", "search-3,subgradient", "--workers", "1")


def call(*arguments):
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_quick_and_json():
    done = subprocess.run(
        [sys.executable, "-m", "midst", "compare", "--quick", "--json"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [tuple(row) for row in rows] == [COLUMNS] * 4 * len(METHODS)
    for row in rows:
        assert (None in [row[name] for name in COLUMNS[3:11]]) == bool(row["why"])
    assert {row["method"] for row in rows if row["bits"] is not None} >= {"consensus", "search-1", "subgradient"}


def test_a_table_and_words():
    done = call(*FEW)
    assert done.exit_code == 0
    assert "ring, 5 participants; the answer alone gives " in done.output
    assert "Who listens hears nobody's value by search-3." in done.output


def test_the_same_values_for_every_graph_and_seed_for_seed():
    def floors(*more):
        rows = json.loads(
            call("--nodes", "5", "--runs", "1", "--methods", "search-1", "--json", "--jobs", "1", *more).output
        )
        return [row["floor"] for row in rows]

    ring, complete = floors("--graphs", "ring,complete")
    assert ring == complete
    assert floors("--graphs", "ring") == [ring] != floors("--graphs", "ring", "--seed", "1")


def test_options_of_a_graph_have_commas_too():
    done = call(
        "--graphs", "ws:k=4,p=0.1,ring", "--nodes", "9", "--runs", "1", "--methods", "search-1", "--json", "--jobs", "1"
    )
    assert [row["graph"] for row in json.loads(done.output)] == ["ws", "ring"]


def test_files(tmp_path):
    pytest.importorskip("matplotlib")
    names = ("t.csv", "t.json", "t.md", "t.png")
    done = call(*FEW, *(word for name in names for word in ("--out", str(tmp_path / name))))
    assert done.exit_code == 0
    assert all((tmp_path / name).stat().st_size > 100 for name in names)
    assert [tuple(row) for row in json.loads((tmp_path / "t.json").read_text())] == [COLUMNS] * 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nodes", "five"), "--nodes must be whole numbers"),
        (("--nodes", ","), "at least one kind and one size"),
        (("--methods", "serch-3"), "did you mean search-3"),
        (("--graphs", "rign"), "did you mean ring"),
        (("--out", "table.txt"), "ends in .csv"),
        (("--out", "nowhere/at/all.csv"), "nowhere"),
    ],
)
def test_refused_in_one_line(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["compare", *arguments])
    assert isinstance(main, Commands)
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
