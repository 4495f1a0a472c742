"""The view of a trace is that of the messages an adversary received, and of nothing else."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raw_messages import Messages

import midst
from midst import Certified, Consensus, Exact, Problem, Quantile, Search, graphs
from midst.engines.reference import iterate
from midst.engines.reference_search import search_problem
from midst.methods import After, rules_of
from midst.privacy.adversaries import Adversary
from midst.privacy.observations import Branches, Heard, Shifted
from midst.privacy.tracking import track
from midst.privacy.views import SHORTEST, view
from midst.protocol.message import Message
from midst.protocol.statements import Statement
from midst.system import assemble, settle

KINDS = ("ring", "path", "complete", "star", "rgg")


@st.composite
def settings_of_a_run(draw):
    n = draw(st.integers(3, 8))
    graph = graphs.make(draw(st.sampled_from(KINDS)), n, rng=np.random.default_rng(draw(st.integers(0, 99))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.integers(0, 3, n) if draw(st.booleans()) else np.ones(n, int)
    weights[0] = max(weights[0], 1)
    objective = Quantile(
        draw(st.sampled_from([0.5, 0.25, 0.9])), draw(st.sampled_from(["inverted_cdf", "inverted_cdf_high"]))
    )
    bounds = (-10.0, 10.0) if draw(st.booleans()) else None
    problem = Problem(graph, rng.normal(size=n), weights=weights, objective=objective, bounds=bounds)
    corrupt = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    eavesdrops = draw(st.booleans()) or not corrupt
    adversary = Adversary(corrupt, eavesdrops, draw(st.sampled_from(["clear", "sealed"])))
    stop = draw(st.sampled_from([After(4), After(30), Exact()]))
    c, sigma = draw(st.sampled_from([0.3, 1.0, 3.0])), draw(st.sampled_from([0.0, 0.1, 1.0]))
    mu = draw(st.sampled_from([0.0, -2.5]))
    method = draw(st.sampled_from([Search(arity=3), Search(arity=1), Consensus(c=c, mu=mu, sigma=sigma, stop=stop)]))
    return problem, adversary, method


def recorded(problem, adversary, method, seed):
    """The run as the reference engine makes it, with everything that is sent on record; and the view of that."""
    record = "all" if isinstance(method, midst.Consensus) else "audit"
    result = midst.solve(problem, method, rng=seed, engine="reference", record=record, keep_values=True)
    own = {i: float(problem.values[i]) for i in adversary.corrupt}
    if isinstance(method, Search):
        messages, rules = Messages(problem, None, adversary), rules_of(problem, method)
        search_problem(problem, rules, messages.hear)
        return result, messages.view(rules, own)
    parameters = settle(problem, c=method.c, mu=method.mu, sigma=method.sigma)
    messages = Messages(problem, parameters, adversary)
    system = assemble(problem, parameters, result.trace.z0)
    steps = iterate(system, messages.hear)
    list(islice(steps, result.iterations + 1))  # x is yielded before it is sent
    rules = None
    if result.trace.answer is not None:
        opening = tuple(probe.edges[1:-1] for probe in result.trace.probes if probe.step == 0)
        rules = replace(rules_of(problem, Search()), opening=opening)
        search_problem(problem, rules, messages.hear)
    return result, messages.view(rules, own)


def assert_same(one, two, near):
    assert type(one) is type(two)
    for field in fields(one):
        mine, other = getattr(one, field.name), getattr(two, field.name)
        if isinstance(mine, float) and isinstance(other, float):
            assert mine == pytest.approx(other, rel=1e-9, abs=near), field.name
        elif field.name == "held" and mine is not None and other is not None:
            assert mine == pytest.approx(other, rel=1e-9, abs=near)
        else:
            assert mine == other, field.name


@pytest.mark.torture
@settings(max_examples=int(os.environ.get("MIDST_RUNS", "60")))
@given(settings_of_a_run(), st.integers(0, 2**32))
def test_the_view_of_a_trace_is_that_of_its_messages(case, seed):
    problem, adversary, method = case
    result, heard = recorded(problem, adversary, method, seed)
    sealed = adversary.eavesdrops and adversary.init == "sealed"
    assume(not (sealed and 0 < result.iterations < SHORTEST and method.sigma > 0))  # refused, as too short
    seen = view(result.trace, adversary)
    near = 1e-9 * float(np.abs(result.trace.x).max(initial=1.0))
    assert len(seen.observations) == len(heard.observations)
    for mine, other in zip(seen.observations, heard.observations, strict=True):
        assert_same(mine, other, near)
    if seen.messages is not None:
        np.testing.assert_array_equal(seen.messages, heard.messages)
        for mine, other in zip(seen.sums, heard.sums, strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-12)
    assert (seen.published is None) == (heard.published is None)
    if seen.published is not None:
        for field in fields(seen.published):
            if field.name not in ("hidden", "own"):
                mine, other = getattr(seen.published, field.name), getattr(heard.published, field.name)
                assert np.array_equal(mine, other), field.name
        np.testing.assert_array_equal(seen.published.own.weight, heard.published.own.weight)
        np.testing.assert_array_equal(seen.published.own.side, heard.published.own.side)


def test_all_kinds_of_sight_are_compared():
    """The property above would hold of nothing, too: here is something of each kind."""
    found = set()
    for seed in range(6):
        for adversary in (Adversary(), Adversary(init="sealed"), Adversary((0,), False)):
            problem = Problem(graphs.ring(7), np.random.default_rng(seed).normal(size=7))
            _, heard = recorded(problem, adversary, Consensus(c=1.0, sigma=1.0, stop=After(40)), seed)
            found |= {
                (type(observation).__name__, getattr(observation, "value", None) is not None)
                for observation in heard.observations
            }
    assert found >= {(kind.__name__, known) for kind in (Branches, Shifted, Heard) for known in (False, True)}
    assert ("Unseen", False) in found


def test_what_no_view_accounts_for_is_refused():
    problem = Problem(graphs.ring(4), np.arange(4.0))
    messages = Messages(problem, settle(problem), Adversary())
    for strange in ("hello", b"S", Message(1, np.array([1.0, 2.0])), Statement(b"X" + bytes(40), b""), None):
        with pytest.raises(midst.InputError, match="no view accounts for"):
            messages.hear(0, 1, strange)
    with pytest.raises(midst.InputError, match="no view accounts for"):
        messages.hear(0, 2, Message(1, 0.5))  # they are no neighbours
    messages.hear(0, 1, Message(1, 0.5))
    with pytest.raises(midst.InputError, match="two different"):
        messages.hear(0, 1, Message(1, 0.6))
    messages.hear(0, 3, Message(1, 0.7))
    with pytest.raises(midst.InputError, match="two different"):
        messages.view()


def test_certified_runs_too():
    problem = Problem(graphs.complete(5), np.random.default_rng(2).normal(size=5))
    adversary = Adversary((1,), False)
    result, heard = recorded(problem, adversary, Consensus(c=1.0, sigma=0.5, stop=Certified(1e-2)), 3)
    for mine, other in zip(view(result.trace, adversary).observations, heard.observations, strict=True):
        assert_same(mine, other, 1e-9)
        assert isinstance(mine, Shifted)  # a member of the coalition is everybody's neighbour


def test_without_noise_a_coalition_reads_what_the_run_did():
    """At sigma = 0 every z(0) is public, and x may repeat by chance: neither may mislead the reading."""
    values = np.random.default_rng(1)
    for seed in range(20):
        problem = Problem(graphs.ring(9), values.normal(size=9))
        result = midst.solve(problem, Consensus(mu=-2.5, sigma=0.0, stop=After(40)), rng=seed)
        seen = view(result.trace, Adversary((0, 3), False))
        assert track(seen) == seen.observations
