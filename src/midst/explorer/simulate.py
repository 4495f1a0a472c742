"""Settings in, a run out: what a user of the library would write.

Rules:
- One seed gives the graph, the values and z(0), as `midst run` draws them; with a number of the paper's series, as
  `midst.studies.paper` does. So the same run is had from the shell.
- An error of the library is laid at the door of the field that caused it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from midst import graphs
from midst.dp.mechanisms import GaussianNoise, LaplaceNoise, Mechanism, Offset, information, privatise
from midst.errors import InputError, MissingExtra
from midst.explorer.fields import MOST_EDGES, MOST_NODES, FieldError, Settings, blame
from midst.graphs import Graph
from midst.methods import After, Certified, Consensus, Method, Paper, Search, Stop, require_participants, rules_of
from midst.objectives import LEVELS, Mean, Objective, Quantile
from midst.privacy import priors
from midst.privacy.adversaries import Adversary, Init
from midst.privacy.priors import Prior
from midst.problems import Problem
from midst.progress import Progress
from midst.recorder import Record
from midst.result import Result
from midst.solving import solve
from midst.system import RNG, Streams, settle, streams
from midst.trace import Trace, load
from midst.types import Array

Stopped = Literal["exact", "certified", "asked", "full"]

_OF_GRAPHS = ("radius", "p", "k", "m")  # None where they are of no use to the graph that is asked for
_OFFSET = 0.1  # of the scale: the paper's, where the standard deviation of an offset is not given
_SAMPLES = 2_000  # by which the distribution of a noised value is known, where it has no formula


@dataclass(frozen=True, eq=False)
class Made:
    """A run, and who looks at it.

    Attributes:
        trace: what happened.
        adversary: who looks.
        prior: what it believes of a value before.
        coordinate: which one is looked at.
        values: the private values, where they are known.
        held: the same with noise on them, as they went into the run.
        result: of a simulated run.
        stopped: why it went no further, where that is known: the answer is exact by the totals of a search, or
            certified; so many iterations were asked for; the page is full.
        notes: what the reader should know besides.
    """

    trace: Trace
    adversary: Adversary
    prior: Prior
    coordinate: int = 0
    values: Array | None = None
    held: Array | None = None
    result: Result | None = None
    stopped: Stopped | None = None
    notes: tuple[str, ...] = ()

    @property
    def known_values(self) -> Array | None:
        """The values that went into the run, where they are known."""
        return self.values if self.held is None else self.held

    def with_noise(self, mechanism: Mechanism, held: Array | None) -> Made:
        """The same with noise on the values, and with a note of what that means for all that is shown."""
        bits = information(mechanism, self.prior.scale)
        note = (
            f"{mechanism.describe()}; exposure, bounds and bits are of the noised values, which tell {bits:.2f} bits "
            f"of the true ones (for a normal prior of this scale)"
        )
        return replace(self, prior=_blur(self.prior, mechanism), held=held, notes=(*self.notes, note))


@dataclass(frozen=True, eq=False)
class Ready:
    """Settings that have been checked as far as they can be without running."""

    settings: Settings
    truth: Problem
    problem: Problem
    method: Method
    rng: RNG
    adversary: Adversary
    prior: Prior
    mechanism: Mechanism | None

    def run(self, progress: Progress | None = None) -> Made:
        """The run itself.

        Raises:
            FieldError: the library refuses what it could only see now.
        """
        with blame("c", "stop", "tolerance"):
            record: Record = "all" if isinstance(self.method, Consensus) else "auto"
            result = solve(self.problem, self.method, rng=self.rng, record=record, throw=False, progress=progress)
        stop = self.settings.stop if self.settings.method == "consensus" else None
        ended: Stopped | None = "full" if result.iterations else None
        made = Made(
            result.trace,
            self.adversary,
            self.prior,
            values=self.truth.values,
            result=result,
            stopped="asked" if stop == "iterations" else proof_that_ended(result) or ended,
        )
        if stop == "exact" and isinstance(self.problem.objective, Mean):
            made = replace(made, notes=("the iteration has no exact finish for a mean: certified to 1e-6 instead",))
        return made if self.mechanism is None else made.with_noise(self.mechanism, self.problem.values)


def proof_that_ended(result: Result) -> Stopped | None:
    """What an iteration ended with; None where that was no proof, and of a search, which ends with its answer."""
    if not result.iterations:
        return None
    return "exact" if result.standing is not None else "certified" if result.certified else None


def prepare(settings: Settings) -> Ready:
    """Check everything and draw the data.

    Raises:
        FieldError: with the fields to blame.
    """
    drawn, rng, noise = _sources(settings)
    graph = _graph(settings, drawn)
    with blame("q"):
        level = LEVELS.get(settings.objective, settings.q)
        objective: Objective = Mean() if settings.objective == "mean" else Quantile(level)
    with blame("prior_b", "prior_a"):
        values = _values(settings, drawn.values)
    bounds = None if settings.least is None or settings.most is None else (settings.least, settings.most)
    with blame("least" if bounds else "resolution", "resolution"):
        truth = Problem(graph, values, objective=objective, bounds=bounds, resolution=settings.resolution)
    with blame("prior_b", "prior_a"):
        prior = _prior(settings.prior, *_believed(settings, truth))
    with blame("dp", "epsilon", "delta", "offset", "low", "high"):
        mechanism = _mechanism(settings, prior)
        problem = truth if mechanism is None else privatise(truth, mechanism, noise)
    method = _method(settings, problem)
    return Ready(settings, truth, problem, method, rng, _adversary(settings, graph), prior, mechanism)


def check_room(graph: Graph) -> None:
    """Refuse what a page cannot show.

    Raises:
        InputError: the graph is too large.
    """
    if graph.n > MOST_NODES or graph.edges > MOST_EDGES:
        raise InputError(
            f"{graph.n:,} nodes and {graph.edges:,} edges are more than the page holds "
            f"({MOST_NODES:,} and {MOST_EDGES:,}); try midst audit"
        )


def open_file(path: Path, settings: Settings) -> Made:
    """A saved run, looked at as the settings say.

    Raises:
        FieldError: with the fields to blame.
    """
    with blame("source"):
        trace = load(path)
        check_room(trace.graph)
    return look_at(trace, settings)


def look_at(trace: Trace, settings: Settings) -> Made:
    """The record of a run that a page has room for, looked at as the settings say.

    Raises:
        FieldError: with the fields to blame.
    """
    count = int(np.prod(trace.x.shape[2:]))
    with blame("coordinate"):
        if not 0 <= settings.coordinate < count:
            raise InputError(f"coordinate must be from 0 to {count - 1}")
    with blame("believes_b", "believes_a"):
        prior = _prior(settings.believes, settings.believes_a, settings.believes_b)
    shown = trace.values is not None and trace.owners is None  # of lists, a node has more than one
    values = trace.values.reshape(trace.graph.n, -1)[:, settings.coordinate] if shown else None  # type: ignore[union-attr]
    return Made(trace, _adversary(settings, trace.graph), prior, settings.coordinate, values)


def _sources(settings: Settings) -> tuple[Streams, RNG, RNG]:
    """The streams for graph and values, what z(0) is drawn from, and what noise is."""
    if settings.draw is None:
        return streams(settings.seed), settings.seed, settings.seed
    child = np.random.SeedSequence(settings.seed, spawn_key=(settings.draw,))
    drawn = streams(np.random.default_rng(child))
    return drawn, drawn.z0, drawn.values


def _graph(settings: Settings, drawn: Streams) -> Graph:
    if settings.edges is not None:
        return settings.edges
    options = {name: value for name in _OF_GRAPHS if (value := getattr(settings, name)) is not None}
    with blame("numbers" if settings.numbers else "n", *options):
        try:
            graph = graphs.make(settings.graph, settings.n, rng=drawn.graph, **options)
        except MissingExtra as error:
            raise FieldError({"graph": str(error)}) from None
        if graph.edges > MOST_EDGES:
            raise InputError(
                f"{graph.edges:,} edges are more than the {MOST_EDGES:,} that the page holds; try fewer nodes"
            )
    return graph


def _values(settings: Settings, rng: np.random.Generator) -> Array:
    if settings.numbers:
        return np.array(settings.numbers)
    (a, b), n = _drawn_from(settings), settings.n
    _prior(settings.prior, a, b)  # refuses what nothing can be drawn from
    if settings.prior == "normal":
        return a + b * rng.standard_normal(n)
    return rng.uniform(a, b, n) if settings.prior == "uniform" else rng.laplace(a, b, n)


def _drawn_from(settings: Settings) -> tuple[float, float]:
    a, b = settings.prior_a, settings.prior_b
    return 0.0 if a is None else a, 1.0 if b is None else b


def _believed(settings: Settings, truth: Problem) -> tuple[float, float]:
    """What is believed of a number: where it was drawn from; of one's own, what is public about them."""
    if not settings.numbers:
        return _drawn_from(settings)
    centre, scale = float(truth.centre), float(truth.scale)
    usual = (centre, scale) if settings.prior != "uniform" else (settings.least, settings.most)
    asked = settings.prior_a, settings.prior_b
    a, b = (public if given is None else given for given, public in zip(asked, usual, strict=True))
    if a is None or b is None:
        raise InputError("give low and high, between which your numbers are believed to lie, or bounds")
    return a, b


def _prior(kind: str, a: float, b: float) -> Prior:
    return cast(Prior, priors.KINDS[kind](a, b))


def _mechanism(settings: Settings, prior: Prior) -> Mechanism | None:
    """The noise; what is not given of it is chosen from what is believed of the numbers, or public about them."""
    match settings.dp:
        case "offset":
            return Offset(_OFFSET * prior.scale if settings.offset is None else settings.offset)
        case "gaussian":
            return GaussianNoise(settings.epsilon, settings.delta, _clipping(settings, prior))
        case "laplace":
            return LaplaceNoise(settings.epsilon, _clipping(settings, prior))
        case _:
            return None


def _clipping(settings: Settings, prior: Prior) -> tuple[float, float]:
    """To what numbers are clipped: as given, else the public bounds, else where most numbers are that were drawn."""
    low = settings.least if settings.low is None else settings.low
    high = settings.most if settings.high is None else settings.high
    if settings.numbers and (low is None or high is None):
        raise InputError("low and high are needed, to which your numbers are clipped; give them, or public bounds")
    middle, reach = prior.quantile(0.5), 3 * prior.scale
    return middle - reach if low is None else low, middle + reach if high is None else high


def _blur(prior: Prior, mechanism: Mechanism) -> Prior:
    """What is believed of a value with noise on it: by formula where there is one, else by samples."""
    if isinstance(prior, priors.Normal) and isinstance(mechanism, Offset):
        return priors.Normal(prior.mean, hypot(prior.std, mechanism.sigma))
    rng = np.random.default_rng(0)
    drawn = np.array([prior.quantile(level) for level in (np.arange(_SAMPLES) + 0.5) / _SAMPLES])
    std = mechanism.noise_std
    laplace = isinstance(mechanism, LaplaceNoise)
    noise = rng.laplace(0, std / 2**0.5, _SAMPLES) if laplace else rng.normal(0, std, _SAMPLES)
    return priors.Samples(np.clip(drawn, *mechanism.bounds) + noise)


def _method(settings: Settings, problem: Problem) -> Method:
    if settings.method == "search":
        with blame("arity"):
            search = Search(settings.arity)
        with blame("edges" if settings.edges else "numbers" if settings.numbers else "n"):
            require_participants(problem.graph.n)
        with blame("objective"):
            if isinstance(problem.objective, Mean):
                raise InputError("a mean by search is one masked sum: there is no picture of it; try by consensus")
            rules_of(problem, search)
        return search
    parameters: dict[str, Any] = {"c": settings.c, "mu": settings.mu, "sigma": settings.sigma}
    theta = settings.theta if settings.method == "consensus" else 0.5
    with blame("c", "theta", "mu", "sigma"):
        settle(problem, theta=theta, **parameters)
    if settings.method == "paper":
        with blame("objective"):
            Paper().of(problem)
        return Paper(**parameters, limit=settings.limit)
    with blame("stop", "tolerance"):
        return Consensus(**parameters, theta=theta, stop=_stop(settings), limit=settings.limit)


def _stop(settings: Settings) -> Stop | None:
    if settings.stop == "exact":  # or certified, where the answer is none of the values
        return None
    return After(settings.iterations) if settings.stop == "iterations" else Certified(settings.tolerance)


def _adversary(settings: Settings, graph: Graph) -> Adversary:
    with blame("corrupt", "init"):
        eavesdrops = settings.adversary != "passive"
        adversary = Adversary(settings.corrupt, eavesdrops, cast(Init, settings.init))
        adversary.check(graph)
    return adversary
