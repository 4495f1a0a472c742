"""Runs of an ensemble that a search ends: their keys, brackets and ranks, as `searching.search_runs` takes them.

Rules:
- Everything is in the units of the data: values, bounds, and the x at which a search begins.
- A run is what `SearchState` makes of its values, probe by probe. What `search_runs` has no arithmetic for (public
  quantiles, the midpoint of two values) is left to `SearchState` itself, a run after the other.
- Values are sorted some runs at a time, so that they stay in the cache. Where one problem has all runs, nothing is done
  run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from midst.engines.batches import Apart, Together
from midst.engines.searching import search_runs, search_values
from midst.methods import Search, openings, search_rules
from midst.objectives import Quantile
from midst.problems import Problem
from midst.protocol.keys import MODULUS, Floats, Keys, Words, first_bracket
from midst.update import Array

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_NUMBERS = 1_000_000  # sorted at a time


class Start(NamedTuple):
    """Where searches begin that follow the iteration; one entry a run.

    Attributes:
        low: the smallest x.
        high: the largest.
        scale: the public scale.
    """

    low: Array
    high: Array
    scale: Array


class Found(NamedTuple):
    """What came out; one entry a run.

    Attributes:
        value: the answer.
        probes: questions asked.
        error: distance from the value that sorting gives, where keys are of a resolution.
    """

    value: Array
    probes: Ints
    error: Array


def search_some(source: Together | Apart, which: Ints, method: Search, start: Start | None = None) -> Found:
    """Searches of some of the runs.

    Args:
        source: all of them.
        which: of these runs.
        method: arity and spacing.
        start: where they begin, an entry for each of `which`; None to place the first thresholds as all others.
    """
    found = Found(np.zeros(len(which)), np.zeros(len(which), np.int64), np.zeros(len(which)))
    for places, columns in _columns_of(source, which):
        part = None if start is None else Start(*(array[places] for array in start))
        plain = bool(method.quantiles) or len(columns.ranks) > 1
        out = _one_by_one(columns, method, part) if plain else _at_once(columns, method, part)
        for whole, some in zip(found, out, strict=True):
            whole[places] = some
    return found


def is_one_value(problem: Problem) -> bool:
    """Whether the answer is one of the values."""
    objective = problem.objective
    return isinstance(objective, Quantile) and objective.is_one_value(int(problem.counts.sum()))


def check(source: Together | Apart, method: Search) -> None:
    """Refuse what no search can find.

    Raises:
        InputError: there is a run of it.
    """
    for problem in source.different:
        keys, bounds = public(problem)
        search_rules(method, problem.objective, keys, [(0, 1)], int(problem.counts.sum()), None)
        if bounds is None:
            first_bracket(keys, None)
        else:
            first_bracket(keys, (float(np.min(bounds[0])), float(np.max(bounds[1]))))


def public(problem: Problem) -> tuple[Keys, tuple[Array, Array] | None]:
    """How a problem's numbers become keys, and between which bounds they lie."""
    return Floats(), None


class _Columns(NamedTuple):
    """Values of some runs whose keys are of one kind and which have as many ranks.

    Attributes:
        kind: of the keys.
        values: (n, runs), not a number where a run has fewer than n.
        counts: weights, in units: (n, 1) or (n, runs).
        ranks: the wanted ones, (runs,) or one for all; two of them for a midpoint.
        bounds: lower and upper, (runs,) each; None where there are none.
        problems: one a run, or one for all.
    """

    kind: Keys
    values: Array
    counts: Ints
    ranks: tuple[Ints, ...]
    bounds: tuple[Array, Array] | None
    problems: Sequence[Problem]


def _columns_of(source: Together | Apart, which: Ints) -> Iterator[tuple[Ints, _Columns]]:
    """The runs, some at a time: where they stand in `which`, and their values."""
    if isinstance(source, Together):
        problem = source.problem
        step = max(1, _NUMBERS // problem.graph.n)
        for start in range(0, len(which), step):
            places = np.arange(start, min(start + step, len(which)))
            yield places, _together(problem, which[places])
        return
    alike: dict[tuple[Keys, bool, int], list[int]] = {}
    for place, k in enumerate(which.tolist()):
        problem = source.problems[k]
        keys, bounds = public(problem)
        alike.setdefault((keys, bounds is None, len(_ranks(problem))), []).append(place)
    for each in alike.values():
        step = max(1, _NUMBERS // max(source.problems[which[place]].graph.n for place in each))
        for start in range(0, len(each), step):
            places = np.array(each[start : start + step])
            yield places, _apart([source.problems[k] for k in which[places].tolist()])


def _ranks(problem: Problem) -> tuple[int, ...]:
    assert isinstance(problem.objective, Quantile)
    return problem.objective.ranks(int(problem.counts.sum()))


def _together(problem: Problem, which: Ints) -> _Columns:
    kind, bounds = public(problem)
    known = None if bounds is None else (bounds[0][which], bounds[1][which])
    ranks = tuple(np.array(rank) for rank in _ranks(problem))
    return _Columns(kind, problem.values[:, which], problem.counts[:, None], ranks, known, [problem])


def _apart(problems: Sequence[Problem]) -> _Columns:
    nodes, runs = max(problem.graph.n for problem in problems), len(problems)
    values, counts = np.full((nodes, runs), np.nan), np.zeros((nodes, runs), np.int64)
    for k, problem in enumerate(problems):
        values[: problem.graph.n, k], counts[: problem.graph.n, k] = problem.values, problem.counts
    kind = public(problems[0])[0]
    given = np.array([bounds for _, bounds in map(public, problems) if bounds is not None])
    ranks = tuple(np.array(rank) for rank in zip(*map(_ranks, problems), strict=True))
    return _Columns(kind, values, counts, ranks, (given[:, 0], given[:, 1]) if given.size else None, problems)


def _at_once(columns: _Columns, method: Search, start: Start | None) -> Found:
    kind, (rank,) = columns.kind, columns.ranks
    absent = np.isnan(columns.values)
    padded = bool(absent.any())
    weights, run = None, np.arange(columns.values.shape[1])
    if ((columns.counts == 1) | absent).all():
        ranked = np.sort(columns.values, axis=0)
        place = np.broadcast_to(rank - 1, run.shape)
    else:
        order = np.argsort(columns.values, axis=0, kind="stable")
        ranked = np.take_along_axis(columns.values, order, axis=0)
        counts = np.broadcast_to(columns.counts, order.shape)
        weights = np.take_along_axis(counts, order, axis=0)
        place = np.argmax(np.cumsum(weights, axis=0) >= rank, axis=0)
    keys: Words = kind.keys(np.nan_to_num(ranked) if padded else ranked)
    if padded:
        keys[np.isnan(ranked)] = MODULUS - 1  # above every bracket
    a, b = _brackets(columns)
    opening = None if start is None else openings(kind, *start)
    found = search_runs(
        kind, keys, a, b, rank, weights=weights, arity=method.arity, spacing=method.way, opening=opening
    )
    value = kind.values(found.keys)
    return Found(value, found.probes, np.abs(value - ranked[place, run]))


def _brackets(columns: _Columns) -> tuple[Words, Words]:
    kind = columns.kind
    if columns.bounds is None:
        a, b = first_bracket(kind, None)
        return np.array(a, np.uint64), np.array(b, np.uint64)
    lower, upper = columns.bounds
    return kind.keys(lower) - np.uint64(1), kind.keys(upper)


def _one_by_one(columns: _Columns, method: Search, start: Start | None) -> Found:
    kind, runs = columns.kind, columns.values.shape[1]
    a, b = (np.broadcast_to(end, runs) for end in _brackets(columns))
    opening = None if start is None else openings(kind, *start)
    counts = np.broadcast_to(columns.counts, columns.values.shape)
    out = Found(np.zeros(runs), np.zeros(runs, np.int64), np.zeros(runs))
    for k in range(runs):
        problem = columns.problems[min(k, len(columns.problems) - 1)]
        here = ~np.isnan(columns.values[:, k])
        values, weights = columns.values[here, k], counts[here, k]
        given = np.unique(weights[weights > 0])
        rules = search_rules(
            method,
            problem.objective,
            kind,
            [(int(a[k]), int(b[k]))],
            int(weights.sum()),
            int(given[0]) if len(given) == 1 else None,
            () if opening is None else (tuple(opening[k].tolist()),),
        )
        search, _ = search_values(rules, kind.keys(values), weights)
        out.value[k], out.probes[k] = search.value(0), search.steps
        low, high = problem.objective.answer(values, weights)
        out.error[k] = max(low - out.value[k], out.value[k] - high, 0.0)
    return out
