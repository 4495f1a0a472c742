"""Seconds that a GPU takes from the call to the answer, and where they go.

    python -m bench.gpu [--quick] [--out bench/results]

Prints Markdown, and writes the rows to gpu.json. Where there is no GPU, or no JAX for it, it says so and ends.
Timings of ensembles are the median of several calls, after a first one that compiles.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others may want some of the memory too
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit(print("no JAX here, so there is nothing to measure: pip install '.[gpu]'"))
import numpy as np
from bench.tables import make_parser, parse

from midst import Consensus, Exact, Problem, Search, graphs, solve, solve_ensemble
from midst.engines import ensemble as ensembles
from midst.engines import gpu
from midst.engines.batches import BatchSettings, Group, Together, edge_normals, make_batch
from midst.engines.ensemble_search import SearchStart, search_some
from midst.graphs import Graph
from midst.workers import cores

rows: list[dict[str, object]] = []


def report(what, figure, unit, **more):
    rows.append({"what": what, "figure": figure, "unit": unit} | more)
    extra = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in more.items()
    )
    print(f"| {what} | {figure:.4g} {unit} | {extra} |", flush=True)


def ensemble_call(kind, runs):
    """`solve_ensemble(…, device="gpu")`, from the call to the answer; and where the time goes."""
    graph, values = graphs.make(kind, 15, rng=1), np.random.default_rng(0).normal(size=(15, runs))

    def call(seed):
        return solve_ensemble(Problem(graph, values, bounds=(-8, 8)), Consensus(stop=Exact()), rng=seed, device="gpu")

    start = time.perf_counter()
    call(0)
    first = time.perf_counter() - start
    times = []
    for seed in range(1, 8):
        start = time.perf_counter()
        result = call(seed)
        times.append(time.perf_counter() - start)
    assert result.certified.all()
    assert not result.error.any()
    name = f"solve_ensemble, {kind}-15, Consensus(stop=Exact()), device='gpu', {runs:,} runs"
    took = statistics.median(times)
    report(name, runs / took, "runs/s", seconds=took, first_call=first, **stages(graph, values))


def stages(graph, values):
    """The same one after the other, in milliseconds."""
    marks, parts = [time.perf_counter()], {}

    def mark(name):
        marks.append(time.perf_counter())
        parts[name] = 1e3 * (marks[-1] - marks[-2])

    runs, stop = values.shape[1], Exact()
    problem = Problem(graph, values, bounds=(-8, 8))
    mark("problem_ms")
    settings = BatchSettings.of(Consensus(stop=stop), stop, runs, bounds=True)
    batch = make_batch(problem, settings, np.arange(runs), edge_normals(1, runs), draw=False)
    mark("prepare_ms")
    end, _ = jax.block_until_ready(gpu.run(batch, gpu.find_device("gpu"), 10**6, stop))
    mark("copy_draw_and_run_ms")
    end = jax.device_get(end)
    mark("fetch_ms")
    start = SearchStart(end.low * batch.unit, end.high * batch.unit, batch.scale)

    def search(share):
        which = share.runs
        search_some(Together(problem), which, Search(), SearchStart(*(part[which] for part in start)))

    everyone = [Group(np.arange(runs), graph.n)]
    ensembles._in_threads(search, everyone, cores(), ensembles._SEARCHES)
    mark("search_ms")
    return parts


def large_call(name, graph):
    """`solve(…, engine="gpu")` of one large graph, after the graph is there."""
    values = np.random.default_rng(0).normal(size=graph.n)
    print(f"{name}: made", flush=True)
    start = time.perf_counter()
    problem = Problem(graph, values, bounds=(-8, 8))
    graph.diameter()
    made = time.perf_counter() - start
    times = []
    for seed in range(2):
        start = time.perf_counter()
        result = solve(problem, Consensus(stop=Exact()), engine="gpu", rng=seed)
        times.append(time.perf_counter() - start)
    assert result.certified
    more = {"first_call": times[0], "problem_and_diameter": made, "iterations": result.iterations}
    name = f"solve, {name}, {graph.n:,} nodes, Consensus(stop=Exact()), engine='gpu'"
    report(name, times[-1], "s", **more, rounds=result.rounds, exposed=len(result.exposed), peak_GB=peak())


def torus(side):
    """Every node joined to its eight neighbours, with no border."""
    row, column = np.divmod(np.arange(side * side), side)
    near = [((row + a) % side) * side + (column + b) % side for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    target = np.sort(np.column_stack(near), axis=1).reshape(-1)
    return Graph(side * side, (np.repeat(np.arange(side * side), 8), target), "torus", known_diameter=side // 2)


def random_graph(n):
    """The edges of four random permutations, each once: of degree 8, but for a few nodes."""
    pairs = [jnp.stack([jnp.arange(n), jax.random.permutation(jax.random.key(k), n)]) for k in range(4)]
    low, high = (end(jnp.concatenate(pairs, axis=1), axis=0) for end in (jnp.min, jnp.max))
    keys = jnp.unique(jnp.where(low < high, low * n + high, -1))
    keys = keys[keys >= 0]
    both = jnp.sort(jnp.concatenate([keys, keys % n * n + keys // n]))
    return Graph(n, tuple(np.array(end) for end in (both // n, both % n)), "random")


def peak():
    return jax.devices()[0].memory_stats()["peak_bytes_in_use"] / 1e9


def main():
    options = parse(make_parser())
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() != "gpu":
        print("no GPU here, so there is nothing to measure")
        return
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}", flush=True)
    calls(options.quick)
    (options.out / "gpu.json").write_text(json.dumps(rows, indent=1))


def calls(quick):
    for kind in ("ring",) if quick else ("ring", "rgg", "complete"):
        ensemble_call(kind, 1_000 if quick else 100_000)
    side = 500 if quick else 7071
    for name, graph in (("torus, degree 8", torus(side)), ("random, degree 8", random_graph(side * side))):
        large_call(name, graph)


if __name__ == "__main__":
    main()
