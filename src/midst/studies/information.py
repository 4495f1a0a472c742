"""What many runs tell of a value on average: the paper's metric I(S_i; O), and beside it the condition of Theorem 1.

Rules:
- Of one run the audit gives KL(posterior ‖ prior). Over data drawn from the prior, its mean is I(S_i; O). Over z(0)
  alone, the data fixed as in the paper's experiments, the same mean is of these values, and is called bits.
- An exposed value is counted to a public resolution: I of a continuous value that is told exactly is infinite.
- For an eavesdropper on clear z(0) the ensemble's bounds are all that an audit needs, where no search follows. For
  others each run is solved again and audited.
- Intervals are at 95%, over runs, which are independent as nodes are not; over draws of the data, where each draw has
  several runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from midst.engines.batches import source_of
from midst.engines.ensemble import EnsembleResult, solve_ensemble
from midst.errors import InputError
from midst.frames import make_frame
from midst.methods import Method, MethodName, choose_method
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import FigureKind, Leakage, audit, resolutions
from midst.privacy.posterior import single
from midst.privacy.priors import Normal, Priors, prior_of_each
from midst.problems import Problem
from midst.progress import watch_tasks
from midst.rows import Report
from midst.solving import solve
from midst.studies.expectation import weakest
from midst.studies.paper.claims import mean_of, mean_share_of
from midst.system import RNG, streams
from midst.types import Array, Ints
from midst.workers import TaskProgress, run_in_parallel

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Information(Report):
    """Bits that a run tells an adversary of one honest value, and the share of nodes that keep Theorem 1's condition.

    Attributes:
        bits: I(S_i; O), the mean over honest nodes and runs; of data that are the same in every run, bits of these.
        low: lower end of its 95% interval.
        high: upper end.
        at_least: bits that the best attack here achieves; less than `bits` only where these are an upper bound.
        kind: "exact", "sampled", "lower bound" or "upper bound": the weakest of all runs' audits.
        resolution: the width to which an exposed value is counted; the widest, where priors differ.
        secure: share of honest nodes that never sent their own value, which Theorem 1 calls secure.
        secure_low: lower end of its 95% interval.
        secure_high: upper end.
        runs: the number of runs.
        draws: the number of different data among them; intervals are over these, where each has as many runs.
        adversary: the listener.
        by_node: `bits` of each node; NaN for corrupt ones.
    """

    bits: float
    low: float
    high: float
    at_least: float
    kind: FigureKind
    resolution: float
    secure: float
    secure_low: float
    secure_high: float
    runs: int
    draws: int
    adversary: Adversary
    by_node: Array

    @property
    def redrawn(self) -> bool:
        """True if the data differ between runs."""
        return self.draws > 1

    @property
    def name(self) -> str:
        """The figure's name: it is mutual information over redrawn data only."""
        return "I(S_i; O)" if self.redrawn else "bits of these values"

    def rows(self) -> list[tuple[str, str]]:
        """The figures as lines for people: (name, figure)."""
        data = {1: "the same data", self.runs: "data of their own"}.get(self.draws, f"{self.draws:,} draws of the data")
        return [
            ("told to", str(self.adversary)),
            (self.name, f"{self.bits:.2f} a node, {self.low:.2f} to {self.high:.2f}; {self.kind}"),
            *([("at least", f"{self.at_least:.2f}, by the best attack here")] * (self.kind == "upper bound")),
            ("secure", f"{self.secure:.2f} of the nodes, {self.secure_low:.2f} to {self.secure_high:.2f}"),
            ("exposed values", f"counted to {self.resolution:g}"),
            ("runs", f"{self.runs:,}, on {data}"),
        ]

    def __repr__(self) -> str:
        bits = f"{self.name} = {self.bits:.2f} [{self.low:.2f}, {self.high:.2f}]"
        secure = f"secure {self.secure:.2f} [{self.secure_low:.2f}, {self.secure_high:.2f}]; {self.runs:,} runs"
        return f"<Information to {self.adversary}: {bits} at resolution {self.resolution:g}, {self.kind}; {secure}>"

    def to_pandas(self) -> DataFrame:
        """One row, to be put under others: a column an attribute, but for `by_node`.

        Raises:
            MissingExtra: pandas is not installed.
        """
        names = [each.name for each in fields(self) if each.name not in ("adversary", "by_node")]
        return make_frame({"adversary": [str(self.adversary)]} | {name: [getattr(self, name)] for name in names})


def information(
    problems: Problem | Sequence[Problem],
    method: Method | MethodName | None = None,
    *,
    adversary: Adversary | None = None,
    prior: Priors | None = None,
    resolution: float | None = None,
    runs: int | None = None,
    rng: RNG = None,
    progress: TaskProgress | bool | None = None,
) -> Information:
    """Estimate I(S_i; O): solve many runs, and average what each tells an adversary.

    Args:
        problems: as for `solve_ensemble`. Give data drawn anew from the prior in every run for I(S_i; O); give one
            problem with one number a node, and `runs`, for bits of these values, with z(0) drawn anew.
        method: as for `solve_ensemble`.
        adversary: the listener; an eavesdropper on clear z(0) if not given.
        prior: of each value; N(0, 1) if not given. Bits are I(S_i; O) only if the data follow it.
        resolution: to which an exposed value is counted; a thousandth of each prior's scale if not given.
        runs: the number of runs on one problem.
        rng: a seed or a generator.
        progress: of the audits, where the ensemble's bounds do not suffice: True for a bar, in a notebook or on a
            terminal; or a function, called with the number of runs done and of all.

    Raises:
        InputError: there are fewer than two runs, or a run cannot be solved or audited.
    """
    source, who = source_of(problems, runs), Adversary() if adversary is None else adversary
    chosen, priors = choose_method(method, source.different), Normal() if prior is None else prior
    if source.runs < 2:
        raise InputError("at least 2 runs are needed to tell an average from chance; give more")
    seed = int(rng if isinstance(rng, Integral) else streams(rng).z0.integers(2**63))
    tasks = [_Run(source.run(k), chosen, who, priors, resolution, seed, k) for k in range(source.runs)]
    for problem in source.different:
        who.check(problem.graph)
        resolutions(resolution, prior_of_each(priors, problem.graph.n))
    ensemble = solve_ensemble(problems, chosen, runs=runs, rng=seed)
    kind: FigureKind = "exact"
    if _bounds_suffice(source.different, ensemble, who):
        bits = at_least = [run.from_bounds(ensemble) for run in tasks]
    else:
        with watch_tasks(progress, "information", "runs") as told:
            leakages = run_in_parallel(_Run.audited, tasks, progress=told)
        kind = weakest(leakages) or kind
        bits, at_least = ([getattr(each, name) for each in leakages] for name in ("bits", "at_least"))
    draws = {run.problem.values.tobytes(): k for k, run in enumerate(tasks)}
    draw = np.array([draws[run.problem.values.tobytes()] for run in tasks])
    widest = max(float(resolutions(resolution, prior_of_each(priors, len(each))).max()) for each in bits)
    secure = [1 - float(ensemble.exposed[run.k, run.honest].mean()) for run in tasks]
    return Information(
        *mean_of(_by_draw([float(np.nanmean(each)) for each in bits], draw)),
        float(np.mean([np.nanmean(each) for each in at_least])),
        kind,
        widest,
        *mean_share_of(_by_draw(secure, draw)),
        source.runs,
        len(draws),
        who,
        _mean_by_node(bits),
    )


class _Run(NamedTuple):
    """One run, and what is asked of it."""

    problem: Problem
    method: Method
    who: Adversary
    prior: Priors
    resolution: float | None
    seed: int
    k: int

    @property
    def honest(self) -> list[int]:
        return sorted({*range(self.problem.graph.n)} - {*self.who.check(self.problem.graph)})

    def audited(self) -> Leakage:
        """The audit of the same run, solved again."""
        result = solve(self.problem, self.method, rng=self.seed, run=self.k, record="audit", throw=False)
        return audit(result.trace, self.who, self.prior, self.resolution)

    def from_bounds(self, ensemble: EnsembleResult) -> Array:
        """Bits by the bounds that the ensemble has kept: the posterior of `audit`, which is the prior cut to them."""
        values, priors = self.problem.values, prior_of_each(self.prior, self.problem.graph.n)
        cells, bits = resolutions(self.resolution, priors), np.full(len(priors), np.nan)
        lower, upper = (
            np.where(ensemble.exposed[self.k, : len(values)], values, ends[self.k, : len(values)])
            for ends in (ensemble.lower, ensemble.upper)
        )
        for i in self.honest:
            name = f"node {self.problem.graph.label(i)}"
            bits[i] = single(priors[i], name, float(lower[i]), float(upper[i])).bits(float(cells[i]))
        return bits


def _bounds_suffice(problems: Sequence[Problem], ensemble: EnsembleResult, who: Adversary) -> bool:
    """True if the adversary knows z(0), and no totals, and if every node's messages depend on its value."""
    kinked = all(isinstance(each.objective, Quantile) and each.whole_weights.all() for each in problems)
    searched = ensemble.probes.any() or not ensemble.iterations.all()
    return kinked and not searched and who.eavesdrops and who.init == "clear"


def _by_draw(samples: Sequence[float], draw: Ints) -> Array:
    """What is independent: the mean of each draw of the data, where all have as many runs and there are several."""
    _, place, count = np.unique(draw, return_inverse=True, return_counts=True)
    several = len(count) > 1 and bool((count == count[0]).all())
    return np.bincount(place, samples) / count if several else np.array(samples)


def _mean_by_node(bits: Sequence[Array]) -> Array:
    """The mean over runs, of which some may have fewer nodes."""
    table = np.full((len(bits), max(map(len, bits))), np.nan)
    for row, each in zip(table, bits, strict=True):
        row[: len(each)] = each
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(table, axis=0) / np.isfinite(table).sum(axis=0))
