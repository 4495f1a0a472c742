"""Rounds to the proved answer (`stop="count"`) against rounds after which the plain iteration stays within 1e-6.

"Stays", because the error oscillates: on a complete graph all x swing through the median together, and are near it for
a moment, long before they have settled. Nobody in the network can tell such a moment.

c = 1, sigma = 0.1, mu = 0, N(0, 1) data; medians over the runs. The second table is the one patience was chosen by.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain

import numpy as np

from midst import Problem, graphs, solve
from midst.counting import choose_patience

FAMILIES = {
    "ring-15": lambda seed: graphs.ring(15),
    "rgg-15": lambda seed: graphs.rgg(15, rng=seed),
    "complete-15": lambda seed: graphs.complete(15),
    "grid-49": lambda seed: graphs.grid(7, 7),
    "4-regular-101": lambda seed: graphs.regular(101, 4, rng=seed),
    "ring-51": lambda seed: graphs.ring(51),
    "complete-51": lambda seed: graphs.complete(51),
}
PATIENCE = (1, 3, 5, 8, 12, 20, 40)


def problem(family: str, seed: int) -> Problem:
    """The seed-th problem of a family."""
    graph = FAMILIES[family](seed)
    return Problem(graph, np.random.default_rng(1000 + seed).normal(size=graph.n))


def plain_rounds(one: Problem, seed: int, tolerance: float = 1e-6) -> int:
    """Iterations after which every x stays within the tolerance of the median."""
    iterations = 1000
    while True:
        trace = solve(one, c=1.0, rng=seed, iterations=iterations, record="all").trace
        far = np.flatnonzero((one.distance(trace.x) > tolerance).any(axis=1))
        if far[-1] < 0.8 * iterations:
            return int(far[-1]) + 2
        iterations *= 2


def against_plain(runs: int) -> Iterator[dict[str, object]]:
    """One row a family: rounds by count, rounds of the plain iteration, and how many times fewer."""
    for family in FAMILIES:
        count, plain, proposals = [], [], []
        for seed in range(runs):
            one = problem(family, seed)
            proved = solve(one, c=1.0, rng=seed, stop="count", record="none")
            assert proved.error == 0
            assert proved.proofs is not None
            count.append(proved.iterations)
            proposals.append(proved.proofs[0].proposals)
            plain.append(plain_rounds(one, seed))
        yield {
            "graph": family,
            "patience": choose_patience(problem(family, 0).graph.diameter()),
            "rounds by count": float(np.median(count)),
            "plain rounds to 1e-6": float(np.median(plain)),
            "times fewer": round(float(np.median(plain) / np.median(count)), 1),
            "proposals": round(float(np.mean(proposals)), 2),
            "runs": runs,
        }


def over_patience(runs: int) -> Iterator[dict[str, object]]:
    """One row a family: median rounds / mean number of proposals, for every patience."""
    for family in FAMILIES:
        row: dict[str, object] = {"graph": family}
        for patience in PATIENCE:
            results = [
                solve(problem(family, seed), c=1.0, rng=seed, patience=patience, record="none") for seed in range(runs)
            ]
            rounds = np.median([result.iterations for result in results])
            proposals = np.mean([result.proofs[0].proposals for result in results if result.proofs])
            row[f"K = {patience}"] = f"{rounds:.0f} / {proposals:.1f}"
        yield row


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for row in chain(against_plain(runs), over_patience(runs)):
        print(row, flush=True)
