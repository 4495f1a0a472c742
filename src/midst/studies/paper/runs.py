"""Experiments by the hundred.

Rules:
- Draw k has its values and its graph from child k of the seed, each from a stream of its own. All its runs share them,
  as in the paper; z(0) and offsets are new in each. Experiments have the same draws, and are compared run by run.
- A run depends on its experiment, the seed, the draw and its number there: any number of workers gives the same.
- Where no trace is asked for, all runs of an experiment are one ensemble: the same runs in a tenth of the time, but for
  a last bit of x.
- Exposure is told by the branch, never by comparing x with s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from inspect import signature
from operator import call
from typing import Any, NamedTuple

import numpy as np

from midst import graphs
from midst.dp.mechanisms import Offset, privatise
from midst.engines.ensemble import NEVER, solve_ensemble
from midst.errors import whole_number
from midst.graphs import Graph
from midst.methods import Certified, Consensus, Exact, Method, Paper, Stop
from midst.objectives import Quantile
from midst.plots.style import show_number
from midst.problems import Problem
from midst.recorder import Record
from midst.result import Result
from midst.solving import solve
from midst.system import Streams, streams
from midst.types import Array, Bools, Ints, Row
from midst.workers import TaskProgress, run_in_parallel

CERTIFIED = Certified()  # to 1e-6 of the scale, which is 1
_LETTERS = {"theta": "θ", "mu": "μ", "sigma": "σ", "offset": "offset σ"}


@dataclass(frozen=True)
class StudySettings:
    """How much to compute, and how.

    Attributes:
        runs: of each draw, at least 2; where a claim is followed over a range, a quarter of that (at least 2).
        seed: of everything random.
        workers: processes.
        progress: told how many tasks of how many are done: runs, or ensembles of them.
        own: fields of an experiment that take the place of the paper's; no range is followed then.
        draws: of the data and the graph, beside the one that a figure shows.
    """

    runs: int = 100
    seed: int = 1
    workers: int = 1
    progress: TaskProgress | None = None
    own: dict[str, Any] = field(default_factory=dict)
    draws: int = 24

    def __post_init__(self) -> None:
        for name, least in (("runs", 2), ("seed", 0), ("workers", 1), ("draws", 2)):
            whole_number(name, getattr(self, name), least)

    @property
    def runs_in_range(self) -> int:
        """How many runs each experiment of a range gets."""
        return max(2, self.runs // 4)

    @property
    def setting(self) -> str:
        """One's own in a sentence; empty if there is none."""
        shown = {name: value for name, value in self.own.items() if name not in ("values", "own_graph")}
        words = [f"{_LETTERS.get(k, k)} = {v if isinstance(v, str) else show_number(v)}" for k, v in shown.items()]
        words += ["data as given"] * ("values" in self.own)
        departs = "; θ = ½ in Algorithm 1" if shown.get("theta", 0.5) != 0.5 else ""
        return f"Own setting: {', '.join(words)}{departs}. " if words else ""

    def plan(self, base: Experiment, others: tuple[Experiment, ...] = ()) -> dict[Experiment, int]:
        """How often to run the paper's setting, or one's own in its place, and each of a range around it."""
        if self.own:
            return {replace(base, **self.own): self.runs}
        return {base: self.runs} | dict.fromkeys(others, self.runs_in_range)


@dataclass(frozen=True)
class Experiment:
    """The parameters of a run; the data is N(0, 1) if not given.

    Attributes:
        n: how many nodes.
        graph: the kind; of one's own, its name.
        radius: of a random geometric graph, √(2 ln n / n) if not given; other kinds have none.
        c: convergence parameter.
        theta: averaging constant; Algorithm 1 has ½.
        mu: mean of z(0), times A_ij.
        sigma: its standard deviation.
        offset: standard deviation of the offset put on the values for differential privacy; 0 for none.
        values: the data.
        own_graph: a graph, or what makes one of so many nodes from a stream.
    """

    n: int = 15
    graph: str = "rgg"
    radius: float | None = None
    c: float = 1.0
    theta: float = 0.5
    mu: float = 0.0
    sigma: float = 0.1
    offset: float = 0.0
    values: tuple[float, ...] | None = None
    own_graph: Graph | Callable[..., Graph] | None = None

    def apart_from(self, other: Experiment) -> str:
        """In what it differs from another one, for people; empty if in nothing."""
        names = [field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)]
        return ", ".join(
            self.kind if name == "graph" else f"{_LETTERS.get(name, name)} = {show_number(getattr(self, name))}"
            for name in names
        )

    def method(self, stop: Stop = CERTIFIED) -> Method:
        """How its runs find their answers."""
        if self.theta == 0.5 and not isinstance(stop, Exact):
            return Paper(self.c, self.mu, self.sigma, stop=stop)
        return Consensus(self.c, self.theta, self.mu, self.sigma, stop=stop)

    def blur(self, truth: Problem, noise: np.random.Generator) -> Problem:
        """The problem that a run solves: the truth, or the same with a new offset on every value."""
        return privatise(truth, Offset(self.offset), noise) if self.offset else truth

    @property
    def redrawn(self) -> str:
        """What is another one in another draw, for people; empty if nothing is."""
        kind = graphs.KINDS.get(self.graph.partition(":")[0])
        data, graph = self.values is None, kind is not None and "rng" in signature(kind).parameters
        return " and ".join(["the data"] * data + ["the graph"] * graph)

    @property
    def kind(self) -> str:
        """The kind of graph, for people."""
        return "random geometric" if self.graph == "rgg" else self.graph


class Run(NamedTuple):
    """One run.

    Attributes:
        truth: the problem with the values as they are.
        problem: the problem that was solved: the same, or with an offset on every value.
        result: of the run.
    """

    truth: Problem
    problem: Problem
    result: Result


class Outcome(NamedTuple):
    """What is kept of the runs of an experiment; the first axis is the run.

    Attributes:
        first_inside: of each node the first iteration in which it sent its own value, or `NEVER`.
        side: −1, 0 or +1: whether its value lies below, at or above the median; of an even number none lies at it.
        iterations: how many were run.
        error: the largest distance of an x_i from the true median, or from between the two middle values, in the end.
    """

    first_inside: Ints
    side: Ints
    iterations: Ints
    error: Array

    @property
    def exposed(self) -> Bools:
        """Which nodes ever sent their own value."""
        return np.not_equal(self.first_inside, NEVER)

    @property
    def secure_share(self) -> Array:
        """The share of nodes that never did: the paper's "proportion of secure nodes"."""
        return np.asarray(1 - self.exposed.mean(axis=-1))

    def secure_share_on(self, side: int) -> Array:
        """The same among the nodes on one side of the median."""
        there = self.side == side
        return np.asarray((there & ~self.exposed).sum(axis=-1) / np.maximum(1, there.sum(axis=-1)))

    def secure_over_time(self, t: Ints) -> Array:
        """The share of nodes that have not done so up to and including each iteration of t; shape (runs, len(t))."""
        first = np.where(self.exposed, self.first_inside, np.iinfo(np.int64).max)
        return np.asarray((first[..., None] > t).mean(axis=-2))


def draw(experiment: Experiment, seed: int, k: int, copies: int | None = None) -> tuple[Problem, Streams]:
    """The problem of draw number k, and the streams of its runs, which take from these one after the other.

    `perform` says what the arguments are.
    """
    drawn = streams(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
    values = drawn.values.standard_normal(experiment.n) if experiment.values is None else np.array(experiment.values)
    if copies is not None:
        values = np.repeat(values[:, None], copies, axis=1)
    shape: dict[str, Any] = {"radius": experiment.radius} if experiment.graph == "rgg" else {}
    make = experiment.own_graph or partial(graphs.make, experiment.graph, **shape)
    graph = make if isinstance(make, Graph) else make(experiment.n, rng=drawn.graph)
    return Problem(graph, values, objective=Quantile(0.5, "any")), drawn


def perform(
    experiment: Experiment,
    seed: int,
    k: int,
    *,
    copies: int | None = None,
    stop: Stop = CERTIFIED,
    record: Record = "audit",
) -> Run:
    """The first run of draw number k.

    Args:
        experiment: what to run.
        seed: of the whole series.
        k: which of its children.
        copies: run the same data with so many z(0) at once: coordinates of one problem, each solved by itself.
        stop: of the iteration; it runs until its answer is certified unless told otherwise.
        record: what to keep of it.
    """
    truth, drawn = draw(experiment, seed, k, copies)
    problem = experiment.blur(truth, drawn.values)
    return Run(truth, problem, solve(problem, experiment.method(stop), rng=drawn.z0, record=record))


def measure_outcomes(
    plan: Mapping[Experiment, int], settings: StudySettings, shown: int = 0
) -> dict[Experiment, list[Outcome]]:
    """Each experiment so many times on each draw, until certified, and what is kept of its runs.

    Of each a list: the draw that is shown; then all of them from the first on, unless nothing is redrawn.
    """
    numbers = (shown, *range(settings.draws if any(each.redrawn for each in plan) else 0))
    tasks = [partial(_outcomes, each, settings.seed, numbers, runs) for each, runs in plan.items()]
    return dict(zip(plan, run_in_parallel(call, tasks, settings.workers, settings.progress), strict=True))


def _outcomes(experiment: Experiment, seed: int, numbers: tuple[int, ...], runs: int) -> list[Outcome]:
    draws = [draw(experiment, seed, k) for k in numbers]
    problems = [experiment.blur(truth, drawn.values) for truth, drawn in draws for _ in range(runs)]
    rngs = [drawn.z0 for _, drawn in draws for _ in range(runs)]  # each run takes the next children of its draw's
    result = solve_ensemble(problems, experiment.method(), rng=rngs, bounds=False, workers=1)
    outcomes = []
    for k, (truth, _) in enumerate(draws):
        part, (low, high) = slice(k * runs, (k + 1) * runs), truth.answer
        side = np.sign(np.sign(truth.values - low) + np.sign(truth.values - high)).astype(np.int64)
        x = result.x[part]
        error = np.abs(x - x.clip(low, high)).max(axis=1)
        outcomes.append(
            Outcome(result.first_inside[part], np.broadcast_to(side, x.shape), result.iterations[part], error)
        )
    return outcomes


@dataclass(frozen=True, eq=False)
class Comparison:
    """Experiments that differ in one of their fields, the same draws in each.

    Attributes:
        measured: by experiment, the paper's setting (or one's own) first; a list of draws, the one that is shown first;
            and by the level of the field.
        field: its name.
    """

    measured: dict[Experiment, list[dict[Any, Outcome]]]
    field: str

    @property
    def base(self) -> Experiment:
        """The paper's setting, or one's own."""
        return next(iter(self.measured))

    @property
    def means(self) -> list[list[float]]:
        """There, the mean share of secure nodes at each level: a row for each draw but the one that is shown."""
        return [shares(outcomes).mean(axis=1).tolist() for outcomes in self.measured[self.base][1:]]

    def rows(self) -> list[Row]:
        """A row a run."""
        return [
            {"at": experiment.apart_from(self.base), "draw": k - 1 if k else "shown", self.field: level, "run": run}
            | {"secure_share": float(share), "iterations": int(outcome.iterations[run])}
            for experiment, draws in self.measured.items()
            for k, outcomes in enumerate(draws)
            for level, outcome in outcomes.items()
            for run, share in enumerate(outcome.secure_share)
        ]


def shares(outcomes: Mapping[Any, Outcome]) -> Array:
    """The share of secure nodes, a row for each level and a column for each run."""
    return np.array([outcome.secure_share for outcome in outcomes.values()])


def compare(name: str, levels: Collection[Any], plan: Mapping[Experiment, int], settings: StudySettings) -> Comparison:
    """Each experiment at every level of one of its fields."""
    at = {each: [replace(each, **{name: level}) for level in levels] for each in plan}
    found = measure_outcomes({one: plan[each] for each, several in at.items() for one in several}, settings)
    draws = {each: zip(*(found[one] for one in several), strict=True) for each, several in at.items()}
    return Comparison({each: [dict(zip(levels, draw, strict=True)) for draw in draws[each]] for each in plan}, name)


def measure(
    observe: Callable[[Experiment, int, int], dict[str, Array]],
    plan: Mapping[Experiment, int],
    settings: StudySettings,
) -> dict[Experiment, dict[str, Array]]:
    """Each experiment so many times: of each what was observed, an axis of runs put before every array.

    Args:
        observe: a function of a module, of the experiment, the seed and k; it gives arrays by name.
        plan: how many runs of which experiment.
        settings: seed, workers and progress.
    """
    tasks = [partial(observe, each, settings.seed, k) for each, runs in plan.items() for k in range(runs)]
    found = iter(run_in_parallel(call, tasks, settings.workers, settings.progress))
    seen = {experiment: [next(found) for _ in range(runs)] for experiment, runs in plan.items()}
    return {each: {name: np.stack([one[name] for one in runs]) for name in runs[0]} for each, runs in seen.items()}
