"""What to expect of both methods, before anybody takes part: rounds, exposure, bits, floor and bytes, by simulation.

Rules:
- Both methods find the same values' answer, drawn from a prior within the public bounds, with the parameters that a
  charter would choose.
- The adversary is one curious participant, unless another is named. Of an iteration its bits are an upper bound.
- Bytes are those of frames and TLS records, sent and received, handshakes and journals left out: an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from midst.graphs import Graph
from midst.methods import Consensus, Method, Search
from midst.objectives import Objective, Quantile
from midst.privacy.adversaries import Adversary
from midst.privacy.audit import audit
from midst.privacy.priors import Normal, Prior, Within
from midst.problems import Problem
from midst.solving import solve
from midst.system import streams

_RECORD = 26  # bytes that TLS and the frame's length add
_ANNOUNCEMENT, _STATEMENT = 480, 100  # bytes, with signature and certificate; a number is 8 more
_STEP = 45  # bytes of a frame of the iteration, with one number and its levels
_SPREADS = 10  # the bounds are taken to be so many spreads wide, where no spread is given
_LARGEST = 64  # nodes up to which bits are computed


@dataclass(frozen=True)
class Expectation:
    """What one method costs and gives away, on average.

    Attributes:
        method: "search" or "consensus".
        rounds: message rounds, the median over runs.
        exposed: how many participants send their own value.
        bits: that a participant gives away; None where the network is too large to say.
        floor: that the answer alone gives away.
        excess: of bits over floor.
        bytes_per_node: sent and received, about.
    """

    method: str
    rounds: float
    exposed: float
    bits: float | None
    floor: float | None
    excess: float | None
    bytes_per_node: float


def assumed_prior(bounds: tuple[float, float], spread: float | None) -> Prior:
    """Values about the middle of public bounds, a tenth of their width apart if no spread is given."""
    low, high = bounds
    return Within(Normal(low / 2 + high / 2, spread or (high / _SPREADS - low / _SPREADS)), low, high)


def expect(
    graph: Graph,
    bounds: tuple[float, float] | None,
    prior: Prior,
    *,
    objective: Objective | None = None,
    adversary: Adversary | None = None,
    methods: tuple[Method, ...] = (Search(), Consensus()),
    runs: int = 5,
    seed: int = 0,
) -> list[Expectation]:
    """What to expect of each method.

    Args:
        graph: who talks to whom.
        bounds: public; None to let the iteration know the prior's scale, and the search nothing.
        prior: of every value.
        objective: what is sought; the low median if not given.
        adversary: who listens; participant 0, and nobody else, if not given.
        methods: which.
        runs: of each.
        seed: of everything random.
    """
    who = Adversary(corrupt=(0,), eavesdrops=False) if adversary is None else adversary
    sought = Quantile(0.5, "low") if objective is None else objective
    seen: dict[str, list[tuple[float, ...]]] = {method.name: [] for method in methods}
    for k in range(runs):
        drawn = streams(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))))
        values = np.array([prior.quantile(level) for level in drawn.values.uniform(1e-12, 1, graph.n)])
        scale = prior.scale if bounds is None else None
        problem = Problem(graph, values, objective=sought, bounds=bounds, scale=scale)
        for method in methods:
            result = solve(problem, method, rng=drawn.z0, record="audit")
            leaks: tuple[float, ...] = (np.nan, np.nan)
            if graph.n <= _LARGEST:
                leakage = audit(result.trace, who, prior)
                leaks = leakage.mean_bits, leakage.mean_floor
            probes = 1 + max((probe.step for probe in result.trace.probes), default=-1)
            arity = method.arity if isinstance(method, Search) else 3
            carried = _bytes(graph, result.iterations, probes, arity)
            seen[method.name].append((result.rounds, len(result.exposed), *leaks, carried))
    return [_summarise(name, np.array(rows)) for name, rows in seen.items()]


def _bytes(graph: Graph, iterations: int, probes: int, arity: int) -> float:
    """Sent and received by a node, on average: a statement crosses n − 1 links, and a step frame every link twice."""
    statements = _ANNOUNCEMENT + probes * (_STATEMENT + 8 * (arity + 1)) + _STATEMENT + (probes + 2) * _RECORD
    iteration = iterations * 2 * graph.edges / graph.n * (_STEP + _RECORD)
    return 2 * ((graph.n - 1) * statements * (probes > 0) + iteration)


def _summarise(name: str, rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Expectation:
    rounds, exposed, bits, floor, carried = rows.T
    known = not np.isnan(bits).any()
    return Expectation(
        method=name,
        rounds=float(np.median(rounds)),
        exposed=float(exposed.mean()),
        bits=float(bits.mean()) if known else None,
        floor=float(floor.mean()) if known else None,
        excess=float((bits - floor).mean()) if known else None,
        bytes_per_node=float(carried.mean()),
    )


def in_words(expected: list[Expectation], nodes: int) -> list[str]:
    """A line a method."""

    def bits(one: Expectation) -> str:
        if one.bits is None:
            return ""
        return f"{one.bits:.2f} bits each ({one.floor:.2f} of them by the answer alone), "

    return [
        f"{one.method:>9}: {one.rounds:.0f} rounds, {one.exposed:.1f} of {nodes} exposed, {bits(one)}"
        f"about {one.bytes_per_node / 1000:.0f} kB a node"
        for one in expected
    ]
