"""The residual certificate among nodes that only talk to neighbours: maxima, told on until everybody has heard them.

Rules:
- Pure: numbers in, numbers out. Used where no count can prove the answer: the mean, and a median between two values.
- An epoch is D + 1 rounds, D a bound on the diameter. In its first round every node puts down its own x, −x and largest
  edge residual of one iteration; in each of the others it takes the largest of its own and its neighbours'. After D of
  them all nodes hold the same three numbers, judge them alike, and so stop in the same round with the same value.
- What it tells: everybody learns the largest and the smallest x of an iteration in every epoch, and how far the edges
  are from agreement. Both are numbers that somebody's neighbours have been sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from midst.certificate import ROUNDING, slack
from midst.objectives import Mean
from midst.problems import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Finding:
    """What the residual certificate proved.

    Attributes:
        value: within `spread` of a right answer, in working units; the middle between the largest and smallest x.
        spread: proved bound on its distance from one, likewise.
        sampled: the iteration it was proved for.
    """

    value: Array
    spread: Array
    sampled: int


@dataclass(frozen=True, eq=False)
class Tide:
    """The rules of an epoch, the same at every node.

    Attributes:
        diameter: D, or a bound on it.
        edges: how many edges the graph has.
        slack: m·E must be below this (a quantile).
        total: W, by which m·E is divided (the mean).
        tolerance: in working units.
        smooth: whether it is the mean.
    """

    diameter: int
    edges: int
    slack: float
    total: float
    tolerance: Array
    smooth: bool

    def rise(self, level: Array, round: int, x: Array, largest: Array, heard: Iterable[Array]) -> Array:
        """The level after hearing a round's messages.

        Args:
            level: three numbers a coordinate: the largest x, −x and residual heard of so far.
            round: of the messages heard; they carry x(round − 1).
            x: this node's own x(round − 1).
            largest: the largest |e_ij(round − 1)| of this node's edges, with room for rounding.
            heard: the neighbours' levels.
        """
        if round % (self.diameter + 1) == 0:
            return np.stack([x, -x, largest], axis=-1)
        return np.asarray(np.maximum.reduce([level, *heard]))

    def judge(self, level: Array, round: int) -> Finding | None:
        """The proof, in the rounds in which everybody holds the same level."""
        epoch, place = divmod(round, self.diameter + 1)
        if epoch == 0 or place != self.diameter:
            return None
        top, bottom, residual = level[..., 0], -level[..., 1], level[..., 2]
        gap, imbalance = top - bottom + ROUNDING * np.maximum(np.abs(top), np.abs(bottom)), self.edges * residual
        bound = gap + imbalance / self.total if self.smooth else gap
        if not (bound <= self.tolerance).all() or not (self.smooth or (imbalance < self.slack).all()):
            return None
        return Finding(bottom + 0.5 * (top - bottom), bound, epoch * (self.diameter + 1) - 1)


def make_tide(problem: Problem, diameter: int, tolerance: Array) -> Tide:
    """The rules for a problem; nothing here looks at a value."""
    weight = float(problem.counts.sum()) * problem.unit_weight
    smooth = isinstance(problem.objective, Mean)
    return Tide(diameter, problem.graph.edges, slack(problem), weight, tolerance, smooth)


def still(tide: Tide) -> Array:
    """The level before anything was heard."""
    return np.zeros((*np.shape(tide.tolerance), 3))
