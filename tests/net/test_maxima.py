from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from memory_network import MemoryNetwork, charter_of

from midst import Mean, Problem, Quantile, graphs
from midst.net.iteration import residual_rule
from midst.normals import EdgeNormals
from midst.protocol.certificate import residual_bound, slack
from midst.protocol.maxima import StopRule
from midst.protocol.step import next_x, next_z
from midst.system import assemble, draw_z0, settle


def test_the_slack_of_a_median_is_half_of_one_or_two():
    for n, exact in ((5, 1), (6, 2)):
        assert slack(Quantile(0.5, "any"), np.ones(n, np.int64), 1.0) == exact / 2


@given(st.integers(3, 9), st.sampled_from([0.1, 0.25, 0.5, 0.7]), st.integers(0, 2**32))
def test_slack_is_what_one_more_value_on_the_wrong_side_costs(n, q, seed):
    """If all x lie strictly below every τ-quantile, Σ g is at most −2·slack."""
    rng = np.random.default_rng(seed)
    problem = Problem(graphs.complete(n), rng.integers(0, 6, n).astype(float), objective=Quantile(q))
    low, high = problem.answer
    left, right, _ = problem.objective.slopes(problem.whole_weights, problem.unit_weight)
    for x, worse in ((low - 0.25, np.less_equal), (high + 0.25, np.greater_equal)):
        g = np.where(problem.values > x, -left, np.where(problem.values < x, right, 0.0))
        assert worse(g.sum(), 0)
        assert abs(g.sum()) >= 2 * slack(problem.objective, problem.whole_weights, problem.unit_weight) - 1e-12


@settings(deadline=None)
@given(st.integers(3, 8), st.sampled_from(["median", "mean", "even"]), st.integers(0, 2**32))
@example(7, "median", 168143)
def test_everybody_judges_alike_and_rightly(n, what, seed):
    rng = np.random.default_rng(seed)
    n += what == "even" and n % 2
    graph = graphs.make("er", n, rng=rng) if n > 4 else graphs.ring(n)
    if not graph.is_connected:
        graph = graphs.ring(n)
    problem = Problem(graph, rng.normal(size=n), objective=Mean() if what == "mean" else Quantile(0.5), scale=1.0)
    parameters = settle(problem)
    system = assemble(problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(rng)))
    stop_rule = residual_rule(problem, graph.diameter(), np.array(1e-4))
    source, target, reverse = graph.source, graph.target, graph.reverse
    sign, z = graph.sign.astype(float), system.z0.copy()
    levels = [stop_rule.empty() for _ in range(n)]
    for round in range(1, 100_000):  # some draws converge slowly
        S = np.bincount(source, sign * z, n)
        x, _ = next_x(S, system.terms)
        ends = [source == i for i in range(n)]
        largest = np.array(
            [
                residual_bound(
                    z[e], z[reverse][e], sign[e], x[i], x[target[e]], system.c, system.terms.weight[i] / e.sum()
                ).max()
                for i, e in enumerate(ends)
            ]
        )
        heard = [[levels[j] for j in graph.neighbours(i)] for i in range(n)]
        own = [[x[i], -x[i], largest[i]] if stop_rule.begins(round) else [] for i in range(n)]
        levels = [stop_rule.merge(levels[i], own[i], heard[i]) for i in range(n)]
        verdicts = [stop_rule.judge(maxima, round) for maxima in levels]
        assert len({verdict is None for verdict in verdicts}) == 1
        if verdicts[0] is not None:
            assert len({(float(verdict.low), float(verdict.high)) for verdict in verdicts}) == 1
            middle = (verdicts[0].low + verdicts[0].high) / 2
            assert problem.distance(middle * parameters.unit) <= verdicts[0].bound * parameters.unit
            return
        z = next_z(z, z[reverse], -sign, x[target], system.c, system.theta)
    raise AssertionError("no verdict")


@given(st.integers(2, 9), st.sampled_from(["ring", "path", "star", "complete"]), st.integers(0, 2**32))
def test_the_largest_and_the_smallest_reach_everybody_in_a_diameter(n, kind, seed):
    """Without residuals: in the last round of an epoch all hold the range of the x of its first, and stop alike."""
    rng = np.random.default_rng(seed)
    graph = graphs.make(kind, max(n, 3), rng=rng)
    width = rng.uniform(0.1, 3.0)
    stop_rule = StopRule(graph.diameter(), np.array(width))
    assert stop_rule.maxima_each == 2
    levels = [stop_rule.empty() for _ in range(graph.n)]
    for round in range(1, 4 * (graph.diameter() + 1)):
        x = rng.normal(size=graph.n)
        if stop_rule.begins(round):
            sampled = x
        heard = [[levels[j] for j in graph.neighbours(i)] for i in range(graph.n)]
        own = [[x[i], -x[i]] if stop_rule.begins(round) else [] for i in range(graph.n)]
        levels = [stop_rule.merge(levels[i], own[i], heard[i]) for i in range(graph.n)]
        verdicts = [stop_rule.judge(maxima, round) for maxima in levels]
        if round < graph.diameter() + 1 or round % (graph.diameter() + 1) != graph.diameter():
            assert verdicts == [None] * graph.n
            continue
        close = np.ptp(sampled) <= width
        assert [verdict is not None for verdict in verdicts] == [close] * graph.n
        for verdict in verdicts if close else []:
            assert (float(verdict.low), float(verdict.high)) == (sampled.min(), sampled.max())


def test_the_bound_of_a_mean_holds_to_the_last_digit():
    """Where c is large and the tolerance near the end of float64, rounding is all that is left."""
    for seed in range(2):
        values = np.random.default_rng(seed).uniform(-10, 10, 5)
        found = MemoryNetwork(charter_of(5, objective="mean", c=50.0, tolerance=1e-12), values, seed).run(most=3000)[0]
        exact = sum(map(Fraction, values.tolist())) / 5
        assert abs(Fraction(found.value[0]) - exact) <= Fraction(found.bound)
