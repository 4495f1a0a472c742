"""The floor: what the answer alone gives away, however it was found.

Whoever learns only that the r-th value in order lies in the answer's cell knows that less than r of the weight lies
below the cell, and at least r not above it. How many values are tied in the cell it does not know: all numbers that fit
are summed over, with the chances that the prior gives them. A coalition knows its own part.

Rules:
- The answer's cell is what has the answer's key or, where that is narrower, what rounds to the same multiple of the
  audit's resolution: values are not told apart any finer.
- With values all alike the sum is a short one, at any number of them; else `assignments.assign` adds up, to its limit.
- Several answers over the same values are one event: each says its part about the weight below its cell and in it.
- A midpoint tells the sum of two values: `midpoint_floor.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from midst.privacy.assignments import assign
from midst.privacy.posterior import Piece, Posterior, cell, log_mass
from midst.privacy.priors import Prior
from midst.privacy.published import Published
from midst.types import Array, Ints

_NEGLIGIBLE = 45.0  # in logarithms: less than a unit in the last place


Ends = tuple[float, float]


class _Event(NamedTuple):
    """What an answer says: at most `below` of honest weight below its cell, and at least `up_to` not above it."""

    below: int
    up_to: int


def floor_posteriors(answers: Sequence[Published], priors: list[Prior], resolution: float) -> list[Posterior] | str:
    """What each honest value may be, given answers alone over the same values; or why that is not known.

    Priors are cut to the public bounds. The resolution is the finest, where it differs between participants.
    """
    for seen in answers:
        if seen.answer is None:
            return "the run ended without an answer that was proved"
        if not seen.ranks:
            return "what was sought is no value of a known rank"
        if len(seen.ranks) > 1:
            return "one of several answers is a midpoint"
        if seen.own is None:
            return "the trace does not tell where the coalition's own values lie"
    first = answers[0]
    if len(answers) == 1 and first.same_weight and len(set(priors)) == 1:
        ends = _answer_cell(first, resolution)
        return [_posterior(priors[0], _between([ends]), _alike(first, priors[0], ends))] * len(priors)
    return _given_all(answers, priors, resolution)


def _given_all(answers: Sequence[Published], priors: list[Prior], resolution: float) -> list[Posterior] | str:
    """The same by adding up all ways in which the answers can come about."""
    cells = [_answer_cell(seen, resolution) for seen in answers]
    intervals = _between(cells)
    events = [(intervals.index(ends), _event(seen, ends)) for seen, ends in zip(answers, cells, strict=True)]
    weight = answers[0].weight
    # what no cell may hold prunes the ways early; sums over several cells are judged when all values are placed
    most = [min([int(weight.sum()), *(event.below for at, event in events if c < at)]) for c in range(len(intervals))]
    parts = np.array([_parts(prior, intervals) for prior in priors])
    parts[:, np.array(most) < 0] = -math.inf
    found = assign(
        parts,
        weight.tolist(),
        [max(limit, 0) for limit in most],
        lambda sums: (
            all(sum(sums[:at]) <= event.below for at, event in events if event.below >= 0)
            and all(sum(sums[: at + 1]) >= event.up_to for at, event in events)
        ),
    )
    if found is None:
        return "there are too many ways in which it can come about"
    return [_posterior(prior, intervals, row) for prior, row in zip(priors, found, strict=True)]


def _between(cells: Sequence[Ends]) -> list[Ends]:
    """The answers' cells in order, each once, with what lies below, between and above them: cells at odd places."""
    found: list[Ends] = []
    low = -math.inf
    for ends in sorted(set(cells)):
        found += [(low, max(low, ends[0])), ends]
        low = ends[1]
    return [*found, (low, math.inf)]


def _answer_cell(seen: Published, resolution: float) -> Ends:
    assert seen.answer is not None
    low, high = seen.answer_ends
    return (low, high) if high - low > resolution * (1 - 1e-9) else cell(seen.answer, resolution)


def _event(seen: Published, ends: Ends) -> _Event:
    """What the answer says about honest values: the coalition's own are taken off."""
    own = seen.own
    assert own is not None
    side = own.side
    if own.values is not None:
        side = np.where(own.values < ends[0], -1, np.where(own.values > ends[1], 1, 0))
    below, at = int(own.weight[side < 0].sum()), int(own.weight[side == 0].sum())
    # the r-th lies in the cell: at most r − 1 below it, at least r not above; the coalition's part is known, and off
    return _Event(seen.ranks[0] - 1 - below, seen.ranks[0] - below - at)


def _parts(prior: Prior, intervals: Sequence[Ends]) -> list[float]:
    """Logarithms of the masses of the answers' cells, and of what lies between them."""
    return [log_mass(prior, *ends) if k % 2 else prior.log_mass(*ends) for k, ends in enumerate(intervals)]


def _alike(seen: Published, prior: Prior, ends: Ends) -> Array:
    """The chances of below, at and above for each of h values that are all alike."""
    parts, event, weight = np.array(_parts(prior, _between([ends]))), _event(seen, ends), int(seen.weight[0])
    others = len(seen.weight) - 1
    # a value below takes its weight off both limits, one in the cell off the second only
    moved = ((weight, weight), (0, weight), (0, 0))
    fits = [log_fit(parts, others, (event.below - a) // weight, -((b - event.up_to) // weight)) for a, b in moved]
    log_chances = parts + np.array(fits)
    return np.asarray(np.exp(log_chances - logsumexp(log_chances)))


def log_fit(parts: Array, count: int, most_below: int, least_up_to: int) -> float:
    """Log P(at most so many of `count` values below a cell, and at least so many below it or in it).

    The parts are logarithms of the chances of one value to lie below the cell, in it and above it.
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
        chances = [_times(*each) for each in zip((below, np.array(tied), above), parts, strict=True)]
        terms.append(float(logsumexp(ways + chances[0] + chances[1] + chances[2])) if len(below) else -math.inf)
        if terms[-1] < best - _NEGLIGIBLE:  # the terms rise once and fall once
            break
        best = max(best, terms[-1])
    return float(logsumexp(terms)) if best > -math.inf else -math.inf


def _times(number: Ints, log_chance: float) -> Array:
    """Number · log chance, where none of the impossible is possible."""
    with np.errstate(invalid="ignore"):
        return np.where(number == 0, 0.0, number * log_chance)


def _posterior(prior: Prior, intervals: Sequence[Ends], chances: Array) -> Posterior:
    pieces = (Piece(float(p), *interval) for p, interval in zip(chances, intervals, strict=True))
    return Posterior(prior, tuple(piece for piece in pieces if piece.probability > 0))
