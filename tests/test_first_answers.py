"""What a new user types first: the answers are right, and the defaults expose nobody."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
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
        code, output = run(command[0], "--graph", "ring", "--nodes", "5", *command[1:], "--json")
        told = json.loads(output)
        assert (code, told["method"], told["exposed"]) == (0, "search", [])


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
