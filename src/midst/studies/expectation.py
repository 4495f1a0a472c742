"""What to expect before anybody takes part: rounds, bytes, and what the audit says, by simulation.

Rules:
- `forecast` is of one charter: the least and the most of sessions over values of several shapes and widths, within its
  bounds. `expect` compares the two methods, on average over values of one prior.
- Both methods find the same values' answer, drawn from a prior within the public bounds, with the parameters that a
  charter would choose.
- The adversary is one curious participant, unless another is named. Of an iteration its bits are an upper bound.
- Repeated runs are on the same values, each with its own z(0), and audited together. The thresholds of a search are
  deterministic, so a search again tells nothing new.
- Bytes are those that a node counts, over TLS, with handshakes and proofs, where nothing is asked for a second time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from math import floor, isfinite, log10, sqrt

import numpy as np

from midst.engines.searching import search_values
from midst.errors import InputError, whole_number
from midst.graphs import Graph
from midst.methods import Consensus, Method, Search
from midst.net.charter import MOST_VERIFIED, Charter
from midst.net.sizes import carried_by_each, step_bytes
from midst.objectives import Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import FigureKind, Leakage, audit, audit_together
from midst.privacy.priors import Normal, Prior, Uniform, Within
from midst.privacy.statistics import measure_session
from midst.problems import Problem
from midst.protocol.search import widths
from midst.protocol.votes import vote_bytes
from midst.result import Result
from midst.solving import solve
from midst.system import streams
from midst.types import Array

_CELLS, _PROVED, _NAME = 4, 224.0, 5  # of a probe; bytes of a number with its proof; letters of a name
_RUNS, _SHAPES = 20, 6  # simulated of each shape of values; of large networks a third as many
_WIDTHS = 0.3, 0.2, 0.1, 0.03, 0.003  # of shapes, in shares of the bounds, where no spread is given
_OFF = 0.05  # by which share bytes may be off: statements that travel together, longer certificates
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


def assumed_prior(bounds: tuple[float, float], spread: float | None) -> Prior:
    """Values about the middle of public bounds, a tenth of their width apart if no spread is given."""
    low, high = bounds
    return Within(Normal(low / 2 + high / 2, spread or (high / _SPREADS - low / _SPREADS)), low, high)


def forecast(charter: Charter, sizes: Sequence[int], spread: float | None = None) -> dict[str, tuple[float, float]]:
    """The least and the most of sessions of a charter: "probes", "rounds", "exposed", "kB", and "bits of" each column.

    Args:
        charter: with bounds, a search in the end, and without noise or arrays.
        sizes: how many values each participant has.
        spread: of the values, about; several are tried if not given.
    """
    seen = defaultdict(list)
    for run, shape in product(range(_RUNS if len(sizes) <= _LARGEST else _RUNS // 3), range(_SHAPES)):
        rng, width = np.random.default_rng([run, shape]), _WIDTHS[run % len(_WIDTHS)]
        columns = [_draw(shape, width, spread, ends, sum(sizes), rng) for ends in charter.column_ranges]
        for name, figure in _simulate(charter, sizes, np.stack(columns, axis=1), rng):
            if isfinite(figure):  # a floor is not always known
                seen[name].append(figure)
    return {name: (min(figures), max(figures)) for name, figures in seen.items()}


def _draw(
    shape: int, width: float, spread: float | None, ends: tuple[float, float], count: int, rng: np.random.Generator
) -> Array:
    """Values between two ends, so wide a share of what lies between: even, middle, off it, skewed, clusters, tied."""
    low, high = ends
    if spread is not None:
        width = min(spread / (high / 2 - low / 2) / 2, _WIDTHS[0])
    even, normal = rng.random(count), rng.standard_normal(count)
    about = (sqrt(12) * (even - 0.5), normal, normal, 0, np.where(even < 0.5, -1, 1) + normal / 10, normal)[shape]
    share = width * np.exp(normal) if shape == 3 else (0.2 if shape == 2 else 0.5) + width * about
    share = 1 - np.abs(1 - np.abs(share) % 2)  # beyond an end it turns back
    values = low * (1 - share) + high * share
    if shape == 5:
        values = np.round(values, -floor(log10(2 * width * high - 2 * width * low)))
    return np.asarray(np.clip(values, low, high))


def _simulate(
    charter: Charter, sizes: Sequence[int], rows: Array, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """The figures of a session by their names."""
    graph, weights = charter.graph, [one.weight for one in charter.participants]
    rounds = iterations = exposed = 0
    opening: tuple[tuple[int, ...], ...] = ()
    if not (charter.has_lists or charter.is_masked_sum):
        method: Method = Search(charter.arity, charter.spacing)
        if charter.method == "consensus":
            method = Consensus(charter.c, charter.theta, charter.mu, charter.sigma, limit=charter.rounds)
        problem = charter.problem(rows if charter.coordinates > 1 else rows[:, 0])
        result = solve(problem, method, rng=rng, record="audit", throw=False)
        iterations, exposed = result.iterations, len(result.exposed)
        rounds = result.rounds - (result.probes + 2) * graph.diameter()  # the search is by the charter's rules
        if iterations:
            opening = tuple(probe.edges[1:-1] for probe in result.trace.probes if probe.step == 0)
        with suppress(InputError):  # what no audit can judge has no bits
            if graph.n <= _LARGEST:
                prior, coordinate = Uniform(*charter.value_range), 0 if charter.coordinates > 1 else None
                leak = audit(result.trace, _curious(graph), prior, coordinate=coordinate, attacks=False)
                yield from (("bits of value", leak.mean_bits), ("floor of value", leak.mean_floor))
    rules = charter.search_rules(sizes, opening)
    search, steps = search_values(rules, rules.keys.keys(rows), np.repeat(weights, sizes))
    for k, ends in enumerate(charter.column_ranges if charter.has_lists else ()):
        with suppress(InputError):
            bits = measure_session(charter.plan(sum(sizes)), search, k, Uniform(*ends)).bits
            yield f"bits of {charter.column_names[k]}", bits
    says = [8.0 * sum(widths(question)) for question, _ in steps]
    if charter.is_verified:
        held = [size if weight else 0 for size, weight in zip(sizes, weights, strict=True)]
        says = [sum(vote_bytes(question, each) for each in held) / graph.n for question, _ in steps]
    letters = sum(map(len, charter.names)) / graph.n
    carried = carried_by_each(graph, letters, says, iterations, step_bytes(2, charter.coordinates))
    yield from (("kB", carried.min() * (1 - _OFF) / 1000), ("kB", carried.max() * (1 + _OFF) / 1000))
    rounds += (len(steps) + 2) * graph.diameter()
    yield from (("probes", len(steps)), ("rounds", rounds), ("exposed", exposed))


def expect(
    graph: Graph,
    bounds: tuple[float, float] | None,
    prior: Prior,
    *,
    adversary: Adversary | None = None,
    methods: Sequence[Method] = (Search(), Consensus()),
    runs: int = 5,
    repeats: int = 1,
    seed: int = 0,
) -> list[Expectation]:
    """What to expect of each method.

    Args:
        graph: who talks to whom.
        bounds: public; None to let the iteration know the prior's scale, and the search nothing.
        prior: of every value.
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
    who = _curious(graph) if adversary is None else adversary
    cases = []
    for k in range(runs):
        drawn = streams(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
        values = np.array([prior.quantile(level) for level in drawn.values.uniform(1e-12, 1, graph.n)])
        scale = prior.scale if bounds is None else None
        cases.append((Problem(graph, values, objective=Quantile(0.5), bounds=bounds, scale=scale), drawn.z0))
    return [_expect_of(method, cases, who, prior, repeats) for method in methods]


def _curious(graph: Graph) -> Adversary:
    """The first participant, and nobody else."""
    return Adversary(corrupt=(graph.label(0),), eavesdrops=False)


def _expect_of(
    method: Method, cases: Sequence[tuple[Problem, np.random.Generator]], who: Adversary, prior: Prior, repeats: int
) -> Expectation:
    """Simulate one method on cases, each a problem and what draws its z(0), and average what it costs and leaks."""
    graph = cases[0][0].graph
    firsts: list[Result] = []
    once: list[Leakage] = []
    together: list[Leakage] = []
    for problem, z0 in cases:
        same = deepcopy(z0)  # for every method
        results = [solve(problem, method, rng=same, record="audit") for _ in range(repeats)]
        firsts.append(results[0])
        if graph.n <= _LARGEST:
            traces = [result.trace for result in results]
            once.append(audit(traces[0], who, prior, attacks=False))
            together.append(audit_together(traces, who, prior, attacks=False) if repeats > 1 else once[-1])
    asked = [_CELLS * (_PROVED if graph.n <= MOST_VERIFIED else 8)]  # by a probe, as in a charter that does not say
    carried = [
        float(np.mean(carried_by_each(graph, _NAME, asked * first.probes, first.iterations, step_bytes(2))))
        for first in firsts
    ]
    sent = [len(set(map(str, first.exposed)) - set(map(str, who.corrupt))) for first in firsts]
    rounds = [first.rounds for first in firsts]
    bits, floor, joint = (
        mean_or_none([getattr(leak, figure) for leak in leaks])
        for leaks, figure in ((once, "mean_bits"), (once, "mean_floor"), (together, "mean_bits"))
    )
    exposed, joint_exposed = (mean_or_none([leak.exposed_count for leak in leaks]) for leaks in (once, together))
    return Expectation(
        method=method.name,
        c=float(np.asarray(method.c)) if isinstance(method, Consensus) and method.c is not None else None,
        rounds=float(np.median(rounds)),
        most_rounds=float(np.quantile(rounds, 0.9)),
        exposed=float(np.mean(sent)) if exposed is None else exposed,
        honest=graph.n - len(who.corrupt),
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
        bytes_per_node=float(np.mean(carried)),
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
