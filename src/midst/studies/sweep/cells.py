"""One cell of the grid: its runs, as rows of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from midst.engines.ensemble import solve_ensemble
from midst.graphs import Graph
from midst.privacy.priors import parse_prior
from midst.problems import Problem
from midst.solving import solve
from midst.studies.sweep.spec import GridPoint
from midst.system import Streams, streams
from midst.types import Array, Row

_AT_ONCE = 1_000_000  # edges, or nodes, of the graphs in memory at a time
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
    cell = task.cell
    by_itself = _audited if cell.adversary != "none" else None
    size = 1 if by_itself else max(1, int(_AT_ONCE // max(cell.edges, cell.n)))
    groups = [range(k, min(k + size, task.runs)) for k in range(0, task.runs, size)]
    same = cell.make_graph(0) if cell.kind in _FIXED else None
    results = [row for group in groups for row in (by_itself or _together)(task, group, same)]
    about = {"cell": cell.number, "graph": cell.graph, "n": cell.n} | cell.parameters
    about |= {"objective": cell.objective, "prior": cell.prior, "adversary": cell.adversary}
    return cell.number, [about | {"run": k} | row for k, row in enumerate(results)]


def _child(task: Task, k: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(task.cell.number, k)))


def _together(task: Task, group: range, same: Graph | None) -> list[Row]:
    """Runs without an adversary: an ensemble."""
    cell, objective = task.cell, task.cell.find()
    drawn = [streams(_child(task, k)) for k in group]
    values = [_draw(cell, one) for one in drawn]
    runs: Problem | list[Problem]
    if same is not None:
        runs = Problem(same, np.column_stack(values), objective=objective)
    else:
        made = [cell.make_graph(one.graph) for one in drawn]
        runs = [Problem(graph, own, objective=objective) for graph, own in zip(made, values, strict=True)]
    method = cell.make_method(runs if isinstance(runs, Problem) else runs[0], task.options)
    result = solve_ensemble(runs, method, rng=[_child(task, k) for k in group], workers=1)
    return [
        {
            "rounds": int(result.rounds[k]),
            "iterations": int(result.iterations[k]),
            "probes": int(result.probes[k]),
            "certified": bool(result.certified[k]),
            "error": float(result.error[k]),
            "exposed": int(result.exposed[k].sum()),
            "certain": None,
            "bits": None,
        }
        for k in range(result.runs)
    ]


def _audited(task: Task, group: range, same: Graph | None) -> list[Row]:
    """A run by itself, and what it gave away."""
    from midst.privacy.audit import audit

    cell = task.cell
    drawn = streams(_child(task, group.start))
    graph = cell.make_graph(drawn.graph) if same is None else same
    problem = Problem(graph, _draw(cell, drawn), objective=cell.find())
    method = cell.make_method(problem, task.options)
    result = solve(problem, method, rng=_child(task, group.start), record="audit", throw=False)
    leakage = audit(result.trace, cell.listener(), parse_prior(cell.prior), attacks=False)
    return [
        {
            "rounds": result.rounds,
            "iterations": result.iterations,
            "probes": result.probes,
            "certified": result.certified,
            "error": result.error,
            "exposed": len(result.exposed),
            "certain": leakage.exposed_count,
            "bits": float(leakage.mean_bits),
        }
    ]


def _draw(cell: GridPoint, drawn: Streams) -> Array:
    kind, _, numbers = cell.prior.partition(":")
    first, second = map(float, numbers.split(","))
    return np.asarray(getattr(drawn.values, kind)(first, second, cell.n))
