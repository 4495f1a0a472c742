"""The joint weights of all hypotheses of one connected honest set, summed row by row.

The sum runs over the product of the nodes' hypotheses, all rows at once. Rows that leave the same nodes inside at
t = 0 share one conditional Gaussian; the probability of its box is closed for one interval (two on a bipartite set,
where the last is tied to the others), by Gauss–Legendre quadrature for up to three more (error below 1e-6; 1e-4 on a
bipartite set, whose integrand has corners), and by randomised Sobol points, with an error bar, beyond. See `sealed.py`
for the weights themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr, logsumexp, ndtri_exp
from scipy.stats.qmc import Sobol

from midst.errors import InputError
from midst.privacy.priors import log_normal_mass
from midst.types import Array, Ints

_ROWS = 40_000  # joint hypotheses that are enumerated; beyond, they are sampled
_SETS = 20_000  # sets of nodes inside at t = 0, times nodes: each needs its own conditional Gaussian
_MOST_ROWS = 3_000_000  # and where enumeration was asked for
_QUADRATURE = {0: 1, 1: 96, 2: 32, 3: 14}  # points a dimension
_FEW = 8  # Sobol points of the first pass
_DEEP = 23.0  # rows e^−23 ≈ 1e-10 below the heaviest are left at that
_WORK = 50_000  # rows times points of the others
_LOG_2PI = math.log(2 * math.pi)


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
    """The probability of each node's hypotheses.

    Attributes:
        probability: one array a node.
        kept: which hypotheses they are about.
        repeats: one matrix a node: the same with each repetition of the sampler left out in turn.
        sampled: whether there were repetitions.
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
    """The marginals by summing over all joint hypotheses.

    Raises:
        InputError: there are too many, or none fits what was observed.
    """
    rows, u, weight = _list(component)
    low, high = _take(component.low, rows) - u, _take(component.high, rows) - u
    weight = weight + _log_density_v(component, low, high, _gauss)
    probability = _marginals(component, rows, weight)[1]
    return Marginals(probability, component.kept, [np.empty((0, len(p))) for p in probability], sampled=False)


def integrate_hypotheses(component: Component, repeats: int = 8, seed: int = 0) -> Marginals:
    """The same with boxes of many dimensions integrated over scrambled Sobol points, several times for an error bar.

    A first pass with few points finds the rows that matter; those get the more points the fewer they are.

    Raises:
        InputError: as `enumerate_hypotheses`.
    """
    rows, u, weight = _list(component)
    low, high = _take(component.low, rows) - u, _take(component.high, rows) - u
    rough = weight + _log_density_v(component, low, high, _sobol(_FEW, np.random.default_rng([seed, repeats])))
    matter = np.flatnonzero(rough > rough.max() - _DEEP)
    points = int(np.clip(2 ** int(math.log2(max(_WORK / max(len(matter), 1), 1))), 2 * _FEW, 1024))
    found = []
    for k in range(repeats):
        rule = _sobol(points, np.random.default_rng([seed, k]))
        fine = rough.copy()
        fine[matter] = weight[matter] + _log_density_v(component, low[matter], high[matter], rule)
        found.append(_marginals(component, rows, fine))
    return pool(found, component.kept)


def pool(found: list[tuple[float, list[Array]]], kept: list[Ints]) -> Marginals:
    """Marginals from repetitions whose unnormalised sums are unbiased: the sums are added up, and left out in turn.

    Raises:
        InputError: no joint hypothesis was found to fit what was observed.
    """
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


def _list(component: Component) -> tuple[Ints, Array, Array]:
    """All joint hypotheses that keep Σ U = 0, as rows; their U; the logarithm of their weight but for V."""
    sizes = [len(u) for u in component.u]
    if math.prod(sizes) > _MOST_ROWS:
        raise InputError("too many joint hypotheses to enumerate; use method='auto' or 'sampled'")
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
    return rows, u, weight


def _marginals(component: Component, rows: Ints, weight: Array) -> tuple[float, list[Array]]:
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


def log_box_probability(mean: Array, cov: Array, low: Array, high: Array, tied: bool, rule: Quadrature) -> Array:
    """Log P(low < X < high) of X ~ N(mean, cov), one row a case, by separation of variables (Genz).

    With X = mean + L e, e standard normal and L triangular, e_1 is integrated over its interval, e_2 given e_1 over its
    own, and so on; the last integral is closed.

    Args:
        mean: shape (rows, k).
        cov: shape (k, k), common to all rows.
        low: shape (rows, k).
        high: likewise.
        tied: whether cov has rank k − 1 only, as on a bipartite set; the last two intervals then bound one variable.
        rule: the points and weights by which the integrals that are not closed are taken.
    """
    k = len(cov)
    if tied and k == 1:
        return np.where((low < mean) & (mean < high), 0.0, -np.inf)[:, 0]
    # tied: the last X is a function of the others, so that its interval is a second one for the last free e
    free = k - 1 if tied else k
    factor = np.zeros((k, k))
    factor[:free, :free] = np.linalg.cholesky(cov[:free, :free])
    if tied:
        factor[free, :free] = np.linalg.solve(factor[:free, :free], cov[free, :free])
    probabilities, log_share = rule(free - 1)
    e = np.zeros((len(mean), len(log_share), free))
    total = np.broadcast_to(log_share, e.shape[:2]).copy()
    low, high = (np.asarray(end - mean)[:, None, :] for end in (low, high))
    for j in range(free):
        shift = e[:, :, :j] @ factor[j, :j]
        a, b = ((end[:, :, j] - shift) / factor[j, j] for end in (low, high))
        if j == free - 1 and tied:
            shift = e[:, :, :j] @ factor[free, :j]
            ends = [(end[:, :, free] - shift) / factor[free, j] for end in (low, high)]
            a, b = np.maximum(a, np.minimum(*ends)), np.minimum(b, np.maximum(*ends))
        total += log_normal_mass(a, b)
        if j < free - 1:
            e[:, :, j] = truncated_normal(a, b, probabilities[:, j])
    return np.asarray(logsumexp(total, axis=1))


def truncated_normal(a: Array, b: Array, probability: Array) -> Array:
    """The point below which a share `probability` of the standard normal cut to (a, b) lies."""
    # in the upper tail Φ is 1 but for digits that are lost; its mirror image lies in the lower tail, where log Φ has
    # them all
    flip = a > 0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    probability = np.where(flip, 1 - probability, probability)
    with np.errstate(divide="ignore"):
        point = ndtri_exp(np.logaddexp(log_ndtr(low) + np.log1p(-probability), log_ndtr(high) + np.log(probability)))
    point = np.clip(np.where(np.isnan(point), low, point), low, high)
    return np.asarray(np.where(flip, -point, point))


def _log_density_v(component: Component, low: Array, high: Array, rule: Quadrature) -> Array:
    """Density of the points of V times the probability of its intervals given them, in logarithms, row by row."""
    cov, mean, sides = component.cov_v, component.mean_v, component.sides
    inside = low < high
    weight = np.full(len(low), -np.inf)
    none_inside = ~inside.any(axis=1)
    if sides is not None and none_inside.any():
        fits = none_inside & (np.abs(low @ sides) < component.tolerance)
        if fits.any():  # an alternating sum that fits is no accident: nobody was inside at t = 0
            v = low[fits] - mean
            weight[fits] = -0.5 * np.einsum("ri,ij,rj->r", v, np.linalg.pinv(cov, hermitian=True), v)
            return weight
    # one factorisation for all rows that leave the same nodes inside
    patterns, which = np.unique(inside, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        if sides is not None and not pattern.any():
            continue
        rows = np.flatnonzero(which.reshape(-1) == index)
        points, boxes = np.flatnonzero(~pattern), np.flatnonzero(pattern)
        v = low[np.ix_(rows, points)] - mean[points]
        centre = np.broadcast_to(mean[boxes], (len(rows), len(boxes)))
        rest = cov[np.ix_(boxes, boxes)]
        weight[rows] = 0.0
        if len(points):
            solver = cho_factor(cov[np.ix_(points, points)], lower=True)
            log_det = 2 * np.log(np.diag(solver[0])).sum()
            weight[rows] = -0.5 * ((v.T * cho_solve(solver, v.T)).sum(axis=0) + log_det + len(points) * _LOG_2PI)
            gain = cho_solve(solver, cov[np.ix_(points, boxes)])
            centre = centre + v @ gain
            rest = rest - cov[np.ix_(boxes, points)] @ gain
        if len(boxes):
            ends = (low[np.ix_(rows, boxes)], high[np.ix_(rows, boxes)])
            weight[rows] += log_box_probability(centre, rest, *ends, sides is not None, rule)
    return weight


def _gauss(dimensions: int) -> tuple[Array, Array]:
    """Quadrature in the unit cube and the logarithms of their weights, by Gauss and Legendre."""
    if dimensions not in _QUADRATURE:
        raise InputError("too many nodes may have been inside at t = 0 to enumerate; use method='auto' or 'sampled'")
    if dimensions == 0:
        return np.zeros((1, 0)), np.zeros(1)
    points, weights = np.polynomial.legendre.leggauss(_QUADRATURE[dimensions])
    axes = np.meshgrid(*[(points + 1) / 2] * dimensions, indexing="ij")
    shares = np.meshgrid(*[np.log(weights / 2)] * dimensions, indexing="ij")
    return np.column_stack([axis.reshape(-1) for axis in axes]), np.sum(shares, axis=0).reshape(-1)


def _sobol(points: int, rng: np.random.Generator) -> Quadrature:
    """Scrambled Sobol points, with which every integral is right on average."""

    @cache
    def rule(dimensions: int) -> tuple[Array, Array]:
        if dimensions <= 1:
            return _gauss(dimensions)
        cube = Sobol(dimensions, rng=rng.spawn(1)[0]).random(points)
        return np.clip(cube, 1e-12, 1 - 1e-12), np.full(points, -math.log(points))

    return rule


def _take(columns: list[Array], rows: Ints) -> Array:
    return np.column_stack([column[rows[:, k]] for k, column in enumerate(columns)])
