"""The search of long vectors when all clients' numbers are at hand.

Rules:
- `drive` is the plain way: everybody answers every question of `VectorSearch`, and the answers are added up.
- `search_sorted` finds the same from offsets in order, many times faster. Which bit tells two neighbours apart says
  after how many probes a coordinate is known: answer, steps and bytes are those of the plain way, to the last one.
- Clients are few and coordinates many, so offsets are sorted by a fixed network of comparisons (Batcher's odd-even
  merge sort), each of them over all coordinates at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from midst.protocol.vectors.formats import Words, word_of
from midst.protocol.vectors.search import (
    Goal,
    Numbers,
    Part,
    Question,
    VectorSearch,
    at_distance,
    distances,
    whole_bytes,
)
from midst.types import Ints

_MOST_IN_NETWORK = 256  # clients; with more, NumPy's own sort is as fast
_NUMBERS = 1 << 18  # sorted at a time: what stays in the cache


class Found(NamedTuple):
    """What came of the search of some coordinates.

    Attributes:
        answer: as in `VectorSearch`.
        questions: what was asked, step by step.
    """

    answer: Words
    questions: list[Question]


Watch = Callable[[VectorSearch, Numbers], None]


def drive(
    offsets: Words, bits: int, most: int, goal: Goal, weights: Sequence[int], watch: Watch | None = None
) -> Found:
    """The search as clients go about it; `watch` is called before every step, with what is told in it.

    The offsets are those of all clients, (clients, coordinates), of so many bits and none above `most`.
    """
    search, questions = VectorSearch(offsets.shape[1], bits, most, goal), []
    while (question := search.question) is not None:
        totals = add_up([search.answers(own, weight) for own, weight in zip(offsets, weights, strict=True)], question)
        if watch is not None:
            watch(search, totals)
        search.fold(totals)
        questions.append(question)
    assert search.answer is not None
    return Found(search.answer, questions)


def add_up(answers: Sequence[Numbers], question: Question) -> Numbers:
    """The totals of everybody's answers."""
    return [np.sum([each[k] for each in answers], axis=0, dtype=word_of(part.bits)) for k, part in enumerate(question)]


def search_sorted(offsets: Words, bits: int, most: int, goal: Goal) -> Found:
    """The same as `drive` by putting offsets in order, where all clients weigh one."""
    the_sum: Question = (Part(offsets.shape[1], goal.sum_bits(most)),)
    if goal.statistic == "mean" or (goal.statistic != "quantile" and goal.trim == 0):
        return Found(_sum(offsets), [the_sum])
    rows = sort_rows(offsets)
    if goal.statistic == "quantile":
        return Found(rows[goal.rank - 1], _asked_of_one(rows, goal.rank, bits, goal))
    if goal.statistic == "trimmed mean":
        last = goal.total - goal.trim
        asked = _asked_of_cut(rows, goal.trim, bits, goal) + _asked_of_cut(rows, last, bits, goal)
        return Found(_sum(rows[goal.trim : last]), [*asked, the_sum])
    median = rows[goal.rank - 1]
    nearest = sort_rows(distances(offsets, median, bits))
    asked = _asked_of_one(rows, goal.rank, bits, goal) + _asked_of_cut(nearest, goal.kept, bits + 1, goal)
    return Found(_sum([at_distance(far, median) for far in nearest[: goal.kept]]), [*asked, the_sum])


def sort_rows(offsets: Words) -> list[Words]:
    """The smallest of every coordinate, the second smallest, and so on."""
    if len(offsets) > _MOST_IN_NETWORK:
        return list(np.sort(offsets, axis=0))
    ordered = np.empty_like(offsets)
    step = max(1, _NUMBERS // len(offsets))
    for start in range(0, offsets.shape[1], step):
        rows = [row.copy() for row in offsets[:, start : start + step]]
        spare = np.empty_like(rows[0])
        for i, j in network(len(rows)):
            np.minimum(rows[i], rows[j], out=spare)
            np.maximum(rows[i], rows[j], out=rows[j])
            rows[i], spare = spare, rows[i]
        for row, place in zip(rows, ordered, strict=True):
            place[start : start + step] = row
    return list(ordered)


@cache
def network(n: int) -> tuple[tuple[int, int], ...]:
    """Batcher's odd-even merge sort of n: comparisons after which any n numbers are in order."""
    found, p = [], 1
    while p < n:
        k = p
        while k:
            for j in range(k % p, n - k, 2 * k):
                pairs = ((i + j, i + j + k) for i in range(min(k, n - j - k)))
                found += [(a, b) for a, b in pairs if a // (2 * p) == b // (2 * p)]
            k //= 2
        p *= 2
    return tuple(found)


def _sum(rows: Words | Sequence[Words]) -> Words:
    return np.asarray(sum((row.astype(np.uint64) for row in rows), np.zeros(rows[0].shape, np.uint64)))


# After how many probes something is known


def _asked_of_one(rows: Sequence[Words], rank: int, bits: int, goal: Goal) -> list[Question]:
    """What is asked for the value of a rank: bits until it stands alone, and then the rest of it."""
    at = rank - 1
    near = [rows[k] for k in (at - 1, at + 1) if 0 <= k < len(rows)]
    probes = np.max([_probes(rows[at], each, bits) for each in near], axis=0)
    ending = np.bincount(probes, minlength=bits + 1)
    counted = _at_least(ending)
    asked = []
    for step in range(1, bits + 1):
        alone = int(ending[step - 1])  # known alone after the probe before
        parts = (Part(int(counted[step]), goal.count_bits), Part(alone, whole_bytes(bits - step + 1)))
        if question := tuple(part for part in parts if part.size):
            asked.append(question)
    return asked


def _asked_of_cut(rows: Sequence[Words], rank: int, bits: int, goal: Goal) -> list[Question]:
    """What is asked to tell the values up to a rank from the others."""
    counted = _at_least(np.bincount(_probes(rows[rank - 1], rows[rank], bits), minlength=bits + 1))
    return [(Part(int(size), goal.count_bits),) for size in counted[1:] if size]


def _probes(one: Words, other: Words, bits: int) -> Ints:
    """Which bit tells two offsets apart, from 1 on; the last, where none does."""
    differ = one ^ other
    # The exponent of a float is how many bits a number has; what rounds up to the next power of two is told apart.
    _, size = np.frexp(differ.astype(np.float64))
    if bits > 53:
        size -= (differ != 0) & ((differ >> np.maximum(size - 1, 0).astype(differ.dtype)) == 0)
    return np.asarray(np.where(differ == 0, bits, bits - size + 1), np.int64)


def _at_least(ending: Ints) -> Ints:
    """How many coordinates end with this probe or a later one."""
    return np.cumsum(ending[::-1])[::-1]
