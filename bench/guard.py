"""The guard: how many nodes ever send a number close to their own, and what it costs in rounds.

Setting of the paper's Fig. 2 (mu = -10, sigma = 1, c = 1, N(0, 1) data, n = 15): the iteration comes from far above and
passes every value above the median. Every run ends by the residual certificate, so exactness is part of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from midst import Guard, Problem, graphs, solve

NEAR = 0.01
GRAPHS = {
    "ring": lambda seed: graphs.ring(15),
    "rgg": lambda seed: graphs.rgg(15, rng=seed),
    "complete": lambda seed: graphs.complete(15),
}
SCHEDULES = (None, Guard(0.5, 0.9), Guard(0.5, 0.8), Guard(0.5, 0.95), Guard(1.0, 0.9), Guard(0.25, 0.9))


def one(kind: str, seed: int, guard: Guard | None) -> tuple[int, int, bool]:
    """Nodes other than the median's holder that came near their own value, rounds, certified."""
    graph = GRAPHS[kind](seed)
    values = np.random.default_rng(5000 + seed).normal(size=graph.n)
    result = solve(
        Problem(graph, values, scale=1.0),
        c=1.0,
        mu=-10.0,
        sigma=1.0,
        rng=seed,
        record="all",
        stop="certified",
        guard=guard or False,
        throw=False,
    )
    near = (np.abs(result.trace.x - values) < NEAR).any(axis=0)
    near[np.argsort(values)[graph.n // 2]] = False
    return int(near.sum()), result.iterations, result.certified and result.error <= 1e-6


def table(runs: int) -> Iterator[dict[str, object]]:
    """One row a schedule and kind of graph."""
    for kind in GRAPHS:
        plain = None
        for guard in SCHEDULES:
            near, rounds, exact = np.array([one(kind, seed, guard) for seed in range(runs)]).T
            plain = rounds.mean() if plain is None else plain
            name = "off" if guard is None else f"{guard.amplitude:g} · {guard.decay:g}^k"
            yield {
                "graph": kind,
                "guard": name,
                "near": round(float(near.mean()), 2),
                "rounds": round(float(rounds.mean() / plain), 2),
                "exact": int(exact.sum()),
                "runs": runs,
            }


if __name__ == "__main__":
    for row in table(int(sys.argv[1]) if len(sys.argv) > 1 else 100):
        print(row, flush=True)
