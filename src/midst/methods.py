"""How an answer is found, and when to stop: values that `solve`, `solve_ensemble`, sweeps and commands take.

- `Search`, the default: masked sums over public thresholds (`protocol/`). Nobody's value is sent and nobody is exposed.
  With noise, everything that is sent is differentially private, and the answer is near the right one.
- `Paper`: Algorithm 1 of the paper, as written. Nodes send their neighbours x until all agree; a node that sends its
  own value is exposed. It ends by `Certified(tolerance)` or `After(iterations)`, and no search follows.
- `Consensus`: the same iteration for every objective, with every option of midst. It also ends by `Exact()`: the
  search, once the x are close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from midst.errors import InputError, closest, whole_number
from midst.objectives import ENDS, Mean, Objective, Quantile
from midst.protocol.keys import Grid, Keys, SumGrid, Words
from midst.protocol.noisy_search import NoisyRules
from midst.protocol.search import MOST_THRESHOLDS, SPACING_ORDERS, Goal, Rules, SearchState, Spacing, SumGoal
from midst.types import Array

if TYPE_CHECKING:
    from midst.problems import Problem
    from midst.protocol.noise import JointNoise

MethodName = Literal["consensus", "search", "paper"]
StopName = Literal["exact", "certified"]
METHODS: tuple[MethodName, ...] = ("search", "consensus", "paper")

CLOSE = 0.3  # of the public scale: the exact finish searches once all x lie within this of each other
_STEPS = 64  # of a scale: where the search begins is told no finer than this


@dataclass(frozen=True)
class Exact:
    """Iterate until all x lie within 0.3 of the public scale of each other; then search. Exact to the last bit."""


@dataclass(frozen=True)
class Certified:
    """Stop when every x is proved to lie within the tolerance of a right answer (`certificate.py`).

    Attributes:
        tolerance: relative to the public scale (absolute where c is given and no scale is).
    """

    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not (isinstance(self.tolerance, int | float) and 0 < self.tolerance < float("inf")):
            raise InputError("tolerance must be a positive number")


@dataclass(frozen=True)
class After:
    """Stop after so many iterations, proved or not; the result says which."""

    iterations: int

    def __post_init__(self) -> None:
        whole_number("iterations", self.iterations)


Stop = Exact | Certified | After


@dataclass(frozen=True, eq=False)
class Consensus:
    """The paper's iteration, with midst's options; `Paper` is the iteration as the paper has it.

    Attributes:
        c: the paper's convergence parameter on the data as given; chosen from the public scale if not given, and from
            the graph's mean degree where a tolerance ends the run.
        theta: averaging constant in (0, 1); see `force`.
        mu: z_{i|j}(0) ~ N(μ A_ij, σ²); μ is chosen from the public centre if not given.
        sigma: its standard deviation (the paper quotes σ²); 0.1 if not given.
        z0: z(0) itself, aligned with graph.source and graph.target, instead of drawing it.
        stop: `Exact()`, `Certified(tolerance)` or `After(iterations)`; not given: exact where the answer is one of the
            values, else certified to 1e-6.
        limit: give up after so many iterations.
        force: accept θ = 1 for a quantile, which does not converge.
    """

    c: ArrayLike | None = None
    theta: float = 0.5
    mu: ArrayLike | None = None
    sigma: ArrayLike | None = None
    z0: ArrayLike | None = None
    stop: Stop | None = None
    limit: int = 1_000_000
    force: bool = False
    name: ClassVar[MethodName] = "consensus"

    def __post_init__(self) -> None:
        from midst.system import check_numbers, check_theta

        check_theta(self.theta)
        for name, given in (("c", self.c), ("mu", self.mu), ("sigma", self.sigma)):
            if given is not None:
                check_numbers(name, given)
        whole_number("limit", self.limit)
        if not isinstance(self.stop, Exact | Certified | After | None):
            raise InputError("stop must be midst.Exact(), midst.Certified(tolerance) or midst.After(iterations)")


@dataclass(frozen=True, eq=False)
class Paper:
    """Algorithm 1 of the paper as written: slopes ±1, θ = ½, one number a node, and no search.

    It finds a median: for an even number of values any point between the two middle ones, as the paper's objective has
    it. When it is certified, the nodes know besides the x how far apart the largest and the smallest x are, and how far
    neighbours are from agreement.

    Attributes:
        c: convergence parameter, like mu, sigma and z0 as in `Consensus`.
        mu: mean of z(0), times A_ij.
        sigma: standard deviation of z(0).
        z0: z(0) itself.
        stop: `Certified(tolerance)`, once every x is proved to lie within it of a median, or `After(iterations)`.
        limit: give up after so many iterations.
    """

    c: ArrayLike | None = None
    mu: ArrayLike | None = None
    sigma: ArrayLike | None = None
    z0: ArrayLike | None = None
    stop: Stop = Certified()
    limit: int = 1_000_000
    name: ClassVar[MethodName] = "paper"

    def __post_init__(self) -> None:
        if not isinstance(self.stop, Certified | After):
            raise InputError("the paper's algorithm ends certified or after so many iterations; no search follows it")
        self.iteration  # noqa: B018  (checks the rest)

    @property
    def iteration(self) -> Consensus:
        """The iteration that this is."""
        return Consensus(self.c, mu=self.mu, sigma=self.sigma, z0=self.z0, stop=self.stop, limit=self.limit)

    def of(self, problem: Problem) -> Problem:
        """The problem with the paper's objective: any median.

        Raises:
            InputError: the paper's algorithm does not find this.
        """
        sought, weights = problem.objective, problem.whole_weights
        median = isinstance(sought, Quantile) and sought.q == Fraction(1, 2) and sought.definition in _MEDIANS
        plain = median and problem.owners is None and problem.unit_weight == 1 and bool((weights == 1).all())
        if not plain or isinstance(problem.keys, Grid):
            raise InputError(
                "the paper's algorithm finds the median of one number a node, all of weight 1 and none rounded, and "
                f"not this {problem.title}; try method consensus"
            )
        return problem.seeking(Quantile(Fraction(1, 2), "any"))


_MEDIANS = ("inverted_cdf", "any")  # the default, and the paper's


@dataclass(frozen=True)
class Search:
    """Masked sums over public thresholds.

    Attributes:
        arity: thresholds a probe, from 1 to 7: more take fewer probes, and tell more. 3 if not given; with noise 1.
        spacing: where they are placed: "rank" (where the wanted rank is expected), "value" or "key" (evenly); or public
            quantiles of the data, at equal steps of probability from 0 to 1, to expect the rank by. "rank" if not
            given; with noise it is "key".
        noise: what noise on every total is to keep to; none for an exact answer.
    """

    arity: int = 3
    spacing: Spacing | tuple[float, ...] = "rank"
    noise: JointNoise | None = None
    name: ClassVar[MethodName] = "search"

    def __init__(
        self,
        arity: int | None = None,
        spacing: Spacing | Sequence[float] | None = None,
        noise: JointNoise | None = None,
    ) -> None:
        if noise is not None:
            _check_noise(noise, spacing)
        arity = arity if arity is not None else 3 if noise is None else 1
        spacing = spacing if spacing is not None else "rank" if noise is None else "key"
        object.__setattr__(self, "noise", noise)
        if not 1 <= whole_number("arity", arity) <= MOST_THRESHOLDS:
            raise InputError(f"arity must be from 1 to {MOST_THRESHOLDS}: a larger one would be a histogram")
        object.__setattr__(self, "arity", int(arity))
        object.__setattr__(self, "spacing", spacing if isinstance(spacing, str) else _check_quantiles(spacing))
        if isinstance(spacing, str) and spacing not in SPACING_ORDERS:
            known = ", ".join(SPACING_ORDERS)
            near = closest(spacing, SPACING_ORDERS)
            raise InputError(f"spacing must be one of {known}, or public quantiles, not {spacing!r}{near}")

    @property
    def way(self) -> Spacing:
        """The first way of placing thresholds."""
        return self.spacing if isinstance(self.spacing, str) else "rank"

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Public quantiles to place them by; none where they were not given."""
        return () if isinstance(self.spacing, str) else self.spacing


Method = Consensus | Search | Paper


def make_method(method: MethodName | Method) -> Method:
    """A method by its name.

    Raises:
        InputError: there is none of that name.
    """
    if isinstance(method, Method):
        return method
    if method not in METHODS:
        near = closest(str(method), METHODS)
        raise InputError(
            f"method must be 'search', 'consensus' or 'paper', or one of midst's own, not {method!r}{near}"
        )
    return Search() if method == "search" else Consensus() if method == "consensus" else Paper()


def choose_method(method: MethodName | Method | None, problems: Sequence[Problem]) -> Method:
    """A method as asked for; if not, the search, or the iteration where a search finds no answer.

    Raises:
        InputError: there is none of that name.
    """
    if method is not None:
        return make_method(method)
    return Search() if all(is_searchable(problem.objective, problem.total) for problem in problems) else Consensus()


def is_searchable(objective: Objective, total: int) -> bool:
    """Whether a search finds the answer, among values of so many units of weight."""
    if isinstance(objective, Quantile):
        return objective.definition != "any" or objective.is_one_value(total)
    return isinstance(objective, Mean)


def require_participants(count: int) -> None:
    """Refuse a search among fewer than three participants.

    Raises:
        InputError: there are fewer.
    """
    if count < 3:
        raise InputError(
            "a search needs at least three participants: of two, each learns the other's value; "
            "method consensus takes two"
        )


def refuse_noise(method: Search) -> None:
    """Refuse noise where an exact search is meant.

    Raises:
        InputError: there is some.
    """
    if method.noise is not None:
        raise InputError("noise is for one quantile, by midst.solve, midst run --dp or a charter; leave it out here")


def search_rules(
    method: Search,
    objective: Objective,
    keys: Keys,
    brackets: Sequence[tuple[int, int]],
    total: int,
    unit: int | None,
    opening: tuple[tuple[int, ...], ...] = (),
    sum_grid: tuple[SumGrid, Sequence[tuple[int, int]]] | None = None,
) -> Rules:
    """The rules of a search: what all participants derive from what they agreed on.

    Args:
        method: arity and spacing.
        objective: what is to be found, in every coordinate.
        keys: how numbers become keys.
        brackets: the first one of each coordinate.
        total: the weight of all values of a coordinate.
        unit: the weight of every value that has any; None where they differ.
        opening: thresholds of the first probe, a tuple of keys a coordinate; none to place them as all others.
        sum_grid: the grid of a mean's sums, and the ends of each coordinate on it; the public one if not given.

    Raises:
        InputError: a search cannot find this.
    """
    refuse_noise(method)
    placed = (method.arity, method.way, method.quantiles, opening)
    if isinstance(objective, Mean):
        grid, ends = sum_grid or public_grid(keys, brackets, ["a mean by search"])
        sums = tuple(SumGoal(k) for k in range(len(brackets)))
        return Rules(keys, tuple(brackets), total, unit, (), *placed, sums, grid, tuple(ends))
    if not isinstance(objective, Quantile):
        hint = ", or a quantile of the same lists" if objective.lists else ""
        raise InputError(f"a search finds quantiles and means, and no {objective.name}; try method consensus{hint}")
    ranks = objective.ranks(total)
    if len(ranks) > 1 and not isinstance(keys, Grid):
        raise InputError("the midpoint of two values needs a public resolution; give one, or definition inverted_cdf")
    goals = tuple(Goal(k, ranks) for k in range(len(brackets)))
    return Rules(keys, tuple(brackets), total, unit, goals, *placed)


def public_grid(
    keys: Keys, brackets: Sequence[tuple[int, int]], sums: Sequence[str]
) -> tuple[Grid, list[tuple[int, int]]]:
    """The public resolution as the grid of sums, and the ends of each coordinate on it.

    Args:
        keys: how numbers become keys.
        brackets: the first one of each coordinate.
        sums: names of what is to be summed, for the error.

    Raises:
        InputError: there is no public resolution.
    """
    if not isinstance(keys, Grid):
        raise InputError(f"{', '.join(sums)}: public bounds and a public resolution are needed, such as 0.01")
    return keys, [(a + 1, b) for a, b in brackets]


def answers_of(search: SearchState) -> tuple[float, ...]:
    """What a search has found, once it is over: the answer to each goal; without goals, the mean of each coordinate."""
    goals = range(len(search.rules.goals))
    return tuple(map(search.value, goals)) or tuple(map(search.mean, range(search.rules.coordinates)))


def noisy_rules(
    arity: int,
    objective: Objective,
    keys: Keys,
    bracket: tuple[int, int],
    total: int,
    variance: Fraction,
    participants: int,
    colluders: int,
) -> NoisyRules:
    """The rules of a search with noise: what all participants derive from what they agreed on.

    Args:
        arity: thresholds a probe.
        objective: what is to be found.
        keys: how numbers become keys: by a public resolution.
        bracket: of the public bounds.
        total: how many values there are.
        variance: of the noise that those who do not collude add to each number.
        participants: how many add noise.
        colluders: of whom so many may know each other's.

    Raises:
        InputError: a search with noise cannot find this.
    """
    if not isinstance(objective, Quantile) or objective.definition not in ENDS:
        raise InputError(f"with noise, one quantile of definition {' or '.join(ENDS)} is found: no mean, no midpoint")
    if not isinstance(keys, Grid):
        raise InputError("noise needs public bounds and a resolution: how many probes there are must be known before")
    from midst.protocol.noise import share_of

    share = share_of(variance, participants, colluders)
    ranks, added = objective.ranks(total), share * participants
    return NoisyRules(keys, bracket, ranks, arity, total, variance, share, added)


def opening_thresholds(keys: Keys, low: float, high: float, scale: float) -> tuple[int, int]:
    """Where a search begins that follows the iteration: the range of all x, rounded outward to scale / 64."""
    first, last = openings(keys, *(np.array(each, np.float64) for each in (low, high, scale))).tolist()
    return first, last


def openings(keys: Keys, low: Array, high: Array, scale: Array) -> Words:
    """`opening_thresholds` of many runs: (runs, 2)."""
    step = scale / _STEPS
    with np.errstate(over="ignore"):
        least, most = low / step, high / step
        told = np.isfinite(least) & np.isfinite(most)
        outward = np.where(told, np.floor(least) * step, low), np.where(told, np.ceil(most) * step, high)
    return np.stack([keys.keys(np.clip(end, *keys.ends)) for end in outward], axis=-1)


def rules_of(problem: Problem, method: Search) -> Rules:
    """The rules of a search for a problem's answer, from its public bounds or from all floats.

    Raises:
        InputError: a search cannot find this.
    """
    weights = problem.search_weights[problem.search_weights > 0]
    unit = int(weights[0]) if (weights == weights[0]).all() else None
    sums = problem.sum_grid if isinstance(problem.objective, Mean) else None
    agreed = problem.keys, problem.brackets, int(problem.search_weights.sum()), unit
    return search_rules(method, problem.objective, *agreed, sum_grid=sums)


def choose_stop(problem: Problem, stop: Stop | None) -> Stop:
    """When the iteration stops, for a problem: as asked, or exact where the answer can be searched for.

    Raises:
        InputError: the iteration cannot find this, or not with this stop.
    """
    objective, one_value = problem.objective, problem.has_one_value
    own = not isinstance(objective, Quantile | Mean)
    if problem.owners is not None and not own:
        raise InputError("lists are pooled by a search only; try method search, or one value a node")
    midpoint = isinstance(objective, Quantile) and not one_value and objective.definition != "any"
    if stop is None:
        stop = Exact() if one_value or midpoint else Certified()
    if isinstance(stop, Exact):
        if own:
            raise InputError(f"no search finds a {problem.title}; try stop certified, or so many iterations")
        if not (one_value or midpoint):
            raise InputError(
                f"a {problem.title} is no one value to search for; try definition inverted_cdf, or stop certified"
            )
        return stop
    if midpoint:
        raise InputError("only a search finds the midpoint of two values; try stop exact, or definition inverted_cdf")
    if isinstance(problem.keys, Grid):
        raise InputError("a resolution is for exact answers; leave it out, or try stop exact")
    return stop


def make_stop(
    problem: Problem, name: StopName | None, tolerance: float | None = None, iterations: int | None = None
) -> Stop:
    """A stop from words and numbers, as files and commands have them.

    Args:
        problem: what is to be found.
        name: exact or certified; not given: as `choose_stop` does.
        tolerance: of what is certified.
        iterations: so many, whatever the rest says.

    Raises:
        InputError: the iteration cannot find this, or not with this stop.
    """
    if iterations is not None:
        return choose_stop(problem, After(iterations))
    if name not in (None, "exact", "certified"):
        raise InputError(f"stop must be 'exact' or 'certified', not {name!r}")
    certified = Certified() if tolerance is None else Certified(tolerance)
    named = {None: None, "exact": Exact(), "certified": certified}[name]
    chosen = choose_stop(problem, named)
    return certified if isinstance(chosen, Certified) else chosen


def _check_noise(noise: JointNoise, spacing: Spacing | Sequence[float] | None) -> None:
    from midst.protocol.noise import JointNoise

    if not isinstance(noise, JointNoise):
        raise InputError("noise must be such as midst.dp.JointNoise(epsilon=1, delta=1e-6)")
    if spacing not in (None, "key"):
        raise InputError("with noise thresholds are placed by key; leave spacing out")


def _check_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    try:
        numbers = tuple(float(number) for number in quantiles)
    except (TypeError, ValueError):
        raise InputError("spacing by quantiles needs numbers, in increasing order") from None
    increasing = all(low < high for low, high in pairwise(numbers))
    if len(numbers) < 2 or not increasing or not all(abs(number) < float("inf") for number in numbers):
        raise InputError("spacing by quantiles needs at least two finite numbers, in increasing order")
    return numbers
