"""Rounds to the exact answer, by the search and by the iteration that it finishes, against the plain iteration to 1e-6.

The plain iteration is counted until it *stays* within 1e-6, because the error oscillates: on a complete graph all x
swing through the median together, and are near it for a moment, long before they have settled. Nobody in the network
can tell such a moment.

c = 1, sigma = 0.1, mu = 0, N(0, 1) data, public scale 1 and bounds ±10; medians over the runs.

"certified / exact" is about the same data with nothing public and midst's own choices: the rounds after which the nodes
can tell that they are within 1e-6, over those of the exact finish; the median of that ratio.

    python -m bench.rounds [--quick] [--out bench/results]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from bench.tables import Row, run_parts

from midst import After, Certified, Consensus, Problem, graphs, solve

RUNS = 100
FAMILIES = {
    "ring-15": lambda seed: graphs.ring(15),
    "rgg-15": lambda seed: graphs.rgg(15, rng=seed),
    "complete-15": lambda seed: graphs.complete(15),
    "grid-49": lambda seed: graphs.grid(7, 7),
    "4-regular-101": lambda seed: graphs.regular(101, 4, rng=seed),
    "ring-51": lambda seed: graphs.ring(51),
    "complete-51": lambda seed: graphs.complete(51),
}


def problem(family: str, seed: int) -> Problem:
    """The seed-th problem of a family."""
    graph = FAMILIES[family](seed)
    return Problem(graph, np.random.default_rng(1000 + seed).normal(size=graph.n), scale=1.0, bounds=(-10, 10))


def plain_rounds(one: Problem, seed: int, tolerance: float = 1e-6) -> int:
    """Iterations after which every x stays within the tolerance of the median."""
    iterations = 1000
    while True:
        trace = solve(one, Consensus(c=1.0, stop=After(iterations)), rng=seed, record="all").trace
        far = np.flatnonzero((one.distance(trace.x) > tolerance).any(axis=1))
        if far[-1] < 0.8 * iterations:
            return int(far[-1]) + 2
        iterations *= 2


def exact_rounds(family: str, runs: int) -> Row:
    """Median rounds of both ways to the exact answer, and whom they expose."""
    exact, search, exposed = [], [], []
    for seed in range(runs):
        one = problem(family, seed)
        finished, searched = solve(one, Consensus(c=1.0), rng=seed, record="none"), solve(one, "search")
        assert finished.error == searched.error == 0
        exact.append(finished.rounds)
        search.append(searched.rounds)
        exposed.append(len(finished.exposed) / one.graph.n)
    return {
        "graph": family,
        "search": float(np.median(search)),
        "exact finish": float(np.median(exact)),
        "exposed by it": f"{np.mean(exposed):.0%}",
    }


def certified_over_exact(family: str, runs: int) -> float:
    """How many times as many rounds a certificate of 1e-6 takes, by default, as the exact finish."""
    ratios = []
    for seed in range(runs):
        one = problem(family, seed)
        plain = Problem(one.graph, one.values)
        certified, exact = (
            solve(plain, how, rng=seed, record="none") for how in (Consensus(stop=Certified(1e-6)), Consensus())
        )
        ratios.append(certified.rounds / exact.rounds)
    return float(np.median(ratios))


def against_plain(quick: bool) -> Iterator[Row]:
    """One row a family: rounds of the search, of the exact finish, and of the plain iteration."""
    runs = 1 if quick else RUNS
    for family in FAMILIES:
        plain = float(np.median([plain_rounds(problem(family, seed), seed) for seed in range(runs)]))
        found = {
            "plain to 1e-6": plain,
            "certified / exact": round(certified_over_exact(family, runs), 1),
            "runs": runs,
        }
        yield {**exact_rounds(family, runs), **found}


if __name__ == "__main__":
    run_parts("rounds", {"rounds": against_plain})
