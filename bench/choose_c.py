"""What c costs: iterations, rounds and who is exposed, over kinds of graphs and sizes, for both ends of an iteration.

Compared are c = 1/scale, and 100 and 10 by the mean degree where that is less (elsewhere they are the same). N(0, 1)
data, public scale 1 and bounds ±10, sigma = 0.1, every run from a seed of its own; iterations and rounds are medians
over the runs, exposed their mean. "–": it took more than `MOST` steps of a node, and was given up.

    python -m bench.choose_c            # all of it: some minutes
    python -m bench.choose_c --quick    # small graphs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from bench.tables import run_parts

from midst import Certified, Consensus, Exact, Graph, Mean, Problem, Quantile, graphs, solve
from midst.methods import Stop
from midst.objectives import Objective

Rows = Iterator[dict[str, object]]

RUNS = 3
MOST = 2e8  # node-iterations of a run
REACHES = {"1/scale": None, "100/degree": 100.0, "10/degree": 10.0}
FAMILIES: dict[str, Callable[[int, int], Graph]] = {
    "ring": lambda n, seed: graphs.ring(n),
    "star": lambda n, seed: graphs.star(n),
    "grid": lambda n, seed: graphs.make("grid", n),
    "regular 4": lambda n, seed: graphs.regular(n, 4, rng=seed),
    "regular 8": lambda n, seed: graphs.regular(n, 8, rng=seed),
    "rgg": lambda n, seed: graphs.rgg(n, rng=seed),
    "barbell": lambda n, seed: barbell(n),
    "er 0.5": lambda n, seed: graphs.erdos_renyi(n, 0.5, seed),
    "complete": lambda n, seed: graphs.complete(n, listed=n <= 201),
}


def barbell(n: int) -> Graph:
    """Two complete graphs with an edge between them."""
    half = n // 2
    pairs = [(i, j) for part in (range(half), range(half, n)) for i in part for j in part if i < j]
    return graphs.from_edges(n, np.array([*pairs, (0, n - 1)]))


def measure(family: str, n: int, reach: float | None, stop: Stop, goal: Objective) -> tuple[str, str, str]:
    """Iterations, rounds and the share of nodes exposed; "–" for what takes too long or is the same as 1/scale."""
    found = []
    for seed in range(RUNS):
        graph = FAMILIES[family](n, seed)
        degree = 2 * graph.edges / graph.n
        if reach is not None and degree <= reach:
            return "same", "same", "same"
        c, limit = 1.0 if reach is None else reach / degree, int(MOST / n)
        one = Problem(
            graph, np.random.default_rng(100 + seed).normal(size=n), objective=goal, scale=1.0, bounds=(-10, 10)
        )
        how = Consensus(c=c, stop=stop, limit=max(limit, 20))
        run = solve(one, how, rng=seed, record="none", throw=False)
        if not run.certified:
            return "–", "–", "–"
        found.append((run.iterations, run.rounds, len(run.exposed) / n))
    iterations, rounds, exposed = np.array(found).T
    return f"{np.median(iterations):,.0f}", f"{np.median(rounds):,.0f}", f"{exposed.mean():.1%}"


def rows(families: list[str], sizes: list[int], goal: Objective, ends: dict[str, Stop]) -> Rows:
    """A row a graph and an end; for each rule of c what it takes."""
    for family in families:
        for n in sizes:
            for end, stop in ends.items():
                row: dict[str, object] = {"graph": f"{family}, {n:,}", "stop": end}
                for name, reach in REACHES.items():
                    iterations, rounds, exposed = measure(family, n, reach, stop, goal)
                    row[f"c = {name}"] = (
                        iterations if iterations in ("same", "–") else f"{iterations} / {rounds} / {exposed}"
                    )
                yield row


def medians(quick: bool) -> Rows:
    """Of all kinds; of those with many edges in memory, small ones."""
    ends: dict[str, Stop] = {"exact": Exact(), "certified": Certified(1e-6)}
    dense = [family for family in FAMILIES if family in ("barbell", "er 0.5")]
    others = [family for family in FAMILIES if family not in dense]
    yield from rows(dense, [15] if quick else [15, 51, 201], Quantile(0.5), ends)
    yield from rows(others, [15] if quick else [15, 51, 201, 1001], Quantile(0.5), ends)


def large(quick: bool) -> Rows:
    """Of larger ones; of a complete graph, as large as one likes."""
    ends: dict[str, Stop] = {"exact": Exact(), "certified": Certified(1e-6)}
    sparse = ["regular 4", "regular 8", "rgg"]
    if not quick:
        yield from rows(sparse, [10_000], Quantile(0.5), ends)
    yield from rows(["complete"], [501] if quick else [10_001, 100_001, 1_000_001], Quantile(0.5), ends)


def means(quick: bool) -> Rows:
    """Of means, which have no exact end."""
    ends: dict[str, Stop] = {"certified": Certified(1e-6)}
    yield from rows(["barbell"], [15] if quick else [51, 201], Mean(), ends)
    yield from rows(["rgg", "complete"], [15, 51] if quick else [15, 51, 201, 1001, 10_001], Mean(), ends)


if __name__ == "__main__":
    run_parts("choose_c", {"medians": medians, "large": large, "means": means})
