"""What the search of a vector gives away: bits a coordinate, the floor that the answer alone has, and the excess.

Rules:
- The adversary sees all totals and no contribution, as everybody does. A coordinate's totals say how many of n values
  lie in each cell of a partition; about any one value that is Σ_c (n_c/n) log2((n_c/n) / P_c) bits, with the cells'
  prior masses P_c (`search_beliefs.py`). The floor is the same with three cells: below the answer, at it, above it.
- Numbers that the type, or the resolution, does not tell apart are one: the answer's own cell is as wide as that.
- Of a long vector some coordinates are looked at, evenly spread, and the mean over them is told.
- Sums are not in this formula, nor weights. What is averaged, and clients that weigh differently, have no bits here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.privacy.priors import Prior
from midst.protocol.vectors.formats import Format, Words
from midst.protocol.vectors.search import Goal, Numbers, VectorSearch
from midst.types import Array

_LOOKED_AT = 1024  # coordinates at most, of one chunk
_NARROW = 1e-9  # of the prior's scale


@dataclass(frozen=True)
class VectorLeakage:
    """What was given away about one client's number, a coordinate.

    Attributes:
        bits: by all totals, mean over the coordinates looked at.
        floor: by the answer alone.
        looked_at: coordinates.
        coordinates: of how many.
    """

    bits: float
    floor: float
    looked_at: int
    coordinates: int

    @property
    def excess(self) -> float:
        """Bits above the floor."""
        return self.bits - self.floor


def check_leakage(goal: Goal) -> None:
    """Refuse a goal that the formula is not for."""
    if goal.statistic != "quantile" or not goal.alike:
        what = f"a {goal.statistic}" if goal.alike else "clients that weigh differently"
        raise InputError(f"what {what} gives away is not known in bits; leave the prior out")


class LeakageCount:
    """Counts what the search of a chunk gives away, step by step."""

    def __init__(self, prior: Prior, of: Format, goal: Goal, coordinates: int) -> None:
        """Nothing is told yet. The format says how numbers are told apart.

        Raises:
            InputError: the formula is not for this goal, or the prior not for these bounds.
        """
        check_leakage(goal)
        self._prior, self._format, self._goal, self._all = prior, of, goal, coordinates
        self._sample = np.unique(np.linspace(0, coordinates - 1, min(coordinates, _LOOKED_AT)).astype(np.intp))
        self._bits = np.zeros(len(self._sample))
        self._tied = np.ones(len(self._sample), np.int64)  # values that have the answer's offset
        self._range = 0.0
        self._range = float(self._log_mass(np.zeros(1, np.uint64), np.array([of.most], np.uint64))[0])
        if not np.isfinite(self._range):
            raise InputError("the prior gives no mass to the bounds; give a wider prior")

    def see(self, search: VectorSearch, totals: Numbers) -> None:
        """What the totals of the next step say: how many values lie in the half that is left behind."""
        bracket = search.bracket
        assert bracket is not None, "a rank is looked for by bits alone"
        lanes = bracket.lanes[bracket.counted]
        here = np.flatnonzero(np.isin(lanes, self._sample))
        if not len(here):
            return
        inside, rank, prefix = (part[bracket.counted][here] for part in (bracket.inside, bracket.rank, bracket.prefix))
        zeros = totals[0][here]
        up = rank > zeros  # the search goes on with a 1, and leaves behind those that have a 0
        half = np.uint64(bracket.left - 1)
        first = ((prefix.astype(np.uint64) << np.uint64(1)) | ~up) << half
        last = first + np.uint64((1 << (bracket.left - 1)) - 1)
        places = np.searchsorted(self._sample, lanes[here])
        self._bits[places] += self._cell(np.where(up, zeros, inside - zeros), first, last)
        if bracket.left == 1:
            self._tied[places] = np.where(up, inside - zeros, zeros)

    def result(self, answer: Words) -> VectorLeakage:
        """What was given away in all, where these offsets were found."""
        n, rank, most = self._goal.total, self._goal.rank, np.uint64(self._format.most)
        at, one = answer[self._sample].astype(np.uint64), np.uint64(1)
        self._bits += self._cell(self._tied, at, at)
        ends = np.zeros_like(at), np.full_like(at, most)
        below = self._cell(np.where(at > 0, rank - 1, 0), ends[0], np.maximum(at, one) - one)
        above = self._cell(np.where(at < most, n - rank, 0), np.minimum(at + one, most), ends[1])
        floor = below + self._cell(np.ones_like(at), at, at) + above
        return VectorLeakage(float(self._bits.mean()), float(floor.mean()), len(at), self._all)

    def _cell(self, counts: NDArray[Any], first: Words, last: Words) -> Array:
        """What it tells that so many values lie between two offsets."""
        found, some = np.zeros(len(counts)), counts > 0
        share = counts[some] / self._goal.total
        masses = self._log_mass(first[some], np.minimum(last[some], np.uint64(self._format.most)))
        found[some] = share * (np.log2(share) - masses / np.log(2))
        return found

    def _log_mass(self, first: Words, last: Words) -> Array:
        """Of the prior within the bounds, between two offsets, both included."""
        edges = self._format.edges(first), self._format.edges(last + np.uint64(1))
        prior, masses = self._prior, []
        for low, high in zip(*(each.tolist() for each in edges), strict=True):
            narrow = 0 < high - low < _NARROW * prior.scale  # as narrow as the last digit: by the density
            masses.append(prior.log_density(low) + math.log(high - low) if narrow else prior.log_mass(low, high))
        return np.asarray(masses) - self._range


def add_up_leakage(chunks: Sequence[VectorLeakage]) -> VectorLeakage | None:
    """That of several chunks together; None of none."""
    if not chunks:
        return None
    sizes = [each.coordinates for each in chunks]
    bits = float(np.average([each.bits for each in chunks], weights=sizes))
    floor = float(np.average([each.floor for each in chunks], weights=sizes))
    return VectorLeakage(bits, floor, sum(each.looked_at for each in chunks), sum(sizes))
