"""The audit of an objective of one's own: Huber's location held against brute force, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midst import Adversary, After, Consensus, InputError, Problem, audit, graphs, priors, solve
from midst.engines.reference import iterate
from midst.normals import EdgeNormals
from midst.protocol.node import rows
from midst.robust import Huber, ListMedian
from midst.system import assemble, draw_z0, make_node, settle

PRIOR = priors.Normal(0.0, 2.0)


def messages_of(node, z, received):
    """What a node sends from its z(0) on, given what it received."""
    state, _ = node.begin(z)
    sent = []
    for inbox in received:
        state, _ = node.step(state, inbox)
        sent.append(state.x)
    return sent


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from((0.2, 1.0, 3.0)), st.sampled_from((0.5, 0.8)))
def test_bounds_are_all_values_that_send_the_same(seed, delta, theta):
    """An eavesdropper who knows z(0) can try every value: those that give the same messages are what the audit says."""
    rng = np.random.default_rng(seed)
    graph, values = graphs.rgg(6, rng=1), rng.normal(scale=2.0, size=6)
    problem = Problem(graph, values, objective=Huber(delta), weights=rng.integers(1, 4, 6))
    parameters = settle(problem, theta=theta)
    z0 = draw_z0(graph, parameters, EdgeNormals.drawn(rng))
    system, iterations = assemble(problem, parameters, z0), 12
    heard = []
    for _ in itertools.islice(iterate(system, lambda i, j, message: heard.append((i, j, message))), iterations):
        pass
    rounds = [
        {i: {j: message for j, to, message in heard if to == i and message.round == t} for i in range(6)}
        for t in range(iterations)
    ]
    method = Consensus(c=parameters.c, theta=theta, z0=z0, stop=After(iterations))
    found = audit(solve(problem, method, record="all").trace, prior=PRIOR, resolution=1e-3)
    drawn = [rows(z) for z in np.split(z0, graph.first_edges[1:-1])]
    for i in range(6):
        received = [each[i] for each in rounds]
        own = make_node(i, graph, system.terms[i], system.c, system.theta)
        sent = messages_of(own, drawn[i], received)

        def same(s, own=own, i=i, received=received, sent=sent):
            other = replace(own, terms=replace(own.terms, s=float(s)))
            return np.allclose(messages_of(other, drawn[i], received), sent, rtol=0, atol=1e-12)

        lower, upper = found.lower[i], found.upper[i]
        if found.exposed[i]:
            assert lower == pytest.approx(values[i], abs=1e-9)
            assert upper == pytest.approx(values[i], abs=1e-9)
            assert not same(values[i] + 0.01)
            assert not same(values[i] - 0.01)
            cell = np.floor(values[i] / 1e-3 + 0.5) * 1e-3
            mass = PRIOR.log_mass(cell - 5e-4, cell + 5e-4)
            assert found.bits[i] == pytest.approx(-mass / np.log(2), abs=1e-5)
            continue
        assert lower <= values[i] <= upper
        for end, side in ((lower, -1), (upper, 1)):
            assert np.isinf(end) or (same(end - side * 1e-6) and not same(end + side * 1e-3))
        for s in np.linspace(max(lower, values[i] - 20), min(upper, values[i] + 20), 7):
            assert same(s)
        assert found.bits[i] == pytest.approx(-PRIOR.log_mass(lower, upper) / np.log(2), abs=1e-9)


def run(objective=None, record="all", stop=None, values=None):
    graph = graphs.rgg(9, rng=1)
    held = np.random.default_rng(2).normal(size=9) * 3 if values is None else values
    pooled = objective is not None and objective.lists
    problem = Problem(graph, held, objective=objective or Huber(0.5), pooled=pooled)
    return solve(problem, Consensus(stop=stop), rng=3, record=record)


def test_who_is_exposed_is_who_the_result_says():
    result = run()
    found = audit(result.trace)
    assert tuple(np.flatnonzero(found.exposed)) == result.exposed
    assert 0 < len(result.exposed) < 9
    assert found.kind == "exact"
    assert np.isnan(found.floor).all()


def test_a_coalition_is_bounded_by_whoever_hears_all():
    trace = run().trace
    found = audit(trace, Adversary(corrupt=(0, 1), eavesdrops=False))
    assert found.kind == "upper bound"
    clear = audit(trace, Adversary(corrupt=(0, 1), eavesdrops=True))
    np.testing.assert_array_equal(found.bits, clear.bits)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: audit(run().trace, Adversary(init="sealed")), "audited with z\\(0\\) in the clear only"),
        (lambda: audit(run(record="audit").trace), "a Huber location needs every x and z\\(0\\); run with record all"),
        (lambda: audit(run(record="auto").trace), "run with record all"),
        (lambda: audit(run(ListMedian(), values=[[k, 2.0 * k] for k in range(9)]).trace), "is not worked out"),
    ],
)  # fmt: skip
def test_refused(make, text):
    with pytest.raises(InputError, match=text):
        make()
