"""Certified means right."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_strategies import problems

from midst import Mean, NotCertified, Problem, Quantile, graphs, solve
from midst.methods import After, Certified, Consensus
from midst.protocol.certificate import Prover, lie_within, residual_bound


def right_answers(problem):
    """The interval of right answers by the definition, in exact arithmetic, with no line of midst's."""
    values = [Fraction(v) for v in problem.values.tolist()]
    weights = [int(k) for k in problem.whole_weights]
    total = sum(weights)
    if isinstance(problem.objective, Mean):
        exact = sum(w * v for w, v in zip(weights, values, strict=True)) / total
        return exact, exact
    q, definition = problem.objective.q, problem.objective.definition
    below = {v: sum(w for w, u in zip(weights, values, strict=True) if u < v) for v in values}
    above = {v: sum(w for w, u in zip(weights, values, strict=True) if u > v) for v in values}
    ok = sorted(
        v for w, v in zip(weights, values, strict=True) if w and below[v] <= q * total and above[v] <= (1 - q) * total
    )
    return {"any": (ok[0], ok[-1]), "inverted_cdf": (ok[0], ok[0]), "inverted_cdf_high": (ok[-1], ok[-1])}[definition]


@pytest.mark.torture
@settings(max_examples=int(os.environ.get("MIDST_RUNS", "150")))
@given(problems(), st.integers(0, 2**32 - 1), st.sampled_from((1e-2, 1e-4, 1e-6)))
def test_certified_is_right(problem, seed, tolerance):
    """Whatever the graph, data, weights and objective: a certified value is within the tolerance of a right answer."""
    result = solve(problem, Consensus(limit=20_000, stop=Certified(tolerance)), rng=seed, throw=False)
    low, high = right_answers(problem)
    if result.certified:
        within = Fraction(result.certificate.tolerance) + Fraction(1, 10**12) * max(abs(low), abs(high), 1)
        assert low - within <= Fraction(result.value) <= high + within
        for x in result.trace.x[-1].tolist():
            assert low - within <= Fraction(x) <= high + within
    elif result.iterations < 20_000:
        pytest.fail("ended early without a certificate")


def test_most_runs_are_certified():
    """The property above is not empty: of 200 ordinary problems, all are certified."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        graph = graphs.make(("rgg", "complete", "er", "regular")[seed % 4], 10 + seed % 11 * 2, rng=seed)
        objective = (Quantile(0.5), Quantile(0.5), Quantile(0.9, "inverted_cdf_high"), Mean())[seed // 4 % 4]
        problem = Problem(graph, rng.normal(size=graph.n), objective=objective)
        assert solve(problem, Consensus(stop=Certified()), rng=seed, record="none").certified


@settings(max_examples=200)
@given(problems(objectives=st.sampled_from([Quantile(0.5), Quantile(0.3), Quantile(1)])), st.data())
def test_proof_holds_for_any_x(problem, data):
    """The proof speaks of x and s, not of the iteration: any x whatever is judged rightly."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    s = problem.values
    centre = s[rng.integers(len(s))] + rng.choice([0.0, 0.1, -1.0])
    x = centre + rng.choice([0.0, 1e-3], len(s)) * rng.random(len(s))
    low, high = right_answers(problem)
    if Prover(problem.objective, problem.whole_weights, s, np.array(1e-3)).holds(x):
        assert x.max() >= low
        assert x.min() <= high


def test_certificate_no_later_than_the_residual_sum():
    """The count of branches passes no later than |Σ g| < 1 with the subgradients in use, and never after it."""
    graph = graphs.rgg(15, rng=1)
    problem = Problem(graph, np.random.default_rng(1).normal(size=15))
    result = solve(problem, Consensus(c=1.0, stop=After(600)), rng=1, record="all")
    trace = result.trace
    prover = Prover(problem.objective, problem.whole_weights, problem.values, np.array(np.inf))
    signed = graph.sign * trace.z0
    S = np.array([signed[graph.source == i].sum() for i in range(15)])
    z = trace.z0
    for t in range(600):
        S = np.bincount(graph.source, graph.sign * z, 15)
        g = -S - graph.degree * trace.x[t]
        if abs(g.sum()) < 1:
            assert prover.holds(trace.x[t])
        z = 0.5 * z + 0.5 * (z[graph.reverse] - 2 * graph.sign * trace.x[t][graph.target])


numbers = st.integers(-(10**6), 10**6).map(lambda k: k / 997)  # none so small that its rounding is another


@settings(max_examples=300)
@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=4), numbers, st.floats(1e-3, 1e3))
def test_residual_bounds_are_bounds(edges, x, c):
    """Never below |e_ij| of the same numbers in exact arithmetic, however much of it cancels."""
    z, mirror, far = np.array(edges).T
    z = mirror - c * (x + far) + z * 1e-13  # nearly nothing is left
    sign = np.where(np.arange(len(z)) % 2, -1.0, 1.0)
    z, mirror = np.where(sign > 0, z, mirror), np.where(sign > 0, mirror, z)
    bounds = residual_bound(z, mirror, sign, x, far, c, c)
    for k, bound in enumerate(bounds.tolist()):
        near, other = Fraction(z[k]) - Fraction(mirror[k]), Fraction(x) + Fraction(far[k])
        assert Fraction(bound) >= abs(int(sign[k]) * near + Fraction(c) * other)


@given(numbers, st.floats(0.1, 10), st.integers(1, 5))
def test_residual_bounds_make_up_for_the_rounding_of_x(s, curvature, degree):
    """x is off by a rounding, and what that does to the node's own gradient lies within the room of its edges."""
    c, none = 1e-9, np.zeros(degree)
    weight = curvature + c * degree
    x = curvature * s / weight
    bounds = residual_bound(none, none, np.ones(degree), x, none, c, weight / degree)
    room = sum(Fraction(bound) - abs(Fraction(c) * Fraction(x)) for bound in bounds.tolist())
    assert room >= abs(Fraction(weight) * Fraction(x) - Fraction(curvature) * Fraction(s))


def test_as_far_apart_as_the_tolerance_is_close_but_for_rounding():
    """0.4 − 0.1 is 0.3, though not in floats; a trillionth more is not."""
    assert 0.4 - 0.1 > 0.3
    low, high = np.array(0.1), np.array([0.4, 0.4 + 1e-12])
    assert lie_within(low, high, np.array(0.3)).tolist() == [True, False]
    assert lie_within(-high, -low, np.array(0.3)).tolist() == [True, False]


@given(st.integers(2, 9), st.data())
def test_what_is_needed_is_just_enough(n, data):
    """Where x is a right answer at every node, that is proved: no more weight is asked for than there must be."""
    values = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), float)
    q = data.draw(st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(1)]))
    problem = Problem(graphs.complete(n), values, objective=Quantile(q, "any"))
    for answer in problem.answer:
        assert Prover(problem.objective, problem.whole_weights, values, np.array(0.0)).holds(np.full(n, float(answer)))


def test_small_steps_prove_nothing():
    """A run stopped when x hardly moves may be far from the median; the certificate is not fooled."""
    graph = graphs.ring(15)
    problem = Problem(graph, np.random.default_rng(0).normal(size=15))
    result = solve(problem, Consensus(c=1.0, sigma=0.1, stop=After(1500)), rng=0, record="all")
    moves = np.abs(np.diff(result.trace.x, axis=0)).max(axis=1)
    still = int(np.argmax(moves < 1e-3))
    off = np.abs(result.trace.x[still] - np.median(problem.values)).max()
    assert off > 1e-3
    prover = Prover(problem.objective, problem.whole_weights, problem.values, np.array(1e-3))
    assert not prover.holds(result.trace.x[still])


def test_without_a_certificate_is_an_error():
    """A run that ends without its proof raises, carries what it reached, and says so when asked to return it."""
    problem = Problem(graphs.ring(9), np.arange(9.0))
    with pytest.raises(NotCertified, match="certificate was not reached in 5 iterations") as caught:
        solve(problem, Consensus(limit=5, stop=Certified()), rng=0)
    assert not caught.value.result.certified
    assert "NOT certified" in repr(solve(problem, Consensus(limit=5), rng=0, throw=False))
    with pytest.raises(NotCertified, match="x close enough for a search was not reached in 5 iterations"):
        solve(problem, Consensus(limit=5), rng=0)


def test_theta_1_does_not_converge():
    """The paper's remark: standard PDMM fails for the median. Forced, it runs into its limit."""
    problem = Problem(graphs.ring(9), np.random.default_rng(1).normal(size=9))
    method = Consensus(theta=1, force=True, limit=3000, stop=Certified())
    assert not solve(problem, method, rng=1, throw=False).certified
