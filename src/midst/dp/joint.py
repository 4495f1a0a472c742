"""Joint noise: how much is needed for a whole search to be (ε, δ)-private, what it costs, and how far off answers are.

A noisy search (`protocol/noisy_search.py`) tells, T times, how many of all values lie in each of some cells, with
Skellam noise of variance σ² on each number, of which every participant adds a share (`protocol/noise.py`).

Rules:
- Two data sets are neighbours where one value is another (or the list of at most m values of one participant; a value
  of weight w counts as w values); how many values there are is public. All that is told, (ε, δ) is of all of it.
- The worst case of a probe is that the m values go from one cell to another, +m and −m; with one cell, m. Skellam noise
  is log-concave, so the best test of k against k + s is a threshold, and the errors of the best tests of a shift of
  s + t are those of s and t, one after the other. By way of a third data set, that is also a bound for shifts of s and
  t in two cells: to spread a shift over cells, or to make it smaller, tells no more (`test_joint.py` tries it).
- Questions depend on earlier totals. Whatever these are, a probe tells no more than that worst case, one pair of
  distributions for all: so T of them, adaptive, tell no more than T independent ones of it (Zhu, Dong and Wang 2022,
  on the composition of dominating pairs). That is T runs of one shifted number, 2T where there are two cells or more;
  their privacy losses are added up by `loss.py`, from above.
- The noise counted is that of those who do not collude. More of them, or totals modulo 2^64, tell no more.
- No float enters the protocol. σ² is settled once, by who writes the charter, as a whole number of quarters with at
  most eleven significant bits, and stands there; all others work out what it costs and decide by that whether to take
  part, and nothing else. It is settled with ε a hundred-thousandth smaller, which is far more than two machines can
  differ by, so what one has settled no other refuses.

What it does not cover: masks and shares come from pseudo-random functions, so all this holds against those who cannot
break them. More than the agreed number of colluders have less noise against them: `spent` says what is left. Liars can
put the answer anywhere, but make nothing less private. Several sessions on the same values add up.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from math import inf, sqrt

from midst.dp.loss import MOST_VARIANCE, skellam_epsilon
from midst.dp.mechanisms import check_delta
from midst.errors import InputError

MOST_ERROR = 0.1  # of an answer's rank, as a share of all values: beyond that it is refused
_FORM = "eps=1,delta=1e-6,colluders=2"
_MARGIN = 1e-5
_MANTISSA = 1024  # variances have at most this, or a number below its double, as a whole number of quarters times 2^e
_MOST_INDEX = 25 * _MANTISSA  # that of `MOST_VARIANCE`


@dataclass(frozen=True)
class JointNoise:
    """What is agreed on: the promise, and against whom it is to hold.

    Attributes:
        epsilon: ε of the whole transcript, positive.
        delta: δ in (0, 1).
        colluders: how many participants may put together what they know of the noise.
        values: how many values of one participant are protected together: 1 for each by itself.
    """

    epsilon: float
    delta: float
    colluders: int = 0
    values: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < inf:
            raise InputError("epsilon must be a positive number")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        _check_whole("colluders", self.colluders, 0)
        _check_whole("values", self.values, 1)

    def __str__(self) -> str:
        unit = f",values={self.values}" if self.values > 1 else ""
        return f"eps={self.epsilon!r},delta={self.delta!r},colluders={self.colluders}{unit}"

    def describe(self) -> str:
        """What is promised, in one line."""
        unit = "one value" if self.values == 1 else f"a participant's {self.values} values"
        against = f", against up to {self.colluders} who collude" if self.colluders else ""
        return f"({self.epsilon:g}, {self.delta:g})-DP of all that is told, for {unit}{against}"


def parse_joint(text: str) -> JointNoise:
    """Joint noise from its text, as `str` of one gives it.

    >>> parse_joint("eps=1,delta=1e-6,colluders=2")
    JointNoise(epsilon=1.0, delta=1e-06, colluders=2, values=1)

    Raises:
        InputError: the text is not of that form, or what it says is refused.
    """
    parts = [part.partition("=") for part in text.split(",")]
    named = {"epsilon" if name == "eps" else name: value for name, _, value in parts}
    known = {field.name for field in fields(JointNoise)}
    if len(named) != len(parts) or not {"epsilon", "delta"} <= set(named) <= known or "epsilon=" in text:
        raise InputError(f"joint noise takes eps and delta, and may take colluders and values, each once: {_FORM}")
    try:
        epsilon, delta = float(named.pop("epsilon")), float(named.pop("delta"))
        return JointNoise(epsilon, delta, **{name: int(value) for name, value in named.items()})
    except InputError as error:
        raise InputError(f"{error}; try {_FORM}") from None
    except ValueError:
        raise InputError(f"joint noise: each must be a number as in {_FORM}") from None


def spent(variance: Fraction, probes: int, cells: int, delta: float, values: int = 1) -> float:
    """The ε, at this δ, of a search with so much noise: never too small, some thousandth too large.

    Args:
        variance: σ² of the noise on each number, without the shares of those who collude.
        probes: T.
        cells: the most numbers a probe tells (`NoisyRules.most_numbers`).
        delta: δ.
        values: how many are protected together, m.

    Raises:
        InputError: δ is none, or the variance is beyond what can be accounted for.
    """
    check_delta(delta)
    if variance > MOST_VARIANCE:
        raise InputError(f"noise of a variance above {MOST_VARIANCE:,.0f} cannot be accounted for")
    return skellam_epsilon(float(variance), values, _runs(probes, cells), delta) if probes else 0.0


def least_variance(noise: JointNoise, probes: int, cells: int) -> Fraction:
    """The smallest σ² that keeps the promise, of those that may be agreed on (at most a thousandth apart).

    Args:
        noise: the promise.
        probes: T.
        cells: the most numbers a probe tells.

    Raises:
        InputError: no noise that can be accounted for is enough.
    """
    if not probes:
        return Fraction(0)

    def enough(index: int) -> bool:
        return spent(_variance(index), probes, cells, noise.delta, noise.values) <= noise.epsilon * (1 - _MARGIN)

    low, high = 0, 1  # from small to large: the less noise, the sooner it is accounted for
    while not enough(high):
        if high == _MOST_INDEX:
            raise InputError("no noise that can be accounted for is enough; allow a larger epsilon, or fewer values")
        low, high = high, min(2 * high if high < _MANTISSA else high + _MANTISSA, _MOST_INDEX)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _variance(high)


def check_variance(noise: JointNoise, variance: Fraction, probes: int, cells: int) -> None:
    """Refuse a charter whose noise does not keep its promise: every participant does, before it takes part.

    Raises:
        InputError: the variance is too small, or beyond what can be accounted for.
    """
    epsilon = spent(variance, probes, cells, noise.delta, noise.values)
    if epsilon > noise.epsilon:
        raise InputError(
            f"noise of variance {variance} keeps to epsilon {epsilon:.4g} at delta {noise.delta:g} over {probes}"
            f" probes, not to the {noise.epsilon:g} that was agreed on"
        )


def count_std(variance: Fraction, cells: int) -> float:
    """The standard deviation of the noise on a count of all values up to a threshold, that in the middle of a probe.

    The count up to the j-th threshold of a probe has the noise of j cells, σ√j.
    """
    return sqrt(variance * (cells + 1) / 2)


def rank_error(variance: Fraction, cells: int, count: int) -> float:
    """How far off the rank of an answer is to be expected, as a share of all values; from above.

    The noise on one count, over the number of values. Measured, for medians of evenly and of normally spread values
    with 1, 2, 3 and 7 thresholds a probe: the mean error is half to three quarters of this, its root mean square two
    thirds to nine tenths. A half is the most it says: the answer is then anywhere.
    """
    return min(count_std(variance, cells) / count, 0.5)


def check_size(noise: JointNoise, variance: Fraction, cells: int, count: int) -> None:
    """Refuse too few values: so much noise would leave no answer, or δ alone would allow one value to be told.

    Args:
        noise: the promise.
        variance: σ².
        cells: the most numbers a probe tells.
        count: of all values.

    Raises:
        InputError: there are too few.
    """
    if noise.delta * count >= 1:
        raise InputError(f"delta {noise.delta:g} would allow one of {count:,} values to be told; it must be below 1/n")
    error = rank_error(variance, cells, count)
    if error > MOST_ERROR:
        least = -int(-count_std(variance, cells) // MOST_ERROR)
        share = f"by some {error:.0%} of them" if error < 0.5 else "by half of them or more"
        raise InputError(
            f"with noise for epsilon {noise.epsilon:g} and delta {noise.delta:g}, the rank of an answer among {count:,}"
            f" values would be off {share}, and at most {MOST_ERROR:.0%} is allowed; have {least:,} values or more, a"
            f" larger epsilon, {'' if cells == 1 else 'fewer thresholds a probe, '}or a coarser resolution"
        )


def _runs(probes: int, cells: int) -> int:
    """How many numbers a substitution shifts."""
    return probes * min(cells, 2)


def _variance(index: int) -> Fraction:
    """The variances that may be agreed on, in order: whole quarters, and from 512 on those of eleven bits."""
    power = max(index // _MANTISSA - 1, 0)
    return Fraction((index - power * _MANTISSA) << power, 4)


def _check_whole(name: str, number: int, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= 1_000_000:
        raise InputError(f"{name} must be a whole number from {least} to 1,000,000")
