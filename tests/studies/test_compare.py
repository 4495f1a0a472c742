"""The comparison: every figure measured, or missing for a reason that is told."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import midst
from midst import InputError, Problem, graphs
from midst.baselines.secret_sharing import PartyFailed
from midst.privacy.priors import Normal, Within
from midst.studies import contenders
from midst.studies.compare import COLUMNS, Comparison, Row, compare, describe_rows
from midst.studies.contenders import METHODS

PRIOR = Normal(50, 15)
WITHOUT_EXTRAS = [name for name, method in METHODS.items() if method.needs is None]
ITERATIONS = ["consensus", "consensus-exact", "subgradient", "async-admm"]


def make_problem(n=7, kind="ring", seed=1, **more):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(50, 15, n).clip(0, 100), 2)
    options = {"bounds": (0, 100), "resolution": "0.01"} | more
    return Problem(graphs.make(kind, n, rng=rng), values, **options)


@pytest.fixture(scope="module")
def found() -> Comparison:
    problems = [make_problem(n, kind, seed) for n in (5, 9) for kind in ("ring", "complete") for seed in (1, 2)]
    return compare(problems, WITHOUT_EXTRAS, prior=PRIOR, rng=3)


def test_a_row_a_method_and_kind_and_no_figure_missing_without_a_reason(found):
    assert len(found.rows) == 4 * len(WITHOUT_EXTRAS)
    for row in found.rows:
        figures = [getattr(row, name) for name in COLUMNS[3:11]]
        assert (None in figures) == (row.why is not None)
        assert all(figure is None or math.isfinite(figure) for figure in figures)
        assert row.trust
        if row.bits is not None:
            assert row.excess == pytest.approx(row.bits - row.floor)
    assert {row.why for row in found.rows if row.method == "joint-noise"} != {None}
    assert midst.compare is compare


def test_one_floor_for_all_methods(found):
    for graph, nodes in {(row.graph, row.nodes) for row in found.rows}:
        assert len({row.floor for row in found.rows if (row.graph, row.nodes) == (graph, nodes)}) == 1


def test_what_is_known_of_each_method(found):
    for row in found.rows:
        if row.method.startswith("search") or row.method == "consensus-exact":
            assert row.error == 0
        if row.method.startswith("search"):
            assert row.exposed == 0
        if row.method == "async-admm":
            assert row.exposed == row.nodes
        if row.method in ("consensus", "async-admm"):
            assert row.error <= contenders.TOLERANCE


def test_figures_of_a_search_are_those_of_audit():
    problem = make_problem(9)
    (row,) = compare(problem, ["search-3"], prior=PRIOR).rows
    result = midst.solve(problem, midst.Search(3))
    leakage = midst.audit(result.trace, prior=Within(PRIOR, 0, 100), resolution=0.01)
    assert (row.bits, row.floor, row.rounds) == (leakage.mean_bits, leakage.mean_floor, result.rounds)


def test_the_same_for_any_number_of_workers():
    problems = [make_problem(5, "ring", seed) for seed in (1, 2)]
    methods = ["consensus", "async-admm", "local-noise"]
    one, two = (compare(problems, methods, prior=PRIOR, rng=5, workers=workers).rows for workers in (1, 2))
    assert [replace(row, seconds=None) for row in one] == [replace(row, seconds=None) for row in two]


def test_the_prior_is_about_the_middle_of_the_bounds_if_not_given():
    problem = make_problem(7)
    (assumed,), (given,) = (
        compare(problem, ["local-noise"], prior=prior, rng=1).rows for prior in (None, Normal(50, 10))
    )
    assert assumed.bits == pytest.approx(given.bits)


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr(contenders, "find_spec", lambda name: None)
    rows = compare(make_problem(), ["mpyc", "curator", "kll", "tdigest"], prior=PRIOR).rows
    for row, extra in zip(rows, ("compare", "dp", "compare", "compare"), strict=True):
        assert row.error is row.rounds is row.bytes_per_node is row.seconds is row.exposed is row.bits is None
        assert f"the extra {extra} brings it" in row.why


def test_more_parties_than_processes_are_run_for():
    pytest.importorskip("mpyc")
    (row,) = compare(make_problem(17), ["mpyc"], prior=PRIOR).rows
    assert row.error is None
    assert "every party is a process" in row.why


def test_a_party_that_fails_is_a_reason_without_its_words(monkeypatch):
    pytest.importorskip("mpyc")

    def fail(*_):
        raise PartyFailed("12.34")

    monkeypatch.setitem(METHODS, "mpyc", METHODS["mpyc"]._replace(run=fail))
    (row,) = compare(make_problem(5), ["mpyc"], prior=PRIOR).rows
    assert row.why == "a process of a party failed, or took too long"


def test_an_upper_bound_is_no_figure(monkeypatch):
    real = contenders.audit

    def weaker(*arguments, **more):
        return replace(real(*arguments, **more), kind="upper bound")

    monkeypatch.setattr(contenders, "audit", weaker)
    (row,) = compare(make_problem(), ["consensus-exact"], prior=PRIOR).rows
    assert row.bits is row.excess is None
    assert row.why.startswith("in a run only an upper bound is known: ")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"bounds": None}, "public bounds"),
        ({"resolution": None}, "public resolution"),
        ({"objective": midst.Mean(), "resolution": None}, "low median"),
        ({"objective": midst.Quantile(0.9)}, "low median"),
        ({"weights": [1, 2, 1, 1, 1, 1, 1]}, "same weight"),
    ],
)
def test_refused(problem, words):
    with pytest.raises(InputError, match=words):
        compare(make_problem(**problem))


def test_refused_names_and_nothing():
    with pytest.raises(InputError, match="did you mean search-3"):
        compare(make_problem(), ["serch-3"])
    with pytest.raises(InputError, match="at least one problem"):
        compare([])


def test_tables(found):
    assert next(csv.DictReader(io.StringIO(found.to_csv()))).keys() == set(COLUMNS)
    rows = json.loads(found.to_json())
    assert [tuple(row) for row in rows] == [COLUMNS] * len(found.rows)
    assert "".join(COLUMNS) == "methodgraphnodeserrorroundsbytes_per_nodesecondsexposedbitsfloorexcesstrustwhy"
    assert len(found.to_markdown().splitlines()) == 2 + len(found.rows)


def make_row(method, error, exposed, bits, why=None):
    excess = None if bits is None else bits - 1.0
    return Row(method, "ring", 5, error, 10.0, 100.0, 0.1, exposed, bits, 1.0, excess, "nobody", why)


def test_words_follow_from_the_rows():
    rows = [make_row("a", 0.0, 0.0, 1.5), make_row("b", 0.0, 5.0, 9.0), make_row("c", 0.3, 2.0, 4.0)]
    told = describe_rows([*rows, make_row("d", None, None, None, "not here")])
    assert told == (
        "5 participants on ring graphs. Always exact: a and b. Of those measured everywhere a gave away the least: "
        "1.50 bits of a value in the mean, where the answer alone gives 1.00. Who listens hears everybody's value by "
        "b. Who listens hears nobody's value by a. Farthest off, by 0.3 of the public scale, was c. Not run: d; the "
        "table says why."
    )


def test_words_of_who_gives_away_no_more_than_the_answer():
    rows = [make_row("a", 0.0, 0.0, 1.5), replace(make_row("a", 0.0, 0.0, 1.5), nodes=7), make_row("b", 0.0, 0.0, 1.0)]
    assert "a gave away the least" in describe_rows(rows)
    assert "No more than the answer, where it ran: b." in describe_rows(rows)
    assert "Trust" not in describe_rows(rows)
    told = describe_rows([replace(rows[0], trust="a curator sees all")])
    assert "Trust is needed by a (a curator sees all)." in told
