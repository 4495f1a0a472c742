"""What a guarded node gives away to whoever hears z(0) and all messages.

Such an adversary knows the node's interval [low, high] in every iteration and how often it has stepped aside so far;
hence m, how far it would do so at most for a given s (`update.step_aside`); not u, uniform on [½, 1], by which that was
multiplied. So each message has a known density given s:

- x = low: the node was outside, above s, and far enough from it: low − s ≥ u·m. The probability of that is 1 from m on,
  0 up to m/2, and linear between. x = high is the same, mirrored.
- x strictly between: the node stepped aside, |x − s| = u·m, uniform between m/2 and m: upwards if s lies below low or
  in the lower half of the interval, else downwards.

The posterior is the prior times the product of these, on a grid that closes in on where it is positive.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from midst.privacy.posterior import Piece, Posterior, cell, no_mass
from midst.privacy.priors import Prior
from midst.privacy.sights import Guarded
from midst.update import Array

_PIECES = 64
_WITHIN = 7  # points at which each piece is looked at
_ZOOMS = 4
_AT_AN_END = 1e-9  # relative to the interval: x and its end are computed along different ways
_FAR = 1e-9  # of the prior on either side is one piece, without a grid


def guarded_posterior(sight: Guarded, prior: Prior, resolution: float) -> Posterior:
    """The prior, cut and weighed by every message.

    Args:
        sight: what is visible of the node.
        prior: what was believed before.
        resolution: how narrow the bounds may become before further messages are of no interest.

    Raises:
        InputError: the prior gives no mass to what was observed.
    """
    lowers, uppers, used = bounds_so_far(sight, resolution)
    lower, upper = float(lowers[-1]), float(uppers[-1])
    messages = Guarded(sight.node, sight.x[:used], sight.low[:used], sight.high[:used], sight.distance[:used])
    start = max(lower, prior.quantile(_FAR))
    stop = min(upper, prior.quantile(1 - _FAR))
    if not start < stop:
        start, stop = (lower, upper) if math.isfinite(lower) and math.isfinite(upper) else (start, start + resolution)
    for zoom in range(_ZOOMS):
        edges = np.linspace(start, stop, _PIECES + 1)
        weight = _weigh(messages, prior, edges)
        seen = np.flatnonzero(weight > 0)
        if not len(seen):
            raise no_mass(sight.node)
        if zoom + 1 < _ZOOMS and len(seen) < _PIECES // 2:
            start, stop = edges[max(seen[0] - 1, 0)], edges[min(seen[-1] + 2, _PIECES)]
        else:
            break
    pieces = [Piece(float(weight[k]), float(edges[k]), float(edges[k + 1])) for k in seen]
    pieces += _tails(messages, prior, lower, upper, edges)
    total = sum(piece.probability for piece in pieces)
    return Posterior(prior, tuple(Piece(each.probability / total, each.lower, each.upper) for each in pieces))


def bits_on_cells(posterior: Posterior, resolution: float) -> float:
    """KL(posterior ‖ prior) over the cells of the resolution, for a posterior that may be narrower than one."""
    lower, upper = posterior.bounds
    if not (upper - lower) / resolution < 10 * _PIECES:
        return posterior.bits(resolution)
    total = 0.0
    low, high = cell(lower, resolution)
    while low < upper:
        after = posterior.probability(low, high)
        if after > 0:
            total += after * (math.log(after) - posterior.prior.log_mass(low, high))
        low, high = high, high + resolution
    return max(total, 0.0) / math.log(2)


def bounds_so_far(sight: Guarded, resolution: float) -> tuple[Array, Array, int]:
    """Between which numbers s must lie by the messages up to each, and how many it took until that was narrow enough.

    Rounding makes the two meet in the end; from there on they stay as they were.
    """
    at_low, at_high = _at_ends(sight)
    x, m = sight.x, np.minimum(sight.distance, 0.5 * (sight.high - sight.low))
    lower = np.maximum.accumulate(np.where(at_low, -np.inf, np.where(at_high, x + m / 2, x - m)))
    upper = np.minimum.accumulate(np.where(at_high, np.inf, np.where(at_low, x - m / 2, x + m)))
    narrow = np.concatenate([[False], (upper - lower)[:-1] < 1e-3 * resolution])
    over = np.flatnonzero(~(lower < upper) | narrow)
    used = int(over[0]) if len(over) else len(x)
    last = max(used - 1, 0)
    lower[used:], upper[used:] = lower[last], upper[last]
    return lower, upper, used


def _at_ends(sight: Guarded) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    near = _AT_AN_END * np.maximum(sight.high - sight.low, np.abs(sight.x))
    return np.abs(sight.x - sight.low) <= near, np.abs(sight.x - sight.high) <= near


def _weigh(sight: Guarded, prior: Prior, edges: Array) -> Array:
    """Prior mass times mean likelihood of every piece between two edges, up to a common factor."""
    log_likelihood = _log_likelihood(sight, _middles(edges)).reshape(-1, _WITHIN)
    best = log_likelihood.max()
    if best == -math.inf:
        return np.zeros(len(edges) - 1)
    mass = [math.exp(prior.log_mass(low, high)) for low, high in pairwise(edges.tolist())]
    return np.asarray(np.exp(log_likelihood - best).mean(axis=1) * mass)


def _log_likelihood(sight: Guarded, s: Array) -> Array:
    at_low, at_high = (end[:, None] for end in _at_ends(sight))
    x, low, high = (part[:, None] for part in (sight.x, sight.low, sight.high))
    up, down = high - s, s - low
    room = np.where((up >= 0) & (down >= 0), np.maximum(up, down), up + down)
    m = np.minimum(sight.distance[:, None], 0.5 * room)
    far = np.where(at_low, low - s, s - high)
    stayed = np.clip(2 * far / m - 1, 0, 1)
    away = np.where(up >= down, x - s, s - x)
    moved = np.where((away >= m / 2) & (away <= m), 2 / m, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(at_low | at_high, stayed, moved)).sum(axis=0))


def _tails(sight: Guarded, prior: Prior, lower: float, upper: float, edges: Array) -> list[Piece]:
    """What lies beyond the grid, where nothing bounds it: so far from all messages the likelihood is the edge's."""
    ends = [(lower, float(edges[0]), 0), (float(edges[-1]), upper, -1)]
    open_ends = [(low, high, k) for low, high, k in ends if low < high and math.isinf(low if k == 0 else high)]
    likelihood = np.exp(_log_likelihood(sight, edges) - _log_likelihood(sight, _middles(edges)).max())
    return [
        Piece(float(likelihood[k]) * math.exp(prior.log_mass(low, high)), low, high)
        for low, high, k in open_ends
        if likelihood[k] > 0
    ]


def _middles(edges: Array) -> Array:
    inner = (np.arange(_WITHIN) + 0.5) / _WITHIN
    return np.asarray((edges[:-1, None] + np.diff(edges)[:, None] * inner).reshape(-1))
