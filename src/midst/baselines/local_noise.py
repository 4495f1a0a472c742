"""Local noise: everybody adds noise to its own value and tells that to all; the answer is the median of what was told.

What that gives away of a value is what its noised number tells: the posterior is the prior times the density of the
noise at the difference. All other numbers, and the answer, follow from these.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from midst.algorithms import Message
from midst.baselines.grid import PublicGrid
from midst.baselines.outcome import Outcome, Stopwatch
from midst.baselines.tree import Gather, gather
from midst.dp.mechanisms import GaussianNoise, LaplaceNoise, privatise
from midst.problems import Problem
from midst.types import Array


def run_local_noise(
    problem: Problem, grid: PublicGrid, mechanism: LaplaceNoise | GaussianNoise, rng: np.random.Generator
) -> Outcome:
    """The median of values with the mechanism's noise on them."""
    low, high = (float(end) for end in mechanism.bounds)
    watch = Stopwatch()
    noised = privatise(problem, mechanism, rng)

    def read(told: Message) -> float:
        return min(max(float(np.median(np.asarray(told))), low), high)  # the bounds are public: no answer lies outside

    told = gather(noised, Gather("local noise", lambda value: (value,), np.concatenate, read))
    seconds = watch.read()
    bits = [grid.bits(likelihood(mechanism, number - grid.points)) for number in noised.values.tolist()]
    return Outcome(told.answer, told.rounds, told.bytes_per_node, seconds, 0, float(np.mean(bits)))


def likelihood(mechanism: LaplaceNoise | GaussianNoise, noise: Array) -> Array:
    """How likely each of these noises is, up to a factor."""
    size = np.abs(noise) / mechanism.noise_std
    logs = -sqrt(2) * size if isinstance(mechanism, LaplaceNoise) else -0.5 * size * size
    return np.asarray(np.exp(logs - logs.max()))
