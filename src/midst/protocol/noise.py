"""One participant's share of noise that nobody knows as a whole: whole numbers, drawn exactly, without floats.

Rules:
- Skellam noise, the difference of two Poisson numbers of one mean: shares of variance v_i add up to one of variance
  Σ v_i. With shares of σ²/(n − colluders), those who do not collude have at least σ² among them.
- A share is drawn by inversion, from 17 bytes whatever comes out: no rejection whose time would tell something. Its
  distribution differs from Skellam's by less than 2^-100 in all (the largest difference in the chance of any event);
  see `_thresholds`. The δ of the accounting grows by that, times 1 + e^ε and the numbers that all draw: nothing beside
  a δ that anybody would agree on.
- The bytes derive from the session's secret, the step's context and one's own answers. Who is started again adds the
  same noise: noise drawn anew would average out. Other answers never go out under the same noise: their difference
  would be told.
"""

from __future__ import annotations

import hmac
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from midst.errors import InputError
from midst.protocol.commitments import hash_parts

DrawBytes = Callable[[int], bytes]  # so many bytes that nobody else can guess

MOST_SHARE = 2**32  # of the variance of one share: its table has about 13 standard deviations, here 900,000 numbers
_LABEL = b"midst noise v1"
_BITS = 128  # of the number that is inverted
_GUARD = 160  # of the smallest chance in the table
_TAIL = 90  # the chance of what the table leaves out, on one side, is below e^−90 < 2^-129


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
    """Bytes that follow from a secret and from what their noise is for.

    Args:
        seed: see `derive_seed` in `masks.py`.
        context: of the step.
        answers: one's own, before the noise.
    """
    purpose = hash_parts(_LABEL, context, *(each.to_bytes(16, "big") for each in answers))
    counter = iter(range(2**32))

    def draw(count: int) -> bytes:
        blocks = -(-count // 64)
        stream = (hmac.digest(seed, purpose + next(counter).to_bytes(4, "big"), "sha512") for _ in range(blocks))
        return b"".join(stream)[:count]

    return draw


def add_noise(answers: Sequence[int], share: Fraction, seed: bytes, context: bytes) -> list[int]:
    """One's answers to a question with one's share of noise on each: signed numbers, to be masked.

    Args:
        answers: without noise.
        share: its variance.
        seed: see `derive_seed` in `masks.py`.
        context: of the step.
    """
    draw = noise_bytes(seed, context, answers)
    return [answer + skellam(share, draw) for answer in answers]


def skellam(variance: Fraction, draw: DrawBytes) -> int:
    """One Skellam number of mean 0.

    Args:
        variance: from 0 to `MOST_SHARE`.
        draw: where 17 random bytes come from.
    """
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
