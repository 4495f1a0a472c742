"""Joint noise over a network: refused where it keeps no promise, the same answer for all, never drawn a second time."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from memory_network import MemoryNetwork, charter_of
from processes import Network, Shelf, check_journals, network, nobody_calls, port_of, read_journal, rounds_done, until

from midst import graphs
from midst.cli import main
from midst.cli.node_account import open_node_account
from midst.cli.noise import settle_noise
from midst.dp import ledger as module
from midst.dp.joint import most_bits
from midst.dp.ledger import Budget, BudgetError, Ledger
from midst.errors import Aborted, InputError
from midst.explorer.live import Feed
from midst.net.answer import Answer
from midst.net.charter import make_charter
from midst.net.charter_files import parse_invitation
from midst.net.events import End, Start, moment
from midst.net.records import Inputs
from midst.protocol.noise import JointNoise, rank_error

pytestmark = pytest.mark.timeout(300)

PROMISE = JointNoise(1, 1e-6, 1)
PUBLIC: dict[str, Any] = {"method": "search", "pooled": True, "bounds": [0, 100], "resolution": 0.5, "arity": 1}
NOISE = settle_noise(PROMISE, (0, 100), 0.5, 1)
WEAK = NOISE | {"variance": "20"}


def lists(nodes: int = 4, size: int = 300, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.round(rng.normal(50, 15, size + k).clip(0, 100), 1) for k in range(nodes)]


def off(values: list[np.ndarray], answer: float) -> float:
    """How far the rank of an answer is from that of the median, as a share of all values, each rounded to 0.5."""
    keys = np.sort(np.round(np.concatenate(values) * 2))
    rank = -(-len(keys) // 2)
    first, last = np.searchsorted(keys, answer * 2, "left") + 1, np.searchsorted(keys, answer * 2, "right")
    return float(max(first - rank, rank - last, 0)) / len(keys)


def verify(net: Network, result: Path) -> Any:
    return CliRunner().invoke(main, ["verify", str(result), "--charter", str(net.charter_file), "--json"])


# Real processes


def test_everybody_has_the_same_answer_near_the_right_one(tmp_path: Path) -> None:
    values, result = lists(), tmp_path / "result.json"
    with network(tmp_path, graphs.ring(4), values, noise=NOISE, **PUBLIC) as net:
        ends = net.run("--out", str(result), "--dp", "eps=1,delta=1e-6,colluders=1")
        (value,) = {end.answer["value"] for end in ends}
        assert value * 2 == round(value * 2), "a point of the grid"
        told = ends[0].answer
        assert told["rank_error"] == rank_error(Fraction(NOISE["variance"]) * 4 / 3, 1, sum(map(len, values)))
        assert off(values, value) < 4 * told["rank_error"] < 0.05
        assert (told["certified"], told["bound"], "counts" in told, told["probes"]) == (False, None, False, 8)
        checked = json.loads(verify(net, result).stdout)
        assert (checked["value"], checked["rank_error"]) == (value, told["rank_error"])
        plain = json.loads(result.read_text())
        assert all(len(totals) == 1 for totals in plain["totals"])
        result.write_text(json.dumps(plain | {"value": value + 0.5}))
        assert "another value than the file" in verify(net, result).stderr
        plain["totals"][3][0] = str(int(plain["totals"][3][0]) + 1)
        result.write_text(json.dumps(plain))
        assert "not on this answer" in verify(net, result).stderr


def test_killed_and_started_again_it_adds_the_same_noise(tmp_path: Path) -> None:
    """Else its neighbours would hold two statements of one step, and the session would be over."""
    settings = PUBLIC | {"resolution": 2**-20, "noise": settle_noise(PROMISE, (0, 100), 2**-20, 1)}
    with network(tmp_path, graphs.ring(4), lists(), **settings) as net, Shelf(net) as shelf:
        others = [net.start(name) for name in net.charter.names[1:]]
        ends = []
        for step in (2, 9):
            first = net.start("p0")
            until(lambda step=step: rounds_done(net.journal("p0")) >= step)  # type: ignore[misc]
            ends.append(rounds_done(net.journal("p0")))
            first.kill()
        assert ends[0] >= 2
        everybody = [net.start("p0").wait(), *(one.wait() for one in others)]
        assert len({end.answer["value"] for end in everybody}) == 1
        assert everybody[0].answer["probes"] == 27
    assert check_journals(net, shelf) > 0


def test_too_few_values_are_noticed_before_anything_is_asked(tmp_path: Path) -> None:
    with network(tmp_path, graphs.ring(4), lists(size=20), noise=NOISE, **PUBLIC) as net:
        book = tmp_path / "pay.json"
        Ledger.new(book)
        first = net.start("p0", "--ledger", str(book))
        ends = [one.wait() for one in [first, *(net.start(name) for name in net.charter.names[1:])]]
        assert {end.code for end in ends} == {4}
        assert all("nothing was asked: with so much noise the rank of an answer among 86 values" in e.err for e in ends)
        assert all("values or more" in end.err for end in ends)
        assert sum(isinstance(each, Inputs) for each in read_journal(net.journal("p0"))) == 1
        for _ in range(2):
            told = Ledger.open(book)
            assert (told.sessions[0].state, told.totals().epsilon) == ("silent", 0)
            assert net.start("p0", "--ledger", str(book)).wait().code == 4


@pytest.mark.parametrize(
    ("noise", "options", "words"),
    [
        (WEAK, (), "noise: noise of variance 20 keeps to epsilon"),
        (WEAK, ("--dp", "eps=20,delta=1e-6"), "noise: noise of variance 20 keeps to epsilon"),
        (NOISE, ("--dp", "eps=0.5,delta=1e-6"), "promises less, eps=1.0,delta=1e-06,colluders=1: a larger epsilon"),
        (NOISE, ("--dp", "eps=1,delta=1e-7"), "a larger delta; agree on another charter"),
        (NOISE, ("--dp", "eps=1,delta=1e-6,colluders=2"), "fewer colluders"),
        (NOISE, ("--dp", "eps=1,delta=1e-6,values=5"), "fewer values together"),
        (NOISE, ("--dp", "eps=1"), "joint noise takes eps and delta"),
        (None, ("--dp", "eps=1,delta=1e-6"), "this charter has no noise, and its answers are exact"),
    ],
)
def test_nobody_joins_a_charter_that_promises_too_little(
    tmp_path: Path, noise: Any, options: tuple[str, ...], words: str
) -> None:
    with (
        network(tmp_path, graphs.path(3), lists(3), noise=noise, **PUBLIC) as net,
        nobody_calls(port_of(net.charter, 1)),
    ):
        done = CliRunner().invoke(main, net.arguments("p0", *options))
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert words in done.stderr
        assert net.written() == []


def test_the_doctor_knows_of_noise_too(tmp_path: Path) -> None:
    with network(tmp_path, graphs.path(3), lists(3), noise=NOISE, **PUBLIC) as net:
        for noise, words in ((NOISE, "ok: noise: (1, 1e-06)-DP"), (WEAK, "noise of variance 20 keeps to epsilon")):
            plain = msgspec.to_builtins(net.charter) | {"noise": noise}
            net.charter_file.write_text(make_charter(plain, "charter").to_toml())
            line = ["doctor", "--charter", net.charter_file, "--name", "p0", "--key", net.key("p0"), "--wait", "0.1"]
            told = CliRunner().invoke(main, list(map(str, line)))
            assert words in told.stdout
            assert "verify" not in told.stdout


# The charter


def agreed(**others: Any) -> Any:
    return charter_of(**({"n": 4, "noise": NOISE} | PUBLIC | others))


def test_the_charter_holds_the_promise_and_the_variance() -> None:
    charter = agreed(noise=NOISE | {"colluders": 2, "values": 3})
    assert parse_invitation(charter.to_toml(), "charter").charter.digest == charter.digest
    assert charter.noise.promise == JointNoise(1, 1e-6, 2, 3)
    assert not charter.is_verified
    rules = charter.agreement().make_rules([100, 200, 300, 401])
    assert rules.variance == Fraction(NOISE["variance"])
    assert (rules.share, rules.added) == (rules.variance / 2, rules.variance * 2)
    assert (rules.total, rules.ranks) == (1001, (501,))
    assert (rules.probes, rules.most_numbers) == (8, 1)
    assert charter.longest_statement == 5 + 32 + 8
    assert charter.refusal([100, 200, 300, 401]) is None
    assert agreed(arity=3).longest_statement == 5 + 32 + 24
    for change in ({"variance": "20"}, {"colluders": 0}, {"delta": 1e-7}):
        assert agreed(noise=NOISE | change).digest != charter.digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verify": True}, "verify: a vote with noise on it cannot be proved; leave it out"),
        ({"method": "consensus", "pooled": False, "arity": 3, "resolution": None}, "noise is for method"),
        ({"statistics": ["median"], "pooled": False}, "statistics: with noise one quantile is found"),
        ({"coordinates": 2, "pooled": False}, "coordinates: with noise values are single numbers"),
        ({"resolution": None}, "bounds, resolution: noise needs both"),
        ({"bounds": None}, "bounds, resolution: noise needs both"),
        ({"spacing": "value"}, "spacing: with noise thresholds are placed by key"),
        (
            {"definition": "averaged_inverted_cdf"},
            "no mean, no midpoint",
        ),
        ({"definition": "any"}, "try definition inverted_cdf"),
        ({"objective": "mean"}, "is found: no mean, no midpoint"),
        ({"pooled": False}, "noise: with so much noise the rank of an answer among 4 values would be off by half"),
        ({"noise": NOISE | {"colluders": 4}}, "noise: colluders must be from 0 to 3"),
        ({"noise": NOISE | {"epsilon": 0}}, "noise: epsilon must be a positive number"),
        ({"noise": NOISE | {"delta": 1}}, "noise: delta must lie strictly between 0 and 1"),
        ({"noise": NOISE | {"values": 0}}, "noise: values must be a whole number from 1"),
        ({"noise": NOISE | {"variance": "1/0"}}, "noise: variance must be a fraction in lowest terms"),
        ({"noise": NOISE | {"variance": "4/2"}}, "noise: variance must be a fraction in lowest terms"),
        ({"noise": NOISE | {"variance": "-3"}}, "noise: variance must be a fraction in lowest terms"),
        ({"noise": NOISE | {"variance": "1e400"}}, "noise: variance must be a fraction in lowest terms"),
        ({"noise": NOISE | {"variance": "9" * 20}}, "noise: the noise of one participant is beyond what can be drawn"),
        ({"noise": NOISE | {"sigma": 1}}, "sigma"),
        ({"noise": {"epsilon": 1, "delta": 1e-6}}, "variance"),
    ],
)
def test_what_cannot_be_with_noise_is_refused_in_words(change: dict[str, Any], words: str) -> None:
    settings = {key: value for key, value in ({"n": 4, "noise": NOISE} | PUBLIC | change).items() if value is not None}
    with pytest.raises(InputError) as refused:
        charter_of(**({"bounds": None} if "bounds" in change else {}), **settings)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_weights_are_refused() -> None:
    plain = msgspec.to_builtins(agreed())
    plain["participants"][0]["weight"] = 2
    with pytest.raises(InputError, match="weight: with noise all values count alike"):
        make_charter(plain, "charter")


# In one memory


def test_what_is_told_is_the_counts_and_the_noise_of_all(tmp_path: Path) -> None:
    """Everybody's noise, from its secret, makes of the exact counts the totals that all have signed."""
    values = lists(4, 100)
    net = MemoryNetwork(agreed(), values)
    answers = net.run()
    assert all(isinstance(each, Answer) and each.value == answers[0].value for each in answers)
    totals = [int(each[0]) for each in answers[0].transcript.totals]
    assert off(values, answers[0].value[0]) < 0.15
    keys = np.sort(np.concatenate([net.charter.keys.keys(own) for own in values]))
    state = net.peers[0].exchange.search.begin(net.peers[0].exchange.search.rules)
    noise = []
    for total in totals:
        exact = int(np.searchsorted(keys, np.uint64(state.question[0].edges[-1]), "right"))
        noise.append((total - exact + 2**63) % 2**64 - 2**63)
        state = state.fold([total])
    spread = float(Fraction(NOISE["variance"]) * 4 / 3) ** 0.5
    assert 0.3 * spread < np.std(noise) < 3 * spread


def test_no_answer_contradicts_anybody() -> None:
    for seed in range(5):
        answers = MemoryNetwork(agreed(), lists(4, 60), seed=seed).run()
        assert not any(each.contradicted for each in answers)


def test_a_page_shows_brackets_and_claims_no_proof() -> None:
    net = MemoryNetwork(agreed(), lists(4, 60))
    peer = net.peers[0]
    while peer.exchange.search is None:
        net.pass_time()
        net.deliver(most=5)
    searching = moment(peer).search
    assert searching is not None
    assert searching.brackets == [(-0.5, 100.0, None)], "how many are inside, nobody knows"
    answer, feed = net.run()[0], Feed()
    feed.publish(Start(net.charter.names, [], "median", "search", all=True, own=None))
    feed.publish(moment(peer))
    feed.publish(End(0, answer))
    _, news = feed.since(0)
    assert news["ends"][0]["text"].startswith("nothing proves it; ")
    assert news["ends"][0]["proved"] is False
    assert news["search"]["rows"][0]["totals"] == (None,)


# The ledger


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_WORK", 2)
    Ledger.new(tmp_path / "pay.json", Budget(max_epsilon=2, delta=1e-5))
    return tmp_path / "pay.json"


def test_a_session_with_noise_costs_its_epsilon(book: Path) -> None:
    values = lists(4, 60)
    for session in ("one", "two"):
        net = MemoryNetwork(agreed(session=session), values)
        account = open_node_account(book, net.setups[0], None, despite=False)
        before = Ledger.open(book).totals()
        account.close(net.run()[0], net.peers[0].exchange)
        assert Ledger.open(book).totals() == before, "it was known before"
    totals = Ledger.open(book).totals()
    assert (totals.runs, totals.dp_runs, totals.epsilon, totals.kind) == (2, 2, 2.0, "upper bound")
    assert totals.bits == pytest.approx(2 * 60 * most_bits(Fraction(NOISE["variance"]), 8, 1))
    net = MemoryNetwork(agreed(session="three"), values)
    with pytest.raises(BudgetError, match="epsilon 3 of 2"):
        open_node_account(book, net.setups[0], None, despite=False)
    exact = MemoryNetwork(agreed(session="four", noise=None), values)
    with pytest.raises(BudgetError, match="epsilon inf of 2"):
        open_node_account(book, exact.setups[0], None, despite=False)


def test_an_aborted_one_costs_as_much_after_the_first_question_and_nothing_before(book: Path) -> None:
    gone = Aborted("waited", "ben", "ann waited 60 s for ben")
    net = MemoryNetwork(agreed(), lists(4, 60))
    account = open_node_account(book, net.setups[0], None, despite=False)
    assert Ledger.open(book).totals().epsilon == 1, "one that was begun may have told all"
    exchange = net.peers[0].exchange
    account.close(gone, exchange)
    told = Ledger.open(book)
    assert (told.sessions[0].state, told.totals().epsilon, told.totals().bits) == ("silent", 0, 0)
    account = open_node_account(book, net.setups[0], None, despite=False)
    told = Ledger.open(book)
    assert ([one.state for one in told.sessions], told.totals().epsilon) == (["begun"], 1), "taken up, it may tell all"
    while exchange.search is None:
        net.pass_time()
        net.deliver(most=5)
    account.close(gone, exchange)
    told = Ledger.open(book)
    assert (told.sessions[0].state, told.totals().epsilon) == ("aborted", 1)


def test_deltas_add_up_too(book: Path, tmp_path: Path) -> None:
    Ledger.new(tmp_path / "small.json", Budget(delta=1e-6))
    values = lists(4, 60)
    for session, epsilon in (("one", 1.0), ("two", float("inf"))):
        net = MemoryNetwork(agreed(session=session), values)
        open_node_account(tmp_path / "small.json", net.setups[0], None, despite=False)
        assert Ledger.open(tmp_path / "small.json").totals().epsilon == epsilon
    shown = CliRunner().invoke(main, ["ledger", "show", str(tmp_path / "small.json")]).stdout
    assert "no bound: the deltas of the runs come to more than 1e-06" in shown
    charter, value = tmp_path / "charter.toml", tmp_path / "value.txt"
    charter.write_text(agreed(session="three").to_toml())
    value.touch(mode=0o600)
    value.write_text(" ".join(map(repr, values[0].tolist())) + "\n")
    line = ["ledger", "check", str(book), "--value-file", str(value), "--charter", str(charter)]
    assert CliRunner().invoke(main, line).exit_code == 0
