"""The same mutual information by other means.

The mean of a node's posterior bits over runs is I(S_i; O). That rests on the claim that the posterior is the prior
cut to an interval; here the claim is checked from the outside, for z(0) in the clear. Where a node is exposed the
summary of what was seen is not its value but the value blurred by a uniform error of width r: a finite number of
bits, and still an interval within which the posterior is the prior. Three estimates of I(S; summary), each with a 95%
interval:

- posterior: the mean of −log2 P(interval). Unbiased, if the claim is true.
- plug-in: the same with P(interval) counted over fresh draws of the prior. It checks the priors' arithmetic and not
  the claim. −log2 of a count is biased upwards by about (1 − P)/(2 M P ln 2) for M draws, which is taken off; for
  intervals of a few draws the remaining bias is upwards.
- ksg: nearest neighbours on (S, summary) (Kraskov, Stögbauer and Grassberger, their first estimator). It knows
  nothing of intervals, only pairs. Biased downwards where the information is large for the number of runs (much more
  than log2 of the runs over k cannot be seen at all), and by a few hundredths of a bit where densities have edges, as
  here. Its interval is that of the mean of its local terms, which are not quite independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma

from midst.errors import InputError
from midst.graphs import Graph
from midst.methods import Consensus
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.observations import Branches
from midst.privacy.priors import Normal, Prior
from midst.privacy.views import view
from midst.problems import Problem
from midst.solving import solve
from midst.types import Array

_DRAWS = 20_000  # of the prior, for the plug-in


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95% confidence interval, in bits."""

    mean: float
    low: float
    high: float

    def agrees(self, other: Estimate, slack: float = 0.0) -> bool:
        """Whether the two intervals overlap, or miss each other by no more than the slack."""
        return self.low <= other.high + slack and other.low <= self.high + slack


@dataclass(frozen=True)
class Information:
    """I(S_i; O) of one node, three times.

    Attributes:
        node: which.
        runs: how many were simulated.
        exposed: the share of them in which the node was exposed.
        posterior: by the mean of the posterior's bits.
        plug_in: by counting draws of the prior.
        ksg: by nearest neighbours.
    """

    node: int | str
    runs: int
    exposed: float
    posterior: Estimate
    plug_in: Estimate
    ksg: Estimate


def estimate_information(
    graph: Graph,
    node: int | str,
    method: Consensus,
    *,
    prior: Prior | None = None,
    runs: int = 1000,
    blur: float = 0.25,
    neighbours: int = 3,
    seed: int = 0,
) -> Information:
    """Simulate runs on fresh values and z(0), and estimate what one node's messages tell an eavesdropper.

    Args:
        graph: who talks to whom.
        node: about whose value, by its name.
        method: of each run.
        prior: of every node's value; N(0, 1) if not given.
        runs: how many to simulate.
        blur: the error put on values that are exposed, relative to the prior's scale.
        neighbours: k of the nearest-neighbour estimate.
        seed: of everything.

    Raises:
        InputError: a node that does not exist, or too few runs.
    """
    prior = Normal() if prior is None else prior
    number = graph.index(node)
    if runs < 10 * neighbours:
        raise InputError(f"runs must be at least {10 * neighbours}")
    rng = np.random.default_rng(seed)
    values, ends, exposed = np.empty(runs), np.empty((runs, 2)), 0
    for run in range(runs):
        drawn = np.array([prior.quantile(level) for level in rng.random(graph.n)])
        result = solve(Problem(graph, drawn, objective=Quantile(0.5, "any")), method, rng=rng, record="audit")
        observation = view(result.trace, Adversary()).observations[number]
        assert isinstance(observation, Branches)
        values[run], ends[run] = drawn[number], observation.ends
        if observation.value is not None:
            # a value told exactly would be worth infinite bits; one told to within a random interval around it is not
            exposed += 1
            ends[run] += blur * prior.scale * (rng.random() + np.array([-1.0, 0.0]))
    bits = np.array([-prior.log_mass(low, high) for low, high in ends]) / math.log(2)
    counted = _count_draws(ends, np.sort([prior.quantile(level) for level in rng.random(_DRAWS)]))
    # as shares of the prior below them: the information is the same, and nearest neighbours fare best on even densities
    uniform = np.array([math.exp(prior.log_mass(-math.inf, value)) for value in values])
    summary = np.array([[math.exp(prior.log_mass(-math.inf, end)) for end in pair] for pair in ends])
    terms = ksg_terms(uniform[:, None], summary, neighbours) / math.log(2)
    return Information(node, runs, exposed / runs, _estimate(bits), _estimate(counted), _estimate(terms))


def _count_draws(ends: Array, draws: Array) -> Array:
    """−log2 of the share of sorted draws in each interval, less its bias."""
    counts = np.diff(np.searchsorted(draws, ends), axis=1)[:, 0]
    share = np.maximum(counts, 0.5) / len(draws)
    return np.asarray(-np.log2(share) - (1 - share) / (2 * len(draws) * share * math.log(2)))


def ksg_terms(x: Array, y: Array, k: int = 3) -> Array:
    """Local terms, in nats, whose mean estimates I(X; Y) from pairs.

    Args:
        x: shape (pairs, dimensions); X has a density.
        y: shape (pairs, dimensions); Y may have points of positive probability in some or all dimensions.
        k: how many neighbours.
    """
    both = cKDTree(np.hstack([x, y]))
    radius = np.asarray(both.query(both.data, [k + 1], p=np.inf)[0])[:, 0]
    nearer = np.nextafter(radius, 0)  # strictly within: the k-th neighbour itself is not counted
    around = [cKDTree(part).query_ball_point(part, nearer, p=np.inf, return_length=True) for part in (x, y)]
    return np.asarray(digamma(k) + digamma(len(x)) - digamma(around[0]) - digamma(around[1]))


def _estimate(terms: Array) -> Estimate:
    mean, error = float(terms.mean()), float(terms.std(ddof=1)) / math.sqrt(len(terms))
    return Estimate(mean, mean - 1.96 * error, mean + 1.96 * error)
