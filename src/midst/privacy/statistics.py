"""What a session of statistics tells about one value: of all that was made public, and of the answers alone.

All values of a column are alike: one prior, one weight. Before the session a value has its prior, cut to the public
bounds. Counts between edges put it into cell c with chance n_c / N, as in `search_beliefs.py`. Given these counts, sums
over all values are sums of independent draws, n_c from each cell's part of the prior; a value v adds f(v) to them, so
its chance is weighed by that of the rest adding up to what is left.

Rules:
- Exact for counts and ranks. The rest of a sum is taken to be normal (with its right mean and covariance, given the
  counts): the figure is then an approximation, and says so. `test_session_leakage.py` compares it with all data sets:
  of four values on a grid of five steps, mean and variance together tell twice as much.
- The floor is of the answers alone: the same with no other edges than theirs. Of ranks whose values are tied the
  answers do not tell how many are, and there is no floor.
- What is learnt from distances (`mad`) is left out, so the figure is a lower bound, and says so.
- Of a participant's list, the figure times its length is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from midst.privacy.posterior import no_mass, widen
from midst.privacy.priors import Prior, Within
from midst.privacy.published import Cell
from midst.protocol.search import SearchState, SumGoal
from midst.statistics import Plan, cuts_of
from midst.types import Array

_PARTS = 64  # of a cell, where sums tell of places in it
_NOTHING = 1e-300
_RELATIVE_RESOLUTION = 1e-3
_MANY = 20  # values, from which on the rest of a sum is near normal
_FEW = "of so few values the sums may tell more than this: the rest of a sum is not normal"
_DISTANCES = "what was told of distances from the median is left out"

Point = tuple[int, int]  # a key, and how many values lie at or below it


@dataclass(frozen=True)
class SessionLeakage:
    """Bits about one value of a column, to whoever hears the totals.

    Attributes:
        bits: KL(posterior ‖ prior), of everything that was made public.
        floor: the same of the answers alone; None where that is not known.
        kind: "exact"; "approximate", where sums are among it; "lower bound", where something is left out.
        notes: what the reader should know besides.
    """

    bits: float
    floor: float | None
    kind: Literal["exact", "approximate", "lower bound"]
    notes: tuple[str, ...] = ()

    @property
    def excess(self) -> float | None:
        """Bits above the floor."""
        return None if self.floor is None else self.bits - self.floor

    def __str__(self) -> str:
        split = "" if self.floor is None else f" ({self.floor:.3f} floor, {self.excess:.3f} excess)"
        return f"{self.bits:.3f} bits about each value{split}, {self.kind}"


def measure_session(
    plan: Plan, search: SearchState, column: int, prior: Prior, resolution: float | None = None
) -> SessionLeakage:
    """What a session told about one value of a column, to where its search ended, or stands.

    Where there is no public one, the resolution is a thousandth of the prior's scale if not given.

    Raises:
        InputError: the prior gives no mass to what was observed.
    """
    width = prior.scale * _RELATIVE_RESOLUTION if resolution is None else resolution
    sums = [(goal, found) for goal, found in zip(search.rules.sums, search.sums, strict=True) if found is not None]
    own = [(goal, found) for goal, found in sums if goal.coordinate == column]
    answers = _answers(search, column)
    known = [*search.known[column], *(point for ends in answers for point in ends)]
    bits = _bits(search, column, sorted(set(known)), own, prior, width)
    floor, why = None, "no floor: answers at ranks are tied, or the session has not ended"
    # each answer is one value: else how many there are is told by counts, and not by the answers
    if search.question is None and all(above - below == 1 for (_, below), (_, above) in answers):
        ends = search.known[column][0], search.known[column][-1]
        cuts = [cut for each in plan.statistics for cut in cuts_of(each, search.rules.keys)]
        inside = [(cut, search.count(column, cut)) for cut in cuts if ends[0][0] < cut < ends[1][0]]
        told = sorted({*ends, *inside, *(point for pair in answers for point in pair)})
        floor, why = _bits(search, column, told, own, prior, width), ""
    notes = [why] * bool(why) + [_DISTANCES] * plan.has_mad + [_FEW] * (bool(own) and plan.total < _MANY)
    return SessionLeakage(
        bits, floor, "lower bound" if plan.has_mad else "approximate" if own else "exact", tuple(notes)
    )


def _answers(search: SearchState, column: int) -> list[tuple[Point, Point]]:
    """Of every rank that is known, the two edges of its answer's own key, with the counts up to them."""
    found: dict[int, tuple[Point, Point]] = {}
    for track in search.tracks:
        answer = search.answers[track.goal]
        if answer is not None and search.rules.goals[track.goal].coordinate == column:
            bracket = search.bracket(track)
            found[answer] = (answer - 1, bracket.below), (answer, bracket.below + bracket.inside)
    return list(found.values())


def _bits(
    search: SearchState,
    column: int,
    points: Sequence[Point],
    sums: Sequence[tuple[SumGoal, int]],
    prior: Prior,
    width: float,
) -> float:
    """KL(posterior ‖ prior) of one value, given how many lie up to each of these keys, and the sums."""
    rules = search.rules
    a, b = rules.brackets[column]
    within = Within(prior, *Cell(a, b, 0).ends(rules.keys))
    cells = [Cell(low, high, above - below) for (low, below), (high, above) in pairwise(points) if above > below]
    ends = [widen(each.ends(rules.keys), width) for each in cells]
    masses = np.array([math.exp(within.log_mass(*each)) for each in ends])
    if not masses.all():
        raise no_mass()
    shares = np.array([each.total for each in cells]) / rules.total
    if not sums:
        return float(np.sum(shares * np.log2(shares / masses)))
    places, parts = (np.array(each) for each in zip(*(_split(within, *each) for each in ends), strict=True))
    log_fit = _log_fit(search, places, parts, np.array([each.total for each in cells]), sums)
    weights = shares[:, None] * parts * np.exp(log_fit - log_fit.max())
    weights /= weights.sum()
    told = weights > 0
    return float(np.sum(weights[told] * np.log2((weights / (masses[:, None] * parts))[told])))


def _split(prior: Prior, low: float, high: float) -> tuple[Array, Array]:
    """Places in a cell, and the share of its mass that each stands for: evenly, or by quantiles where it has no end."""
    inside = Within(prior, low, high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return np.array([inside.quantile((k + 0.5) / _PARTS) for k in range(_PARTS)]), np.full(_PARTS, 1 / _PARTS)
    edges = np.linspace(low, high, _PARTS + 1)
    shares = np.array([math.exp(inside.log_mass(*each)) for each in pairwise(edges.tolist())])
    return (edges[1:] + edges[:-1]) / 2, np.maximum(shares, _NOTHING) / shares.sum()


def _log_fit(
    search: SearchState, places: Array, parts: Array, counts: Array, sums: Sequence[tuple[SumGoal, int]]
) -> Array:
    """Log of the chance, but for a factor, that all other values add up to the rest, were one value at each place.

    Places have the shape (cells, parts), and as many parts say which share of a cell's mass each stands for.
    """
    adds = np.stack([_added(search, goal, places) for goal, _ in sums], axis=-1)  # (cells, parts, sums)
    unit = np.maximum(np.abs(adds).max(axis=(0, 1)), 1.0)
    adds = adds / unit
    coarser = [_bits_left_out(search, goal) * goal.power for goal, _ in sums]
    found = np.array([total >> bits for (_, total), bits in zip(sums, coarser, strict=True)], np.float64) / unit
    means = np.einsum("cp,cpi->ci", parts, adds)
    about = adds - means[:, None]
    spreads = np.einsum("cp,cpi,cpj->cij", parts, about, about)
    mean, spread = counts @ means, np.einsum("c,cij->ij", counts, spreads)
    log_fit = np.empty(places.shape)
    for c in range(len(places)):
        rest = found - (mean - means[c]) - adds[c]
        value, vectors = np.linalg.eigh(spread - spreads[c])
        # what rounding to the grid leaves open, so that no direction is without any variance
        value = np.maximum(value, float(counts.sum() / 12.0 / np.min(unit) ** 2) + 1e-12)
        away = rest @ vectors
        log_fit[c] = -0.5 * np.sum(away**2 / value + np.log(value), axis=1)
    return log_fit


def _added(search: SearchState, goal: SumGoal, places: Array) -> Array:
    """What a value at each place adds to a sum, in steps of the grid, or in coarser ones where it is very fine."""
    grid, bits = search.rules.grid, _bits_left_out(search, goal)
    assert grid is not None, "sums have a grid"
    low, high = (float((end - grid.zero) >> bits) for end in search.ends_of(goal))
    return np.asarray((np.clip(places / float(grid.step * 2**bits), low, high) - low) ** goal.power)


def _bits_left_out(search: SearchState, goal: SumGoal) -> int:
    """So many bits of a very fine grid say nothing here, where chances are floats."""
    low, high = search.ends_of(goal)
    return max(0, (high - low).bit_length() - 64)
