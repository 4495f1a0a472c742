"""Recording: from the stream of (x, branch) to what a `Trace` keeps of it.

| record   | x and branch kept                                   | segments | z(0) |
|----------|-----------------------------------------------------|----------|------|
| "all"    | every iteration                                     | yes      | yes  |
| k        | every k-th iteration                                | yes      | no   |
| "auto"   | every iteration until 256 MiB; then every 2nd, 4th … | yes      | no   |
| "audit"  | iterations 0 and 1                                  | yes      | yes  |
| "none"   | none                                                | no       | no   |

The last iteration is kept in every case. Exposure (was a node ever inside?) is known in every case. Where z(0) was
drawn as sums (`system.draw_z0`) there is none to keep, and "all" and "audit" are refused.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError, closest
from midst.protocol.step import UNKNOWN
from midst.trace import Segments
from midst.types import Array, Branch, Ints

Record = Literal["all", "auto", "audit", "none"] | int

_BUDGET = 256 * 2**20  # bytes of x that "auto" keeps at most
_NONE_YET = np.int8(UNKNOWN + 1)  # the branch of a node before its first iteration


def check_record(record: Record) -> Record:
    """The recording mode, if it is one.

    Raises:
        InputError: it is none.
    """
    number = isinstance(record, int) and not isinstance(record, bool) and record >= 1
    if number or record in ("all", "auto", "audit", "none"):
        return record
    near = closest(record, ("all", "auto", "audit", "none"))
    raise InputError(f"record must be all, auto, audit, none or a number k >= 1, not {record!r}{near}")


class Recorder:
    """Watches a run and keeps what was asked for, in working units."""

    def __init__(self, record: Record, shape: tuple[int, ...]) -> None:
        """Start with nothing seen, of x of this shape."""
        self._every = 0 if record in ("audit", "none") else record if isinstance(record, int) else 1
        self._first = 2 if record == "audit" else 0
        self._most = max(2, _BUDGET // (8 * int(np.prod(shape)))) if record == "auto" else None
        self._frames: list[tuple[int, Array, Branch]] = []
        self._runs = None if record == "none" else _SegmentBuilder(shape)
        self.seen_inside = np.zeros(shape, np.bool_)

    def see(self, t: int, x: Array, branch: Branch) -> None:
        """Take note of iteration t."""
        self.seen_inside |= branch == 0
        if t < self._first or (self._every and t % self._every == 0):
            self._frames.append((t, x.copy(), branch.copy()))
            if self._most and len(self._frames) > self._most:
                self._frames = self._frames[::2]
                self._every *= 2
        if self._runs is not None:
            self._runs.see(t, x, branch)

    def frames(self, t: int, x: Array, branch: Branch) -> tuple[Ints, Array, Branch]:
        """The iterations kept, the last one (t, x, branch) among them."""
        frames = self._frames
        if not frames or frames[-1][0] != t:
            frames = [*frames, (t, x.copy(), branch.copy())]
        return (
            np.array([frame[0] for frame in frames]),
            np.array([frame[1] for frame in frames], np.float64),
            np.array([frame[2] for frame in frames], np.int8),
        )

    def segments(self, iterations: int, unit: Array) -> Segments | None:
        """The runs of equal branches, in the units of the data."""
        return None if self._runs is None else self._runs.finish(iterations, unit)


class _SegmentBuilder:
    """Run-length coding of every node's branch, with the range of x in each run."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._branch = np.full(shape, _NONE_YET, np.int8).reshape(-1)
        self._start = np.zeros(len(self._branch), np.int64)
        self._low = np.zeros(len(self._branch))
        self._high = np.zeros(len(self._branch))
        self._closed: list[tuple[NDArray[Any], ...]] = []

    def see(self, t: int, x: Array, branch: Branch) -> None:
        x, branch = x.reshape(-1), branch.reshape(-1)
        changed = branch != self._branch
        if changed.any():
            index = np.flatnonzero(changed)
            if t:
                self._close(index, t)
            self._branch[index] = branch[index]
            self._start[index] = t
            self._low[index] = x[index]
            self._high[index] = x[index]
        np.minimum(self._low, x, out=self._low)
        np.maximum(self._high, x, out=self._high)

    def finish(self, iterations: int, unit: Array) -> Segments:
        self._close(np.arange(len(self._branch)), iterations)
        index, start, stop, branch, low, high = (np.concatenate(column) for column in zip(*self._closed, strict=True))
        order = np.lexsort((start, index))
        coordinates = int(np.prod(self._shape[1:]))
        node, coordinate = np.divmod(index[order], coordinates)
        factor = np.broadcast_to(unit, self._shape[1:]).reshape(-1)[coordinate]
        start, stop, branch, low, high = (column[order] for column in (start, stop, branch, low, high))
        return Segments(node, coordinate, start, stop, branch, low * factor, high * factor)

    def _close(self, index: Ints, stop: int) -> None:
        start, branch, low, high = (each[index] for each in (self._start, self._branch, self._low, self._high))
        self._closed.append((index, start, np.full(len(index), stop), branch, low, high))
