"""How a search closed in, as rows that a picture draws: what a probe asked and was told, and which cell it opened.

Rules:
- Only what everybody learns is read: probes, and what was sought. Private values are, by `find_places` only.
- A row's cells are drawn equally wide, whatever they span: the first may be all numbers there are, the last one float.
- A cell of one number is marked "= that number"; any other border by its own, so far as it differs from its neighbours.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

import numpy as np

from midst.objectives import Quantile
from midst.plots.style import tidy_power
from midst.trace import Probe, Trace
from midst.types import Array

_APART = 0.04  # of the width, between two probes of one step
_NARROWER, _NARROWEST = 0.04, 0.36  # of the width: by how much each row is, where only brackets are known
_EDGE = 0.05  # of a cell, in which no value is marked
_MOST_DIGITS = 17
_LEAST_DIGITS = 2
_PLAIN = 1e6  # numbers below are written without a power of ten


@dataclass(frozen=True)
class ProbeRow:
    """One probe.

    Attributes:
        step: in which step of the search, from 0 on.
        left: where it begins, from 0 to 1: a step may ask about two brackets, side by side.
        right: where it ends.
        ends: the numbers at its lower end, its thresholds and its upper end.
        totals: the weight in each of its cells, from left to right; None where it is not known.
        chosen: the cells that hold what is sought.
        opens: the row, by its number, and the cell of it that this one looks into; None for the first.
        single: the cells of one number.
        marks: what stands under it: how many cells from its left end, and the words; the most telling ones first.
    """

    step: int
    left: float
    right: float
    ends: tuple[float, ...]
    totals: tuple[int | None, ...]
    chosen: tuple[int, ...]
    opens: tuple[int, int] | None
    single: tuple[int, ...]
    marks: tuple[tuple[float, str], ...]

    def place(self, cells: float) -> float:
        """Where a number of cells from its left end lies, from 0 to 1."""
        return self.left + (self.right - self.left) * cells / len(self.totals)


def make_rows(trace: Trace, coordinate: int = 0) -> tuple[ProbeRow, ...]:
    """The rows of a search, in order; none where there was none.

    Args:
        trace: of a search, or of an iteration that ended in one.
        coordinate: of which coordinate.
    """
    probes = [probe for probe in trace.probes if probe.coordinate == coordinate]
    if not probes or not isinstance(trace.objective, Quantile):
        return ()
    ranks = trace.objective.ranks(sum(probes[0].totals))
    below = {probes[0].edges[0]: 0}  # the weight at or below each edge
    rows: list[ProbeRow] = []
    origin: dict[tuple[int, int], tuple[int, int]] = {}  # a bracket, and the cell that it was
    for step, group in groupby(probes, key=lambda probe: probe.step):
        together = list(group)
        width = (1 + _APART) / len(together)
        for k, probe in enumerate(together):
            sums = list(accumulate(probe.totals, initial=below[probe.edges[0]]))
            below |= dict(zip(probe.edges, sums, strict=True))
            inside = [rank for rank in ranks if sums[0] < rank <= sums[-1]]
            chosen = tuple(dict.fromkeys(bisect_left(sums, rank) - 1 for rank in inside))
            opens = origin.get((probe.edges[0], probe.edges[-1]))
            origin |= {ends: (len(rows), cell) for cell, ends in enumerate(pairwise(probe.edges))}
            single = tuple(cell for cell, (a, b) in enumerate(pairwise(probe.edges)) if b - a == 1)
            ends = _ends(probe, lowest=probe.edges[0] == probes[0].edges[0])
            marks = _marks(ends, chosen, single)
            left = k * width
            rows.append(ProbeRow(step, left, left + width - _APART, ends, probe.totals, chosen, opens, single, marks))
    return tuple(rows)


def count_steps(trace: Trace) -> int:
    """The steps of a search: its probes, and a sum that ends it where the last cell has more than one number."""
    return max((_count_steps(make_rows(trace, k)) for k in {probe.coordinate for probe in trace.probes}), default=0)


def _count_steps(rows: Sequence[ProbeRow]) -> int:
    opened = {row.opens for row in rows}
    ends = ((k, cell, cell in row.single) for k, row in enumerate(rows) for cell in row.chosen)
    summed = any((k, cell) not in opened and not single for k, cell, single in ends)
    return 1 + rows[-1].step + summed


def find_places(trace: Trace, values: Array, coordinate: int = 0) -> list[tuple[int, int, float]]:
    """Where private values lie in the rows, for who may see them: (row, number of the value, place from 0 to 1)."""
    probes = [probe for probe in trace.probes if probe.coordinate == coordinate]
    found = []
    for number, (probe, row) in enumerate(zip(probes, make_rows(trace, coordinate), strict=True)):
        own = probe.keys.keys(values)
        for cell, (a, b) in enumerate(pairwise(probe.edges)):
            low, high = probe.keys.value(a + 1) / 2, probe.keys.value(b) / 2
            for i in np.flatnonzero((own > a) & (own <= b)).tolist():
                share = (values[i] / 2 - low) / (high - low) if high > low else 0.5
                found.append((number, i, row.place(cell + _EDGE + (1 - 2 * _EDGE) * float(np.clip(share, 0, 1)))))
    return found


def nest(brackets: Sequence[tuple[int, float, float, int | None]]) -> tuple[ProbeRow, ...]:
    """Rows where only brackets are known, not how they were cut: each is drawn within the one before.

    Args:
        brackets: after how many steps, the lower and the upper end, and the weight inside, where it is known.
    """
    rows = []
    for k, (step, low, high, inside) in enumerate(brackets):
        left = min(_NARROWER * k, _NARROWEST)
        opens = (k - 1, 0) if k else None
        marks = _marks((low, high), (0,), ())
        rows.append(ProbeRow(step, left, 1 - left, (low, high), (inside,), (0,), opens, (), marks))
    return tuple(rows)


def _ends(probe: Probe, lowest: bool) -> tuple[float, ...]:
    """The numbers of its edges; below all that is allowed there is none."""
    return tuple(map(probe.keys.value, (probe.edges[0] + lowest, *probe.edges[1:])))


def _marks(ends: Sequence[float], chosen: Sequence[int], single: Sequence[int]) -> tuple[tuple[float, str], ...]:
    cells = len(ends) - 1
    words = _tell_apart(ends, [k for k in range(cells) if k not in single])
    hidden = {end for k in single for end in (k, k + 1)}
    marks = [(k + 0.5, f"= {tidy_power(f'{ends[k + 1]:.6g}')}") for k in single]
    marks += [(float(k), words[k]) for k in range(len(ends)) if k not in hidden]

    def telling(mark: tuple[float, str]) -> tuple[bool, bool]:
        aside = min((abs(mark[0] - cell - 0.5) for cell in chosen), default=0.0)
        return aside > 0.5, 0 < mark[0] < cells

    return tuple(sorted(marks, key=telling))


def _tell_apart(numbers: Sequence[float], cells: Sequence[int]) -> list[str]:
    """Numbers in so few digits that the two ends of each of these cells still differ."""
    words: list[str] = []
    for digits in range(_LEAST_DIGITS, _MOST_DIGITS + 1):
        words = [_round_to(number, digits) for number in numbers]
        if all(words[k] != words[k + 1] for k in cells):
            break
    return [tidy_power(word) for word in words]


def _round_to(number: float, digits: int) -> str:
    """240 and not 2.4e2."""
    word = f"{number:.{digits}g}"
    return f"{float(word):.{max(digits, 6)}g}" if abs(number) < _PLAIN else word
