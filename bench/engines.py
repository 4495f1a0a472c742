"""Iterations a second and memory of every engine, on random 8-regular graphs (n = 15: 4-regular), N(0, 1) data.

Each row has a process of its own, so that its memory is its own; it holds the graph and the problem too.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from midst import Problem, graphs
from midst.engines import ENGINES
from midst.normals import EdgeNormals
from midst.system import assemble, draw_z0, settle

SIZES = (15, 1_000, 100_000, 1_000_000)
SECONDS = 2.0
SLOWEST = {"reference": 1_000}  # a Python object a node and message: beyond, one iteration takes minutes


def one(engine: str, n: int) -> dict[str, object]:
    """Iterations a second over about two seconds, after the first iteration."""
    graph = graphs.regular(n, 4 if n < 100 else 8, rng=1)
    problem = Problem(graph, np.random.default_rng(1).normal(size=n))
    parameters = settle(problem)
    run = ENGINES[engine](
        assemble(problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(2))))
    )
    next(run)
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < SECONDS:
        next(run)
        count += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"engine": engine, "nodes": n, "iterations/s": float(f"{count / elapsed:.3g}"), "MiB": memory}


def table(most: int = SIZES[-1]) -> Iterator[dict[str, object]]:
    """One row an engine and size."""
    for engine in ENGINES:
        for n in SIZES:
            if n <= min(most, SLOWEST.get(engine, most)):
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    yield pool.submit(one, engine, n).result()


if __name__ == "__main__":
    for row in table(int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]):
        print(row, flush=True)
