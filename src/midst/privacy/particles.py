"""The joint weights of `sealed.py`, sampled: for sets with too many joint hypotheses to enumerate.

Nodes are taken one by one, those that cannot have been inside at t = 0 first. A particle is a joint hypothesis about
the nodes so far, with the V of nodes inside at t = 0 drawn from its conditional normal cut to the interval (weighed by
that interval's probability, as Geweke, Hajivassiliou and Keane do); its weight is the density of the U and V so far.
Every particle is continued by every hypothesis of the next node. Where that makes too many, they are thinned without
bias (Fearnhead and Clifford: the heavy are kept as they are, of the light some are drawn and all given one weight).

Constraints: a node with U known to an interval only goes last, where Σ U = 0 determines U. On a bipartite set the
first node of a particle that is inside at t = 0 has its V left open until Σ ε V = 0 determines it at the end; the
others' covariance without it is not singular.

The error bar comes from independent repetitions: their estimates of the unnormalised sums are unbiased and are added
up; the ratio's error is had by leaving out each in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from midst.privacy.enumeration import Component, Marginals, marginalise, pool, triangular
from midst.privacy.priors import cut_normal
from midst.types import Array, Bools, Ints

_PARTICLES = 4_000
_REPEATS = 12
_DROP = 46.0  # a particle e^−46 ≈ 1e-20 below the heaviest is dropped
_LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


def sample_hypotheses(
    component: Component, particles: int = _PARTICLES, repeats: int = _REPEATS, seed: int = 0
) -> Marginals:
    """The marginals, with what they are when each repetition is left out; refused if no hypothesis fits."""
    sweep = _Sweep(component)
    return pool([sweep(np.random.default_rng([seed, k]), particles) for k in range(repeats)], component.kept)


@dataclass(frozen=True, eq=False, repr=False)
class _Particles:
    """Joint hypotheses about the nodes so far, one a row.

    Attributes:
        weight: logarithms.
        chosen: the hypothesis of each node.
        eu: U so far, standardised: U = factor · eu.
        ev: V − μh so far, likewise.
        sum_u: Σ U so far.
        sum_v: Σ ε (V − μh) so far, without the one left open.
        opened: the place of the node whose V is left open; −1 if none is.
        low: the least that V − μh may be there.
        high: the greatest.
    """

    weight: Array
    chosen: NDArray[np.int16]
    eu: Array
    ev: Array
    sum_u: Array
    sum_v: Array
    opened: Ints
    low: Array
    high: Array


class _Sweep:
    """One pass over the nodes."""

    def __init__(self, component: Component) -> None:
        self._c = component
        count = len(component.u)
        boxes = [float(np.mean(low < high)) for low, high in zip(component.low, component.high, strict=True)]
        held = component.held[0] if component.held else -1
        # points before intervals, which are then drawn given more; the node whose U is determined goes last
        self._order = sorted(range(count), key=lambda k: (k == held, boxes[k]))
        at = np.ix_(self._order, self._order)
        self._cov_v = component.cov_v[at]
        self._factor_u = triangular(component.cov_u[at])
        self._factors_v: dict[int, Array] = {}
        self._sides = None if component.sides is None else component.sides[self._order]
        reach = [(float(u.min()), float(u.max())) for u in component.u]
        if component.held:
            reach[component.held[0]] = component.held[1]
        ordered = np.array([reach[k] for k in self._order])
        self._rest = np.vstack([np.cumsum(ordered[::-1], axis=0)[::-1][1:], [[0.0, 0.0]]])  # of the nodes to come
        self._open = self._sides is not None and not self._nobody_inside()

    def __call__(self, rng: np.random.Generator, most: int) -> tuple[float, list[Array]]:
        """One estimate: the logarithm of the sum of weights, and each node's marginals."""
        zero, none = np.zeros(1), np.zeros((1, len(self._order)))
        now = _Particles(zero, none.astype(np.int16), none, none, zero, zero, np.full(1, -1), zero, zero)
        for i in range(len(self._order)):
            now = self._advance(i, now, rng, most)
            if not len(now.weight):
                return -np.inf, [np.zeros(len(u)) for u in self._c.u]
        weight = now.weight
        if self._open and self._sides is not None:
            value = -self._sides[now.opened] * now.sum_v
            fits = (now.opened >= 0) & (now.low < value) & (value < now.high)
            weight = np.where(fits, weight, -np.inf)
        if not np.isfinite(weight).any():
            return -np.inf, [np.zeros(len(u)) for u in self._c.u]
        chosen = np.empty_like(now.chosen)
        chosen[:, self._order] = now.chosen
        return marginalise(self._c, chosen, weight)

    def _advance(self, i: int, now: _Particles, rng: np.random.Generator, most: int) -> _Particles:
        """Every particle continued by every hypothesis of the next node, and thinned."""
        c, node = self._c, self._order[i]
        parent, option = (part.reshape(-1) for part in np.indices((len(now.weight), len(c.u[node]))))
        # while there is room, several draws of a V that is drawn
        copies = np.where(c.low[node] < c.high[node], max(1, most // len(parent)), 1)[option]
        parent, option, weight = (np.repeat(part, copies) for part in (parent, option, -np.log(copies)))
        # every copy has its share of the weight, so that sums over particles keep their mean
        weight += now.weight[parent] + c.log_weight[node][option]

        u, eu, gain = self._place_u(i, now, parent, c.u[node][option])
        weight += gain
        # low and high bound U + V; from here on, V without its mean
        shift = u + c.mean_v[node]
        low, high = c.low[node][option] - shift, c.high[node][option] - shift
        v, ev, opens, gain = self._place_v(i, now, parent, low, high, rng)
        weight += gain

        # thinning is unbiased, dropping is not: only what is lost in rounding anyway is dropped
        best = weight.max()
        alive = np.flatnonzero(weight > best - _DROP) if np.isfinite(best) else np.empty(0, np.int64)
        keep, weight = _thin(alive, weight, most, rng)
        parent, opens = parent[keep], opens[keep]
        side = 0.0 if self._sides is None else self._sides[i]
        return _Particles(
            weight,
            _write(now.chosen, parent, i, option[keep]),
            _write(now.eu, parent, i, eu[keep]),
            _write(now.ev, parent, i, ev[keep]),
            now.sum_u[parent] + u[keep],
            now.sum_v[parent] + side * np.where(opens, 0.0, v[keep]),
            np.where(opens, i, now.opened[parent]),
            np.where(opens, low[keep], now.low[parent]),
            np.where(opens, high[keep], now.high[parent]),
        )

    def _place_u(self, i: int, now: _Particles, parent: Ints, point: Array) -> tuple[Array, Array, Array]:
        """U_i of each candidate, its standardised form, and what its density adds to the weight."""
        c, so_far = self._c, now.sum_u[parent]
        if i == len(self._order) - 1:
            low, high = c.held[1] if c.held else (point, point)
            fits = (-so_far > low - c.tolerance) & (-so_far < high + c.tolerance)
            return -so_far, np.zeros(len(parent)), np.where(fits, 0.0, -np.inf)
        mean = now.eu[:, :i] @ self._factor_u[i, :i]
        e = (point - mean[parent]) / self._factor_u[i, i]
        # a particle is dead as soon as the nodes to come cannot bring Σ U back to 0
        low, high = self._rest[i] + np.array([-c.tolerance, c.tolerance])
        fits = (so_far + point + low <= 0) & (so_far + point + high >= 0)
        return point, e, np.where(fits, -0.5 * e**2, -np.inf)

    def _place_v(
        self, i: int, now: _Particles, parent: Ints, low: Array, high: Array, rng: np.random.Generator
    ) -> tuple[Array, Array, Bools, Array]:
        """The same for V_i − μ h_i, which is a point, or drawn from an interval, or left open."""
        inside = low < high
        mean, pivot = np.empty(len(now.weight)), np.empty(len(now.weight))
        for first in np.unique(now.opened).tolist():
            group = now.opened == first
            factor = self._factor_v(first)
            mean[group], pivot[group] = now.ev[group, :i] @ factor[i, :i], factor[i, i]
        mean, pivot, untied = mean[parent], pivot[parent], now.opened[parent] >= 0
        opens = inside & ~untied if self._open else np.zeros(len(inside), np.bool_)
        gain = np.full(len(low), -np.inf)
        e = np.zeros(len(low))
        determined = np.full(len(low), self._sides is not None and i == len(self._order) - 1) & ~untied
        points = ~inside & ~determined
        e[points] = (low[points] - mean[points]) / pivot[points]
        gain[points] = -0.5 * e[points] ** 2 - np.log(pivot[points]) - _LOG_ROOT_2PI
        gain[opens] = 0.0
        if self._sides is None or self._open:  # else the alternating sum has told that nobody was inside
            drawn = np.flatnonzero(inside & ~opens)
            a, b = ((end[drawn] - mean[drawn]) / pivot[drawn] for end in (low, high))
            gain[drawn], e[drawn] = cut_normal(a, b, rng.random(len(drawn)))
        else:
            fits = determined & ~inside & (np.abs(mean - low) < self._c.tolerance * (1 + len(self._order)))
            gain[fits] = 0.0
        return mean + pivot * e, e, opens, gain

    def _factor_v(self, without: int) -> Array:
        """The Cholesky factor of Cov V, or that of all nodes but one, with zeros in that one's row and column."""
        if without not in self._factors_v:
            factor = np.zeros_like(self._cov_v)
            rest = [k for k in range(len(self._order)) if k != without]
            cov = self._cov_v[np.ix_(rest, rest)]
            factor[np.ix_(rest, rest)] = triangular(cov) if without < 0 else np.linalg.cholesky(cov)
            self._factors_v[without] = factor
        return self._factors_v[without]

    def _nobody_inside(self) -> bool:
        """Whether Σ ε V can vanish with every V a point: it differs by lattice steps over all such hypotheses."""
        c, total = self._c, 0.0
        for i, node in enumerate(self._order):
            points = np.flatnonzero(c.low[node] == c.high[node])
            if not len(points) or self._sides is None:
                return False
            u = 0.0 if c.held and c.held[0] == node else c.u[node][points[0]]
            total += self._sides[i] * (c.low[node][points[0]] - u)
            if c.held:
                total += self._sides[-1] * u
        steps = total / c.lattice
        return bool(abs(steps - np.rint(steps)) * c.lattice < c.tolerance)


def _write(rows: NDArray[Any], parent: Ints, i: int, column: NDArray[Any]) -> NDArray[Any]:
    rows = rows[parent]
    rows[:, i] = column
    return rows


def _thin(alive: Ints, weight: Array, most: int, rng: np.random.Generator) -> tuple[Ints, Array]:
    """At most about `most` of the particles alive, such that every sum over them keeps its mean; and their weights."""
    logs = weight[alive]
    if len(alive) <= most:
        return alive, logs
    share = np.exp(logs - logs.max())
    ordered = np.sort(share)
    light = np.cumsum(ordered)  # of the k + 1 lightest
    heavy = len(ordered) - 1 - np.arange(len(ordered))
    # the threshold: as many heavier than it, plus the light ones' sum in units of it, as there are places
    fits = np.flatnonzero(light / ordered + heavy <= most)
    k = fits[0] if len(fits) else len(ordered)
    threshold = light[k - 1] / max(most - (len(ordered) - k), 1)
    keep = share >= threshold
    rest = np.flatnonzero(~keep)
    sums = np.cumsum(share[rest]) / threshold
    marks = rng.random() + np.arange(int(np.floor(sums[-1])) + 1 if len(rest) else 0)
    drawn = rest[np.searchsorted(sums, marks[marks < sums[-1]])] if len(rest) else rest
    logs = np.where(keep, logs, np.log(threshold) + logs.max())
    index = np.concatenate([np.flatnonzero(keep), drawn])
    return alive[index], logs[index]
