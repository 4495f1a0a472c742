"""Joint noise: how much is needed for a whole search to be (ε, δ)-private, and what it costs.

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

from fractions import Fraction
from functools import lru_cache
from math import inf, log

from midst.dp.loss import MOST_VARIANCE, skellam_epsilon
from midst.dp.mechanisms import Mechanism, check_delta, parse_mechanism
from midst.errors import InputError
from midst.protocol.noise import JointNoise, parse_joint

Claim = Mechanism | JointNoise  # noise on values, or on what is told of all of them

_MARGIN = 1e-5
_MANTISSA = 1024  # variances have at most this, or a number below its double, as a whole number of quarters times 2^e
_MOST_INDEX = 25 * _MANTISSA  # that of `MOST_VARIANCE`


def parse_claim(text: str) -> Claim:
    """Noise of either kind from its text, as `spell_claim` gives it.

    >>> parse_claim("joint:eps=1,delta=1e-6")
    JointNoise(epsilon=1.0, delta=1e-06, colluders=1, values=1)

    Raises:
        InputError: the text is of none of the forms, or what it says is refused.
    """
    kind, _, rest = text.partition(":")
    return parse_joint(rest) if kind == "joint" else parse_mechanism(text)


def spell_claim(claim: Claim) -> str:
    """Inverse of `parse_claim`."""
    return f"joint:{claim}" if isinstance(claim, JointNoise) else str(claim)


def spent(variance: Fraction, probes: int, cells: int, delta: float, values: int = 1) -> float:
    """The ε, at this δ, of a search with so much noise: never too small, some thousandth too large.

    The variance σ² is that of each number, without the shares of those who collude. A probe tells at most so many
    `cells` (`NoisyRules.most_numbers`). So many `values` are protected together.

    Raises:
        InputError: δ is none, or the variance is beyond what can be accounted for.
    """
    check_delta(delta)
    if variance > MOST_VARIANCE:
        raise InputError(f"noise of a variance above {MOST_VARIANCE:,.0f} cannot be accounted for")
    return skellam_epsilon(float(variance), values, _runs(probes, cells), delta) if probes else 0.0


@lru_cache
def least_variance(noise: JointNoise, probes: int, cells: int) -> Fraction:
    """The smallest σ² that keeps the promise, of those that may be agreed on (at most a thousandth apart).

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


def most_bits(variance: Fraction, probes: int, cells: int) -> float:
    """What the transcript tells of one value in the mean, in bits, whatever is known of all others; from above.

    The mutual information is at most the largest relative entropy of two transcripts, which of one number with Skellam
    noise, shifted by 1, is at most 1/2σ² + min(7/4σ⁴, 3/2σ²) (Agarwal, Kairouz and Liu 2021, in the limit α → 1), and
    adds up over numbers and adaptive probes. Of a list of m values, it is at most m times this.
    """
    if not probes:
        return 0.0
    v = float(variance)
    return _runs(probes, cells) * (1 / (2 * v) + min(7 / (4 * v * v), 3 / (2 * v))) / log(2) if v else inf


def _runs(probes: int, cells: int) -> int:
    """How many numbers a substitution shifts."""
    return probes * min(cells, 2)


def _variance(index: int) -> Fraction:
    """The variances that may be agreed on, in order: whole quarters, and from 512 on those of eleven bits."""
    power = max(index // _MANTISSA - 1, 0)
    return Fraction((index - power * _MANTISSA) << power, 4)
