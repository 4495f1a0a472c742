"""A search when all values are at hand: one, as a simulation needs it, or many at once.

Rules:
- `search_values` drives `SearchState` itself. Where all values weigh the same, one participant that has them all gives
  the totals. `search_with_noise` drives `NoisySearchState`, and draws everybody's noise at once: shares add up.
- `search_many` has its own arithmetic, over runs instead of numbers. Bracket by bracket it is the plain one of a
  single rank: the same float64 operations in the same order, and whole numbers that are never rounded.
- Arrays are (n, runs). Runs that are done are written to the result, and the others copied together.
- In `search_many` a key is a signed number, 2^63 less: the processor compares those faster, and a float's key is
  then its own bits, those below the sign inverted where it is negative.
- Where weights differ no sum is asked for, and a bracket is narrowed down to one key.
- A threshold that is left out is one at a: nothing lies between a and it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from midst.engines.batches import some_of
from midst.problems import Problem
from midst.protocol.keys import MODULUS, SIGN, Floats, Keys, Words
from midst.protocol.masks import split
from midst.protocol.noise import DrawBytes, skellam
from midst.protocol.noisy_search import AnyRules, AnySearch, NoisyRules, NoisySearchState
from midst.protocol.search import (
    SPACING_ORDERS,
    TIE_PROBES,
    ClippedSum,
    OwnValues,
    Question,
    Rules,
    SearchState,
    SearchStep,
    Spacing,
    contribution,
    rank_steps,
    roundest,
    widths,
)
from midst.types import Array, Bools, Ints

_SHARE_RUNNING = 0.8  # with no more than this, those that are done are left out
_FEW = 127  # rows: compared one by one, and counted in a byte; with more, binary search
_WHOLE = 2.0**53  # up to here every whole number is a float
_SMALL = 1e-15  # from here on powers of ten of any use are floats
_TENS = 22  # powers of ten up to here are floats
_LEAST_DECADE = -323
_DECADES = np.array([float(f"1e{power}") for power in range(_LEAST_DECADE, 309)])


# One search


class Searched(NamedTuple):
    """What came of a search.

    Attributes:
        search: where it ends.
        steps: every question and its totals.
        rounds: message rounds it took.
    """

    search: AnySearch
    steps: tuple[SearchStep, ...]
    rounds: int


def search_problem(problem: Problem, rules: AnyRules, draw: DrawBytes) -> Searched:
    """The search of a problem's values. Keys, each step and the signatures take a diameter of rounds each.

    Args:
        problem: whose values.
        rules: what was agreed.
        draw: where random bytes come from, for noise.
    """
    search: AnySearch
    if isinstance(rules, NoisyRules):
        search, steps = search_with_noise(rules, problem.value_keys, lambda: skellam(rules.added, draw))
    else:
        search, steps = search_values(rules, problem.value_keys, problem.search_weights)
    return Searched(search, steps, (len(steps) + 2) * problem.graph.diameter())


def search_with_noise(
    rules: NoisyRules, keys: Words, noise: Callable[[], int]
) -> tuple[NoisySearchState, tuple[SearchStep, ...]]:
    """The noisy search of values that are all at hand.

    Args:
        rules: what was agreed.
        keys: of all values, in any order.
        noise: what everybody adds to the next number, in all.

    Returns:
        Where the search ends, and every step.
    """
    own, search, steps = OwnValues.of(rules, [keys]), NoisySearchState.begin(rules), []
    while (question := search.question) is not None:
        totals = tuple((number + noise()) % MODULUS for number in contribution(question, own, 1))
        steps.append(SearchStep(question, totals))
        search = search.fold(totals)
    return search, tuple(steps)


def search_values(rules: Rules, keys: Words, weights: NDArray[Any]) -> tuple[SearchState, tuple[SearchStep, ...]]:
    """The search of values that are all at hand.

    Args:
        rules: what was agreed; its total is the sum of the weights.
        keys: of all values, (N, m), in any order; (N,) of one coordinate.
        weights: of each value, in units.

    Returns:
        Where the search ends, and every step.
    """
    columns, counted = keys.reshape(len(keys), -1).T, weights
    if not weights.all():
        columns, counted = columns[:, weights > 0], weights[weights > 0]
    alike = bool((counted == counted[0]).all())
    answer = _answers_alike(rules, columns, int(counted[0])) if alike else _answers_by_weight(rules, columns, counted)
    search, steps = SearchState.begin(rules), []
    while (question := search.question) is not None:
        totals = split(answer(search, question), widths(question))
        steps.append(SearchStep(question, totals))
        search = search.fold(totals)
    return search, tuple(steps)


Answers = Callable[[SearchState, Question], list[int]]


def _answers_alike(rules: Rules, columns: NDArray[np.uint64], unit: int) -> Answers:
    """What everybody together answers, where all values weigh the same: as one participant that has them all."""
    own = OwnValues.of(rules, tuple(columns))
    return lambda search, question: contribution(question, search.own_values(own), unit)


def _answers_by_weight(rules: Rules, columns: NDArray[np.uint64], weights: NDArray[Any]) -> Answers:
    """What everybody together answers, where weights differ: cells and sums over all values."""
    orders = [np.argsort(column) for column in columns]
    own = OwnValues.of(rules, [column[order] for column, order in zip(columns, orders, strict=True)])
    up_to = [np.concatenate([[0], np.cumsum(weights[order])]) for order in orders]

    def answer(search: SearchState, question: Question) -> list[int]:
        told: list[int] = []
        for part in question:
            if isinstance(part, ClippedSum):
                each = weights[orders[part.coordinate]].tolist()
                told.append(sum(map(mul, each, part.terms(own.about(part)))))
                continue
            places = np.searchsorted(own.about(part), np.array(part.edges, np.uint64), "right")
            told += np.diff(up_to[part.coordinate][places]).tolist()
        return told

    return answer


# Many


class FoundKeys(NamedTuple):
    """The key of every run's answer, and how many steps its participants would have taken, with the finishing sum."""

    keys: Words
    probes: Ints


def search_many(
    kind: Keys,
    keys: Ints,
    weights: Ints | None,
    a: ArrayLike,
    b: ArrayLike,
    ranks: ArrayLike,
    *,
    arity: int = 3,
    spacing: Spacing = "rank",
    opening: Words | None = None,
) -> FoundKeys:
    """Searches of one rank each, many at once.

    Args:
        kind: what the keys are keys of.
        keys: signed ones (`signed_keys`), (n, runs), in order along the first axis. Where a run has fewer values than
            others, the rest is above b.
        weights: of the keys, in units, and 0 where a run has no value; None where each is one.
        a: the first brackets' lower ends, as keys: one a run, or one for all.
        b: likewise the upper ends.
        ranks: the wanted ones, from 1 on, in units of weight; one a run, or one for all.
        arity: thresholds a probe.
        spacing: the first way of placing them.
        opening: thresholds of the first probe, as keys, (runs, k).
    """
    count, ways = keys.shape[1], _Ways(kind, arity, spacing)
    found = FoundKeys(np.zeros(count, np.uint64), np.zeros(count, np.int64))
    low, high = (np.broadcast_to(_signed(np.asarray(end, np.uint64)), count) for end in (a, b))
    runs = _RunningSearches.begin(keys, weights, low, high, np.broadcast_to(np.asarray(ranks, np.int64), count))
    with np.errstate(over="ignore", invalid="ignore"):  # shares of a bracket as wide as all floats
        while True:
            k = np.flatnonzero(runs.done())
            if k.size:
                found.keys[runs.row[k]] = unsigned(runs.answers(k))
                found.probes[runs.row[k]] = runs.steps[k] + (runs.b[k] - runs.a[k] != 1)
                runs.running[k] = False
            left = np.flatnonzero(runs.running)
            if not left.size:
                return found
            if left.size <= _SHARE_RUNNING * len(runs.row):
                runs = some_of(runs, left)
            placed = ways.place(runs) if opening is None else _signed(opening[runs.row].T)
            runs.fold(runs.inner(placed), ways, opened=opening is not None)
            opening = None


@dataclass(eq=False, repr=False)
class _RunningSearches:
    """Those under way; the last axis of every array is the run.

    Attributes:
        row: which of the result they are.
        keys: of the values.
        up_to: weight of the first k values; None where each is one.
        unit: the weight of every value that has any; 0 where they differ. What counts weight has its type: small
            numbers where there are few values and each weighs one.
        running: which are not done.
        steps: questions answered so far.
        a, b, below, inside: as in `protocol.search.Bracket`, and
        rank, way, tied, tie_probes: as in `protocol.search.Track`.
    """

    row: Ints
    keys: Ints
    up_to: Ints | None
    unit: Ints
    running: Bools
    steps: Ints
    a: Ints
    b: Ints
    below: Ints
    inside: Ints
    rank: Ints
    way: NDArray[np.int8]
    tied: Bools
    tie_probes: NDArray[np.int8]

    @classmethod
    def begin(cls, keys: Ints, weights: Ints | None, a: Ints, b: Ints, rank: Ints) -> _RunningSearches:
        row, zeros = np.arange(len(rank)), np.zeros(len(rank), np.int64)
        if weights is None:
            up_to, inside = None, _count(keys, b)
            unit, rank = np.ones_like(inside), rank.astype(inside.dtype)
        else:
            up_to = np.concatenate([zeros[None], np.cumsum(weights, axis=0)])
            most = weights.max(axis=0)
            same = ((weights == 0) | (weights == most)).all(axis=0)
            unit, inside = np.where(same, most, 0), up_to[-1]
        flags, small = np.zeros(len(rank), np.bool_), np.zeros(len(rank), np.int8)
        return cls(
            row, keys, up_to, unit, ~flags, zeros, a, b, np.zeros_like(inside), inside, rank, small, flags, small
        )

    def done(self) -> Bools:
        """Those that are known: a bracket of one key, or of one value, of which the sum is asked."""
        one_key = self.b - self.a == 1  # where the difference wraps, it is not 1 either
        return np.asarray(self.running & ((self.inside == self.unit) | one_key))

    def answers(self, k: Ints) -> Ints:
        """The keys of runs k, which are known: of one key b, or of the first value inside that has any weight."""
        below = self.below[k]
        first = below.astype(np.int64) if self.up_to is None else (self.up_to[1:, k] <= below).sum(axis=0)
        place = np.minimum(first, len(self.keys) - 1)  # of one key, it may be the last edge
        return np.where(self.b[k] - self.a[k] == 1, self.b[k], self.keys[place, k])

    def inner(self, placed: Ints) -> Ints:
        """Thresholds with those left out that are not inside the bracket; where none is, its middle."""
        inside = (placed > self.a) & (placed < self.b)
        kept = np.where(inside, placed, self.a)
        none = ~inside.any(axis=0)
        if none.any():
            half = (self.b - self.a).view(np.uint64) >> np.uint64(1)
            kept[0] = np.where(none, self.a + half.view(np.int64), kept[0])
        return kept

    def fold(self, thresholds: Ints, ways: _Ways, opened: bool = False) -> None:
        """The next bracket: its lower end is the last edge with less weight than the rank at or below it.

        Args:
            thresholds: what is asked, in any order.
            ways: how the next ones are placed.
            opened: whether they were given, which says nothing about the way of the next.
        """
        # With keys in order, how many lie at or below a threshold says by itself which weights are added up. Everything
        # known is then a threshold with a weight: those below the rank can only raise a, the others only lower b.
        weight = np.stack([_count(self.keys, edge) for edge in thresholds])
        if self.up_to is not None:
            weight = self.up_to.take(weight * np.int64(len(self.row)) + np.arange(len(self.row)))
        low = weight < self.rank
        above = self.below + self.inside
        self.a, self.b = np.where(low, thresholds, self.a).max(axis=0), np.where(low, self.b, thresholds).min(axis=0)
        self.below = np.where(low, weight, self.below).max(axis=0)
        old, new = self.inside, np.where(low, above, weight).min(axis=0) - self.below
        if not opened:
            halved = (new - 1 <= old - new) & (new < old)
            self.way = np.where(halved, np.int8(0), np.minimum(self.way + np.int8(1), ways.last))
            self.tie_probes = self.tie_probes + (self.tied & (self.tie_probes < TIE_PROBES))
            self.tied = new == old
        self.inside, self.steps = new, self.steps + 1


class _Ways:
    """How thresholds are placed: `SearchState._thresholds`, over runs."""

    def __init__(self, kind: Keys, arity: int, spacing: Spacing) -> None:
        self.kind, self.arity, self.spacing = kind, arity, spacing
        self.last = np.int8(len(SPACING_ORDERS[spacing]) - 1)
        self.even = np.array([[j / (arity + 1)] for j in range(1, arity + 1)])
        self.steps = np.array([[step] for step in rank_steps(arity)])

    def place(self, runs: _RunningSearches) -> Ints:
        """Thresholds of every run, some of them perhaps outside its bracket."""
        ties = runs.running & runs.tied & (runs.tie_probes < TIE_PROBES)
        by_key = ~ties & (runs.way == self.last)
        if self.spacing == "key":
            placed = _by_key(runs.a, runs.b, self.arity)
        else:
            placed = self._split(runs.a, runs.b, self._shares(runs))
            k = np.flatnonzero(by_key)
            if k.size:
                placed[:, k] = _by_key(runs.a[k], runs.b[k], self.arity)
        k = np.flatnonzero(ties)
        if k.size:
            rows = max(1, self.arity - 2)
            if len(placed) < 2 + rows:
                placed = np.concatenate([placed, np.broadcast_to(runs.a, (2 + rows - len(placed), len(runs.a)))])
            x = self._round(runs.a[k], runs.b[k])
            placed[:, k] = np.concatenate([[x - 1, x], _by_key(runs.a[k], runs.b[k], rows)])
        return placed

    def _shares(self, runs: _RunningSearches) -> Array:
        """Of the way through the bracket, by rank or by value."""
        if self.spacing == "value":
            return self.even
        first = runs.way == 0
        if not first.any():
            return self.even
        inside = runs.inside.astype(np.float64)
        f = ((runs.rank - runs.below) - 0.5) / inside
        d = np.sqrt(f * (1.0 - f) / inside)
        shares = d * self.steps
        shares += f
        return shares if first.all() else np.where(first, shares, self.even)

    def _split(self, a: Ints, b: Ints, f: Array) -> Ints:
        """`Keys.split`; what is no number is above or below all brackets."""
        if isinstance(self.kind, Floats):
            value = self.kind.values(unsigned(a + 1)) * (1.0 - f)
            value += self.kind.values(unsigned(b)) * f
            return _signed(self.kind.keys(value))
        return np.floor((a + 1).astype(np.float64) * (1.0 - f) + b.astype(np.float64) * f).astype(np.int64)

    def _round(self, a: Ints, b: Ints) -> Ints:
        """The keys of the roundest numbers in brackets."""
        low, high = (self.kind.values(unsigned(ends)) for ends in (a + 1, b))
        return _signed(self.kind.keys(roundest_of(low, high)))


def _count(keys: Ints, edge: Ints) -> Any:
    """How many keys of each run are at or below its edge."""
    rows, runs = keys.shape
    if rows <= _FEW:
        return (keys <= edge).view(np.int8).sum(axis=0, dtype=np.int8)
    flat, at, run = keys.reshape(-1), np.zeros(runs, np.int64), np.arange(runs)
    step = 1 << (rows.bit_length() - 1)
    while step:
        further = at + step
        last = np.minimum(further, rows) - 1
        at = np.where((further <= rows) & (flat.take(last * runs + run) <= edge), further, at)
        step >>= 1
    return at


def _by_key(a: Ints, b: Ints, count: int) -> Ints:
    """The keys a + ⌊(b − a)·j / (count + 1)⌋."""
    return np.stack([a + share.view(np.int64) for share in _shares_of((b - a).view(np.uint64), count)])


def _shares_of(width: Words, count: int) -> Iterator[Words]:
    """⌊width·j / (count + 1)⌋ for j = 1, …, count, without a product that is too large."""
    parts = np.uint64(count + 1)
    each = width // parts
    rest = width - each * parts
    for j in range(1, count + 1):
        yield each * np.uint64(j) + rest * np.uint64(j) // parts


def signed_keys(kind: Keys, values: Array) -> Ints:
    """The keys of numbers as `search_many` takes them; of what is no number, the largest."""
    absent = np.isnan(values)
    keys = _signed(kind.keys(np.where(absent, 0.0, values) if absent.any() else values))
    keys[absent] = np.iinfo(np.int64).max
    return keys


def _signed(keys: Words) -> Ints:
    return (keys ^ np.uint64(SIGN)).view(np.int64)


def unsigned(keys: Ints) -> Words:
    """Signed keys as keys."""
    return keys.view(np.uint64) ^ np.uint64(SIGN)


# The roundest number, of many brackets


def roundest_of(low: Array, high: Array) -> Array:
    """`protocol.search.roundest` of each of many: by exact floats where these suffice, else one after the other."""
    negative = high < 0.0
    low, high = np.where(negative, -high, low), np.where(negative, -low, high)
    decade = np.searchsorted(_DECADES, high, "right") - 1
    found = np.where(low > 0.0, _DECADES[decade], 0.0)
    pending = np.flatnonzero((low > 0.0) & ~((low <= found) & (found <= high)))
    plain = (low[pending] >= _SMALL) & (high[pending] <= _WHOLE)
    hard, pending = [pending[~plain]], pending[plain]
    power = int(decade[pending].max(initial=0)) + _LEAST_DECADE
    while pending.size and power >= -_TENS:
        # The multiples of a power of ten, k·up / down, are rounded once: k, up and down are whole numbers and floats.
        up, down = 10.0 ** max(0, power), 10.0 ** max(0, -power)
        near = np.ceil(low[pending] / up * down)  # off by one at most
        fits = near < _WHOLE
        hard.append(pending[~fits])
        pending, near = pending[fits], near[fits]
        multiple = (near + 1.0) * up / down
        for k in (near, near - 1.0):
            smaller = k * up / down
            multiple = np.where(smaller >= low[pending], smaller, multiple)
        here = multiple <= high[pending]
        found[pending[here]] = multiple[here]
        pending = pending[~here]
        power -= 1
    for k in np.concatenate([*hard, pending]).tolist():
        found[k] = roundest(float(low[k]), float(high[k]))
    return np.where(negative, -found, found)
