"""Which c and sigma? Simulates ensembles over both and compares what they cost with what they give away.

Rules:
- Choices of c are relative to the prior's scale, and reported in the units of the data; the iteration starts at the
  prior's median.
- Run k of every choice has the same values and streams, so that choices are compared run by run.
- A setting is on the frontier if no other one gives away fewer bits in as few rounds. The recommended one gives away
  the fewest bits of those whose rounds fit the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from midst.errors import InputError
from midst.graphs import Graph
from midst.methods import Consensus
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit
from midst.privacy.priors import Prior
from midst.privacy.sealed import TooShort
from midst.problems import Problem
from midst.solving import solve
from midst.system import streams
from midst.workers import Progress, spread

CS = (0.3, 1.0, 3.0, 10.0, 30.0)
SIGMAS = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Setting:
    """What is planned for.

    Attributes:
        graph: who talks to whom.
        prior: of every value.
        adversary: who listens.
    """

    graph: Graph
    prior: Prior
    adversary: Adversary


@dataclass(frozen=True)
class Outcome:
    """What one choice of parameters costs and gives away, on average.

    Attributes:
        c: in the units of the data, as a charter has it.
        sigma: of z(0).
        bits: given away by an honest node; in the rare run that is too short for a sealed audit, counted as if z(0)
            were known, which is no less.
        bits_error: standard error of that, over runs.
        exposed: share of honest nodes the adversary knows the value of.
        rounds: to the proved answer; the median over runs.
        most_rounds: nine runs of ten need no more.
    """

    c: float
    sigma: float
    bits: float
    bits_error: float
    exposed: float
    rounds: float
    most_rounds: float


@dataclass(frozen=True)
class Plan:
    """The outcomes, and what to do.

    Attributes:
        outcomes: of all settings, in order of c and sigma.
        budget: how many rounds nine runs of ten may take.
        recommended: the choice; None where no setting fits the budget.
    """

    outcomes: tuple[Outcome, ...]
    budget: float
    recommended: Outcome | None

    @property
    def frontier(self) -> tuple[Outcome, ...]:
        """The outcomes that no other one beats in both bits and rounds, fewest rounds first."""
        best: list[Outcome] = []
        for outcome in sorted(self.outcomes, key=lambda each: (each.most_rounds, each.bits)):
            if not best or outcome.bits < best[-1].bits:
                best.append(outcome)
        return tuple(best)

    @property
    def reason(self) -> str:
        """Why that one, in a sentence."""
        if self.recommended is None:
            least = min(self.outcomes, key=lambda each: each.most_rounds)
            return (
                f"no setting fits {self.budget:g} rounds; the quickest (c = {least.c:g}, sigma = {least.sigma:g}) "
                f"takes {least.most_rounds:g}"
            )
        chosen = self.recommended
        fitting = sum(outcome.most_rounds <= self.budget for outcome in self.outcomes)
        return (
            f"c = {chosen.c:g}, sigma = {chosen.sigma:g} gives away the least ({chosen.bits:.2f} bits a node, "
            f"{chosen.exposed:.0%} exposed) of the {fitting} settings that take at most {self.budget:g} rounds in nine "
            "runs of ten"
        )


def make_plan(
    setting: Setting,
    rounds_budget: float,
    *,
    runs: int = 20,
    seed: int = 0,
    workers: int = 1,
    cs: Sequence[float] = CS,
    sigmas: Sequence[float] = SIGMAS,
    progress: Progress | None = None,
) -> Plan:
    """Simulate every choice of c and sigma and recommend one.

    Args:
        setting: what is planned for.
        rounds_budget: how many rounds nine runs of ten may take.
        runs: of each choice.
        seed: of everything random.
        workers: processes.
        cs: the values of c, in units of 1 / the prior's scale.
        sigmas: the values of sigma.
        progress: told how many runs of how many are done.

    Raises:
        InputError: the budget or the number of runs makes no sense, or the adversary does not fit the graph.
    """
    if not rounds_budget >= 1:
        raise InputError("the budget must be at least one round")
    if runs < 2:
        raise InputError("at least 2 runs are needed to tell an average from chance")
    choices = list(product(cs, sigmas))
    tasks = [(setting, c, sigma, seed, k) for c, sigma in choices for k in range(runs)]
    seen = np.array(spread(_observe, tasks, workers, progress)).reshape(len(choices), runs, 3)
    scale = setting.prior.scale
    outcomes = tuple(_summarise(c / scale, sigma, each) for (c, sigma), each in zip(choices, seen, strict=True))
    fitting = [outcome for outcome in outcomes if outcome.most_rounds <= rounds_budget]
    best = min(fitting, key=lambda each: (each.bits, each.rounds), default=None)
    return Plan(outcomes, rounds_budget, best)


def _observe(task: tuple[Setting, float, float, int, int]) -> tuple[float, float, int]:
    """Run number k: bits an honest node gave away, share exposed, rounds."""
    setting, c, sigma, seed, k = task
    prior = setting.prior
    drawn = streams(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
    values = [prior.quantile(level) for level in drawn.values.uniform(1e-12, 1, setting.graph.n)]
    problem = Problem(setting.graph, values, objective=Quantile(0.5, "low"), scale=prior.scale)
    c /= prior.scale
    result = solve(problem, Consensus(c, mu=-c * prior.quantile(0.5), sigma=sigma), rng=drawn.z0, record="audit")
    try:
        leak = audit(result.trace, setting.adversary, prior)
    except TooShort:  # rare; whoever knows z(0) knows no less, so this is an upper bound
        leak = audit(result.trace, replace(setting.adversary, init="clear"), prior)
    return leak.mean_bits, leak.exposed_count / leak.honest, result.rounds


def _summarise(c: float, sigma: float, seen: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Outcome:
    bits, exposed, rounds = seen.T
    return Outcome(
        c=c,
        sigma=sigma,
        bits=float(bits.mean()),
        bits_error=float(bits.std(ddof=1) / np.sqrt(len(bits))),
        exposed=float(exposed.mean()),
        rounds=float(np.median(rounds)),
        most_rounds=float(np.quantile(rounds, 0.9)),
    )
