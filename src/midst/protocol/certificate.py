"""When a result is proved.

**Quantiles.** Say node i reports two facts about its own step: its x_i, and whether s_i ≤ x_i, s_i ≥ x_i, or both. Let
W be the total weight and [q⁻, q⁺] the τ-quantiles. If

    Σ w_i [s_i ≤ x_i] ≥ τW        and        Σ w_i [s_i ≥ x_i] ≥ (1 − τ)W

then max x ≥ q⁻ and min x ≤ q⁺. Proof: every s_i counted on the left is at most max x, so at least τW of the weight lies
at or below max x, and q⁻ is the lowest value of which that is true. The right side is the same, mirrored. ∎ So if
besides max x − min x ≤ ε, every x_i is within ε of a τ-quantile: if max x ≤ q⁺ then max x itself is one, else q⁺ lies
in [min x, max x].

The weights are whole numbers, so the comparison is exact. It holds for duplicates, constants, any rounding in z,
since it speaks of what was sent and not of how that came about. It asks no more of the iteration than the criterion
|Σ g_i| < 1 with g_i ∈ ∂f_i(x_i): where that sum is small, both inequalities hold (take g_i = +2w(1 − τ) where
s_i < x_i, −2wτ where s_i > x_i), so this test passes at the same iteration or earlier.

**Mean.** With g_i = w_i (x_i − s_i), Σ g_i = Σ w_i x_i − W·mean. Hence |x_i − mean| ≤ (max x − min x) + |Σ g_i| / W.

**An objective of somebody's own.** Let f = Σ f_i, every f_i convex, and let l(x) and h(x) be the sums of the least and
the greatest subgradients of all f_i at x. If max x − min x ≤ ε and, with a = max x − ε ≤ b = min x + ε,

    l(a) ≤ 0        and        h(b) ≥ 0

then some minimiser of f lies in [a, b], and so within ε of every x_i. Proof: where h(b) ≥ 0, f does not fall to the
right of b, so its least value is reached, if at all, at or below b; where l(a) ≤ 0 it is at or above a; f is
continuous on [a, b], and its least value there is the least of all. ∎ Nothing is asked of f but that it is convex: no
bound on its slopes, no curvature. And no other test to ε can pass earlier, since the other way round a minimiser in
[a, b] makes both inequalities true. The sums are exact; each subgradient is as exact as its objective computes it.

**Without asking anybody for a side.** Both ends of an edge know its residual
e_ij = A_ij z_{i|j} + A_ji z_{j|i} + c (x_i + x_j), and Σ g_i = −Σ_edges e_ij with g_i ∈ ∂f_i(x_i). So
|Σ g_i| ≤ m·E for m edges and E = max |e_ij|, and a maximum over all nodes can be had by everybody telling neighbours
the largest it has heard. Were max x < q⁻, at most B = ⌈τW⌉ − 1 of the weight would have s_i ≤ x_i, and
Σ g_i ≤ 2(1 − τ)B − 2τ(W − B) = 2B − 2τW < 0; the other side is mirrored. So the conclusion above holds where m·E is
below `slack`, the smaller of 2(τW − ⌈τW⌉ + 1) and 2((1 − τ)W − ⌈(1 − τ)W⌉ + 1) weight units: 1 for the median of an odd
number of values, 2 for an even one.

"x moves by less than ε" proves nothing: the iteration crawls along plateaus.

**Close enough to search.** The exact finish needs no proof from the iteration, only that all x are near each other
(`methods.CLOSE`), and that all nodes know it at once. In every (D + 1)-th iteration, D a bound on the diameter, each
puts down its x; the largest and the smallest are told on, and D rounds later everybody has them. `is_sampled`,
`known_at` and `lie_within` are that rule, for a network and for a simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TypeVar

import numpy as np

from midst.objectives import Mean, OwnObjective, Quantile, total_subgradients
from midst.types import Array, Bools, Ints

Count = TypeVar("Count", int, Ints)

ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of a few operations, relative to the numbers they are made from


@dataclass(frozen=True, eq=False)
class Certificate:
    """Whether the last x of a run is proved, with the numbers anybody can check.

    Attributes:
        holds: the proof went through, in every coordinate.
        tolerance: ε, in the units of the data (the largest over the coordinates).
        spread: max x − min x, likewise.
        at_or_below: weight, in units, of the nodes with s_i ≤ x_i (least over the coordinates); None where what was
            sought is no quantile.
        at_or_above: the same with s_i ≥ x_i.
        total: the total weight, in units.
    """

    holds: bool
    tolerance: float
    spread: float
    at_or_below: int | None
    at_or_above: int | None
    total: int


class Prover:
    """The test above for one problem, in working units, cheap enough to be asked in every iteration."""

    def __init__(self, objective: Quantile | Mean, whole_weights: Ints, s: Array, tolerance: Array) -> None:
        """Prepare the test; ε is one number or one a coordinate, and like the values in working units."""
        self._tolerance = tolerance
        self._whole_weights = whole_weights
        self._weights = whole_weights / whole_weights.sum()
        self._s = s
        self._quantile = isinstance(objective, Quantile)
        self._needed_below, self._needed_above = weights_needed(objective, whole_weights)
        self._total = int(whole_weights.sum())

    def holds(self, x: Array) -> bool:
        """Whether x is proved to lie within the tolerance of a right answer, in every coordinate."""
        spread = x.max(axis=0) - x.min(axis=0)
        if not (spread <= self._tolerance).all():
            return False
        if self._quantile:
            below, above = self._weigh(x)
            return bool((below >= self._needed_below).all() and (above >= self._needed_above).all())
        return bool((spread + np.abs(self._weights @ (x - self._s)) <= self._tolerance).all())

    def certificate(self, x: Array, unit: Array) -> Certificate:
        """The proof for x, in the units of the data."""
        spread = float(np.max((x.max(axis=0) - x.min(axis=0)) * unit))
        tolerance = float(np.max(self._tolerance * unit))
        below, above = (int(np.min(weighed)) for weighed in self._weigh(x)) if self._quantile else (None, None)
        return Certificate(self.holds(x), tolerance, spread, below, above, self._total)

    def _weigh(self, x: Array) -> tuple[Ints, Ints]:
        return self._whole_weights @ (self._s <= x), self._whole_weights @ (self._s >= x)


class OwnProver:
    """The test above for an objective of somebody's own, in the units of the data."""

    def __init__(self, objective: OwnObjective, s: Array, w: Array, tolerance: Array, total: int) -> None:
        """Prepare the test for what all nodes hold; ε is one number or one a coordinate."""
        self._objective, self._s, self._w = objective, s, w
        self._tolerance, self._total = tolerance, total

    def holds(self, x: Array) -> bool:
        """Whether x is proved to lie within the tolerance of a right answer, in every coordinate."""
        low, high = x.min(axis=0), x.max(axis=0)
        if not (high - low <= self._tolerance).all():
            return False
        least, _ = total_subgradients(self._objective, self._s, self._w, high - self._tolerance)
        _, greatest = total_subgradients(self._objective, self._s, self._w, low + self._tolerance)
        return bool((least <= 0).all() and (greatest >= 0).all())

    def certificate(self, x: Array, unit: Array) -> Certificate:
        """The proof for x."""
        spread, tolerance = (float(np.max(each * unit)) for each in (np.ptp(x, axis=0), self._tolerance))
        return Certificate(self.holds(x), tolerance, spread, None, None, self._total)


class Closeness:
    """Follows the range of x as the nodes of a network come to know it, in working units.

    Attributes:
        low: the smallest x of the last sample that all nodes know.
        high: the largest.
    """

    def __init__(self, diameter: int, tolerance: Array) -> None:
        """Before iteration 0; the tolerance is one number or one a coordinate."""
        self._diameter, self._tolerance = diameter, tolerance
        self._sampled: tuple[int, Array, Array] | None = None
        self.low = self.high = np.full(np.shape(tolerance), np.nan)

    def see(self, t: int, x: Array) -> bool:
        """Take note of x(t), which is sent; whether all nodes then know that x was close enough."""
        if is_sampled(t, self._diameter):
            self._sampled = t, x.min(axis=0), x.max(axis=0)
        if self._sampled is None or t != known_at(self._sampled[0], self._diameter):
            return False
        _, self.low, self.high = self._sampled
        return bool(lie_within(self.low, self.high, self._tolerance).all())


def is_sampled(t: int, diameter: int) -> bool:
    """Whether every node puts down its x(t), for the largest and the smallest to be told on."""
    return (t + 1) % (diameter + 1) == 0


def known_at(sampled: Count, diameter: Count) -> Count:
    """The iteration whose messages carry the last of what makes all nodes know the range of x(sampled).

    x(t) travels in round t + 1, and the maxima of a round's x in the `diameter` rounds after it. No later x is sent.
    """
    return sampled + diameter


def lie_within(low: Array, high: Array, tolerance: Array) -> Bools:
    """Whether all x lie within the tolerance of each other, but for rounding; of each coordinate or run."""
    return np.asarray(high - low <= tolerance + ROUNDING * np.maximum(np.abs(low), np.abs(high)))


def weights_needed(objective: Quantile | Mean, whole_weights: Ints) -> tuple[int, int]:
    """The weights, in units, that must lie at or below max x, and at or above min x; 0 and all of it for the mean."""
    # By fractions: ⌈τW⌉ of a float that is a little too large would ask for a unit more than there is.
    total = int(whole_weights.sum())
    q = objective.exact_q(total) if isinstance(objective, Quantile) else 0
    return ceil(q * total), ceil((1 - q) * total)


def slack(objective: Quantile | Mean, whole_weights: Ints, unit_weight: float) -> float:
    """How small |Σ g_i| must be for a small spread to prove a quantile: half of what is exact, as room for rounding."""
    total = int(whole_weights.sum())
    q = objective.exact_q(total) if isinstance(objective, Quantile) else Fraction(0)
    needed = weights_needed(objective, whole_weights)
    room = min(q * total - needed[0], (1 - q) * total - needed[1]) + 1
    return float(room) * unit_weight


def residual_bound(z: Array, mirror: Array, sign: Array | int, x: Array, far: Array, c: Array, share: Array) -> Array:
    """|e_ij| of an edge of a node, with room for what rounding did to it and to this node's x.

    Args:
        z: z_{i|j}.
        mirror: z_{j|i}.
        sign: A_ij.
        x: this node's own, of the same iteration.
        far: the far end's.
        c: the convergence parameter.
        share: the edge's of the denominator that x was divided by, curvature + c·d.
    """
    # Σ g_i = −Σ e_ij holds for exact x. A rounded x is off by a part of itself, and its subgradient by `weight` times
    # that; so every edge takes a share of it, besides the rounding of the line below.
    moved = abs(z) + abs(mirror) + c * (abs(x) + abs(far)) + share * abs(x)
    return abs(sign * (z - mirror) + c * (x + far)) + ROUNDING * moved
