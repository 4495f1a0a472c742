"""An update as one long vector: which arrays it has, and which of their numbers are searched together.

Rules:
- Arrays of one type are laid end to end, in the order in which they are listed: a *segment*. A model with many small
  arrays is not many small searches.
- A segment is cut into *chunks* of at most `CHUNK` coordinates. Each is a search of its own: while one waits for its
  totals another is asked, and no more than a few need be held at a time.
- Names, shapes and types are public. Numbers are not in here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.protocol.vectors.formats import Format, Words, split_bytes
from midst.protocol.vectors.search import Goal, VectorSearch

CHUNK = 1 << 17  # coordinates


@dataclass(frozen=True)
class ArraySpec:
    """One array of an update, as everybody has it.

    Attributes:
        name: of the array.
        shape: its lengths.
        dtype: its type, by NumPy's name.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)


class Chunk(NamedTuple):
    """Some coordinates that are searched together.

    Attributes:
        segment: of which segment.
        start: from this place in it,
        stop: to this one.
    """

    segment: int
    start: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """The arrays of an update, and how their numbers are told apart.

    Attributes:
        arrays: in their order.
        bounds: public, of all numbers; see `Format`.
        resolution: likewise.
    """

    arrays: tuple[ArraySpec, ...]
    bounds: tuple[float, float] | None = None
    resolution: float | None = None

    def __post_init__(self) -> None:
        if not self.coordinates:
            raise InputError("the update is empty; it needs at least one number")
        assert self.formats

    @cached_property
    def coordinates(self) -> int:
        """How many numbers an update has."""
        return sum(each.size for each in self.arrays)

    @cached_property
    def formats(self) -> tuple[Format, ...]:
        """Of every segment."""
        kinds = dict.fromkeys(each.dtype for each in self.arrays if each.size)
        return tuple(Format(kind, self.bounds, self.resolution) for kind in kinds)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Of every segment, which arrays it is made of."""
        places = range(len(self.arrays))
        return tuple(tuple(k for k in places if self.arrays[k].dtype == each.dtype) for each in self.formats)

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """All of them, in the order in which they are searched."""
        sizes = [sum(self.arrays[k].size for k in members) for members in self.members]
        return tuple(
            Chunk(segment, start, min(start + CHUNK, size))
            for segment, size in enumerate(sizes)
            for start in range(0, size, CHUNK)
        )

    def search(self, chunk: Chunk, goal: Goal) -> VectorSearch:
        """The search of a chunk, before its first question."""
        of = self.formats[chunk.segment]
        return VectorSearch(chunk.stop - chunk.start, of.bits, of.most, goal)

    def check_goal(self, goal: Goal) -> None:
        """Refuse means of numbers that cannot be added up.

        Raises:
            InputError: they cannot.
        """
        if goal.statistic == "quantile":
            return
        if self.resolution is None:
            raise InputError(f"a {goal.statistic} needs public bounds and a resolution: what is added up is rounded")
        if any((each.most * goal.total).bit_length() > 64 for each in self.formats):
            raise InputError("the resolution is too fine: sums over all clients have more than 64 bits")

    def gather(self, arrays: Sequence[NDArray[Any]], chunk: Chunk) -> NDArray[Any]:
        """The numbers of a chunk."""
        parts = [_flat(arrays[k])[piece] for k, piece in self._pieces(chunk)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def scatter(self, arrays: Sequence[NDArray[Any]], chunk: Chunk, values: NDArray[Any]) -> None:
        """Put the numbers of a chunk where they belong."""
        here = 0
        for k, piece in self._pieces(chunk):
            size = piece.stop - piece.start
            arrays[k].reshape(-1)[piece] = values[here : here + size]
            here += size

    def _pieces(self, chunk: Chunk) -> Iterator[tuple[int, slice]]:
        """Of which arrays a chunk is made, and of which of their numbers."""
        before = 0
        for k in self.members[chunk.segment]:
            first, last = max(chunk.start - before, 0), min(chunk.stop - before, self.arrays[k].size)
            if first < last:
                yield k, slice(first, last)
            before += self.arrays[k].size

    def empty(self) -> list[NDArray[Any]]:
        """Arrays for an answer."""
        kinds = {each.dtype: each.kind for each in self.formats}
        return [np.empty(each.shape, kinds.get(each.dtype, each.dtype)) for each in self.arrays]

    def from_bytes(self, raw: bytes) -> list[NDArray[Any]]:
        """Arrays from their bytes, one after the other."""
        found = self.empty()
        for each, numbers in zip(found, split_bytes(raw, [(each.dtype, each.size) for each in found]), strict=True):
            each[...] = numbers.reshape(each.shape)
        return found

    def read(self, chunk: Chunk, answer: Words, goal: Goal) -> NDArray[Any]:
        """What a search of a chunk has found, as numbers of the arrays' type."""
        of = self.formats[chunk.segment]
        return of.values(answer) if goal.statistic == "quantile" else of.means(answer, goal.kept)


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(-1) if array.flags.c_contiguous else array.ravel()
