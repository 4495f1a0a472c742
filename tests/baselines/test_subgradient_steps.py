"""Subgradient steps: the median, as fast as is known, and what all that was sent tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midst import Problem, graphs
from midst.algorithms import run_algorithm
from midst.baselines.grid import make_grid
from midst.baselines.subgradient import averaging, read_bounds, run_subgradient, send_all, step_size
from midst.privacy.priors import Normal, Uniform

KINDS = st.sampled_from(("ring", "rgg", "complete", "star", "tree"))


class Subgradient:
    """The steps of one node; a state is t and x."""

    name = "subgradient"

    def begin(self, local, rng):
        x = float(local.centre)
        return (0, x), dict.fromkeys(local.neighbours, x)

    def step(self, local, state, inbox, rng):
        t, x = state
        degree = local.graph.degree
        moved = x
        for j, other in inbox.items():
            moved += (other - x) / (1 + max(degree[local.node], degree[j]))
        moved -= step_size(t, float(local.scale)) * float(np.sign(x - float(local.value)))
        return (t + 1, float(moved)), dict.fromkeys(local.neighbours, float(moved))

    def estimate(self, state):
        return state[1]


def make_problem(kind, n, seed, bounds=(0, 100)):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(50, 15, n).clip(*bounds), 1)
    return Problem(graphs.make(kind, n, rng=rng), values, bounds=bounds)


@settings(max_examples=20)
@given(KINDS, st.integers(5, 12), st.integers(0, 1000))
def test_all_at_once_is_one_by_one(kind, n, seed):
    problem = make_problem(kind, n, seed).with_values(np.random.default_rng(seed).uniform(0, 100, n))
    one_by_one = run_algorithm(problem, Subgradient(), 40).estimates
    assert np.allclose(send_all(problem, 40), one_by_one, atol=1e-9)


@settings(max_examples=20)
@given(KINDS, st.integers(5, 12), st.integers(0, 1000))
def test_averages_keep_the_sum_and_leave_agreement_alone(kind, n, seed):
    graph = make_problem(kind, n, seed).graph
    x = np.random.default_rng(seed).normal(size=n)
    assert averaging(graph)(x).sum() == pytest.approx(x.sum())
    assert np.allclose(averaging(graph)(np.ones(n)), 1)


@pytest.mark.parametrize("kind", ["ring", "rgg", "complete"])
@pytest.mark.parametrize("seed", range(3))
def test_comes_near_a_direct_minimiser_at_its_known_rate(kind, seed):
    """Within a multiple of the step, α_t = O(1/√t), that only the graph decides."""
    problem = make_problem(kind, 9, seed)
    x = send_all(problem, 8000)
    assert np.median(problem.values) == pytest.approx(float(problem.answer[0]))
    far = problem.distance(x).max(axis=1)
    for t in (2000, 4000, 8000):
        assert far[t] <= 9 * step_size(t, float(problem.scale))
    assert far[8000] < far[500] or far[8000] < 0.01 * float(problem.scale)


@settings(max_examples=25, deadline=None)
@given(KINDS, st.integers(5, 8), st.integers(0, 1000), st.sampled_from((Uniform(0, 100), Normal(50, 15))))
def test_bits_are_those_of_brute_force(kind, n, seed, prior):
    """A point is possible if a node that held it would have sent the very same."""
    problem, grid = make_problem(kind, n, seed), make_grid(prior, 0.0, 100.0, 0.1)
    outcome = run_subgradient(problem, grid, 60, 0.0)
    x = send_all(problem, 60)[:-1]  # the last is not sent
    moved, scale = averaging(problem.graph)(x[:-1]), float(problem.scale)
    steps = np.array([step_size(t, scale) for t in range(59)])
    bits, known = [], 0
    for i in range(n):
        would_send = moved[:, i, None] - steps[:, None] * np.sign(x[:-1, i, None] - grid.points)
        possible = np.abs(would_send - x[1:, i, None]).max(axis=0) < 1e-6
        assert possible[np.argmin(np.abs(grid.points - problem.values[i]))]
        bits.append(grid.bits(possible.astype(float)))
        known += possible.sum() == 1
    assert outcome.bits == pytest.approx(np.mean(bits), rel=1e-6)
    assert outcome.exposed == known


def test_who_holds_the_public_centre_is_exposed_by_standing_still():
    problem = Problem(graphs.ring(5), [50.0, 10, 20, 70, 90], bounds=(0, 100))
    low, high = read_bounds(problem.graph, float(problem.scale), send_all(problem, 3))
    assert low[0] == high[0] == 50
    assert (low[1:] < problem.values[1:]).all()
    assert (problem.values[1:] < high[1:]).all()


def test_bytes_are_a_number_a_frame_and_a_neighbour():
    problem = make_problem("ring", 7, 1)
    outcome = run_subgradient(problem, make_grid(Uniform(0, 100), 0.0, 100.0, 0.1), 20, 0.0)
    assert (outcome.rounds, outcome.bytes_per_node) == (20, 20 * 2 * (29 + 8))
