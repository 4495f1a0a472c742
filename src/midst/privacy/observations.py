"""What is visible of one node, by how much of its z the adversary knows.

| observation | when                                       | what is visible                                      |
|-------------|--------------------------------------------|------------------------------------------------------|
| `Branches`  | z(0) heard, or all neighbours corrupt      | every branch, hence bounds or the value              |
| `Shifted`   | x heard, z(0) sealed between honest nodes  | g_i(t) up to a constant for t ≥ 1, another for t = 0 |
| `Heard`     | a neighbour is corrupt, nothing else heard | x_i, so plateaus                                     |
| `Unseen`    | none of these                              | nothing                                              |

A node of weight 0 sends nothing that depends on its value: its branch, though in the trace, is in no observation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from midst.graphs import Graph
from midst.graphs.neighbour_sums import sum_over_neighbours
from midst.protocol.step import next_sums
from midst.types import Array, Bools, Ints

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Public:
    """What everybody knows: the graph, the objective, the parameters of one coordinate.

    Attributes:
        graph: who talks to whom.
        title: what was sought, in words.
        unique: whether exactly one value is the answer, so that its holder ends inside.
        left: slope of f_i left of s_i (the median: 1), one a node.
        right: slope right of it.
        curvature: 0 for quantiles. Like both slopes, no number where the objective is somebody's own.
        whole_weights: weights, in units.
        unit: the lattice of weights: every 2·w_i = left + right is a multiple of 2·unit.
        c: convergence parameter.
        theta: averaging constant.
        mu: A_ij z_{i|j}(0) has mean μ
        sigma: and standard deviation σ.
        iterations: how many were run.
    """

    graph: Graph
    title: str
    unique: bool
    left: Array
    right: Array
    curvature: Array
    whole_weights: Ints
    unit: float
    c: float
    theta: float
    mu: float
    sigma: float
    iterations: int

    @property
    def cd(self) -> Array:
        """c·d_i."""
        return np.asarray(self.c * self.graph.degree)


@dataclass(frozen=True, repr=False)
class Branches:
    """A node whose every branch is visible.

    Attributes:
        node: which.
        last: the x it sent last.
        lower: the greatest x it sent below s; −inf if none.
        upper: the least x it sent above s; inf if none.
        value: s itself, if it was ever inside.
        inside: the iterations in which it was, as (start, stop).
    """

    node: int
    last: float
    lower: float = -math.inf
    upper: float = math.inf
    value: float | None = None
    inside: Spans = ()

    @property
    def ends(self) -> tuple[float, float]:
        """Between which numbers the value lies; the value twice where it is known."""
        return (self.lower, self.upper) if self.value is None else (self.value, self.value)


@dataclass(frozen=True, repr=False)
class Shifted:
    """A node whose subgradient is visible up to constants: g_i(t) = q_i(t) − U_i, t ≥ 1, g_i(0) = q_i(0) − U_i − V_i.

    Attributes:
        node: which.
        first: x_i(0).
        last: the x it sent last.
        q0: q_i(0).
        q1: q_i(1).
        low: the least x_i(t) over t ≥ 1.
        high: the greatest.
        shift: U_i, where a change of q tells it.
        lower: where U_i is told, the greatest x_i(t), t ≥ 1, below s.
        upper: where U_i is told, the least x_i(t), t ≥ 1, above s.
        value: s, if the node is seen to be inside at some t ≥ 1.
        held: if it is inside at every t ≥ 1, the interval in which U_i must lie.
        inside: the iterations t ≥ 1 in which it is seen to be inside.
    """

    node: int
    first: float
    last: float
    q0: float
    q1: float
    low: float
    high: float
    shift: float | None = None
    lower: float = -math.inf
    upper: float = math.inf
    value: float | None = None
    held: tuple[float, float] | None = None
    inside: Spans = ()

    @classmethod
    def of(cls, node: int, x: Array, q: Array) -> Shifted:
        """What x and q of a node show at once, whatever its branches were."""
        later = x[1:]
        return cls(node, float(x[0]), float(x[-1]), float(q[0]), float(q[1]), float(later.min()), float(later.max()))


@dataclass(frozen=True, repr=False)
class Heard:
    """A node of which x is heard and no z is known: staying inside for two iterations shows as a plateau."""

    node: int
    last: float
    value: float | None = None
    inside: Spans = ()


@dataclass(frozen=True, repr=False)
class Unseen:
    """A node of which nothing is heard."""

    node: int


Observation = Branches | Shifted | Heard | Unseen


def bounds_of(x: Array, above: Bools, below: Bools) -> tuple[float, float]:
    """The greatest of the messages from below the value, and the least of those from above it."""
    return float(x[below].max(initial=-math.inf)), float(x[above].min(initial=math.inf))


def value_inside(x: Array, inside: Bools) -> float | None:
    """The value, which every message from inside is."""
    return float(x[inside][0]) if inside.any() else None


def spans_of(inside: Bools, start: int = 0) -> Spans:
    """The iterations inside, as (start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8))) + start
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def shifted_subgradients(public: Public, x: Array, S: Array, R: Array) -> Array:
    """q_i(t) = −S_i(t) − c d_i x_i(t), with S from the public recursion over the messages.

    Started from the true sums S(0) and R(0) this is the subgradient g_i(t) itself. Started from those of their terms
    that an adversary knows, θ = ½, it is g_i(t) plus what the unknown terms ζ_ij = A_ij z_{i|j}(0) contribute: Σ_j
    ζ_ij at t = 0, and from t = 1 on the constant U_i = Σ_j ½(ζ_ij − ζ_ji).

    S is Σ_j ζ_ij over the known terms, R is Σ_j ζ_ji. Messages, shape (t, n), are NaN of nodes that are not heard; the
    neighbours of these then have no q but the first.
    """
    cd = public.cd
    neighbour_sum = sum_over_neighbours(public.graph)
    c = np.array(public.c)
    q = np.empty_like(x)
    unheard = np.isnan(x[0])
    deaf = neighbour_sum(unheard.astype(np.float64)) > 0  # to a neighbour, so that there is no S after the first
    heard = np.where(unheard, 0.0, x)
    sums = np.ascontiguousarray(neighbour_sum(heard.T).T)
    for now, a, after in zip(heard, sums, q, strict=True):
        after[:] = S
        S, R = next_sums(S, R, now, a, cd, c, public.theta)
    q = -q - cd * heard
    q[:, unheard] = np.nan
    q[1:, deaf] = np.nan
    return q
