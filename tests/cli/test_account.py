"""`midst run --ledger`: runs add up, and the one past the budget is refused before anything happens."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from midst.cli import main

RUN = ["run", "--graph", "complete", "--nodes", "7", "--seed", "3", "--method", "consensus", "--c", "1"]


def midst(*args):
    return CliRunner().invoke(main, list(args))


@pytest.fixture
def book(tmp_path):
    path = str(tmp_path / "mine.ledger")
    assert midst("ledger", "new", path, "--max-runs", "2").exit_code == 0
    return path


def shown(book):
    return json.loads(midst("ledger", "show", book, "--json").stdout)


def test_runs_add_up_until_the_budget(book, tmp_path):
    for runs in (1, 2):
        assert midst(*RUN, "--ledger", book, "--ledger-node", "2").exit_code == 0
        assert shown(book)["runs"] == runs
    assert shown(book)["bits"] > 0
    saved = tmp_path / "run.npz"
    refused = midst(*RUN, "--ledger", book, "--ledger-node", "2", "--save", str(saved))
    assert refused.exit_code == 2
    assert "past the budget" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not saved.exists()
    assert shown(book)["runs"] == 2
    assert midst(*RUN, "--ledger", book, "--ledger-node", "2", "--over-budget").exit_code == 0
    assert shown(book)["runs"] == 3


def test_a_noised_run_costs_epsilon(book):
    assert midst(*RUN, "--ledger", book, "--dp", "gaussian:eps=1,delta=1e-6,bounds=-4:4").exit_code == 0
    assert shown(book)["epsilon"] == pytest.approx(1, abs=1e-3)


def test_both_methods_are_joined(book):
    bounds = [*RUN[:-4], "--bounds", "-4:4", "--over-budget", "--ledger", book, "--ledger-node", "2"]
    bits = []
    for method in ("search", "search", "consensus"):
        assert midst(*bounds, "--method", method).exit_code == 0
        told = shown(book)
        assert told["kind"] == "exact"
        assert told["excess"] == pytest.approx(told["bits"] - told["floor"])
        bits.append(told["bits"])
    assert bits[0] == bits[1] != bits[2]


def test_the_datum_of_a_list_is_the_list(book, tmp_path):
    rows = tmp_path / "rows.txt"
    run = ["run", "--graph", "ring", "--values", str(rows), "--pooled", "--method", "search", "--ledger", book]
    rows.write_text("1 2 7\n3\n5 6\n")
    assert midst(*run, "--ledger-node", "2", "--prior", "normal:4,3").exit_code == 0
    assert shown(book)["kind"] == "lower bound"
    rows.write_text("1 2 8\n3\n5 6\n")  # the others' values are no business of the datum's
    assert midst(*run, "--ledger-node", "2", "--prior", "normal:4,3").exit_code == 0
    assert "another datum" in midst(*run, "--ledger-node", "0", "--over-budget").stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ledger-node", "9"], "does not exist"),
        (["--record", "none"], "record none leaves out"),
        (["--prior", "flat"], "prior"),
        (["--prior", "uniform:-0.1,0.1"], "no mass to some of the values"),
    ],
)
def test_refusals(book, options, message):
    refused = midst(*RUN, "--ledger", book, *options)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert shown(book)["runs"] == 0


def test_another_datum(book):
    assert midst(*RUN, "--ledger", book).exit_code == 0
    refused = midst(*RUN, "--ledger", book, "--ledger-node", "1")
    assert refused.exit_code == 2
    assert "another datum" in refused.stderr


def test_vectors(book, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("1 2\n3 4\n5 6\n")
    refused = midst("run", "--graph", "ring", "--values", str(rows), "--ledger", book)
    assert refused.exit_code == 2
    assert "vectors" in refused.stderr


def test_the_budget_is_that_of_the_node_that_was_named(book, tmp_path):
    edges, values, own, other = (tmp_path / name for name in ("five.txt", "values", "own", "other"))
    edges.write_text("1 2\n2 3\n3 4\n4 5\n5 1\n")
    values.write_text("10\n20\n35\n47\n50\n")
    run = ["run", "--graph", str(edges), "--values", str(values), "--ledger", book, "--prior", "normal:30,20"]
    for wrong in ("0", "6", "anna"):
        refused = midst(*run, "--ledger-node", wrong)
        assert refused.exit_code == 2
        assert refused.stderr == f"midst: error: --ledger-node {wrong} does not exist; the nodes are 1, 2, 3, 4, 5\n"
    assert midst(*run, "--ledger-node", "3").exit_code == 0
    for path, text, code in ((own, "35", 0), (other, "47", 2)):
        path.write_text(text)
        path.chmod(0o600)
        assert midst("ledger", "check", book, "--value-file", str(path)).exit_code == code
