"""Runs of an ensemble that a search ends: their keys, brackets and ranks, as `searching.search_many` takes them.

Rules:
- Everything is in the units of the data: values, bounds, and the x at which a search begins.
- A run is what `SearchState` makes of its values, probe by probe. What it has no arithmetic for (public
  quantiles, the midpoint of two values) is left to `SearchState` itself, a run after the other.
- So many runs are searched at a time as have arrays that stay in the cache. What sorting says is the answer is read off
  their sorted values. Where one problem has all runs, nothing is done run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from midst.engines.batches import Apart, Together
from midst.engines.searching import search_many, search_values, signed_keys, unsigned
from midst.methods import (
    Search,
    answers_of,
    opening_thresholds,
    openings,
    rules_of,
    search_rules,
)
from midst.objectives import Mean, Quantile
from midst.problems import Problem
from midst.protocol.keys import Keys, Words, first_bracket
from midst.types import Array, Ints

_NUMBERS = 1_000_000  # in an array of keys at a time: calls cost little beside the work


class SearchStart(NamedTuple):
    """Where searches begin that follow the iteration: the smallest and the largest x, and the public scale of a run."""

    low: Array
    high: Array
    scale: Array


class FoundValues(NamedTuple):
    """The answers, how many questions were asked, and the distance from what sorting gives; one entry a run."""

    value: Array
    probes: Ints
    error: Array


def search_some(source: Together | Apart, which: Ints, method: Search, start: SearchStart | None = None) -> FoundValues:
    """Searches of some of the runs; `start` has an entry for each of `which`, or the first probe is as all others."""
    found = FoundValues(np.zeros(len(which)), np.zeros(len(which), np.int64), np.zeros(len(which)))
    for places, columns in _columns_of(source, which):
        part = None if start is None else SearchStart(*(array[places] for array in start))
        if columns is None or method.quantiles:
            out = _one_by_one([source.run(k) for k in which[places].tolist()], method, part)
        else:
            out = _at_once(columns, method, part)
        for whole, some in zip(found, out, strict=True):
            whole[places] = some
    return found


def check_search(source: Together | Apart, method: Search) -> None:
    """Refuse what no search can find.

    Raises:
        InputError: there is a run of it.
    """
    for problem in source.different:
        if not isinstance(problem.objective, Mean):
            search_rules(method, problem.objective, problem.keys, [(0, 1)], problem.total, None)


class _Columns(NamedTuple):
    """Values of some runs whose keys are of one kind.

    Attributes:
        kind: of the keys.
        values: (n, runs); not a number where a run has fewer than n.
        whole_weights: weights, in units: (n, 1) or (n, runs); None where each is one.
        rank: the wanted one, (runs,).
        bounds: lower and upper, (runs,) each; None where there are none.
    """

    kind: Keys
    values: Array
    whole_weights: Ints | None
    rank: Ints
    bounds: tuple[Array, Array] | None


def _columns_of(source: Together | Apart, which: Ints) -> Iterator[tuple[Ints, _Columns | None]]:
    """Runs of one kind: where they stand in `which`, and their values; None where several ranks are wanted."""
    if isinstance(source, Together):
        for places in _blocks(np.arange(len(which)), len(source.problem.values)):
            yield places, _together(source.problem, which[places]) if source.problem.has_one_value else None
        return
    alike: dict[tuple[Keys, bool, bool], list[int]] = {}
    for place, k in enumerate(which.tolist()):
        problem = source.problems[k]
        alike.setdefault((problem.keys, problem.bounds is None, problem.has_one_value), []).append(place)
    for (_, _, one_value), each in alike.items():
        for places in _blocks(np.array(each), max(len(source.problems[which[place]].values) for place in each)):
            yield places, _apart([source.problems[k] for k in which[places].tolist()]) if one_value else None


def _blocks(places: Ints, n: int) -> Iterator[Ints]:
    step = max(1, _NUMBERS // n)
    return (places[start : start + step] for start in range(0, len(places), step))


def _rank(problem: Problem) -> int:
    assert isinstance(problem.objective, Quantile)
    (rank,) = problem.objective.ranks(problem.total)
    return rank


def _together(problem: Problem, which: Ints) -> _Columns:
    known = None if problem.bounds is None else (problem.bounds[0][which], problem.bounds[1][which])
    weights = None if (problem.whole_weights == 1).all() else problem.whole_weights[:, None]
    every = len(which) == problem.values.shape[1]
    values = problem.values if every else problem.values.take(which, axis=1)  # an index would turn the axes
    return _Columns(problem.keys, values, weights, np.full(len(which), _rank(problem)), known)


def _apart(problems: Sequence[Problem]) -> _Columns:
    most, runs = max(len(problem.values) for problem in problems), len(problems)
    values, whole_weights = np.full((most, runs), np.nan), np.zeros((most, runs), np.int64)
    for k, problem in enumerate(problems):
        n = len(problem.values)
        values[:n, k], whole_weights[:n, k] = problem.values, problem.value_weights
    bounds = np.array([problem.bounds for problem in problems if problem.bounds is not None])
    known = (bounds[:, 0], bounds[:, 1]) if bounds.size else None
    weights = None if ((whole_weights == 1) | np.isnan(values)).all() else whole_weights
    return _Columns(problems[0].keys, values, weights, np.array([*map(_rank, problems)]), known)


def _at_once(columns: _Columns, method: Search, start: SearchStart | None) -> FoundValues:
    kind, values, weights, rank, _ = columns
    if weights is None:
        ranked, place = np.sort(values, axis=0), rank - 1
    else:
        order = np.argsort(values, axis=0, kind="stable")
        ranked = np.take_along_axis(values, order, axis=0)
        weights = np.take_along_axis(np.broadcast_to(weights, order.shape), order, axis=0)
        place = np.argmax(np.cumsum(weights, axis=0) >= rank, axis=0)
    keys = signed_keys(kind, ranked)
    found = search_many(
        kind,
        keys,
        weights,
        *_brackets(columns),
        rank,
        arity=method.arity,
        spacing=method.way,
        opening=None if start is None else openings(kind, *start),
    )
    value, right = (kind.values(each) for each in (found.keys, unsigned(keys[place, np.arange(len(rank))])))
    return FoundValues(value, found.probes, np.abs(value - right))


def _brackets(columns: _Columns) -> tuple[Words, Words]:
    kind = columns.kind
    if columns.bounds is None:
        a, b = first_bracket(kind, None)
        return np.array(a, np.uint64), np.array(b, np.uint64)
    lower, upper = columns.bounds
    return kind.keys(lower) - np.uint64(1), kind.keys(upper)


def _one_by_one(problems: Sequence[Problem], method: Search, start: SearchStart | None) -> FoundValues:
    out = FoundValues(np.zeros(len(problems)), np.zeros(len(problems), np.int64), np.zeros(len(problems)))
    for k, problem in enumerate(problems):
        rules = rules_of(problem, method)
        if start is not None:
            first = opening_thresholds(problem.keys, *(float(part[k]) for part in start))
            rules = replace(rules, opening=(first,))
        search, steps = search_values(rules, problem.value_keys, problem.search_weights)
        (out.value[k],), out.probes[k] = answers_of(search), len(steps)
        out.error[k] = problem.distance(out.value[k])
    return out
