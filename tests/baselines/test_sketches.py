"""Sketches that are merged hold values: who is exposed is read off what was sent."""

from __future__ import annotations

import re

import numpy as np
import pytest

from midst import Problem, graphs
from midst.baselines.grid import make_grid
from midst.baselines.kll import run_kll
from midst.baselines.tdigest import run_tdigest
from midst.privacy.priors import Normal

GRID = make_grid(Normal(50, 15), 0.0, 100.0, 0.01)


def make_problem(n, kind="rgg", seed=1):
    rng = np.random.default_rng(seed)
    return Problem(graphs.make(kind, n, rng=rng), np.round(rng.normal(50, 15, n).clip(0, 100), 2), bounds=(0, 100))


@pytest.mark.parametrize("kind", ["ring", "rgg", "complete"])
def test_a_small_kll_sketch_is_a_list_of_all_values(kind):
    pytest.importorskip("datasketches")
    problem = make_problem(31, kind)
    outcome = run_kll(problem, GRID)
    assert outcome.answers == np.median(problem.values)
    assert (outcome.exposed, outcome.why) == (31, None)
    assert outcome.bits == pytest.approx(GRID.bits_of_values(problem.values).mean())


def test_a_kll_sketch_that_leaves_values_out_says_so():
    pytest.importorskip("datasketches")
    problem = make_problem(301, "path")
    outcome = run_kll(problem, GRID, k=8)
    assert 100 < outcome.exposed < 301
    assert outcome.bits is None
    assert re.search(r"left out; at least \d+\.\d bits", outcome.why)
    assert problem.distance(outcome.answers) < 10


@pytest.mark.parametrize(("n", "centroids"), [(31, 100), (301, 20)])
def test_sums_in_t_digests_tell_every_value(n, centroids):
    pytest.importorskip("fastdigest")
    problem = make_problem(n)
    outcome = run_tdigest(problem, GRID, centroids)
    assert (outcome.exposed, outcome.why) == (n, None)
    assert outcome.bits == pytest.approx(GRID.bits_of_values(problem.values).mean())
    assert problem.distance(outcome.answers) < 2
