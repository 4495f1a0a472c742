"""Noise that nobody knows as a whole: what is agreed on, and one participant's share, drawn exactly, without floats.

Rules:
- What is agreed on is a promise, `JointNoise`, and a variance σ². Whether the one keeps the other is worked out in
  `dp/joint.py`, by who writes a charter and by everybody before it takes part; the protocol needs σ² only.
- Skellam noise, the difference of two Poisson numbers of one mean: shares of variance v_i add up to one of variance
  Σ v_i. With shares of σ²/(n − colluders), those who do not collude have at least σ² among them.
- A share is drawn by inversion, from 17 bytes whatever comes out: no rejection whose time would tell something. Its
  distribution differs from Skellam's by less than 2^-100 in all (the largest difference in the chance of any event);
  see `_thresholds`. The δ of the accounting grows by that, times 1 + e^ε and the numbers that all draw: nothing beside
  a δ that anybody would agree on.
- Too few values are refused before anything is asked, by all alike: whole numbers and fractions decide, no floats.
- The bytes derive from the session's secret, the step's context and one's own answers. Who is started again adds the
  same noise: noise drawn anew would average out. Other answers never go out under the same noise: their difference
  would be told.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import ceil, inf, isqrt, sqrt

from midst.errors import InputError, closest
from midst.protocol.hashes import secret_blocks

DrawBytes = Callable[[int], bytes]  # so many bytes that nobody else can guess

MOST_SHARE = 2**32  # of the variance of one share: its table has about 13 standard deviations, here 900,000 numbers
MOST_ERROR = Fraction(1, 10)  # of an answer's rank, as a share of all values: beyond that nothing is asked
_FORM = "eps=1,delta=1e-6,colluders=2"
_LABEL = b"midst noise v1"
_BITS = 128  # of the number that is inverted
_GUARD = 160  # of the smallest chance in the table
_TAIL = 90  # the chance of what the table leaves out, on one side, is below e^−90 < 2^-129


# What is agreed on


@dataclass(frozen=True)
class JointNoise:
    """What is agreed on: the promise, and against whom it is to hold.

    Attributes:
        epsilon: ε of the whole transcript, positive.
        delta: δ in (0, 1).
        colluders: how many participants may put together what they know of the noise; 1 for each by itself, 0 for
            those only who take no part, since everybody knows its own share.
        values: how many values of one participant are protected together: 1 for each by itself.
    """

    epsilon: float
    delta: float
    colluders: int = 1
    values: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < inf:
            raise InputError("epsilon must be a positive number")
        if not 0 < self.delta < 1:
            raise InputError("delta must lie strictly between 0 and 1")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        _check_whole("colluders", self.colluders, 0)
        _check_whole("values", self.values, 1)

    def __str__(self) -> str:
        unit = f",values={self.values}" if self.values > 1 else ""
        return f"eps={self.epsilon!r},delta={self.delta!r},colluders={self.colluders}{unit}"

    def describe(self) -> str:
        """What is promised, in one line."""
        unit = "one value" if self.values == 1 else f"{self.values} values of one participant together"
        against = {0: "outsiders only", 1: "each participant"}.get(self.colluders, f"any {self.colluders} who collude")
        return f"({self.epsilon:g}, {self.delta:g})-DP of all that is told, for {unit}, against {against}"

    def weaker_than(self, other: JointNoise) -> str | None:
        """In what it promises less than another one does, in words; None where it does not."""
        less = {
            "a larger epsilon": self.epsilon > other.epsilon,
            "a larger delta": self.delta > other.delta,
            "fewer colluders": self.colluders < other.colluders,
            "fewer values together": self.values < other.values,
        }
        return " and ".join(each for each, is_less in less.items() if is_less) or None


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
        unknown = next((name for name in named if name not in known), "")
        near = closest(unknown, ("eps", *(known - {"epsilon"})))
        raise InputError(
            f"joint noise takes eps and delta, and may take colluders and values, each once: {_FORM}{near}"
        )
    try:
        epsilon, delta = float(named.pop("epsilon")), float(named.pop("delta"))
        return JointNoise(epsilon, delta, **{name: int(value) for name, value in named.items()})
    except InputError as error:
        raise InputError(f"{error}; try {_FORM}") from None
    except ValueError:
        raise InputError(f"joint noise: each must be a number as in {_FORM}") from None


def count_std(variance: Fraction, cells: int) -> float:
    """The standard deviation of the noise on a count of all values up to a threshold, that in the middle of a probe.

    The count up to the j-th threshold of a probe has the noise of j cells, σ√j.
    """
    return sqrt(_count_variance(variance, cells))


def rank_error(variance: Fraction, cells: int, count: int) -> float:
    """How far off the rank of an answer is to be expected, as a share of all values; from above.

    The noise on one count, that of all participants together, over the number of values. Measured, for medians of
    evenly and of normally spread values with 1, 2, 3 and 7 thresholds a probe: the mean error is half to three quarters
    of this, its root mean square two thirds to nine tenths. A half is the most it says: the answer is then anywhere.
    """
    return min(count_std(variance, cells) / count, 0.5)


def expected_in_words(error: float) -> str:
    """What a rank error says, for people."""
    return f"expect the answer's rank to be off by some {error:.2%} of all values, now and then by twice that"


def fewest_values(variance: Fraction, cells: int) -> int:
    """With fewer, the rank of an answer would be off by more than is allowed."""
    least = isqrt(ceil(_count_variance(variance, cells) / MOST_ERROR**2))
    return max(least + (_count_variance(variance, cells) > (MOST_ERROR * least) ** 2), 1)


def size_refusal(delta: float, variance: Fraction, cells: int, count: int) -> str | None:
    """Why there are too few values, or too many for δ; None where there are not.

    So much noise would leave no answer, or δ alone would allow one value to be told.

    Args:
        delta: δ.
        variance: of the noise of all participants together: more than σ² where some may collude.
        cells: the most numbers a probe tells.
        count: of all values.
    """
    if Fraction(delta) * count >= 1:
        return f"delta {delta:g} would allow one of {count:,} values to be told; it must be below 1/n"
    least = fewest_values(variance, cells)
    if count >= least:
        return None
    error = rank_error(variance, cells, count)
    share = f"by some {error:.0%} of them" if error < 0.5 else "by half of them or more"
    return (
        f"with so much noise the rank of an answer among {count:,} values would be off {share}, and at most"
        f" {float(MOST_ERROR):.0%} is allowed; have {least:,} values or more, a larger epsilon,"
        f" {'' if cells == 1 else 'fewer thresholds a probe, '}or a coarser resolution"
    )


def _count_variance(variance: Fraction, cells: int) -> Fraction:
    return variance * (cells + 1) / 2


def _check_whole(name: str, number: int, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= 1_000_000:
        raise InputError(f"{name} must be a whole number from {least} to 1,000,000")


# One participant's share


def share_of(variance: Fraction, participants: int, colluders: int) -> Fraction:
    """The variance of each participant's share, such that all but the colluders' add up to so much.

    Raises:
        InputError: nobody would be left to add noise, or a share would be too large.
    """
    if not 0 <= colluders < participants:
        raise InputError(f"colluders must be from 0 to {participants - 1}: somebody has to add noise they do not know")
    share = variance / (participants - colluders)
    if not 0 <= share <= MOST_SHARE:
        raise InputError("the noise of one participant is beyond what can be drawn; allow a larger epsilon")
    return share


def noise_bytes(seed: bytes, context: bytes, answers: Sequence[int]) -> DrawBytes:
    """Bytes that follow from a secret (`masks.derive_seed`), the step, and one's own answers before the noise."""
    blocks = secret_blocks(seed, _LABEL, context, answers)
    return lambda count: b"".join(islice(blocks, -(-count // 64)))[:count]


def add_noise(answers: Sequence[int], share: Fraction, seed: bytes, context: bytes) -> list[int]:
    """One's answers to a question with noise of variance `share` on each: signed numbers, to be masked."""
    draw = noise_bytes(seed, context, answers)
    return [answer + skellam(share, draw) for answer in answers]


def skellam(variance: Fraction, draw: DrawBytes) -> int:
    """One Skellam number of mean 0 and a variance from 0 to `MOST_SHARE`, from 17 random bytes."""
    raw = draw(_BITS // 8 + 1)
    size = bisect_right(_thresholds(variance), int.from_bytes(raw[:-1], "big"))
    return -size if raw[-1] & 1 else size


@lru_cache(maxsize=8)
def _thresholds(variance: Fraction) -> tuple[int, ...]:
    """The chances that |X| ≤ 0, 1, 2, …, of X with this variance, in units of 2^-128.

    With v the variance, P(X = k) = e^(−v)·I_k(v), and I_(k−1) = (2k/v)·I_k + I_(k+1). Miller: run that from an N far
    out down to 0, with 0 at N + 1 and any number at N, and divide by the sum. How far off that is, p_k for P(X = k):

    - By Bernstein, P(X > N) ≤ exp(−N²/(2v + 2N/3)) ≤ e^−90 for this N: left out is 2^-128.8 at most.
    - The recurrence is also solved by (−1)^k K_k, which grows with k: what Miller finds differs from p_k by at most
      p_(N+1)·K_k/K_(N+1) ≤ e^−90, in all, with the sum that is divided by, by 4(N + 1)·2^-129.
    - The number at N is 2^160, all are positive and none is rounded by more than 1: a relative error of (N + 1)·2^-160.
    - Rounding the result to units of 2^-128 puts each of N + 1 chances off by one unit at most.

    For N < 2^20 that is below 2^-105 altogether.
    """
    if variance == 0:
        return (1 << _BITS,)
    if not 0 < variance <= MOST_SHARE:
        raise ValueError("variance must be from 0 to 2^32")
    third = _TAIL // 3
    last = third + isqrt(third**2 + int(2 * _TAIL * variance) + 1) + 1
    twice, over = 2 * variance.denominator, variance.numerator
    chances = [0, 1 << _GUARD]  # of N + 1, N, … 0
    for k in range(last, 0, -1):
        chances.append(twice * k * chances[-1] // over + chances[-2])
    chances.reverse()
    total = 2 * sum(chances) - chances[0]
    reached, thresholds = -chances[0], []
    for chance in chances[:-1]:
        reached += 2 * chance
        thresholds.append((reached << _BITS) // total)
    return tuple(thresholds)
