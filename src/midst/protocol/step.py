"""The step: the paper's mathematics, cut at the message.

Rules:
- `next_x` before a node sends, `next_z` after it has received; `next_sums` is the same two lines added up over a node's
  edges. Nothing else in midst computes an x or a z, but for an objective of somebody's own (`own_x`).
- No graph, no randomness, no I/O. Numbers are floats, or arrays of any shape that broadcast, so one node, all nodes,
  many runs at once and a GPU use the same lines. S says which: where it is a float all are; where it is an array,
  NumPy's or one that names its own library (JAX's), that library's functions are used. `Array` stands for all of these;
  theta is a float.
- Whoever calls has made sure that every number is finite: a NaN makes every comparison false, and the paper's
  "otherwise" branch would then send s_i itself.

| letter | meaning                                                              | paper                    |
|--------|----------------------------------------------------------------------|--------------------------|
| x      | what node i broadcasts, x_i(t)                                       | eq. (x update)           |
| z      | z_{i|j}, the auxiliary variable of i's end of edge (i, j)            | eq. (z update)           |
| mirror | z_{j|i}, the other end's; both ends keep both, so only x travels     |                          |
| A      | A_ij = 1 for i < j, else −1: the sign of i's end                     | problem formulation      |
| S      | S_i = Σ_j A_ij z_{i|j}                                               | inside eq. (x update)    |
| R      | R_i = Σ_j A_ji z_{j|i}, the same sum over the mirrors                |                          |
| a      | a_i = Σ_j x_j, the neighbour sum                                     |                          |
| s      | the private value                                                    | s_i                      |
| c      | convergence parameter; its unit is 1/data for the median             | c                        |
| theta  | averaging constant                                                   | θ                        |
| cd     | c times the degree d_i                                               | c d_i                    |

The local objective of every kind midst knows is a pinball plus a parabola,

    f_i(x) = left·max(s − x, 0) + right·max(x − s, 0) + ½·curvature·(x − s)²

(median: left = right = 1, curvature = 0; mean: left = right = 0, curvature = 1). Its minimiser under the penalty
S·x + ½·cd·x² is s clipped to an interval [low, high] that does not depend on which branch it takes:

    low  = (curvature·s − right − S) / (curvature + cd)
    high = (curvature·s + left  − S) / (curvature + cd)

which for the median is the paper's three-way x update, word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from midst.errors import InputError
from midst.objectives import OwnObjective
from midst.types import Array, Branch

UNKNOWN = 2  # the branch of an x of which nobody has worked out what it tells


@dataclass(frozen=True, eq=False, repr=False)
class Terms:
    """A node's (or all nodes') local objective, brought to the form the step wants.

    Attributes:
        s: the private value.
        above: curvature·s − right, the numerator of `low` without S.
        below: curvature·s + left, the numerator of `high` without S.
        weight: curvature + c·d, the denominator.
        cd: c·d.
        smooth: whether f has no kink at s (the mean), so that x tells s to whoever knows S.
    """

    s: Array
    above: Array
    below: Array
    weight: Array
    cd: Array
    smooth: bool = False

    def __getitem__(self, index: Any) -> Terms:
        """The terms of some of the nodes."""
        s, above, below = self.s[index], self.above[index], self.below[index]
        return Terms(s, above, below, self.weight[index], self.cd[index], self.smooth)


def make_terms(slopes: Iterable[Array], s: Array, cd: Array, smooth: bool) -> Terms:
    """The terms of an f with these slopes, left and right, and curvature at s; of one node, or of all."""
    left, right, curvature = slopes
    if not np.any(curvature):  # the same for all runs and coordinates of a node
        return Terms(s, -right, left, cd, cd, smooth)
    return Terms(s, curvature * s - right, curvature * s + left, curvature + cd, cd, smooth)


@dataclass(frozen=True, eq=False, repr=False)
class OwnTerms:
    """The same for an objective of somebody's own: what its functions are asked about.

    Attributes:
        objective: whose minimiser is x.
        s: what a node holds; see `OwnObjective`.
        w: its weight.
        cd: c·d.
    """

    objective: OwnObjective
    s: Array
    w: Array
    cd: Array

    def __getitem__(self, index: Any) -> OwnTerms:
        """The terms of some of the nodes."""
        return OwnTerms(self.objective, self.s[index], self.w[index], self.cd[index])


def next_x(S: Array, terms: Terms) -> tuple[Array, Branch]:
    """The x update: x_i(t) = clip(s_i, low, high).

    Args:
        S: the sum S_i(t).
        terms: the local objective.

    Returns:
        x, and the branch taken: −1 where x < s, +1 where x > s, 0 where s is inside [low, high] and x = s is about to
        be sent. Theorem 1 is about that 0; it is decided by the interval, never by comparing x with s. A smooth
        objective is on branch 0 throughout: its x always tells s to whoever knows S.
    """
    low = (terms.above - S) / terms.weight
    high = (terms.below - S) / terms.weight
    if isinstance(S, float):  # the same, for one number
        return min(max(terms.s, low), high), 0 if terms.smooth else int(low > terms.s) - int(high < terms.s)
    xp = np if isinstance(S, np.ndarray) else S.__array_namespace__()
    x = xp.minimum(xp.maximum(terms.s, low), high)
    if terms.smooth:
        return x, xp.zeros(xp.shape(x), np.int8)
    return x, xp.greater(low, terms.s).astype(np.int8) - xp.less(high, terms.s).astype(np.int8)


def own_x(S: Array, terms: OwnTerms) -> tuple[Array, Branch]:
    """The x update of an objective of somebody's own: its minimiser, looked at before it is sent.

    Returns:
        x, and the branch: as `next_x` has it, or `UNKNOWN`.

    Raises:
        InputError: its minimiser is not finite, or of another shape.
    """
    found, told = terms.objective.minimise(terms.s, terms.w, S, terms.cd)
    x = np.asarray(found, np.float64)
    if x.shape != np.shape(S) or not np.isfinite(x).all():
        raise InputError(f"{terms.objective.name}: its minimiser must be one finite number for every S")
    branch = np.broadcast_to(np.asarray(UNKNOWN if told is None else told, np.int8), x.shape)
    return (x, branch) if x.ndim else (float(x), int(branch))  # type: ignore[return-value]


def x_update(terms: Terms | OwnTerms) -> Callable[[Array, Any], tuple[Array, Branch]]:
    """The x update that goes with these terms, chosen once for a whole run."""
    return own_x if isinstance(terms, OwnTerms) else next_x


def next_z(z: Array, mirror: Array, A: Array | int, x: Array, c: Array, theta: float) -> Array:
    """The z update of one end of an edge: (1 − θ)·z + θ·(mirror + 2cA·x).

    Args:
        z: z_{i|j}(t).
        mirror: z_{j|i}(t), the other end's.
        A: the sign A_ji of the other end.
        x: x_j(t), received from the other end.
        c: the convergence parameter.
        theta: the averaging constant.

    Returns:
        z_{i|j}(t+1). With the roles exchanged the same line gives the mirror.
    """
    return (1.0 - theta) * z + theta * (mirror + 2.0 * c * A * x)


def next_sums(S: Array, R: Array, x: Array, a: Array, cd: Array, c: Array, theta: float) -> tuple[Array, Array]:
    """`next_z` added up over the edges of each node: the node form, which keeps no number on an edge.

    Multiply z update by A_ij and use A_ij = −A_ji, A_ij² = 1: with ζ_ij = A_ij z_{i|j} it reads
    ζ_ij(t+1) = (1 − θ) ζ_ij − θ ζ_ji − 2cθ x_j, in which no sign is left. Summed over j, once as it stands and once
    with i and j exchanged:

        S_i(t+1) = (1 − θ) S_i − θ R_i − 2θ c a_i
        R_i(t+1) = (1 − θ) R_i − θ S_i − 2θ c d_i x_i

    Args:
        S: Σ_j A_ij z_{i|j}(t).
        R: Σ_j A_ji z_{j|i}(t).
        x: x_i(t).
        a: Σ_j x_j(t) over the neighbours.
        cd: c·d_i.
        c: the convergence parameter.
        theta: the averaging constant.

    Returns:
        S(t+1) and R(t+1).
    """
    keep = 1.0 - theta
    step = 2.0 * theta
    return keep * S - theta * R - (step * c) * a, keep * R - theta * S - step * cd * x
