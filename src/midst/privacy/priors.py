"""What an adversary believes about a value before it has seen anything.

Every prior answers the same few questions (`Prior`), in logarithms, so that an interval far out in a tail has a mass
and not a zero. A prior is public: nothing here knows a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtri, ndtri_exp

from midst.errors import InputError, closest
from midst.types import Array, Bools

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_NARROW = 1e-5  # below this width, in standard deviations, a mass is a density times a width (relative error < 1e-10)


class Prior(Protocol):
    """What the posterior asks of a prior."""

    @property
    def scale(self) -> float:
        """About how wide it is; resolutions are chosen relative to it."""

    def log_mass(self, lower: float, upper: float) -> float:
        """The logarithm of P(lower < S < upper); −inf where that is empty."""

    def log_density(self, value: float) -> float:
        """The logarithm of the density."""

    def quantile(self, p: float) -> float:
        """The value below which a share `p` in (0, 1) lies."""


def log_normal_mass(a: Array, b: Array) -> Array:
    """Log P(a < Z < b) of a standard normal, elementwise, without cancellation in the tails or in narrow intervals."""
    low, high, _ = _below_zero(a, b)
    return _log_mass(low, high, log_ndtr(low), log_ndtr(high))


def log_mass_of_one(a: float, b: float) -> float:
    """`log_normal_mass` of one interval, without the arrays: the same operations in the same order."""
    low, high = (-float(b), -float(a)) if a > 0 else (float(a), float(b))
    width, middle = high - low, 0.5 * (low + high)
    if not width > 0:
        return -math.inf
    if width * (1 + abs(middle)) < _NARROW:
        return -0.5 * middle**2 - _LOG_ROOT_2PI + float(np.log(width))
    top = float(log_ndtr(high))
    share = -float(np.expm1(min(float(log_ndtr(low)) - top, 0.0)))
    return top + float(np.log(share)) if share else -math.inf


def cut_normal(a: Array, b: Array, probability: Array) -> tuple[Array, Array]:
    """`log_normal_mass`, and the point below which a share `probability` of the normal cut to (a, b) lies."""
    low, high, flip = _below_zero(a, b)
    log_low, log_high = log_ndtr(low), log_ndtr(high)
    probability = np.where(flip, 1 - probability, probability)
    with np.errstate(divide="ignore"):
        point = ndtri_exp(np.logaddexp(log_low + np.log1p(-probability), log_high + np.log(probability)))
    point = np.clip(np.where(np.isnan(point), low, point), low, high)
    return _log_mass(low, high, log_low, log_high), np.asarray(np.where(flip, -point, point))


def _below_zero(a: Array, b: Array) -> tuple[Array, Array, Bools]:
    """An interval, or its mirror image where it lies above 0, and whether it does.

    In the upper tail Φ is 1 but for digits that are lost; in the lower tail log Φ has them all.
    """
    a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    flip = a > 0
    return np.where(flip, -b, a), np.where(flip, -a, b), flip


def _log_mass(low: Array, high: Array, log_low: Array, log_high: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        wide = log_high + np.log(-np.expm1(np.minimum(log_low - log_high, 0.0)))
        middle = 0.5 * (low + high)
        width = high - low
        narrow = width * (1 + np.abs(middle)) < _NARROW
        if narrow.any():
            wide = np.where(narrow, -0.5 * middle**2 - _LOG_ROOT_2PI + np.log(width), wide)
    return np.asarray(np.where(width > 0, wide, -np.inf))


@dataclass(frozen=True)
class Normal:
    """The normal distribution."""

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        _check("normal", (self.mean,), (self.std,))

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return self.std

    def log_mass(self, lower: float, upper: float) -> float:
        """See `Prior`."""
        return log_mass_of_one((lower - self.mean) / self.std, (upper - self.mean) / self.std)

    def log_density(self, value: float) -> float:
        """See `Prior`."""
        return -0.5 * ((value - self.mean) / self.std) ** 2 - _LOG_ROOT_2PI - math.log(self.std)

    def quantile(self, p: float) -> float:
        """See `Prior`."""
        return self.mean + self.std * float(ndtri(p))


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution between two numbers."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check("uniform", (self.low, self.high), (self.high - self.low,), "high must be above low")

    @property
    def scale(self) -> float:
        """The width."""
        return self.high - self.low

    def log_mass(self, lower: float, upper: float) -> float:
        """See `Prior`."""
        return _log((min(upper, self.high) - max(lower, self.low)) / self.scale)

    def log_density(self, value: float) -> float:
        """See `Prior`."""
        return -math.log(self.scale) if self.low <= value <= self.high else -math.inf

    def quantile(self, p: float) -> float:
        """See `Prior`."""
        return self.low + p * self.scale


@dataclass(frozen=True)
class Laplace:
    """The Laplace distribution, density exp(−|x − mean| / width) / (2·width)."""

    mean: float = 0.0
    width: float = 1.0

    def __post_init__(self) -> None:
        _check("laplace", (self.mean,), (self.width,))

    @property
    def scale(self) -> float:
        """The width."""
        return self.width

    def log_mass(self, lower: float, upper: float) -> float:
        """See `Prior`."""
        if not lower < upper:
            return -math.inf
        a, b = (lower - self.mean) / self.width, (upper - self.mean) / self.width
        if a >= 0:
            a, b = -b, -a
        if b <= 0:
            return b - math.log(2) + _log(-math.expm1(a - b))
        return _log(-0.5 * (math.expm1(a) + math.expm1(-b)))

    def log_density(self, value: float) -> float:
        """See `Prior`."""
        return -abs(value - self.mean) / self.width - math.log(2 * self.width)

    def quantile(self, p: float) -> float:
        """See `Prior`."""
        tail = math.log(2 * min(p, 1 - p))
        return self.mean + self.width * math.copysign(tail, p - 0.5)


@dataclass(frozen=True, eq=False)
class Density:
    """A density given on a grid, straight between its points and zero outside; it is brought to mass 1."""

    grid: ArrayLike = field(repr=False)
    density: ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        try:
            grid, density = (np.array(part, dtype=np.float64) for part in (self.grid, self.density))
        except (TypeError, ValueError):
            raise InputError("density prior: grid and density must be numbers") from None
        if grid.ndim != 1 or grid.shape != density.shape or len(grid) < 2:
            raise InputError("density prior: grid and density must be two rows of equal length, at least 2")
        if not (np.isfinite(grid).all() and (np.diff(grid) > 0).all()):
            raise InputError("density prior: grid must be finite and ascending")
        if not (np.isfinite(density).all() and (density >= 0).all() and density.any()):
            raise InputError("density prior: density must be finite, not negative, and not zero throughout")
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "density", density / _area(grid, density))

    @cached_property
    def scale(self) -> float:
        """The standard deviation."""
        grid, density = self._grid, self._density
        mean = _area(grid, grid * density)
        return math.sqrt(max(_area(grid, (grid - mean) ** 2 * density), np.finfo(float).tiny))

    def log_mass(self, lower: float, upper: float) -> float:
        """See `Prior`."""
        a, b = max(lower, float(self._grid[0])), min(upper, float(self._grid[-1]))
        if not a < b:
            return -math.inf
        within = self._grid[(self._grid > a) & (self._grid < b)]
        points = np.concatenate([[a], within, [b]])
        return _log(_area(points, np.interp(points, self._grid, self._density)))

    def log_density(self, value: float) -> float:
        """See `Prior`."""
        return _log(float(np.interp(value, self._grid, self._density, left=0.0, right=0.0)))

    def quantile(self, p: float) -> float:
        """See `Prior`."""
        return _invert(self, p, float(self._grid[0]), float(self._grid[-1]))

    @property
    def _grid(self) -> Array:
        return cast(Array, self.grid)

    @property
    def _density(self) -> Array:
        return cast(Array, self.density)


@dataclass(frozen=True, eq=False)
class Samples:
    """A prior known by samples: a normal of Silverman's width around each (a kernel density estimate)."""

    samples: ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        try:
            samples = np.sort(np.array(self.samples, dtype=np.float64).reshape(-1))
        except (TypeError, ValueError):
            raise InputError("samples prior: samples must be numbers") from None
        if len(samples) < 2 or not np.isfinite(samples).all() or samples[0] == samples[-1]:
            raise InputError("samples prior: at least two different finite samples are needed")
        object.__setattr__(self, "samples", samples)

    @cached_property
    def scale(self) -> float:
        """The standard deviation of the samples."""
        return float(np.std(self._samples))

    @cached_property
    def bandwidth(self) -> float:
        """Silverman's rule: 0.9 · min(std, interquartile range / 1.34) · n^(−1/5)."""
        quartiles = float(np.subtract(*np.quantile(self._samples, (0.75, 0.25)))) / 1.34
        return float(0.9 * (min(self.scale, quartiles) or self.scale) * len(self._samples) ** -0.2)

    def log_mass(self, lower: float, upper: float) -> float:
        """See `Prior`."""
        ends = ((end - self._samples) / self.bandwidth for end in (lower, upper))
        return float(logsumexp(log_normal_mass(*ends))) - math.log(len(self._samples))

    def log_density(self, value: float) -> float:
        """See `Prior`."""
        exponents = -0.5 * ((value - self._samples) / self.bandwidth) ** 2
        return float(logsumexp(exponents)) - _LOG_ROOT_2PI - math.log(self.bandwidth * len(self._samples))

    def quantile(self, p: float) -> float:
        """See `Prior`."""
        reach = self.bandwidth * max(10.0, -float(ndtri(min(p, 1 - p))))
        return _invert(self, p, float(self._samples[0]) - reach, float(self._samples[-1]) + reach)

    @property
    def _samples(self) -> Array:
        return cast(Array, self.samples)


@dataclass(frozen=True)
class Within:
    """A prior, given that the value lies between two public bounds."""

    prior: Prior
    lower: float
    upper: float

    def __post_init__(self) -> None:
        if self._log_total == -math.inf:
            raise InputError("the prior gives no mass to what lies between the public bounds; give a wider prior")

    @property
    def scale(self) -> float:
        """Of the prior."""
        return self.prior.scale

    def log_mass(self, lower: float, upper: float) -> float:
        """See `Prior`."""
        return self.prior.log_mass(max(lower, self.lower), min(upper, self.upper)) - self._log_total

    def log_density(self, value: float) -> float:
        """See `Prior`."""
        return self.prior.log_density(value) - self._log_total if self.lower <= value <= self.upper else -math.inf

    def quantile(self, p: float) -> float:
        """See `Prior`."""
        ends = (self.prior.quantile(end) for end in (np.finfo(np.float64).tiny, 1 - np.finfo(np.float64).epsneg))
        return _invert(self, p, *(min(max(end, self.lower), self.upper) for end in ends))

    @cached_property
    def _log_total(self) -> float:
        return self.prior.log_mass(self.lower, self.upper)


Priors = Prior | Sequence[Prior]


def prior_of_each(prior: Priors, nodes: int) -> list[Prior]:
    """One prior a node, from one for all or a list.

    Raises:
        InputError: there are not as many as nodes.
    """
    if not isinstance(prior, Sequence):
        if not hasattr(prior, "log_mass"):
            raise InputError(
                "prior must be a midst.priors.Normal, Uniform, Laplace, Density or Samples, or a list of them"
            )
        return [prior] * nodes
    if len(prior) != nodes or not all(hasattr(each, "log_mass") for each in prior):
        raise InputError(f"{len(prior)} priors for {nodes} nodes; give one for all, or one a node")
    return list(prior)


KINDS = {"normal": Normal, "uniform": Uniform, "laplace": Laplace}


def parse_prior(text: str) -> Prior:
    """A prior as the shell writes it: "normal:0,1", "uniform:0,100" or "laplace:0,1".

    Raises:
        InputError: it is none of these.
    """
    kind, _, numbers = text.strip().partition(":")
    try:
        first, second = (float(number) for number in numbers.split(","))
        return cast(Prior, KINDS[kind](first, second))
    except (KeyError, TypeError):
        forms = "normal:MEAN,STD, uniform:LOW,HIGH or laplace:MEAN,SCALE"
        raise InputError(f"prior must be {forms}, not {text!r}{closest(kind, KINDS)}") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"prior {text!r}: two numbers are needed, such as {kind}:0,1") from None


def _check(name: str, finite: Sequence[float], positive: Sequence[float], reason: str = "") -> None:
    try:
        good = all(math.isfinite(x) for x in (*finite, *positive)) and all(x > 0 for x in positive)
    except TypeError:
        good = False
    if not good:
        raise InputError(f"{name} prior: {reason or 'two finite numbers are needed, the second positive'}")


def _log(mass: float) -> float:
    return math.log(mass) if mass > 0 else -math.inf


def _area(x: Array, y: Array) -> float:
    return float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2)


def _invert(prior: Prior, p: float, low: float, high: float) -> float:
    return bisect_floats(lambda x: math.exp(prior.log_mass(low, x)) < p, low, high)


def bisect_floats(is_below: Callable[[float], bool], low: float, high: float) -> float:
    """The least float between two that is not below what is sought."""
    for _ in range(200):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return high
