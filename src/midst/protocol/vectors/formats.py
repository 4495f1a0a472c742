"""The numbers of an array as offsets: whole numbers from 0 to 2^bits − 1 that sort alike, of one type for all clients.

Rules:
- Without a resolution every number of the array's own type has an offset of its own: nothing is rounded, and an answer
  is exact to the last bit. −0.0 is 0.0. As many bits as the type has, or fewer where public bounds leave out a half.
- With a public resolution r the offset of v is round(v / r), half to even, less that of the lower bound: as many bits
  as it takes to tell the multiples of r between the bounds apart. Such offsets may be added up, and means be taken.
- What is not finite, or not within the bounds, has none, and is refused before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.protocol.keys import SIGN, Grid, make_keys

Words = NDArray[Any]  # unsigned whole numbers of some size

_LARGEST_OFFSET = 62  # bits at a resolution: sums of many stay below 2^64 where there are few clients


@dataclass(frozen=True)
class Format:
    """What clients agreed on about the numbers of some arrays.

    Attributes:
        dtype: NumPy's name of their type: "float32", "bfloat16", "int64" …
        bounds: public: all numbers lie between them; None for all that the type has.
        resolution: public: numbers are told apart to this; None for all that the type tells apart.
    """

    dtype: str
    bounds: tuple[float, float] | None = None
    resolution: float | None = None

    def __post_init__(self) -> None:
        kind = find_dtype(self.dtype)
        if self.bounds is not None and not (np.isfinite(self.bounds).all() and self.bounds[0] < self.bounds[1]):
            raise InputError("bounds must be two finite numbers, the lower first")
        if self.resolution is not None:
            if self.bounds is None:
                raise InputError("a resolution needs bounds: how many of its steps there are between two numbers")
            if self.bits > _LARGEST_OFFSET:
                raise InputError("the resolution is too fine for these bounds; at most 2^62 steps can be told apart")
        elif self.bounds is not None and not (_as_type(self.bounds[0], kind) < _as_type(self.bounds[1], kind)):
            raise InputError(f"no two numbers of type {self.dtype} lie between the bounds")

    @cached_property
    def kind(self) -> np.dtype[Any]:
        """The numbers' type."""
        return find_dtype(self.dtype)

    @cached_property
    def _grid(self) -> Grid | None:
        found = make_keys(self.resolution) if self.resolution is not None else None
        assert found is None or isinstance(found, Grid)
        return found

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The keys of the lowest and the highest number that may be."""
        if self._grid is not None:
            assert self.bounds is not None
            return self._grid.key(self.bounds[0]) - SIGN, self._grid.key(self.bounds[1]) - SIGN
        low, high = self.bounds or (_info(self.kind).min, _info(self.kind).max)
        ends = np.array([_as_type(low, self.kind), _as_type(high, self.kind)], self.kind)
        lowest, highest = _keys(ends).tolist()
        return lowest, highest

    @cached_property
    def bits(self) -> int:
        """How many bits an offset has; 1 at least."""
        return max(1, (self._ends[1] - self._ends[0]).bit_length())

    @property
    def most(self) -> int:
        """The largest offset."""
        return self._ends[1] - self._ends[0]

    @property
    def word(self) -> np.dtype[Any]:
        """The smallest unsigned type that holds an offset."""
        return word_of(self.bits)

    def misfits(self, values: NDArray[Any]) -> tuple[str, NDArray[np.bool_]] | None:
        """What is wrong with some of the numbers, and with which; None where nothing is."""
        if self.kind.kind not in "iu":
            with np.errstate(invalid="ignore"):
                finite = np.isfinite(values)
            if not finite.all():
                return "has an entry that is not finite; leave the client out, or mend it", ~finite
        if self.bounds is not None:
            low, high = self.bounds if self._grid is not None else (_as_type(end, self.kind) for end in self.bounds)
            inside = (values >= low) & (values <= high)
            if not inside.all():
                return "has an entry outside the public bounds; clip it first", ~inside
        return None

    def offsets(self, values: NDArray[Any]) -> Words:
        """The offsets of numbers of this type that are no `misfits`."""
        if self._grid is not None:
            keys = self._grid.keys(values.astype(np.float64)) - np.uint64(SIGN)
            return (keys - np.uint64(self._ends[0] % 2**64)).astype(self.word)
        keys = _keys(values)
        lowest = self._ends[0]
        return (keys - keys.dtype.type(lowest) if lowest else keys).astype(self.word, copy=False)

    def values(self, offsets: Words) -> NDArray[Any]:
        """The numbers that have these offsets."""
        if self._grid is not None:
            steps = offsets.astype(np.uint64) + np.uint64((self._ends[0] + SIGN) % 2**64)
            return _rounded(self._grid.values(steps), self.kind)
        word = word_of(8 * self.kind.itemsize)
        return _numbers(offsets.astype(word) + word.type(self._ends[0]), self.kind)

    def edges(self, offsets: Words) -> NDArray[np.float64]:
        """The lower ends of the cells of offsets, as floats; one past the last offset has infinity."""
        wide = offsets.astype(np.uint64)
        values = self.values(np.minimum(wide, np.uint64(self.most)).astype(self.word)).astype(np.float64)
        lower = values - (0.0 if self.resolution is None else self.resolution / 2)
        return np.where(wide > np.uint64(self.most), np.inf, lower)

    def means(self, totals: Words, count: int) -> NDArray[Any]:
        """The means of so many numbers whose offsets have these totals; at a resolution alone.

        Totals are exact. Only the last quotient is rounded, in float64, the same way at everybody.
        """
        assert self._grid is not None, "offsets of floats cannot be added up"
        each, rest = np.divmod(totals.astype(np.uint64), np.uint64(count))
        steps = each.astype(np.int64) + self._ends[0]
        step = float(self._grid.step)
        return _rounded((steps + rest.astype(np.float64) / count) * step, self.kind)


def find_dtype(name: str) -> np.dtype[Any]:
    """A type by its name.

    Raises:
        InputError: it is none of real numbers of up to 64 bits.
    """
    try:
        if name == "bfloat16":
            import ml_dtypes

            brain: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return brain
        found = np.dtype(name)
    except (TypeError, ImportError):
        found = np.dtype(object)
    if found.kind not in "iuf" or found.itemsize > 8:
        raise InputError(f"dtype {name}; only real numbers of up to 64 bits can be searched")
    return np.dtype(found.str[1:])  # of this machine's byte order


def word_of(bits: int) -> np.dtype[Any]:
    """The smallest unsigned type with so many bits."""
    return np.dtype(next(f"uint{size}" for size in (8, 16, 32, 64) if bits <= size))


def little(bits: int) -> np.dtype[Any]:
    """The same as it is on the wire."""
    return word_of(bits).newbyteorder("<")


def modulo(numbers: Words, bits: int) -> Words:
    """Without the bits that do not count."""
    return numbers & numbers.dtype.type((1 << bits) - 1) if bits < 8 * numbers.itemsize else numbers


def split_bytes(raw: bytes | memoryview, kinds: Iterable[tuple[np.dtype[Any], int]]) -> Iterator[NDArray[Any]]:
    """The arrays of these types and sizes that lie in bytes, one after the other."""
    place = 0
    for kind, size in kinds:
        yield np.frombuffer(raw, kind, size, place)
        place += size * kind.itemsize


def _info(kind: np.dtype[Any]) -> Any:
    if kind.kind in "iu":
        return np.iinfo(kind)
    if kind.kind == "f":
        return np.finfo(kind)
    from ml_dtypes import finfo

    return finfo(kind)  # type: ignore[no-untyped-call]


def _as_type(number: float, kind: np.dtype[Any]) -> Any:
    """A bound as clients would clip to it: who clips a float32 to 0.3 gets a little more than 0.3."""
    info = _info(kind)
    if kind.kind in "iu":
        return kind.type(min(max(int(number), info.min), info.max))
    return kind.type(min(max(number, float(info.min)), float(info.max)))


def _rounded(values: NDArray[np.float64], kind: np.dtype[Any]) -> NDArray[Any]:
    return np.rint(values).astype(kind) if kind.kind in "iu" else values.astype(kind)


def _keys(values: NDArray[Any]) -> Words:
    """Unsigned numbers that sort as values do: a float's own bits, inverted where it is negative, else its sign set."""
    word = word_of(8 * values.dtype.itemsize)
    sign = word.type(1 << (8 * values.dtype.itemsize - 1))
    if values.dtype.kind == "u":
        return values
    if values.dtype.kind == "i":
        return np.asarray(values.view(word) ^ sign)
    bits = np.ascontiguousarray(values + values.dtype.type(0)).view(word)
    flips = (bits.view(f"i{word.itemsize}") >> (8 * word.itemsize - 1)).view(word)  # all bits, or none
    flips |= sign
    flips ^= bits
    return np.asarray(flips)


def _numbers(keys: Words, kind: np.dtype[Any]) -> NDArray[Any]:
    sign = keys.dtype.type(1 << (8 * keys.dtype.itemsize - 1))
    if kind.kind == "u":
        return keys.astype(kind, copy=False)
    if kind.kind == "i":
        return np.asarray((keys ^ sign).view(kind))
    return np.asarray(np.where(keys >= sign, keys ^ sign, ~keys).view(kind))
