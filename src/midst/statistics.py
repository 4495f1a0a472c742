"""What is asked of all values together: by which names, what a search has to find for it, and what follows from that.

    median  quartiles  iqr  p95        values at a rank: the smallest with at least that share of all at or below it
    min  max  top:3  bottom:3          the first and last of them
    mean  sum  count  variance  std    by sums over all values; the variance is that of a sample, over n − 1
    trimmed:0.1  winsorised:0.1        the mean without the lowest and highest tenth, or with these drawn in to the rest
    mad                                the median of how far values are from their median
    histogram:0,10,20,50               how many lie in [0, 10), [10, 20) and [20, 50]

Rules:
- Everything is computed from whole numbers and rounded once, at the end. Values at a rank are values as they were
  given; sums are of values rounded to the public grid, and exact.
- One session finds all of them: ranks share their probes, sums over all values are asked with the first, and sums
  between two ranks when these are known.
- To trim g values at each end, the sum of all values drawn in to the (g + 1)-th at either end is asked for, less g
  times each of these two: so ties need no care, and the winsorised mean is the same sum. Both ends become public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, inf, isfinite, isqrt

import numpy as np

from midst.errors import InputError, closest
from midst.methods import Search, public_grid, refuse_noise
from midst.protocol.keys import Keys, SumGrid
from midst.protocol.search import Goal, Rules, SearchState, SumGoal
from midst.types import Array

Found = float | Array

_PLAIN = ("median", "quartiles", "iqr", "min", "max", "mean", "sum", "count", "variance", "std", "mad")
_WITH_NUMBER = ("trimmed", "winsorised", "top", "bottom", "histogram")
_QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
_MOST_EDGES = 1000  # of a histogram


@dataclass(frozen=True)
class Statistic:
    """One that is asked for.

    Attributes:
        name: as it was asked for, and as its answer is called.
        kind: the word before the number in its name; "quantile" for p95.
        numbers: those in its name.
    """

    name: str
    kind: str
    numbers: tuple[Fraction, ...] = ()

    @property
    def needs_sums(self) -> bool:
        """Whether it is one of sums, which need a public grid."""
        return self.kind in ("mean", "sum", "variance", "std", "trimmed", "winsorised")

    @property
    def is_list(self) -> bool:
        """Whether its answer is an array."""
        return self.kind in ("quartiles", "top", "bottom", "histogram")

    def ranks(self, total: int) -> tuple[int, ...]:
        """The places, from 1 on, of the values that answer it, among so many."""
        match self.kind:
            case "median" | "mad":
                return (rank_of(Fraction(1, 2), total),)
            case "quantile":
                return (rank_of(self.numbers[0], total),)
            case "quartiles" | "iqr":
                return tuple(rank_of(share, total) for share in _QUARTERS[:: 2 if self.kind == "iqr" else 1])
            case "min" | "bottom":
                return tuple(range(1, 1 + self.least))
            case "max" | "top":
                return tuple(range(total, total - self.least, -1))
            case "trimmed" | "winsorised":
                cut = self.cut(total)
                return (cut + 1, total - cut) if cut else ()
        return ()

    @property
    def least(self) -> int:
        """How many values it takes for the statistic to be there."""
        if self.kind in ("top", "bottom"):
            return int(self.numbers[0])
        return 2 if self.kind in ("variance", "std") else 1

    def cut(self, total: int) -> int:
        """How many values are cut off, or drawn in, at each end."""
        return floor(self.numbers[0] * total)

    def support(self, total: int) -> int:
        """Over how many values it is: of those at a rank, of one."""
        if self.kind in ("mean", "sum", "count", "variance", "std", "winsorised", "mad", "histogram"):
            return total
        return total - 2 * self.cut(total) if self.kind == "trimmed" else max(1, len(self.ranks(total)))


def rank_of(share: Fraction, total: int) -> int:
    """The place, from 1 on, of the smallest value with at least this share of all at or below it."""
    return max(1, ceil(share * total))


# Names


def parse_statistics(names: Iterable[str]) -> tuple[Statistic, ...]:
    """Statistics by their names.

    Raises:
        InputError: there is none of that name, its number does not fit, or it is there twice.
    """
    statistics = tuple(_parse(str(name).strip()) for name in names)
    if not statistics:
        raise InputError(f"no statistics; ask for some of {', '.join(_PLAIN)}, p95, trimmed:0.1, top:3")
    twice = [each.name for k, each in enumerate(statistics) if each.name in [one.name for one in statistics[:k]]]
    if twice:
        raise InputError(f"{twice[0]} is asked for twice; leave one out")
    return statistics


def split_names(text: str) -> list[str]:
    """Names from a line, between commas; the numbers of a histogram are its own."""
    names: list[str] = []
    for word in text.split(","):
        if names and names[-1].startswith("histogram:") and _is_number(word):
            names[-1] += f",{word.strip()}"
        else:
            names.append(word.strip())
    return names


def _is_number(word: str) -> bool:
    try:
        Fraction(word.strip())
    except (ValueError, ZeroDivisionError):
        return False
    return True


def _parse(name: str) -> Statistic:
    if name in _PLAIN:
        return Statistic(name, name)
    if name[:1] == "p" and _is_number(name[1:]):
        share = Fraction(name[1:]) / 100
        if not 0 < share < 1:
            raise InputError(f"{_shown(name)}: a percentile is above 0 and below 100; for these, min and max")
        return Statistic(name, "quantile", (share,))
    kind, _, text = name.partition(":")
    if kind not in _WITH_NUMBER:
        known = f"{', '.join(_PLAIN)}, p95, trimmed:0.1, winsorised:0.1, top:3, bottom:3 or histogram:0,10,20"
        near = closest(kind, (*_PLAIN, *_WITH_NUMBER))
        raise InputError(f"there is no statistic {_shown(name)}; try one of {known}{near}")
    if not all(map(_is_number, text.split(","))):
        raise InputError(f"{_shown(name)}: {kind} needs a number after the colon, such as {_example(kind)}")
    numbers = tuple(Fraction(word.strip()) for word in text.split(","))
    if kind == "histogram":
        edges = [*map(_rounded, numbers)]
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)) or not all(map(isfinite, edges)):
            raise InputError(f"{_shown(name)}: the edges of a histogram are two or more numbers, each above the last")
        if len(numbers) > _MOST_EDGES:
            raise InputError(f"a histogram of {len(numbers)} edges; {_MOST_EDGES} are the most")
    elif len(numbers) > 1:
        raise InputError(f"{_shown(name)}: {kind} takes one number, such as {_example(kind)}")
    elif kind in ("top", "bottom") and (numbers[0] < 1 or numbers[0].denominator > 1 or numbers[0] > _MOST_EDGES):
        raise InputError(f"{_shown(name)}: {kind} needs a whole number from 1 to {_MOST_EDGES}, such as {kind}:3")
    elif kind in ("trimmed", "winsorised") and not 0 <= numbers[0] < Fraction(1, 2):
        raise InputError(f"{_shown(name)}: a share from 0 to below 0.5 is cut off at each end, or nothing is left")
    return Statistic(name, kind, numbers)


def _example(kind: str) -> str:
    shares = {"trimmed": "0.1", "winsorised": "0.1", "histogram": "0,10,20"}
    return f"{kind}:{shares.get(kind, '3')}"


def _shown(name: str) -> str:
    return ascii(name[:40])


# What a search has to find


@dataclass(frozen=True)
class Plan:
    """What a search has to find for statistics of so many values of each column.

    Attributes:
        statistics: of every column.
        total: how many values a column has.
        columns: how many there are.
    """

    statistics: tuple[Statistic, ...]
    total: int
    columns: int = 1

    def __post_init__(self) -> None:
        for each in self.statistics:
            if each.least > self.total:
                raise InputError(f"{each.name} of {self.total} values; it takes {each.least}")

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The places of all values that become public, of each column."""
        return tuple(sorted({rank for each in self.statistics for rank in each.ranks(self.total)}))

    @property
    def has_mad(self) -> bool:
        """Whether the distances from the median are searched too."""
        return any(each.kind == "mad" for each in self.statistics)

    @cached_property
    def goals(self) -> tuple[Goal, ...]:
        """Every rank of every column; then, of each, the median of the distances."""
        found = [Goal(k, (rank,)) for k in range(self.columns) for rank in self.ranks]
        if self.has_mad:
            middle = rank_of(Fraction(1, 2), self.total)
            found += [Goal(self.columns + k, (middle,)) for k in range(self.columns)]
        return tuple(found)

    def goal(self, column: int, rank: int) -> int:
        """Which of the goals is a rank of a column."""
        return self.goals.index(Goal(column, (rank,)))

    @cached_property
    def sums(self) -> tuple[SumGoal, ...]:
        """Every sum of every column, once."""
        every = (goal for k in range(self.columns) for each in self.statistics for goal in self.sums_of(each, k))
        return tuple(dict.fromkeys(every))

    def sums_of(self, statistic: Statistic, column: int) -> tuple[SumGoal, ...]:
        """Those that a statistic of a column follows from."""
        if statistic.kind in ("variance", "std"):
            return SumGoal(column), SumGoal(column, power=2)
        ranks = statistic.ranks(self.total)
        if statistic.kind in ("trimmed", "winsorised") and ranks:
            low, high = (self.goal(column, rank) for rank in ranks)
            return (SumGoal(column, ends=(low, high)),)
        return (SumGoal(column),) if statistic.needs_sums else ()

    def rules(
        self,
        method: Search,
        keys: Keys,
        brackets: Sequence[tuple[int, int]],
        grid: SumGrid | None = None,
        ends: Sequence[tuple[int, int]] = (),
    ) -> Rules:
        """The rules of the search.

        Args:
            method: arity and spacing.
            keys: how numbers become keys.
            brackets: the first one of each column.
            grid: of the sums, where it is not that of the keys.
            ends: between which numbers, on that grid, values of each column lie; the brackets', if not given.

        Raises:
            InputError: there are sums, and no grid for them; or there is to be noise.
        """
        refuse_noise(method)
        if self.sums and grid is None:
            grid, ends = public_grid(keys, brackets, [each.name for each in self.statistics if each.needs_sums])
        middle = rank_of(Fraction(1, 2), self.total)
        edges = sorted({cut for each in self.statistics for cut in cuts_of(each, keys)})
        return Rules(
            keys=keys,
            brackets=(*brackets, *(keys.widest(a, b) for a, b in brackets if self.has_mad)),
            total=self.total,
            unit=1,
            goals=self.goals,
            arity=method.arity,
            spacing=method.way,
            quantiles=method.quantiles,
            sums=self.sums,
            grid=grid if self.sums else None,
            ends=tuple(ends),
            cuts=(tuple(edges),) * self.columns if edges else (),
            centres=tuple(self.goal(k, middle) for k in range(self.columns) if self.has_mad),
        )

    @property
    def equations(self) -> int:
        """How many independent equations about the values of a column become public."""
        return len(self.ranks) + self.has_mad + len(self.sums) // self.columns


def cuts_of(statistic: Statistic, keys: Keys) -> list[int]:
    """The keys up to which values are counted for a histogram: below each edge, and up to the last.

    Edges and values are compared as floats, as NumPy does, so that an edge of 0.3 is on a grid of 0.1.
    """
    if statistic.kind != "histogram":
        return []
    *lower, last = ((edge, keys.key(edge)) for edge in map(float, statistic.numbers))
    return [*(key - (keys.value(key) >= edge) for edge, key in lower), last[1] - (keys.value(last[1]) > last[0])]


# What follows from what it found


def read_statistics(plan: Plan, search: SearchState) -> list[dict[str, Found]]:
    """The statistics of every column, by name, once the search is over."""
    return [{each.name: _read(plan, search, each, k) for each in plan.statistics} for k in range(plan.columns)]


def _read(plan: Plan, search: SearchState, statistic: Statistic, column: int) -> Found:
    rules, total = search.rules, plan.total
    values = [search.value(plan.goal(column, rank)) for rank in statistic.ranks(total)]
    match statistic.kind:
        case "count":
            return float(total)
        case "iqr":
            return values[1] - values[0]
        case "mad":
            return search.value(len(plan.goals) - plan.columns + column)
        case "histogram":
            counts = [search.count(column, cut) for cut in cuts_of(statistic, rules.keys)]
            return np.diff(np.array(counts, np.float64))
        case "quartiles" | "top" | "bottom":
            return np.array(values)
        case "median" | "quantile" | "min" | "max":
            return values[0]
    assert rules.grid is not None, "sums need a grid"
    step, goals = rules.grid.step, plan.sums_of(statistic, column)
    above = [_above(plan, search, goal) for goal in goals]
    if statistic.kind in ("variance", "std"):
        spread = (total * above[1] - above[0] ** 2) * step**2 / (total * (total - 1))
        return _rounded(spread) if statistic.kind == "variance" else root(spread)
    if statistic.kind == "mean":
        return search.mean(column)
    low, high = (key - rules.grid.zero for key in search.ends_of(goals[0]))
    summed = above[0] + total * low
    if statistic.kind == "trimmed":
        cut = statistic.cut(total)
        return _rounded((summed - cut * (low + high)) * step / (total - 2 * cut))
    return _rounded(summed * step / (total if statistic.kind == "winsorised" else 1))


def _above(plan: Plan, search: SearchState, goal: SumGoal) -> int:
    """How far all values, clipped, lie above the lower end, in steps of the grid."""
    above = search.sums[plan.sums.index(goal)]
    assert above is not None, "the search is over"
    return above


def _rounded(number: Fraction) -> float:
    """The nearest float; infinite where it is larger than all of them."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def root(number: Fraction) -> float:
    """The square root, rounded once."""
    places = max(0, 64 - (number.numerator.bit_length() - number.denominator.bit_length()) // 2)
    squared = Fraction(number * 4**places)
    whole = isqrt(floor(squared))
    # one more bit says that there is a rest, so that nothing looks halfway between two floats which is not
    return float(Fraction(2 * whole + (whole**2 != squared), 2 << places))
