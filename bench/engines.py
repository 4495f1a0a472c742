"""Iterations a second and memory of every engine, on random 8-regular graphs (n = 15: 4-regular), N(0, 1) data.

    python -m bench.engines [--quick] [--out bench/results]

Each row has a process of its own, so that its memory is its own; it holds the graph and the problem too. The mean
of x(10) is the same by every engine, but for rounding.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from bench.tables import Row, run_parts

from midst import Problem, graphs
from midst.engines import ENGINES
from midst.normals import EdgeNormals
from midst.system import assemble, draw_z0, settle

SIZES = (15, 1_000, 100_000, 1_000_000)
SECONDS = 2.0
SLOWEST = {"reference": 1_000}  # a Python object a node and message: beyond, one iteration takes minutes


def one(engine: str, n: int, seconds: float) -> Row:
    """Iterations a second over so many seconds, after the first ones."""
    graph = graphs.regular(n, 4 if n < 100 else 8, rng=1)
    problem = Problem(graph, np.random.default_rng(1).normal(size=n))
    parameters = settle(problem)
    run = ENGINES[engine](
        assemble(problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(np.random.default_rng(2))))
    )
    for _ in range(10):
        next(run)
    mean = float(next(run)[0].mean())
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        next(run)
        count += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"engine": engine, "nodes": n, "iterations/s": count / elapsed, "MiB": memory, "mean x(10)": mean}


def over_engines(quick: bool) -> Iterator[Row]:
    """One row an engine and size."""
    for engine in ENGINES:
        for n in SIZES[:1] if quick else SIZES:
            if n <= SLOWEST.get(engine, n):
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    yield pool.submit(one, engine, n, SECONDS / 40 if quick else SECONDS).result()


if __name__ == "__main__":
    run_parts("engines", {"engines": over_engines})
