"""What the masked search takes and gives away: probes, rounds and bits, on easy data and on hard.

    python -m bench.search [--quick] [--only PART …] [--out bench/results]

Prints Markdown, and writes it to search.md and the rows to search.json. Every answer is asserted to be exact, and the
first few searches of every kind are done once more by participants with masks, which must take the same steps.

- `graphs`: N(0, 1) data, public bounds ±10, thresholds evenly by value or where the rank is expected. Probes include
  the sum at the end. Hops are those of the probes; keys at the start and signatures at the end take two diameters more.
  Bits: mean over those who do not hold the answer, by the cells that were made public, the answer's left out:
  Σ (n_c / n) log2((n_c / n) / P_c), P_c the prior probability of a cell.
- `sizes`: the same by rank, three thresholds a probe, whatever the number of participants.
- `hard`: data that is not spread evenly over its bounds, or has none. The limit is what no search can exceed.
- `rounds`: to the exact answer: the paper's iteration finished by a search, against a search from the start, against
  the plain iteration until it stays within 1e-6 ("stays", because the error oscillates), and against the count that
  midst had before. c = 1; medians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from math import erf, log2, sqrt
from typing import Any

import numpy as np
from bench import rounds
from bench.tables import run_parts
from numpy.typing import NDArray

from midst import After, Consensus, Problem, Search, graphs, solve
from midst.engines.searching import search_values
from midst.graphs import Graph
from midst.methods import rules_of
from midst.protocol.search import SearchState, Spacing

Row = dict[str, Any]
Array = NDArray[np.float64]
Bounds = tuple[float, float]

FAMILIES: dict[str, Callable[[int], Graph]] = rounds.FAMILIES | {
    "ring-151": lambda seed: graphs.ring(151),
    "complete-501": lambda seed: graphs.complete(501),
    "4-regular-1501": lambda seed: graphs.regular(1501, 4, rng=seed),
}
COUNTED = {  # rounds by the count, c = 1: as measured before it was taken out
    "ring-15": 65,
    "rgg-15": 30,
    "complete-15": 37,
    "grid-49": 106,
    "4-regular-101": 51,
    "ring-51": 309,
    "complete-51": 146,
}
BOUNDS = (-10.0, 10.0)
ARITIES = (1, 3, 7)
SPACINGS: tuple[Spacing, ...] = ("value", "rank")
SIZES = (15, 51, 101, 1001, 10_001)
HARD_SIZES = (5, 15, 101)
REPEATED = 2  # searches of a kind that participants do once more
FEW = 15  # participants, with whom that does not take long
DIAMETERS = 9  # graphs of a random kind whose diameters are looked at


def search(values: Array, bounds: Bounds | None, method: Search, again: bool) -> SearchState:
    """Where the search for a median ends; seen to be right."""
    one = Problem(graphs.complete(len(values), listed=False), values, bounds=bounds)
    state, steps = search_values(rules_of(one, method), one.value_keys, one.value_weights)
    assert state.value(0) == np.sort(values)[(len(values) - 1) // 2]
    assert state.steps == len(steps) <= state.rules.most_probes
    if again:
        full = Problem(graphs.complete(len(values)), values, bounds=bounds)
        masked = solve(full, method, engine="reference")
        assert masked.error == 0
        assert masked.rounds == state.steps + 2  # the diameter is 1
        assert masked.trace.probes == solve(full, method).trace.probes
    return state


def bits(state: SearchState) -> float:
    """What the cells that were made public say about a value, the answer's cell left out; N(0, 1) between bounds."""
    (points,), n = state.known, state.rules.total
    bracket = state.bracket(state.tracks[0])
    whole = below(BOUNDS[1]) - below(BOUNDS[0])
    learnt = 0.0
    for (a, up_to_a), (b, up_to_b) in pairwise(points):
        share = (up_to_b - up_to_a) / n
        if share and b != bracket.b:
            low, high = (state.rules.keys.value(max(key, points[0][0] + 1)) for key in (a, b))
            learnt += share * log2(share * whole / (below(high) - below(low)))
    return learnt


def below(x: float) -> float:
    """The share of N(0, 1) below x."""
    return 0.5 * (1.0 + erf(x / sqrt(2.0)))


@cache
def usual(n: int, method: Search, runs: int) -> tuple[float, int, float]:
    """Mean and worst number of probes, and mean bits, of N(0, 1) data between ±10."""
    draws = (np.random.default_rng([n, run]).normal(size=n) for run in range(runs))
    found = [search(values, BOUNDS, method, run < REPEATED and n <= FEW) for run, values in enumerate(draws)]
    probes, learnt = np.array([(state.steps, bits(state)) for state in found]).T
    return float(probes.mean()), int(probes.max()), float(learnt.mean())


def over_graphs(quick: bool) -> Iterator[Row]:
    """One row a graph: hops / bits for every number of thresholds and way to place them."""
    for family, make in FAMILIES.items():
        made = [make(seed) for seed in range(1 if quick or family[0] not in "r4" else DIAMETERS)]
        n, diameter = made[0].n, int(np.median([graph.diameter() for graph in made]))
        row: Row = {"graph": family, "diameter": diameter}
        for spacing in SPACINGS:
            for arity in ARITIES:
                probes, _, learnt = usual(n, Search(arity, spacing), 1 if quick else 300)
                row[f"by {spacing}, K = {arity}: probes, hops, bits"] = (
                    f"{probes:.1f}, {probes * diameter:.0f}, {learnt:.2f}"
                )
        yield row


def over_sizes(quick: bool) -> Iterator[Row]:
    """One row a number of participants."""
    for n in SIZES[:3] if quick else SIZES:
        probes, most, learnt = usual(n, Search(), 1 if quick else 300)
        yield {"participants": n, "probes": probes, "most": most, "bits": round(learnt, 3)}


# Hard data


def two_clusters(rng: np.random.Generator, n: int) -> Array:
    """Far apart, about as many in each."""
    return np.where(rng.random(n) < 0.5, -9.0, 9.0) + 0.01 * rng.normal(size=n)


HARD: dict[str, tuple[Callable[[np.random.Generator, int], Array], Bounds | None]] = {
    "N(0, 1), bounds ±10": (lambda rng, n: rng.normal(size=n), BOUNDS),
    "N(0, 1), bounds ±1000": (lambda rng, n: rng.normal(size=n), (-1000.0, 1000.0)),
    "two clusters with a gap": (two_clusters, (-10.0, 10.0)),
    "spread 1e-9 of the size": (lambda rng, n: rng.uniform(-9, 9) * (1 + 1e-9 * rng.normal(size=n)), (-10.0, 10.0)),
    "spread 1e-12 of the size": (lambda rng, n: rng.uniform(-9, 9) * (1 + 1e-12 * rng.normal(size=n)), (-10.0, 10.0)),
    "integers from 0 to 20": (lambda rng, n: rng.integers(0, 21, n).astype(float), (0.0, 100.0)),
    "salaries in thousands": (lambda rng, n: 1000.0 * np.rint(rng.lognormal(4, 0.4, n)), (0.0, 1e6)),
    "tenths from 0 to 10": (lambda rng, n: rng.integers(0, 101, n) / 10.0, (0.0, 100.0)),
    "all the same, an integer": (lambda rng, n: np.full(n, float(rng.integers(1, 100))), (0.0, 100.0)),
    "all the same, any number": (lambda rng, n: np.full(n, rng.uniform(0, 100)), (0.0, 100.0)),
    "N(0, 1), no bounds": (lambda rng, n: rng.normal(size=n), None),
    "Cauchy, no bounds": (lambda rng, n: rng.standard_cauchy(n), None),
}


def over_hard(quick: bool) -> Iterator[Row]:
    """One row a kind of data: mean / most probes over runs of several sizes."""
    runs, few = (1, HARD_SIZES[0]) if quick else (300, FEW)
    for kind, (draw, bounds) in HARD.items():
        row: Row = {"data": kind}
        for arity in ARITIES:
            method = Search(arity)
            probes = [
                search(draw(np.random.default_rng([n, run]), n), bounds, method, run < REPEATED and n <= few).steps
                for n in HARD_SIZES
                for run in range(runs)
            ]
            row[f"K = {arity}: mean, most"] = f"{np.mean(probes):.1f}, {max(probes)}"
        yield row | {"limit at K = 3": limit(HARD_SIZES[-1], Search()), "runs": len(HARD_SIZES) * runs}


def limit(n: int, method: Search) -> int:
    """What no search among n exceeds."""
    return rules_of(Problem(graphs.complete(n, listed=False), np.zeros(n)), method).most_probes


# Rounds


def over_rounds(quick: bool) -> Iterator[Row]:
    """One row a graph."""
    runs = 1 if quick else 20
    for family in list(COUNTED)[: 3 if quick else None]:
        finished, searched, plain, exposed = [], [], [], []
        for seed in range(runs):
            graph = FAMILIES[family](seed)
            one = Problem(graph, np.random.default_rng(1000 + seed).normal(size=graph.n), bounds=BOUNDS)
            by_iteration = solve(one, Consensus(c=1.0, mu=0.0, sigma=0.1), rng=seed, record="none")
            by_search = solve(one, Search())
            assert by_iteration.error == by_search.error == 0
            finished.append(by_iteration.rounds)
            exposed.append(len(by_iteration.exposed) / graph.n)
            searched.append(by_search.rounds)
            plain.append(plain_rounds(one, seed))
        yield {
            "graph": family,
            "search": float(np.median(searched)),
            "iteration, then search": float(np.median(finished)),
            "exposed by the iteration": f"{np.mean(exposed):.0%}",
            "count (before)": COUNTED[family],
            "plain iteration to 1e-6": float(np.median(plain)),
            "search, times fewer than plain": round(float(np.median(plain) / np.median(searched)), 1),
            "runs": runs,
        }


def plain_rounds(one: Problem, seed: int, tolerance: float = 1e-6) -> int:
    """Iterations after which every x stays within the tolerance of the median."""
    iterations = 1000
    while True:
        method = Consensus(c=1.0, mu=0.0, sigma=0.1, stop=After(iterations))
        trace = solve(one, method, rng=seed, record="all").trace
        far = np.flatnonzero((one.distance(trace.x) > tolerance).any(axis=1))
        if far[-1] < 0.8 * iterations:
            return int(far[-1]) + 2
        iterations *= 2


PARTS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "graphs": over_graphs,
    "sizes": over_sizes,
    "hard": over_hard,
    "rounds": over_rounds,
}


if __name__ == "__main__":
    run_parts("search", PARTS)
