"""A search with joint noise (`dp/joint.py`), and what its totals tell of a value: exactly, not only what ε promises.

With one threshold a probe, a total is how many values lie at or below the threshold, and Skellam noise of a known
variance. Put the thresholds in order: the true counts N_1 ≤ N_2 ≤ … of n − 1 independent values are a Markov chain, and
each total depends on one of them only. So the chance of all totals is a sum over the chain, forwards; and of all totals
given that one more value lies between thresholds c − 1 and c, which adds 1 to the counts from c on, a sum over the
chain forwards up to c − 1 and backwards, with 1 added, from c on. Within a cell between two thresholds the likelihood
is the same, so the posterior is the prior there, weighed.

A count of n − 1 values in cells is one of independent Poisson numbers, given their sum: so a step of the chain is a
convolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ive

from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch
from midst.engines.searching import search_with_noise
from midst.net.sizes import sent_in_search
from midst.problems import Problem
from midst.protocol.noise import JointNoise, skellam
from midst.protocol.noisy_search import signed
from midst.solving import noisy_rules_of
from midst.types import Array, Ints

_TINY = 1e-300


def run_joint_noise(problem: Problem, grid: PublicGrid, promise: JointNoise, rng: np.random.Generator) -> Outcome:
    """The median by a search with noise, one threshold a probe; the problem has public bounds and a resolution.

    Raises:
        InputError: there are too few values for so much noise.
    """
    watch = Stopwatch()
    rules = noisy_rules_of(problem, 1, promise)
    search, steps = search_with_noise(rules, problem.value_keys, lambda: skellam(rules.added, rng.bytes))
    seconds = watch.read()
    totals: dict[float, list[int]] = {}
    for step in steps:
        (cells,) = step.question
        for edge, total in zip(cells.edges[1:], step.totals, strict=True):
            totals.setdefault(problem.keys.value(edge), []).append(signed(total))
    rounds = (len(steps) + 2) * problem.graph.diameter()
    carried = sent_in_search(problem.graph, [len(step.totals) for step in steps])
    bits = grid.bits(likelihood_of_totals(grid, problem.graph.n, totals, float(rules.added)))
    return Outcome(search.value(), rounds, carried, seconds, 0, bits)


def likelihood_of_totals(grid: PublicGrid, n: int, totals: Mapping[float, Sequence[int]], variance: float) -> Array:
    """How likely the totals are for each point that one of n values can be; up to a factor.

    Totals are by threshold: what was told of how many values lie at or below it, each with noise of this variance.
    """
    thresholds = sorted(totals)
    cell = np.searchsorted(np.array(thresholds) + grid.resolution / 2, grid.points)  # how many thresholds lie below
    masses = np.bincount(cell, grid.mass, minlength=len(thresholds) + 1)
    counts = np.arange(n + 1)
    chances = [_chances(counts, totals[threshold], variance) for threshold in thresholds]
    without, with_one = [each[:-1] for each in chances], [each[1:] for each in chances]  # by the count of all others
    steps = [_poisson(counts[:-1], (n - 1) * float(mass)) for mass in masses]
    forward = [_Scaled.of(np.eye(1, n)[0])]  # by how many ways the others come to a count at each threshold
    for step, chance in zip(steps[:-1], without, strict=True):
        forward.append(forward[-1].then(np.convolve(forward[-1].numbers, step)[:n] * chance))
    backward = [_Scaled.of(steps[-1][::-1])]  # and by how many they go on from there: in the end all are counted
    for step, chance in zip(reversed(steps[:-1]), reversed(with_one), strict=True):
        backward.append(backward[-1].then(np.convolve((backward[-1].numbers * chance)[::-1], step)[:n][::-1]))
    logs = np.array([one.log_product(other) for one, other in zip(forward, reversed(backward), strict=True)])
    return np.asarray(np.exp(logs - logs.max())[cell])


class _Scaled(NamedTuple):
    """Numbers that would underflow: brought to a maximum of 1, with the logarithm of what they were divided by."""

    numbers: Array
    log: float

    @classmethod
    def of(cls, numbers: Array) -> _Scaled:
        return cls(numbers, 0.0).then(numbers)

    def then(self, numbers: Array) -> _Scaled:
        """What follows from these."""
        largest = float(numbers.max())
        return _Scaled(numbers / largest, self.log + log(largest))

    def log_product(self, other: _Scaled) -> float:
        """The logarithm of Σ one·other."""
        total = float(self.numbers @ other.numbers)
        return self.log + other.log + log(total) if total > 0 else -inf


def _chances(counts: Ints, told: Sequence[int], variance: float) -> Array:
    """How likely each count is to be told as these totals, up to a factor for all: Skellam's e^−σ² I_k(σ²)."""
    logs = sum(np.log(np.maximum(ive(np.abs(total - counts), variance), _TINY)) for total in told)
    return np.asarray(np.exp(logs - np.max(logs)))


def _poisson(counts: Ints, mean: float) -> Array:
    if mean == 0:
        return np.asarray(counts == 0, np.float64)
    return np.asarray(np.exp(counts * log(mean) - mean - gammaln(counts + 1.0)))
