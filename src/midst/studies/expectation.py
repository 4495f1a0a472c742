"""What to expect of both methods, before anybody takes part: rounds, bytes, and what the audit says, by simulation.

Rules:
- Both methods find the same values' answer, drawn from a prior within the public bounds, with the parameters that a
  charter would choose.
- The adversary is one curious participant, unless another is named. Of an iteration its bits are an upper bound.
- Repeated runs are on the same values, each with its own z(0), and audited together. The thresholds of a search are
  deterministic, so a search again tells nothing new.
- Bytes are those of frames and TLS records, sent and received, handshakes and journals left out: an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from midst.engines.searching import search_values
from midst.graphs import Graph
from midst.methods import Consensus, Method, Search
from midst.net.sizes import sent_in_iteration, sent_in_search
from midst.objectives import Objective, Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import FigureKind, Leakage, audit, audit_together
from midst.privacy.priors import Normal, Prior, Within
from midst.privacy.statistics import measure_session
from midst.problems import Problem
from midst.protocol.search import Rules
from midst.result import Result
from midst.solving import solve
from midst.statistics import Plan
from midst.system import streams, whole_number

_RECORD = 26  # bytes that TLS and the frame's length add
_LEVELS = 2  # numbers that travel with an x where a search follows
_SPREADS = 10  # the bounds are taken to be so many spreads wide, where no spread is given
_LARGEST = 64  # nodes up to which bits are computed
_KINDS = ("exact", "sampled", "lower bound", "upper bound")


@dataclass(frozen=True)
class Expectation:
    """What one method costs and gives away, on average.

    Attributes:
        method: "search" or "consensus".
        c: of consensus, where it was given; in the units of the data, as a charter has it.
        rounds: message rounds, the median over runs.
        most_rounds: nine runs of ten need no more.
        exposed: how many honest participants' values the adversary knows; where bits are not computed, how many sent
            their own.
        honest: of how many.
        bits: that an honest participant gives away; None where the network is too large to say.
        bits_error: standard error of that, over runs; None where it is not known.
        floor: that the answer alone gives away.
        excess: of bits over floor.
        kind: what the figures are: "exact", "sampled" or "upper bound".
        repeats: how many runs on the same values the next four are of.
        joint_bits: that an honest participant gives away by all of them together.
        joint_excess: of these over the floor, which is the same.
        joint_exposed: how many honest participants' values the adversary then knows.
        joint_kind: what these figures are.
        bytes_per_node: sent and received in one run, about.
    """

    method: str
    c: float | None
    rounds: float
    most_rounds: float
    exposed: float
    honest: int
    bits: float | None
    bits_error: float | None
    floor: float | None
    excess: float | None
    kind: FigureKind | None
    repeats: int
    joint_bits: float | None
    joint_excess: float | None
    joint_exposed: float | None
    joint_kind: FigureKind | None
    bytes_per_node: float


@dataclass(frozen=True, eq=False)
class _Seen:
    """One run, and what it and its repeats gave away; None where the network is too large to say."""

    result: Result
    carried: float
    once: Leakage | None
    together: Leakage | None


def assumed_prior(bounds: tuple[float, float], spread: float | None) -> Prior:
    """Values about the middle of public bounds, a tenth of their width apart if no spread is given."""
    low, high = bounds
    return Within(Normal(low / 2 + high / 2, spread or (high / _SPREADS - low / _SPREADS)), low, high)


def expect_statistics(
    plan: Plan,
    rules: Rules,
    bounds: Sequence[tuple[float, float]],
    spread: float | None = None,
    *,
    runs: int = 3,
    seed: int = 0,
) -> list[float]:
    """Bits about one value of each column that a session of statistics tells, on average over drawn data.

    Args:
        plan: the statistics, and of how many values.
        rules: of the search.
        bounds: public, one pair a column.
        spread: of the values; a tenth of the bounds' width if not given.
        runs: how many are drawn.
        seed: of what is drawn.
    """
    priors = [assumed_prior(each, spread) for each in bounds]
    pairs, bits = list(zip(priors, bounds, strict=True)), np.zeros(len(priors))
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        drawn = [rng.normal(low / 2 + high / 2, prior.scale, plan.total) for prior, (low, high) in pairs]
        columns = [np.clip(each, *ends) for each, ends in zip(drawn, bounds, strict=True)]
        keys = rules.keys.keys(np.stack(columns, axis=1))
        search, _ = search_values(rules, keys, np.ones(plan.total, np.int64))
        bits += [measure_session(plan, search, k, prior).bits for k, prior in enumerate(priors)]
    return [float(each) / runs for each in bits]


def expect(
    graph: Graph,
    bounds: tuple[float, float] | None,
    prior: Prior,
    *,
    objective: Objective | None = None,
    adversary: Adversary | None = None,
    methods: tuple[Method, ...] = (Search(), Consensus()),
    runs: int = 5,
    repeats: int = 1,
    seed: int = 0,
) -> list[Expectation]:
    """What to expect of each method.

    Args:
        graph: who talks to whom.
        bounds: public; None to let the iteration know the prior's scale, and the search nothing.
        prior: of every value.
        objective: what is sought; the low median if not given.
        adversary: who listens; the first participant, and nobody else, if not given.
        methods: which.
        runs: of each, on different values.
        repeats: how often on the same values, each time.
        seed: of everything random.

    Raises:
        InputError: there are no runs, or no repeats.
    """
    whole_number("runs", runs)
    whole_number("repeats", repeats)
    who = Adversary(corrupt=(graph.label(0),), eavesdrops=False) if adversary is None else adversary
    sought = Quantile(0.5) if objective is None else objective
    seen: list[list[_Seen]] = [[] for _ in methods]
    for k in range(runs):
        drawn = streams(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
        values = np.array([prior.quantile(level) for level in drawn.values.uniform(1e-12, 1, graph.n)])
        scale = prior.scale if bounds is None else None
        problem = Problem(graph, values, objective=sought, bounds=bounds, scale=scale)
        for method, runs_of_it in zip(methods, seen, strict=True):
            z0 = deepcopy(drawn.z0)  # the same for every method
            results = [solve(problem, method, rng=z0, record="audit") for _ in range(repeats)]
            runs_of_it.append(_see(results, method, who, prior))
    return [_summarise(method, each, who, repeats) for method, each in zip(methods, seen, strict=True)]


def _see(results: list[Result], method: Method, who: Adversary, prior: Prior) -> _Seen:
    first, graph = results[0], results[0].trace.graph
    probes = 1 + max((probe.step for probe in first.trace.probes), default=-1)
    carried = _bytes(graph, first.iterations, probes, method.arity if isinstance(method, Search) else 3)
    if graph.n > _LARGEST:
        return _Seen(first, carried, None, None)
    once = audit(first.trace, who, prior, attacks=False)
    together = audit_together([each.trace for each in results], who, prior, attacks=False) if len(results) > 1 else once
    return _Seen(first, carried, once, together)


def _bytes(graph: Graph, iterations: int, probes: int, arity: int) -> float:
    """Sent and received by a node, on average: all that one sends, others receive."""
    search = sent_in_search(graph, [arity + 1] * probes, _RECORD) if probes else 0.0
    return 2 * (search + sent_in_iteration(graph, iterations, _LEVELS, _RECORD))


def _summarise(method: Method, seen: list[_Seen], who: Adversary, repeats: int) -> Expectation:
    corrupt = set(map(str, who.corrupt))
    sent = [len(set(map(str, one.result.exposed)) - corrupt) for one in seen]
    once = [one.once for one in seen if one.once is not None]
    together = [one.together for one in seen if one.together is not None]
    bits, floor, joint = (
        mean_or_none([getattr(leak, figure) for leak in leaks])
        for leaks, figure in ((once, "mean_bits"), (once, "mean_floor"), (together, "mean_bits"))
    )
    exposed, joint_exposed = (mean_or_none([leak.exposed_count for leak in leaks]) for leaks in (once, together))
    return Expectation(
        method=method.name,
        c=float(np.asarray(method.c)) if isinstance(method, Consensus) and method.c is not None else None,
        rounds=float(np.median([one.result.rounds for one in seen])),
        most_rounds=float(np.quantile([one.result.rounds for one in seen], 0.9)),
        exposed=float(np.mean(sent)) if exposed is None else exposed,
        honest=seen[0].result.nodes - len(who.corrupt),
        bits=bits,
        bits_error=float(np.std([leak.mean_bits for leak in once], ddof=1) / len(once) ** 0.5) if once[1:] else None,
        floor=floor,
        excess=None if bits is None or floor is None else bits - floor,
        kind=weakest(once),
        repeats=repeats,
        joint_bits=joint,
        joint_excess=None if joint is None or floor is None else joint - floor,
        joint_exposed=joint_exposed,
        joint_kind=weakest(together),
        bytes_per_node=float(np.mean([one.carried for one in seen])),
    )


def mean_or_none(figures: Sequence[float]) -> float | None:
    """The mean; None where there is none, or one of them is not known."""
    return float(np.mean(figures)) if len(figures) and np.isfinite(figures).all() else None


def weakest(leakages: Sequence[Leakage]) -> FigureKind | None:
    """What a mean over several reports is: an upper bound, if one of them is."""
    return max((leakage.kind for leakage in leakages), key=_KINDS.index, default=None)


def with_sign(figure: float | None, kind: FigureKind | None) -> str:
    """A figure for people: what is an upper bound says so."""
    sign = {"upper bound": "≤ ", "sampled": "≈ "}.get(kind or "", "")
    return "" if figure is None else f"{sign}{figure:.2f}"


def in_words(expected: list[Expectation]) -> list[str]:
    """A line a method."""

    def bits(one: Expectation) -> str:
        if one.bits is None or one.floor is None:
            return ""
        return f"{with_sign(one.bits, one.kind)} bits each ({one.floor:.2f} of them by the answer alone), "

    return [
        f"{one.method:>9}: {one.rounds:.0f} rounds, {one.exposed:.1f} of {one.honest} exposed, {bits(one)}"
        f"about {one.bytes_per_node / 1000:.0f} kB a node"
        for one in expected
    ]
