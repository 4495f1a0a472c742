"""Disclosure control: which statistics are not to be asked for, by what everybody knows before anything is told.

Rules:
- What is judged is public: the statistics, how many take part, and how many values each of them has. No value is.
- Answers are equations about the values. Whoever knows its own needs as many as the others have to solve for them all:
  minimum, maximum, median, mean and variance of five values determine all five. So at least two of the values that
  somebody does not have must stay free, for every participant.
- The counts of a histogram are known to all participants as soon as they are asked for, however small; what a rule can
  do is to keep small ones out of tables and pictures, and one more, where the sum would tell the one that is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from midst.errors import InputError

if TYPE_CHECKING:
    from midst.statistics import Found, Statistic

Shown = float | Sequence[float | None]  # an answer as people may see it: None is a count that is left out


class Disclosure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold for statistics to be asked for.

    Attributes:
        participants: the least number of them.
        values: the least number of values of all together.
        support: the least number of values that a statistic is over; from 2 on, no minimum, maximum or quantile.
        share: the largest share of all values that one participant may have.
        cell: counts of a histogram below this are left out of tables and pictures, but for 0.
        free: the least number of values that stay free in all equations, for whoever has the most.
    """

    participants: int = 3
    values: int = 5
    support: int = 1
    share: float = 1.0
    cell: int = 1
    free: int = 2

    def __post_init__(self) -> None:
        for name in ("participants", "values", "support", "cell", "free"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be a whole number from 1 on")
        if not 0 < self.share <= 1:
            raise InputError("share must be a number above 0, and at most 1")

    def refusals(self, statistics: Sequence[Statistic], sizes: Sequence[int]) -> Iterator[str]:
        """Why statistics of so many values a participant are not to be asked for, in words.

        Args:
            statistics: what is asked for.
            sizes: how many values each participant has.
        """
        from midst.statistics import Plan

        total, largest = sum(sizes), max(sizes)
        if len(sizes) < self.participants:
            yield f"{len(sizes)} participants, and at least {self.participants} are asked for"
        if total < self.values:
            yield f"{total} values in all, and at least {self.values} are asked for"
        if largest > self.share * total:
            yield f"one participant has {largest} of {total} values, more than a share of {self.share:g}"
        for each in statistics:
            if each.least > total:
                yield f"{each.name} of {total} values; it takes {each.least}"
            elif each.support(total) < self.support:
                over = f"{each.name} is over {each.support(total)} of the values"
                yield f"{over}, and at least {self.support} are asked for"
        if all(each.least <= total for each in statistics):
            equations, unknown = Plan(tuple(statistics), total).equations, total - largest
            if unknown - equations < self.free:
                yield (
                    f"the answers are {equations} equations about {unknown} values that somebody does not have; "
                    f"at least {self.free} must stay free: ask for fewer statistics"
                )

    def shown(self, counts: Sequence[float]) -> list[float | None]:
        """The counts of a histogram without small ones; and without one more, where the sum would tell a single one."""
        small = [k for k, count in enumerate(counts) if 0 < count < self.cell]
        if len(small) == 1:
            others = [k for k, count in enumerate(counts) if count >= self.cell]
            small += sorted(others, key=lambda k: counts[k])[:1]
        return [None if k in small else count for k, count in enumerate(counts)]

    def without_small_counts(self, found: Mapping[str, Found | Sequence[float]]) -> dict[str, Shown]:
        """Statistics by name, as they are shown to people."""
        shown: dict[str, Shown] = {}
        for name, value in found.items():
            if isinstance(value, float):
                shown[name] = value
                continue
            numbers = [float(each) for each in value]
            shown[name] = self.shown(numbers) if name.startswith("histogram:") else numbers
        return shown
