"""What an adversary sees of a search: in which cells how much weight lies, and the answer.

Rules:
- Everybody is told the totals of every probe and the answer, and nothing else. A probe's thresholds follow from what
  was told before, so all of it together says just this: how much weight lies in each cell of the final partition, whose
  edges are all thresholds of all probes.
- A sum of keys is asked of a bracket of one value (a midpoint: two), so the answer narrows that cell to one key. The
  sum of two keys ties the two cells to each other: `Pair`.
- A coalition takes off what it has brought itself. Where it holds one of a pair's values, it knows the other.
- An empty cell says nothing that the others do not.
- `hidden` is what only a simulation knows. Nothing but an upper bound may look at it, and then says so.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from midst.errors import InputError
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.protocol.keys import SIGN, Floats, Grid, Keys
from midst.trace import Probe, Trace, refuse_sum
from midst.types import Array, Ints

ELSEWHERE = -1  # the place of a value of which only its owner knows where it lies
_LARGEST = float(np.finfo(np.float64).max)
_CONTRADICTION = "these searches contradict each other; they are of different values"


@dataclass(frozen=True)
class Cell:
    """The keys (a, b], and how much weight of honest values is among them."""

    a: int
    b: int
    total: int

    def ends(self, keys: Keys) -> tuple[float, float]:
        """Between which numbers its values lie; one number where that is all there is.

        The values of a grid's key are those that round to it.
        """
        if isinstance(keys, Grid):
            low, high = (float((Fraction(2 * (end - SIGN) + 1) / 2) * keys.step) for end in (self.a, self.b))
            return low, high
        if self.b - self.a == 1:
            return keys.value(self.b), keys.value(self.b)
        high = keys.value(self.b)
        return keys.value(self.a), math.inf if high == _LARGEST else high


@dataclass(frozen=True)
class Pair:
    """Of the two values in one or two cells, the sum of the keys is known.

    Attributes:
        cells: which, in ascending order; the same twice where one cell holds both.
        twice: the sum.
    """

    cells: tuple[int, int]
    twice: int


@dataclass(frozen=True, eq=False, repr=False)
class Own:
    """What a coalition has brought.

    Attributes:
        weight: of each of its values.
        side: where each lies, seen from the answer's key: −1, 0 or 1.
        values: the values, where the trace has them.
    """

    weight: Ints
    side: Ints
    values: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """What a search told an adversary about the honest values.

    Attributes:
        keys: of what the cells are made.
        bracket: the first one, which is public; None where nothing bounds the values.
        cells: the final partition, in ascending order; none where nothing was asked.
        owner: of each honest value that has any weight, whose it is.
        weight: and its weight.
        lists: whether participants have brought lists.
        reference: the cells that hold the wanted ranks.
        ranks: the wanted ranks among all values, in units of weight; two of them for a midpoint; none where anything
            between two values would do, or for a mean.
        answer: what was found; None where nothing was.
        pair: the two values of a midpoint.
        own: what the coalition has brought; None where the trace does not tell.
        steps: how many questions were asked.
        hidden: the cell of each honest value, −1 where not even that is known; for upper bounds only.
        apart: where several searches were joined, one for each different question or answer; else none.
    """

    keys: Keys
    bracket: Cell | None
    cells: tuple[Cell, ...]
    owner: Ints
    weight: Ints
    lists: bool
    reference: tuple[int, ...]
    ranks: tuple[int, ...]
    answer: float | None
    pair: Pair | None
    own: Own | None
    steps: int
    hidden: Ints | None
    apart: tuple[Published, ...] = ()

    def __repr__(self) -> str:
        return f"<Published: {len(self.cells)} cells of {len(self.owner)} honest values, {self.steps} steps>"

    @property
    def same_weight(self) -> bool:
        """Whether all honest values count the same."""
        return bool((self.weight == self.weight[0]).all())

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which numbers all values are known to lie beforehand."""
        return (-math.inf, math.inf) if self.bracket is None else self.bracket.ends(self.keys)

    @property
    def answer_ends(self) -> tuple[float, float]:
        """Between which numbers lie the values that have the answer's key."""
        assert self.answer is not None
        key = self.keys.key(self.answer)
        return Cell(key - 1, key, 0).ends(self.keys)


def is_search(trace: Trace) -> bool:
    """Whether the answer was searched for without any iteration before."""
    return trace.iterations == 0


def read_published(trace: Trace, adversary: Adversary, coordinate: int = 0) -> Published | None:
    """What an adversary sees of the search of a run; None where there was none, and no answer.

    Raises:
        InputError: the trace does not tell what the coalition has brought, or contradicts itself; or there was noise.
    """
    if "noise" in trace.parameters:
        raise InputError(f"no audit of a search with noise: what it tells is bounded by {trace.parameters['noise']}")
    refuse_sum(trace)
    probes = [probe for probe in trace.probes if probe.coordinate == coordinate]
    answer = None if trace.answer is None else float(trace.answer[coordinate])
    if not probes and answer is None:
        return None
    return _SearchReader(trace, adversary, coordinate, probes, answer).read()


def join_published(several: Sequence[Published]) -> Published:
    """What searches over the same values told together: how much weight lies at or below each edge of any of them.

    Raises:
        InputError: they are not of the same values, or one of them told the sum of two and others something else.
    """
    first = several[0]
    for seen in several:
        same = (seen.keys, seen.bracket) == (first.keys, first.bracket) and np.array_equal(seen.owner, first.owner)
        if not same or not np.array_equal(seen.weight, first.weight):
            raise InputError("searches are audited together where keys, bounds and participants are the same")
    if any(seen.pair is not None for seen in several):
        if any((seen.cells, seen.pair) != (first.cells, first.pair) for seen in several):
            raise InputError("a midpoint's search is audited by itself, or with the same one again")
        return replace(first, steps=sum(seen.steps for seen in several))
    upto = _weight_up_to(several)
    cells = tuple(Cell(a, b, upto[b] - upto[a]) for a, b in pairwise(sorted(upto)))
    if any(cell.total < 0 for cell in cells):
        raise InputError(_CONTRADICTION)
    ends = [cell.b for cell in cells]
    # of searches with the same question and answer the first stands for all
    apart = {(seen.ranks, seen.answer): seen for seen in reversed(several)}
    return replace(
        first,
        cells=cells,
        reference=tuple(ends.index(first.cells[k].b) for k in first.reference),
        answer=first.answer if len(apart) == 1 else None,
        steps=sum(seen.steps for seen in several),
        hidden=_find_hidden(several, cells),
        apart=tuple(apart.values()) if len(apart) > 1 else (),
    )


def _weight_up_to(several: Sequence[Published]) -> dict[int, int]:
    """How much weight lies at or below each edge of any search."""
    upto: dict[int, int] = {}
    for seen in several:
        below = 0
        for cell in seen.cells:  # between two that do not meet there is nothing
            for edge, weight in ((cell.a, below), (cell.b, below + cell.total)):
                if upto.setdefault(edge, weight) != weight:
                    raise InputError(_CONTRADICTION)
            below += cell.total
    return upto


def _find_hidden(several: Sequence[Published], cells: Sequence[Cell]) -> Ints | None:
    """The cell of each honest value among those of all searches: where the cells it lies in overlap."""
    if any(seen.hidden is None for seen in several):
        return None
    starts = [cell.a for cell in cells]
    # cells that hold one value overlap, and their overlap begins at the last of their beginnings
    lowest = [[seen.cells[c].a for c in seen.hidden.tolist()] for seen in several if seen.hidden is not None]
    return np.array([starts.index(max(each)) for each in zip(*lowest, strict=True)], np.int64)


class _SearchReader:
    """One coordinate of a trace, as read for one adversary."""

    def __init__(
        self, trace: Trace, adversary: Adversary, coordinate: int, probes: Sequence[Probe], answer: float | None
    ) -> None:
        self.probes, self.answer = probes, answer
        self.lists = trace.owners is not None
        self.owners = np.arange(trace.graph.n) if trace.owners is None else trace.owners
        self.weight = trace.whole_weights[self.owners]
        self.total = int(self.weight.sum())
        self.corrupt = np.isin(self.owners, adversary.check(trace.graph))
        self.mine = np.flatnonzero(self.corrupt & (self.weight > 0))
        self.honest = np.flatnonzero(~self.corrupt & (self.weight > 0))
        self.keys: Keys = probes[0].keys if probes else Floats()
        shape = (len(self.owners), -1)
        self.places = None if trace.places is None else trace.places.reshape(shape)[:, coordinate]
        self.values = None if trace.values is None else trace.values.reshape(shape)[:, coordinate]
        self.cells = _partition(probes, self.total)
        if not probes and is_search(trace) and np.count_nonzero(self.weight) == 1:  # its value is the answer
            key = self.keys.key(answer or 0.0)
            self.cells = (Cell(key - 1, key, self.total),)
        self.ranks: tuple[int, ...] = ()
        sought = trace.objective
        if isinstance(sought, Quantile) and (sought.definition != "any" or sought.is_one_value(self.total)):
            self.ranks = sought.ranks(self.total)
        self.reference = tuple(_holding(self.cells, rank) for rank in self.ranks) if self.cells else ()
        self.pair: Pair | None = None

    def read(self) -> Published:
        at = self._cell_of_each()
        if self.answer is not None and self.cells:
            self._narrow(at)
        cells = self.cells
        if at is not None:
            own = np.bincount(at[self.mine], self.weight[self.mine], len(cells)).astype(np.int64).tolist()
            cells = tuple(replace(cell, total=cell.total - off) for cell, off in zip(cells, own, strict=True))
        first = Cell(self.probes[0].edges[0], self.probes[0].edges[-1], self.total) if self.probes else None
        return Published(
            self.keys,
            first,
            cells,
            self.owners[self.honest],
            self.weight[self.honest],
            self.lists,
            self.reference,
            self.ranks,
            self.answer,
            self.pair,
            self._own(),
            1 + max((probe.step for probe in self.probes), default=-1),
            None if at is None or np.any(self.places == ELSEWHERE) else at[self.honest],
        )

    def _edges(self) -> list[int]:
        """What places count: the edges of all probes and of the answer's own cell."""
        edges = {edge for probe in self.probes for edge in probe.edges}
        if self.answer is not None:
            key = self.keys.key(self.answer)
            edges |= {key - 1, key}
        return sorted(edges)

    def _cell_of_each(self) -> Ints | None:
        """In which cell of the partition each value lies."""
        if not self.cells:
            return None
        if self.places is None:
            if len(self.mine):
                raise InputError("this trace does not tell where the coalition's own values lie; simulate the run")
            return None
        edges = self._edges()
        # places count the answer's own two edges too, which divide no cell of the probes: translate
        inner = np.array([bisect_right(edges, cell.b) for cell in self.cells[:-1]], np.int64)
        at = np.searchsorted(inner, self.places, side="right")
        inside = (self.places > 0) & (self.places < len(edges)) | (self.weight == 0)
        totals = np.bincount(at, self.weight, len(self.cells))
        if np.any(self.places == ELSEWHERE):
            return np.asarray(at)
        if not inside.all() or totals.tolist() != [cell.total for cell in self.cells]:
            raise InputError("the places and the totals of this trace do not agree")
        return np.asarray(at)

    def _narrow(self, at: Ints | None) -> None:
        """Of the cells that hold the wanted ranks, keep the answer's key."""
        assert self.answer is not None
        wide = [c for c in dict.fromkeys(self.reference) if self.cells[c].b - self.cells[c].a > 1]
        if not wide:
            return
        if len(self.ranks) == 1:
            self._keep(wide[0], self.keys.key(self.answer))
            return
        assert isinstance(self.keys, Grid)
        twice = twice_of(self.answer, self.keys)
        low, high = self.reference
        if low != high and len(wide) == 1:
            self._keep(wide[0], twice - self.cells[low + high - wide[0]].b)
            return
        # who holds one of the two knows the other by subtraction; who holds both learns nothing; all others know the
        # sum
        held = [] if at is None else [int(v) for v in self.mine if at[v] in (low, high)]
        if not held:
            self.pair = Pair((low, high), twice)
        elif len(held) == 1:
            if self.values is None:
                raise InputError(
                    "a corrupt participant holds one of the two middle values; keep the values in the record of the run"
                )
            other = low + high - int(at[held[0]])  # type: ignore[index]
            self._keep(other, twice - self.keys.key(float(self.values[held[0]])))

    def _keep(self, which: int, key: int) -> None:
        cell = self.cells[which]
        if not cell.a < key <= cell.b:
            raise InputError("the answer and the totals of this trace do not agree")
        self.cells = (*self.cells[:which], Cell(key - 1, key, cell.total), *self.cells[which + 1 :])

    def _own(self) -> Own | None:
        weight = self.weight[self.mine]
        if not len(self.mine):
            return Own(weight, weight)
        values = None if self.values is None else self.values[self.mine]
        if self.answer is None:
            return None
        if self.places is None:
            return None if values is None else Own(weight, np.sign(values - self.answer).astype(np.int64), values)
        lowest = bisect_left(self._edges(), self.keys.key(self.answer))  # the place of the answer
        return Own(weight, np.sign(self.places[self.mine] - lowest), values)


def twice_of(midpoint: float, keys: Grid) -> int:
    """The sum of the keys of two values with this midpoint, exactly: a key is a multiple of the step plus SIGN."""
    return round(2 * Fraction(midpoint) / keys.step) + 2 * SIGN


def _partition(probes: Sequence[Probe], total: int) -> tuple[Cell, ...]:
    """The cells between all thresholds of all probes, with their totals."""
    if not probes:
        return ()
    first = probes[0].edges
    # a probe's bracket is a cell of an earlier one: its two ends are known, and its inner edges are new
    upto = {first[0]: 0, first[-1]: total}  # the weight at or below each edge
    for probe in probes:
        if probe.edges[0] not in upto or probe.edges[-1] not in upto:
            raise InputError("a probe of this trace is not of a bracket that was known before")
        below = upto[probe.edges[0]]
        if below + sum(probe.totals) != upto[probe.edges[-1]]:
            raise InputError("the totals of this trace do not add up")
        upto |= dict(zip(probe.edges[1:-1], (below + np.cumsum(probe.totals)).tolist(), strict=False))
    return tuple(Cell(a, b, upto[b] - upto[a]) for a, b in pairwise(sorted(upto)))


def _holding(cells: Sequence[Cell], rank: int) -> int:
    """Which cell holds the value of a rank."""
    return bisect_left(list(accumulate(cell.total for cell in cells)), rank)
