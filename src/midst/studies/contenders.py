"""What is compared: each method, run on the same case.

Rules:
- A case is one problem as all methods get it: values rounded to the public resolution, one prior, one seed.
- A contender runs a method on a case and gives an `Outcome`. Which package it needs, how many can take part and whom
  one has to trust stand beside it in `METHODS`.
- What has no proof that it is done (subgradient, ADMM) is stopped at the best moment: from when on every participant
  stays within the tolerance. Nobody in the network could tell that moment. What never gets there goes on to the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from midst.baselines.async_admm import run_async_admm
from midst.baselines.curator import run_curator
from midst.baselines.grid import PublicGrid, make_grid
from midst.baselines.joint_noise import run_joint_noise
from midst.baselines.kll import run_kll
from midst.baselines.local_noise import run_local_noise
from midst.baselines.outcome import Outcome, Stopwatch
from midst.baselines.secret_sharing import MOST_PARTIES, run_secret_sharing
from midst.baselines.subgradient import run_subgradient
from midst.baselines.tdigest import run_tdigest
from midst.dp.mechanisms import LaplaceNoise
from midst.errors import InputError, closest
from midst.methods import Certified, Consensus, Exact, Method, Search
from midst.net.sizes import sent_in_iteration, sent_in_search
from midst.objectives import Quantile
from midst.privacy.audit import audit
from midst.privacy.priors import Prior, Within
from midst.problems import Problem
from midst.protocol.keys import Grid
from midst.protocol.noise import JointNoise
from midst.result import Result
from midst.solving import solve
from midst.studies.expectation import assumed_prior

TOLERANCE = 1e-3  # of the public scale, to which an iteration is to come
ROUNDS = 2000  # after which it is given up
WAKE_UPS = 200_000  # of edges, after which asynchronous ADMM is
EPSILON, DELTA = 1.0, 1e-6  # of all methods with noise


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One problem, as all methods get it.

    Attributes:
        problem: its values, rounded to the resolution; without one, as iterations have it.
        gridded: the same with the resolution, as searches have it.
        prior: of a value, within the bounds.
        resolution: public.
        seed: of what a method draws.
    """

    problem: Problem
    gridded: Problem
    prior: Prior
    resolution: Fraction
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        """The same for every method."""
        return np.random.default_rng(self.seed)

    @property
    def bounds(self) -> tuple[float, float]:
        """Public."""
        assert self.problem.bounds is not None
        low, high = self.problem.bounds
        return float(low), float(high)

    @property
    def tolerance(self) -> float:
        """In the units of the data."""
        return TOLERANCE * float(self.problem.scale)

    @cached_property
    def grid(self) -> PublicGrid:
        """Where values lie."""
        return make_grid(self.prior, *self.bounds, float(self.resolution))

    @cached_property
    def floor(self) -> float:
        """Bits that the answer alone gives away, in the mean over all participants."""
        found = solve(self.gridded, Search())
        return audit(found.trace, None, self.prior, float(self.resolution)).mean_floor


def make_case(problem: Problem, prior: Prior | None, seed: int) -> Case:
    """A problem as all methods get it.

    Args:
        problem: a low median, with public bounds and a resolution.
        prior: of every value; about the middle of the bounds, a tenth of their width apart, if not given.
        seed: of what methods draw.

    Raises:
        InputError: the problem is not for all methods.
    """
    alike = problem.owners is None and problem.values.ndim == 1 and bool((problem.whole_weights == 1).all())
    if not alike or not isinstance(problem.objective, Quantile) or problem.objective != Quantile(0.5):
        raise InputError("methods are compared on the low median of one number a node, all of the same weight")
    if problem.bounds is None or not isinstance(problem.keys, Grid):
        raise InputError("methods are compared on values of public bounds and a public resolution; give both")
    low, high = (float(end) for end in problem.bounds)
    resolution = problem.keys.step
    rounded = problem.keys.values(problem.value_keys)
    plain = Problem(problem.graph, rounded, objective=problem.objective, bounds=(low, high))
    believed = assumed_prior((low, high), None) if prior is None else Within(prior, low, high)
    return Case(plain, problem.with_values(rounded), believed, resolution, seed)


class Contender(NamedTuple):
    """A method to compare.

    Attributes:
        run: it, on a case.
        trust: whom a participant has to trust with its value.
        needs: a package, and the extra that brings it.
        most: how many can take part, and why no more.
    """

    run: Callable[[Case], Outcome]
    trust: str
    needs: tuple[str, str] | None = None
    most: tuple[int, str] | None = None

    def refusal(self, nodes: int) -> str | None:
        """Why it cannot be run at all; None where it can."""
        if self.needs is not None and find_spec(self.needs[0]) is None:
            return f"{self.needs[0]} is not installed; the extra {self.needs[1]} brings it"
        return self.most[1] if self.most is not None and nodes > self.most[0] else None


def _by_midst(method: Method, case: Case) -> Outcome:
    """A method of midst's own, and what the audit says of it."""
    exact = isinstance(method, Search) or isinstance(method.stop, Exact)
    problem, watch = case.gridded if exact else case.problem, Stopwatch()
    result = solve(problem, method, rng=case.rng, record="audit", throw=False)
    seconds = watch.read()
    leakage = audit(result.trace, None, case.prior, float(case.resolution), attacks=False)
    answers = result.trace.x[-1] if result.standing is None else np.asarray(result.value)
    told = answers, result.rounds, _sent(result, 2 if exact else 3), seconds
    if leakage.kind == "exact":
        return Outcome(*told, leakage.exposed_count, leakage.mean_bits)
    why = f"in a run only an upper bound is known: {leakage.mean_bits:.2f} bits"
    return Outcome(*told, len(result.exposed), None, why)


def _sent(result: Result, levels: int) -> float:
    """Bytes that a node sent: in the iteration, z(0) first, and in the search."""
    graph, trace = result.trace.graph, result.trace
    carried = sent_in_iteration(graph, result.iterations + 1, levels) if result.iterations else 0.0
    if result.standing is None:
        return carried
    asked = np.zeros(result.probes, np.int64)
    for probe in trace.probes:
        asked[probe.step] += len(probe.totals)
    return carried + sent_in_search(graph, np.maximum(asked, 1).tolist())  # the sum that ends a search is one number


NOBODY, _WHO_LISTENS = "nobody", "all who listen"
METHODS: dict[str, Contender] = {
    "consensus": Contender(partial(_by_midst, Consensus(stop=Certified(TOLERANCE), limit=ROUNDS)), _WHO_LISTENS),
    "consensus-exact": Contender(partial(_by_midst, Consensus(stop=Exact(), limit=ROUNDS)), _WHO_LISTENS),
    **{f"search-{arity}": Contender(partial(_by_midst, Search(arity)), NOBODY) for arity in (1, 3, 7)},
    "subgradient": Contender(
        lambda case: run_subgradient(case.problem, case.grid, ROUNDS, case.tolerance), _WHO_LISTENS
    ),
    "async-admm": Contender(
        lambda case: run_async_admm(case.problem, case.grid, ROUNDS, WAKE_UPS, case.tolerance, case.rng), _WHO_LISTENS
    ),
    "local-noise": Contender(
        lambda case: run_local_noise(case.problem, case.grid, LaplaceNoise(EPSILON, case.bounds), case.rng), NOBODY
    ),
    "joint-noise": Contender(
        lambda case: run_joint_noise(case.gridded, case.grid, JointNoise(EPSILON, DELTA), case.rng), NOBODY
    ),
    "mpyc": Contender(
        lambda case: run_secret_sharing(case.problem, case.resolution, case.floor),
        "an honest majority",
        ("mpyc", "compare"),
        (MOST_PARTIES, f"every party is a process: with at most {MOST_PARTIES} of them it is run"),
    ),
    "curator": Contender(
        lambda case: run_curator(case.problem, case.grid, EPSILON), "a curator sees all", ("opendp", "dp")
    ),
    "kll": Contender(lambda case: run_kll(case.problem, case.grid), _WHO_LISTENS, ("datasketches", "compare")),
    "tdigest": Contender(lambda case: run_tdigest(case.problem, case.grid), _WHO_LISTENS, ("fastdigest", "compare")),
}


def check_methods(names: Sequence[str] | None) -> tuple[str, ...]:
    """The names, if all are known; all that there are, if none is given.

    Raises:
        InputError: one is not known.
    """
    for name in names or ():
        if name not in METHODS:
            raise InputError(f"there is no method {name!r}; try some of {', '.join(METHODS)}{closest(name, METHODS)}")
    return tuple(dict.fromkeys(names or METHODS))
