"""The report: never wrong, quick, and what it says of coalitions, means, vectors and relays."""

from __future__ import annotations

import json
import math
import os
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import midst
from midst import graphs
from midst.privacy.adversaries import Adversary
from midst.privacy.attack import reconstruct
from midst.privacy.audit import Leakage, _jackknife, audit, audit_together
from midst.privacy.priors import Normal, Uniform
from midst.privacy.views import view

RUNS = int(os.environ.get("MIDST_RUNS", "150"))  # of the never-wrong loop; `make torture` does 10,000
SEALED = Adversary(init="sealed")


def random_run(seed):
    rng = np.random.default_rng([seed, 7])
    n = int(rng.integers(3, 9))
    kind = str(rng.choice(["ring", "complete", "path", "star", "rgg", "tree"]))
    graph = graphs.make(kind, n, rng=rng)
    values = rng.normal(size=n) * float(rng.choice([0.1, 1, 10]))
    definition = str(rng.choice(["any", "inverted_cdf", "inverted_cdf_high"]))
    problem = midst.Problem(
        graph, values, objective=midst.Quantile(float(rng.choice([0.5, 0.5, 0.3, 0.9])), definition)
    )
    settings = {"c": float(rng.choice([0.3, 1, 3])), "sigma": float(rng.choice([0.1, 1, 5])), "mu": float(rng.normal())}
    method = midst.Consensus(**settings, stop=midst.After(int(rng.integers(5, 300))))
    trace = midst.solve(problem, method, rng=seed, record="all").trace
    return values, trace


@pytest.mark.torture
def test_never_wrong():
    """True values lie within the bounds, and exposed ones are recovered, for both kinds of initialisation."""
    exposed = refused = 0
    for seed in range(RUNS):
        values, trace = random_run(seed)
        adversaries = [Adversary(), SEALED, Adversary((int(seed % len(values)),), True, "sealed")]
        for adversary in adversaries if seed % 3 == 0 else adversaries[:1]:
            try:
                report = audit(trace, adversary, Normal(0, 10))
            except midst.InputError as refusal:
                assert "longer run" in str(refusal)  # noqa: PT017
                refused += 1
                continue
            honest = np.isfinite(report.bits)
            assert (report.lower[honest] <= values[honest]).all()
            assert (values[honest] <= report.upper[honest]).all()
            assert (report.bits[honest] >= 0).all()
            found = reconstruct(view(trace, adversary), Normal(0, 10))
            known = report.exposed
            np.testing.assert_allclose(found.estimate[known], values[known], rtol=0, atol=1e-9)
            assert (found.certainty[known] > 1 - 1e-6).all()
            exposed += int(known.sum())
    assert exposed > RUNS
    assert refused < RUNS / 20


def test_mean_bits_of_nodes_never_inside():
    """Near 1.3 bits on random geometric graphs of 15: not zero, as Theorem 1 has it."""
    bits = []
    for seed in range(60):
        graph = graphs.rgg(15, rng=seed)
        problem = midst.Problem(graph, np.random.default_rng([seed, 1]).normal(size=15))
        trace = midst.solve(
            problem, midst.Consensus(c=1.0, mu=0.0, sigma=0.1, stop=midst.After(300)), rng=seed, record="audit"
        ).trace
        report = audit(trace)
        bits += report.bits[~report.exposed].tolist()
    assert 1.15 < np.mean(bits) < 1.45


def calls_of(action):
    """How many Python functions are called: the work that is done, whatever the machine."""
    count = 0

    def follow(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    action()  # what is loaded the first time does not count
    sys.setprofile(follow)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_long_traces_are_quick():
    """The clear audit reads what was recorded, however long the run; a sealed one makes the messages again, once."""
    problem = midst.Problem(graphs.rgg(15, rng=3), np.random.default_rng(0).normal(size=15))
    clear, sealed = [], []
    for iterations in (500, 2000):
        method = midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(iterations))
        trace = midst.solve(problem, method, rng=5, record="audit").trace
        clear.append(calls_of(lambda trace=trace: audit(trace)))
        sealed.append(calls_of(lambda trace=trace: audit(trace, SEALED)))
    assert clear[0] == clear[1]
    assert sealed[1] - sealed[0] < 1500 * 30


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20))
def test_the_jackknife_of_a_mean_is_its_standard_error(numbers):
    """What everybody knows of it: for means with one left out in turn it is the textbook's s / √n."""
    left_out = [float(np.mean(numbers[:k] + numbers[k + 1 :])) for k in range(len(numbers))]
    assert _jackknife(left_out) == pytest.approx(np.std(numbers, ddof=1) / math.sqrt(len(numbers)), abs=1e-9)
    assert _jackknife([]) == 0.0


def test_sealing_helps_on_average_and_noise_decides_how_much():
    totals = {}
    for sigma in (0.05, 1.0):
        clear, sealed = [], []
        for seed in range(25):
            problem = midst.Problem(graphs.complete(5), np.random.default_rng([seed, 3]).normal(size=5))
            trace = midst.solve(
                problem, midst.Consensus(c=3.0, mu=0.0, sigma=sigma, stop=midst.After(400)), rng=seed, record="audit"
            ).trace
            clear.append(audit(trace, Adversary(), resolution=0.1).mean_bits)
            sealed.append(audit(trace, SEALED, resolution=0.1).mean_bits)
        totals[sigma] = np.mean(clear) - np.mean(sealed)
    assert totals[1.0] > 0.2
    assert abs(totals[0.05]) < 0.1


def test_a_coalition_that_does_not_eavesdrop_gets_an_upper_bound():
    _, trace = random_run(12)
    report = audit(trace, Adversary((0,), eavesdrops=False))
    bound = audit(trace, Adversary((0,), True, "sealed"))
    assert report.kind == "upper bound"
    assert "upper bound" in report.notes[0]
    assert np.array_equal(report.bits, bound.bits, equal_nan=True)
    mean = midst.Problem(graphs.ring(5), np.arange(5.0), objective=midst.Mean())
    mean = midst.solve(mean, midst.Consensus(), rng=1, record="all").trace
    assert audit(mean, Adversary((0,), eavesdrops=False), Normal(2, 2)).kind == "upper bound"


def test_means_are_exposed_by_clear_z0():
    values = np.random.default_rng(3).normal(size=7)
    weights = [1, 2, 1, 0, 3, 1, 1]
    problem = midst.Problem(graphs.ring(7), values, weights=weights, objective=midst.Mean())
    trace = midst.solve(problem, midst.Consensus(), rng=1, record="all").trace
    report = audit(trace)
    counted = np.array(weights) > 0
    assert report.exposed.tolist() == counted.tolist()
    np.testing.assert_allclose(report.lower[counted], values[counted], atol=1e-9)
    assert report.bits[3] == pytest.approx(0)
    np.testing.assert_allclose(reconstruct(view(trace, Adversary())).estimate[counted], values[counted], atol=1e-9)
    with pytest.raises(midst.InputError, match="record audit"):
        audit(midst.solve(problem, midst.Consensus(), rng=1, record="auto").trace)


def test_a_relay_of_weight_zero_tells_nothing():
    values = np.random.default_rng(3).normal(size=5)
    problem = midst.Problem(graphs.complete(5), values, weights=[1, 1, 0, 1, 0])
    trace = midst.solve(
        problem, midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(200)), rng=1, record="all"
    ).trace
    for adversary in (Adversary(), SEALED):
        report = audit(trace, adversary)
        assert report.bits[[2, 4]] == pytest.approx(0)
        assert np.isinf(report.lower[[2, 4]]).all()


def test_vectors_are_audited_a_coordinate_at_a_time():
    values = np.random.default_rng(8).normal(size=(5, 2))
    both = midst.solve(
        midst.Problem(graphs.ring(5), values), midst.Consensus(c=1.0, stop=midst.After(80)), rng=3, record="all"
    ).trace
    with pytest.raises(midst.InputError, match="coordinate"):
        audit(both)
    with pytest.raises(midst.InputError, match="coordinate 2"):
        audit(both, coordinate=2)
    for k in range(2):
        alone = midst.solve(
            midst.Problem(graphs.ring(5), values[:, k]),
            midst.Consensus(c=1.0, mu=0.0, z0=both.z0[:, k], stop=midst.After(80)),
            record="all",
        ).trace
        np.testing.assert_allclose(audit(both, coordinate=k).bits, audit(alone).bits)


def test_the_report_for_machines_and_for_people():
    values, trace = random_run(5)
    report = audit(trace, Adversary((1,), True, "clear"), Normal(0, 10))
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert {"exposed", "exposed_at", "side", "lower", "upper", "bits"} <= set(told["nodes"][0])
    assert told["nodes"][1]["corrupt"]
    assert told["nodes"][1]["bits"] is None
    assert told["totals"]["honest"] == len(values) - 1
    assert told["totals"]["resolution"] == pytest.approx(0.01)
    assert isinstance(report, Leakage)
    shown = repr(report)
    assert "bits a node" in shown
    assert not any(f"{value:.3g}" in shown for value in values)
    assert "private" not in shown.lower() + str(told).lower()
    assert "secure" not in shown.lower() + str(told).lower()


def test_the_holder_of_an_odd_median_is_told():
    problem = midst.Problem(graphs.complete(5), np.arange(5.0))
    long = midst.Consensus(stop=midst.Certified())
    report = audit(midst.solve(problem, long, rng=1, record="audit").trace, prior=Uniform(-1, 5))
    assert report.exposed[2]
    assert any("always exposed" in note for note in report.notes)
    short = audit(midst.solve(problem, "consensus", rng=1, record="audit").trace, prior=Uniform(-1, 5))
    assert not any("always exposed" in note for note in short.notes)
    even = midst.Problem(graphs.complete(4), np.arange(4.0), objective=midst.Quantile(0.5, "any"))
    notes = audit(midst.solve(even, midst.Consensus(stop=midst.After(50)), rng=1).trace, prior=Uniform(-1, 5)).notes
    assert not any("always exposed" in note for note in notes)


def test_resolutions():
    _, trace = random_run(5)
    coarse, fine = (audit(trace, prior=Normal(0, 10), resolution=r) for r in (1.0, 0.001))
    exposed = coarse.exposed
    assert exposed.any()
    assert (fine.bits[exposed] > coarse.bits[exposed] + 5).all()
    assert np.array_equal(fine.bits[~exposed], coarse.bits[~exposed])
    for wrong in (0.0, -1.0, math.nan, "x"):
        with pytest.raises(midst.InputError, match="resolution"):
            audit(trace, resolution=wrong)


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**700])
def test_bits_do_not_depend_on_the_unit_of_the_data(unit):
    reports = []
    for k in (1.0, unit):
        values = np.random.default_rng(1).normal(size=5) * k
        problem = midst.Problem(graphs.complete(5), values, bounds=(-4 * k, 4 * k))
        trace = midst.solve(problem, midst.Consensus(sigma=1.0, stop=midst.After(100)), rng=3, record="audit").trace
        reports.append([audit(trace, who, Normal(0, k)).bits for who in (Adversary(), SEALED)])
    np.testing.assert_allclose(reports[0], reports[1], rtol=1e-6)


def test_large_graphs():
    problem = midst.Problem(graphs.make("regular", 1000, rng=1), np.random.default_rng(1).normal(size=1000))
    trace = midst.solve(problem, midst.Consensus(stop=midst.After(50)), rng=3, record="audit").trace
    assert audit(trace).honest == 1000
    with pytest.raises(midst.InputError, match="up to 400"):
        audit(trace, SEALED)
    bound = audit(trace, Adversary((0,), eavesdrops=False))
    assert "clear" in bound.notes[0]


def test_without_attacks_nothing_else_changes():
    problem = midst.Problem(midst.graphs.ring(7), np.random.default_rng(3).normal(size=7))
    traces = [midst.solve(problem, "consensus", rng=seed, record="audit").trace for seed in (3, 4)]
    sealed = Adversary(init="sealed")
    for attacked, not_attacked in (
        (audit(traces[0], sealed), audit(traces[0], sealed, attacks=False)),
        (audit_together(traces, sealed), audit_together(traces, sealed, attacks=False)),
    ):
        assert attacked.kind == not_attacked.kind == "upper bound"
        assert attacked.mean_at_least >= 0
        assert math.isnan(not_attacked.mean_at_least)
        assert not_attacked.to_dict()["totals"]["bits_at_least_per_node"] is None
        for name in ("bits", "floor", "excess", "lower", "upper", "exposed", "exposed_at"):
            np.testing.assert_array_equal(getattr(attacked, name), getattr(not_attacked, name))
