"""The search of many coordinates at once, bit by bit, as everybody sees it: what is asked next, and what totals mean.

An offset (`formats.py`) is a number of so many bits. All know the first bits of the offset that is looked for, its
*prefix*, and how many values begin with it. The next question of every coordinate is the same: how many of those have
a 0 as their next bit? The total says by which bit the prefix grows, and how many values are left.

Rules:
- A probe of a coordinate is one small number a client, 0 or 1 times its weight: totals fit into a byte for fewer than
  256 clients. There are at most as many probes as an offset has bits.
- Where one value alone is left and all weigh the same, the sum of what is left of it is asked, which is the rest of the
  answer; of several values no such sum is ever asked. Where weights differ, bits are asked to the last.
- Where values are to be kept up to a rank, and not one to be found, the search ends as soon as a prefix tells those
  kept from the others (`keep`): what lies there is then known less well than an answer.
- A trimmed mean is two such cuts and the sum of what lies between. The mean around the median is the median, a cut by
  how far everybody is from it (of two that are equally far the lower comes first), and the sum of those before it. What
  is tied at a cut is the same number, so that how many of it are kept is all that matters.
- Everything here follows from totals. One's own answers are computed beside it, and change nothing in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.protocol.search import Impossible
from midst.protocol.vectors.formats import Words, modulo, word_of
from midst.types import Bools

Lanes = NDArray[np.intp]  # which coordinates
Statistic = Literal["quantile", "mean", "trimmed mean", "mean around median"]


class Part(NamedTuple):
    """Some of the numbers that a question asks for.

    Attributes:
        size: how many.
        bits: totals are below 2^bits.
    """

    size: int
    bits: int


Question = tuple[Part, ...]
Numbers = list[Words]  # one array a part


@dataclass(frozen=True)
class Goal:
    """What is to be found of every coordinate.

    Attributes:
        statistic: which.
        total: the weight of all clients.
        rank: of the wanted value, from 1 on; of the median, around which a mean is taken.
        trim: how many values a trimmed mean leaves out at each end, and a mean around the median in all.
        alike: whether all clients weigh one.
    """

    statistic: Statistic
    total: int
    rank: int = 1
    trim: int = 0
    alike: bool = True

    def __post_init__(self) -> None:
        adds_up = self.statistic in ("trimmed mean", "mean around median")
        if adds_up and not self.alike:
            raise InputError(f"a {self.statistic} counts every client once; leave weights out")
        if adds_up and (self.trim < 0 or self.kept < 1):
            raise InputError(f"trim leaves none of {self.total} clients; try {floor((self.total - 1) / 2)} or less")

    @property
    def kept(self) -> int:
        """Over how much weight a mean is taken."""
        return self.total - (2 * self.trim if self.statistic == "trimmed mean" else self.trim)

    @property
    def count_bits(self) -> int:
        """Of a number that holds any total of a probe: a power of two, which packs well."""
        needed = self.total.bit_length()
        return next(size for size in (2, 4, 8, 16, 32, 64) if needed <= size)

    def sum_bits(self, most: int) -> int:
        """Return the bits of a number that holds the sum of all offsets, none of which is above `most`."""
        return whole_bytes((most * self.total).bit_length())


class Bracket:
    """Where a search by bits stands, of the coordinates that are not known yet.

    Attributes:
        lanes: which coordinates.
        left: bits that are not known.
        prefix: those that are.
        rank: of what is looked for, among the values with this prefix.
        inside: weight of the values with this prefix.
        found: of all coordinates, the answer; or the largest offset that is kept.
        tied: where values that are kept and others have that same offset, the weight of those kept,
        over: and of the others.
        counted: which lanes a count is asked of; the others hold one value, of which the rest is asked.
    """

    def __init__(self, coordinates: int, bits: int, goal: Goal, rank: int, *, keep: bool) -> None:
        """Nothing is known; with `keep` it is enough to tell the values up to the rank from the others."""
        word, small = word_of(bits), word_of(goal.count_bits)
        self._goal, self._keep = goal, keep
        self.lanes: Lanes = np.arange(coordinates)
        self.left = bits
        self.prefix: Words = np.zeros(coordinates, word)
        self.rank: Words = np.full(coordinates, rank, small)
        self.inside: Words = np.full(coordinates, goal.total, small)
        self.found: Words = np.zeros(coordinates, word)
        self.tied: Words = np.zeros(coordinates, small)
        self.over: Words = np.zeros(coordinates, small)
        self.counted: Bools = np.ones(coordinates, np.bool_)

    @property
    def question(self) -> Question | None:
        """What is asked: a count of every coordinate, and the rest of the value where a bracket holds only one."""
        counted = int(np.count_nonzero(self.counted))
        parts = (
            Part(counted, self._goal.count_bits),
            Part(len(self.lanes) - counted, whole_bytes(self.left)),
        )
        return tuple(part for part in parts if part.size) or None

    def answers(self, own: Words, weight: int) -> Numbers:
        """What one client answers, of whose offsets of all coordinates `own` are."""
        mine = own if len(self.lanes) == len(own) else own[self.lanes]
        if self.counted.all():
            return [self._counts(mine, self.prefix, weight)]
        rest = self._rest(mine[~self.counted], self.prefix[~self.counted], weight)
        if not self.counted.any():
            return [rest]
        return [self._counts(mine[self.counted], self.prefix[self.counted], weight), rest]

    def _counts(self, mine: Words, prefix: Words, weight: int) -> Words:
        """The weight, where an offset begins with the prefix and a 0."""
        inside = (mine >> mine.dtype.type(self.left - 1)) == (prefix << prefix.dtype.type(1))
        small = word_of(self._goal.count_bits)
        return inside.view(np.uint8) if small == np.uint8 and weight == 1 else np.asarray(inside * small.type(weight))

    def _rest(self, mine: Words, prefix: Words, weight: int) -> Words:
        """What follows on the prefix, where an offset begins with it."""
        inside = (mine >> mine.dtype.type(self.left)) == prefix
        rest = modulo(mine, self.left)
        return np.asarray((rest * (inside & (weight > 0))).astype(word_of(whole_bytes(self.left))))

    def fold(self, totals: Numbers) -> None:
        """What follows from the totals.

        Raises:
            Impossible: no values have these totals.
        """
        counted = self.counted
        alone = ~counted
        done = alone.copy()
        if alone.any():
            low = totals[-1].astype(self.found.dtype)
            if (totals[-1] != modulo(totals[-1], self.left)).any():
                raise Impossible("the only value of a bracket lies outside it")
            self.found[self.lanes[alone]] = (self.prefix[alone] << low.dtype.type(self.left)) | low
        self.left -= 1
        if counted.any():
            done[counted] = self._halve(self.lanes[counted], counted, totals[0])
        going = ~done
        self.lanes, self.prefix = self.lanes[going], self.prefix[going]
        self.rank, self.inside = self.rank[going], self.inside[going]
        self.counted = np.ones(len(self.lanes), np.bool_)
        if self._goal.alike and not self._keep:
            self.counted = np.asarray(self.inside != 1)

    def _halve(self, lanes: Lanes, counted: Bools, zeros: Words) -> Bools:
        """The half of every bracket in which the search goes on; of which it need not."""
        prefix, rank, inside = self.prefix[counted], self.rank[counted], self.inside[counted]
        one = prefix.dtype.type(1)
        if (zeros > inside).any():
            raise Impossible("more values lie in half of a bracket than in all of it")
        down = rank <= zeros
        prefix = prefix << one
        done = zeros == rank if self._keep else np.zeros(len(lanes), np.bool_)
        if done.any():  # all that begins with the prefix and a 0 is kept, and nothing behind it
            self.found[lanes[done]] = ((prefix[done] | one) << prefix.dtype.type(self.left)) - one
        prefix |= ~down
        rank = np.where(down, rank, rank - zeros)
        inside = np.where(down, zeros, inside - zeros)
        if (rank > inside).any():
            raise Impossible("the bracket that holds the answer holds too few values")
        if self.left == 0:
            last = ~done
            self.found[lanes[last]] = prefix[last]
            self.tied[lanes[last]], self.over[lanes[last]] = rank[last], (inside - rank)[last]
            done[:] = True
        self.prefix[counted], self.rank[counted], self.inside[counted] = prefix, rank, inside
        return np.asarray(done)


class VectorSearch:
    """The search of some coordinates, whatever is to be found: one bracket after the other, and perhaps a sum.

    Attributes:
        bracket: where the search by bits stands; None where a sum is asked, and at the end.
        answer: in the end, offsets of values; or, where a mean is taken, what the offsets kept add up to.
    """

    def __init__(self, coordinates: int, bits: int, most: int, goal: Goal) -> None:
        """Ready to ask about so many coordinates, of offsets of so many bits and none above `most`."""
        self._count, self._bits, self._most, self._goal = coordinates, bits, most, goal
        self._cuts: list[Bracket] = []  # what brackets have found
        self._wanted = _brackets(goal)
        self.bracket: Bracket | None = None
        self.answer: Words | None = None
        self._go_on()

    @property
    def question(self) -> Question | None:
        """What is asked now; None once the answer is there."""
        if self.answer is not None:
            return None
        if self.bracket is not None:
            return self.bracket.question
        return (Part(self._count, self._goal.sum_bits(self._most)),)

    def answers(self, own: Words, weight: int = 1) -> Numbers:
        """What one client answers; `own` are its offsets of these coordinates."""
        if self.bracket is not None:
            asked = distances(own, self._cuts[0].found, self._bits) if self._is_around else own
            return self.bracket.answers(asked, weight)
        kept = own if self._goal.trim == 0 else np.where(self._is_kept(own), own, own.dtype.type(0))
        word = word_of(self._goal.sum_bits(self._most))
        return [kept.astype(word) * word.type(weight)]

    def fold(self, totals: Numbers) -> None:
        """The next question, from the totals of this one.

        Raises:
            Impossible: no values have these totals.
        """
        if self.bracket is None:
            self.answer = self._without_ties(totals[0].astype(np.uint64))
            if (self.answer > np.uint64(self._most * self._goal.kept)).any():
                raise Impossible("a sum is larger than that of any values")
            return
        self.bracket.fold(totals)
        if self.bracket.question is None:
            if not self._is_around and (self.bracket.found > self._most).any():
                raise Impossible("an answer lies outside the bounds")
            self._cuts.append(self.bracket)
            self._go_on()

    def _go_on(self) -> None:
        """The next bracket; or, after the last, the answer or the sum that it takes."""
        self.bracket = None
        if len(self._cuts) < len(self._wanted):
            rank, keep = self._wanted[len(self._cuts)]
            self.bracket = Bracket(self._count, self._bits + self._is_around, self._goal, rank, keep=keep)
        elif self._goal.statistic == "quantile":
            self.answer = self._cuts[0].found

    # Means of some of the values

    @property
    def _is_around(self) -> bool:
        """Whether it is asked by how far a value is from the median, which is known."""
        return self._goal.statistic == "mean around median" and bool(self._cuts)

    def _is_kept(self, own: Words) -> Bools:
        """Which of one's offsets the mean is taken over; with ties at a cut, whether they are kept or not."""
        low, high = self._cuts
        if self._goal.statistic == "trimmed mean":
            return np.asarray(((own > low.found) | ((own == low.found) & (low.tied > 0))) & (own <= high.found))
        return np.asarray(distances(own, low.found, self._bits) <= high.found)

    def _without_ties(self, total: Words) -> Words:
        """The sum of what is kept: less what was tied at a cut, and is not."""
        if self._goal.trim == 0:
            return total
        low, high = self._cuts
        over = high.over.astype(np.uint64)
        if self._goal.statistic == "trimmed mean":
            return np.asarray(total - (low.found * low.tied.astype(np.uint64) + high.found * over))
        return np.asarray(total - at_distance(high.found.astype(np.uint64), low.found) * over)


def distances(offsets: Words, median: Words, bits: int) -> Words:
    """Twice how far offsets are from the median's, less 1 where they are below it: all different, and in order."""
    word = word_of(bits + 1)
    offsets, median = offsets.astype(word), median.astype(word)
    below = offsets < median
    return np.asarray((np.where(below, median - offsets, offsets - median) << word.type(1)) - below)


def at_distance(far: Words, median: Words) -> Words:
    """Inverse of `distances`."""
    one, median = far.dtype.type(1), median.astype(far.dtype)
    return np.asarray(np.where(far & one, median - ((far + one) >> one), median + (far >> one)))


def _brackets(goal: Goal) -> list[tuple[int, bool]]:
    """What is searched for, one after the other: a rank, and whether it is only to be told apart from the next."""
    if goal.statistic == "quantile":
        return [(goal.rank, False)]
    if goal.statistic == "trimmed mean" and goal.trim:
        return [(goal.trim, True), (goal.total - goal.trim, True)]
    if goal.statistic == "mean around median" and goal.trim:
        return [(goal.rank, False), (goal.kept, True)]
    return []


def whole_bytes(bits: int) -> int:
    """So many bits, or the few more that fill bytes."""
    return -(-bits // 8) * 8
