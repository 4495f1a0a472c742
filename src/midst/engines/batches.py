"""What the runs of an ensemble are: problems side by side, as arrays whose last axis is the run.

Graphs of different sizes are made equal by nodes that are not there: without neighbours, weight or say, at x = 0 for
ever. Runs are put together so that none is more than twice as large as another beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from midst.engines.arrays import sums_at_start
from midst.errors import InputError, whole_number
from midst.graphs import Graph
from midst.methods import CLOSE, After, Certified, Consensus, Exact, Stop
from midst.normals import FARTHEST, EdgeNormals
from midst.objectives import Mean, built_in
from midst.problems import Problem
from midst.protocol.certificate import weights_needed
from midst.protocol.step import Terms, make_terms
from midst.system import RNG, Parameters, Settling, Sums, check_rng, draw_z0, settle, streams, working_terms
from midst.types import Array, Bools, Ints

_PER_ENTRY = 3  # a dense product of many small graphs has so many entries in the time of one of a sparse product
_APART = 2  # times its own size: a run goes with others that are no larger


class BatchSettings(NamedTuple):
    """What `solve_ensemble` was asked for, checked; c, mu and sigma of the method are one a run, or not given."""

    method: Consensus
    stop: Stop
    bounds: bool

    @classmethod
    def of(cls, method: Consensus, stop: Stop, runs: int, bounds: bool) -> BatchSettings:
        """The parts of a method that each of so many runs takes.

        Raises:
            InputError: a parameter is neither one number nor one a run.
        """
        c, mu, sigma = (one_a_run(name, getattr(method, name), runs) for name in ("c", "mu", "sigma"))
        return cls(replace(method, c=c, mu=mu, sigma=sigma), stop, bounds)

    @property
    def last(self) -> int:
        """How many iterations there are at most."""
        return self.stop.iterations if isinstance(self.stop, After) else self.method.limit

    @property
    def tolerance(self) -> float:
        """Of the certificate, relative to the scale; of a run that does not end by it too."""
        return (self.stop if isinstance(self.stop, Certified) else Certified()).tolerance

    def settle(self, part: Problem | Stack, runs: Ints) -> Parameters:
        """The parameters of some of the runs; those that are the same for all stand once, but for mu and sigma."""
        given: tuple[Any, ...] = (self.method.c, self.method.mu, self.method.sigma)
        c, mu, sigma = (None if each is None else each[runs] for each in given)
        settled = settle_method(part, replace(self.method, c=c, mu=mu, sigma=sigma), self.stop)
        return replace(settled, c=_once(settled.c), unit=_once(settled.unit))


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Runs side by side, in working units; the last axis of every array is the run, or has one entry for all runs.

    Attributes:
        graphs: one for all runs, or one a run.
        present: which of the nodes there are; None: all.
        terms: the local objectives.
        c: convergence parameters.
        theta: averaging constant.
        start: S(0) and R(0) (see `step.next_sums`), or what a device draws them from; None once they are on their way.
        whole_weights: weights, in units.
        needed_below: at least so many units of weight must have s ≤ x in a proof, and
        needed_above: so many s ≥ x.
        tolerance: the greatest spread of a proof.
        close: the greatest spread at which a search may begin.
        scale: the public one, in the units of the data.
        unit: the power of two that working units are multiples of.
        diameter: of the graphs; none where nobody waits for what all know.
    """

    graphs: Graph | tuple[Graph, ...]
    present: Bools | None
    terms: Terms
    c: Array
    theta: float
    start: Sums | ToDraw | None
    whole_weights: Ints
    needed_below: Ints
    needed_above: Ints
    tolerance: Array
    close: Array
    scale: Array
    unit: Array
    diameter: Ints


class ToDraw(NamedTuple):
    """What a device draws S(0) and R(0) of these runs from; mu and sigma in working units, one a run."""

    mu: Array
    sigma: Array
    normals: EdgeNormals


class Group(NamedTuple):
    """Runs that go together, and how many nodes the largest has."""

    runs: Ints
    nodes: int


class Together(NamedTuple):
    """One problem, a coordinate a run."""

    problem: Problem

    @property
    def runs(self) -> int:
        """How many runs."""
        return int(self.problem.values.shape[1])

    @property
    def different(self) -> Sequence[Problem]:
        """The problems: this one."""
        return [self.problem]

    def map(self, change: Callable[[Problem], Problem]) -> Together:
        """The same runs of a changed problem."""
        return Together(change(self.problem))

    def groups(self) -> list[Group]:
        """All of them go together."""
        return [Group(np.arange(self.runs), self.problem.graph.n)]

    def run(self, k: Ints | int) -> Problem:
        """One of the runs by itself, or some together."""
        return _with_columns(self.problem, lambda held: held[..., k])

    def diameters(self, which: Ints) -> Ints:
        """Of the graphs of some of the runs."""
        return np.full(len(which), self.problem.graph.diameter())

    def distances(self, which: Ints, values: Array) -> Array:
        """How far answers of some of the runs are from right ones."""
        return self.run(which).distance(values) if which.size else np.zeros(0)

    def some(self, which: Ints, nodes: int) -> Problem:
        """Some of the runs side by side."""
        return self.run(which)


class Apart(NamedTuple):
    """A problem a run."""

    problems: Sequence[Problem]

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self.problems)

    @property
    def different(self) -> Sequence[Problem]:
        """The problems: one a run."""
        return self.problems

    def map(self, change: Callable[[Problem], Problem]) -> Apart:
        """The same runs of changed problems."""
        return Apart([*map(change, self.problems)])

    def groups(self) -> list[Group]:
        """Those that go together, the largest first."""
        sizes = np.array([problem.graph.n for problem in self.problems])
        found = []
        left = np.ones(self.runs, np.bool_)
        while left.any():
            largest = sizes[left].max()
            these = np.flatnonzero(left & (sizes * _APART >= largest))
            found.append(Group(these, int(largest)))
            left[these] = False
        return found

    def run(self, k: int) -> Problem:
        """One of the runs by itself."""
        return self.problems[k]

    def diameters(self, which: Ints) -> Ints:
        """Of the graphs of some of the runs."""
        return _diameters(tuple(self.problems[k].graph for k in which.tolist()), len(which))

    def distances(self, which: Ints, values: Array) -> Array:
        """How far answers of some of the runs are from right ones."""
        pairs = zip(which.tolist(), values.tolist(), strict=True)
        return np.array([self.problems[k].distance(value) for k, value in pairs])

    def some(self, which: Ints, nodes: int) -> Stack:
        """Some of the runs side by side, with room for so many nodes."""
        return Stack([self.problems[k] for k in which.tolist()], nodes)


def columns_of(problem: Problem, runs: int) -> Problem:
    """A problem with a number a node as one with so many coordinates, all the same."""
    return _with_columns(problem, lambda held: np.repeat(held[..., None], runs, axis=-1))


def _with_columns(problem: Problem, change: Callable[[Array], Array]) -> Problem:
    """A problem whose values, and what is public of them, are those of other coordinates."""
    part = copy(problem)
    part.values, part.scale, part.centre = map(change, (part.values, part.scale, part.centre))
    part.bounds = None if part.bounds is None else (change(part.bounds[0]), change(part.bounds[1]))
    part.__dict__.pop("answer", None)  # that of the coordinates before
    return part


def source_of(problems: Problem | Sequence[Problem], runs: int | None = None) -> Together | Apart:
    """The runs that were asked for, checked to go together."""
    if isinstance(problems, Problem):
        built_in(problems.objective)
        if problems.values.ndim == 1:
            return Together(columns_of(problems, 1 if runs is None else whole_number("runs", runs)))
    if runs is not None:
        raise InputError("runs is for one problem with one number a node; these have a run each already")
    if isinstance(problems, Problem):
        return Together(problems)
    problems = list(problems)
    if not problems or not all(isinstance(problem, Problem) for problem in problems):
        raise InputError("an ensemble is a midst.Problem with a coordinate a run, or a sequence of problems")
    for k, problem in enumerate(problems):
        if problem.values.ndim != 1:
            raise InputError(f"run {k} has coordinates; a problem of a sequence has one number a node")
        built_in(problem.objective)
        if isinstance(problem.objective, Mean) != isinstance(problems[0].objective, Mean):
            raise InputError(f"run {k} seeks a {problem.title}, run 0 a {problems[0].title}; take them apart")
    return Apart(problems)


class Stack:
    """Problems side by side, as if they were the coordinates of one: for `settle`, `working_terms` and a batch.

    A node that is not there has S = R = a = 0 and cd = 0 and keeps them; [low, high] is then [0, 0] / 1, so x = 0. With
    s = 1 above it, it is never inside; with no weight, it has no say in a proof.
    """

    def __init__(self, problems: Sequence[Problem], nodes: int) -> None:
        """Copy what is needed of problems with a number a node each, all of them quantiles or all means."""
        runs = len(problems)
        self.graphs = tuple(problem.graph for problem in problems)
        present = np.arange(nodes)[:, None] < np.array([graph.n for graph in self.graphs])
        self.present: Bools | None = None if present.all() else present  # where not all nodes are
        self.objective = problems[0].objective
        self.estimated = np.array([problem.estimated for problem in problems])
        self.scale, self.centre = (np.array([getattr(each, name) for each in problems]) for name in ("scale", "centre"))
        self.values, self.whole_weights = np.zeros((nodes, runs)), np.zeros((nodes, runs), np.int64)
        self._degree, self._slopes = np.zeros((nodes, runs)), np.zeros((3, nodes, runs))
        self.mean_weight, self.needed = np.zeros(runs), np.zeros((2, runs), np.int64)
        self.mean_degree = np.array([problem.mean_degree for problem in problems])
        weighing: dict[Any, Any] = {}  # what most of them have in common
        for k, problem in enumerate(problems):
            weights, unit, n = problem.whole_weights, problem.unit_weight, problem.graph.n
            objective = built_in(problem.objective)
            like = objective, unit, weights.tobytes()
            if like not in weighing:
                needed = weights_needed(objective, weights)
                weighing[like] = objective.slopes(weights, unit), problem.mean_weight, needed
            self._slopes[:, :n, k], self.mean_weight[k], self.needed[:, k] = weighing[like]
            self.values[:n, k], self.whole_weights[:n, k] = problem.values, weights
            self._degree[:n, k] = problem.graph.degree

    def terms(self, unit: Array, c: Array) -> Terms:
        """All nodes' local objectives; see `Problem.terms`."""
        here, smooth = self.present, isinstance(self.objective, Mean)
        terms = make_terms(self._slopes, self.values / unit, c * self._degree, smooth)
        if here is None:
            return terms
        return replace(terms, s=np.where(here, terms.s, 1.0), weight=np.where(here, terms.weight, 1.0))

    def draw(self, parameters: Parameters, normals: EdgeNormals) -> Sums:
        """S(0) and R(0), on the data as given."""
        if any(graph.ends is None for graph in self.graphs):
            return self._draw_each(parameters, normals)
        outward = [graph.sign > 0 for graph in self.graphs]
        run = np.repeat(np.arange(len(self.graphs)), [graph.edges for graph in self.graphs])
        source, target = (
            np.concatenate([getattr(graph, end)[out] for graph, out in zip(self.graphs, outward, strict=True)])
            for end in ("source", "target")
        )
        low, high = normals.some(run).on(source, target)
        low, high = parameters.mu[run] + parameters.sigma[run] * low, parameters.mu[run] - parameters.sigma[run] * high
        shape = self.values.shape
        at_source, at_target = (end * shape[1] + run for end in (source, target))

        def add(sources: Array, targets: Array) -> Array:
            total = np.bincount(at_source, sources, self.values.size).astype(np.float64, copy=False)
            return (total + np.bincount(at_target, targets, self.values.size)).reshape(shape)

        return Sums(add(low, high), add(high, low))

    def _draw_each(self, parameters: Parameters, normals: EdgeNormals) -> Sums:
        S, R = np.zeros_like(self.values), np.zeros_like(self.values)
        for k, graph in enumerate(self.graphs):
            one = replace(parameters, mu=parameters.mu[k], sigma=parameters.sigma[k])
            sums = sums_at_start(graph, draw_z0(graph, one, normals.some(np.array(k))))
            S[: graph.n, k], R[: graph.n, k] = sums.S, sums.R
        return Sums(S, R)


def settle_method(problem: Settling, method: Consensus, stop: Stop) -> Parameters:
    """The parameters that a method gives, and the others as chosen for this stop."""
    return settle(
        problem,
        c=method.c,
        theta=method.theta,
        mu=method.mu,
        sigma=method.sigma,
        force=method.force,
        certified=isinstance(stop, Certified),
    )


def make_batch(part: Problem | Stack, settings: BatchSettings, which: Ints, normals: EdgeNormals, draw: bool) -> Batch:
    """Runs `which` as they begin, by settings and normals of all runs; where S and R are not drawn, a device will."""
    parameters, normals, runs = settings.settle(part, which), normals.some(which), len(which)
    divisor = parameters.unit if isinstance(part.objective, Mean) else np.ones(1)  # from the data to working units
    start: Sums | ToDraw
    if draw:
        start = _draw(part, parameters, normals) / divisor
        largest = float(np.abs(start.S).max())
    else:
        assert isinstance(part, Problem), "runs on one graph"
        start = ToDraw(parameters.mu / divisor, parameters.sigma / divisor, normals)
        largest = float((np.abs(start.mu) + FARTHEST * start.sigma).max() * part.graph.degree.max())
    terms, c = working_terms(part, parameters, largest)
    graphs: Graph | tuple[Graph, ...]
    if isinstance(part, Stack):
        graphs, present, weights, needed = part.graphs, part.present, part.whole_weights, part.needed
    else:
        weights, present = part.whole_weights[:, None], None
        graphs, needed = part.graph, np.array([weights_needed(built_in(part.objective), part.whole_weights)]).T
    scale, unit = (np.broadcast_to(array, runs) for array in (parameters.scale, parameters.unit))
    return Batch(
        graphs=graphs,
        present=present,
        terms=terms,
        c=c,
        theta=parameters.theta,
        start=start,
        whole_weights=weights,
        needed_below=np.broadcast_to(needed[0], runs),
        needed_above=np.broadcast_to(needed[1], runs),
        tolerance=settings.tolerance * (scale / unit),
        close=CLOSE * (scale / unit),
        scale=scale,
        unit=unit,
        diameter=_diameters(graphs, runs) if isinstance(settings.stop, Exact) else np.zeros(runs, np.int64),
    )


def _draw(part: Problem | Stack, parameters: Parameters, normals: EdgeNormals) -> Sums:
    """S(0) and R(0), on the data as given."""
    if isinstance(part, Stack):
        return part.draw(parameters, normals)
    return sums_at_start(part.graph, draw_z0(part.graph, parameters, normals))


def _once(array: Array) -> Array:
    """One entry for all runs, where it is the same in all."""
    return array[:1] if (array == array[0]).all() else array


def _diameters(graphs: Graph | tuple[Graph, ...], runs: int) -> Ints:
    """Of each run's graph; one that comes again is not measured again."""
    if isinstance(graphs, Graph):
        return np.full(runs, graphs.diameter())
    found = {id(graph): graph.diameter() for graph in {id(graph): graph for graph in graphs}.values()}
    return np.array([found[id(graph)] for graph in graphs])


def join(graphs: Sequence[Graph], nodes: int) -> tuple[Array | None, tuple[Ints, Ints]]:
    """The edges of graphs side by side.

    Returns:
        Where that is the faster way to sum over the neighbours, a matrix a run, (nodes, nodes, runs); and the ends of
        every directed edge, as places in an array of all nodes and runs.
    """
    runs, run = len(graphs), np.repeat(np.arange(len(graphs)), [2 * graph.edges for graph in graphs])
    source, target = (np.concatenate([getattr(graph, end) for graph in graphs]) for end in ("source", "target"))
    dense = None
    if nodes * nodes * runs <= _PER_ENTRY * len(run):
        dense = np.zeros((nodes, nodes, runs))
        dense[source, target, run] = 1.0
    return dense, (source * runs + run, target * runs + run)


def some_of(part: Any, k: Ints | slice) -> Any:
    """Runs k, at least one: of an array the last axis, of a tuple one a run, of a record those of its parts."""
    if isinstance(k, slice):  # all of them: nothing is copied
        return part
    match part:
        case np.ndarray():
            return part if part.shape[-1] == 1 else part.take(k, axis=-1)
        case tuple():
            return tuple(part[each] for each in k.tolist())
        case None | bool() | float() | Graph():
            return part
    return replace(part, **{entry.name: some_of(getattr(part, entry.name), k) for entry in fields(part)})


def check_rngs(rng: RNG | Sequence[RNG], runs: int) -> None:
    """Refuse what is no seed or generator, for all runs or one a run; leave generators as they are."""
    if isinstance(rng, Sequence) and len(rng) != runs:
        raise InputError(f"{len(rng)} generators for {runs} runs; give one a run, or one for all")
    for one in rng if isinstance(rng, Sequence) else (rng,):
        check_rng(one)


def edge_normals(rng: RNG | Sequence[RNG], runs: int, first: int = 0) -> EdgeNormals:
    """What z(0) is drawn from, in every run from the first on."""
    if not isinstance(rng, Sequence):
        return EdgeNormals.drawn(streams(rng).z0, first, (runs,))
    keys = [EdgeNormals.drawn(streams(one).z0).key for one in rng]
    return EdgeNormals(np.column_stack(keys), np.zeros(runs, np.uint64))


def one_a_run(name: str, given: ArrayLike | None, runs: int) -> Array | None:
    """A parameter as one number a run; None where it is not given."""
    if given is None:
        return None
    try:
        return np.broadcast_to(np.array(given, dtype=np.float64), runs)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, or one for each of the {runs} runs") from None
