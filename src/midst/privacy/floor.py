"""The floor: what the answer alone gives away, however it was found.

Whoever learns only that the r-th value in order lies in the answer's cell knows that less than r of the weight lies
below the cell, and at least r not above it. How many values are tied in the cell it does not know: all numbers that fit
are summed over, with the chances that the prior gives them. A coalition knows its own part.

Rules:
- The answer's cell is what has the answer's key or, where that is narrower, what rounds to the same multiple of the
  audit's resolution: values are not told apart any finer.
- With values all alike the sum is a short one, at any number of them; else `assignments.assign` adds up, to its limit.
- A midpoint tells the sum of two values: `midpoint.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from midst.privacy.assignments import assign
from midst.privacy.posterior import Piece, Posterior, cell, log_mass
from midst.privacy.priors import Prior
from midst.privacy.published import Published
from midst.update import Array

_NEGLIGIBLE = 45.0  # in logarithms: less than a unit in the last place


@dataclass(frozen=True)
class _Event:
    """What an answer says: at most `below` of honest weight below its cell, and at least `up_to` not above it."""

    below: int
    up_to: int


def floor_posteriors(seen: Published, priors: list[Prior], resolution: float) -> list[Posterior] | str:
    """What each honest value may be, given the answer alone; or why that is not known.

    Args:
        seen: what was published.
        priors: of every honest value, cut to the public bounds.
        resolution: of the audit; the finest, where it differs between participants.
    """
    if seen.answer is None:
        return "the run ended without an answer that was proved"
    if not seen.ranks:
        return "what was sought is no value of a known rank"
    if seen.own is None:
        return "the trace does not tell where the coalition's own values lie"
    ends = _answer_cell(seen, resolution)
    if seen.same_weight and len(set(priors)) == 1:
        return [_posterior(priors[0], ends, _alike(seen, priors[0], ends))] * len(priors)
    parts = np.array([_parts(prior, ends) for prior in priors])
    event, total = _event(seen, ends), int(seen.weight.sum())
    if event.below < 0:
        parts[:, 0] = -math.inf
    found = assign(
        parts,
        seen.weight.tolist(),
        (max(event.below, 0), total, total),
        lambda sums: sums[0] + sums[1] >= event.up_to,
    )
    if found is None:
        return "there are too many ways in which it can come about"
    return [_posterior(prior, ends, row) for prior, row in zip(priors, found, strict=True)]


def _answer_cell(seen: Published, resolution: float) -> tuple[float, float]:
    assert seen.answer is not None
    low, high = seen.answer_ends
    return (low, high) if high - low > resolution * (1 - 1e-9) else cell(seen.answer, resolution)


def _event(seen: Published, ends: tuple[float, float]) -> _Event:
    """What the answer says about honest values: the coalition's own are taken off."""
    own = seen.own
    assert own is not None
    side = own.side
    if own.values is not None:
        side = np.where(own.values < ends[0], -1, np.where(own.values > ends[1], 1, 0))
    below, at = int(own.weight[side < 0].sum()), int(own.weight[side == 0].sum())
    return _Event(seen.ranks[0] - 1 - below, seen.ranks[0] - below - at)


def _parts(prior: Prior, ends: tuple[float, float]) -> tuple[float, float, float]:
    """Logarithms of the masses below the answer's cell, in it, and above it."""
    return prior.log_mass(-math.inf, ends[0]), log_mass(prior, *ends), prior.log_mass(ends[1], math.inf)


def _alike(seen: Published, prior: Prior, ends: tuple[float, float]) -> Array:
    """The chances of below, at and above for each of h values that are all alike."""
    parts, event, weight = np.array(_parts(prior, ends)), _event(seen, ends), int(seen.weight[0])
    others = len(seen.weight) - 1
    # a value below takes its weight off both limits, one in the cell off the second only
    moved = ((weight, weight), (0, weight), (0, 0))
    fits = [log_fit(parts, others, (event.below - a) // weight, -((b - event.up_to) // weight)) for a, b in moved]
    log_chances = parts + np.array(fits)
    return np.asarray(np.exp(log_chances - logsumexp(log_chances)))


def log_fit(parts: Array, count: int, most_below: int, least_up_to: int) -> float:
    """Log P(at most so many of `count` values below a cell, and at least so many below it or in it).

    Args:
        parts: logarithms of the chances of one value to lie below the cell, in it and above it.
        count: how many values there are.
        most_below: how many may lie below.
        least_up_to: how many must not lie above.
    """
    if most_below < 0 or least_up_to > count:
        return -math.inf
    log_factorial = gammaln(np.arange(count + 2) + 1.0)
    terms: list[float] = []
    best = -math.inf
    for tied in range(max(0, least_up_to - most_below), count + 1):
        below = np.arange(max(0, least_up_to - tied), min(most_below, count - tied) + 1)
        above = count - tied - below
        ways = log_factorial[count] - log_factorial[tied] - log_factorial[below] - log_factorial[above]
        chances = [
            _times(number, log_chance) for number, log_chance in zip((below, np.array(tied), above), parts, strict=True)
        ]
        terms.append(float(logsumexp(ways + chances[0] + chances[1] + chances[2])) if len(below) else -math.inf)
        if terms[-1] < best - _NEGLIGIBLE:  # the terms rise once and fall once
            break
        best = max(best, terms[-1])
    return float(logsumexp(terms)) if best > -math.inf else -math.inf


def _times(number: NDArray[np.int64], log_chance: float) -> Array:
    """Number · log chance, where none of the impossible is possible."""
    with np.errstate(invalid="ignore"):
        return np.where(number == 0, 0.0, number * log_chance)


def _posterior(prior: Prior, ends: tuple[float, float], chances: Array) -> Posterior:
    intervals = ((-math.inf, ends[0]), ends, (ends[1], math.inf))
    pieces = (Piece(float(p), *interval) for p, interval in zip(chances, intervals, strict=True))
    return Posterior(prior, tuple(piece for piece in pieces if piece.probability > 0))
