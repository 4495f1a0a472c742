"""What a sweep is to do: a TOML file.

    runs = 100                                   # of every cell
    seed = 1
    stop = "certified"                           # or "exact", of an iteration; also tolerance, limit, iterations

    [grid]                                       # a value, or a list of them; the cells are all combinations
    graph = ["ring", {kind = "rgg", radius = 0.4}]
    n = [15, 51]
    method = ["search", "consensus", "paper"]
    arity = [1, 3]                               # of a search; of an iteration c, theta, mu, sigma:
    c = [1.0, 10.0]                              # c, mu, sigma: chosen as in `solve` where not given
    sigma = 0.1
    objective = ["median", 0.9, "mean"]          # a number is a quantile
    prior = "normal:0,1"                         # what values are drawn from, and what an adversary believes
    adversary = ["none", "eavesdropper sealed"]  # as for `midst audit`, and whether z(0) is sealed; none: no audit

Rules:
- Everything is checked here, each cell to the point where it could start: nothing is refused once a sweep has begun.
- A key nobody knows is refused: a misspelt parameter would otherwise be left at its default in silence.
- What a method has no use for does not make more cells of it: a search is swept over arities, and not over c.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from midst import graphs
from midst.errors import InputError, closest, whole_number
from midst.graphs.generators import expected_edges
from midst.graphs.graph import physical_memory, show_bytes
from midst.methods import METHODS, Consensus, Method, MethodName, Paper, Search, StopName, make_stop, rules_of
from midst.objectives import LEVELS, Mean, Objective, Quantile
from midst.privacy.adversaries import Adversary, parse_adversary
from midst.privacy.priors import parse_prior
from midst.problems import Problem
from midst.system import settle

_RUN = ("stop", "tolerance", "limit", "iterations")
DEFAULTS = {
    "graph": "rgg",
    "n": 15,
    "method": "consensus",
    "arity": 3,
    "c": None,
    "theta": 0.5,
    "mu": None,
    "sigma": None,
    "objective": "median",
    "prior": "normal:0,1",
    "adversary": "none",
}
WORDS = ("graph", "method", "objective", "prior", "adversary")  # the settings that are words by themselves
_UNUSED = {"search": ("c", "theta", "mu", "sigma"), "paper": ("arity", "theta"), "consensus": ("arity",)}
_BYTES_AN_EDGE = 200  # at the peak of building a graph and starting a run, both directions together
_BYTES_A_NODE = 300
_BYTES_A_ROW = 300  # of the table
_SHARE = 0.8  # of the memory that a sweep may take
_TRIED = 200_000  # edges and nodes up to which a graph is made once to see whether it can be


@dataclass(frozen=True)
class GridPoint:
    """One point of the grid.

    Attributes:
        number: which.
        kind: of the graph.
        options: of the graph, by name.
        n: how many nodes.
        method: "search", "consensus" or "paper".
        arity: of a search.
        c: convergence parameter, like all below `None` where it is to be chosen.
        theta: averaging constant; like the others, None of a search.
        mu: mean of z(0).
        sigma: standard deviation of z(0).
        objective: "median", "maximum", "minimum", "mean", or a number for a quantile.
        prior: what the values are drawn from.
        adversary: who listens, or "none".
    """

    number: int
    kind: str
    options: tuple[tuple[str, Any], ...]
    n: int
    method: MethodName
    arity: int | None
    c: float | None
    theta: float | None
    mu: float | None
    sigma: float | None
    objective: str | float
    prior: str
    adversary: str

    @property
    def graph(self) -> str:
        """The graph in words."""
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.options)])

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was set, as the table has it."""
        return {name: getattr(self, name) for name in DEFAULTS}

    def make_method(self, problem: Problem, options: Mapping[str, Any]) -> Method:
        """How its runs find their answers.

        Args:
            problem: one of them.
            options: of the sweep: stop, tolerance, limit, iterations.
        """
        if self.method == "search":
            return Search(self.arity or 3)
        named: StopName | None = "certified" if self.method == "paper" else options.get("stop")
        stop = make_stop(problem, named, *(options.get(name) for name in ("tolerance", "iterations")))
        limit = {"limit": options["limit"]} if "limit" in options else {}
        if self.method == "paper":
            return Paper(self.c, self.mu, self.sigma, stop=stop, **limit)
        theta = 0.5 if self.theta is None else self.theta
        return Consensus(self.c, theta, self.mu, self.sigma, stop=stop, **limit)

    def make_graph(self, rng: graphs.Seed) -> graphs.Graph:
        """The graph of a run."""
        return graphs.make(self.kind, self.n, rng=rng, **dict(self.options))

    def find(self) -> Objective:
        """What is to be found; where there are two answers, the lower."""
        if self.objective == "mean":
            return Mean()
        return Quantile(LEVELS.get(str(self.objective), self.objective))  # type: ignore[arg-type]

    def listener(self) -> Adversary | None:
        """Who listens."""
        if self.adversary == "none":
            return None
        who, _, init = self.adversary.partition(" ")
        return parse_adversary(who, init or "clear")  # type: ignore[arg-type]

    @property
    def edges(self) -> float:
        """About how many edges its graph has in memory, which is estimated from them."""
        return expected_edges(self.kind, self.n, **dict(self.options))

    @property
    def memory(self) -> float:
        """About how many bytes a run takes."""
        return self.edges * _BYTES_AN_EDGE + self.n * _BYTES_A_NODE


@dataclass(frozen=True)
class Spec:
    """A sweep.

    Attributes:
        runs: of every cell.
        seed: of everything random.
        options: of `solve`, for all runs.
        cells: the grid.
    """

    runs: int
    seed: int
    options: dict[str, Any]
    cells: tuple[GridPoint, ...]


def read_spec(path: str | Path) -> Spec:
    """The sweep a file asks for.

    Raises:
        InputError: it cannot be read, or is not as it must be.
    """
    try:
        with open(path, "rb") as file:
            return parse_spec(tomllib.load(file))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def parse_spec(given: Mapping[str, Any]) -> Spec:
    """The sweep, checked.

    Raises:
        InputError: a key is unknown, a list is empty, or a cell could not start.
    """
    _refuse_unknown(given, ("runs", "seed", "grid", *_RUN), "")
    runs, seed = whole_number("runs", given.get("runs", 100)), whole_number("seed", given.get("seed", 1), 0)
    grid = given.get("grid")
    if not isinstance(grid, dict) or not grid:
        raise InputError("the grid is empty; add a table [grid] with graph, n, c, …")
    _refuse_unknown(grid, tuple(DEFAULTS), "grid.")
    axes = {name: axis if isinstance(axis, list) else [axis] for name, axis in (DEFAULTS | grid).items()}
    for name, axis in axes.items():
        if not axis:
            raise InputError(f"grid.{name} is an empty list: no cells; give at least one value")
    every = [_cell(**dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values())]
    different = {repr(cell): cell for cell in every}.values()
    cells = tuple(replace(cell, number=number) for number, cell in enumerate(different))
    spec = Spec(runs, seed, {name: given[name] for name in _RUN if name in given}, cells)
    _check_options(spec.options)
    for cell in cells:
        _try(cell, spec.options)
    return spec


def check_memory(spec: Spec, at_once: int, available: float | None = None) -> None:
    """Refuse what would not fit.

    Args:
        spec: the sweep.
        at_once: so many cells are computed at a time.
        available: bytes; this machine's if not given.

    Raises:
        InputError: with the estimate.
    """
    available = available or physical_memory()
    largest = max(spec.cells, key=lambda cell: cell.memory)
    needed = len(spec.cells) * spec.runs * _BYTES_A_ROW + at_once * largest.memory
    if needed > _SHARE * available:
        what = f"{len(spec.cells):,} cells of {spec.runs:,} runs, {at_once} at once, the largest {largest.graph}"
        size = f"{largest.n:,} nodes and about {largest.edges:.2g} edges in memory"
        raise InputError(
            f"{what} with {size}: about {show_bytes(needed)} of memory, "
            f"and there are {show_bytes(available)}; try fewer nodes or workers"
        )


def _cell(graph: Any, **given: Any) -> GridPoint:
    """A cell without its number; what its method has no use for is left out."""
    method, objective = given["method"], given["objective"]
    if method not in METHODS:
        near = closest(str(method), METHODS)
        raise InputError(f"grid.method must be search, in which nobody is exposed, consensus or paper{near}")
    options = {"kind": graph} if isinstance(graph, str) else dict(graph) if isinstance(graph, dict) else {}
    kind = options.pop("kind", None)
    if not isinstance(kind, str):
        raise InputError('grid.graph must be kinds such as "ring", or tables such as {kind = "rgg", radius = 0.4}')
    if {"n", "rng"} & options.keys():
        raise InputError("grid.graph: n and seed are keys of their own")
    for name in ("c", "theta", "mu", "sigma"):
        if given[name] is not None and not _is_number(given[name]):
            raise InputError(f"grid.{name} must be numbers")
    if objective not in (*LEVELS, "mean") and not _is_number(objective):
        near = closest(objective, (*LEVELS, "mean"))
        raise InputError(f"grid.objective must be {', '.join(LEVELS)}, mean, or a number for a quantile{near}")
    if not isinstance(given["prior"], str) or not isinstance(given["adversary"], str):
        raise InputError("grid.prior and grid.adversary must be words, as for midst audit")
    whole_number("grid.n", given["n"], 2)
    if method == "search":
        whole_number("grid.arity", given["arity"])
    return GridPoint(0, kind, tuple(sorted(options.items())), **given | dict.fromkeys(_UNUSED[method]))


def _try(cell: GridPoint, options: Mapping[str, Any]) -> None:
    """Everything about a cell that can be refused, refused now."""
    who, _ = cell.listener(), parse_prior(cell.prior)
    if cell.kind not in graphs.KINDS:
        cell.make_graph(0)
    try:
        small = max(cell.edges, cell.n) <= _TRIED
    except (TypeError, ValueError):
        small = True  # an option that is no number: let the graph say so
    graph = cell.make_graph(0) if small else graphs.ring(3)
    if who is not None:
        who.check(graph if small else graphs.Graph(cell.n, None))
    problem = Problem(graph, np.arange(graph.n, dtype=float), objective=cell.find())
    method = cell.make_method(problem, options)
    if isinstance(method, Paper):
        problem, method = method.of(problem), method.iteration
    if isinstance(method, Search):
        rules_of(problem, method)
        if isinstance(problem.objective, Mean) and who is not None:
            raise InputError("grid.adversary: no audit judges a mean by search yet; leave it out, or try consensus")
    else:
        settle(problem, c=method.c, theta=method.theta, mu=method.mu, sigma=method.sigma)


def _check_options(options: Mapping[str, Any]) -> None:
    for name in ("limit", "iterations"):
        whole_number(name, options.get(name, 1))
    if options.get("stop", "exact") not in ("exact", "certified"):
        raise InputError("stop must be 'exact' or 'certified'")
    tolerance = options.get("tolerance", 1.0)
    if not _is_number(tolerance) or not 0 < tolerance < math.inf:
        raise InputError("tolerance must be a positive number")


def _refuse_unknown(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in known:
            raise InputError(f"unknown key {where}{name}; the keys are {', '.join(known)}{closest(name, known)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
