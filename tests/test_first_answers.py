"""What a new user types first: the answers are right, and the defaults expose nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import midst
from midst import Consensus, InputError, Mean, Problem, Quantile, Search, graphs
from midst.cli import main
from midst.robust import Huber

VALUES = [7.25, -3.5, 12.125, 0.75, 31.0]
FINDERS = {
    "median": lambda **more: midst.median(VALUES, "ring", **more),
    "quantile": lambda **more: midst.quantile(VALUES, 0.9, "ring", **more),
    "mean": lambda **more: midst.mean(VALUES, "ring", **more),
    "maximum": lambda **more: midst.max(VALUES, "ring", **more),
    "minimum": lambda **more: midst.min(VALUES, "ring", **more),
    "solve": lambda **more: midst.solve(Problem(graphs.ring(5), VALUES), **more),
}
RIGHT = {"median": 7.25, "quantile": 31.0, "mean": 9.525, "maximum": 31.0, "minimum": -3.5, "solve": 7.25}
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.output


# One default method


@pytest.mark.parametrize("name", FINDERS)
def test_the_default_exposes_nobody(name):
    found = FINDERS[name]()
    assert (found.value, found.method, found.exposed, found.certified) == (RIGHT[name], "search", (), True)
    assert found.error == 0
    assert "nobody" in repr(found)


def test_the_default_of_an_ensemble_and_of_a_description_exposes_nobody():
    found = midst.solve_ensemble([Problem(graphs.ring(5), VALUES), Problem(graphs.complete(4), VALUES[:4])])
    assert found.value.tolist() == [7.25, 0.75]
    assert not found.exposed.any()
    assert not found.iterations.any()
    described = midst.describe(VALUES, "ring", ["median", "mean"])
    assert (described["median"], described["mean"], described.exposed) == (7.25, 9.525, ())


def test_the_default_of_the_commands_exposes_nobody():
    for command in (["run"], ["run", "--objective", "mean"], ["up"]):
        typed = [command[0], "--graph", "ring", "--nodes", "5", *command[1:], "--json"]
        done = subprocess.run([sys.executable, "-m", "midst", *typed], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        assert (told["method"], told["exposed"]) == ("search", [])


def test_what_no_search_finds_is_found_by_the_iteration_and_the_result_says_so():
    four = VALUES[:4]
    for objective, words in (
        (Huber(1.0), "no search finds a Huber"),
        (Quantile(0.5, "any"), "no search finds a median"),
    ):
        found = midst.solve(Problem(graphs.ring(4), four, objective=objective), rng=1)
        assert found.method == "consensus"
        assert words.lower() in repr(found).lower()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "edges"}, "choose method consensus, which has edges"),
        ({"engine": "gpu"}, "choose method consensus, which has gpu"),
        ({"record": "all"}, "choose method consensus"),
        ({"record": 3}, "choose method consensus"),
    ],
)
@pytest.mark.parametrize("method", [None, "search"])
def test_an_option_of_the_iteration_is_refused_by_the_search(options, words, method):
    with pytest.raises(InputError, match=words):
        midst.median(VALUES, "ring", method=method, **options)


@pytest.mark.parametrize("name", ["c", "theta", "mu", "sigma", "stop", "arity"])
def test_an_option_of_a_method_names_the_method(name):
    kind = "Search" if name == "arity" else "Consensus"
    with pytest.raises(InputError, match=rf"{name} is an option of a method; give method=midst.{kind}\({name}=…\)"):
        midst.median(VALUES, "ring", **{name: 1})


@pytest.mark.parametrize(
    "option",
    ["--c=1", "--theta=0.4", "--mu=1", "--sigma=1", "--stop=exact", "--iterations=5", "--limit=9", "--force"],
)
def test_an_option_of_the_iteration_is_refused_by_the_command(option):
    code, output = run("run", "--graph", "ring", "--nodes", "5", option)
    assert code == 2
    assert "is an option of --method consensus; choose that method, or leave it out" in output


def test_a_device_is_refused_by_the_search():
    with pytest.raises(InputError, match="device is of method consensus"):
        midst.solve_ensemble([Problem(graphs.ring(5), VALUES)], device="cpu")


def test_two_cannot_search_and_can_iterate():
    problem = Problem(graphs.path(2), [1.0, 2.0])
    for method in (None, "search", Search(7)):
        with pytest.raises(InputError, match="a search needs at least three participants"):
            midst.solve(problem, method)
        with pytest.raises(InputError, match="a search needs at least three participants"):
            midst.solve_ensemble([problem], method)
    with pytest.raises(InputError, match="a search needs at least three participants"):
        midst.describe([[1.0, 2.0], [3.0]], "path", ["median"])
    assert midst.solve(problem, "consensus", rng=1).value == 1.0
    code, output = run("run", "--graph", "path", "--nodes", "2")
    assert code == 2
    assert "a search needs at least three participants" in output


def test_a_sweep_asks_for_a_method_and_recommends_the_search(tmp_path):
    (tmp_path / "spec.toml").write_text('runs = 1\nseed = 1\n[grid]\ngraph = "ring"\nn = 5\nmethod = "iterate"\n')
    code, output = run("sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"))
    assert code == 2
    assert "search, in which nobody is exposed" in output


# One answer


def test_one_median_however_it_is_asked_for():
    four = [4.0, 1.0, 3.0, 2.0]
    ways = [Problem(graphs.ring(4), four), Problem(graphs.ring(4), four, objective=Quantile(0.5))]
    for problem in ways:
        for method in (None, "search", "consensus"):
            found = midst.solve(problem, method, rng=1)
            assert (found.value, found.objective) == (2.0, "low median")
    assert midst.median(four, "ring").value == 2.0


@given(
    st.lists(st.integers(-5, 5).map(float), min_size=3, max_size=12),
    st.fractions(0, 1, max_denominator=12),
)
def test_the_definitions_are_those_of_numpy(values, q):
    for definition in ("inverted_cdf", "averaged_inverted_cdf"):
        found = midst.quantile(values, q, "complete", definition=definition, resolution="0.5")
        assert found.value == exact_quantile(values, q, definition)
    assert midst.quantile(values, q, "complete", definition="inverted_cdf_high").value == exact_quantile(
        values, q, "high"
    )


def exact_quantile(values: list[float], q: Fraction, definition: str) -> float:
    """By NumPy's definitions, with the share as a fraction: its floats move q·n off a whole number."""
    ranked, level = sorted(values), q * len(values)
    low = ranked[max(0, -(-level.numerator // level.denominator) - 1)]
    high = ranked[min(len(values) - 1, level.numerator // level.denominator)]
    return {"inverted_cdf": low, "high": high, "averaged_inverted_cdf": (low + high) / 2}[definition]


def test_numpy_agrees():
    values = [1.0, 2.0, 3.0, 4.0]
    for q in (0.25, 0.3, 0.5, 0.75):
        for definition in ("inverted_cdf", "averaged_inverted_cdf"):
            found = midst.quantile(values, q, "ring", definition=definition, resolution="0.25")
            assert found.value == np.quantile(values, q, method=definition)
    assert midst.quantile(values, 0.3, "ring").value == 2.0  # NumPy's "lower" is 1


def test_a_definition_is_spelt_right():
    with pytest.raises(InputError, match="did you mean inverted_cdf"):
        Quantile(0.5, "inverted-cdf")  # type: ignore[arg-type]


# The mean


def exact_mean(values: list[float], weights: list[float] | None = None) -> float:
    weights = [1.0] * len(values) if weights is None else weights
    total = sum(map(Fraction, weights))
    return float(sum(Fraction(w) * Fraction(v) for v, w in zip(values, weights, strict=True)) / total)


@given(st.lists(FINITE | st.floats(-10, 10), min_size=3, max_size=9), st.data())
def test_the_mean_is_the_float_nearest_to_the_exact_mean(values, data):
    weights = data.draw(st.none() | st.lists(st.floats(1e-3, 1e3), min_size=len(values), max_size=len(values)))
    engine = data.draw(st.sampled_from(["arrays", "arrays", "reference"]))
    found = midst.mean(values, "complete", weights=weights, engine=engine)
    assert found.value == exact_mean(values, weights)
    assert (found.error, found.exposed, found.probes) == (0, (), 1)


def test_the_first_means():
    assert midst.mean([1, 2, 3]).value == 2.0
    assert midst.mean([1e300, 1, -1e300], "complete").value == 1 / 3
    rows = np.random.default_rng(1).normal(size=(5, 3))
    assert midst.mean(rows).value.tolist() == [exact_mean(column) for column in rows.T.tolist()]
    lists = [[0.1, 0.2], [0.7], [1e-9, 4.0]]
    assert midst.mean(lists, pooled=True).value == exact_mean([0.1, 0.2, 0.7, 1e-9, 4.0])
    assert midst.describe(lists, "ring", ["mean"])["mean"] == exact_mean([0.1, 0.2, 0.7, 1e-9, 4.0])
    assert midst.mean([1.26, 2.0, 3.0], resolution="0.5").value == pytest.approx(6.5 / 3, rel=1e-15)


def test_means_of_an_ensemble_are_exact():
    values = np.random.default_rng(2).normal(size=(5, 4))
    found = midst.solve_ensemble(Problem(graphs.ring(5), values, objective=Mean()))
    assert found.value.tolist() == [exact_mean(column) for column in values.T.tolist()]
    assert not found.error.any()


@pytest.mark.parametrize("judge", [lambda r: midst.audit(r.trace), lambda r: r.plot(), lambda r: r.page()])
def test_what_cannot_judge_a_sum_yet_says_so(judge):
    with pytest.raises(InputError, match="a mean by search is one masked sum"):
        judge(midst.mean([1, 2, 3]))


def test_the_mean_by_the_iteration_is_still_there():
    found = midst.mean(VALUES, "complete", method=Consensus(), rng=1)
    assert found.value == pytest.approx(9.525, abs=1e-4)
    assert "every node" in repr(found)


# The inputs

TRIO = graphs.ring(3).with_labels(["anna", "bob", "carl"])
LETTERS = ["carl", "anna", "bob"]
DATES = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")
ODD = 2**53 + 1  # no float
HUGE, DATE, BOOL, GAP = "a float64 cannot hold", "a date or time is no", "true or false is no", "of node 1 is missing"

REFUSED: dict[str, tuple[Any, str]] = {
    "masked": (np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), GAP),
    "masked rows": (list(np.ma.array([[1, 2], [3, 4], [5, 6]], mask=[[0, 0], [0, 1], [0, 0]])), GAP),
    "NA": ([1, pd.NA, 3], GAP),
    "None": ([1, None, 3], GAP),
    "nullable": (pd.Series([1, None, 3], dtype="Int64"), GAP),
    "polars null": (pl.Series([1, None, 3]), GAP),
    "Arrow null": (pa.array([1, None, 3]), GAP),
    "2^53 + 1": ([1, ODD, 3], HUGE),
    "2^53 + 1 among floats": ([1.0, ODD, 3.0], HUGE),
    "int64": (np.array([1, ODD, 3]), HUGE),
    "uint64": (np.array([1, 2**64 - 1, 3], np.uint64), HUGE),
    "objects": (np.array([1.5, ODD, Fraction(1)], object), HUGE),
    "beyond all floats": ([1, 10**400, 3], HUGE),
    "a frame of two types": (pd.DataFrame({"x": [1, ODD, 3], "y": [0.5, 1.5, 2.5]}), HUGE),
    "a frame of polars": (pl.DataFrame({"x": [1, ODD, 3], "y": [0.5, 1.5, 2.5]}), HUGE),
    "dates": (DATES, DATE),
    "spans": (DATES - DATES[0], DATE),
    "rows of dates": (list(DATES.astype("M8[ns]").reshape(3, 1)), "not a number"),
    "datetimes": ([datetime(2020, 1, day) for day in (1, 2, 3)], DATE),
    "timedeltas": ([timedelta(day) for day in (1, 2, 3)], DATE),
    "NaT": ([1, pd.NaT, 3], DATE),
    "dates of pandas": (pd.Series(DATES), DATE),
    "bool": ([True, False, True], BOOL),
    "bools": (np.array([True, False, True]), BOOL),
    "text": ("123", "text is not a number"),
    "texts": (["1", "2", "3"], "not a number"),
    "an array of text": (np.array(["1", "2", "3"]), "not a number"),
    "a text among objects": (np.array([1, "2", 3], object), "not a number"),
    "complex": (np.array([1j, 2, 3]), "a complex number; give a real one"),
    "lists": ([[1, 2], [3], [4]], "lists of any length must be pooled"),
    "rows and numbers": ([[1, 2], 3, [4, 5]], "must have the same length"),
    "deep lists": ([[[1]], [[2]], [[3]]], "not a number"),
    "a set": ({1, 2, 3}, "give a number, a list"),
    "a dictionary a node": ([{1: 2}, {3: 4}, {5: 6}], "not a number"),
    "nothing": ([], "not be empty"),
    "an empty frame": (pd.DataFrame(), "not be empty"),
    "another index": (pd.Series([1.0, 2.0, 3.0], index=[0, 2, 4]), "values' index has other names than the nodes"),
    "an index twice": (pd.Series([1.0, 2.0, 3.0], index=[0, 1, 1]), "values' index has other names than the nodes"),
}
RIGHT_INPUTS: dict[str, tuple[Any, list[float]]] = {
    "a mask that hides nothing": (np.ma.array([1.0, 2.0, 3.0], mask=False), [1, 2, 3]),
    "large and floats": ([2**60, -(2**53), 2**53 + 2], [2.0**60, -(2.0**53), 2.0**53 + 2]),
    "uint64": (np.array([2**63, 1, 2], np.uint64), [2.0**63, 1, 2]),
    "decimals and fractions": ([Decimal("0.1"), Fraction(1, 3), 7], [0.1, 1 / 3, 7]),
    "nullable": (pd.Series([3, 1, 2], dtype="Int64"), [3, 1, 2]),
    "Arrow in pandas": (pd.Series([3, 1, 2], dtype="int64[pyarrow]"), [3, 1, 2]),
    "polars": (pl.Series([3, 1, 2]), [3, 1, 2]),
    "Arrow": (pa.array([3.5, 1, 2]), [3.5, 1, 2]),
    "a Series by number": (pd.Series([1.0, 2.0, 3.0], index=[2, 0, 1]), [2, 3, 1]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_number_is_refused_in_one_line(case):
    values, words = REFUSED[case]
    for call in (lambda: midst.median(values, graphs.ring(3)), lambda: midst.quantile(values, 0.3, graphs.ring(3))):
        with pytest.raises(InputError) as caught:
            call()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "9007199254740993" not in str(caught.value)
    pooled = [[1, 2], values, [3]]
    if not case.startswith(("lists", "a set", "another index", "an index")):
        with pytest.raises(InputError):
            midst.median(pooled, graphs.ring(3), pooled=True)
        with pytest.raises(InputError):
            midst.describe(pooled, graphs.ring(3), ["median"])


@pytest.mark.parametrize("case", RIGHT_INPUTS)
def test_numbers_of_all_kinds_are_exact(case):
    values, right = RIGHT_INPUTS[case]
    problem = Problem(graphs.ring(3), values)
    assert problem.values.tolist() == right
    assert midst.max(values, graphs.ring(3)).value == max(right)
    lists = [values, values, values]
    if case != "a Series by number":
        assert Problem(graphs.ring(3), lists, pooled=True).values.tolist() == 3 * right


@pytest.mark.parametrize("option", ["values", "weights"])
def test_a_series_is_taken_by_the_names_in_its_index(option):
    """Values 1, 2, 3; the weight of five makes one of them the median."""
    given: dict[str, Any] = {"values": {"anna": 1.0, "bob": 2.0, "carl": 3.0}, "weights": [1, 1, 5]}
    by_name = {"values": [3.0, 1.0, 2.0], "weights": [5, 1, 1]}
    given[option] = pd.Series(by_name[option], index=LETTERS)
    assert midst.median(given["values"], TRIO, weights=given["weights"]).value == 3.0
    given[option] = pd.Series(by_name[option], index=["carl", "anna", "dora"])
    with pytest.raises(InputError, match=f"the {option}' index has other names than the nodes"):
        midst.median(given["values"], TRIO, weights=given["weights"])
    given[option] = pd.Series([1.0, 2.0, 3.0] if option == "values" else [1, 1, 5])  # counted by pandas: by position
    assert midst.median(given["values"], TRIO, weights=given["weights"]).value == 3.0


def test_an_index_names_the_nodes_of_a_kind_of_graph():
    found = midst.median(pd.Series([3.0, 1.0, 2.0], index=LETTERS), "ring", weights={"carl": 5, "anna": 1, "bob": 1})
    assert (found.value, found.trace.graph.labels) == (3.0, tuple(LETTERS))
    rows = pd.DataFrame({"x": [3, 1, 2], "y": [0.5, 1.5, 2.5]}, index=LETTERS)
    assert Problem(TRIO, rows).values.tolist() == [[1, 1.5], [2, 2.5], [3, 0.5]]
    assert midst.median(pd.Series([3.0, 1.0, 2.0]), "ring").trace.graph.labels is None
    turned = graphs.from_networkx(nx.Graph([(2, 0), (0, 1), (1, 2)]))
    assert Problem(turned, pd.Series([10.0, 11.0, 12.0])).values.tolist() == [12, 10, 11]


@given(st.lists(st.fractions(-50, 50, max_denominator=2000) | st.decimals(-50, 50, places=3), min_size=3, max_size=6))
def test_decimals_and_fractions_are_exact_at_a_resolution(values):
    found = midst.mean(values, "complete", resolution="0.01", bounds=(-51, 51))
    grid = [Fraction(round(Fraction(value) * 100), 100) for value in values]
    assert found.value == float(sum(grid) / len(grid))
    assert midst.median(values, "complete", resolution="0.01").value == float(sorted(grid)[(len(grid) - 1) // 2])
    described = midst.describe([[value] for value in values], "complete", ["max"], resolution="0.01")
    assert described["max"] == float(max(grid))


def test_a_decimal_between_two_multiples_is_not_rounded_as_a_float():
    assert midst.median([Decimal("1.015")] * 3, "ring", resolution="0.01").value == 1.02
    assert midst.median([1.015] * 3, "ring", resolution="0.01").value == 1.01  # the float lies below
    with pytest.raises(InputError, match="more digits than a float64 holds at this resolution"):
        midst.median([Decimal("12345678901234567.89")] * 3, "ring", resolution="0.01")
    assert midst.median([Decimal("1e-999999999"), 1, 2], "ring", resolution="0.01").value == 1.0


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (nx.DiGraph([(0, 1), (1, 2), (2, 0)]), "directed; try its to_undirected()"),
        (nx.MultiGraph([(0, 1), (1, 2), (1, 2)]), "give each undirected edge once"),
        (nx.Graph([(0, 1), (1, 2), (2, 2)]), "leave self-loops out"),
    ],
)
def test_graphs_that_are_not_simple_are_refused(graph, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
        midst.median([1, 2, 3], graph)
    assert midst.median([1, 2, 3], nx.MultiGraph([(0, 1), (1, 2)])).value == 2.0


def test_an_empty_group_is_refused():
    with pytest.raises(InputError, match="the list of node 1 is empty; every node needs at least one value"):
        midst.median([[1, 2], [], [3]], pooled=True)
    with pytest.raises(InputError, match="node bob: no rows"):
        midst.describe({"anna": [1, 2], "bob": [], "carl": [3]}, TRIO, ["median"])


@pytest.mark.parametrize(
    "options",
    [{"theta": 2.0}, {"theta": True}, {"sigma": -1}, {"c": "1"}, {"c": True}, {"c": [1.0, -1.0]}, {"mu": float("nan")}],
)
def test_parameters_are_refused_where_they_are_made(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Consensus(**options)
    with pytest.raises(InputError, match="arity must be a whole number"):
        Search(arity="3")  # type: ignore[arg-type]


def test_parameters_of_an_ensemble_are_one_a_run():
    problem = Problem(graphs.ring(3), np.arange(6.0).reshape(3, 2))
    method = Consensus(c=[0.5, 1.0], mu=np.array([0.0, 1.0]), sigma=(Fraction(1, 2), 0))
    assert midst.solve_ensemble(problem, method, rng=1).value.tolist() == [2.0, 3.0]


def test_bounds_of_an_ensemble_are_those_of_its_problems():
    with pytest.raises(InputError, match="give public bounds to the Problem"):
        midst.solve_ensemble(Problem(graphs.ring(3), [1, 2, 3]), bounds=(0, 10))  # type: ignore[arg-type]
