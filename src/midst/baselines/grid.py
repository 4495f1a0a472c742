"""Values on a public grid: what is believed of one before, and how many bits were learnt of it.

A value is one of the multiples of a public resolution between public bounds. Its prior gives each of them the mass of
what rounds to it. What was learnt is KL(posterior ‖ prior), in bits; the posterior is the prior times a likelihood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from midst.privacy.priors import Prior
from midst.types import Array, Bools


@dataclass(frozen=True, eq=False, repr=False)
class PublicGrid:
    """The possible values, and how likely each was before.

    Attributes:
        points: in ascending order.
        mass: of the prior; adds up to 1.
    """

    points: Array
    mass: Array

    @property
    def resolution(self) -> float:
        """How far the points lie apart."""
        return float(self.points[1] - self.points[0])

    def bits_of_values(self, values: Array) -> Array:
        """What is learnt of values that are told: −log2 of the mass of each."""
        places = np.rint((values - self.points[0]) / self.resolution).astype(np.int64)
        return np.asarray(-np.log2(self.mass[places]))

    def bits_between(self, low: Array, high: Array) -> tuple[Array, Bools]:
        """Return the bits learnt of values between `low` and `high`, and whether that leaves one point only."""
        first = np.searchsorted(self.points, low, side="right")
        last = np.searchsorted(self.points, high, side="left")  # one past it
        below = np.concatenate([[0.0], np.cumsum(self.mass)])
        above = np.concatenate([np.cumsum(self.mass[::-1])[::-1], [0.0]])
        # by whichever tail is the shorter: differences of nearly equal sums lose their digits
        mass = np.where(above[first] < below[last], above[first] - above[last], below[last] - below[first])
        single = last - first == 1
        mass = np.where(single, self.mass[np.minimum(first, len(self.mass) - 1)], mass)
        return np.asarray(-np.log2(np.minimum(mass, 1.0))), single

    def bits(self, likelihood: Array) -> float:
        """What is learnt of a value where something was seen that has this likelihood, point by point."""
        joint = self.mass * likelihood
        posterior = joint / joint.sum()
        held = posterior > 0
        return max(float(np.sum(posterior[held] * np.log2(posterior[held] / self.mass[held]))), 0.0)


def make_grid(prior: Prior, low: float, high: float, resolution: float) -> PublicGrid:
    """The grid of a resolution between public bounds, with the prior cut to them."""
    first, last = math.ceil(low / resolution - 1e-9), math.floor(high / resolution + 1e-9)
    numbers = np.arange(first, last + 1)
    ends = np.concatenate([[low], (numbers[:-1] + 0.5) * resolution, [high]])
    mass = np.array([math.exp(prior.log_mass(a, b)) for a, b in pairwise(ends.tolist())])
    return PublicGrid(np.asarray(numbers * resolution, np.float64), mass / mass.sum())
