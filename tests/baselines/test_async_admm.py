"""Asynchronous ADMM settles on the median, and its first messages are the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midst import Problem, graphs
from midst.baselines.async_admm import RHO, first_messages, gossip, run_async_admm
from midst.baselines.grid import make_grid
from midst.privacy.priors import Normal


def make_problem(kind, n, seed):
    rng = np.random.default_rng(seed)
    return Problem(graphs.make(kind, n, rng=rng), np.round(rng.normal(50, 15, n).clip(0, 100), 2), bounds=(0, 100))


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(("ring", "rgg", "complete", "star")), st.sampled_from((5, 7, 9)), st.integers(0, 1000))
def test_settles_on_a_direct_minimiser(kind, n, seed):
    problem = make_problem(kind, n, seed)
    ran = gossip(problem, 400 * problem.graph.edges, np.random.default_rng(seed))
    assert np.abs(ran.x[-1] - np.median(problem.values)).max() < 1e-2 * float(problem.scale)


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(("ring", "rgg", "complete")), st.integers(5, 9), st.integers(0, 1000))
def test_x_is_the_minimiser_that_its_derivation_says(kind, n, seed):
    """Replay the messages: after each wake-up x_i is where |x − s| + ρd/2 (x − z + μ)² is least, on a fine grid."""
    problem = make_problem(kind, n, seed)
    ran = gossip(problem, 2 * problem.graph.edges, np.random.default_rng(seed))
    mu, degree, rho = np.zeros(n), problem.graph.degree, RHO / float(problem.scale)
    later: dict[int, float] = {}
    for (i, j), (x_i, x_j) in zip(ran.ends.tolist(), ran.sent.tolist(), strict=True):
        for node, x in ((i, x_i), (j, x_j)):
            assert x == pytest.approx(later.get(node, problem.values[node]), abs=0.02)
        z = (x_i + x_j) / 2
        for node, x in ((i, x_i), (j, x_j)):
            mu[node] += (x - z) / degree[node]
            points = np.arange(-100, 200, 0.01)
            cost = np.abs(points - problem.values[node]) + rho * degree[node] / 2 * (points - z + mu[node]) ** 2
            later[node] = points[cost.argmin()]
    assert degree @ mu == pytest.approx(0, abs=1e-9)  # so that the subgradients of all add up to 0


def test_everybody_who_spoke_is_exposed():
    problem = make_problem("ring", 9, 3)
    grid = make_grid(Normal(50, 15), 0.0, 100.0, 0.01)
    outcome = run_async_admm(problem, grid, 100, 10_000, 0.0, np.random.default_rng(1))
    assert outcome.exposed == 9
    assert outcome.bits == pytest.approx(grid.bits_of_values(problem.values).mean())
    assert outcome.rounds == 100
    ran = gossip(problem, 100, np.random.default_rng(1))
    spoke = np.unique(ran.ends)
    assert (first_messages(ran, spoke) == problem.values[spoke]).all()


def test_who_has_not_spoken_is_not():
    problem = make_problem("ring", 9, 3)
    grid = make_grid(Normal(50, 15), 0.0, 100.0, 0.01)
    outcome = run_async_admm(problem, grid, 100, 2, 0.0, np.random.default_rng(1))
    assert outcome.exposed == len(np.unique(gossip(problem, 2, np.random.default_rng(1)).ends)) < 5
    assert outcome.rounds == 2 / 9
