"""Privacy loss: the ε, at a δ, of many Laplace runs and a Gaussian, or of Skellam runs; never too small, nearly exact.

The loss of an output is the logarithm of how much likelier one value makes it than a neighbouring value does. Losses of
independent runs add up, and with p(l) the chance of a loss l in all, δ(ε) = Σ (1 − e^(ε − l))₊ p(l). Laplace noise of
one ε has the loss ε with chance ½, −ε with chance e^(−ε)/2, and between them the density e^((l − ε)/2)/4; the Gaussian
with (Δ/σ)² = v has a normal loss of mean v/2 and variance v. Skellam noise, the difference of two Poisson numbers, of
variance v on a whole number that shifts by s has the loss log p(k) − log p(k + s) with chance p(k) = e^(−v)·I_k(v). All
are the same for either order of the two values. Of a vector, one number stands for all: from the one value to the other
a coordinate at a time, no more is told than by the sum of the shifts on one number.

Rules, each of which can only enlarge the ε:
- Losses are put on a grid. One between two grid points is split over both, such that the chances under either value
  keep their sums: who is told which of the two, is told more. That adds some h²/6 to a variance, h the step. The
  Gaussian's loss, which is there but once, is rounded up.
- The Skellam's outputs are cut off where they are likelier than δ in no run: the chance of those with a larger loss is
  added to δ, those with a smaller one are given the smallest that is left.
- The sum is by FFT, of chances tilted by e^(θl), with θ such that losses near the ε to be found are the likely ones:
  the rounding error is then small beside any δ.
- What lies below the window of the FFT comes up in it again, where it adds to δ; of what lies above, Chernoff's bound
  on its chance is added to δ in full.
- Rounding: an FFT of N numbers of norm s errs by a few ulps·log2(N)·s, in the 2-norm; k factors by k times that (each
  is at most 1). Weighed by Cauchy and Schwarz, it is added to δ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import asinh, ceil, floor, inf, log, log1p, log2, nextafter, sqrt

import numpy as np
from scipy.fft import next_fast_len
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from midst.types import Array

MOST_VARIANCE = 2.0**32  # of Skellam noise: the loss of more than 2^20 outputs would have to be added up
LARGEST = 300.0  # a Laplace run of a larger ε costs that ε but for 1, in the mean: the loss is not worth a grid
_FINE, _COARSEST = 0.05, 0.25  # of the step: in standard deviations of one run's loss, and as a loss
_FEW = 1000  # runs, from which on the step is as fine as that; for fewer, it is as if they were that many
_REACH = 10.0  # of the window and of a normal loss, in standard deviations
_LONGEST = 1 << 19  # numbers in the window
_ULPS = 20 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class _Loss:
    """The chances of one run's losses: exp(log_p[i]) at (first + i)·step, for each of so many runs."""

    first: int
    log_p: Array
    runs: int

    def tilted(self, theta: float, step: float) -> tuple[float, Array]:
        """Log of E e^(θl), and the chances tilted by that factor: they sum to 1."""
        exponents = self.log_p + theta * step * (self.first + np.arange(len(self.log_p)))
        cumulant = float(logsumexp(exponents))
        return cumulant, np.exp(exponents - cumulant)


@dataclass(frozen=True)
class _Sum:
    """The sum of all losses, tilted by e^(θl); see the rules for what is added where.

    Attributes:
        losses: what is summed.
        beyond: log of the chance that a Gaussian's or a Skellam's loss was cut off.
        step: of the grid.
        theta: θ.
    """

    losses: tuple[_Loss, ...]
    beyond: float
    step: float
    theta: float

    @cached_property
    def window(self) -> tuple[int, int, float]:
        """First grid point, number of grid points, and log of the chance of a loss above them."""
        mean = variance = 0.0  # in steps
        for loss in self.losses:
            _, chance = loss.tilted(self.theta, self.step)
            at = np.arange(len(chance))
            middle = float(at @ chance)
            mean += loss.runs * (loss.first + middle)
            variance += loss.runs * float((at - middle) ** 2 @ chance)
        length = next_fast_len(2 * ceil(_REACH * sqrt(variance)) + 64, real=True)
        first = floor(mean) - length // 2
        top = (first + length - 1) * self.step
        # Chernoff's bound holds at any tilt, and above the window steeper ones are tighter: the least of a few
        steeper = [self.theta + part * _REACH / self.step / sqrt(1 + variance) for part in (0.3, 1, 3, 30)]
        above = min(self._cumulant(theta) - theta * top for theta in steeper)
        return first, length, float(np.logaddexp(above, self.beyond))

    @cached_property
    def log_chances(self) -> tuple[Array, float]:
        """Logs of the tilted chances in the window, and of the 2-norm of what rounding may have made of them."""
        first, length, _ = self.window
        spectrum = np.ones(length // 2 + 1, np.complex128)
        norm = 0.0
        for loss in self.losses:
            _, chance = loss.tilted(self.theta, self.step)
            # around the circle: what lies below the window comes up at its top, where it makes δ too large and never
            # too small
            wrapped = np.bincount((loss.first + np.arange(len(chance))) % length, chance, length)
            # the loss of k runs is a k-fold convolution; tilted chances sum to 1, so no factor is above 1 and errors do
            # not grow
            spectrum *= np.fft.rfft(wrapped) ** loss.runs
            norm += (loss.runs + 1) * float(np.linalg.norm(wrapped))
        found = np.roll(np.fft.irfft(spectrum, length), -first)
        error = _ULPS * log2(length) * (norm + float(np.linalg.norm(found)))
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(found, 0.0)), log(error)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Log of E e^(θl), and more than rounding may have put it off, and the chances on the grid with it."""
        spread = sum(loss.runs * (1 + self.theta * self.step * len(loss.log_p)) for loss in self.losses)
        return self._cumulant(self.theta), 1e-9 + _ULPS * spread

    def log_delta(self, epsilon: float) -> float:
        """Log of δ(ε), from above, for an ε from the first grid point of the window on."""
        first, length, above = self.window
        log_p, log_error = self.log_chances
        start = max(floor(epsilon / self.step) - first, 0)
        over = np.maximum(self.step * np.arange(first + start, first + length) - epsilon, 0.0)
        beyond, exponents = -np.expm1(-over), log_p[start:] - self.theta * over
        most = max(float(np.max(exponents)), -1e300)
        with np.errstate(divide="ignore"):
            inside = most + np.log(beyond @ np.exp(exponents - most))
            error = log_error + np.log(np.linalg.norm(beyond * np.exp(-self.theta * over)))
        cumulant, rounding = self.scale
        return float(np.logaddexp(np.logaddexp(inside, error) + cumulant - self.theta * epsilon, above)) + rounding

    def _cumulant(self, theta: float) -> float:
        return sum(loss.runs * loss.tilted(theta, self.step)[0] for loss in self.losses)


def composed_epsilon(laplace: Mapping[float, int], precision: float, delta: float) -> float:
    """An ε that so many Laplace runs of each ε, with Gaussian runs of this precision in all, keep to at this δ.

    At most about a thousandth, and δ, too large, but for δ near 1; infinite where the Gaussian is beyond every grid,
    for its own ε is then above ten million, and where δ is beyond the digits of a float. No Laplace run has an ε above
    `LARGEST`; the precision is Σ (Δ/σ)² of the Gaussian runs.
    """
    runs = sum(laplace.values()) + (precision > 0)
    variance = sum(count * min(epsilon**2, 3.0) for epsilon, count in laplace.items()) + precision
    step, widest = _grid_step(variance, runs), max(laplace)
    if step > _COARSEST:
        return inf
    if widest > step:  # put the ends of its losses on the grid
        step = nextafter(widest / ceil(widest / step), inf)

    def cumulant(theta: float) -> float:
        total = theta * (1 + theta) * precision / 2
        for each, count in laplace.items():
            lower = theta / (1 + 2 * theta) * np.expm1(-(1 + 2 * theta) * each)
            total += count * (theta * each + log1p(lower))
        return total

    theta = min(_tilt(cumulant, delta, sqrt(variance)), 20 / step)
    losses, beyond = [_laplace_loss(epsilon, count, step) for epsilon, count in laplace.items()], -inf
    if precision:
        normal, beyond = _normal_loss(precision, step, theta, delta)
        losses.append(normal)
    return _least(_Sum(tuple(losses), beyond, step, theta), log(delta))


def skellam_epsilon(variance: float, shift: int, runs: int, delta: float) -> float:
    """An ε that so many Skellam runs keep to at this δ; at most about a thousandth, and δ, too large.

    Infinite where there is no noise, where the loss is beyond every grid, and where δ is beyond the digits of a float.
    The variance is at most `MOST_VARIANCE`; the number under the noise of each run may differ by the shift, a whole
    number from 1 on.
    """
    if variance <= 0:
        return inf
    log_cut = log(delta) - log(runs) - 14  # a millionth of δ is cut off at most
    one = _Skellam(variance, shift, log_cut)
    spread = runs * one.loss_variance
    step = _grid_step(spread, runs)
    if step > _COARSEST:
        return inf
    theta = min(_tilt(lambda theta: runs * one.cumulant(theta), delta, sqrt(spread)), 20 / step)
    total = _Sum((one.on_grid(step, runs),), log_cut + log(runs), step, theta)
    return _least(total, log(delta) - runs * one.chance_error) + runs * one.loss_error


def _grid_step(variance: float, runs: int) -> float:
    """The step of the grid, for a sum of so many losses of this variance in all; too coarse where none will do."""
    finest = 2.1 * _REACH * sqrt(variance) / _LONGEST
    return max(min(_FINE * sqrt(variance / max(runs, _FEW)), _COARSEST), finest)


def _least(total: _Sum, log_delta: float) -> float:
    """The least ε of which δ(ε) is no more than that, in the window, to a ten-thousandth of a step."""
    first, length, _ = total.window
    low, high = max(first * total.step, 0.0), (first + length - 1) * total.step
    if total.log_delta(low) <= log_delta:
        return low
    if total.log_delta(high) > log_delta:
        return inf
    near = 1e-4 * total.step
    # where nothing is left log δ is −∞, which a root finder cannot take: cut off far below what is sought
    root = brentq(lambda epsilon: max(total.log_delta(epsilon), 2 * log_delta - 1) - log_delta, low, high, xtol=near)
    return float(root) + 2 * near


def _tilt(cumulant: Callable[[float], float], delta: float, scale: float) -> float:
    """The θ of the best bound by moments, δ(ε) ≤ E e^(θ(l − ε))·θ^θ/(1 + θ)^(1 + θ) (Canonne and others 2020)."""

    def epsilon(power: float) -> float:
        theta = float(np.exp(power))
        return (cumulant(theta) - log(delta) - log1p(theta) - theta * log1p(1 / theta)) / theta

    ends = log(1e-3 / scale), log(1e6 / scale)
    return float(np.exp(minimize_scalar(epsilon, bounds=ends, method="bounded").x))


def _laplace_loss(epsilon: float, runs: int, step: float) -> _Loss:
    """A Laplace run on the grid.

    Times e^(−l/2), the chances under the two values are each other's mirror image. In units of e^(−ε/2), there is ½ at
    either end and the density ¼ between. Of a weight at u above a grid point, sinh((h − u)/2)/sinh(h/2) stays there and
    sinh(u/2)/sinh(h/2) goes to the next point: of the density, tanh(h/4)/2 to each end of a whole step.
    """
    last = ceil(epsilon / step)
    rest = min(max(epsilon - (last - 1) * step, 1e-12 * step), step)  # how far the end lies in the last step
    inner = np.sinh((2 * step - rest) / 4) * np.sinh(rest / 4) + np.sinh((step - rest) / 2) / 2
    outer = np.sinh(rest / 4) ** 2 + np.sinh(rest / 2) / 2
    beside = np.tanh(step / 4) / 2 if last > 1 else inner / np.sinh(step / 2)  # on the other side of the last but one
    weight = np.full(2 * last + 1, np.tanh(step / 4))
    weight[[0, -1]] = outer / np.sinh(step / 2)
    weight[[1, -2]] = inner / np.sinh(step / 2) + beside
    return _Loss(-last, np.log(weight) + (np.arange(-last, last + 1) * step - epsilon) / 2, runs)


def _normal_loss(precision: float, step: float, theta: float, delta: float) -> tuple[_Loss, float]:
    """The Gaussian on the grid, each loss rounded up, and the log of the chance of one above the grid."""
    std, mean = sqrt(precision), precision / 2
    reach = max(theta * std + _REACH, -float(ndtri_exp(log(delta) - 14)))  # a millionth of δ is cut off at most
    first, last = floor((mean - std * _REACH) / step), ceil((mean + std * reach) / step)
    z = (np.arange(first - 1, last + 1) * step - mean) / std
    upper = z[:-1] > 0  # where the chances are those of the mirror image, which keep their digits
    less, more = log_ndtr(np.where(upper, -z[1:], z[:-1])), log_ndtr(np.where(upper, -z[:-1], z[1:]))
    log_p = more + np.log(-np.expm1(less - more))
    log_p[0] = log_ndtr(z[1])  # and all that is below
    return _Loss(first, log_p, 1), float(log_ndtr(-z[-1]))


class _Skellam:
    """The losses of one Skellam run, log p(k) − log p(k + s), output by output, in order, and log p(k).

    Outputs that are together no likelier than e^log_cut are cut off. Rounding puts a loss off by less than
    `loss_error`, and the log of a chance by less than `chance_error`.
    """

    def __init__(self, variance: float, shift: int, log_cut: float) -> None:
        last = _skellam_reach(variance, log_cut)
        half = _skellam_log_p(variance, last + shift)
        outputs = np.arange(-last, last + 1)
        self.log_p = half[np.abs(outputs)]
        # Noise that is log-concave, as this is, has a loss that grows from each output to the next.
        self.losses = self.log_p - half[np.abs(outputs + shift)]
        self.log_p[0] = np.logaddexp(self.log_p[0], log_cut)
        # A ratio of neighbouring chances comes from the next by r' = 1/(2k/v + r): of a relative error the share r·r'
        # goes on, and Π r·r' over the first j ratios is about e^(−j²/v), so no more than some √v of the errors made on
        # the way are left. The sum of logs adds to that an ulp of the largest, each time.
        each = float(np.finfo(np.float64).eps) * (3 * sqrt(variance) + 2 - float(half[-1]))
        self.loss_error, self.chance_error = shift * each, 2 * (last + shift) * each

    def cumulant(self, theta: float) -> float:
        """Log of E e^(θl)."""
        return float(logsumexp(self.log_p + theta * self.losses))

    @property
    def loss_variance(self) -> float:
        """Of a run's loss."""
        chances = np.exp(self.log_p)
        return float(chances @ (self.losses - chances @ self.losses) ** 2)

    def on_grid(self, step: float, runs: int) -> _Loss:
        """So many runs on the grid: of a loss at u above a grid point, (1 − e^−u)/(1 − e^−h) goes to the next."""
        below = np.floor(self.losses / step)
        up = np.clip(np.expm1(below * step - self.losses) / np.expm1(-step), 0.0, 1.0)
        first, chances = int(below[0]), np.exp(self.log_p)
        places = below.astype(np.int64) - first
        weights = np.bincount(np.r_[places, places + 1], np.r_[chances * (1 - up), chances * up])
        with np.errstate(divide="ignore"):
            return _Loss(first, np.log(weights), runs)


def _skellam_reach(variance: float, log_cut: float) -> int:
    """An output such that all above it are together less likely than e^log_cut, by Chernoff's bound."""

    def log_tail(k: float) -> float:
        return variance * (sqrt(1 + (k / variance) ** 2) - 1) - k * asinh(k / variance)

    high = 1.0
    while log_tail(high) > log_cut:
        high *= 2
    return ceil(brentq(lambda k: log_tail(k) - log_cut, 0.0, high)) + 1


def _skellam_log_p(variance: float, last: int) -> Array:
    """Logs of the chances of 0, 1, … last."""
    # Ratios r_k = p(k + 1)/p(k) by the recurrence of Bessel functions, backwards, where it is stable, from a bound on
    # one so far off that what it is in error is forgotten.
    start = last + ceil(4 * sqrt(variance)) + 60
    ratio = variance / (start + 0.5 + sqrt((start + 0.5) ** 2 + variance**2))
    ratios = []
    for k in range(start, 0, -1):
        ratio = 1.0 / (2.0 * k / variance + ratio)
        ratios.append(ratio)
    log_p: Array = np.concatenate([[0.0], np.cumsum(np.log(ratios[::-1][:last]))])
    return log_p - float(np.logaddexp(0.0, log(2.0) + float(logsumexp(log_p[1:]))))
