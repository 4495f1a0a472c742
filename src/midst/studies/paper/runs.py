"""Experiments by the hundred.

Rules:
- Run k draws its values, its graph, z(0) and its offsets from child k of the seed, each from a stream of its own. What
  an experiment changes, such as c, leaves the draws as they are: experiments are compared run by run, on the same data.
- A run depends on its experiment, the seed and k, and on nothing else: any number of workers gives the same numbers.
- Where no trace is asked for, all runs of an experiment are one ensemble: the same runs in a tenth of the time, but for
  a last bit of x.
- Exposure is told by the branch, never by comparing x with s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from midst import graphs
from midst.dp.mechanisms import Offset, privatise
from midst.engines.ensemble import NEVER, solve_ensemble
from midst.errors import InputError
from midst.methods import Certified, Consensus, Stop
from midst.objectives import Quantile
from midst.plots.style import show_number
from midst.problems import Problem
from midst.recorder import Record
from midst.result import Result
from midst.solving import solve
from midst.system import streams
from midst.trace import Trace
from midst.types import Array, Bools, Ints
from midst.workers import TaskProgress, run_in_parallel

Seen = TypeVar("Seen", bound=tuple[Any, ...])

CERTIFIED = Certified()  # to 1e-6 of the scale, which is 1
_LETTERS = {"mu": "μ", "sigma": "σ", "offset": "offset σ"}


@dataclass(frozen=True)
class StudySettings:
    """How much to compute, and how.

    Attributes:
        runs: of each experiment, at least 2; where a claim is followed over a range, a quarter of that (at least 2).
        seed: of everything random.
        workers: processes.
        progress: told how many tasks of how many are done: runs, or ensembles of them.
    """

    runs: int = 100
    seed: int = 1
    workers: int = 1
    progress: TaskProgress | None = None

    def __post_init__(self) -> None:
        for name, least in (("runs", 2), ("seed", 0), ("workers", 1)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise InputError(f"{name} must be a whole number of at least {least}")

    @property
    def runs_in_range(self) -> int:
        """How many runs each experiment of a range gets."""
        return max(2, self.runs // 4)


@dataclass(frozen=True)
class Experiment:
    """The parameters of a run; the data is N(0, 1).

    Attributes:
        n: how many nodes.
        graph: the kind.
        radius: of a random geometric graph, √(2 ln n / n) if not given; other kinds have none.
        c: convergence parameter.
        mu: mean of z(0), times A_ij.
        sigma: its standard deviation.
        offset: standard deviation of the offset put on the values for differential privacy; 0 for none.
    """

    n: int = 15
    graph: str = "rgg"
    radius: float | None = None
    c: float = 1.0
    mu: float = 0.0
    sigma: float = 0.1
    offset: float = 0.0

    def apart_from(self, other: Experiment) -> str:
        """In what it differs from another one, for people; empty if in nothing."""
        names = [field.name for field in fields(self) if getattr(self, field.name) != getattr(other, field.name)]
        return ", ".join(
            self.kind if name == "graph" else f"{_LETTERS.get(name, name)} = {show_number(getattr(self, name))}"
            for name in names
        )

    def method(self, stop: Stop = CERTIFIED) -> Consensus:
        """How its runs find their answers."""
        return Consensus(self.c, mu=self.mu, sigma=self.sigma, stop=stop)

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
        side: −1, 0 or +1: whether its value lies below, at or above the median.
        iterations: how many were run.
        error: the largest distance of an x_i from the true median, in the end.
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
        return np.asarray((there & ~self.exposed).sum(axis=-1) / there.sum(axis=-1))

    def secure_over_time(self, t: Ints) -> Array:
        """The share of nodes that have not done so up to and including each iteration of t; shape (runs, len(t))."""
        first = np.where(self.exposed, self.first_inside, np.iinfo(np.int64).max)
        return np.asarray((first[..., None] > t).mean(axis=-2))


class Plateaus(NamedTuple):
    """Where the nodes of a run were caught. With an axis of runs before each, of many.

    Attributes:
        shift: how far from its true value the first plateau of a node lies; NaN where it has none.
        offset: what was put on its value.
    """

    shift: Array
    offset: Array


class Drawn(NamedTuple):
    """What is random in a run.

    Attributes:
        truth: the problem with the values as they are.
        problem: the problem to be solved: the same, or with an offset on every value.
        z0: what z(0) is drawn from.
    """

    truth: Problem
    problem: Problem
    z0: np.random.Generator


def draw(experiment: Experiment, seed: int, k: int, copies: int | None = None) -> Drawn:
    """What run number k of an experiment begins with; `perform` says what the arguments are."""
    drawn = streams(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
    values = drawn.values.standard_normal(experiment.n)
    if copies is not None:
        values = np.repeat(values[:, None], copies, axis=1)
    shape = {"radius": experiment.radius} if experiment.graph == "rgg" else {}
    graph = graphs.make(experiment.graph, experiment.n, rng=drawn.graph, **shape)
    truth = Problem(graph, values, objective=Quantile(0.5, "any"))
    problem = privatise(truth, Offset(experiment.offset), drawn.values) if experiment.offset else truth
    return Drawn(truth, problem, drawn.z0)


def perform(
    experiment: Experiment,
    seed: int,
    k: int,
    *,
    copies: int | None = None,
    stop: Stop = CERTIFIED,
    record: Record = "audit",
) -> Run:
    """Run number k of an experiment.

    Args:
        experiment: what to run.
        seed: of the whole series.
        k: which of its children.
        copies: run the same data with so many z(0) at once: coordinates of one problem, each solved by itself.
        stop: of the iteration; it runs until its answer is certified unless told otherwise.
        record: what to keep of it.
    """
    truth, problem, z0 = draw(experiment, seed, k, copies)
    return Run(truth, problem, solve(problem, experiment.method(stop), rng=z0, record=record))


def observe_plateaus(experiment: Experiment, seed: int, k: int) -> Plateaus:
    """Run number k of an experiment, and where its nodes were caught."""
    truth, problem, result = perform(experiment, seed, k)
    return Plateaus(plateaus(result.trace)[1] - truth.values, problem.values - truth.values)


def plateaus(trace: Trace) -> tuple[Ints, Array]:
    """Of each node, the first iteration in which it sent its own value (or `NEVER`), and that value (or NaN)."""
    first, sent = np.full(trace.graph.n, NEVER), np.full(trace.graph.n, np.nan)
    segments = trace.segments
    assert segments is not None  # every recording but "none" has them
    inside = np.flatnonzero(segments.branch == 0)[::-1]  # backwards, so that the earliest is written last
    first[segments.node[inside]] = segments.start[inside]
    sent[segments.node[inside]] = segments.low[inside]
    return first, sent


def measure_outcomes(plan: Mapping[Experiment, int], settings: StudySettings) -> dict[Experiment, Outcome]:
    """Each experiment so many times, until certified, and what is kept of its runs.

    Args:
        plan: how many runs of which experiment.
        settings: seed, workers and progress.
    """
    tasks = [(experiment, settings.seed, runs) for experiment, runs in plan.items()]
    found = run_in_parallel(_outcome, tasks, settings.workers, settings.progress)
    return dict(zip(plan, found, strict=True))


def _outcome(task: tuple[Experiment, int, int]) -> Outcome:
    experiment, seed, runs = task
    drawn = [draw(experiment, seed, k) for k in range(runs)]
    problems, rngs = [each.problem for each in drawn], [each.z0 for each in drawn]
    result = solve_ensemble(problems, experiment.method(), rng=rngs, bounds=False, workers=1)
    values = np.stack([each.truth.values for each in drawn])
    middle = np.array([[each.truth.answer[0]] for each in drawn])
    return Outcome(
        first_inside=result.first_inside,
        side=np.sign(values - middle).astype(np.int64),
        iterations=result.iterations,
        error=np.asarray(np.abs(result.x - middle).max(axis=1)),
    )


def measure(
    observe: Callable[[Experiment, int, int], Seen], plan: Mapping[Experiment, int], settings: StudySettings
) -> dict[Experiment, Seen]:
    """Each experiment so many times: of each what was observed, an axis of runs put before every array.

    Args:
        observe: a function of a module, of the experiment, the seed and k; it gives a named tuple of arrays.
        plan: how many runs of which experiment.
        settings: seed, workers and progress.
    """
    tasks = [(observe, experiment, settings.seed, k) for experiment, runs in plan.items() for k in range(runs)]
    seen = iter(run_in_parallel(_call, tasks, settings.workers, settings.progress))
    return {experiment: _stack([next(seen) for _ in range(runs)]) for experiment, runs in plan.items()}


def _call(task: tuple[Callable[[Experiment, int, int], Seen], Experiment, int, int]) -> Seen:
    observe, experiment, seed, k = task
    return observe(experiment, seed, k)


def _stack(seen: list[Seen]) -> Seen:
    kind: Any = type(seen[0])
    stacked: Seen = kind(*map(np.stack, zip(*seen, strict=True)))
    return stacked
