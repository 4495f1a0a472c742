"""`midst node --ledger`: what a participant's sessions told together, and which it is kept out of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from memory_network import MemoryNetwork, charter_of
from processes import Network, network, nobody_calls, port_of, until

import midst
from midst import graphs
from midst.cli import main
from midst.cli.node_account import open_node_account
from midst.dp import ledger as module
from midst.dp.ledger import Ledger, entry_of
from midst.errors import Aborted, InputError
from midst.net.answer import Answer
from midst.net.charter import Charter, make_charter
from midst.privacy.audit import audit
from midst.privacy.priors import Uniform

VALUES = [4.25, -3.0, 0.5, 1.75, -7.5]
SEARCH: dict[str, Any] = {"method": "search", "n": 5}
GONE = Aborted("waited", "ben", "ann waited 60 s for ben")


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WORK", 2)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    Ledger.new(tmp_path / "pay.json")
    return tmp_path / "pay.json"


def shown(book: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(CliRunner().invoke(main, ["ledger", "show", str(book), "--json"]).stdout)
    return told


def states(book: Path) -> list[str]:
    return [one.state for one in Ledger.open(book).sessions]


# What is entered


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("settings", [{}, {"resolution": 0.25}, {"objective": "maximum"}, {"arity": 1}])
def test_a_search_counts_as_its_simulation_is_audited(book: Path, settings: dict[str, Any]) -> None:
    net = MemoryNetwork(charter_of(**SEARCH, **settings), VALUES)
    account = open_node_account(book, net.setups[0], None, despite=False)
    assert states(book) == ["begun"]
    answer = net.run()[0]
    account.close(answer, net.peers[0].exchange)
    charter = net.charter
    problem = midst.Problem(
        charter.graph, VALUES, objective=charter.goal, bounds=(-10, 10), resolution=charter.resolution
    )
    trace = midst.solve(problem, midst.Search(charter.arity), record="audit").trace
    prior = Uniform(-10, 10)
    told = Ledger.open(book, VALUES[0])
    assert states(book) == ["over"]
    assert told.totals().kind == "exact"
    assert told.totals().bits == pytest.approx(audit(trace, None, prior).bits[0])
    [kept], [simulated] = told.entries[0].told, entry_of(trace, charter.names[0], prior).told
    assert kept.published is not None
    assert simulated.published is not None
    assert kept.published.cells == simulated.published.cells
    assert (kept.published.bracket, kept.published.answer) == (simulated.published.bracket, simulated.published.answer)


@pytest.mark.usefixtures("cheap")
def test_lists_and_vectors_are_joined_too(book: Path) -> None:
    """A session again on the same values tells nothing new."""
    for name, settings, values in (
        ("lists", {"pooled": True}, [[4.25, 1.0], [-3.0], [0.5, 6.0, 2.0], [1.75], [-7.5, 9.0]]),
        ("vectors", {"coordinates": 2}, [[4.25, 1.0], [-3.0, 2.0], [0.5, 6.0], [1.75, 2.5], [-7.5, 9.0]]),
    ):
        path, bits = book.with_name(name), []
        Ledger.new(path)
        for session in ("one", "two"):
            net = MemoryNetwork(charter_of(**SEARCH, session=session, **settings), values)
            account = open_node_account(path, net.setups[0], None, despite=False)
            account.close(net.run()[0], net.peers[0].exchange)
            bits.append(Ledger.open(path).totals().bits)
        assert bits[0] == bits[1] > 0
        assert Ledger.open(path).totals().kind in ("exact", "lower bound")


@pytest.mark.usefixtures("cheap")
def test_an_answer_read_again_from_the_journal_is_the_same_entry(book: Path) -> None:
    """As when the process was killed after the end, before it could write the ledger."""
    net = MemoryNetwork(charter_of(**SEARCH), VALUES)
    account = open_node_account(book, net.setups[0], None, despite=False)
    net.run()
    again = net.start(0)
    assert isinstance(again, Answer)
    account.close(again, None)
    totals = Ledger.open(book).totals()
    assert (totals.runs, totals.kind) == (1, "exact")
    assert totals.bits > 0


@pytest.mark.usefixtures("cheap")
def test_an_aborted_search_counts_with_what_was_told(book: Path) -> None:
    net = MemoryNetwork(charter_of(**SEARCH, arity=1, spacing="key"), VALUES)
    account = open_node_account(book, net.setups[0], None, despite=False)
    exchange = net.peers[0].exchange
    account.close(GONE, exchange)
    assert (states(book), Ledger.open(book).totals().kind) == (["silent"], "exact")
    while exchange.search is None or exchange.search.steps < 3:
        net.pass_time()
        net.deliver(most=20)
    account.close(GONE, exchange)
    totals = Ledger.open(book).totals()
    assert (states(book), totals.kind, totals.runs) == (["aborted"], "indication", 1)
    assert totals.bits > 0
    account.close(net.run()[0], exchange)
    assert (states(book), Ledger.open(book).totals().kind) == (["over"], "exact"), "taken up again, it is the same"


@pytest.mark.usefixtures("cheap")
def test_of_an_iteration_it_is_known_whether_the_value_was_sent(book: Path) -> None:
    net = MemoryNetwork(charter_of(n=5, method="consensus", c=1.0), VALUES)
    answers = net.run()
    bits = []
    for i, answer in enumerate(answers):
        path = book.with_name(f"{i}.json")
        Ledger.new(path)
        account = open_node_account(path, net.setups[i], None, despite=False)
        account.close(answer, None)
        totals = Ledger.open(path).totals()
        assert (totals.exposed_runs, totals.kind) == (int(answer.exposed), "indication")
        assert (totals.bits == pytest.approx(np.log2(1000))) == answer.exposed
        bits.append(totals.bits)
    assert {answer.exposed for answer in answers} == {True, False}
    assert min(bits) > 0, "what the search at the end told"


@pytest.mark.usefixtures("cheap")
def test_a_prior_that_excludes_the_value_is_refused_and_nothing_entered(book: Path) -> None:
    setup = MemoryNetwork(charter_of(**SEARCH), VALUES).setups[0]
    with pytest.raises(InputError, match="--prior gives no mass to your value; give a wider one"):
        open_node_account(book, setup, "uniform:0,1", despite=False)
    assert states(book) == []


@pytest.mark.usefixtures("cheap")
def test_check_asks_about_a_charter(book: Path, tmp_path: Path) -> None:
    value, charter = tmp_path / "value.txt", tmp_path / "charter.toml"
    value.write_text("4.25\n")
    value.chmod(0o600)

    def check(planned: Charter, *more: str) -> Any:
        charter.write_text(planned.to_toml())
        line = ["ledger", "check", str(book), "--value-file", str(value), "--charter", str(charter), *more]
        return CliRunner().invoke(main, line)

    net = MemoryNetwork(charter_of(**SEARCH), VALUES)
    open_node_account(book, net.setups[0], None, despite=False)
    before = book.read_bytes()
    assert check(net.charter).exit_code == 0
    near = check(charter_of(method="search", n=4, session="again"))
    assert near.exit_code == 2
    assert "again differs from s (never heard of again) by one participant" in near.stderr
    assert "give one of them" in check(net.charter, "--dp", "laplace:eps=1,bounds=0:1").stderr
    value.write_text("4.5\n")
    assert "another value" in check(net.charter).stderr
    assert book.read_bytes() == before


# Real processes


def without(net: Network, name: str, session: str) -> Network:
    """The same participants but for one, in a session of their own."""
    plain = msgspec.to_builtins(net.charter)
    kept = [k for k, one in enumerate(net.charter.names) if one != name]
    plain["participants"] = [one for one in plain["participants"] if one["name"] != name]
    plain["edges"] = [pair for pair in plain["edges"] if name not in pair]
    charter = make_charter(plain | {"session": session}, "charter")
    fewer = replace(
        net, charter=charter, values=[net.values[k] for k in kept], listening=tuple(net.listening[k] for k in kept)
    )
    fewer.charter_file.write_text(charter.to_toml())
    return fewer


def run(net: Network, *options: str) -> Any:
    """Everybody, the first of them with options; its outcome."""
    first = net.start("p0", *options)
    others = [net.start(name) for name in net.charter.names[1:]]
    assert all(one.wait().code == 0 for one in others)
    return first.wait()


def test_again_without_one_is_refused_before_anything_is_sent(tmp_path: Path, book: Path) -> None:
    graph, values = graphs.complete(4), [12.5, 40.0, 61.25, 77.0]
    with network(tmp_path / "net", graph, values, method="search", deadlines={"linger": 2}) as net:
        assert run(net, "--ledger", str(book)).code == 0
        told = shown(book)
        assert (told["runs"], told["kind"], [one["state"] for one in told["sessions"]]) == (1, "exact", ["over"])
        assert net.start("p0", "--ledger", str(book)).wait().code == 0, "the same session again"
        assert shown(book) == told
        fewer = without(net, "p3", "s2")
        with nobody_calls(port_of(net.charter, 1)):
            end = fewer.start("p0", "--ledger", str(book)).wait()
        assert (end.code, end.out, end.err.count("\n")) == (2, "", 1)
        assert "session s2 differs from s1 (over) by one participant: both together tell about them" in end.err
        assert not fewer.journal("p0").exists(), "nothing was drawn"
        assert shown(book) == told
        assert run(fewer, "--ledger", str(book), "--despite-ledger").code == 0
        told = shown(book)
        assert (told["runs"], told["kind"], [one["name"] for one in told["sessions"]]) == (
            2,
            "indication",
            ["s1", "s2"],
        )


def test_a_session_that_was_killed_or_aborted_counts(tmp_path: Path, book: Path) -> None:
    graph, values = graphs.complete(4), [12.5, 40.0, 61.25, 77.0]
    deadlines = {"start": 1.5, "linger": 2}
    with network(tmp_path / "net", graph, values, method="search", deadlines=deadlines) as net:
        alone = net.start("p0", "--ledger", str(book))
        until(lambda: net.journal("p0").exists())
        alone.kill()
        assert [one["state"] for one in shown(book)["sessions"]] == ["begun"]
        fewer = without(net, "p3", "s2")
        assert fewer.start("p0", "--ledger", str(book)).wait().code == 2
        net.charter_file.write_text(net.charter.to_toml())
        end = net.start("p0", "--ledger", str(book)).wait()
        assert end.code == 4, "nobody came"
        told = shown(book)
        assert (told["runs"], [one["state"] for one in told["sessions"]]) == (1, ["silent"])
        without(net, "p3", "s2")
        end = fewer.start("p0", "--ledger", str(book)).wait()
        assert end.code == 2
        assert "differs from s1 (aborted before your value counted) by one participant" in end.err


def test_options_of_the_ledger_need_one(tmp_path: Path) -> None:
    with network(tmp_path, graphs.complete(3), [1.0, 2.0, 3.0], method="search") as net:
        end = net.start("p0", "--despite-ledger").wait()
        assert end.code == 2
        assert "are about --ledger" in end.err
