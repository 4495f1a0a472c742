"""Three ways to the same mutual information."""

from __future__ import annotations

import math

import numpy as np
import pytest

import midst
from midst import graphs
from midst.methods import After, Consensus
from midst.privacy.priors import Normal, Uniform
from information_estimate import Estimate, estimate_information, ksg_terms

RUNS = 1200
SHORT = Consensus(1.0, mu=0.0, sigma=0.1, stop=After(20))


@pytest.mark.parametrize(
    ("graph", "c", "sigma", "prior"),
    [
        (graphs.complete(3), 1.0, 0.1, Uniform(-1, 2)),
        (graphs.path(3), 2.0, 0.1, Normal(0, 1)),
        (graphs.complete(5), 3.0, 0.5, None),
    ],
    ids=["triangle", "path", "complete5"],
)
def test_posterior_bits_agree_with_counting_and_with_nearest_neighbours(graph, c, sigma, prior):
    method = Consensus(c, mu=0.0, sigma=sigma, stop=After(60))
    found = estimate_information(graph, 0, method, prior=prior, runs=RUNS)
    assert 0.1 < found.exposed < 0.9
    assert found.posterior.agrees(found.plug_in)
    assert found.posterior.agrees(found.ksg, slack=0.06)  # its bias: densities with edges, and few runs
    assert found.posterior.high - found.posterior.low < 0.3


def test_nearest_neighbours_on_what_is_known():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    for rho in (0.0, 0.6, 0.9):
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=(3000, 1))
        assert ksg_terms(x, y).mean() == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.06)
    assert ksg_terms(x, (x > 0).astype(float)).mean() == pytest.approx(math.log(2), abs=0.03)


def test_intervals():
    assert Estimate(1, 0.9, 1.1).agrees(Estimate(1.15, 1.05, 1.25))
    assert not Estimate(1, 0.9, 1.1).agrees(Estimate(1.3, 1.2, 1.4))
    assert Estimate(1, 0.9, 1.1).agrees(Estimate(1.3, 1.2, 1.4), slack=0.1)


def test_a_seed_repeats_an_estimate():
    one, two, other = (estimate_information(graphs.path(3), 1, SHORT, runs=40, seed=k) for k in (1, 1, 2))
    assert one == two != other


def test_refusals():
    with pytest.raises(midst.InputError, match="node 9"):
        estimate_information(graphs.path(3), 9, SHORT)
    with pytest.raises(midst.InputError, match="runs"):
        estimate_information(graphs.path(3), 0, SHORT, runs=5)
