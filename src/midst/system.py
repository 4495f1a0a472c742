"""A problem with its parameters settled: what an engine runs.

Rules:
- Parameters are the paper's (c, θ, μ, σ on the data as given). Those not given are chosen from what is public about the
  data: c = 1 / scale, z(0) such that x(0) starts near the centre. Nothing here looks at a value.
- An iteration that a search ends is short with any c, and exposes fewer the larger c is. One that has to come to a
  tolerance takes the longer the larger c times the degree is, so there c is smaller where there are many neighbours
  (`bench/choose_c.py` has the table).
- c = 1 / scale is, for a median, the steepest that f can be a scale away from a value, divided by the scale. For an
  objective of somebody's own it is just that.
- Engines work in working units: values divided by a power of two, where the scale is far from 1, so that data of
  1e-300 or 1e300 neither underflows nor overflows. Multiplying by a power of two is exact and commutes with every
  operation of the step, so the trajectory is the same to the last bit; where c is given and no scale is, the unit is 1.
  So it is for an objective of somebody's own, of which nobody knows what a unit does to it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from midst.errors import InputError
from midst.graphs import Graph
from midst.normals import EdgeNormals
from midst.objectives import Mean, Objective, OwnObjective, Quantile
from midst.problems import Problem, binary_unit
from midst.protocol.node import Node, plain
from midst.protocol.step import OwnTerms, Terms
from midst.types import Array, Bools

RNG = int | np.random.Generator | None

_REACH = 100.0  # c times the mean degree, at most, where a tolerance ends it; in the units in which c is 1 else
_SIGMA = 0.1  # the paper's sigma² = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """All that the node form needs of z(0), where it was not drawn edge by edge; see `step.next_sums`.

    Attributes:
        S: S(0), one row a node.
        R: R(0).
    """

    S: Array
    R: Array

    def __truediv__(self, unit: Array) -> Sums:
        return Sums(self.S / unit, self.R / unit)


class Streams(NamedTuple):
    """Independent random streams, one a purpose, so that drawing more of one changes nothing of another.

    Attributes:
        values: simulated values.
        graph: who talks to whom.
        z0: where an iteration starts.
        noise: that is put on values before a run.
        shares: of joint noise.
        nodes: what nodes draw that run an algorithm of one's own.
    """

    values: np.random.Generator
    graph: np.random.Generator
    z0: np.random.Generator
    noise: np.random.Generator
    shares: np.random.Generator
    nodes: np.random.Generator


def check_rng(rng: RNG) -> None:
    """Refuse what `streams` refuses; leave a generator as it is.

    Raises:
        InputError: it is neither a non-negative whole number nor a generator.
    """
    if not isinstance(rng, np.random.Generator | None) and not (isinstance(rng, int) and rng >= 0):
        streams(rng)


def streams(rng: RNG) -> Streams:
    """The streams of a seed, or of a generator's next children.

    Raises:
        InputError: it is neither a non-negative whole number nor a generator.
    """
    try:
        values, graph, z0 = np.random.default_rng(rng).spawn(3)
    except (TypeError, ValueError):
        raise InputError("rng must be a non-negative whole number, a numpy Generator, or None") from None
    seeds: Any = copy(z0.bit_generator.seed_seq)  # of a copy: who makes streams of z0 itself begins with its first
    return Streams(values, graph, z0, *map(np.random.default_rng, seeds.spawn(3)))


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """The paper's parameters, on the data as given.

    Attributes:
        c: convergence parameter; one number, or one a coordinate, like all below.
        theta: averaging constant in (0, 1].
        mu: z_{i|j}(0) has mean μ A_ij.
        sigma: and standard deviation σ.
        unit: the power of two that working units are multiples of.
        scale: what tolerances are relative to: the public scale, or 1 where c was given and no scale was.
    """

    c: Array
    theta: float
    mu: Array
    sigma: Array
    unit: Array
    scale: Array

    def working_c(self, smooth: bool) -> Array:
        """C in working units: f scales with unit^p (p = 1 for a quantile, 2 for the mean), hence c with unit^(p−2)."""
        return self.c if smooth else self.c * self.unit

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain Python values; the unit is midst's own business."""
        arrays = {"c": self.c, "mu": self.mu, "sigma": self.sigma, "scale": self.scale}
        return {"theta": self.theta} | {name: array.tolist() for name, array in arrays.items()}


@dataclass(frozen=True, eq=False, repr=False)
class System:
    """Everything an engine needs, in working units.

    Attributes:
        graph: who talks to whom.
        terms: all nodes' local objectives.
        c: convergence parameter.
        theta: averaging constant.
        start: z_{source|target}(0), aligned with the graph's directed edges, or its sums.
    """

    graph: Graph
    terms: Terms | OwnTerms
    c: Array
    theta: float
    start: Array | Sums

    @property
    def z0(self) -> Array:
        """z_{source|target}(0), aligned with the graph's directed edges.

        Raises:
            InputError: it was drawn as sums.
        """
        if isinstance(self.start, Sums):
            raise InputError(
                f"z(0) of this complete graph of {self.graph.n:,} nodes was drawn as sums, and not on its edges; try "
                "engine arrays, or list its edges (complete:listed=true)"
            )
        return self.start


class Settling(Protocol):
    """What parameters are settled for: a problem, or several side by side."""

    values: Array
    objective: Objective

    @property
    def scale(self) -> Array:
        """The public one."""

    @property
    def centre(self) -> Array:
        """The public one."""

    @property
    def estimated(self) -> bool | Bools:
        """Whether scale and centre are estimated from the values."""

    @property
    def mean_weight(self) -> float | Array:
        """The mean weight of a node."""

    @property
    def mean_degree(self) -> float | Array:
        """How many neighbours a node has in the mean."""

    def terms(self, unit: Array, c: Array) -> Terms:
        """All nodes' local objectives."""


def settle(
    problem: Settling,
    *,
    c: ArrayLike | None = None,
    theta: float = 0.5,
    mu: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    force: bool = False,
    certified: bool = False,
) -> Parameters:
    """Check the parameters given and choose the others.

    Args:
        problem: what is public about the data comes from here.
        c: the paper's c; chosen as mean weight / scale if not given (for the mean: mean weight), or less (`certified`).
            For an objective of somebody's own: its steepness / scale.
        theta: in (0, 1); 1 is refused for an objective that is not strictly convex, unless forced.
        mu: mean of z(0); chosen as −c·centre if not given.
        sigma: standard deviation of z(0); 0.1, in units of the mean weight or that steepness, if not given.
        force: accept θ = 1 all the same.
        certified: whether the iteration has to come to a tolerance by itself; c is then divided by a hundredth of
            the mean degree, if that is more than 1.

    Raises:
        InputError: a parameter is out of its range.
    """
    shape = problem.values.shape[1:]
    smooth = isinstance(problem.objective, Mean)
    literal = problem.estimated if c is not None else False  # the paper's c on the data as given: nothing is rescaled
    scale, centre = np.where(literal, 1.0, problem.scale), np.where(literal, 0.0, problem.centre)
    weight, own = problem.mean_weight, _own(problem.objective)
    steep = None if own is None else _steepness(own, weight, scale, centre)
    if c is None:
        c = weight * (np.ones(shape) if smooth else 1 / scale) if steep is None else steep / scale
        if certified:
            c = c * np.minimum(1.0, _REACH / problem.mean_degree)
    settled_c = check_numbers("c", c, shape)
    if sigma is None:
        sigma = _SIGMA * weight * (scale if smooth else 1.0) if steep is None else _SIGMA * steep
    settled_sigma = check_numbers("sigma", sigma, shape)
    check_theta(theta)
    if theta == 1 and not (smooth or force):
        what = "does not converge for a quantile" if own is None else f"need not converge for a {own.name}"
        raise InputError(f"theta = 1 {what}; try 0.5, or force it to watch it fail")
    settled_mu = check_numbers("mu", 0.0 - settled_c * centre if mu is None else mu, shape)
    unit = binary_unit(scale) if own is None else np.ones(shape)
    return Parameters(settled_c, float(theta), settled_mu, settled_sigma, unit, scale)


def _own(objective: Objective) -> OwnObjective | None:
    """The objective, where it is somebody's own."""
    return None if isinstance(objective, Quantile | Mean) else objective


def _steepness(objective: OwnObjective, weight: float | Array, scale: Array, centre: Array) -> Array:
    """The largest subgradient, in size, of f a scale away from a value that lies at the centre."""
    s = centre[..., None] if objective.lists else centre
    sides = [objective.subgradients(s, np.asarray(weight), centre + side * scale) for side in (-1, 1)]
    return np.asarray(np.abs(sides).max(axis=(0, 1)))


def draw_z0(graph: Graph, parameters: Parameters, normals: EdgeNormals) -> Array | Sums:
    """z_{i|j}(0) ~ N(μ A_ij, σ²) for every directed edge, in the order of the graph's edges.

    Of a complete graph whose edges are not listed, S(0) and R(0) are drawn instead, from their joint law.

    The normals are those of one run, or of one a coordinate.
    """
    if graph.ends is None:
        return _draw_sums(graph.n, parameters, normals)
    z0 = noise_on_edges(graph, normals)
    z0 *= parameters.sigma
    z0 += np.multiply(parameters.mu, graph.sign.reshape(-1, *(1,) * (z0.ndim - 1)), dtype=np.float64)
    return z0


def noise_on_edges(graph: Graph, normals: EdgeNormals) -> Array:
    """A standard normal number for every directed edge, in the order of the graph's edges."""
    outward = np.flatnonzero(graph.sign > 0)
    noise = np.empty((2 * graph.edges, *normals.runs.shape))
    noise[outward], noise[graph.reverse[outward]] = normals.at(graph.source[outward], graph.target[outward])
    return noise


def _draw_sums(n: int, parameters: Parameters, normals: EdgeNormals) -> Sums:
    """S(0) and R(0) of a complete graph, exactly as distributed, from 2n normal numbers instead of n(n − 1).

    With ζ_ij = A_ij z_{i|j}, all of them independent and N(μ, σ²), S_i is the sum of row i and R_i that of column i.
    Both have the mean μ(n − 1) and, in units of σ², the variance n − 1; rows share no ζ with rows, nor columns with
    columns; row i and column j share ζ_ij for i ≠ j and nothing for i = j. So Cov(S, R) = 11ᵀ − I: among vectors that
    sum to 0, S + R has the variance 2(n − 2) and S − R, independent of it, 2n; along 1, where S = R, both are n − 1.
    """
    even, odd = normals.at(np.arange(n), np.arange(n))
    along = even.mean(axis=0)  # independent of the rest, and N(0, 1/n)
    even, odd = (even - along) * np.sqrt((n - 2) / 2), odd - odd.mean(axis=0)
    odd *= np.sqrt(n / 2)
    even += along * np.sqrt(n - 1)
    mean = parameters.mu * (n - 1)
    return Sums(mean + parameters.sigma * (even + odd), mean + parameters.sigma * (even - odd))


def check_z0(problem: Problem, z0: ArrayLike) -> Array:
    """A given z(0): finite, one row a directed edge.

    Raises:
        InputError: it is not.
    """
    shape = (2 * problem.graph.edges, *problem.values.shape[1:])
    try:
        array = np.array(z0, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("z0 must be numbers, one a directed edge") from None
    if array.shape != shape:
        raise InputError(f"z0 has shape {array.shape}; expected {shape}, aligned with graph.source and graph.target")
    if not np.isfinite(array).all():
        raise InputError("z0 has an entry that is not finite")
    return array


def assemble(problem: Problem, parameters: Parameters, z0: Array | Sums) -> System:
    """The system in working units; z scales with unit^(p−1), where c does with unit^(p−2).

    Raises:
        InputError: c is so small or so large that the first step leaves the range of floating point numbers.
    """
    own = _own(problem.objective)
    if own is not None:
        return System(problem.graph, problem.own_terms(own, parameters.c), parameters.c, parameters.theta, z0)
    smooth = isinstance(problem.objective, Mean)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        start = z0 / parameters.unit if smooth else z0
        largest = np.abs(start.S).max() if isinstance(start, Sums) else _largest_sum(start, problem.graph)
    terms, c = working_terms(problem, parameters, largest)
    return System(problem.graph, terms, c, parameters.theta, start)


def working_terms(problem: Settling, parameters: Parameters, largest: float) -> tuple[Terms, Array]:
    """The local objectives and c, in working units.

    Args:
        problem: what is to be found.
        parameters: settled.
        largest: no S(0) is larger.

    Raises:
        InputError: see `assemble`.
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        c = parameters.working_c(isinstance(problem.objective, Mean))
        terms = problem.terms(parameters.unit, c)
        reach = largest + max(terms.above.max(), -terms.above.min())
        lightest, heaviest = terms.weight.min(), terms.weight.max()
        if not (lightest > 0 and np.isfinite(heaviest) and np.isfinite(reach / lightest)):
            raise InputError("c is out of range for these values; give scale or bounds and leave c to be chosen")
    return terms, c


def _largest_sum(z: Array, graph: Graph) -> float:
    """No S is larger than this."""
    return float(max(z.max(initial=0.0), -z.min(initial=0.0)) * graph.degree.max())


def check_theta(theta: float) -> None:
    """Refuse an averaging constant that is not in (0, 1]."""
    if isinstance(theta, bool) or not (isinstance(theta, int | float) and 0 < theta <= 1):
        raise InputError("theta must be in (0, 1]; 0.5 converges fastest")


def check_numbers(name: str, value: ArrayLike, shape: tuple[int, ...] | None = None) -> Array:
    """The parameter c, mu or sigma as floats, of this shape if one is given; an error if it is out of its range."""
    try:
        if np.asarray(value).dtype.kind not in "iufO":  # NumPy takes "1" and True for 1
            raise TypeError
        array = np.array(value, dtype=np.float64)
        array = array if shape is None else np.broadcast_to(array, shape).copy()
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, or one a coordinate") from None
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite")
    if name == "c" and not (array > 0).all():
        raise InputError("c must be positive")
    if name == "sigma" and not (array >= 0).all():
        raise InputError("sigma must not be negative")
    return array


def make_node(i: int, graph: Graph, own: Terms | OwnTerms, c: Array, theta: float) -> Node:
    """Participant i, with its own local objective, in working units like c, and nothing of the others'."""
    terms: Terms | OwnTerms
    if isinstance(own, OwnTerms):
        terms = OwnTerms(own.objective, plain(own.s), plain(own.w), plain(own.cd))
    else:
        terms = Terms(plain(own.s), plain(own.above), plain(own.below), plain(own.weight), plain(own.cd), own.smooth)
    return Node(i, tuple(graph.neighbours(i).tolist()), terms, plain(c), theta)
