"""What can be set, and what is refused, with the field to blame."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import midst
from midst.explorer import fields, presets
from midst.explorer.fields import FIELDS, MOST_LETTERS, MOST_NODES, FieldError, most_iterations, parse
from midst.explorer.simulate import open_file, prepare
from midst.graphs import KINDS
from midst.studies.paper.choices import FAR, NEAR, perform_drawn
from midst.studies.paper.runs import StudySettings as Series
from midst.system import streams

ITERATE = {"method": "consensus"}


def refused(**settings: str) -> dict[str, str]:
    with pytest.raises(FieldError) as caught:
        prepare(parse(settings)).run()
    return caught.value.fields


def test_every_field_is_a_setting_with_a_default_that_can_be_read() -> None:
    settings = parse({})
    assert [field.name for field in FIELDS] == list(vars(settings))
    assert dict(FIELDS[2].choices).keys() == {*KINDS, "own"}
    assert fields.describe()[2]["name"] == "graph"


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"n": "many"}, "n", "whole number"),
        ({"n": "1"}, "n", "from 2 to 2,000"),
        ({"n": str(MOST_NODES + 1)}, "n", "from 2 to 2,000"),
        ({"n": "1e3"}, "n", "whole number"),
        ({"graph": "blob"}, "graph", "one of rgg, ring"),
        ({"graph": "complete", "n": "2000"}, "n", "1,999,000 edges"),
        ({"graph": "regular", "k": "3"}, "n", "must be even"),
        ({"graph": "regular", "k": "x"}, "k", "whole number"),
        ({"graph": "ws", "k": "3"}, "k", "must be even"),
        ({"graph": "ws", "p": "2"}, "p", "probability"),
        ({"graph": "ba", "m": "0"}, "m", "m must be"),
        ({"graph": "grid", "n": "7"}, "n", "no grid"),
        ({"radius": "0.01"}, "radius", "connected"),
        ({"seed": "-1"}, "seed", "at least 0"),
        ({"draw": "-1"}, "draw", "at least 0"),
        ({"prior_b": "-1"}, "prior_b", "positive"),
        ({"prior": "uniform", "prior_a": "2"}, "prior_b", "high must be above low"),
        ({"prior_a": "nan"}, "prior_a", "number"),
        ({"objective": "quantile", "q": "1.5"}, "q", "[0, 1]"),
        ({**ITERATE, "c": "-1"}, "c", "positive"),
        ({**ITERATE, "c": "inf"}, "c", "must be a number; empty: chosen"),
        ({**ITERATE, "c": "1e-320"}, "c", "out of range"),
        ({**ITERATE, "theta": "1"}, "theta", "does not converge"),
        ({**ITERATE, "theta": "2"}, "theta", "(0, 1]"),
        ({**ITERATE, "sigma": "-1"}, "sigma", "negative"),
        ({**ITERATE, "mu": "much"}, "mu", "must be a number"),
        ({**ITERATE, "stop": "iterations", "iterations": "0"}, "iterations", "from 1"),
        ({**ITERATE, "stop": "iterations", "iterations": "999999999"}, "iterations", "to 100,000 for 15 nodes"),
        ({**ITERATE, "stop": "certified", "tolerance": "0"}, "tolerance", "positive"),
        ({"method": "guess"}, "method", "search, consensus"),
        ({"method": "search", "arity": "8"}, "arity", "from 1 to 7"),
        ({"objective": "mean"}, "objective", "try by consensus"),
        ({"method": "search", "resolution": "0"}, "resolution", "positive"),
        ({"method": "search", "least": "5", "most": "6"}, "least", "outside the public bounds"),
        ({"least": "1", "most": "-1"}, "least", "below the upper"),
        ({"least": "1"}, "most", "both bounds"),
        ({"adversary": "both"}, "corrupt", "such as 3, 7"),
        ({"adversary": "both", "corrupt": "3, x"}, "corrupt", "node x does not exist"),
        ({"adversary": "both", "corrupt": "99"}, "corrupt", "does not exist"),
        ({"adversary": "passive", "corrupt": ",".join(map(str, range(15)))}, "corrupt", "all nodes are corrupt"),
        ({"init": "open"}, "init", "clear, sealed"),
        ({"dp": "gaussian", "epsilon": "0"}, "epsilon", "epsilon"),
        ({"dp": "gaussian", "delta": "2"}, "delta", "between 0 and 1"),
        ({"dp": "laplace", "low": "4"}, "dp", "bounds"),
        ({"dp": "offset", "offset": "-1"}, "dp", "sigma"),
        ({"data": "own", "numbers": "7919 2 3", "dp": "laplace"}, "low", "give them, or public bounds"),
        ({"data": "own", "numbers": "1.5\n2.5\nthree 7919"}, "numbers", "line 3: not a number"),
        ({"data": "own", "numbers": "7919,5\n7920,25"}, "numbers", "line 1: the comma may be"),
        ({"data": "own", "numbers": ""}, "numbers", "no link has them"),
        ({"data": "own", "numbers": "7919"}, "numbers", "from 2 to 2,000"),
        ({"data": "own", "numbers": "1\n" * (MOST_NODES + 1)}, "numbers", "from 2 to 2,000"),
        ({"data": "own", "numbers": "1" * (MOST_LETTERS + 1)}, "numbers", "at most 100,000 characters"),
        ({"data": "own", "numbers": "1 2 3 4 5 6 7", "graph": "grid"}, "numbers", "no grid"),
        ({"data": "own", "numbers": "1 2 3", "prior": "uniform"}, "prior_b", "low and high"),
        ({"graph": "own", "edges": "a b\nc d"}, "edges", "2 components ({a, b} and {c, d})"),
        ({"graph": "own", "edges": "a b\na b c"}, "edges", "line 2: 3 names"),
        ({"graph": "own", "edges": ""}, "edges", "no edges"),
        (
            {"graph": "own", "edges": "a b\nb c", "data": "own", "numbers": "7919 7920"},
            "numbers",
            "2 numbers for the 3",
        ),
        ({"source": "file"}, "source", "run.npz"),
        ({"colour": "red"}, "colour", "no such setting"),
        ({"n": "1" * 300}, "n", "short"),
    ],
)
def test_what_is_wrong_is_said_of_the_field(settings: dict[str, str], field: str, words: str) -> None:
    found = refused(**settings)
    assert list(found) == [field]
    assert words in found[field]
    assert "\n" not in found[field]
    assert "79" not in found[field]  # an own number is in no refusal


def test_the_papers_algorithm() -> None:
    """It needs no stop: it ends when every x is proved to be near a median, and no search follows."""
    made = prepare(parse({"method": "paper", "graph": "ring", "n": "8", "seed": "5", "theta": "0.3"})).run()
    assert made.result is not None
    assert (made.result.method, made.result.probes, made.result.certified) == ("paper", 0, True)
    assert made.trace.parameters["theta"] == 0.5
    assert "objective" in refused(method="paper", objective="mean")


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"n": "2"}, "n"),
        ({"data": "own", "numbers": "1 2"}, "numbers"),
        ({"graph": "own", "edges": "ann bob"}, "edges"),
        ({"graph": "own", "edges": "ann bob", "data": "own", "numbers": "1 2"}, "edges"),
    ],
)
def test_two_do_not_search_and_the_refusal_is_that_of_solve(settings: dict[str, str], field: str) -> None:
    with pytest.raises(midst.InputError) as caught:
        midst.median([1.0, 2.0], "complete")
    assert refused(**settings) == {field: str(caught.value)}
    assert prepare(parse(ITERATE | settings)).run().result is not None


def test_a_graph_that_needs_an_extra_is_said_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(FieldError) as refusal:
        prepare(parse({"graph": "ba"})).run()
    assert list(refusal.value.fields) == ["graph"]
    assert refusal.value.fields["graph"].startswith("networkx is not installed; try: ")


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert set(refused(**ITERATE, seed="x", c="y", graph="z")) == {"seed", "c", "graph"}


def test_a_field_that_is_not_in_use_is_not_read() -> None:
    unused = dict.fromkeys(("radius", "iterations", "epsilon", "corrupt", "coordinate"), "x")
    settings = parse({"graph": "ring", **unused})
    assert (settings.radius, settings.corrupt, settings.coordinate) == (None, (), 0)


@given(
    st.dictionaries(
        st.sampled_from([field.name for field in FIELDS]) | st.text(max_size=5),
        st.text(max_size=12)
        | st.integers()
        | st.floats()
        | st.booleans()
        | st.none()
        | st.lists(st.integers(), max_size=2),
        max_size=8,
    )
)
def test_whatever_comes_is_read_or_refused(given: dict[str, object]) -> None:
    try:
        found = parse(given).n
    except FieldError as error:
        found = len(error.fields)
    assert found > 0


def test_it_is_the_run_that_the_shell_makes() -> None:
    made = prepare(parse({"method": "consensus", "graph": "ring", "n": "9", "seed": "5"})).run()
    drawn = streams(5)
    problem = midst.Problem(midst.graphs.ring(9), drawn.values.standard_normal(9), objective=midst.Quantile(0.5))
    result = midst.solve(problem, "consensus", rng=5)
    assert made.result is not None
    assert made.result.value == result.value
    assert np.array_equal(made.trace.x, result.trace.x)
    assert np.array_equal(made.values, problem.values)  # type: ignore[arg-type]


def test_own_numbers_and_an_own_graph_take_the_place_of_those_drawn() -> None:
    settings = parse(
        {"data": "own", "numbers": "7919.5, 3\n\n4.25\t1 # mine", "graph": "own", "edges": "a b\nb c\nc d"}
    )
    assert settings.n == 4
    assert "7919" not in repr(settings)
    made = prepare(settings).run()
    assert made.values.tolist() == [7919.5, 3, 4.25, 1]  # type: ignore[union-attr]
    assert made.trace.graph.labels == ("a", "b", "c", "d")
    assert made.result is not None
    assert made.result.value == 3


def test_of_own_numbers_what_is_public_is_believed() -> None:
    own = {"data": "own", "numbers": "50010 50020 50030", "least": "50000", "most": "50040"}
    assert prepare(parse(own)).prior == midst.priors.Normal(50020.0, 10.0)
    assert prepare(parse(own | {"prior": "uniform"})).prior == midst.priors.Uniform(50000.0, 50040.0)
    assert prepare(parse(own | {"prior_a": "1", "prior_b": "2"})).prior == midst.priors.Normal(1.0, 2.0)


def test_the_same_numbers_typed_in_give_the_same_run() -> None:
    drawn = prepare(parse({"method": "consensus", "n": "9"})).run()
    typed = "\n".join(repr(value) for value in drawn.values.tolist())  # type: ignore[union-attr]
    assert np.array_equal(
        prepare(parse({"method": "consensus", "data": "own", "numbers": typed})).run().trace.x, drawn.trace.x
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"method": "consensus"}, "exact"),
        ({"method": "consensus", "stop": "certified"}, "certified"),
        ({"method": "consensus", "stop": "iterations", "iterations": "9"}, "asked"),
        ({}, None),
    ],
)
def test_it_is_told_why_a_run_stopped(settings: dict[str, str], why: str | None) -> None:
    assert prepare(parse({"n": "5", **settings})).run().stopped == why


def test_it_is_the_search_that_the_shell_makes() -> None:
    settings = {
        "n": "9",
        "seed": "5",
        "arity": "2",
        "resolution": "0.01",
        "least": "-9",
        "most": "9",
    }
    made = prepare(parse({"graph": "ring", **settings})).run()
    problem = midst.Problem(
        midst.graphs.ring(9),
        streams(5).values.standard_normal(9),
        objective=midst.Quantile(0.5),
        bounds=(-9, 9),
        resolution=0.01,
    )
    result = midst.solve(problem, midst.Search(arity=2))
    assert made.result is not None
    assert (made.result.value, made.result.method) == (result.value, "search")
    assert made.trace.probes == result.trace.probes
    assert made.notes == ()


def test_settings_of_the_other_method_are_not_read() -> None:
    settings = parse({"method": "search", "c": "x", "stop": "y", "tolerance": "z"})
    assert (settings.c, settings.stop) == (None, "exact")
    assert parse({"method": "consensus", "arity": "x", "resolution": "y"}).arity == 3


def test_consensus_and_search_are_of_the_same_numbers() -> None:
    [preset] = [preset for preset in presets.presets() if preset.name == "Consensus | search"]
    assert preset.b is not None
    one, other = (prepare(parse(settings)).run() for settings in (preset.a, preset.b))
    assert np.array_equal(one.values, other.values)  # type: ignore[arg-type]
    assert one.result is not None
    assert other.result is not None
    assert one.result.value == other.result.value
    assert len(one.result.exposed) > len(other.result.exposed) == 0


def test_figures_1_and_2_are_the_paper_s_own_runs() -> None:
    by_name = {preset.name: preset for preset in presets.presets()}
    for name, experiment in {"Started near the answer": NEAR, "Started far away: three caught": FAR}.items():
        made = prepare(parse(by_name[name].a)).run()
        shown = perform_drawn(experiment, Series())
        assert np.array_equal(made.trace.x, shown.result.trace.x)
        assert np.array_equal(made.values, shown.truth.values)  # type: ignore[arg-type]


def test_every_preset_can_be_run() -> None:
    for preset in presets.presets():
        for settings in (preset.a, preset.b):
            if settings is not None:
                made = prepare(parse(settings)).run()
                assert made.result is not None
                assert made.result.certified


@pytest.mark.parametrize(
    ("prior", "low", "high"), [("uniform", 2.0, 3.0), ("laplace", -np.inf, np.inf), ("normal", -np.inf, np.inf)]
)
def test_data_is_drawn_from_the_prior(prior: str, low: float, high: float) -> None:
    values = prepare(parse({"prior": prior, "prior_a": "2", "prior_b": "3", "n": "50"})).truth.values
    assert ((values >= low) & (values <= high)).all()
    assert len(set(values)) == 50


def test_noise_is_on_what_is_held_and_not_on_what_is_known_to_be_true() -> None:
    made = prepare(parse({"dp": "laplace", "epsilon": "2"})).run()
    assert made.held is not None
    assert made.values is not None
    assert (made.held != made.values).all()
    assert np.median(made.held) == made.result.value  # type: ignore[union-attr]
    assert "bits of the true ones" in made.notes[0]


def test_noise_fits_the_numbers_that_it_is_put_on() -> None:
    own = {"data": "own", "numbers": "50010 50020 50030", "least": "50000", "most": "50040"}
    assert prepare(parse(own | {"dp": "laplace"})).mechanism == midst.dp.LaplaceNoise(1, (50000, 50040))
    assert prepare(parse(own | {"dp": "laplace", "high": "50035"})).mechanism == midst.dp.LaplaceNoise(
        1, (50000, 50035)
    )
    assert prepare(parse(own | {"dp": "offset"})).mechanism == midst.dp.Offset(1.0)  # a tenth of the public scale
    assert prepare(parse({"dp": "offset"})).mechanism == midst.dp.Offset(0.1)
    drawn = {"prior_a": "100", "prior_b": "5", "dp": "laplace"}
    assert prepare(parse(drawn)).mechanism == midst.dp.LaplaceNoise(1, (85, 115))


def test_a_run_that_is_too_long_ends_without_a_proof() -> None:
    made = prepare(
        parse({"method": "consensus", "stop": "certified", "tolerance": "1e-300", "n": "1000", "graph": "path"})
    ).run()
    assert made.result is not None
    assert made.result.iterations == most_iterations(1000) == 2000
    assert made.stopped == "full"


def test_a_file_is_read_again_for_every_look(saved) -> None:  # type: ignore[no-untyped-def]
    midst.median(
        np.arange(10.0).reshape(5, 2), graph="ring", rng=1, method="consensus", record="all", keep_values=True
    ).trace.save(saved)
    made = open_file(saved, parse({"source": "file", "coordinate": "1"}, file=True))
    assert made.values is not None
    assert made.values.tolist() == [1, 3, 5, 7, 9]
    for settings, field in (({"coordinate": "2"}, "coordinate"), ({"believes_b": "0"}, "believes_b")):
        with pytest.raises(FieldError) as caught:
            open_file(saved, parse({"source": "file", **settings}, file=True))
        assert list(caught.value.fields) == [field]
    lists = [[3.0, 4.0], [5.0], [1.0]]
    midst.median(lists, "ring", method="search", pooled=True, keep_values=True).trace.save(saved)
    assert open_file(saved, parse({"source": "file"}, file=True)).values is None  # a node has more than one
    with pytest.raises(FieldError, match="No such file"):
        open_file(saved.with_name("none.npz"), parse({"source": "file"}, file=True))
