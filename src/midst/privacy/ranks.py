"""What a count gave away besides: the ranks of the values that were counted.

Everybody is told, of every candidate v, how much weight lies below it and how much above. Given what an adversary knows
of each honest value by itself (a posterior a node, independent of each other when z(0) is clear), that is an event E
about all of them together, and conditioning on it moves the joint posterior by exactly

    KL(P(· | E) ‖ P) = −log2 P(E)   bits.

With the candidates sorted, every value falls into one of the intervals between them, or on one of them; P(E) is the
probability that the weights of the honest nodes fall into these cells in just the totals announced, which a dynamic
programme over the nodes gives exactly. It is one number for all nodes together, and is reported beside their bits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from midst.privacy.posterior import Posterior

_MOST_WAYS = 100_000
Cell = int  # 2k: between candidates k−1 and k; 2k + 1: on candidate k


def rank_bits(
    posteriors: Mapping[int, Posterior], weights: Sequence[int], candidates: Mapping[float, tuple[int, int]]
) -> float | None:
    """Bits that the totals of the candidates add to what is known of the nodes one by one.

    Args:
        posteriors: of every node, independent of each other.
        weights: of all nodes, in units.
        candidates: the totals (below, above) of every value that was counted.

    Returns:
        The bits; None where there are too many ways in which the totals can come about to add them up.
    """
    values = sorted(candidates)
    if not values:
        return 0.0
    reached: dict[tuple[int, ...], float] = {_cells(values, candidates, sum(weights)): 1.0}  # what is still missing
    for node, posterior in posteriors.items():
        chances = _chances(posterior, values)
        after: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for missing, probability in reached.items():
            for cell, chance in chances:
                left = missing[cell] - weights[node]
                if left >= 0:
                    after[(*missing[:cell], left, *missing[cell + 1 :])] += probability * chance
        if len(after) > _MOST_WAYS:
            return None
        reached = after
    total = sum(reached.values())
    return max(0.0, -math.log2(total)) if total > 0 else None


def rank_bound(posteriors: Mapping[int, Posterior], weights: Sequence[int], values: Sequence[float]) -> float:
    """The most that totals can tell an eavesdropper: the logarithm of how many there can be, given what it sees.

    It knows the sum of the subgradients over every connected honest set (with sealed z(0) by Σ U = 0), hence the weight
    of the nodes that are above their value, if not which ones. A node none of whose hypotheses reaches across the
    candidate counts below it just if it is above its own value. So the total is told up to those of which some does,
    each of which may turn it by its weight either way.
    """
    bits = 0.0
    for value in values:
        across = sum(
            weights[node]
            for node, posterior in posteriors.items()
            if any(piece.lower < value < piece.upper for piece in posterior.pieces)
        )
        bits += math.log2(1 + 2 * across)
    return bits


def _cells(values: Sequence[float], candidates: Mapping[float, tuple[int, int]], total: int) -> tuple[int, ...]:
    """The weight in every cell, from the totals below and above every candidate."""
    weight = []
    before = 0
    for value in values:
        below, above = candidates[value]
        weight += [below - before, total - below - above]
        before = total - above
    return (*weight, total - before)


def _chances(posterior: Posterior, values: Sequence[float]) -> list[tuple[Cell, float]]:
    """With what probability the value falls into each cell."""
    edges = [-math.inf, *values, math.inf]
    chances = []
    for k, (low, high) in enumerate(pairwise(edges)):
        chances.append((2 * k, posterior.probability(low, high)))
        if k < len(values):
            at = sum(piece.probability for piece in posterior.pieces if piece.atom and piece.lower == high)
            chances.append((2 * k + 1, at))
    return [(cell, chance) for cell, chance in chances if chance > 0]
