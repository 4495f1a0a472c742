"""An option that would be of no effect is refused, in one line, before anything is run or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from midst.cli import main

FIVE = ("run", "--graph", "ring", "--nodes", "5")
ITERATED = (*FIVE, "--method", "consensus")
FILE = ("run", "--graph", "ring", "--values", "values.txt")
LISTS = (*FILE, "--pooled", "--method", "search")
MANY = (*FILE, "--statistics", "median")
UP = ("up", "--graph", "ring", "--nodes", "3")

VAIN = {
    "a prior of no ledger": ((*FIVE, "--prior", "normal:0,1"), "--prior is for bits; give --ledger or --page too"),
    "a node of no ledger": ((*FIVE, "--ledger-node", "0"), "--ledger-node is of the account"),
    "a budget of no ledger": ((*FIVE, "--over-budget"), "--over-budget is of the account"),
    "gaps in what is drawn": ((*FIVE, "--missing", "drop"), "--missing needs a file"),
    "a column of what is drawn": ((*FIVE, "--column", "a"), "--column needs a file"),
    "a form of what is drawn": ((*FIVE, "--csv", "semicolon"), "--csv needs a file"),
    "gaps in lists": ((*LISTS, "--missing", "drop"), "--missing is of a table"),
    "a column of lists": ((*LISTS, "--column", "a"), "--column is of a table"),
    "other nodes than lists": ((*LISTS, "--nodes", "9"), "5 lists for 9 nodes"),
    "a tolerance of an exact answer": ((*ITERATED, "--tolerance", "1e-3"), "--tolerance is of --stop"),
    "the same, in both ways": (
        (*FIVE, "--method", "both", "--tolerance", "1e-3"),
        "--tolerance is of --stop",
    ),
    "a tolerance of so many steps": (
        (*ITERATED, "--iterations", "9", "--tolerance", "1e-3"),
        "--tolerance says when",
    ),
    "a stop and so many steps": ((*ITERATED, "--iterations", "9", "--stop", "exact"), "--stop says when to end"),
    "a limit of so many steps": ((*ITERATED, "--iterations", "9", "--limit", "7"), "--limit says when to end"),
    "an arity of an iteration": ((*ITERATED, "--arity", "2"), "--arity is an option of --method search"),
    "statistics of other nodes": ((*MANY, "--nodes", "9"), "5 values for 9 nodes"),
    "statistics of other files": (
        ("run", "--graph", "ring", "--values-dir", "sites", "--statistics", "mean", "--nodes", "9"),
        "3 files for 9 nodes",
    ),
    "lists of files": (
        ("run", "--graph", "ring", "--values-dir", "sites", "--statistics", "mean", "--pooled"),
        "--pooled is of --values",
    ),
    "an arity of statistics by the iteration": (
        (*MANY, "--method", "consensus", "--arity", "2"),
        "--arity is an option of --method search",
    ),
    "noise of statistics": ((*MANY, "--dp", "offset:sigma=1"), "--dp is of a single answer"),
    "an arity of a network's iteration": (
        (*UP, "--method", "consensus", "--arity", "2"),
        "--arity is no option of --method consensus",
    ),
    "proofs of a network's iteration": (
        (*UP, "--method", "consensus", "--verify"),
        "--verify is no option of --method consensus",
    ),
    "gaps in a network's draw": ((*UP, "--missing", "drop"), "--missing needs a file"),
    "statistics by a network's iteration": (
        ("up", "--graph", "ring", "--values", "values.txt", "--statistics", "mean", "--method", "consensus"),
        "--statistics are found by search",
    ),
    "workers beside a cluster": (
        ("sweep", "spec.toml", "--out", "out", "--cluster", "tcp://127.0.0.1:1", "--workers", "2"),
        "--workers is of this machine",
    ),
}


@pytest.mark.parametrize(("words", "text"), VAIN.values(), ids=VAIN)
def test_nothing_is_given_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words, text) -> None:
    monkeypatch.chdir(tmp_path)
    Path("values.txt").write_text("1\n2\n3\n4\n5\n")
    Path("spec.toml").write_text("runs = 1\n")
    Path("sites").mkdir()
    for k in range(3):
        Path(f"sites/{k}.csv").write_text("a\n1\n2\n")
    before = sorted(Path().rglob("*"))
    done = CliRunner().invoke(main, list(words))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"midst: error: {text}")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        (*FILE, "--nodes", "5", "--missing", "drop"),
        (*LISTS, "--nodes", "5"),
        (*ITERATED, "--stop", "certified", "--tolerance", "1e-3"),
        (*ITERATED, "--objective", "mean", "--tolerance", "1e-3"),
        (*ITERATED, "--limit", "100000"),
        (*ITERATED, "--iterations", "9"),
        (*MANY, "--nodes", "5", "--prior", "normal:3,2", "--arity", "2"),
    ],
)
def test_what_has_an_effect_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words) -> None:
    monkeypatch.chdir(tmp_path)
    Path("values.txt").write_text("1\n2\n3\n4\n5\n")
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 0, done.stderr
