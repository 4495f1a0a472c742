"""What the totals of a count tell, against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midst import Adversary, Problem, Uniform, audit, graphs, solve
from midst.privacy.posterior import Piece, Posterior, single
from midst.privacy.ranks import rank_bits, rank_bound

PRIOR = Uniform(0, 1)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 2))
def test_against_enumeration(seed, n, candidates):
    """−log2 of the probability that the nodes fall on the sides announced, summed over all ways they can."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.random((n, 2)), axis=1)
    weights = rng.integers(1, 3, n).tolist()
    truth = rng.uniform(ends[:, 0], ends[:, 1])
    values = sorted(rng.random(candidates).tolist())
    posteriors = {i: single(PRIOR, i, *ends[i]) for i in range(n)}
    totals = {v: (int(np.dot(weights, truth < v)), int(np.dot(weights, truth > v))) for v in values}
    edges = [0.0, *values, 1.0]
    chance = 0.0
    for cells in itertools.product(range(candidates + 1), repeat=n):
        below = {v: sum(w for w, cell in zip(weights, cells, strict=True) if cell <= k) for k, v in enumerate(values)}
        if all(below[v] == totals[v][0] for v in values):
            chance += math.prod(
                max(min(high, edges[cell + 1]) - max(low, edges[cell]), 0) / (high - low)
                for (low, high), cell in zip(ends.tolist(), cells, strict=True)
            )
    bits = rank_bits(posteriors, weights, totals)
    assert bits == pytest.approx(-math.log2(chance), abs=1e-9)


def test_nothing_counted_nothing_told():
    assert rank_bits({}, [], {}) == 0
    assert rank_bound({}, [], []) == 0


def test_the_bound_counts_the_undecided():
    two_sides = Posterior(PRIOR, (Piece(0.5, 0, 0.4), Piece(0.5, 0.6, 1)))
    posteriors = {0: single(PRIOR, 0, 0, 1), 1: single(PRIOR, 1, 0, 0.4), 2: single(PRIOR, 2, 0.3, 1), 3: two_sides}
    assert rank_bound(posteriors, [1, 1, 1, 1], [0.5]) == math.log2(5)
    assert rank_bound(posteriors, [1, 1, 1, 1], [0.2, 0.99]) == math.log2(7) + math.log2(7)


def test_too_many_ways_are_not_added_up(monkeypatch):
    monkeypatch.setattr("midst.privacy.ranks._MOST_WAYS", 1)
    posteriors = {i: single(PRIOR, i, 0, 1) for i in range(4)}
    assert rank_bits(posteriors, [1] * 4, {0.5: (2, 2)}) is None


def test_in_a_report():
    """Beside the bits of each node, never in them; exact in the clear, a bound for a coalition."""
    values = np.random.default_rng(2).normal(size=15)
    trace = solve(Problem(graphs.rgg(15, rng=2), values), c=1.0, rng=2, record="audit").trace
    clear = audit(trace)
    assert clear.candidates == len(trace.candidates.value) >= 1
    assert clear.rank_bits >= 0
    assert audit(trace, Adversary((3,))).rank_bits >= 0
    assert clear.to_dict()["totals"]["rank_bits"] == clear.rank_bits
    assert any("ranks" in note for note in clear.notes)
    plain = solve(Problem(graphs.rgg(15, rng=2), values), c=1.0, rng=2, record="audit", stop="certified").trace
    assert audit(plain).rank_bits == 0


@pytest.mark.parametrize("init", ["clear", "sealed"])
def test_the_exact_finish_gives_away_no_more_on_average(init):
    """Bits of all nodes and ranks together, against running on to the certificate, same seeds."""
    saved = []
    for seed in range(12):
        problem = Problem(graphs.rgg(15, rng=seed), np.random.default_rng(seed).normal(size=15))
        options = {"c": 1.0, "rng": seed, "record": "audit"}
        ours = audit(solve(problem, stop="count", **options).trace, Adversary(init=init))
        theirs = audit(solve(problem, stop="certified", **options).trace, Adversary(init=init))
        saved.append(theirs.total_bits - ours.total_bits - ours.rank_bits)
    assert np.mean(saved) > 0
