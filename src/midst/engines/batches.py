"""What the runs of an ensemble are: problems side by side, as arrays whose last axis is the run.

Graphs of different sizes are made equal by nodes that are not there: without neighbours, weight or say, at x = 0 for
ever. Runs are put together so that none is more than twice as large as another beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from midst.engines.arrays import sums_at_start
from midst.errors import InputError
from midst.graphs import Graph
from midst.methods import CLOSE, Certified, Exact, Stop
from midst.objectives import Mean
from midst.problems import Problem
from midst.protocol.certificate import weights_needed
from midst.protocol.step import Terms
from midst.system import RNG, Parameters, Streams, System, assemble, draw_z0, settle, streams
from midst.types import Array, Bools, Ints

_PER_ENTRY = 3  # a dense product of many small graphs has so many entries in the time of one of a sparse product
_APART = 2  # times its own size: a run goes with others that are no larger


class BatchSettings(NamedTuple):
    """What `solve_ensemble` was asked for, checked; c, mu and sigma have one entry a run, or are not given."""

    c: Array | None
    mu: Array | None
    sigma: Array | None
    theta: float
    force: bool
    stop: Stop
    last: int
    bounds: bool

    @property
    def tolerance(self) -> float:
        """Of the certificate, relative to the scale; of a run that does not end by it too."""
        return (self.stop if isinstance(self.stop, Certified) else Certified()).tolerance

    def settle(self, problem: Problem, runs: Ints | int) -> Parameters:
        """The parameters of some of the runs."""
        c, mu, sigma = (None if given is None else given[runs] for given in (self.c, self.mu, self.sigma))
        return settle(problem, c=c, theta=self.theta, mu=mu, sigma=sigma, force=self.force)


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Runs side by side, in working units; the last axis of every array is the run.

    Attributes:
        graphs: one a run.
        present: which of the nodes there are; None: all.
        terms: the local objectives.
        c: convergence parameters.
        theta: averaging constant.
        S: of the first iteration, and
        R: likewise (see `step.next_sums`).
        whole_weights: weights, in units.
        needed_below: at least so many units of weight must have s ≤ x in a proof, and
        needed_above: so many s ≥ x.
        tolerance: the greatest spread of a proof.
        close: the greatest spread at which a search may begin.
        scale: the public one, in the units of the data.
        unit: the power of two that working units are multiples of.
        diameter: of the graphs; none where nobody waits for what all know.
        answer: the lowest and the highest right answer, in the units of the data.
    """

    graphs: tuple[Graph, ...]
    present: Bools | None
    terms: Terms
    c: Array
    theta: float
    S: Array
    R: Array
    whole_weights: Ints
    needed_below: Ints
    needed_above: Ints
    tolerance: Array
    close: Array
    scale: Array
    unit: Array
    diameter: Ints
    answer: Array


class Group(NamedTuple):
    """Runs that go together.

    Attributes:
        runs: which.
        nodes: of the largest.
        padded: whether any is smaller.
    """

    runs: Ints
    nodes: int
    padded: bool = False


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

    def groups(self) -> list[Group]:
        """All of them go together."""
        return [Group(np.arange(self.runs), self.problem.graph.n)]

    def run(self, k: Ints | int) -> Problem:
        """One of the runs by itself, or some together."""
        part = copy(self.problem)
        part.values, part.scale, part.centre = (held[..., k] for held in (part.values, part.scale, part.centre))
        part.bounds = None if part.bounds is None else (part.bounds[0][k], part.bounds[1][k])
        part.__dict__.pop("answer", None)  # of all runs
        return part

    def diameters(self, which: Ints) -> Ints:
        """Of the graphs of some of the runs."""
        return np.full(len(which), self.problem.graph.diameter())

    def prepare(self, chunk: Ints, group: Group, settings: BatchSettings, rngs: Sequence[np.random.Generator]) -> Batch:
        """Some of the runs of a group side by side, their z(0) drawn, one generator a run."""
        part = self.run(chunk)
        parameters = settings.settle(part, chunk)
        z0 = draw_z0(part, parameters, _OneARun(rngs))  # type: ignore[arg-type]
        return _batch([part], [parameters], [assemble(part, parameters, z0)], settings, group)


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

    def groups(self) -> list[Group]:
        """Those that go together, the largest first."""
        sizes = np.array([problem.graph.n for problem in self.problems])
        found = []
        left = np.ones(self.runs, np.bool_)
        while left.any():
            largest = sizes[left].max()
            these = np.flatnonzero(left & (sizes * _APART >= largest))
            found.append(Group(these, int(largest), bool((sizes[these] < largest).any())))
            left[these] = False
        return found

    def run(self, k: int) -> Problem:
        """One of the runs by itself."""
        return self.problems[k]

    def diameters(self, which: Ints) -> Ints:
        """Of the graphs of some of the runs."""
        return _diameters([self.problems[k].graph for k in which.tolist()])

    def prepare(self, chunk: Ints, group: Group, settings: BatchSettings, rngs: Sequence[np.random.Generator]) -> Batch:
        """Some of the runs of a group side by side, their z(0) drawn, one generator a run."""
        problems = [self.problems[k] for k in chunk.tolist()]
        parameters = [settings.settle(problem, k) for k, problem in zip(chunk.tolist(), problems, strict=True)]
        systems = [
            assemble(problem, settled, draw_z0(problem, settled, rng))
            for problem, settled, rng in zip(problems, parameters, rngs, strict=True)
        ]
        return _batch(problems, parameters, systems, settings, group)


class _OneARun(NamedTuple):
    """Draws column k from the k-th generator."""

    rngs: Sequence[np.random.Generator]

    def standard_normal(self, shape: tuple[int, int]) -> Array:
        return np.column_stack([rng.standard_normal(shape[0]) for rng in self.rngs])


def source_of(problems: Problem | Sequence[Problem]) -> Together | Apart:
    """The runs that were asked for, checked to go together."""
    if isinstance(problems, Problem):
        return Apart([problems]) if problems.values.ndim == 1 else Together(problems)
    problems = list(problems)
    if not problems or not all(isinstance(problem, Problem) for problem in problems):
        raise InputError("an ensemble is a midst.Problem with a coordinate a run, or a sequence of problems")
    for k, problem in enumerate(problems):
        if problem.values.ndim != 1:
            raise InputError(f"run {k} has coordinates; a problem of a sequence has one number a node")
        if isinstance(problem.objective, Mean) != isinstance(problems[0].objective, Mean):
            raise InputError(f"run {k} seeks a {problem.title}, run 0 a {problems[0].title}; take them apart")
    return Apart(problems)


def _batch(
    problems: Sequence[Problem],
    parameters: Sequence[Parameters],
    systems: Sequence[System],
    settings: BatchSettings,
    group: Group,
) -> Batch:
    """Systems side by side: many of one number a node, or one of a coordinate a run."""
    nodes = group.nodes
    # A node that is not there has S = R = a = 0 and cd = 0 and keeps them; [low, high] is then [0, 0] / 1, so x = 0.
    # With s = 1 above it, it is never inside; with no weight, it has no say in a proof.
    local = [system.terms for system in systems]
    terms = Terms(
        s=_columns([part.s for part in local], nodes, 1.0),
        above=_columns([part.above for part in local], nodes),
        below=_columns([part.below for part in local], nodes),
        weight=_columns([part.weight for part in local], nodes, 1.0),
        cd=_columns([part.cd for part in local], nodes),
        smooth=local[0].smooth,
    )
    starts = [sums_at_start(system) for system in systems]
    needed = np.array([weights_needed(problem.objective, problem.whole_weights) for problem in problems]).T
    runs = terms.s.shape[1]
    unit, scale = (np.hstack([getattr(settled, name) for settled in parameters]) for name in ("unit", "scale"))
    graphs = tuple(system.graph for system in systems for _ in range(np.size(system.c)))
    sizes = np.array([graph.n for graph in graphs])
    whole_weights = _columns([problem.whole_weights for problem in problems], nodes)
    return Batch(
        graphs=graphs,
        present=np.arange(nodes)[:, None] < sizes if group.padded else None,
        terms=terms,
        c=np.hstack([system.c for system in systems]),
        theta=parameters[0].theta,
        S=_columns([S for S, _ in starts], nodes),
        R=_columns([R for _, R in starts], nodes),
        whole_weights=np.array(np.broadcast_to(whole_weights, terms.s.shape)),
        needed_below=np.broadcast_to(needed[0], runs),
        needed_above=np.broadcast_to(needed[1], runs),
        tolerance=settings.tolerance * (scale / unit),
        close=CLOSE * (scale / unit),
        scale=scale,
        unit=unit,
        diameter=_diameters(graphs) if isinstance(settings.stop, Exact) else np.zeros(runs, np.int64),
        answer=np.column_stack([np.stack(problem.answer) for problem in problems]),
    )


def _diameters(graphs: Sequence[Graph]) -> Ints:
    """Of each; a graph that comes again is not measured again."""
    found = {id(graph): graph.diameter() for graph in {id(graph): graph for graph in graphs}.values()}
    return np.array([found[id(graph)] for graph in graphs])


def _columns(columns: Sequence[NDArray[Any]], nodes: int, absent: float = 0.0) -> NDArray[Any]:
    """Side by side, with the same number for all nodes that are not there."""
    padded = [
        column if len(column) == nodes else np.pad(column, (0, nodes - len(column)), constant_values=absent)
        for column in columns
    ]
    return np.ascontiguousarray(np.column_stack(padded))


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


def some_of(part: Any, which: Bools) -> Any:
    """Some of the runs: of an array the last axis, of a tuple one a run, of a record those of its parts."""
    match part:
        case np.ndarray():
            return part.compress(which, axis=-1)
        case tuple():
            return tuple(one for one, here in zip(part, which, strict=True) if here)
        case None | bool() | float():
            return part
    return replace(part, **{entry.name: some_of(getattr(part, entry.name), which) for entry in fields(part)})


def beside(part: Any, other: Any) -> Any:
    """These runs and those, of whatever `some_of` takes."""
    match part:
        case np.ndarray():
            return np.concatenate([part, other], axis=-1)
        case tuple():
            return part + other
        case None | bool() | float():
            return part
    return replace(
        part, **{entry.name: beside(getattr(part, entry.name), getattr(other, entry.name)) for entry in fields(part)}
    )


def z0_streams(rng: RNG | Sequence[RNG], runs: int) -> list[np.random.Generator]:
    """Each run's `streams(child).z0`; the other streams are not made."""
    if isinstance(rng, Sequence):
        if len(rng) != runs:
            raise InputError(f"{len(rng)} generators for {runs} runs; give one a run, or one for all")
        return [streams(one).z0 for one in rng]
    try:
        bits = np.random.default_rng(rng).bit_generator
    except (TypeError, ValueError):
        raise InputError("rng must be a non-negative whole number, a numpy Generator, or a sequence of them") from None
    seed: Any = bits.seed_seq
    first, stream = seed.n_children_spawned, Streams._fields.index("z0")
    if isinstance(rng, np.random.Generator):
        rng.spawn(runs)  # so that it does not give the same children again

    def make(child: int) -> np.random.Generator:
        key = (*seed.spawn_key, child, stream)
        sequence = np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
        return np.random.Generator(type(bits)(sequence))

    return [make(first + k) for k in range(runs)]


def one_a_run(name: str, given: ArrayLike | None, runs: int) -> Array | None:
    """A parameter as one number a run; None where it is not given."""
    if given is None:
        return None
    try:
        return np.broadcast_to(np.array(given, dtype=np.float64), runs)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, or one for each of the {runs} runs") from None
