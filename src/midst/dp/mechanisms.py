"""Differential privacy: noise put on the values before anything is sent, as a map from Problem to Problem.

Rules:
- The model is local: every node clips its own value to public bounds and adds its own noise. Two values of one node are
  neighbours whatever they are, so the sensitivity is the whole width of the bounds, and all that follows (messages,
  exposure, the answer) is post-processing: it costs nothing more.
- ε and δ are claims about exact arithmetic. NumPy's samplers work in floats, whose gaps tell more than the claim allows
  (Mironov 2012), and from a generator that is not cryptographic: use them for simulation and study, and
  `privatise(…, hardened=True)` where the promise is to hold.
- What was never claimed is refused, not estimated: `Offset` has no ε.
- Everything about a mechanism (ε, δ, bounds, noise) is public; the values are not, and appear in no message.

The Gaussian mechanism (Balle & Wang 2018, Theorem 8) is (ε, δ)-private for sensitivity Δ exactly if
Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ. Both sides of the difference can be huge, tiny or nearly equal. With
h = Δ/2σ and a = εσ/Δ − Δ/2σ it becomes δ = φ(a)·[M(a) − M(a + 2h)], M the Mills ratio: no e^ε, one bracket for a
that holds for every ε and δ, and for small h an integral of M' in place of the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import exp, inf, log, log1p, log2, nextafter, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr

from midst.dp.loss import LARGEST, composed_epsilon
from midst.errors import InputError, MissingExtra, closest
from midst.problems import Problem
from midst.system import RNG, streams
from midst.types import Array

_SMALLEST, _LARGEST = 1e-150, 1e150  # of epsilon, sigma and prior_std: their squares are floats too
_MOST_RUNS = 1_000_000
_UP = 1 + 1e-12  # results are rounded towards more noise and a larger ε by more than the error made on the way


class _Noise(ABC):
    """What all mechanisms have alike."""

    @abstractmethod
    def std(self, coordinates: int = 1) -> float:
        """Standard deviation of the noise on each coordinate."""

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on a value that is one number."""
        return self.std()


@dataclass(frozen=True)
class GaussianNoise(_Noise):
    """Gaussian noise, just enough for (ε, δ).

    Attributes:
        epsilon: ε, positive.
        delta: δ in (0, 1).
        bounds: public (lower, upper) to which every value, or every coordinate, is clipped.
    """

    epsilon: float
    delta: float
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        epsilon, delta = _positive("epsilon", self.epsilon), check_delta(self.delta)
        _settle(self, epsilon=epsilon, delta=delta, bounds=_ordered(self.bounds))

    def __str__(self) -> str:
        return f"gaussian:eps={self.epsilon!r},delta={self.delta!r},bounds={_spell(self.bounds)}"

    def sensitivity(self, coordinates: int = 1) -> float:
        """How far two values of a node can lie apart, in the L2 norm: √m·(upper − lower)."""
        return nextafter(sqrt(coordinates) * (self.bounds[1] - self.bounds[0]), inf)

    def std(self, coordinates: int = 1) -> float:
        """Standard deviation of the noise on each coordinate."""
        return _multiplier(self.epsilon, self.delta) * self.sensitivity(coordinates)

    def describe(self) -> str:
        """What is done and what is claimed for it, in one line."""
        return _describe("Gaussian", self, self.delta)


@dataclass(frozen=True)
class LaplaceNoise(_Noise):
    """Laplace noise, just enough for ε with δ = 0.

    Attributes:
        epsilon: ε, positive.
        bounds: public (lower, upper) to which every value, or every coordinate, is clipped.
    """

    epsilon: float
    bounds: tuple[float, float]

    def __post_init__(self) -> None:
        _settle(self, epsilon=_positive("epsilon", self.epsilon), bounds=_ordered(self.bounds))

    def __str__(self) -> str:
        return f"laplace:eps={self.epsilon!r},bounds={_spell(self.bounds)}"

    def sensitivity(self, coordinates: int = 1) -> float:
        """How far two values of a node can lie apart, in the L1 norm: m·(upper − lower)."""
        return nextafter(coordinates * (self.bounds[1] - self.bounds[0]), inf)

    def std(self, coordinates: int = 1) -> float:
        """Standard deviation of the noise on each coordinate: √2 times the Laplace scale."""
        return sqrt(2) * self.sensitivity(coordinates) / self.epsilon

    def describe(self) -> str:
        """What is done and what is claimed for it, in one line."""
        return _describe("Laplace", self, 0.0)


@dataclass(frozen=True)
class Offset(_Noise):
    """The paper's plain N(0, σ²) on the value as it is: nothing is clipped, so no ε can be claimed.

    Attributes:
        sigma: standard deviation (the paper quotes σ²).
    """

    sigma: float
    bounds: ClassVar[tuple[float, float]] = (-inf, inf)

    def __post_init__(self) -> None:
        _settle(self, sigma=_positive("sigma", self.sigma))

    def __str__(self) -> str:
        return f"offset:sigma={self.sigma!r}"

    def std(self, coordinates: int = 1) -> float:
        """Standard deviation of the noise on each coordinate: σ, however many there are."""
        return self.sigma

    def describe(self) -> str:
        """What is done, and that nothing is claimed for it, in one line."""
        return f"Gaussian offset of std {self.sigma:.4g}: no (epsilon, delta) claim"


Mechanism = GaussianNoise | LaplaceNoise | Offset


def privatise(problem: Problem, mechanism: Mechanism, rng: RNG = None, *, hardened: bool = False) -> Problem:
    """The same problem with every node's value clipped and noised.

    Objective, weights and what is public stay, but for bounds, which noised values do not keep to. Where scale and
    centre were estimated (`problem.public`), they were read off the true values, which no ε accounts for: give them for
    a real run.

    The plain noise is NumPy's: floats (open to Mironov's attack on the gaps between them) from a generator that whoever
    knows the seed can repeat. Hardened noise is OpenDP's: exact discrete sampling on the grid of floats, from the
    operating system's randomness. What it then guarantees, by OpenDP's proofs (its "contrib" feature, so reviewed in
    part):

    - `LaplaceNoise`: ε, for the number that comes out. The same noise as the plain one but for rounding.
    - `GaussianNoise`: OpenDP proves zero-concentrated privacy of its discrete Gaussian and derives (ε, δ) from that;
      this takes the analytic σ and enlarges it, a tenth of a percent at a time, until OpenDP agrees: 4 to 11% more
      noise than `noise_std` for ε from 0.1 to 10 and δ ≤ 1e-5, half as much again at worst. `compose` counts the plain
      σ.
    - `Offset`: the sampler only; there is still no claim.

    Args:
        problem: whose values are to be noised.
        mechanism: how.
        rng: a seed or a generator for the plain noise.
        hardened: draw from OpenDP instead.

    Raises:
        InputError: hardened noise cannot be seeded, or noised values are too large for a float.
        MissingExtra: OpenDP is not installed.
    """
    if problem.owners is not None:
        raise InputError("noise is put on one value a node, and on no lists: it would have to grow with their lengths")
    clipped = np.clip(problem.values, *mechanism.bounds)
    coordinates = clipped.size // len(clipped)
    if not hardened:
        noised = clipped + _noise(mechanism, clipped.shape, coordinates, streams(rng).noise)
        return problem.with_values(noised, bounded=False)
    if rng is not None:
        raise InputError("hardened noise comes from the operating system and cannot be seeded; leave rng out")
    release = _measurement(mechanism, coordinates)
    released = [release(row) for row in clipped.reshape(len(clipped), -1).tolist()]
    return problem.with_values(np.reshape(released, clipped.shape), bounded=False)


def information(mechanism: Mechanism, prior_std: float) -> float:
    """I(S; S + N) in bits: what one noised number tells of a value S ~ N(·, prior_std²) in the mean.

    Gaussian noise: ½ log2(1 + prior_std²/σ²); clipping only lowers it. Laplace noise: the entropy of S + N, integrated
    numerically (to about 1e-9 bits), less that of N, for a value that the bounds do not clip. Not for
    coordinates of a vector, whose noise is larger (`mechanism.std`).

    Raises:
        InputError: prior_std is not positive.
    """
    ratio = _positive("prior_std", prior_std) / mechanism.noise_std
    if not isinstance(mechanism, LaplaceNoise):
        return 0.5 * log1p(ratio * ratio) / log(2) if ratio < _LARGEST else log2(ratio)
    k = sqrt(2) * ratio  # prior std over the Laplace scale b; from here on the prior has std 1, and b = 1/k
    if k > 1e6:  # the noise is a sharp needle: h(S + N) = h(S) to within 1/k²
        return log2(k) + 0.5 * log2(2 * pi * np.e) - log2(2 * np.e)

    def side(v: float) -> float:  # log of e^(k²/2 − kv)·Φ(v − k), by the form that keeps its digits
        return log(erfcx((k - v) / sqrt(2)) / 2) - v * v / 2 if v < k else float(log_ndtr(v - k)) + k * (k / 2 - v)

    def integrand(y: float) -> float:
        logpdf = log(k / 2) + float(np.logaddexp(side(y), side(-y)))
        return -exp(logpdf) * logpdf

    edges = [0.0, 1.0, 10.0, 10.0 + 1 / k, 10.0 + 10 / k, 10.0 + 50 / k]  # a normal bulk, then a tail e^(−ky)
    half = sum(quad(integrand, low, high, epsabs=1e-13, epsrel=1e-12)[0] for low, high in pairwise(edges))
    return max((2 * half - log(2 * np.e / k)) / log(2), 0.0)


@dataclass(frozen=True)
class AccuracyCost:
    """How far the answer of noised values lies from the true one, in the units of the data.

    Attributes:
        mean: mean distance over the draws.
        quantile_95: distance not exceeded in 95% of them.
        draws: how many.
    """

    mean: float
    quantile_95: float
    draws: int


def accuracy_cost(problem: Problem, mechanism: Mechanism, rng: RNG = None, draws: int = 1000) -> AccuracyCost:
    """Noise the values again and again and compare the answers: what only a simulation can do.

    The distance is from the (middle of the) noised answer to the nearest right one; of vectors, the largest
    coordinate's.

    Raises:
        InputError: draws is not a whole number from 1 to 1,000,000.
    """
    generator = streams(rng).noise
    low, high = problem.answer
    distances = []
    for _ in range(_whole("draws", draws)):
        found = sum(end / 2 for end in privatise(problem, mechanism, generator).answer)
        distances.append(np.max(np.maximum(np.maximum(low - found, found - high), 0.0)))
    return AccuracyCost(float(np.mean(distances)), float(np.quantile(distances, 0.95)), draws)


def compose(mechanism: Mechanism, runs: int, delta: float) -> float:
    """The ε, at this δ, of so many runs with fresh noise on the same value; see `compose_all`."""
    return compose_all({mechanism: runs}, delta)


def compose_all(runs: Mapping[Mechanism, int], delta: float) -> float:
    """The ε, at this δ, of all these runs on the same value, with mechanisms that were settled before the first.

    - Gaussians compose exactly: k of them are one of std σ/√k, whose ε(δ) is exact.
    - Laplace runs, and both kinds together: the distribution of their privacy loss, summed numerically (`loss`). The ε
      is never too small, and about a thousandth too large at most.
    - Never more than the Gaussians' ε(δ) plus the sum of the Laplace ε.

    Raises:
        InputError: a run is an `Offset`, which claims no ε; δ is outside (0, 1); or there are too many runs.
    """
    delta = check_delta(delta)
    precision = 0.0  # Σ (Δ/σ)² of the Gaussians
    laplace: Counter[float] = Counter()
    for mechanism, number in runs.items():
        count = _whole("runs", number)
        if isinstance(mechanism, Offset):
            raise InputError("a plain offset claims no epsilon, so there is none to compose; use gaussian or laplace")
        if isinstance(mechanism, GaussianNoise):
            precision += count / _multiplier(mechanism.epsilon, mechanism.delta) ** 2
        else:
            laplace[mechanism.epsilon] += count
    plain = _gaussian_epsilon(precision, delta) + sum(count * epsilon for epsilon, count in laplace.items())
    counted = {epsilon: count for epsilon, count in laplace.items() if epsilon <= LARGEST}
    if not counted:
        return plain
    # a Laplace loss never exceeds its ε, so the few that are too large for the grid may be added as they are
    rest = sum(count * epsilon for epsilon, count in laplace.items() if epsilon > LARGEST)
    return min(plain, _UP * (composed_epsilon(counted, precision, delta) + rest))


def parse_mechanism(text: str) -> Mechanism:
    """A mechanism from its text, as `str` of one gives it.

    >>> parse_mechanism("laplace:eps=1,bounds=0:100")
    LaplaceNoise(epsilon=1.0, bounds=(0.0, 100.0))

    Raises:
        InputError: the text is of none of the forms, or what it says is refused.
    """
    kind, _, rest = text.partition(":")
    if kind not in _FORMS:
        forms = [*(form for _, form in _FORMS.values()), "joint:eps=1,delta=1e-6 for a search"]
        raise InputError(f"unknown mechanism {kind!r}; try {', or '.join(forms)}{closest(kind, [*_FORMS, 'joint'])}")
    make, form = _FORMS[kind]
    expected = [part.partition("=")[0] for part in form.partition(":")[2].split(",")]
    parts = [part.partition("=") for part in rest.split(",")]
    if sorted(name for name, _, _ in parts) != sorted(expected):
        unknown = next((name for name, _, _ in parts if name not in expected), "")
        raise InputError(f"{kind} takes {', '.join(expected)}, each once: {form}{closest(unknown, expected)}")
    try:
        return make(**{_LONG.get(name, name): _READ.get(name, float)(value) for name, _, value in parts})
    except InputError as error:
        raise InputError(f"{error}; try {form}") from None
    except ValueError:
        raise InputError(f"{kind}: each of {', '.join(expected)} must be a number as in {form}") from None


_FORMS: dict[str, tuple[Callable[..., Mechanism], str]] = {
    "gaussian": (GaussianNoise, "gaussian:eps=1,delta=1e-5,bounds=0:100"),
    "laplace": (LaplaceNoise, "laplace:eps=1,bounds=0:100"),
    "offset": (Offset, "offset:sigma=0.1"),
}
_LONG = {"eps": "epsilon"}
_READ: dict[str, Callable[[str], Any]] = {"bounds": lambda text: tuple(map(float, text.split(":")))}


def _settle(mechanism: Mechanism, **checked: Any) -> None:
    """Put the checked fields in place, and refuse noise that no float can hold."""
    for name, value in checked.items():
        object.__setattr__(mechanism, name, value)
    if not 0 < mechanism.noise_std < inf:
        raise InputError("the noise for this epsilon and these bounds is beyond floats; bring the bounds nearer to 1")


def _positive(name: str, number: float) -> float:
    if not _SMALLEST <= number <= _LARGEST:
        raise InputError(f"{name} must be a positive number, between {_SMALLEST:g} and {_LARGEST:g}")
    return float(number)


def check_delta(delta: float) -> float:
    """The δ, if it lies in (0, 1).

    Raises:
        InputError: it does not.
    """
    if not 0 < delta < 1:
        raise InputError("delta must lie strictly between 0 and 1")
    return float(delta)


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if len(bounds) != 2 or not (-inf < bounds[0] < bounds[1] < inf):
        raise InputError("bounds must be two finite numbers, the lower first")
    return float(bounds[0]), float(bounds[1])


def _whole(name: str, number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 1 <= number <= _MOST_RUNS:
        raise InputError(f"{name} must be a whole number from 1 to {_MOST_RUNS:,}")
    return int(number)


def _spell(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]!r}:{bounds[1]!r}"


def _describe(kind: str, mechanism: GaussianNoise | LaplaceNoise, delta: float) -> str:
    values = "values clipped to [{:g}, {:g}]".format(*mechanism.bounds)
    return f"{kind} noise of std {mechanism.noise_std:.4g} on {values}: ({mechanism.epsilon:g}, {delta:g})-DP a run"


def _noise(mechanism: Mechanism, shape: tuple[int, ...], coordinates: int, generator: np.random.Generator) -> Array:
    std = mechanism.std(coordinates)
    if isinstance(mechanism, LaplaceNoise):
        return generator.laplace(scale=std / sqrt(2), size=shape)
    return generator.normal(scale=std, size=shape)


def _measurement(mechanism: Mechanism, coordinates: int) -> Any:
    """OpenDP's own mechanism for one node's row, with the least noise for which OpenDP itself makes the claim."""
    try:
        import opendp.prelude as opendp
    except ImportError:
        raise MissingExtra("opendp", "dp") from None
    opendp.enable_features("contrib")
    rows = opendp.vector_domain(opendp.atom_domain(T=float, nan=False), size=coordinates)

    def make(std: float) -> Any:
        if isinstance(mechanism, LaplaceNoise):
            return opendp.m.make_laplace(rows, opendp.l1_distance(T=float), std / sqrt(2))
        gaussian = opendp.m.make_gaussian(rows, opendp.l2_distance(T=float), std)
        if isinstance(mechanism, Offset):
            return gaussian
        return opendp.c.make_fix_delta(opendp.c.make_zCDP_to_approxDP(gaussian), mechanism.delta)

    std = mechanism.std(coordinates)
    if isinstance(mechanism, Offset):
        return make(std)
    claim = mechanism.epsilon if isinstance(mechanism, LaplaceNoise) else (mechanism.epsilon, mechanism.delta)
    # OpenDP reckons by zCDP, a little above the exact ε: more noise until it signs the claim itself
    while not make(std).check(mechanism.sensitivity(coordinates), claim):
        std *= 1.001
    return make(std)


def _log_delta(a: float, h: float) -> float:
    """Log δ = log φ(a) + log[M(a) − M(a + 2h)], for a ≥ −h, where M(u) = √(π/2)·erfcx(u/√2)."""
    # far apart, the quotient of the two ratios keeps its digits; near each other they cancel, and M' is integrated
    if h >= 0.5:
        return float(log_ndtr(-a)) + log1p(-erfcx((a + 2 * h) / sqrt(2)) / erfcx(a / sqrt(2)))
    u = a + h * (1 + _NODES)  # M(a) − M(a + 2h) = ∫ (1 − uM(u)) du over a … a + 2h
    return log(h) + log(_WEIGHTS @ (1 - u * sqrt(pi / 2) * erfcx(u / sqrt(2)))) - a * a / 2 - 0.5 * log(2 * pi)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FARTHEST = 40.0  # δ < 1 − Φ(a), which beyond 40 is below every positive float; below −40, δ is 1 in floats


def _root(function: Callable[[float], float], low: float) -> float:
    return float(brentq(function, low, _FARTHEST, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=5000))


@lru_cache
def _multiplier(epsilon: float, delta: float) -> float:
    """The least σ/Δ that is (ε, δ)-private, rounded up."""

    def half(a: float) -> float:  # the positive h with 2h(a + h) = ε, without cancellation
        root = sqrt(a * a + 2 * epsilon)
        return (root - a) / 2 if a < 0 else epsilon / (root + a)

    a = _root(lambda a: _log_delta(a, half(a)) - log(delta), -_FARTHEST)
    return _UP / (2 * half(a))


def _gaussian_epsilon(precision: float, delta: float) -> float:
    """The least ε at this δ of Gaussian noise with (Δ/σ)² = precision, rounded up."""
    h = sqrt(precision) / 2
    if h == 0 or _log_delta(-h, h) <= log(delta):
        return 0.0
    a = _root(lambda a: _log_delta(a, h) - log(delta), -h)
    return _UP * 2 * h * (a + h)
