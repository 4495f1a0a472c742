"""The floor of a midpoint: what the sum of the two middle values alone gives away.

Of n values that are all alike, L are at or below the lower middle one and U = n − L at or above the upper. On a grid of
keys with chances p_k, F_k = P(S ≤ k) and G_k = P(S ≥ k), the two are k < k' with the weight

    (F_k^L − F_{k−1}^L) · (G_{k'}^U − G_{k'+1}^U),

since the greatest of the L is k and the least of the U is k'; and both are k where fewer than L lie below k and more
than L do not lie above it. All k + k' = the sum told are weighed against each other. Given k, each of the L values is
at j < k, with the others' greatest at k, or at k itself, with no other above k; and likewise above.

Rules:
- One key by itself up to `_BLOCKS` of them; where more are probable, as many neighbouring keys as it takes are one.
- For outsiders, and values that are all alike; else there is no figure.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import gammaln, logsumexp

from midst.privacy.floor import log_fit
from midst.privacy.posterior import log_mass
from midst.privacy.priors import Prior
from midst.privacy.published import Cell, Published, twice_of
from midst.protocol.keys import Grid
from midst.types import Array

_BLOCKS = 1 << 13
_FAR = 1e-13  # of the prior on either side is left out of the grid


def midpoint_bits(seen: Published, prior: Prior, resolution: float) -> float | str:
    """KL(posterior ‖ prior) of one value, given the midpoint alone; or why that is not known.

    The prior is that of every honest value, cut to the public bounds.
    """
    if seen.own is None or len(seen.own.weight):
        return "the answer is a midpoint, and the adversary has values of its own"
    weight, count = int(seen.weight[0]), len(seen.weight)
    if seen.ranks[0] % weight or not isinstance(seen.keys, Grid) or seen.answer is None:
        return "the answer is a midpoint of no two values"
    edges, mirror = _blocks(seen, seen.keys, prior)
    ends = [Cell(a, b, 0).ends(seen.keys) for a, b in pairwise(edges)]
    log_p = np.array([log_mass(prior, *each) for each in ends])
    log_p -= logsumexp(log_p)
    after = _weigh(log_p, mirror, seen.ranks[0] // weight, count)
    middles = np.array([(low + high) / 2 for low, high in ends])
    _, cell_of_block = np.unique(np.floor(middles / resolution + 0.5), return_inverse=True)
    posterior, before = (np.bincount(cell_of_block, each) for each in (after, np.exp(log_p)))
    held = posterior > 0
    return max(0.0, float(np.sum(posterior[held] * np.log2(posterior[held] / before[held]))))


def _blocks(seen: Published, keys: Grid, prior: Prior) -> tuple[list[int], int]:
    """Edges of blocks of keys that the midpoint mirrors into each other, and the sum of the numbers of two that do."""
    assert seen.answer is not None
    twice = twice_of(seen.answer, keys)
    first, last = (keys.key(prior.quantile(level)) for level in (_FAR, 1 - _FAR))
    first, last = min(first, twice // 2 - 1), max(last, twice // 2 + 1)
    if seen.bracket is not None:
        first, last = max(first, seen.bracket.a + 1), min(last, seen.bracket.b)
    size = -((first - last - 1) // _BLOCKS)
    size += size % 2 == 0 and twice % 2 == 0
    # the middle is the middle of a block, or an edge; `start` is the first key of that block, or of the one above
    start = (twice + 1) // 2 - (size // 2 if twice % 2 == 0 else 0)
    before, after = -((first - start) // size), -((start - last - 1) // size)
    edges = [start + size * k - 1 for k in range(-before, after + 1)]
    return edges, 2 * before - twice % 2


def _weigh(log_p: Array, mirror: int, lower: int, count: int) -> Array:
    """The chances of each block to hold a value, given that the numbers of the middle two add up to `mirror`."""
    upper, blocks, p = count - lower, len(log_p), np.exp(log_p)
    # F^L of many values is no float any more: everything is kept in logarithms, relative to the likeliest pair
    with np.errstate(divide="ignore"):
        log_f, log_g = np.log(np.cumsum(p)), np.log(np.cumsum(p[::-1])[::-1])
    k = np.arange(max(0, mirror - blocks + 1), (mirror + 1) // 2)
    other = mirror - k
    greatest, least = _log_steps(log_f, lower)[k], _log_steps(log_g[::-1], upper)[::-1][other]
    ways = float(gammaln(count + 1) - gammaln(lower + 1) - gammaln(upper + 1))
    tied = _tie(log_p, mirror // 2, lower, count) if mirror % 2 == 0 else [-math.inf] * 4
    scale = max(float(np.max(greatest + least, initial=-math.inf)) + ways, tied[3])
    # how many are expected in each block, times the probability of what is known: of the lower L, p_j times that the
    # others' greatest is k > j, or that none of them is above k = j; and so on for the upper U
    beyond, counts = np.zeros(blocks), np.zeros(blocks)
    beyond[k] = np.exp(_log_steps(log_f, lower - 1)[k] + least + ways - scale)
    counts += lower * p * (np.cumsum(beyond[::-1])[::-1] - beyond)
    counts[k] += lower * p[k] * np.exp((lower - 1) * log_f[k] + least + ways - scale)
    beyond = np.zeros(blocks)
    beyond[other] = np.exp(_log_steps(log_g[::-1], upper - 1)[::-1][other] + greatest + ways - scale)
    counts += upper * p * (np.cumsum(beyond) - beyond)
    counts[other] += upper * p[other] * np.exp((upper - 1) * log_g[other] + greatest + ways - scale)
    # both middle values in one block: each of all n is below, in or above it, with the chance that this leaves for the
    # rest
    if mirror % 2 == 0:
        at = mirror // 2
        counts += count * p * np.repeat(np.exp(np.array(tied[:3]) - scale), (at, 1, blocks - at - 1))
    return np.asarray(counts / counts.sum())


def _tie(log_p: Array, at: int, lower: int, count: int) -> list[float]:
    """Log P(both middle values are in one block), given that some value lies below, in or above it; and given nothing.

    Fewer than L lie below the block, and more than L do not lie above it.
    """
    with np.errstate(divide="ignore"):
        below, above = (np.log(np.sum(np.exp(part))) for part in (log_p[:at], log_p[at + 1 :]))
    parts = np.array([below, log_p[at], above])
    given = [log_fit(parts, count - 1, lower - 1 - a, lower + 1 - b) for a, b in ((1, 1), (0, 1), (0, 0))]
    return [*given, log_fit(parts, count, lower - 1, lower + 1)]


def _log_steps(log_f: Array, power: int) -> Array:
    """Log (F_k^m − F_{k−1}^m): that the greatest of m values is k. Of none there is no greatest."""
    if power == 0:
        return np.full(len(log_f), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.concatenate([[-np.inf], -power * np.diff(log_f)])  # log (F_{k−1} / F_k)^m
        steps = power * log_f + np.log(-np.expm1(np.minimum(before, 0.0)))
    return np.where(log_f > -np.inf, steps, -np.inf)
