"""What an adversary knows, over the iterations: the same as an audit of the run's beginning says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import midst
from midst.errors import InputError
from midst.explorer.knowledge import Knowledge, follow, look
from midst.explorer.replay import audited, replay
from midst.explorer.simulate import Made
from midst.privacy.exposure import exposure
from midst.privacy.views import view
from midst.recorder import Recorder
from midst.system import streams
from midst.trace import Trace


def make(
    seed: int, n: int, *, graph: str = "rgg", iterations: int | None = None, stop: Any = None, **options: Any
) -> Trace:
    drawn = streams(seed)
    problem = midst.Problem(midst.graphs.make(graph, n, rng=drawn.graph), drawn.values.standard_normal(n))
    method = midst.Consensus(**options, stop=stop if iterations is None else midst.After(iterations))
    return midst.solve(problem, method, rng=seed, record="all").trace


def beginning(trace: Trace, length: int) -> Trace:
    """The same run, ended earlier."""
    recorder = Recorder("all", trace.x.shape[1:])
    for t in range(length):
        recorder.see(t, trace.x[t], trace.branch[t])
    segments = recorder.segments(length, np.ones(()))
    x, branch = trace.x[:length], trace.branch[:length]
    return replace(trace, iterations=length, t=trace.t[:length], x=x, branch=branch, segments=segments)


def known(trace: Trace, adversary: midst.Adversary) -> Knowledge:
    seen, note = look(trace, adversary, 0)
    assert note == ""
    return follow(seen, trace.t, trace.x, trace.branch)


@settings(max_examples=60)
@example(seed=4, n=3, length=4, mu=0.0, init="sealed", corrupt=())  # inside at t = 0, and again later
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 9),
    length=st.integers(4, 60),
    mu=st.sampled_from([0.0, -4.0, 4.0]),
    init=st.sampled_from(["clear", "sealed"]),
    corrupt=st.sampled_from([(), (1,), (0, 2)]),
)
def test_it_is_what_the_view_of_the_beginning_tells(
    seed: int, n: int, length: int, mu: float, init: Any, corrupt: tuple[int, ...]
) -> None:
    trace = make(seed, n, iterations=60, mu=mu, sigma=0.5, c=1.0)
    adversary = midst.Adversary(corrupt, init=init)
    whole = known(trace, adversary)
    seen = view(beginning(trace, length), adversary)
    told = exposure(seen)
    for observation in seen.observations:
        i, t = observation.node, length - 1
        inside = whole.first[i] >= 0 and whole.first[i] <= t
        assert inside == told.exposed[i]
        lower, upper = whole.lower[t, i], whole.upper[t, i]
        if observation.value is not None:  # type: ignore[union-attr]
            assert lower == upper == observation.value  # type: ignore[union-attr]
        else:
            assert (lower, upper) == (observation.lower, observation.upper)  # type: ignore[union-attr]


@given(seed=st.integers(0, 10_000), init=st.sampled_from(["clear", "sealed"]))
@settings(max_examples=20)
def test_bounds_close_in_and_hold_the_value(seed: int, init: Any) -> None:
    drawn = streams(seed)
    problem = midst.Problem(midst.graphs.ring(7), drawn.values.standard_normal(7))
    trace = midst.solve(problem, midst.Consensus(stop=midst.After(80)), rng=seed, record="all").trace
    found = known(trace, midst.Adversary(init=init))
    assert (found.lower[1:] >= found.lower[:-1]).all()
    assert (found.upper[1:] <= found.upper[:-1]).all()
    assert (found.lower <= problem.values + 1e-12).all()
    assert (found.upper >= problem.values - 1e-12).all()


@pytest.mark.parametrize("options", [{}, {"mu": -10.0, "sigma": 1.0, "c": 1.0}])
def test_in_the_end_it_is_what_the_audit_says(options: dict[str, float]) -> None:
    trace = make(7, 15, stop=midst.Certified(), **options)
    story = replay(Made(trace, midst.Adversary(), midst.priors.Normal()))
    leakage = midst.audit(trace)
    facts, arrays = audited(story)
    assert np.array_equal(story.arrays["lower"][-1], leakage.lower)
    assert np.array_equal(story.arrays["upper"][-1], leakage.upper)
    assert np.array_equal(story.arrays["first"] >= 0, leakage.exposed)
    assert np.array_equal(story.arrays["first"], leakage.exposed_at)
    assert facts["audit"] == leakage.to_dict()
    assert arrays["bits"][-1] == pytest.approx(leakage.bits)
    assert (np.diff(arrays["bits"], axis=0) >= -1e-12).all()
    assert arrays["moments"][-1] == trace.iterations - 1


@pytest.mark.parametrize("options", [{}, {"mu": -10.0, "sigma": 1.0, "c": 1.0}])
def test_a_search_in_the_end_comes_on_top(options: dict[str, float]) -> None:
    trace = make(7, 15, stop=midst.Exact(), **options)
    story = replay(Made(trace, midst.Adversary(), midst.priors.Normal()))
    leakage = midst.audit(trace)
    _, arrays = audited(story)
    assert arrays["bits"][-1] == pytest.approx(leakage.bits)
    assert (story.arrays["lower"][-1] <= leakage.lower).all()
    assert (story.arrays["upper"][-1] >= leakage.upper).all()


def test_bits_on_the_way_are_those_of_the_beginning() -> None:
    trace = make(3, 9, iterations=50, mu=-3.0, sigma=1.0, c=1.0)
    _, arrays = audited(replay(Made(trace, midst.Adversary(), midst.priors.Normal())))
    for row in (5, 20, 49):
        part = midst.audit(beginning(trace, row + 1))
        assert arrays["bits"][row] == pytest.approx(part.bits)


def test_who_hears_nothing_knows_nothing() -> None:
    trace = make(2, 9, graph="path", iterations=30)
    found = known(trace, midst.Adversary([0], eavesdrops=False))
    far = [i for i in range(9) if i > 1]
    assert (found.first[far] == -1).all()
    assert np.isinf(found.lower[:, far]).all()


@pytest.mark.parametrize(
    ("options", "adversary", "words"),
    [
        ({"theta": 0.4}, midst.Adversary(init="sealed"), "theta = 0.5 only"),
        ({"iterations": 3}, midst.Adversary(init="sealed"), "4 iterations"),
    ],
)
def test_what_is_not_known_to_midst_is_said(options: dict[str, Any], adversary: midst.Adversary, words: str) -> None:
    trace = make(4, 7, **options)
    seen, note = look(trace, adversary, 0)
    assert seen is not None
    assert words in note


def test_a_run_that_does_not_tell_who_was_exposed_is_not_shown_as_if_nobody_were() -> None:
    for result, words in (
        (midst.median([1.0, 2.0, 3.0], rng=1, method="consensus", record="none"), "no segments; run with record audit"),
        (
            midst.mean([1.0, 2.0, 3.0], rng=1, method="consensus", record="auto"),
            "needs z\\(0\\), which this trace has not; run with record audit",
        ),
    ):
        with pytest.raises(midst.InputError, match=words):
            replay(Made(result.trace, midst.Adversary(), midst.priors.Normal()))


def test_a_mean_exposes_everybody_from_the_start() -> None:
    drawn = streams(5)
    problem = midst.Problem(midst.graphs.ring(5), drawn.values.standard_normal(5), objective=midst.Mean())
    trace = midst.solve(problem, "consensus", rng=5, record="all").trace
    for adversary in (midst.Adversary(), midst.Adversary([1], eavesdrops=False)):
        seen, note = look(trace, adversary, 0)
        assert seen is not None
        found = follow(seen, trace.t, trace.x, trace.branch)
        honest = seen.honest
        assert (found.first[honest] == 0).all()
        assert found.lower[0, honest] == pytest.approx(problem.values[honest])
        assert ("which is more" in note) == (not adversary.eavesdrops)
    with pytest.raises(InputError):
        view(trace, midst.Adversary(init="sealed"))
    assert "in the clear only" in look(trace, midst.Adversary(init="sealed"), 0)[1]


def test_weightless_nodes_tell_nothing() -> None:
    problem = midst.Problem(midst.graphs.ring(5), [1.0, 2, 3, 4, 5], weights=[1, 1, 1, 0, 2])
    trace = midst.solve(problem, "consensus", rng=2, record="all").trace
    found = known(trace, midst.Adversary())
    assert math.isinf(found.lower[-1, 3])
    assert found.first[3] == -1
