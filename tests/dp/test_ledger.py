"""The ledger: what adds up, what is refused, and that the file is whole and tells no value, whatever happens."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import signal
import sqlite3
import stat
from contextlib import closing, contextmanager, suppress
from math import inf, log2, nan

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import search_trace

import midst
from midst import Adversary, InputError, graphs
from midst.cli.ledger import command
from midst.dp import ledger as module
from midst.dp.ledger import Budget, BudgetError, Entry, Ledger, entry_of
from midst.dp.mechanisms import GaussianNoise, LaplaceNoise, Offset, compose, compose_all
from midst.privacy.audit import audit, audit_together
from midst.privacy.disclosed import Disclosure
from midst.privacy.priors import Normal, Uniform
from midst.protocol.noise import JointNoise

DATUM = 48_213.75


def content_of(path):
    """The rows of the file: salt, digest, budget and checksum; and the entries, as they are written."""
    with closing(sqlite3.connect(path)) as file:
        [head] = file.execute("SELECT salt, digest, budget, checksum FROM ledger")
        return head, [text for (text,) in file.execute("SELECT content FROM entry ORDER BY number")]


def tamper(path, **changes):
    """Change what is in the file and make the checksum right again."""
    (*head, _), texts = content_of(path)
    salt, digest, budget = (
        changes.get(name, old) for name, old in zip(("salt", "digest", "budget"), head, strict=True)
    )
    texts = [changes.get("entry", lambda text: text)(text) for text in texts]
    with closing(sqlite3.connect(path)) as file, file:
        checksum = module._checksum((salt, digest, budget), texts)
        file.execute(
            "UPDATE ledger SET salt = ?, digest = ?, budget = ?, checksum = ?", (salt, digest, budget, checksum)
        )
        file.execute("DELETE FROM entry")
        file.executemany("INSERT INTO entry (content) VALUES (?)", [(text,) for text in texts])


def numbers_in(record):
    """All numbers in what JSON says."""
    if isinstance(record, dict | list):
        return [
            number for each in (record.values() if isinstance(record, dict) else record) for number in numbers_in(each)
        ]
    return [float(record)] if isinstance(record, int | float) else []


def refused(path, match, action):
    """The action is refused in one line that tells no value, and the file and its folder stay as they were."""
    before = path.read_bytes() if path.is_file() else None
    folder = set(os.listdir(path.parent))
    with pytest.raises(InputError, match=match) as refusal:
        action()
    assert "\n" not in str(refusal.value)
    assert "48213" not in str(refusal.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert set(os.listdir(path.parent)) == folder
    return refusal.value


# adding up


@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.booleans(), st.floats(0, 20)), min_size=1, max_size=8
    )
)
@settings(max_examples=25)
def test_bounds_intersect_and_bits_add_up(tmp_path_factory, runs):
    path = tmp_path_factory.mktemp("ledger") / "l.json"
    ledger = Ledger.new(path, datum=DATUM)
    for down, up, exposed, bits in runs:
        totals = ledger.add(Entry(DATUM - down, DATUM + up, exposed, bits))
    kept = [run for run in runs if not run[2]]
    assert totals.lower == (max((DATUM - run[0] for run in kept), default=-inf),)
    assert totals.upper == (min((DATUM + run[1] for run in kept), default=inf),)
    assert (totals.runs, totals.dp_runs, totals.exposed_runs) == (len(runs), 0, len(runs) - len(kept))
    assert totals.bits == pytest.approx(sum(run[3] for run in runs))
    assert totals.epsilon == inf
    again = Ledger.open(path, DATUM)
    assert again.totals() == totals
    assert again.entries == ledger.entries
    assert DATUM not in numbers_in([json.loads(text) for text in content_of(path)[1]])
    assert not re.search(r"(?<![\d.])48213", repr(ledger) + repr(totals) + repr(ledger.entries))  # nor as other digits


def test_two_loose_bounds_that_close_to_a_narrow_one_are_measured_together(path):
    ledger = Ledger.new(path, datum=0.5)
    single = [log2(20 / (20 - 9)), log2(20 / 10)]
    told = [Disclosure((0,), {0: ends}, None) for ends in ((-inf, 1.0), (0.0, inf))]
    ledger.add(Entry(upper=1, bits=single[0], told=(told[0],)), Uniform(-10, 10))
    assert ledger.totals().bits == pytest.approx(single[0])
    totals = ledger.add(Entry(lower=0, bits=single[1], told=(told[1],)), Uniform(-10, 10))
    assert (totals.bits, totals.kind) == (pytest.approx(log2(20)), "exact")
    assert log2(20) > sum(single)
    assert Ledger.open(path).totals() == totals


def test_coordinates_are_kept_apart(path):
    ledger = Ledger.new(path, datum=[1.0, 2.0, 3.0])
    ledger.add(Entry([0, 1.5, 2], [2, 2.5, 4], [False, True, False]))
    totals = ledger.add(Entry(-5, [9, 9, 3.5]))
    assert totals.lower == (0, -5, 2)
    assert totals.upper == (2, 9, 3.5)
    assert totals.exposed_runs == 1
    refused(path, "differ in their number of coordinates", lambda: ledger.add(Entry([0, 0], [9, 9])))


def test_epsilon_is_composed_until_a_run_has_none(path):
    gaussian, laplace = GaussianNoise(0.5, 1e-7, (0, 1e5)), LaplaceNoise(0.1, (0, 1e5))
    ledger = Ledger.new(path, Budget(delta=1e-7), DATUM)
    assert ledger.totals().epsilon == 0
    for _ in range(3):
        totals = ledger.add(Entry(mechanism=gaussian, bits=0.1))
    assert totals.epsilon == compose(gaussian, 3, 1e-7)
    assert (totals.dp_runs, totals.delta) == (3, 1e-7)
    assert ledger.add(Entry(mechanism=laplace)).epsilon == compose_all({gaussian: 3, laplace: 1}, 1e-7)
    assert Ledger.open(path).entries[-1].mechanism == laplace
    totals = ledger.add(Entry(mechanism=Offset(10)))
    assert (totals.runs, totals.dp_runs, totals.epsilon) == (5, 4, inf)


def test_entries_say_when(path):
    ledger = Ledger.new(path, datum=DATUM)
    ledger.add(Entry(at="2031-05-06T07:08:09+00:00"))
    ledger.add(Entry())
    first, second = Ledger.open(path).entries
    assert first.at == "2031-05-06T07:08:09+00:00"
    assert second.at.endswith("+00:00")


# runs that are joined

METHODS = {
    "iteration": midst.Consensus(stop=midst.After(9)),
    "exact": midst.Consensus(),
    "search": midst.Search(),
    "halving": midst.Search(arity=1),
    "slow": midst.Consensus(c=3.0, stop=midst.After(30)),
}


def run_of(values, kind="exact", seed=0, **more):
    problem = midst.Problem(graphs.complete(len(values)), values, bounds=(-9, 9), **more)
    return midst.solve(problem, METHODS[kind], rng=seed, record="audit").trace


@given(st.integers(0, 2**32), st.lists(st.sampled_from([*METHODS]), min_size=1, max_size=4))
@settings(max_examples=25)
def test_the_figures_are_those_of_the_audit(tmp_path_factory, seed, kinds):
    path = tmp_path_factory.mktemp("ledger") / "l.json"
    rng = np.random.default_rng(seed)
    values, prior = rng.normal(size=int(rng.integers(3, 8))), Normal(0, 1.5)
    node = int(rng.integers(len(values)))
    traces = [run_of(values, kind, seed + k) for k, kind in enumerate(kinds)]
    ledger = Ledger.new(path, datum=values[node])
    for k, trace in enumerate(traces):
        totals = ledger.add(entry_of(trace, node, prior, 0.01, among=ledger.mark(values)), prior, 0.01)
        report = audit_together(traces[: k + 1], None, prior, 0.01)
        assert (totals.bits, totals.kind, totals.runs) == (report.bits[node], "exact", k + 1)
        assert totals.floor == (None if np.isnan(report.floor[node]) else report.floor[node])
    ledger = Ledger.open(path, values[node])
    assert ledger.totals() == totals
    answers = {trace.answer and trace.answer[0] for trace in traces}
    assert repr(float(values[node])).encode() not in path.read_bytes() or values[node] in answers
    for each in values.tolist():
        assert repr(each) not in repr(ledger) + repr(ledger.entries) + repr(totals)


def test_a_search_again_counts_once_and_is_shown(path):
    values = np.random.default_rng(1).normal(size=9)
    ledger = Ledger.new(path, datum=values[2])
    once = ledger.add(entry_of(run_of(values, "search"), 2))
    again = ledger.add(entry_of(run_of(values, "search"), 2))
    assert (again.bits, again.floor, again.excess) == (once.bits, once.floor, once.bits - once.floor)
    assert again.runs == 2
    more = ledger.add(entry_of(run_of(values, "halving"), 2))
    assert more.floor == once.floor  # another way to the same answer
    shown = json.loads(call("show", path, "--json").stdout)
    assert (shown["bits"], shown["kind"], shown["floor"]) == (more.bits, "exact", more.floor)
    assert shown["excess"] == pytest.approx(more.bits - more.floor)
    text = call("show", path).stdout
    assert f"bits  {more.bits:.4g}: what all runs told together\n" in text
    assert "what the answers alone tell" in text


def test_the_sum_of_noised_runs_is_an_upper_bound_until_totals_were_told(path):
    values = np.random.default_rng(1).normal(size=9)
    ledger = Ledger.new(path, datum=values[2])
    noised = Entry(mechanism=GaussianNoise(0.5, 1e-7, (-9, 9)), bits=0.25)
    ledger.add(noised)
    assert (ledger.totals().bits, ledger.totals().kind, ledger.totals().floor) == (0.25, "upper bound", None)
    trace = run_of(values, "iteration")
    totals = ledger.add(entry_of(trace, 2))
    assert (totals.bits, totals.kind) == (pytest.approx(0.25 + audit(trace).bits[2]), "upper bound")
    totals = ledger.add(entry_of(run_of(values, "search"), 2))
    assert (totals.kind, totals.floor, totals.excess) == ("indication", None, None)
    joined = audit_together([trace, run_of(values, "search")]).bits[2]
    assert totals.bits == pytest.approx(0.25 + joined)
    text = call("show", path).stdout
    assert "an indication, no bound" in text
    assert text.count("not known") == 2


def test_sealed_runs_are_added_up(path):
    values = np.random.default_rng(1).normal(size=5)
    trace = run_of(values, "slow")
    sealed = entry_of(trace, 2, adversary=Adversary(init="sealed"))
    assert sealed.told == ()
    ledger = Ledger.new(path, datum=values[2])
    ledger.add(sealed)
    totals = ledger.add(entry_of(trace, 2))
    assert totals.kind == "indication"
    assert totals.bits == pytest.approx(sealed.bits + audit(trace).bits[2])
    with pytest.raises(InputError, match="node 2 is no honest node"):
        entry_of(trace, 2, adversary=Adversary((2,)))
    with pytest.raises(InputError, match="node 5 does not exist"):
        entry_of(trace, 5)


@pytest.mark.parametrize("marked", [True, False])
def test_runs_on_other_values_of_the_others_are_added_up(path, marked):
    """Totals that contradict each other; those of other quantiles need not, and only the mark tells them apart."""
    values = np.random.default_rng(1).normal(size=9)
    other = np.where(np.arange(9) == 2, values, values + 0.01)
    ledger = Ledger.new(path, datum=values[2])

    def add(numbers, q):
        trace = run_of(numbers, "search", objective=midst.Quantile(q))
        return ledger.add(entry_of(trace, 2, among=ledger.mark(numbers) if marked else ""))

    first = add(values, 0.5)
    second = add(other, 0.5)
    alone = audit(run_of(other, "search")).bits[2]
    assert (second.kind, second.bits) == ("indication", pytest.approx(first.bits + alone))
    assert add(other, 0.5).bits == second.bits  # each group counts what it was told once
    third = Ledger.new(path.with_name("b"), datum=values[2])
    ledger, path = third, path.with_name("b")
    add(values, 0.5)
    assert add(other, 1.0).kind == ("indication" if marked else "exact")


def test_without_totals_the_others_may_change(path):
    """What iterations tell of a node does not depend on what the others are."""
    values = np.random.default_rng(1).normal(size=7)
    values[2] = 1.7
    other = np.where(np.arange(7) == 2, values, -values)
    ledger = Ledger.new(path, datum=values[2])
    traces = [run_of(values, "slow"), run_of(other, "slow", 3)]
    for numbers, trace in zip((values, other), traces, strict=True):
        totals = ledger.add(entry_of(trace, 2, among=ledger.mark(numbers)))
    assert (totals.kind, totals.exposed_runs) == ("exact", 0)
    mass = Normal().log_mass(totals.lower[0], totals.upper[0])
    assert totals.bits == pytest.approx(-mass / np.log(2))
    assert totals.bits >= max(audit(trace).bits[2] for trace in traces)


def test_too_many_ways_are_an_upper_bound(path):
    values = np.random.default_rng(8).normal(size=40)
    traces = [run_of(values, "search", objective=midst.Quantile(q)) for q in (0.2, 0.5, 0.8)]
    problem = midst.Problem(graphs.complete(40), values, bounds=(-9, 9))
    way = midst.Consensus(sigma=1.0, stop=midst.After(1))
    traces.append(midst.solve(problem, way, rng=1, record="audit").trace)
    ledger = Ledger.new(path, datum=values[7])
    for trace in traces:
        totals = ledger.add(entry_of(trace, 7))
    assert (totals.kind, totals.bits) == ("upper bound", audit_together(traces).bits[7])


def test_coordinates_are_joined_each_by_itself(path):
    values = np.random.default_rng(1).normal(size=(7, 2))
    traces = [run_of(values, kind, seed) for seed, kind in enumerate(("iteration", "search", "exact"))]
    ledger = Ledger.new(path, datum=values[2])
    for k, trace in enumerate(traces):
        totals = ledger.add(entry_of(trace, 2))
        both = [audit_together(traces[: k + 1], coordinate=each).bits[2] for each in (0, 1)]
        assert totals.bits == pytest.approx(sum(both))
        assert (len(totals.lower), totals.kind) == (2, "exact")
    single = Ledger.new(path.with_name("other"), datum=1.0)
    refused(single.path, "differ in their number of coordinates", lambda: single.add(entry_of(traces[0], 2)))


def test_bounds_that_are_the_answer_tell_nothing(path):
    problem = midst.Problem(graphs.complete(3), [4.0, 4.0, 4.0], bounds=(3.8, 4.2), resolution=1)
    trace = midst.solve(problem, "search").trace
    totals = Ledger.new(path, datum=4.0).add(entry_of(trace, 1, Normal(4, 1)), Normal(4, 1))
    assert (totals.bits, totals.floor, totals.kind) == (0, 0, "exact")


def test_marks_need_a_datum_and_differ_between_ledgers(path):
    empty = Ledger.new(path)
    refused(path, "no datum yet; open the ledger with it", lambda: empty.mark([1.0]))
    one, other = Ledger.open(path, DATUM), Ledger.new(path.with_name("other"), datum=DATUM)
    assert one.mark([DATUM, 1.0]) == Ledger.open(path).mark((DATUM, 1.0)) != other.mark([DATUM, 1.0])


def test_a_prior_that_excludes_earlier_runs_does_not_keep_a_run_out(path):
    values = np.array([-1.0, 0.2, 0.5, 2.0, 1.0])
    ledger = Ledger.new(path, datum=values[2])
    first = ledger.add(entry_of(run_of(values, "search"), 2))
    entry = entry_of(run_of(values, "halving"), 2)
    totals = ledger.add(entry, Uniform(0, 0.6))
    assert (totals.runs, totals.kind) == (2, "indication")
    assert totals.bits == pytest.approx(first.bits + entry.bits)
    assert ledger.add(entry).kind == "exact"  # by a prior that allows them all, it is known again


# budgets


def test_a_budget_of_runs(path):
    ledger = Ledger.new(path, Budget(max_runs=2), DATUM)
    for _ in range(2):
        ledger.require()
        ledger.add(Entry())
    error = refused(path, r"past the budget \(runs 3 of 2\)$", ledger.require)
    assert isinstance(error, BudgetError)
    ledger.add(Entry())  # what took place is recorded all the same
    assert ledger.totals().runs == 3


def test_a_budget_of_bits_and_of_epsilon(path):
    ledger = Ledger.new(path, Budget(max_bits=5, max_epsilon=1), DATUM)
    step = Entry(mechanism=LaplaceNoise(0.4, (0, 1e5)), bits=2)
    ledger.require(entry=step)
    ledger.add(step)
    ledger.add(step)
    assert ledger.would_exceed(Entry()) == ("epsilon inf of 1",)
    assert ledger.would_exceed(step) == ("bits 6 of 5", "epsilon 1.19999 of 1")
    assert ledger.would_exceed(step, Budget(max_bits=6)) == ()
    ledger.require(Budget(max_runs=3), step)
    refused(path, r"\(bits 6 of 5, epsilon 1.19999 of 1\)", lambda: ledger.require(entry=step))


@pytest.mark.parametrize(
    ("budget", "match"),
    [
        ({"max_runs": -1}, "max_runs must be a finite number, 0 or more"),
        ({"max_runs": 1.5}, "max_runs must be a whole number"),
        ({"max_bits": nan}, "max_bits must be a finite number, 0 or more"),
        ({"max_bits": inf}, "max_bits must be a finite"),
        ({"max_epsilon": -0.1}, "max_epsilon must be a finite"),
        ({"delta": 0}, "delta must lie strictly between 0 and 1"),
    ],
)
def test_budgets_that_are_none(budget, match):
    with pytest.raises(InputError, match=match):
        Budget(**budget)


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"lower": 2, "upper": 1}, "lower bound of a run must lie below the upper"),
        ({"lower": 1, "upper": 1}, "lower bound of a run must lie below the upper"),
        ({"lower": nan}, "lower bound of a run must lie below the upper"),
        ({"lower": "low"}, "one figure each, or one a coordinate"),
        ({"lower": [1, 2], "upper": [3, 4, 5]}, "one figure each, or one a coordinate"),
        ({"bits": -1}, "bits must be a finite number, 0 or more"),
        ({"bits": inf}, "bits must be a finite number, 0 or more"),
        ({"mechanism": Offset(1), "lower": 0}, "bounds of a noised run are those of the noised value"),
        ({"mechanism": Offset(1), "exposed": True}, "bounds of a noised run are those of the noised value"),
        ({"mechanism": Offset(1), "told": (Disclosure((0,), None, None),)}, "bounds of a noised run"),
        ({"told": (Disclosure((1, 2), None, None),)}, "node 0 is none of those of which the run told"),
    ],
)
def test_entries_that_are_none(entry, match):
    with pytest.raises(InputError, match=match):
        Entry(**entry)


# the datum


def test_a_ledger_belongs_to_the_first_datum_it_is_opened_with(path):
    assert not Ledger.new(path).sealed
    assert not Ledger.open(path).sealed
    assert Ledger.open(path, DATUM).sealed
    assert Ledger.open(path, np.array([DATUM])).sealed
    refused(path, "the ledger of another datum", lambda: Ledger.open(path, DATUM + 0.25))
    refused(path, "the ledger of another datum", lambda: Ledger.open(path, [DATUM, DATUM]))


def test_minus_zero_is_zero(path):
    Ledger.new(path, datum=-0.0)
    assert Ledger.open(path, 0.0).sealed


def test_digests_of_one_datum_cannot_be_linked(tmp_path):
    Ledger.new(tmp_path / "a", datum=DATUM)
    Ledger.new(tmp_path / "b", datum=DATUM)
    seals = [content_of(tmp_path / name)[0][:2] for name in "ab"]
    assert not set(seals[0]) & set(seals[1])


def test_the_digest_is_as_slow_as_it_says(path, monkeypatch):
    monkeypatch.undo()
    assert module._WORK >= 2**15
    Ledger.new(path, datum=DATUM)
    assert Ledger.open(path, DATUM).sealed


@pytest.mark.parametrize("datum", [nan, inf, "4821375 euros", [[1.0], [2.0, 3.0]]])
def test_a_datum_that_is_none(path, datum):
    refused(path, "the datum must be a finite number, or a row of them", lambda: Ledger.new(path, datum=datum))


def test_without_its_datum_a_ledger_is_only_read(path):
    Ledger.new(path, datum=DATUM)
    refused(path, "opened without its datum, so only to be read", lambda: Ledger.open(path).add(Entry()))


# the file


def test_only_its_owner_can_read_it(path):
    ledger = Ledger.new(path, datum=DATUM)
    path.chmod(0o644)
    ledger.add(Entry())
    for name in os.listdir(path.parent):
        assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600


def test_what_has_returned_survives_a_power_cut(path):
    """SQLite syncs the file, its journal and their folder before a transaction has returned, and leaves one file."""
    Ledger.new(path, datum=DATUM).add(Entry(bits=1.0))
    with module._transaction(path) as store:
        assert store.execute("PRAGMA synchronous").fetchone() == (3,)
        assert store.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert os.listdir(path.parent) == [path.name]


def _die_on_the_way(path):
    """Kill this process when part of what it writes is in the file already."""
    ledger = Ledger.open(path)
    with module._transaction(path) as store:
        store.execute("PRAGMA cache_size = 1")
        store.execute("DELETE FROM ledger")
        store.executemany("INSERT INTO entry (content) VALUES (?)", [("x" * 10_000,)] * 99)
        os.kill(os.getpid(), signal.SIGKILL)
    ledger.totals()


def test_a_process_that_is_killed_on_the_way_leaves_the_old_content(path):
    ledger = Ledger.new(path, datum=DATUM)
    ledger.add(Entry(bits=1.5))
    before = path.read_bytes()
    dying = multiprocessing.get_context("spawn").Process(target=_die_on_the_way, args=(path,))
    dying.start()
    dying.join(300)
    assert dying.exitcode == -signal.SIGKILL
    assert path.read_bytes() != before
    assert stat.S_IMODE(path.with_name(f"{path.name}-journal").stat().st_mode) == 0o600
    assert Ledger.open(path).totals() == ledger.totals()
    assert path.read_bytes() == before
    assert ledger.add(Entry(bits=1.0)).runs == 2


def test_a_link_to_a_ledger_stays_one(path):
    Ledger.new(path, datum=DATUM)
    link = path.parent / "link.json"
    link.symlink_to(path)
    Ledger.open(link, DATUM).add(Entry())
    assert link.is_symlink()
    assert Ledger.open(path).totals().runs == 1


def test_contradicting_bounds_are_refused(path):
    ledger = Ledger.new(path, datum=DATUM)
    ledger.add(Entry(lower=48_000))
    refused(path, "contradict earlier ones", lambda: ledger.add(Entry(upper=47_000)))
    assert ledger.totals().runs == 1


def test_another_ledger_in_its_place_is_noticed(path):
    ledger = Ledger.new(path, datum=DATUM)
    path.unlink()
    Ledger.new(path, datum=DATUM)
    refused(path, "replaced by another ledger", lambda: ledger.add(Entry()))


@contextmanager
def no_file_longer_than(size):
    """A disk on which files cannot grow."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_write_that_fails_leaves_the_old_content(path):
    ledger = Ledger.new(path, datum=DATUM)
    ledger.add(Entry(lower=48_000))
    with no_file_longer_than(path.stat().st_size):
        long = Entry(among="x" * path.stat().st_size)
        refused(path, "nothing was written, try again", lambda: ledger.add(long))
    assert ledger.totals().runs == 1
    assert ledger.add(Entry()).runs == 2  # and the lock is free again


def test_a_ledger_that_cannot_be_written_is_not_made(path):
    with no_file_longer_than(100):
        refused(path, "nothing was written, try again", lambda: Ledger.new(path, datum=DATUM))
    assert Ledger.new(path).totals().runs == 0


def test_who_waits_too_long_is_refused(path, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    ledger = Ledger.new(path, datum=DATUM)
    with module._transaction(path):
        refused(path, "database is locked; nothing was written, try again", lambda: ledger.add(Entry()))
        assert Ledger.open(path).totals().runs == 0  # to read, nobody waits
    assert ledger.add(Entry()).runs == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_file_that_cannot_be_written_is_only_read(path):
    ledger = Ledger.new(path, datum=DATUM)
    path.chmod(0o400)
    refused(path, "cannot be written", lambda: Ledger.open(path, DATUM))
    refused(path, "cannot be written", lambda: ledger.add(Entry()))
    assert Ledger.open(path).totals() == ledger.totals()


def test_a_ledger_cut_at_any_byte_is_refused(path):
    ledger = Ledger.new(path, Budget(max_bits=3), DATUM)
    ledger.add(Entry(lower=48_000, mechanism=None))
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 41):
        path.write_bytes(whole[:length])
        refused(path, "not a midst ledger|damaged ledger", lambda: Ledger.open(path, DATUM))


def test_another_figure_in_an_entry_is_noticed(tmp_path):
    """The file is a ledger in every other respect."""
    path = tmp_path / "l.json"
    Ledger.new(path, Budget(max_bits=3), DATUM).add(Entry(lower=48_000, bits=1.25))
    whole = path.read_bytes()
    assert b"1.25" in whole
    path.write_bytes(whole.replace(b"1.25", b"0.25"))
    with pytest.raises(InputError, match="damaged ledger"):
        Ledger.open(path, DATUM)


@given(st.data())
@settings(max_examples=40)
def test_a_changed_byte_never_passes_unnoticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("ledger") / "l.json"
    ledger = Ledger.new(path, Budget(max_bits=3), DATUM)
    totals = ledger.add(Entry(lower=48_000, bits=1.25))
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    with suppress(InputError):
        assert Ledger.open(path, DATUM).totals() == totals  # white space, or the same number written otherwise


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"\xff\xfe", "not a midst ledger, or a damaged one"),
        (b"[" * 100_000, "not a midst ledger, or a damaged one"),
        (b"", "not a midst ledger$"),
        (b'{"format": "other"}', "not a midst ledger, or a damaged one"),
        (
            b'{\n "format": "midst-ledger",\n "format_version": 4,\n "seal": null',
            "ledger format 4, this midst reads 5 alone; begin a new ledger$",
        ),
    ],
)
def test_files_that_are_no_ledger(path, text, match):
    path.write_bytes(text)
    refused(path, match, lambda: Ledger.open(path, DATUM))


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("PRAGMA application_id = 7", "not a midst ledger$"),
        ("PRAGMA user_version = 6", "ledger format 6, this midst reads 5 alone; begin a new ledger$"),
        ("DROP TABLE entry", "not a midst ledger, or a damaged one$"),
        ("DELETE FROM ledger", "damaged ledger; take it from a backup$"),
        ("UPDATE ledger SET budget = NULL", "damaged ledger; take it from a backup$"),
        ("UPDATE entry SET content = CAST(x'ff' AS TEXT)", "not a midst ledger, or a damaged one$"),
        ("DELETE FROM entry", "damaged ledger; take it from a backup$"),
    ],
)
def test_databases_that_are_no_ledger(path, statement, match):
    Ledger.new(path, datum=DATUM).add(Entry())
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement)
    refused(path, match, lambda: Ledger.open(path, DATUM))


def entry_with(change):
    """A change of an entry, of which others are made."""

    def made(text):
        record = json.loads(text)
        change(record)
        return json.dumps(record)

    return {"entry": made}


@pytest.mark.parametrize(
    "changes",
    [
        {"entry": lambda text: "{}"},
        {"entry": lambda text: "7"},
        {"budget": '{"max_bits": -1}'},
        {"digest": None},
        {"salt": b"", "digest": "text"},
        entry_with(lambda record: record.update(mechanism="gaussian:eps=0")),
        entry_with(lambda record: record.update(bits="many")),
        entry_with(lambda record: record.update(joint={"bits": -1, "kind": "exact", "floor": None})),
        entry_with(lambda record: record.update(joint={"bits": 1, "kind": "right", "floor": None})),
        entry_with(lambda record: record.update(told=[{"nodes": [0]}])),
        entry_with(lambda record: record.update(session={"name": "s"})),
        entry_with(
            lambda record: record.update(
                session={"name": "s", "digest": "00", "members": [], "state": "odd", "value": ""}
            )
        ),
        entry_with(lambda record: record["told"][0].update(nodes=[7, 8, 9])),
        entry_with(lambda record: record["told"][0]["published"].update(cells=[[1]])),
        entry_with(lambda record: record["told"][0]["published"].update(keys={"step": "fine"})),
    ],
)
def test_content_that_makes_no_sense_is_refused_even_with_a_right_checksum(path, changes):
    Ledger.new(path, datum=DATUM).add(entry_of(search_trace([1.0, 2.0, 3.0]), 0))
    tamper(path, **changes)
    refused(path, "damaged ledger", lambda: Ledger.open(path, DATUM))


def test_there_must_be_a_file_and_a_folder(path, tmp_path):
    refused(path, "No such file or directory; midst ledger new makes a ledger", lambda: Ledger.open(path, DATUM))
    refused(path, "folder .* does not exist", lambda: Ledger.new(tmp_path / "none" / "l.json"))
    Ledger.new(path)
    refused(path, "exists already; a ledger is never overwritten", lambda: Ledger.new(path))


def _add_ten(path):
    module._WORK = 2
    ledger = Ledger.open(path, DATUM)
    for _ in range(10):
        ledger.add(Entry())


def test_many_writers_lose_nothing(path):
    Ledger.new(path)
    start = multiprocessing.get_context("spawn")
    writers = [start.Process(target=_add_ten, args=(path,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)  # a busy machine takes long to start four of them
        assert writer.exitcode == 0
    assert Ledger.open(path).totals().runs == 40


# the command


def call(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def value_file(tmp_path):
    file = tmp_path / "value.txt"
    file.touch(mode=0o600)
    file.write_text(f"{DATUM}\n")
    return file


def test_new_show_check(path, value_file):
    made = call("new", path, "--max-runs", 2, "--max-bits", 8, "--max-epsilon", 3, "--delta", 1e-5)
    assert (made.exit_code, made.stdout) == (0, "")
    assert Ledger.open(path).budget == Budget(2, 8.0, 3.0, 1e-5)
    mechanism = "laplace:eps=1,bounds=0:100000"
    checked = call("check", path, "--value-file", value_file, "--dp", mechanism)
    assert checked.exit_code == 0
    assert not Ledger.open(path).sealed
    shown = call("show", path)
    assert "none yet" in shown.stdout
    assert "0 of 2" in shown.stdout
    assert "0 of 3 at delta 1e-05" in shown.stdout

    Ledger.open(path, DATUM).add(Entry(lower=48_000, bits=1.5))
    shown = call("show", path)
    assert "(48000, inf)" in shown.stdout
    assert "1.5 of 8" in shown.stdout
    assert "no bound of 3: 1 runs were not differentially private" in shown.stdout
    assert "sealed in" in shown.stdout
    content = json.loads(call("show", path, "--json").stdout)
    assert content["budget"] == {"max_runs": 2, "max_bits": 8.0, "max_epsilon": 3.0, "delta": 1e-5}
    assert (content["lower"], content["upper"], content["epsilon"]) == ([48_000], [None], None)
    assert (content["runs"], content["dp_runs"], content["bits"], content["sealed"]) == (1, 0, 1.5, True)
    past = call("check", path, "--value-file", value_file)
    assert isinstance(past.exception, BudgetError)


def test_new_without_limits_for_a_datum(path, value_file):
    assert call("new", path, "--value-file", value_file).exit_code == 0
    assert Ledger.open(path).sealed
    assert "\n    runs  0\n" in "\n" + call("show", path).stdout
    assert call("check", path, "--value-file", value_file).exit_code == 0
    value_file.write_text("1\n")
    other = call("check", path, "--value-file", value_file).exception
    assert isinstance(other, InputError)
    assert str(other).endswith("the ledger of another datum; give each its own")


def test_refusals_of_the_command(path, value_file, tmp_path):
    value_file.write_text("48213.75\n48213.75\n")
    for arguments, match in (
        (("new", path, "--value-file", value_file), "2 lines of numbers; a ledger is of one datum"),
        (("new", path, "--max-bits", -1), "max_bits must be"),
        (("new", path, "--delta", 2), "delta must lie"),
        (("show", path), "No such file"),
        (("check", path, "--value-file", tmp_path / "none"), "No such file"),
    ):
        error = call(*arguments).exception
        assert isinstance(error, InputError)
        assert match in str(error)
        assert "48213" not in str(error)
        assert not path.exists()


def test_joint_noise_is_added_to_what_the_others_come_to(tmp_path):
    """Basic composition: ε to the total, δ off the budget's; in the decimals that were written."""
    gaussian, joint = GaussianNoise(1, 1e-6, (0, 1)), JointNoise(0.5, 1e-6, 2)
    ledger = Ledger.new(tmp_path / "book.json", Budget(delta=4e-6), datum=1.0)
    for runs in (1, 2, 3):
        assert ledger.add(Entry(mechanism=joint, bits=0.1)).epsilon == 0.5 * runs
    totals = ledger.add(Entry(mechanism=gaussian))
    assert totals.epsilon == pytest.approx(1.5 + compose(gaussian, 1, 1e-6))
    assert (totals.dp_runs, totals.kind) == (4, "upper bound")
    assert [entry.mechanism for entry in Ledger.open(tmp_path / "book.json").entries] == [joint] * 3 + [gaussian]
    assert ledger.add(Entry(mechanism=joint)).epsilon == inf, "nothing of delta is left for the other"
