"""The attack kit against the truth."""

from __future__ import annotations

import numpy as np
import pytest

import midst
from midst import graphs
from midst.privacy.adversaries import Adversary
from midst.privacy.attack import ATTACKS, reconstruct
from midst.privacy.audit import audit
from midst.privacy.priors import Normal
from midst.privacy.views import view

SEALED = Adversary(init="sealed")


def solve(seed, sigma=1.0, n=7, record="all", iterations=200):
    values = np.random.default_rng([seed, 5]).normal(size=n)
    problem = midst.Problem(graphs.complete(n), values)
    trace = midst.solve(
        problem, midst.Consensus(c=1.0, mu=0.0, sigma=sigma, stop=midst.After(iterations)), rng=seed, record=record
    ).trace
    return values, trace


def test_estimates_beat_the_prior():
    """The mean error is below that of guessing 0, which is E|S| = 0.80; more so for what is better seen."""
    errors = {"prior": [], "sealed": [], "clear": []}
    for seed in range(25):
        values, trace = solve(seed)
        errors["prior"].append(np.abs(values).mean())
        for name, adversary in (("sealed", SEALED), ("clear", Adversary())):
            errors[name].append(np.abs(reconstruct(view(trace, adversary)).estimate - values).mean())
    mean = {name: np.mean(each) for name, each in errors.items()}
    assert mean["clear"] < mean["sealed"] < mean["prior"]
    assert mean["clear"] < 0.5 * mean["prior"]


def test_certainty_is_calibrated():
    said, was = [], []
    for seed in range(60):
        values, trace = solve(seed, n=5, iterations=100)
        try:
            found = reconstruct(view(trace, SEALED), tolerance=0.5)
        except midst.InputError:
            continue
        said += found.certainty.tolist()
        was += (np.abs(found.estimate - values) <= 0.5).tolist()
    said, was = np.array(said), np.array(was)
    spread = np.sqrt((said * (1 - said)).sum()) / len(said)
    assert abs(said.mean() - was.mean()) < 4 * spread + 1e-3


def test_how_each_estimate_was_had():
    values, trace = solve(3)
    clear = reconstruct(view(trace, Adversary()))
    assert set(clear.how) == {"plateau", "bounds"}
    sealed = reconstruct(view(trace, SEALED))
    assert set(sealed.how) <= {"plateau", "bounds", "side"}
    assert "side" in sealed.how
    passive = reconstruct(view(trace, Adversary((0,), eavesdrops=False)))
    assert passive.how[0] == ""
    assert np.isnan(passive.estimate[0])
    assert set(passive.how[1:]) <= {"plateau", "bounds", "side"}  # everybody is its neighbour: it hears every x
    np.testing.assert_array_equal(passive.estimate[passive.known], values[passive.known])
    assert "values known" in repr(sealed)
    with pytest.raises(midst.InputError, match="tolerance"):
        reconstruct(view(trace, SEALED), tolerance=0.0)


def path_of_seven(seed):
    values = np.random.default_rng([seed, 1]).normal(size=7)
    method = midst.Consensus(c=1.0, mu=0.0, sigma=0.1, stop=midst.After(500))
    return values, midst.solve(midst.Problem(graphs.path(7), values), method, rng=seed, record="all").trace


def test_values_are_read_off_nodes_that_are_not_heard():
    """Seven in a row, the first one corrupt: 200 runs, and at least 157 values of those at distance two and more."""
    right = wrong = 0
    for seed in range(200):
        values, trace = path_of_seven(seed)
        found = reconstruct(view(trace, Adversary((0,), eavesdrops=False)))
        read = found.how == "inversion"
        assert not read[:2].any()
        right += int((np.abs(found.estimate[read] - values[read]) <= 1e-6).sum())
        wrong += int((np.abs(found.estimate[read] - values[read]) > 1e-6).sum())
        assert found.known[read].all()
    assert right >= 157
    assert wrong == 0


def test_what_is_read_is_counted():
    """The audit of a coalition says at least what the attack finds, and at most what one that hears all x learns."""
    adversary, gap = Adversary((0,), eavesdrops=False), []
    for seed in range(20):
        _, trace = path_of_seven(seed)
        leak = audit(trace, adversary)
        assert leak.kind == "upper bound"
        found = reconstruct(view(trace, adversary))
        assert (leak.at_least[found.known] > 9).all()  # a value, of N(0, 1) to a thousandth
        gap.append(leak.mean_bits - leak.mean_at_least)
        assert np.isnan(leak.at_least[0])
        assert leak.to_dict()["nodes"][3]["bits_at_least"] == leak.at_least[3]
    assert np.mean(gap) > 0


def test_jumps_tell_bounds_of_a_node_whose_neighbours_are_all_heard():
    """A ring of nine, 0 and 3 corrupt: 1 and 2 are heard with all their neighbours, and 5, 6, 7 are not heard."""
    adversary, told = Adversary((0, 3), eavesdrops=False), 0
    for seed in range(20):
        values = np.random.default_rng([seed, 2]).normal(size=9)
        method = midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(100))
        trace = midst.solve(midst.Problem(graphs.ring(9), values), method, rng=seed, record="all").trace
        beliefs = ATTACKS["jumps"](view(trace, adversary), [Normal(0, 1)] * 9, np.full(9, 0.01))
        assert set(beliefs) <= {1, 2}
        for i, posterior in beliefs.items():
            lower, upper = posterior.bounds
            assert lower <= values[i] <= upper
            told += 1
    assert told > 10


def test_a_coalition_beside_everybody_hears_as_much_as_an_eavesdropper():
    graph = graphs.star(6)
    for seed in range(6):
        values = np.random.default_rng(seed).normal(size=6)
        method = midst.Consensus(c=1.0, mu=0.0, sigma=1.0, stop=midst.After(60))
        trace = midst.solve(midst.Problem(graph, values), method, rng=seed, record="all").trace
        hub = int(np.argmax(graph.degree))
        alone, all_ears = (audit(trace, Adversary((hub,), heard, "sealed")) for heard in (False, True))
        assert alone.kind == all_ears.kind != "upper bound"
        np.testing.assert_array_equal(alone.bits, all_ears.bits)
        np.testing.assert_array_equal(alone.at_least, alone.bits)


def test_without_raw_messages_the_view_s_own_reading_is_used():
    values, trace = solve(4, record="audit")
    found = reconstruct(view(trace, Adversary()), Normal(0, 1))
    assert found.known.any()
    np.testing.assert_array_equal(found.estimate[found.known], values[found.known])
