"""The joint weights of all hypotheses of one connected honest set, summed row by row.

The sum runs over the product of the nodes' hypotheses, all rows at once. Rows that leave the same nodes inside at
t = 0 share one conditional Gaussian, and those that leave as many inside are integrated together. The probability of
such a box is closed for one interval (two on a bipartite set, where the last is tied to the others), by Gauss–Legendre
quadrature for up to three more (error below 1e-6; 1e-4 on a bipartite set, whose integrand has corners), and beyond by
a lattice of points, shifted at random, several times for an error bar. See `sealed.py` for the weights themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from midst.errors import InputError
from midst.privacy.priors import cut_normal, log_normal_mass
from midst.types import Array, Ints

_ROWS = 40_000  # joint hypotheses that are enumerated; beyond, they are sampled
_SETS = 20_000  # sets of nodes inside at t = 0, times nodes: each needs its own conditional Gaussian
_MOST_ROWS = 3_000_000  # and where enumeration was asked for
_QUADRATURE = {0: 1, 1: 96, 2: 32, 3: 14}  # points a dimension
_FEW = 8  # points of the first pass
_DEEP = 23.0  # rows e^−23 ≈ 1e-10 below the heaviest are left at what they weigh at most
_AT_FIRST = 256  # rows that are weighed before it is asked whether others may matter
_WORK = 50_000  # rows times points of the others, at most
_ERROR = 2e-3  # of a probability: no more points than make it this small
_DIGITS = 60  # iterations after which a root is exact
_NUMBERS = 30_000  # in an array at a time, which stays in the cache
_LOG_2PI = math.log(2 * math.pi)


# of a number of dimensions: points, shape (repeats, points, dimensions), and logs of their weights
Quadrature = Callable[[int], tuple[Array, Array]]


@dataclass(frozen=True, eq=False, repr=False)
class Component:
    """One connected honest set: a list entry a node, an array entry a hypothesis.

    Attributes:
        u: U_i of each hypothesis; NaN for the node that is `held`.
        low: least U_i + V_i.
        high: greatest; the same for a point.
        log_weight: the factor of the node alone.
        kept: which of the node's hypotheses these are.
        held: the node whose U_i is known to an interval only, and that interval; there is at most one.
        cov_u: covariance of U.
        cov_v: covariance of V.
        mean_v: mean of V.
        sides: ±1 a node if the set is bipartite.
        lattice: sums of U or of V over hypotheses without intervals differ by multiples of this.
        tolerance: rounding in such sums.
    """

    u: list[Array]
    low: list[Array]
    high: list[Array]
    log_weight: list[Array]
    kept: list[Ints]
    held: tuple[int, tuple[float, float]] | None
    cov_u: Array
    cov_v: Array
    mean_v: Array
    sides: Array | None
    lattice: float
    tolerance: float


@dataclass(frozen=True, eq=False, repr=False)
class Marginals:
    """The probability of each node's hypotheses: of those that are kept, one array a node.

    Where the sum was sampled, `repeats` has one matrix a node: the same with each repetition left out in turn.
    """

    probability: list[Array]
    kept: list[Ints]
    repeats: list[Array]
    sampled: bool


def is_short(component: Component) -> bool:
    """Whether the joint hypotheses can be listed, and the sets of nodes that may have been inside at t = 0."""
    sets = math.prod(len(np.unique(low < high)) for low, high in zip(component.low, component.high, strict=True))
    return math.prod(len(u) for u in component.u) <= _ROWS and sets * len(component.u) <= _SETS


def is_closed(component: Component) -> bool:
    """Whether so few nodes may have been inside at t = 0 that quadrature is exact."""
    boxes = sum(bool((low < high).any()) for low, high in zip(component.low, component.high, strict=True))
    return boxes - (component.sides is not None) <= len(_QUADRATURE)


def enumerate_hypotheses(component: Component) -> Marginals:
    """The marginals by summing over all joint hypotheses; refused if there are too many, or none fits."""
    rows, weight, split = _list(component)
    every = np.flatnonzero(split.density > -np.inf)
    weight[every] += split.log_boxes(every, _gauss)[:, 0]
    probability = marginalise(component, rows, weight)[1]
    return Marginals(probability, component.kept, [np.empty((0, len(p))) for p in probability], sampled=False)


def integrate_hypotheses(component: Component, repeats: int = 8, seed: int = 0) -> Marginals:
    """The same with boxes of many dimensions integrated over few points, several times for an error bar.

    A first pass finds the rows that matter. These get more points until the error is small, the more the fewer they
    are.
    """
    rows, weight, split = _list(component)
    shift = np.random.default_rng(seed).random((repeats, 1, max(split.low.shape[1] - 1, 0)))
    rough = _weigh_roughly(weight, split, lattice(_FEW, shift[:1]))
    matter = np.flatnonzero(rough > rough.max() - _DEEP)
    points, most = _FEW, min(1024, _WORK // max(len(matter), 1))
    while True:
        points *= 4
        fine = np.repeat(rough[:, None], repeats, axis=1)
        fine[matter] = weight[matter, None] + split.log_boxes(matter, lattice(points, shift))
        found = pool([marginalise(component, rows, each) for each in fine.T], component.kept)
        if 4 * points > most or _error(found) < _ERROR:
            return found


def _weigh_roughly(weight: Array, split: SplitV, rule: Quadrature) -> Array:
    """Weights by few points; where a row cannot matter even if its intervals were certain, as if they were."""
    rough, order = weight.copy(), np.argsort(-weight, kind="stable")
    done, heaviest = 0, -np.inf
    while done < len(order) and weight[order[done]] > heaviest - _DEEP:
        some = order[done : max(2 * done, _AT_FIRST)]
        some = some[weight[some] > -np.inf]
        rough[some] += split.log_boxes(some, rule)[:, 0]
        done, heaviest = max(2 * done, _AT_FIRST), max(heaviest, float(rough[some].max()))
    return rough


def _error(found: Marginals) -> float:
    """The largest standard error of a probability."""
    count = len(found.repeats[0])
    return max(float(np.sqrt((count - 1) * each.var(axis=0).max())) for each in found.repeats)


def pool(found: list[tuple[float, list[Array]]], kept: list[Ints]) -> Marginals:
    """Marginals from repetitions whose unnormalised sums are unbiased: the sums are added up, and left out in turn."""
    logs = np.array([log_sum for log_sum, _ in found])
    if not np.isfinite(logs).any():
        raise inconsistent()
    share = np.exp(logs - logs.max())
    probability, left_out = [], []
    for k in range(len(kept)):
        sums = np.array([marginals[k] for _, marginals in found]) * share[:, None]
        total = sums.sum(axis=0)
        probability.append(total / total.sum())
        without = np.maximum(total - sums, 0.0)
        left_out.append(without / np.maximum(without.sum(axis=1, keepdims=True), np.finfo(float).tiny))
    return Marginals(probability, kept, left_out, sampled=True)


def _list(component: Component) -> tuple[Ints, Array, SplitV]:
    """All joint hypotheses that keep Σ U = 0, as rows; the logarithm of their weight but for the intervals of V; V."""
    sizes = [len(u) for u in component.u]
    if math.prod(sizes) > _MOST_ROWS:
        raise InputError("too many joint hypotheses to enumerate; use method auto or sampled")
    # row r is the r-th joint hypothesis: column k says which of node k's own it takes
    rows = np.column_stack(np.unravel_index(np.arange(math.prod(sizes)), sizes))
    u = _take(component.u, rows)
    if component.held:
        node, (low, high) = component.held
        # what the others leave of Σ U = 0
        u[:, node] = 0.0
        u[:, node] = -u.sum(axis=1)
        fits = (u[:, node] > low - component.tolerance) & (u[:, node] < high + component.tolerance)
    else:
        fits = np.abs(u.sum(axis=1)) < component.tolerance
    if not fits.any():
        raise inconsistent()
    rows, u = rows[fits], u[fits]
    weight = _take(component.log_weight, rows).sum(axis=1)
    # Cov U is singular along (1, …, 1) and u has no part there, so the pseudo-inverse is the exponent on the
    # hyperplane; its determinant is common to all rows and left out
    weight -= 0.5 * np.einsum("ri,ij,rj->r", u, np.linalg.pinv(component.cov_u, hermitian=True), u)
    split = split_v(component, _take(component.low, rows) - u, _take(component.high, rows) - u)
    return rows, weight + split.density, split


def marginalise(component: Component, rows: NDArray[Any], weight: Array) -> tuple[float, list[Array]]:
    """The logarithm of the sum of the weights, and every node's marginals."""
    if not (weight > -np.inf).any():
        raise inconsistent()
    total = float(logsumexp(weight))
    share = np.exp(weight - total)
    sizes = [len(u) for u in component.u]
    return total, [np.asarray(np.bincount(rows[:, k], share, n), np.float64) for k, n in enumerate(sizes)]


def inconsistent() -> InputError:
    """No joint hypothesis fits."""
    return InputError("no hypothesis fits the messages of this trace; was it made by this iteration?")


@dataclass(frozen=True, eq=False, repr=False)
class SplitV:
    """What was observed of V, row by row: points, of which there is a density, and intervals that are to be integrated.

    Attributes:
        density: of the points, in logarithms.
        count: how many intervals there are.
        low: where they begin, from where V is expected given the points; the first `count` columns.
        high: where they end.
        which: the conditional Gaussian of the row.
        factors: V = expected + factor · e, e standard normal, a triangular matrix for each Gaussian.
        tied: whether the set is bipartite, and the last V of a row a function of the others.
    """

    density: Array
    count: Ints
    low: Array
    high: Array
    which: Ints
    factors: Array
    tied: bool

    def log_boxes(self, rows: Ints, rule: Quadrature) -> Array:
        """The probability of the intervals of some rows given their points, in logarithms, (rows, repeats)."""
        repeats = len(rule(0)[0])
        found = np.zeros((len(rows), repeats))
        for count in np.unique(self.count[rows]).tolist():
            places = np.flatnonzero(self.count[rows] == count)
            if count == 0:
                continue
            step = max(1, _NUMBERS // (repeats * rule(count - 1 - self.tied)[0].shape[1] if count > self.tied else 1))
            for start in range(0, len(places), step):
                some = places[start : start + step]
                at = rows[some]
                factor = self.factors[self.which[at], :count, :count]
                ends = self.low[at, :count], self.high[at, :count]
                found[some] = log_box_probability(factor, *ends, self.tied, rule)
        return found


def split_v(component: Component, low: Array, high: Array) -> SplitV:
    """What is known of V given each row's hypotheses, V between `low` and `high`."""
    cov, mean, sides = component.cov_v, component.mean_v, component.sides
    inside = low < high
    count = inside.sum(axis=1)
    density = np.full(len(low), -np.inf)
    if sides is not None and (count == 0).any():
        fits = (count == 0) & (np.abs(low @ sides) < component.tolerance)
        if fits.any():  # an alternating sum that fits is no accident: nobody was inside at t = 0
            v = low[fits] - mean
            density[fits] = -0.5 * np.einsum("ri,ij,rj->r", v, np.linalg.pinv(cov, hermitian=True), v)
            none = np.zeros((len(low), 0))
            return SplitV(density, np.zeros_like(count), none, none, np.zeros_like(count), np.zeros((1, 0, 0)), True)
    _, first, which = np.unique(np.packbits(inside, axis=1), axis=0, return_index=True, return_inverse=True)
    which, most = which.reshape(-1), int(count.max())
    begin, end = np.zeros((len(low), most)), np.zeros((len(low), most))
    factors = np.zeros((len(first), most, most))
    by_pattern = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    for index, rows in enumerate(by_pattern):
        # points before intervals: the factor of the whole is that of the points, what they say, and that of the rest
        points, boxes = np.flatnonzero(~inside[first[index]]), np.flatnonzero(inside[first[index]])
        if sides is not None and not len(boxes):
            continue
        at = np.concatenate([points, boxes])
        factor, known = triangular(cov[np.ix_(at, at)]), len(points)
        e = np.linalg.solve(factor[:known, :known], (low[np.ix_(rows, points)] - mean[points]).T)
        density[rows] = -0.5 * (e**2).sum(axis=0) - np.log(np.diag(factor)[:known]).sum() - 0.5 * known * _LOG_2PI
        centre = mean[boxes] + (factor[known:, :known] @ e).T
        begin[rows, : len(boxes)] = low[np.ix_(rows, boxes)] - centre
        end[rows, : len(boxes)] = high[np.ix_(rows, boxes)] - centre
        factors[index, : len(boxes), : len(boxes)] = factor[known:, known:]
    return SplitV(density, count, begin, end, which, factors, sides is not None)


def log_box_probability(factor: Array, low: Array, high: Array, tied: bool, rule: Quadrature) -> Array:
    """Log P(low < factor · e < high), e standard normal, one row a case, by separation of variables (Genz).

    With a triangular factor, shape (rows, k, k), e_1 is integrated over its interval, e_2 given e_1 over its own, and
    so on, by the rule; the last integral is closed. If tied, the last entry is a function of the others, and the last
    two intervals bound one variable. There are as many columns as the rule has repeats.
    """
    k = low.shape[1]
    if tied and k == 1:
        repeats = len(rule(0)[0])
        return np.repeat(np.where((low < 0) & (high > 0), 0.0, -np.inf), repeats, axis=1)
    free = k - 1 if tied else k
    places, log_share = rule(free - 1)
    repeats, points = places.shape[:2]
    shift = np.zeros((k, len(low), 1))  # of the entries from j on, by the e before
    total = np.zeros((len(low), 1))
    for j in range(free):
        a, b = ((end[:, j, None] - shift[0]) / factor[:, j, j, None] for end in (low, high))
        if j < free - 1:
            mass, e = cut_normal(a, b, places[:, :, j].reshape(-1))
            shift = shift[1:] + factor[:, j + 1 :, j].T[:, :, None] * e
        else:
            if tied:
                ends = [(end[:, free, None] - shift[1]) / factor[:, free, j, None] for end in (low, high)]
                a, b = np.maximum(a, np.minimum(*ends)), np.minimum(b, np.maximum(*ends))
            mass = log_normal_mass(a, b)
        total = total + mass
    total = np.broadcast_to(total, (len(low), repeats * points)).reshape(len(low), repeats, points) + log_share
    return np.asarray(logsumexp(total, axis=2))


def triangular(cov: Array) -> Array:
    """A Cholesky factor whose last pivot may be zero."""
    factor = np.zeros_like(cov)
    factor[:-1, :-1] = np.linalg.cholesky(cov[:-1, :-1])
    factor[-1, :-1] = np.linalg.solve(factor[:-1, :-1], cov[-1, :-1])
    factor[-1, -1] = np.sqrt(max(cov[-1, -1] - factor[-1, :-1] @ factor[-1, :-1], 0.0))
    return factor


def _gauss(dimensions: int) -> tuple[Array, Array]:
    """Quadrature in the unit cube and the logarithms of their weights, by Gauss and Legendre."""
    if dimensions not in _QUADRATURE:
        raise InputError("too many nodes may have been inside at t = 0 to enumerate; use method auto or sampled")
    if dimensions == 0:
        return np.zeros((1, 1, 0)), np.zeros(1)
    points, weights = np.polynomial.legendre.leggauss(_QUADRATURE[dimensions])
    axes = np.meshgrid(*[(points + 1) / 2] * dimensions, indexing="ij")
    shares = np.meshgrid(*[np.log(weights / 2)] * dimensions, indexing="ij")
    return np.column_stack([axis.reshape(-1) for axis in axes])[None], np.sum(shares, axis=0).reshape(-1)


def lattice(points: int, shift: Array) -> Quadrature:
    """Multiples of a vector of irrational numbers, modulo 1, moved by each of some random shifts.

    On average over shifts every integral is right.
    """

    def rule(dimensions: int) -> tuple[Array, Array]:
        root = 1.0
        # root^(d + 1) = root + 1, the golden ratio's in d dimensions: its powers spread evenly
        for _ in range(_DIGITS):
            root = (1.0 + root) ** (1.0 / (dimensions + 1))
        cube = (np.outer(np.arange(points), root ** -np.arange(1.0, dimensions + 1)) + shift[:, :, :dimensions]) % 1.0
        # folded, so that nothing jumps where the cube ends
        cube = 1.0 - np.abs(2.0 * cube - 1.0)
        return np.clip(cube, 1e-12, 1 - 1e-12), np.full(points, -math.log(points))

    return rule


def _take(columns: list[Array], rows: Ints) -> Array:
    return np.column_stack([column[rows[:, k]] for k, column in enumerate(columns)])
