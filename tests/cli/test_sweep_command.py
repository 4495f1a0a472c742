"""The command: one line in, one line out, exit code 2 for bad input."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from midst.cli import Commands
from midst.cli.sweep import command

SPEC = 'runs = 2\n[grid]\ngraph = ["ring", "complete"]\nn = 5\n'


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return str(path)


def call(*arguments):
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_lines(spec, tmp_path):
    out = str(tmp_path / "out")
    result = call(spec, "--out", out)
    assert result.exit_code == 0
    assert result.stdout.startswith("2 cells, 4 runs, 4 of them proved: ")
    result = call(spec, "--out", out, "--resume")
    assert "2 cells (2 done before)" in result.stdout


def test_json(spec, tmp_path):
    report = json.loads(call(spec, "--out", str(tmp_path / "out"), "--json").stdout)
    assert report["cells"] == 2
    assert report["out"] == str(tmp_path / "out")
    assert "runs.csv" in report["tables"]


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_on_a_terminal(spec, tmp_path, monkeypatch, capsys, terminal):
    """And nowhere else: what is written to a file has no bars in it."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    options = {"workers": 1, "cluster": None, "resume": False, "plot": None, "width": None, "as_json": False}
    command.callback(spec=spec, out=tmp_path / "out", **options)
    told = capsys.readouterr()
    assert ("2/2" in told.err) == terminal, told.err
    assert told.out.startswith("2 cells, 4 runs")


def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "spec.toml").write_text("[grid]\nrgaph = 'ring'\n")
    monkeypatch.setattr("midst.cli.COMMANDS", {"sweep": ("midst.cli.sweep", "Sweep.")})
    with pytest.raises(SystemExit) as stop:
        Commands("midst").main(["sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean graph?" in error
    assert not (tmp_path / "out").exists()
