"""Numbers as whole numbers from 0 to 2^64 − 1 that sort alike: brackets, thresholds and answers of a search are keys.

Rules:
- `Floats`: every finite float64 has its own key: its bits, with the sign bit set where it is not negative and all bits
  inverted where it is. −0.0 is 0.0. Nothing is rounded, so an answer is exact to the last bit.
- `Grid(r)`: the key of v is 2^63 plus v / r rounded to a whole number, half to even, computed exactly. All values that
  round to the same multiple of r are one.
- A number at a share f of the way from lo to hi is lo·(1 − f) + hi·f, in float64, in this order, on every machine.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor, frexp, inf, isfinite, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.types import Array

Words = NDArray[np.uint64]

SIGN = 1 << 63
MODULUS = 1 << 64
_SIGN_BIT = np.int64(-SIGN)
_FARTHEST = 1 << 61  # steps of a grid from zero: two keys can be added below the modulus
_MOST_POWER = 1023  # of two, in a float64
_EXACT = 1 << 53  # whole numbers up to here are floats
_LARGEST = float(np.finfo(np.float64).max)
_NORMAL = float(np.finfo(np.float64).tiny)
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True)
class Floats:
    """Every float64 by itself."""

    ends = (-_LARGEST, _LARGEST)  # where there are no bounds

    def key(self, value: float) -> int:
        """The key of a finite number."""
        bits = int.from_bytes(struct.pack("<d", value + 0.0), "little")
        return bits | SIGN if bits < SIGN else MODULUS - 1 - bits

    def value(self, key: int) -> float:
        """The number that has this key."""
        bits = key - SIGN if key >= SIGN else MODULUS - 1 - key
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])

    def nearest(self, number: Decimal | Fraction) -> float:
        """The float that stands for an exact number."""
        return float(number)

    def keys(self, values: Array) -> Words:
        """The keys of many."""
        bits = np.asarray(values + 0.0).view(np.int64)
        flips = np.asarray(bits >> 63)  # every bit of what is negative, and of the others the sign alone
        flips |= _SIGN_BIT
        flips ^= bits
        return flips.view(np.uint64)

    def values(self, keys: Words) -> Array:
        """And back."""
        flips = np.asarray(~(keys.view(np.int64) >> 63))  # those of `keys`
        flips |= _SIGN_BIT
        flips ^= keys.view(np.int64)
        return flips.view(np.float64)

    def split(self, a: int, b: int, f: float) -> int | None:
        """The key at a share f of the way through the bracket (a, b], by value; None where that is no number."""
        value = self.value(a + 1) * (1.0 - f) + self.value(b) * f
        return self.key(value) if isfinite(value) else None

    def distances(self, keys: Words, centre: int) -> Words:
        """The keys of how far numbers are from that of a key."""
        with np.errstate(over="ignore"):
            return self.keys(np.minimum(np.abs(self.values(keys) - self.value(centre)), _LARGEST))

    def widest(self, a: int, b: int) -> tuple[int, int]:
        """The bracket of how far two numbers of (a, b] can be apart."""
        return self.key(0.0) - 1, self.key(min(self.value(b) - self.value(a + 1), _LARGEST))

    def middle(self, twice: int) -> float:
        """The number halfway between two keys, from their sum; floats have none that two keys would tell."""
        raise InputError("the midpoint of two values needs a public resolution; give one, or definition inverted_cdf")


@dataclass(frozen=True)
class Grid:
    """Multiples of a public resolution.

    Attributes:
        step: the resolution.
    """

    step: Fraction
    zero = SIGN

    @property
    def ends(self) -> tuple[float, float]:
        """Between which numbers values lie where there are no bounds."""
        far = float(min(self.step * (_FARTHEST // 2), Fraction(_LARGEST)))
        return -far, far

    def key(self, value: float | Decimal | Fraction) -> int:
        """The key of a finite number."""
        return round(Fraction(value) / self.step) + SIGN

    def value(self, key: int) -> float:
        """The number that has this key."""
        return _nearest((key - SIGN) * self.step)

    def nearest(self, number: Decimal | Fraction) -> float:
        """The nearest float, or its neighbour if only that has the number's key; a ValueError if neither has."""
        value = float(number)
        if value and isfinite(value) and (off := self.key(value) - (key := self.key(number))):
            value = nextafter(value, -inf if off > 0 else inf)
            if self.key(value) != key:
                raise ValueError("the resolution is finer than floats are here")
        return value

    def keys(self, values: Array) -> Words:
        """The keys of many."""
        flat, step = np.asarray(values, np.float64).reshape(-1), float(self.step)
        with np.errstate(over="ignore", invalid="ignore"):
            guess = flat / step
            nearest = np.rint(guess)
            # A float is off by a few units in its last place: far from a half, and not large, it rounds as the exact
            # one. A subnormal step is off by more.
            clear = (np.abs(np.abs(guess - nearest) - 0.5) > 1e-3) & (np.abs(guess) < _EXACT * 1e-4) & (step >= _NORMAL)
        keys = np.where(clear, nearest, 0.0).astype(np.int64).view(np.uint64) + np.uint64(SIGN)
        for k in np.flatnonzero(~clear).tolist():
            keys[k] = self.key(float(flat[k]))
        return keys.reshape(np.shape(values))

    def values(self, keys: Words) -> Array:
        """And back."""
        number, of = self.step.numerator, self.step.denominator
        steps = (keys.reshape(-1) - np.uint64(SIGN)).view(np.int64)
        # A quotient of whole numbers that are floats is rounded once, like the exact one.
        clear = (np.abs(steps) <= _EXACT // number) & (of <= _EXACT)
        values = np.where(clear, steps, 0) * float(min(number, _EXACT)) / float(min(of, _EXACT))
        for k in np.flatnonzero(~clear).tolist():
            values[k] = self.value(int(steps[k]) + SIGN)
        return values.reshape(keys.shape)

    def split(self, a: int, b: int, f: float) -> int | None:
        """The key at a share f of the way through the bracket (a, b]."""
        return floor(float(a + 1 - SIGN) * (1.0 - f) + float(b - SIGN) * f) + SIGN

    def distances(self, keys: Words, centre: int) -> Words:
        """The keys of how far numbers are from that of a key."""
        middle = np.uint64(centre)
        return np.where(keys > middle, keys - middle, middle - keys) + np.uint64(SIGN)

    def widest(self, a: int, b: int) -> tuple[int, int]:
        """The bracket of how far two numbers of (a, b] can be apart."""
        return SIGN - 1, SIGN + b - a - 1

    def middle(self, twice: int) -> float:
        """The number halfway between two keys, from their sum."""
        return _nearest((twice - 2 * SIGN) * self.step / 2)


Keys = Floats | Grid


@dataclass(frozen=True)
class WideGrid:
    """Multiples of a power of two, numbered by whole numbers of any size: sums of floats are exact on it.

    Only a simulation needs it, where no public resolution says how finely values are told apart.

    Attributes:
        step: the power of two.
        zero: the number of 0; every number is at least 0.
    """

    step: Fraction
    zero: int

    def key(self, value: float) -> int:
        """The number of a float, which lies on the grid."""
        return int(Fraction(value) / self.step) + self.zero

    def keys(self, values: Array) -> NDArray[Any]:
        """The numbers of many."""
        odd, power = _odd_parts(values)
        shift = np.where(odd == 0, 0, power - _power_of(self.step))
        return np.asarray((odd.astype(object) << shift.astype(object)) + self.zero)


SumGrid = Grid | WideGrid


def exact_grid(values: Array, largest: float) -> tuple[SumGrid, tuple[int, int]]:
    """The coarsest grid of a power of two that holds every value; and the numbers of two ends around them all.

    Args:
        values: finite floats.
        largest: no value is farther from 0.
    """
    odd, power = _odd_parts(values)
    least, far = int(power.min(initial=_MOST_POWER, where=odd != 0)), frexp(largest or 1.0)[1]
    steps = 1 << max(far - least, 0)
    grid = Grid(Fraction(2) ** least) if steps <= _FARTHEST else WideGrid(Fraction(2) ** least, steps)
    return grid, (grid.zero - steps, grid.zero + steps)


def _odd_parts(values: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every value as an odd number times a power of two; 0 as 0."""
    fraction, power = np.frexp(values)
    whole = (fraction * 2.0**53).astype(np.int64)
    zeros = np.maximum(np.frexp((whole & -whole).astype(np.float64))[1] - 1, 0)
    return whole >> zeros, np.asarray(power - 53 + zeros, np.int64)


def _power_of(step: Fraction) -> int:
    return step.numerator.bit_length() - step.denominator.bit_length()


def _nearest(number: Fraction) -> float:
    """As a float; the largest, where it is larger than all: what rounds up at a coarse resolution."""
    return float(max(-Fraction(_LARGEST), min(number, Fraction(_LARGEST))))


def make_keys(resolution: float | str | Fraction | None) -> Keys:
    """The keys at a public resolution; of all floats where there is none.

    Raises:
        InputError: the resolution is not a positive number.
    """
    if resolution is None:
        return Floats()
    try:
        step = resolution if isinstance(resolution, Fraction) else Fraction(str(resolution))
    except (ValueError, ZeroDivisionError):
        raise InputError("resolution must be a positive number, such as 0.01") from None
    if not _SMALLEST <= step <= _LARGEST:
        raise InputError("resolution must be a positive number, such as 0.01")
    return Grid(step)


def first_bracket(keys: Keys, bounds: tuple[float, float] | None) -> tuple[int, int]:
    """The bracket (a, b] that holds every value: the public bounds, or all that there is.

    Raises:
        InputError: the bounds are too many steps of the resolution apart.
    """
    low, high = keys.ends if bounds is None else bounds
    a, b = keys.key(low) - 1, keys.key(high)
    if isinstance(keys, Grid) and not -_FARTHEST <= a - SIGN < b - SIGN <= _FARTHEST:
        raise InputError("the resolution is too fine for these bounds; at most 2^61 steps from zero can be told apart")
    return a, b
