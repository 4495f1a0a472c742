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
from math import ceil, floor, fsum
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError, closest
from midst.types import Array, Branch, Ints

Definition = Literal["inverted_cdf", "averaged_inverted_cdf", "inverted_cdf_high", "any"]
DEFINITIONS: tuple[Definition, ...] = get_args(Definition)
ENDS: tuple[Definition, ...] = ("inverted_cdf", "inverted_cdf_high")  # those whose answer is one of the values
_TITLES = {
    "inverted_cdf": "low {}",
    "inverted_cdf_high": "high {}",
    "averaged_inverted_cdf": "{}",
    "any": "{} between low and high",
}

LEVELS = {"median": 0.5, "maximum": 1.0, "minimum": 0.0}  # q of the quantiles that have a name


@dataclass(frozen=True)
class Quantile:
    """The q-quantile: a value with at most q of the weight below it and at most 1 − q above it.

    Two values qualify where q times the total weight is a whole number of weight units: an even number of values has
    two medians. `definition` chooses between them, by the names of `numpy.quantile`:

    - "inverted_cdf": the lower of the two. NumPy's "lower" is something else: of [1, 2, 3, 4] at 0.3 it is 1, not 2.
    - "averaged_inverted_cdf": halfway between the two. Only a search at a public resolution finds it.
    - "inverted_cdf_high": the higher of the two. NumPy has no name for it.
    - "any": every point between the two, as in the paper. Only the iteration finds it, and proves an interval.

    q = 1 is the maximum and q = 0 the minimum.

    Attributes:
        q: a number in [0, 1]; kept as the simplest fraction that is the same float (0.9 is 9/10).
        definition: the answer that is meant where there are two.
    """

    q: Fraction
    definition: Definition = "inverted_cdf"

    def __init__(self, q: float | Fraction, definition: Definition = "inverted_cdf") -> None:
        exact = _fraction(q)
        if definition not in DEFINITIONS:
            near = closest(str(definition), DEFINITIONS)
            raise InputError(f"definition must be one of {', '.join(DEFINITIONS)}, not {definition!r}{near}")
        if exact in (0, 1):  # every number beyond the last value minimises f; the last value is meant
            definition = "inverted_cdf" if exact == 1 else "inverted_cdf_high"
        object.__setattr__(self, "q", exact)
        object.__setattr__(self, "definition", definition)

    @property
    def name(self) -> str:
        """What it is called before the weights are known."""
        if self.q in (0, 1):
            return "maximum" if self.q else "minimum"
        return "median" if self.q == Fraction(1, 2) else f"quantile {float(self.q):g}"

    def title(self, total: int) -> str:
        """What a result calls it: where there are two answers, which of them it is."""
        if self.q in (0, 1) or not self._ambiguous(total):
            return self.name
        return _TITLES[self.definition].format(self.name)

    def exact_q(self, total: int) -> Fraction:
        """The q at which the iteration runs: moved by half a unit where q alone does not tell the two answers apart."""
        if self.definition not in ENDS or not self._ambiguous(total):
            return self.q
        half = Fraction(1, 2 * total)
        return self.q - half if self.definition == "inverted_cdf" else self.q + half

    def slopes(self, whole_weights: Ints, unit: float) -> tuple[Array, Array, Array]:
        """Left and right slope and curvature of f_i: 2wq, 2w(1 − q), 0."""
        q = self.exact_q(int(whole_weights.sum()))
        weight = whole_weights.astype(np.float64) * unit
        return weight * float(2 * q), weight * float(2 - 2 * q), np.zeros_like(weight)

    def answer(self, values: NDArray[Any], whole_weights: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lowest and the highest right answer, for each coordinate, from the sorted values or keys."""
        total, weight = int(whole_weights.sum()), int(whole_weights[0])
        level = self.exact_q(total) * total
        if weight and (whole_weights == weight).all():  # two ranks, which need no order of all
            ranks = ceil(level) - 1, floor(level)
            places = [min(max(rank // weight, 0), len(values) - 1) for rank in ranks]
            low, high = np.partition(values, places, axis=0)[places]
            return np.asarray(low), np.asarray(high)
        order = np.argsort(values, axis=0, kind="stable")
        ranked = np.take_along_axis(values, order, axis=0)
        heaped = np.cumsum(whole_weights[order], axis=0)
        # lowest: the first value at which the weight up to it reaches qW; highest: the first at which it exceeds qW
        first = np.argmax(heaped >= ceil(level), axis=0)
        last = np.argmax(heaped > floor(level), axis=0)
        low, high = (np.asarray(np.take_along_axis(ranked, np.expand_dims(k, 0), axis=0)[0]) for k in (first, last))
        return low, high

    def is_one_value(self, total: int) -> bool:
        """Whether the answer is one of the values, and not anything between two."""
        return self.definition in ENDS or not self._ambiguous(total)

    def ranks(self, total: int) -> tuple[int, ...]:
        """The place of the answer among all values, from 1 on, in units of weight; both, where it is between two.

        Raises:
            InputError: anything between two values would do, and nothing says which.
        """
        level = self.exact_q(total) * total
        if self.is_one_value(total):
            return (max(1, ceil(level)),)
        if self.definition == "any":
            raise InputError(f"a {self.title(total)} is no one value to search for; try definition inverted_cdf")
        return int(level), int(level) + 1

    def _ambiguous(self, total: int) -> bool:
        return (self.q * total).denominator == 1


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


def _fraction(q: float | Fraction) -> Fraction:
    """The simplest fraction that is the same number as `q`, so that 0.9 of 10 values is 9 of them."""
    try:
        exact = Fraction(q)
    except (TypeError, ValueError, OverflowError):
        raise InputError("quantile must be a number in [0, 1]") from None
    if not 0 <= exact <= 1:
        raise InputError(f"quantile must be in [0, 1], got {float(exact):g}")
    simple = exact.limit_denominator(10_000)
    if isinstance(q, Fraction) or float(simple) != float(q):
        return exact
    return simple
