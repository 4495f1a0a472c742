"""Huber's location and the median of lists: right by a direct minimiser, and the same however they are run."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import data_for, graph_of, weights_for
from scipy.optimize import minimize_scalar

from midst import After, Certified, Consensus, Exact, InputError, Mean, Problem, Quantile, Search, graphs, solve
from midst.engines import ENGINES
from midst.engines.ensemble import solve_ensemble
from midst.normals import EdgeNormals
from midst.objectives import built_in
from midst.protocol.certificate import OwnProver
from midst.protocol.step import OwnTerms, own_x
from midst.robust import Huber, ListMedian
from midst.system import assemble, draw_z0, settle

NUMBERS = st.floats(-50, 50, allow_subnormal=False)
POSITIVE = st.floats(0.05, 20)


def huber(x, s, w, delta):
    r = np.abs(x - s)
    return np.sum(w * np.where(r <= delta, r * r / 2, delta * (r - delta / 2)))


def least(f, low, high):
    """The x at which f is least, by SciPy: the best of a search in each of several pieces."""
    cuts = np.linspace(low, high, 9)
    found = [
        minimize_scalar(f, bounds=ends, method="bounded", options={"xatol": 1e-10}) for ends in itertools.pairwise(cuts)
    ]
    return min(float(each.fun) for each in found)


@given(NUMBERS, st.floats(0, 5), POSITIVE, NUMBERS, POSITIVE)
def test_the_minimiser_of_huber_is_least(s, w, delta, S, cd):
    def f(x):
        return huber(x, s, w, delta) + S * x + cd * x * x / 2

    x, _ = Huber(delta).minimise(s, w, S, cd)
    reach = 1 + abs(s) + (abs(S) + 5 * delta) / cd
    assert f(float(x)) <= least(f, -reach, reach) + 1e-9 * (1 + abs(f(float(x))))


@given(st.lists(NUMBERS, min_size=1, max_size=6), st.floats(0.1, 5), NUMBERS, POSITIVE)
def test_the_minimiser_of_a_list_is_least(s, w, S, cd):
    def f(x):
        return w * np.sum(np.abs(x - np.array(s))) + S * x + cd * x * x / 2

    x, branch = ListMedian().minimise(np.array(s), w, S, cd)
    reach = 1 + max(map(abs, s)) + (abs(S) + 30) / cd
    assert f(float(x)) <= least(f, -reach, reach) + 1e-9 * (1 + abs(f(float(x))))
    assert (int(branch) == 0) == (float(x) in s)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_floats_and_arrays_are_the_same_to_the_last_bit(seed, lists):
    rng = np.random.default_rng(seed)
    n = 20
    objective = ListMedian() if lists else Huber(0.5)
    s = rng.normal(size=(n, 4)) if lists else rng.normal(size=n)
    if lists:
        s[np.arange(4) >= rng.integers(1, 5, (n, 1))] = np.nan
    terms = OwnTerms(objective, s, rng.integers(0, 3, n).astype(float), np.exp(rng.normal(size=n)))
    S = rng.normal(size=n)
    x, branch = own_x(S, terms)
    for i in range(n):
        row = terms.s[i] if lists else float(terms.s[i])
        one = own_x(float(S[i]), OwnTerms(objective, row, float(terms.w[i]), float(terms.cd[i])))
        assert one == (x[i], branch[i])
        assert tuple(map(type, one)) == (float, int)


def system_of(problem, seed, **settled):
    parameters = settle(problem, **settled)
    z0 = draw_z0(
        problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(seed), shape=problem.values.shape[1:])
    )
    return assemble(problem, parameters, z0)


def walk(system, engine, iterations=60):
    pairs = [(x.copy(), branch.copy()) for x, branch in itertools.islice(ENGINES[engine](system), iterations)]
    return np.array([x for x, _ in pairs]), np.array([branch for _, branch in pairs])


@pytest.mark.parametrize("engine", ["arrays", "edges", "reference"])
def test_lists_of_one_are_the_paper_to_the_last_bit(engine):
    graph, values = graphs.rgg(12, rng=2), np.random.default_rng(1).normal(size=12)
    one = system_of(Problem(graph, values, objective=Quantile(0.5, "any")), 3, c=0.7, mu=-1.0, sigma=1.0)
    other = system_of(
        Problem(graph, values[:, None], objective=ListMedian(), pooled=True), 3, c=0.7, mu=-1.0, sigma=1.0
    )
    expected, found = walk(one, engine), walk(other, engine)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@settings(max_examples=30)
@given(graph_of(max_nodes=20), st.data(), POSITIVE, st.sampled_from((0.5, 0.9)), st.integers(0, 2**32 - 1))
def test_engines_walk_the_same_way(graph, data, delta, theta, seed):
    problem = Problem(
        graph, data.draw(data_for(graph.n)), objective=Huber(delta), weights=data.draw(weights_for(graph.n))
    )
    system = system_of(problem, seed, theta=theta)
    expected, _ = walk(system, "reference")
    size = max(np.abs(expected).max(), np.abs(problem.values).max())
    for engine in ("arrays", "edges"):
        np.testing.assert_allclose(walk(system, engine)[0], expected, rtol=0, atol=1e-11 * size)


@settings(max_examples=25, deadline=None)
@given(graph_of(max_nodes=12), st.data(), st.floats(0.1, 5), st.integers(0, 2**32 - 1), st.sampled_from((1e-2, 1e-4)))
def test_a_certified_huber_location_is_right(graph, data, delta, seed, tolerance):
    """Held against SciPy: F at what was certified exceeds the least F by no more than its slope allows."""
    rng = np.random.default_rng(seed)
    values, weights = rng.standard_t(2, size=graph.n) * 3, data.draw(weights_for(graph.n))
    problem = Problem(graph, values, objective=Huber(delta), weights=weights)
    result = solve(problem, Consensus(stop=Certified(tolerance), limit=5_000), rng=seed, throw=False)
    if not result.certified:
        assert result.iterations == 5_000
        return
    w = problem.whole_weights * problem.unit_weight
    best = minimize_scalar(lambda x: huber(x, values, w, delta), bounds=(values.min(), values.max()), method="bounded")
    slope = float(w.sum()) * delta
    for x in [result.value, *result.trace.x[-1].tolist()]:
        assert (
            huber(x, values, w, delta) <= best.fun + slope * result.certificate.tolerance * (1 + 1e-9) + 1e-9 * best.fun
        )
    assert result.error <= result.certificate.tolerance
    low, high = problem.answer
    assert huber(low, values, w, delta) <= best.fun * (1 + 1e-12) + 1e-300
    assert low <= high


@settings(max_examples=25, deadline=None)
@given(graph_of(max_nodes=12), st.integers(0, 2**32 - 1), st.booleans())
def test_a_certified_median_of_lists_is_right(graph, seed, ties):
    rng = np.random.default_rng(seed)
    lists = [rng.normal(size=rng.integers(1, 6)) for _ in range(graph.n)]
    if ties:
        lists = [np.rint(part) for part in lists]
    problem = Problem(graph, lists, objective=ListMedian(), pooled=True)
    ranked = sorted(Fraction(v) for part in lists for v in part.tolist())
    low, high = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
    assert tuple(map(Fraction, map(float, problem.answer))) == (low, high)
    result = solve(problem, Consensus(stop=Certified(1e-3), limit=5_000), rng=seed, throw=False)
    assert result.certified or result.iterations == 5_000
    if result.certified:
        within = Fraction(result.certificate.tolerance) * (1 + Fraction(1, 10**9))
        for x in [result.value, *result.trace.x[-1].tolist()]:
            assert low - within <= Fraction(x) <= high + within


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 3), st.floats(0.01, 2))
def test_a_proof_is_had_as_soon_as_there_is_one(seed, delta, tolerance):
    """x that all lie within the tolerance of a minimiser, and of each other, are proved; no others are."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=6)
    problem = Problem(graphs.ring(6), values, objective=Huber(delta))
    prover = OwnProver(problem.objective, *problem.held(), np.array(tolerance), 6)
    low, high = (float(end) for end in problem.answer)
    room = 1e-9 * (1 + tolerance)
    for _ in range(20):
        x = (low + high) / 2 + tolerance * rng.uniform(-1.5, 1.5) + tolerance * rng.uniform(-0.6, 0.6, 6)
        gaps = np.array([high - (x.max() - tolerance), (x.min() + tolerance) - low, tolerance - np.ptp(x)])
        if np.abs(gaps).min() > room:  # else rounding decides
            assert prover.holds(x) == (gaps > 0).all()


def test_most_runs_are_certified():
    """What is above is not empty."""
    for seed in range(20):
        rng, graph = np.random.default_rng(seed), graphs.rgg(12, rng=seed)
        result = solve(Problem(graph, rng.normal(size=12), objective=Huber(0.3 + seed / 5)), rng=seed)
        assert result.certified
        assert result.iterations < 3000


def test_a_large_threshold_is_the_mean_and_a_small_one_the_median():
    graph, values = graphs.rgg(13, rng=2), np.random.default_rng(1).normal(size=13)
    far, near = (Problem(graph, values, objective=Huber(delta)) for delta in (100.0, 1e-9))
    assert float(far.answer[0]) == pytest.approx(values.mean(), abs=1e-12)
    assert float(near.answer[0]) == pytest.approx(np.median(values), abs=1e-8)
    assert solve(far, rng=1).exposed == tuple(range(13))


def test_a_node_without_weight_relays_and_tells_nothing():
    graph, values = graphs.ring(5), [1.0, 2.0, 3.0, 4.0, 900.0]
    result = solve(Problem(graph, values, objective=Huber(1.0), weights=[1, 1, 1, 1, 0]), rng=1)
    assert result.value == pytest.approx(2.5, abs=1e-4)
    assert 4 not in result.exposed


def test_vectors_are_solved_coordinate_by_coordinate():
    graph, rng = graphs.rgg(12, rng=2), np.random.default_rng(11)
    values, z0 = rng.normal(size=(12, 3)) * (1, 10, 0.1), rng.normal(size=(len(graph.source), 3))
    together = solve(
        Problem(graph, values, objective=Huber(0.5)), Consensus(c=1.0, z0=z0, stop=After(60)), record="all"
    )
    for k in range(3):
        problem = Problem(graph, values[:, k], objective=Huber(0.5))
        alone = solve(problem, Consensus(c=1.0, z0=z0[:, k], stop=After(60)), record="all")
        np.testing.assert_allclose(together.trace.x[:, :, k], alone.trace.x, rtol=0, atol=1e-12)
    assert solve(Problem(graph, values, objective=Huber(0.5)), rng=1).certified


@pytest.mark.parametrize("delta", [0, -1, float("nan"), float("inf"), "half", None])
def test_bad_threshold(delta):
    with pytest.raises(InputError, match="threshold of a Huber location"):
        Huber(delta)


# Refused, in a line


RING = graphs.ring(5)
ONE = Problem(RING, range(5), objective=Huber(1.0))
LISTS = Problem(RING, [[1, 2], [3], [4, 5, 6], [7], [8]], objective=ListMedian(), pooled=True)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: solve(ONE, Search()), "finds quantiles and means, and no Huber location; try method consensus$"),
        (lambda: solve(LISTS, Search()), "try method consensus, or a quantile of the same lists$"),
        (lambda: solve(ONE, Consensus(stop=Exact())), "no search finds a Huber location; try stop certified"),
        (lambda: solve(ONE, Consensus(theta=1.0)), "theta = 1 need not converge for a Huber location"),
        (lambda: solve(ONE, engine="gpu"), "alone, by consensus and engine arrays, edges or reference"),
        (lambda: solve_ensemble(ONE), "found by midst.solve alone"),
        (lambda: solve_ensemble([ONE, ONE]), "found by midst.solve alone"),
        (lambda: solve(ONE, rng=1).page(), "found by midst.solve alone"),
        (lambda: solve(ONE, rng=1).trace.save("trace.npz"), "no file can hold what was sought, a Huber location"),
        (lambda: built_in(Huber(1.0)), "here is for quantiles and means"),
        (lambda: Problem(RING, range(5), objective=Huber), "objective must be"),
        (lambda: Problem(RING, range(5), objective=ListMedian()), "needs a list of numbers for every node"),
        (lambda: Problem(RING, [[1]] * 5, objective=Huber(1), pooled=True), "needs one value a node"),
        (lambda: Problem(RING, [[[1, 2]]] * 5, objective=ListMedian(), pooled=True), "and no rows in them"),
        (lambda: Problem(RING, range(5), objective=Huber(1), resolution=0.1) and solve(
            Problem(RING, range(5), objective=Huber(1), resolution=0.1)), "a resolution is for exact answers"),
    ],
)  # fmt: skip
def test_refused(make, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=text) as error:
        make()
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_midsts_own_are_built_in():
    assert built_in(Mean()) == Mean()


# Objectives of which nobody knows what they tell


class Silent(Huber):
    """As Huber's, but that nobody has worked out what x tells."""

    name = "silent location"
    values_behind = None

    def minimise(self, s, w, S, cd):
        return super().minimise(s, w, S, cd)[0], None


def test_what_is_not_known_is_not_told():
    result = solve(Problem(RING, range(5), objective=Silent(1.0)), rng=1, record="all")
    assert result.certified
    assert result.to_dict()["exposed"] is None
    assert dict(result.rows())["exposed"].startswith("not known")
    assert not result.trace.tells
    with pytest.raises(InputError, match="who was exposed is not known"):
        result.exposed  # noqa: B018
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert "what that told is not known" in result.plot().get_suptitle()


def test_words_for_those_who_are_exposed():
    result = solve(ONE, rng=1)
    assert ", to whoever knows z(0)" in dict(result.rows())["exposed"]
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert "to whoever knows z(0)" in result.plot().get_suptitle()


@pytest.mark.parametrize("wrong", [float("nan"), [1.0, 2.0]])
@pytest.mark.parametrize("engine", ["arrays", "reference"])
def test_a_minimiser_that_is_none_is_stopped(wrong, engine):
    class Wrong(Huber):
        def minimise(self, s, w, S, cd):
            return np.broadcast_to(wrong, (2,)) if isinstance(wrong, list) else S * wrong, None

    with pytest.raises(InputError, match="its minimiser must be one finite number for every S"):
        solve(Problem(RING, range(5), objective=Wrong(1.0)), Consensus(limit=50), engine=engine, throw=False)


def test_an_objective_without_a_least_value_has_no_answer():
    class Falling(Huber):
        name = "falling"

        def subgradients(self, s, w, x):
            return w - 2.0 + 0 * x, w - 2.0 + 0 * x

    with pytest.raises(InputError, match="no falling of these values"):
        Problem(RING, range(5), objective=Falling(1.0)).answer  # noqa: B018
