"""Which c and sigma? Simulates ensembles over both and compares what they cost with what they give away.

Rules:
- Choices of c are relative to the prior's scale, and reported in the units of the data; the iteration starts at the
  prior's median.
- Run k of every choice has the same values and streams, so that choices are compared run by run.
- A setting is on the frontier if no other one gives away fewer bits in as few rounds. The recommended one gives away
  the fewest bits of those whose rounds fit the budget. Where several runs on the same values are planned, bits are what
  these give away together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from midst.errors import InputError
from midst.graphs import Graph
from midst.methods import Consensus
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import FigureKind, Leakage, audit, audit_together
from midst.privacy.priors import Prior
from midst.privacy.sealed import TooShort
from midst.problems import Problem
from midst.progress import watch_tasks
from midst.solving import solve
from midst.studies.expectation import mean_or_none, weakest
from midst.system import streams, whole_number
from midst.workers import TaskProgress, run_in_parallel

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
class Choice:
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
        floor: of the bits, those that the answer alone gives away; None where that is not known.
        excess: the rest.
        kind: what the figures are: "exact", "sampled" or "upper bound".
        joint_bits: given away by as many runs on the same values as were planned, together.
        joint_bits_error: standard error of that, over runs.
        joint_exposed: share of honest nodes the adversary then knows the value of.
        joint_kind: what these figures are.
    """

    c: float
    sigma: float
    bits: float
    bits_error: float
    exposed: float
    rounds: float
    most_rounds: float
    floor: float | None
    excess: float | None
    kind: FigureKind | None
    joint_bits: float
    joint_bits_error: float
    joint_exposed: float
    joint_kind: FigureKind | None


@dataclass(frozen=True)
class Plan:
    """The outcomes, and what to do.

    Attributes:
        outcomes: of all settings, in order of c and sigma.
        budget: how many rounds nine runs of ten may take.
        recommended: the choice; None where no setting fits the budget.
        repeats: how many runs on the same values are planned.
    """

    outcomes: tuple[Choice, ...]
    budget: float
    recommended: Choice | None
    repeats: int = 1

    @property
    def frontier(self) -> tuple[Choice, ...]:
        """The outcomes that no other one beats in both bits and rounds, fewest rounds first."""
        best: list[Choice] = []
        for outcome in sorted(self.outcomes, key=lambda each: (each.most_rounds, each.joint_bits)):
            if not best or outcome.joint_bits < best[-1].joint_bits:
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
        together = f" by {self.repeats} runs together" if self.repeats > 1 else ""
        return (
            f"c = {chosen.c:g}, sigma = {chosen.sigma:g} gives away the least ({chosen.joint_bits:.2f} bits a node, "
            f"{chosen.joint_exposed:.0%} exposed{together}) of the {fitting} settings that take at most "
            f"{self.budget:g} rounds in nine runs of ten"
        )


def make_plan(
    setting: Setting,
    rounds_budget: float,
    *,
    runs: int = 20,
    repeats: int = 1,
    seed: int = 0,
    workers: int = 1,
    cs: Sequence[float] = CS,
    sigmas: Sequence[float] = SIGMAS,
    progress: TaskProgress | bool | None = None,
) -> Plan:
    """Simulate every choice of c and sigma and recommend one.

    Args:
        setting: what is planned for.
        rounds_budget: how many rounds nine runs of ten may take.
        runs: of each choice, on different values.
        repeats: how many runs on the same values are planned.
        seed: of everything random.
        workers: processes.
        cs: the values of c, in units of 1 / the prior's scale.
        sigmas: the values of sigma.
        progress: True for a bar, in a notebook or on a terminal; or a function, told how many runs of how many are
            done.

    Raises:
        InputError: the budget or the number of runs makes no sense, or the adversary does not fit the graph.
    """
    if not rounds_budget >= 1:
        raise InputError("the budget must be at least one round")
    if runs < 2:
        raise InputError("at least 2 runs are needed to tell an average from chance")
    whole_number("repeats", repeats)
    choices = list(product(cs, sigmas))
    tasks = [_Task(setting, c, sigma, repeats, seed, k) for c, sigma in choices for k in range(runs)]
    with watch_tasks(progress, "plan", "runs") as told:
        seen = run_in_parallel(_observe, tasks, workers, told)
    scale = setting.prior.scale
    outcomes = tuple(
        _summarise(c / scale, sigma, seen[k * runs : (k + 1) * runs]) for k, (c, sigma) in enumerate(choices)
    )
    fitting = [outcome for outcome in outcomes if outcome.most_rounds <= rounds_budget]
    best = min(fitting, key=lambda each: (each.joint_bits, each.rounds), default=None)
    return Plan(outcomes, rounds_budget, best, repeats)


class _Task(NamedTuple):
    setting: Setting
    c: float
    sigma: float
    repeats: int
    seed: int
    k: int


class _Seen(NamedTuple):
    """Of one run its leakage and rounds, and the leakage of it and its repeats together."""

    once: Leakage
    together: Leakage
    rounds: int


def _observe(task: _Task) -> _Seen:
    """Run number k."""
    setting, prior = task.setting, task.setting.prior
    drawn = streams(np.random.default_rng(np.random.SeedSequence(task.seed, spawn_key=(task.k,))))
    values = [prior.quantile(level) for level in drawn.values.uniform(1e-12, 1, setting.graph.n)]
    problem = Problem(setting.graph, values, objective=Quantile(0.5), scale=prior.scale)
    c = task.c / prior.scale
    method = Consensus(c, mu=-c * prior.quantile(0.5), sigma=task.sigma)
    results = [solve(problem, method, rng=drawn.z0, record="audit") for _ in range(task.repeats)]
    traces = [result.trace for result in results]
    try:
        once = audit(traces[0], setting.adversary, prior, attacks=False)
    except TooShort:  # rare; whoever knows z(0) knows no less, so this is an upper bound
        heard = audit(traces[0], replace(setting.adversary, init="clear"), prior, attacks=False)
        once = replace(heard, adversary=setting.adversary, kind="upper bound")
    together = audit_together(traces, setting.adversary, prior, attacks=False) if len(traces) > 1 else once
    return _Seen(once, together, results[0].rounds)


def _summarise(c: float, sigma: float, seen: Sequence[_Seen]) -> Choice:
    bits, joint_bits = ([leak.mean_bits for leak in leaks] for leaks in zip(*(one[:2] for one in seen), strict=True))
    floor = mean_or_none([one.once.mean_floor for one in seen])
    rounds = [one.rounds for one in seen]
    return Choice(
        c=c,
        sigma=sigma,
        bits=float(np.mean(bits)),
        bits_error=_error(bits),
        exposed=_share([one.once for one in seen]),
        rounds=float(np.median(rounds)),
        most_rounds=float(np.quantile(rounds, 0.9)),
        floor=floor,
        excess=None if floor is None else float(np.mean(bits)) - floor,
        kind=weakest([one.once for one in seen]),
        joint_bits=float(np.mean(joint_bits)),
        joint_bits_error=_error(joint_bits),
        joint_exposed=_share([one.together for one in seen]),
        joint_kind=weakest([one.together for one in seen]),
    )


def _error(figures: Sequence[float]) -> float:
    return float(np.std(figures, ddof=1) / np.sqrt(len(figures)))


def _share(leakages: Sequence[Leakage]) -> float:
    return float(np.mean([leakage.exposed_count / leakage.honest for leakage in leakages]))
