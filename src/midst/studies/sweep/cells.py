"""One cell of the grid: its runs, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from midst.engines.ensemble import solve_ensemble
from midst.graphs import Graph
from midst.privacy.priors import parse_prior
from midst.problems import Problem
from midst.solving import solve
from midst.studies.sweep.spec import GridPoint
from midst.system import streams
from midst.types import Array, Row

_AT_ONCE = 1_000_000  # edges, or nodes, of the graphs in memory at a time
_FIGURES = ("rounds", "iterations", "probes", "certified", "error", "exposed", "certain", "bits")
_FIXED = ("ring", "complete", "path", "star", "grid")  # kinds that are the same graph in every run


class Task(NamedTuple):
    """What a worker is told.

    Attributes:
        cell: which.
        runs: how many.
        seed: of the sweep.
        options: of the sweep, for all runs.
    """

    cell: GridPoint
    runs: int
    seed: int
    options: dict[str, Any]


def compute(task: Task) -> tuple[int, list[Row]]:
    """The cell's number, and a row a run."""
    cell, every = task.cell, range(task.runs)
    same = cell.make_graph(0) if cell.kind in _FIXED else None
    if cell.adversary == "none":
        size = max(1, int(_AT_ONCE // max(cell.edges, cell.n)))
        figures = [found for k in every[::size] for found in _together(task, every[k : k + size], same)]
    else:
        figures = [_audited(task, k, same) for k in every]
    about = {"cell": cell.number} | cell.settings
    return cell.number, [
        about | {"run": k} | dict(zip(_FIGURES, found, strict=True)) for k, found in enumerate(figures)
    ]


def _child(task: Task, k: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(task.cell.number, k)))


def _draw(task: Task, k: int, same: Graph | None) -> tuple[Graph, Array]:
    """The graph and the values of a run."""
    drawn = streams(_child(task, k))
    kind, _, numbers = task.cell.prior.partition(":")
    values = getattr(drawn.values, kind)(*map(float, numbers.split(",")), task.cell.n)
    return task.cell.make_graph(drawn.graph) if same is None else same, values


def _together(task: Task, group: range, same: Graph | None) -> Iterator[tuple[Any, ...]]:
    """Runs without an adversary: an ensemble."""
    objective = task.cell.find()
    runs: Problem | list[Problem]
    drawn = [_draw(task, k, same) for k in group]
    if same is None:
        runs = [Problem(graph, values, objective=objective) for graph, values in drawn]
    else:
        runs = Problem(same, np.column_stack([values for _, values in drawn]), objective=objective)
    method = task.cell.make_method(runs if isinstance(runs, Problem) else runs[0], task.options)
    found = solve_ensemble(runs, method, rng=[_child(task, k) for k in group], workers=1)
    exposed, unknown = found.exposed.sum(axis=1), np.full(found.runs, None)
    figures = (found.rounds, found.iterations, found.probes, found.certified, found.error, exposed, unknown, unknown)
    return zip(*(each.tolist() for each in figures), strict=True)


def _audited(task: Task, k: int, same: Graph | None) -> tuple[Any, ...]:
    """A run by itself, and what it gave away."""
    from midst.privacy.audit import audit

    cell = task.cell
    graph, values = _draw(task, k, same)
    problem = Problem(graph, values, objective=cell.find())
    found = solve(problem, cell.make_method(problem, task.options), rng=_child(task, k), record="audit", throw=False)
    leakage = audit(found.trace, cell.listener(), parse_prior(cell.prior), attacks=False)
    known = leakage.exposed_count, float(leakage.mean_bits)
    return found.rounds, found.iterations, found.probes, found.certified, found.error, len(found.exposed), *known
