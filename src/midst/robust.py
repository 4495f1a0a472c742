"""Robust locations, as objectives of one's own: Huber's, and the median of lists.

Both have the form of `objectives.OwnObjective`, and are examples of it: what is here anybody can write.

**Huber.** f(x) = w·h(x − s), with h(r) = ½r² up to |r| = δ and δ·(|r| − ½δ) beyond. f′(x) = max(−wδ, min(wδ, w(x − s)))
rises with x, and so do the three lines that it is made of, with S + cd·x on top. The zero of the greater of two rising
functions is the lesser of their zeros, and the other way round. So f′(x) + S + cd·x is zero at

    x = min(high, max(low, middle)),   middle = (w·s − S)/(w + cd),   low = (−wδ − S)/cd,   high = (wδ − S)/cd.

Whoever knows S has g = −S − cd·x = f′(x). Where |x − s| < δ that is w(x − s), and s = x − g/w: the node is exposed,
though its own value is not what it sent. Where not, g is wδ or −wδ whatever s is, and all that is told is s ≤ x − δ or
s ≥ x + δ.

**The median of lists.** f(x) = w·Σ_j |x − s_j| over a node's own list of k. With i of them below x, f′(x) = w(2i − k),
and x would be p_i = (w(k − 2i) − S)/cd. p_0 > p_1 > … > p_k, and x is the median of all s_j and all p_i, 2k + 1 numbers
(Li and Osher, 2009). Indeed k of them lie below it. If it is p_i, these are the k − i of p_{i+1}, …, p_k and so i of
the s_j, as there should be. If it is an s_j with i others below it, k − i of the p are: p_{i+1} ≤ s_j ≤ p_i, which says
that f′(x) + S + cd·x is negative to its left and positive to its right. For one number it is the paper's clip.

Where x is one of the s_j, it tells that one, and the node is exposed. Elsewhere it tells how many of them lie below x;
what an adversary makes of that is not worked out, so there is no audit of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from midst.errors import InputError
from midst.types import Array, Branch


@dataclass(frozen=True)
class Huber:
    """Huber's location: the mean of what lies near it, the median of the rest; δ says what is near.

    A value far from all others moves it no further than one δ away would. A large δ gives the mean, a small one the
    median.

    Attributes:
        delta: the threshold δ, in the units of the data.
    """

    delta: float
    name = "Huber location"
    lists = False

    def __post_init__(self) -> None:
        if not (isinstance(self.delta, int | float) and 0 < self.delta < float("inf")):
            raise InputError("the threshold of a Huber location must be a positive number")

    def minimise(self, s: Array, w: Array, S: Array, cd: Array) -> tuple[Array, Branch]:
        """See `OwnObjective`."""
        middle, most = (w * s - S) / (w + cd), w * self.delta
        low, high = (-most - S) / cd, (most - S) / cd
        # low = high = middle where there is no weight: then x tells nothing, and must not count as if it did
        branch = np.greater_equal(low, middle).astype(np.int8) - np.less(high, middle).astype(np.int8)
        return np.minimum(high, np.maximum(low, middle)), branch

    def subgradients(self, s: Array, w: Array, x: Array) -> tuple[Array, Array]:
        """See `OwnObjective`."""
        slope = w * np.clip(x - s, -self.delta, self.delta)
        return slope, slope

    def values_behind(self, w: Array, x: Array, g: Array, branch: Branch) -> tuple[Array, Array]:
        """See `AuditedObjective`."""
        s = x - g / w
        lower = np.where(branch < 0, x + self.delta, np.where(branch > 0, -np.inf, s))
        return lower, np.where(branch > 0, x - self.delta, np.where(branch < 0, np.inf, s))


@dataclass(frozen=True)
class ListMedian:
    """The median of everybody's lists together; of an even number, any point between the two in the middle."""

    name = "median of lists"
    lists = True

    def minimise(self, s: Array, w: Array, S: Array, cd: Array) -> tuple[Array, Branch]:
        """See `OwnObjective`; the branch says on which side of x most of the list lies, both sides alike: 1."""
        s = np.asarray(s)
        w, S, cd, k = (np.asarray(each)[..., None] for each in (w, S, cd, np.isfinite(s).sum(axis=-1)))
        i = np.arange(s.shape[-1] + 1)
        p = np.where(i <= k, (w * (k - 2 * i) - S) / cd, np.nan)
        x = np.take_along_axis(np.sort(np.concatenate([s, p], axis=-1), axis=-1), k, axis=-1)  # NaN come last
        side = np.where(2 * (s < x).sum(axis=-1) >= k[..., 0], 1, -1)
        return x[..., 0], np.where((s == x).any(axis=-1), 0, side).astype(np.int8)

    def subgradients(self, s: Array, w: Array, x: Array) -> tuple[Array, Array]:
        """See `OwnObjective`."""
        x = np.asarray(x)[..., None]
        below, at, above = ((each.sum(axis=-1)) for each in (s < x, s == x, s > x))
        return w * (below - at - above), w * (below + at - above)
