"""Maxima among nodes that only talk to neighbours: told on until everybody has heard them.

Rules:
- Pure: numbers in, numbers out.
- An epoch is D + 1 rounds, D a bound on the diameter. In its first round every node puts down its own x, −x and, where
  residuals are to prove the answer, its largest edge residual of one iteration; in each of the others it takes the
  largest of its own and its neighbours'. After D of them all nodes hold the same numbers, judge them alike, and so stop
  in the same round with the same range of x.
- What it tells: everybody learns the largest and the smallest x of an iteration in every epoch, and how far the edges
  are from agreement. The first two are numbers that somebody's neighbours have been sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from midst.protocol.certificate import ROUNDING, is_sampled, lie_within
from midst.protocol.node import plain
from midst.types import Array

Maxima = tuple[Array, ...]  # of x, of −x, and of residuals where they prove the answer


@dataclass(frozen=True, eq=False)
class Range:
    """Where all x of one iteration lie, close enough to each other to stop.

    Attributes:
        low: the smallest, in working units.
        high: the largest.
        bound: where residuals prove the answer, how far it may be from the middle of the two, at most.
    """

    low: Array
    high: Array
    bound: Array


@dataclass(frozen=True, eq=False)
class Residuals:
    """What residuals must be for a small range of x to prove the answer.

    Attributes:
        edges: how many the graph has.
        slack: the sum of all subgradients must be smaller than this (quantiles).
        total: the total weight (mean).
        smooth: whether the objective is a mean.
    """

    edges: int
    slack: float
    total: float
    smooth: bool


@dataclass(frozen=True, eq=False)
class StopRule:
    """The rules of a session.

    Attributes:
        diameter: a bound on it.
        tolerance: the largest range of x to stop at, in working units.
        residuals: what they must be; None where a search proves the answer.
    """

    diameter: int
    tolerance: Array
    residuals: Residuals | None = None

    @property
    def maxima_each(self) -> int:
        """How many numbers a coordinate are told on."""
        return 2 if self.residuals is None else 3

    def empty(self) -> Maxima:
        """The maxima before anything was heard."""
        return (plain(np.zeros(np.shape(self.tolerance))),) * self.maxima_each

    def begins(self, round: int) -> bool:
        """Whether an epoch begins with this round's messages."""
        return is_sampled(round - 1, self.diameter)  # a round's messages carry the x of the iteration before it

    def merge(self, maxima: Maxima, own: Sequence[Array], heard: Iterable[Maxima]) -> Maxima:
        """The maxima after hearing the neighbours' in a round.

        Where an epoch begins, they are this node's `own`, of the iteration before the round.
        """
        if own:
            return tuple(own)
        if isinstance(maxima[0], float):
            return tuple(map(max, maxima, *heard))
        return tuple(map(np.maximum.reduce, zip(maxima, *heard, strict=True)))

    def judge(self, maxima: Maxima, round: int) -> Range | None:
        """Where all x lie, in the rounds in which everybody holds the same maxima, if they are close enough."""
        epoch, place = divmod(round, self.diameter + 1)
        if epoch == 0 or place != self.diameter:
            return None
        needs = self.residuals
        top, bottom = maxima[0], -maxima[1]
        size = max(abs(top), abs(bottom)) if isinstance(top, float) else np.maximum(abs(top), abs(bottom))
        bound = top - bottom + ROUNDING * size
        if needs is None:
            close = lie_within(bottom, top, self.tolerance)
        else:
            imbalance = needs.edges * maxima[2]
            bound = bound + imbalance / needs.total if needs.smooth else bound
            close = (bound <= self.tolerance) & (needs.smooth | (imbalance < needs.slack))
        proved = close if isinstance(close, bool) else close.all()  # a float's comparison is a bool
        return Range(bottom, top, bound) if proved else None
