"""midst run --method both: the same problem by both methods, reported and drawn side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from midst.cli import main

NINE = ("run", "--graph", "ring", "--nodes", "9", "--seed", "3", "--bounds", "-5:5")


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, [*NINE, *words])


def test_both_are_the_runs_of_each() -> None:
    both = json.loads(invoke("--method", "both", "--json").stdout)
    assert list(both) == ["search", "consensus"]
    for name, told in both.items():
        assert told == json.loads(invoke("--method", name, "--json").stdout)
    assert both["consensus"]["value"] == both["search"]["value"]
    assert both["search"]["exposed"] == []


def test_parameters_of_either_are_taken() -> None:
    both = json.loads(invoke("--method", "both", "--arity", "1", "--c", "2", "--json").stdout)
    assert both["search"]["parameters"]["arity"] == 1
    assert both["consensus"]["parameters"]["c"] == 2


def test_the_report_names_the_methods_and_does_not_advertise() -> None:
    done = invoke("--method", "both")
    assert done.exit_code == 0
    assert done.stdout.index("method  search") < done.stdout.index("method  consensus")
    assert "--method search exposes nobody" not in done.stdout
    assert "--method search exposes nobody" in invoke("--method", "consensus").stdout


@pytest.mark.parametrize("more", [(), ("--show-values",)])
def test_they_are_drawn_side_by_side(tmp_path: Path, more: tuple[str, ...]) -> None:
    picture = tmp_path / "both.svg"
    done = invoke("--method", "both", "--plot", str(picture), *more)
    assert done.exit_code == 0
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--save", "run.npz"), "are of one run"),
        (("--ledger", "ledger.json"), "are of one run"),
        (("--objective", "mean", "--plot", "both.png"), "cannot judge a masked sum yet"),
    ],
)
def test_what_cannot_be_done_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("--method", "both", *words)
    assert done.exit_code == 2
    assert why in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_proof_by_one_the_other_is_still_told() -> None:
    done = invoke("--method", "both", "--limit", "2", "--json")
    assert done.exit_code == 3
    both = json.loads(done.stdout)
    assert (both["consensus"]["certified"], both["search"]["certified"]) == (False, True)
