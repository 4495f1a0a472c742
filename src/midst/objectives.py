"""What is to be found: quantiles (median, maximum, minimum among them), the mean, and what people bring of their own.

An objective of midst's says three things, and nothing about how it is reached:

- `slopes`: the local objective's (left, right, curvature), for the step in `step.py`;
- `answer`: the interval of right answers when all values are known (simulation only);
- `title`: what a result calls it, including which of two medians it is.

Weights reach it as whole numbers of a public unit (see `problems.py`), so that every comparison of sums of weights is a
comparison of integers.

One of somebody's own is anything that has the members of `OwnObjective`: two functions about a convex f_i, from which
the step, the proof and the right answer follow. `robust.py` has two to begin with. They are run by `solve`, by the
iteration, in the units of the data; whatever else midst does knows midst's own alone, and says so (`built_in`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.types import Array, Branch, Ints

Side = Literal["any", "low", "high", "midpoint"]

TAUS = {"median": 0.5, "maximum": 1.0, "minimum": 0.0}  # the τ of those that have a name


@dataclass(frozen=True)
class Quantile:
    """The τ-quantile: a value with at most τ of the weight below it and at most 1 − τ above it.

    Where τ times the total weight is a whole number of weight units there are two such values with everything between
    them (an even number of values has two medians). `side` chooses: "low" or "high", or "any" for whichever point
    between the two the iteration happens to reach, as in the paper; "midpoint" is halfway between them, which only a
    search at a public resolution can find. τ = 1 is the maximum and τ = 0 the minimum.

    Attributes:
        tau: a number in [0, 1]; kept as the simplest fraction that is the same float (0.9 is 9/10).
        side: which end of an interval of answers.
    """

    tau: Fraction
    side: Side = "any"

    def __init__(self, tau: float | Fraction, side: Side = "any") -> None:
        exact = _fraction(tau)
        if side not in ("any", "low", "high", "midpoint"):
            raise InputError(f"side must be 'low', 'high', 'midpoint' or 'any', not {side!r}")
        if exact in (0, 1):  # every number beyond the last value minimises f; the last value is meant
            side = "low" if exact == 1 else "high"
        object.__setattr__(self, "tau", exact)
        object.__setattr__(self, "side", side)

    @property
    def name(self) -> str:
        """What it is called before the weights are known."""
        if self.tau in (0, 1):
            return "maximum" if self.tau else "minimum"
        return "median" if self.tau == Fraction(1, 2) else f"quantile {float(self.tau):g}"

    def title(self, total: int) -> str:
        """What a result calls it: where there are two answers, which of them it is."""
        if self.tau in (0, 1) or not self._ambiguous(total):
            return self.name
        return {"any": f"{self.name} between low and high", "midpoint": self.name}.get(
            self.side, f"{self.side} {self.name}"
        )

    def exact_tau(self, total: int) -> Fraction:
        """The τ at which the iteration runs: moved by half a unit where τ alone would not tell low from high."""
        if self.side in ("any", "midpoint") or not self._ambiguous(total):
            return self.tau
        half = Fraction(1, 2 * total)
        return self.tau - half if self.side == "low" else self.tau + half

    def slopes(self, whole_weights: Ints, unit: float) -> tuple[Array, Array, Array]:
        """Left and right slope and curvature of f_i: 2wτ, 2w(1 − τ), 0."""
        tau = self.exact_tau(int(whole_weights.sum()))
        weight = whole_weights.astype(np.float64) * unit
        return weight * float(2 * tau), weight * float(2 - 2 * tau), np.zeros_like(weight)

    def answer(self, values: NDArray[Any], whole_weights: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lowest and the highest right answer, for each coordinate, from the sorted values or keys."""
        total, weight = int(whole_weights.sum()), int(whole_weights[0])
        tau = self.exact_tau(total)
        if weight and (whole_weights == weight).all():  # two ranks, which need no order of all
            exact_tau = tau * total
            ranks = (
                -(-exact_tau.numerator // exact_tau.denominator) - 1,
                exact_tau.numerator // exact_tau.denominator,
            )
            places = [min(max(rank // weight, 0), len(values) - 1) for rank in ranks]
            low, high = np.partition(values, places, axis=0)[places]
            return np.asarray(low), np.asarray(high)
        order = np.argsort(values, axis=0, kind="stable")
        ranked = np.take_along_axis(values, order, axis=0)
        heaped = np.cumsum(whole_weights[order], axis=0)
        # lowest: the first value at which the weight up to it reaches τW; highest: the first at which it exceeds τW
        exact_tau = tau * total
        first = np.argmax(heaped >= -(-exact_tau.numerator // exact_tau.denominator), axis=0)
        last = np.argmax(heaped > exact_tau.numerator // exact_tau.denominator, axis=0)
        low, high = (np.asarray(np.take_along_axis(ranked, np.expand_dims(k, 0), axis=0)[0]) for k in (first, last))
        return low, high

    def is_one_value(self, total: int) -> bool:
        """Whether the answer is one of the values, and not anything between two."""
        return self.side in ("low", "high") or not self._ambiguous(total)

    def ranks(self, total: int) -> tuple[int, ...]:
        """The place of the answer among all values, from 1 on, in units of weight; both, where it is between two.

        Raises:
            InputError: anything between two values would do, and nothing says which.
        """
        exact_tau = self.exact_tau(total) * total
        if self.is_one_value(total):
            return (max(1, -(-exact_tau.numerator // exact_tau.denominator)),)
        if self.side == "any":
            raise InputError(f"a {self.title(total)} is no one value to search for; try side low or high")
        return int(exact_tau), int(exact_tau) + 1

    def _ambiguous(self, total: int) -> bool:
        return (self.tau * total).denominator == 1


@dataclass(frozen=True)
class Mean:
    """The (weighted) mean, by the quadratic f_i(x) = ½ w (x − s_i)².

    It has no branches: every message is a known affine function of s_i and z, so whoever knows z(0) can compute every
    value. What hides a value here is z(0) alone.
    """

    name = "mean"

    def title(self, total: int) -> str:
        """What a result calls it."""
        return self.name

    def slopes(self, whole_weights: Ints, unit: float) -> tuple[Array, Array, Array]:
        """Left and right slope and curvature of f_i: 0, 0, w."""
        weight = whole_weights.astype(np.float64) * unit
        return np.zeros_like(weight), np.zeros_like(weight), weight

    def answer(self, values: Array, whole_weights: Ints) -> tuple[Array, Array]:
        """The mean, twice: it is unique."""
        mean = np.average(values, axis=0, weights=whole_weights)
        return np.asarray(mean), np.asarray(mean)


@runtime_checkable
class OwnObjective(Protocol):
    """An objective of one's own: find an x that minimises Σ_i f_i(x), every f_i convex and known to its node alone.

    f_i depends on what node i holds, s, and is proportional to its weight, w. Both functions are asked about one node,
    in floats, and about all nodes at once, in arrays that broadcast: lines of NumPy that take each number by itself do
    for both. `midst.contracts.check_objective` tries whether they are right.

    Attributes:
        name: what a result calls it.
        lists: whether a node holds a list (`Problem(…, pooled=True)`). An array of s then has one axis more than all
            others, the last: the list, filled up with NaN where others have longer ones.
    """

    name: str
    lists: bool

    def minimise(self, s: Array, w: Array, S: Array, cd: Array) -> tuple[Array, Branch | None]:
        """The x update: the x at which f(x) + S·x + ½·cd·x² is least.

        Args:
            s: what the node holds.
            w: its weight; 0 where it only relays.
            S: the sum S_i of the paper.
            cd: c·d_i, positive.

        Returns:
            x; and what it tells of s to whoever knows S: 0 where that is s itself, or one number of a list, −1 or 1
            where it is no more than a bound from below or from above. None where nobody has worked that out: a result
            then does not say who was exposed, and no audit is made.
        """

    def subgradients(self, s: Array, w: Array, x: Array) -> tuple[Array, Array]:
        """The least and the greatest subgradient of f at x: twice the derivative, where there is one."""


@runtime_checkable
class AuditedObjective(OwnObjective, Protocol):
    """One of which is known what a message tells, so that an audit can say what it was worth. Not for lists."""

    def values_behind(self, w: Array, x: Array, g: Array, branch: Branch) -> tuple[Array, Array]:
        """All s, from the lowest to the highest, of which g is a subgradient at x.

        Whoever knows S has g = −S − cd·x, and knows no more of s than this.

        Args:
            w: the node's weight, positive.
            x: what it sent.
            g: the subgradient in use, to rounding.
            branch: as `minimise` gave it: where it is 0, both ends are s.
        """


Objective = Quantile | Mean | OwnObjective


def built_in(objective: Objective) -> Quantile | Mean:
    """An objective of midst's.

    Raises:
        InputError: it is somebody's own.
    """
    if isinstance(objective, Quantile | Mean):
        return objective
    raise InputError(
        f"a {objective.name} is found by midst.solve alone, by consensus and engine arrays, edges or reference; this "
        "here is for quantiles and means"
    )


def title_of(objective: Objective, total: int) -> str:
    """What a result calls it, of so many units of weight."""
    return objective.title(total) if isinstance(objective, Quantile | Mean) else objective.name


def total_subgradients(objective: OwnObjective, s: Array, w: Array, x: Array) -> tuple[Array, Array]:
    """The least and the greatest subgradient of Σ f_i at x, of each coordinate at its own; added up without rounding.

    Args:
        objective: what is sought.
        s: what all nodes hold.
        w: their weights.
        x: one number, or one a coordinate: the same for all nodes.
    """
    shape = (len(s), *np.shape(x))
    least, greatest = (
        np.array([fsum(column) for column in np.broadcast_to(each, shape).reshape(len(s), -1).T]).reshape(np.shape(x))
        for each in objective.subgradients(s, w, np.broadcast_to(x, shape))
    )
    return least, greatest


def median(side: Side = "any") -> Quantile:
    """The median: the ½-quantile."""
    return Quantile(Fraction(1, 2), side)


def maximum() -> Quantile:
    """The maximum: the 1-quantile."""
    return Quantile(Fraction(1))


def minimum() -> Quantile:
    """The minimum: the 0-quantile."""
    return Quantile(Fraction(0))


def _fraction(tau: float | Fraction) -> Fraction:
    """The simplest fraction that is the same number as `tau`, so that 0.9 of 10 values is 9 of them."""
    try:
        exact = Fraction(tau)
    except (TypeError, ValueError, OverflowError):
        raise InputError("quantile must be a number in [0, 1]") from None
    if not 0 <= exact <= 1:
        raise InputError(f"quantile must be in [0, 1], got {float(exact):g}")
    simple = exact.limit_denominator(10_000)
    if isinstance(tau, Fraction) or float(simple) != float(tau):
        return exact
    return simple
