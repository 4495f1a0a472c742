"""The search and the exact finish: the sorted data's answer, to the last bit, by every engine; and nobody exposed."""

from __future__ import annotations

import os
from fractions import Fraction
from math import ceil, inf, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import data_for, graph_of, weights_for

import midst
from midst import InputError, Problem, Quantile, graphs, solve
from midst.engines import ENGINES
from midst.methods import CLOSE, After, Certified, Consensus, Exact, Search
from midst.protocol.certificate import Closeness, is_sampled, known_at
from midst.protocol.search import MOST_THRESHOLDS, SPACING_ORDERS, TIE_PROBES
from midst.robust import Huber

RUNS = int(os.environ.get("MIDST_RUNS", "100"))
SECRET = 48151.623
RESOLUTIONS = (None, None, "0.5", "0.001", 0.1, 1)


@st.composite
def objectives(draw, definitions=("inverted_cdf", "inverted_cdf_high", "averaged_inverted_cdf")):
    q = draw(st.sampled_from((0, 0.1, 0.25, 1 / 3, 0.5, 0.5, 0.75, 0.9, 1)))
    return Quantile(q, draw(st.sampled_from(definitions)))


@st.composite
def searchable(draw, max_nodes=40):
    """A problem that a search can solve: ties, weights, lists, bounds, resolutions, midpoints."""
    graph = draw(graph_of(3, max_nodes))
    objective, resolution = draw(objectives()), draw(st.sampled_from(RESOLUTIONS))
    lists = draw(st.booleans())
    values, weights = draw(data_for(3 * graph.n if lists else graph.n)), None
    public = {"resolution": resolution, "bounds": draw(st.sampled_from((None, (-1e7, 1e7))))}
    if objective.definition == "averaged_inverted_cdf" and resolution is None:
        objective = Quantile(objective.q)
    if np.abs(values).max() > 1e7:
        public["bounds"] = None
    if lists:
        cuts = draw(st.lists(st.integers(1, 3), min_size=graph.n, max_size=graph.n))
        parts = [values[3 * i : 3 * i + cut].tolist() for i, cut in enumerate(cuts)]
        return Problem(graph, parts, objective=objective, pooled=True, **public)
    weights = draw(weights_for(graph.n))
    return Problem(graph, values, weights=weights, objective=objective, **public)


@st.composite
def methods(draw):
    if draw(st.integers(0, 4)) == 0:
        return Search(draw(st.integers(1, MOST_THRESHOLDS)), [-3.0, -1.0, 0.0, 1.0, 3.0])
    return Search(draw(st.integers(1, MOST_THRESHOLDS)), draw(st.sampled_from(list(SPACING_ORDERS))))


def sorted_answer(problem: Problem) -> float:
    """By the definition, in exact arithmetic, with no line of midst's but its rounding to the resolution."""
    step = getattr(problem.keys, "step", None)
    values = [Fraction(v) for v in problem.values.tolist()]
    if step is not None:
        values = [round(v / step) * step for v in values]
    weights = problem.whole_weights if problem.owners is None else problem.whole_weights[problem.owners]
    heap = sorted((v, int(w)) for v, w in zip(values, weights, strict=True) if w)
    total = sum(w for _, w in heap)

    def at(rank):
        for v, w in heap:
            rank -= w
            if rank <= 0:
                return v
        raise AssertionError

    level = problem.objective.q * total
    low = at(max(1, -(-level.numerator // level.denominator)))
    if level.denominator != 1 or level in (0, total) or problem.objective.definition == "inverted_cdf":
        return float(low)
    high = at(int(level) + 1)
    return float(high if problem.objective.definition == "inverted_cdf_high" else (low + high) / 2)


def assert_standing(problem: Problem, result: midst.Result) -> None:
    """What the totals say of the answer, held against the rounded values."""
    weights = problem.whole_weights if problem.owners is None else problem.whole_weights[problem.owners]
    rounded = problem.keys.values(problem.value_keys)
    below, equal, above = result.standing[0]
    assert below + equal + above == weights.sum()
    if problem.has_one_value:
        assert below == weights[rounded < result.value].sum()
        assert above == weights[rounded > result.value].sum()


# The search


@pytest.mark.torture
@settings(max_examples=RUNS)
@given(searchable(), methods())
def test_search_is_exact(problem, method):
    result = solve(problem, method)
    assert result.value == sorted_answer(problem)
    assert (result.certified, result.error, result.exposed) == (True, 0, ())
    assert (result.iterations, result.certificate) == (0, None)
    assert result.rounds == (result.probes + 2) * problem.graph.diameter()
    assert result.trace.answer == (result.value,)
    assert_standing(problem, result)


@settings(max_examples=max(20, RUNS // 3))
@given(searchable(max_nodes=12), methods())
def test_participants_search_alike(problem, method):
    """With masks and signatures, hop by hop: the same probes, totals, value, and rounds as the formula says."""
    ours, theirs = (solve(problem, method, engine=engine) for engine in ("arrays", "reference"))
    assert ours.trace.probes == theirs.trace.probes
    assert (ours.value, ours.standing, ours.rounds) == (theirs.value, theirs.standing, theirs.rounds)
    np.testing.assert_array_equal(ours.trace.places, theirs.trace.places)


@given(searchable(max_nodes=20))
def test_totals_are_what_the_cells_hold(problem):
    """Everything that was made public, counted again; and where each value lies among it."""
    trace = solve(problem, "search").trace
    keys, weights = problem.value_keys, problem.value_weights
    for probe in trace.probes:
        thresholds, totals = probe
        assert len(totals) == len(thresholds) + 1 <= MOST_THRESHOLDS + 1
        edges = np.array(probe.edges, np.uint64)
        cell = np.searchsorted(edges, keys, "left") - 1
        for k, total in enumerate(totals):
            assert total == weights[cell == k].sum()
    answer = problem.keys.key(trace.answer[0])
    edges = sorted({edge for probe in trace.probes for edge in probe.edges} | {answer - 1, answer})
    assert trace.places.tolist() == [sum(edge < key for edge in edges) for key in keys.tolist()]


def test_coordinates_are_searched_together():
    values = np.random.default_rng(4).normal(size=(12, 3)).round(1) * (1, 1e6, 1e-6)
    results = [midst.median(values, "rgg", rng=2, method="search", engine=e) for e in ("arrays", "reference")]
    for result in results:
        np.testing.assert_array_equal(result.value, np.sort(values, axis=0)[5])
        assert result.rounds == (result.probes + 2) * result.trace.graph.diameter()
        assert result.trace.places.shape == values.shape
        assert {probe.coordinate for probe in result.trace.probes} == {0, 1, 2}
    assert results[0].trace.probes == results[1].trace.probes


def test_nothing_is_read_off_the_data():
    """Without bounds the first bracket is all floats, whatever the values."""
    for values in ([1.0, 2.0, 3.0], [1e-300, 2e-300, 3e-300]):
        first = midst.median(values, "complete", method="search").trace.probes[0]
        assert first.keys.value(first.edges[0] + 1) == -np.finfo(float).max
        assert first.keys.value(first.edges[-1]) == np.finfo(float).max
    first = midst.median([1.0, 2.0, 3.0], "complete", method="search", bounds=(0, 8)).trace.probes[0]
    assert (first.keys.value(first.edges[0] + 1), first.keys.value(first.edges[-1])) == (0.0, 8.0)


@pytest.mark.parametrize("n", [15, 301])
def test_probes_by_shape(n):
    """The figures of README and docs/masked-search.md."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for values in (
            rng.normal(size=n),
            rng.standard_cauchy(n),
            5e5 + 1e6 * rng.normal(size=n),
            np.exp(5 * rng.normal(size=n)),
            rng.integers(0, 5, n).astype(float),
            rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
            1 + 2.0**-52 * rng.integers(0, 2 * n, n),
        ):
            low, high = float(values.min()), float(values.max())
            bounds = (low - abs(low), high + abs(high))
            assert 3 <= midst.median(values, "complete", bounds=bounds).probes <= 20
            assert midst.median(values, "complete").probes <= 38


def test_a_search_repeats_itself():
    values = np.random.default_rng(1).normal(size=9)
    one, two = (midst.median(values, "ring", method="search", rng=seed) for seed in (1, 2))
    assert one.trace.probes == two.trace.probes
    assert one.trace.seed is None


def test_a_generator_is_as_it_was():
    """What is drawn from it afterwards does not depend on whether a search came before."""
    problem, one, other = Problem(graphs.ring(5), np.arange(5.0)), np.random.default_rng(1), np.random.default_rng(1)
    solve(problem, "search", rng=one)
    assert solve(problem, "consensus", rng=one).iterations == solve(problem, "consensus", rng=other).iterations
    assert one.bit_generator.seed_seq.n_children_spawned == other.bit_generator.seed_seq.n_children_spawned


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"objective": Huber(1.0)}, "no Huber location"),
        ({"objective": Quantile(0.5, "any")}, "no one value to search for"),
        ({"objective": Quantile(0.5, "averaged_inverted_cdf")}, "needs a public resolution"),
    ],
)
@pytest.mark.parametrize("method", ["search", Consensus(stop=Exact())])
def test_what_cannot_be_searched_for_is_refused(options, match, method):
    if isinstance(method, Consensus) and options["objective"] == Huber(1.0):
        match = "no search finds a Huber location"
    with pytest.raises(InputError, match=match):
        solve(Problem(graphs.ring(4), [1, 2, 3, 4], **options), method)


def test_any_side_will_do_where_there_is_one_answer():
    assert midst.median([3.0, 1.0, 2.0], "complete", definition="any", method="search").value == 2


@pytest.mark.parametrize("engine", ["edges", "warp"])
def test_engines_that_cannot_search(engine):
    with pytest.raises(InputError, match="try arrays or reference"):
        solve(Problem(graphs.ring(4), [1, 2, 3, 4]), "search", engine=engine)


def test_a_relay_has_no_say():
    """A node of weight 0 only tells on what others say."""
    for engine in ("arrays", "reference"):
        result = midst.median([9.0, 1.0, 2.0, 3.0], "path", weights=[0, 1, 1, 1], method="search", engine=engine)
        assert result.value == 2


def test_one_value_that_counts():
    """There is nothing to ask but the sum."""
    result = midst.median([9.0, 1.0, 2.0], "path", weights=[0, 1, 0], method="search")
    assert (result.value, result.probes, result.trace.probes) == (1.0, 1, ())
    result.plot().draw_without_rendering()


def test_noise_does_not_keep_to_bounds():
    from midst.dp.mechanisms import GaussianNoise, privatise

    problem = Problem(graphs.complete(9), np.full(9, 99.0), bounds=(0, 100))
    noised = privatise(problem, GaussianNoise(1.0, 1e-5, (0, 100)), 3)
    assert noised.values.max() > 100
    assert solve(noised, "search").value == np.median(noised.values)
    assert solve(noised, rng=1).value == np.median(noised.values)


# Lists and resolutions


def test_lists_count_by_their_lengths():
    result = midst.median([[1, 2, 3, 4], [10.0], [20.0]], "path", pooled=True, method="search")
    assert (result.value, result.objective) == (3.0, "low median")
    assert repr(Problem(graphs.ring(3), [[1], [2], [3, 4]], pooled=True)).endswith("4 values in lists>")


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([[SECRET], []], {"pooled": True}, "the list of node 1 is empty"),
        ([[SECRET], [SECRET, np.nan]], {"pooled": True}, "a value of node 1 is missing or not a finite number"),
        ([[SECRET], [np.inf, 1]], {"pooled": True}, "the list of node 1, row 0 .*: not a finite number"),
        ([[SECRET], [[SECRET, 1]]], {"pooled": True}, "the rows of all lists must have as many numbers"),
        ([[SECRET], ["a"]], {"pooled": True}, "the list of node 1, row 0 .*: not a number"),
        ([[SECRET], [1], [2]], {"pooled": True}, "3 lists for 2 nodes"),
        ([SECRET, 1], {"pooled": True}, "a list of numbers for every node"),
        ([[SECRET], [1]], {"pooled": True, "weights": [1, 2]}, "weights cannot be given with them"),
        ([[SECRET], [1, 2]], {}, "lists of any length must be pooled"),
        ([[SECRET], [1, 2]], {"pooled": True, "bounds": (0, 9)}, "value of node 0 lies outside"),
        ([[1], [2, SECRET]], {"pooled": True, "bounds": (0, 9)}, "value of node 1 lies outside"),
        ([SECRET, 1], {"resolution": 0}, "resolution must be a positive number"),
        ([SECRET, 1], {"resolution": "small"}, "resolution must be a positive number"),
        ([SECRET, 1], {"resolution": "1e-300"}, "value of node 0 is too far from zero"),
        ([SECRET, 1], {"resolution": "1e-300", "bounds": (0, 1e9)}, "resolution is too fine for these bounds"),
    ],
)
def test_bad_lists_and_resolutions(values, options, match):
    """Refused in a line that names the node, never the number."""
    with pytest.raises(InputError, match=match) as caught:
        Problem(graphs.path(2), values, **options)
    assert "48151" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lists_are_no_matter_for_the_iteration():
    with pytest.raises(InputError, match="pooled by a search only"):
        midst.median([[1, 2], [3]], "complete", pooled=True, method="consensus")


@pytest.mark.parametrize("stop", [Certified(), After(9)])
def test_resolutions_and_midpoints_are_for_exact_answers(stop):
    with pytest.raises(InputError, match="resolution is for exact answers"):
        midst.median([1.0, 2.0, 3.0], "complete", resolution=0.5, method=Consensus(stop=stop))
    with pytest.raises(InputError, match="only a search finds the midpoint"):
        midst.median(
            [1.0, 2.0], "complete", definition="averaged_inverted_cdf", resolution=0.5, method=Consensus(stop=stop)
        )


def test_the_midpoint_is_halfway():
    for method in ("search", "consensus"):
        found = midst.median(
            [1.0, 2.0, 4.0, 9.0], "complete", definition="averaged_inverted_cdf", resolution=1, method=method, rng=1
        )
        assert (found.value, found.error, found.objective) == (3.0, 0.0, "median")
        assert "1 below, 2 in the middle, 1 above" in repr(found)


def test_values_are_nowhere_to_be_seen():
    """Neither in what is printed of a problem, a result or a trace, nor in the file of a run; only the answer is."""
    values = np.append(np.arange(1.0, 9.0), SECRET)
    problem = Problem(graphs.ring(9), values)
    result = solve(problem, "search", engine="reference")
    shown = repr(problem) + repr(result) + str(result.to_dict()) + repr(result.trace) + repr(result.trace.probes)
    assert "48151" not in shown
    assert result.trace.values is None


# The exact finish


@pytest.mark.torture
@settings(max_examples=RUNS)
@given(st.data(), st.integers(0, 2**32 - 1), st.sampled_from(list(ENGINES)))
def test_exact_on_every_engine(data, seed, engine):
    """Once x are close, the search finds the sorted data's answer, to the last bit."""
    graph = data.draw(graph_of(max_nodes=12 if engine == "reference" else 30))
    problem = Problem(
        graph,
        data.draw(data_for(graph.n)),
        weights=data.draw(weights_for(graph.n)),
        objective=data.draw(objectives(("inverted_cdf", "inverted_cdf_high"))),
    )
    result = solve(problem, Consensus(limit=20_000), engine=engine, rng=seed, throw=False)
    if not result.certified:
        assert result.iterations == 20_000
        assert (result.standing, result.trace.probes, result.rounds) == (None, (), 20_000)
        return
    assert result.value == sorted_answer(problem)
    assert (result.error, result.certificate, result.method) == (0, None, "consensus")
    assert (result.iterations + 1) % (graph.diameter() + 1) == 0
    assert result.rounds == 1 + result.iterations + (result.probes + 2) * graph.diameter()
    assert result.trace.answer == (result.value,)
    assert_standing(problem, result)


def test_ordinary_problems_always_end():
    """The property above is not empty."""
    for seed in range(100):
        graph = graphs.make(("rgg", "complete", "er", "tree")[seed % 4], 5 + seed % 30, rng=seed)
        values = np.random.default_rng(seed).normal(size=graph.n)
        assert midst.median(values, graph, rng=seed).value == np.sort(values)[(graph.n - 1) // 2]


NARROW = ({"bounds": (0, 2e6)}, {"bounds": (-1e7, 3e6)}, {"bounds": (0, 1e300)}, {"scale": 1e6}, {"scale": 1e-6}, {})


@pytest.mark.parametrize(("case", "public"), list(enumerate(NARROW)))
def test_values_that_differ_in_their_last_digits_only(case, public):
    """A spread of 1e-12 of where they lie, whatever is public: both methods end, with no more probes than bits."""
    kinds = ("ring", "complete", "rgg", "tree", "er", "path", "star")
    for seed in range(23):  # 138 problems in all
        graph = graphs.make(kinds[seed % 7], 3 + seed * 5 % 38, rng=seed)
        values = 1e6 + 1e-6 * np.random.default_rng([case, seed]).normal(size=graph.n)
        problem = Problem(graph, values, **public)
        for method in (Consensus(stop=Exact(), limit=1000), Search(1 + seed % MOST_THRESHOLDS)):
            result = solve(problem, method, rng=seed)
            assert result.value == np.sort(values)[(graph.n - 1) // 2]
            by_key = ceil(64 / log2(getattr(method, "arity", 3) + 1))
            beyond = 0 if public.get("bounds", (0, inf))[1] < 1e9 else TIE_PROBES  # all floats, or nearly
            assert result.probes <= min(by_key + beyond, 64)


def test_engines_end_alike():
    problem = Problem(graphs.rgg(12, rng=3), np.random.default_rng(2).normal(size=12))
    results = [
        solve(problem, "consensus", rng=5, engine=engine, record="all") for engine in ("arrays", "edges", "reference")
    ]
    assert len({result.iterations for result in results}) == 1
    assert len({result.trace.probes for result in results}) == 1
    assert len({result.exposed for result in results}) == 1


def test_iterating_ends_when_all_nodes_know():
    """Nodes that tell their neighbours the largest and the smallest x they have heard of, round by round."""
    problem = Problem(graphs.ring(15), np.random.default_rng(8).normal(size=15), scale=1.0)
    result = solve(problem, "consensus", rng=4, record="all")
    graph, x = problem.graph, result.trace.x
    diameter = graph.diameter()
    near = [[i, *graph.neighbours(i).tolist()] for i in range(15)]
    high = low = x[0]
    for r in range(1, len(x) + 1):  # the messages of round r carry x(r − 1)
        if r % (diameter + 1) == 0:
            low = high = x[r - 1]
        else:
            low, high = (
                np.array([pick(each[j] for j in near[i]) for i in range(15)])
                for pick, each in ((min, low), (max, high))
            )
        all_know = r > diameter + 1 and r % (diameter + 1) == diameter
        if all_know:
            assert len(set(low)) == len(set(high)) == 1
            close = high[0] - low[0] <= CLOSE
            assert close == (r == len(x))
    opening = result.trace.probes[0].thresholds
    assert opening[0] <= low[0] <= opening[0] + 1 / 64
    assert opening[1] - 1 / 64 <= high[0] <= opening[1]


@pytest.mark.parametrize("diameter", [1, 2, 7])
def test_when_samples_are_taken(diameter):
    sampled = [t for t in range(40) if is_sampled(t, diameter)]
    assert sampled[:2] == [diameter, 2 * diameter + 1]
    assert [known_at(t, diameter) + 1 for t in sampled[:-1]] == sampled[1:]
    watch = Closeness(diameter, np.array(1.0))
    ends = next(t for t in range(40) if watch.see(t, np.array([0.0, 0.5 if t >= 11 else 5.0])))
    first = next(t for t in sampled if t >= 11)
    assert ends == known_at(first, diameter)


def test_where_a_search_ends_the_iteration():
    values = np.arange(14.0)
    assert midst.median(values, "complete", rng=1, method="consensus").standing is not None
    for other in (
        midst.median(values, "complete", rng=1, definition="any"),
        midst.mean(values, "complete", rng=1, method="consensus"),
        midst.median(values, "complete", rng=1, method=Consensus(stop=After(50))),
        midst.median(values, "complete", rng=1, method=Consensus(stop=Certified())),
    ):
        assert other.standing is None
        assert other.certificate is not None
        assert other.rounds == other.iterations
        assert (other.probes, other.trace.answer) == (0, None)
