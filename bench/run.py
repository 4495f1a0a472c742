"""What the engines reach on this machine's CPU, against what bounds them. `make bench` calls it.

    python bench/run.py [--quick] [--only PART …] [--out bench/results]

Prints Markdown, writes run.json and scaling.png. Ratios are between figures of the same run: against a plain
edge-wise NumPy loop of one run, against a SciPy product with the adjacency matrix alone, and against the time a copy
takes for the bytes that an iteration has to move (counted by hand: every array read or written once). Each part has a
process of its own, so that its memory is its own. Times are medians. On a machine that others use too, look at the
ratio in CPU time: what the cores would do if they did nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from midst import Problem, graphs
from midst.engines.arrays import carry, cut, node_form
from midst.engines.ensemble import solve_ensemble
from midst.engines.large import in_complete_graph
from midst.system import assemble, draw_z0, settle
from midst.update import Terms

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def median_seconds(work, repeats):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def resident():
    """The most memory this process has had, in MiB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def copy_bandwidth(size=2**27):
    """Bytes a second, read and written, of a copy far larger than the cache."""
    a, b = np.ones(size // 8), np.empty(size // 8)
    return 2 * size / median_seconds(lambda: np.copyto(b, a), 7)


def plain_loop(graph, s, z, c, iterations):
    """Algorithm 1 for one run, edge by edge in NumPy: what a reader of the paper would write."""
    source, reverse, sign = graph.source, graph.reverse, graph.sign.astype(float)
    cd = c * graph.degree
    exposed = np.zeros(graph.n, bool)
    for _ in range(iterations):
        S = np.bincount(source, sign * z, graph.n)
        low, high = (-1 - S) / cd, (1 - S) / cd
        x = np.clip(s, low, high)
        exposed |= (low <= s) & (s <= high)
        y = z + 2 * c * sign * x[source]
        z = 0.5 * z + 0.5 * y[reverse]
    return x, exposed


# The parts


def small(quick):
    """Ensembles of n = 15 against the plain loop."""
    rng = np.random.default_rng(0)
    iterations, runs = (200, 400) if quick else (3000, 2000 * CORES)
    for kind in ("ring", "rgg", "complete"):
        graph = graphs.make(kind, 15, rng=1)
        problem = Problem(graph, rng.normal(size=(15, runs)))
        z = rng.normal(size=graph.source.size) * 0.1

        s = rng.normal(size=15)

        def alone(graph=graph, s=s, z=z):
            return plain_loop(graph, s, z, 1.0, 2000)

        before = 2000 / median_seconds(alone, 9)
        started = time.process_time()
        alone()
        plain_cpu = 2000 / (time.process_time() - started)
        for bounds in (True, False):
            with ProcessPoolExecutor(CORES, get_context("spawn")) as pool:  # as `midst sweep --workers` does

                def shares(p=problem, b=bounds, i=iterations, pool=pool):
                    parts = np.array_split(p.values, CORES, axis=1)
                    return sum(pool.map(ensemble, [p.graph] * CORES, parts, [i] * CORES, [b] * CORES))

                shares(i=1)
                took = median_seconds(shares, 3)
                cpu = shares() / CORES
            plain = max(before, 2000 / median_seconds(alone, 9))  # on a machine whose speed changes, the better for it
            yield {
                "what": f"{kind}-15, {runs} runs of {iterations}, {CORES} processes{', bounds' if bounds else ''}",
                "run_iterations_per_second": runs * iterations / took,
                "plain_loop_per_second": plain,
                "times_plain": runs * iterations / took / plain,
                "times_plain_in_cpu_time": runs * iterations / cpu / plain_cpu,
                "counted_bytes_a_run_iteration": 15 * 8 * (12 + 4 * bounds),
            }


def ensemble(graph, values, iterations, bounds):
    """A share of the runs, set up and all; the CPU seconds it took."""
    started = time.process_time()
    solve_ensemble(Problem(graph, values), c=1.0, mu=0.0, sigma=0.1, rng=1, iterations=iterations, bounds=bounds)
    return time.process_time() - started


def figure_3(quick):
    """100 runs on each of three topologies until certified to 1e-6, graphs and data drawn."""
    rng = np.random.default_rng(0)
    runs = 10 if quick else 100
    start = time.perf_counter()
    done = {}
    for kind in ("ring", "rgg", "complete"):
        values = rng.normal(size=(15, runs))
        problems = (
            [Problem(graphs.rgg(15, rng=rng), column) for column in values.T]
            if kind == "rgg"
            else Problem(graphs.make(kind, 15), values)
        )
        result = solve_ensemble(problems, c=1.0, mu=0.0, sigma=0.1, rng=1, stop="certified", workers=CORES)
        done[kind] = float(1 - result.exposed.mean())
    took = time.perf_counter() - start
    yield {"what": f"Fig. 3: {3 * runs} runs, until certified", "seconds": took} | {
        f"secure_{k}": v for k, v in done.items()
    }


def large(n, kind, repeats):
    """One graph: an iteration against the product alone and against a copy of its bytes."""
    graph = graphs.make(
        kind, n, rng=1, **({"k": 8} if kind in ("regular", "ws") else {}), **({"p": 0.0} if kind == "ws" else {})
    )
    rng = np.random.default_rng(0)
    problem = Problem(graph, rng.normal(size=n), scale=1)
    parameters = settle(problem)
    system = assemble(problem, parameters, draw_z0(problem, parameters, rng))
    runs = {name: node_form(system, dtype) for name, dtype in (("float64", np.float64), ("float32", np.float32))}
    took = {name: median_seconds(lambda run=run: next(run), repeats) for name, run in runs.items()}
    runs.clear()
    peak = resident()
    adjacency, x = graph.adjacency(), rng.normal(size=n)
    product = median_seconds(lambda: adjacency @ x, repeats)
    copy = copy_bandwidth()
    for name, seconds in took.items():
        size = np.dtype(name).itemsize
        moved = 4 * graph.source.size + size * n * 9 + 2 * n  # indices; S, R, x read and written, s, weight, cd; branch
        yield {
            "what": f"{kind}, {n:,} nodes, {graph.source.size:,} directed edges, {name}",
            "n": n,
            "kind": kind,
            "dtype": name,
            "iterations_per_second": 1 / seconds,
            "ms": 1e3 * seconds,
            "product_ms": 1e3 * product,
            "times_product": seconds / product,
            "counted_MB": moved / 1e6,
            "copy_ms": 1e3 * moved / copy,
            "times_copy": seconds * copy / moved,
            "resident_MiB": peak,
        }


def complete(n, repeats):
    """A complete graph without its edges, against one pass over its arrays."""
    rng = np.random.default_rng(0)
    s, S = rng.normal(size=n), rng.normal(size=n)
    weight = np.full(n, float(n - 1))
    terms = Terms(s, np.full(n, -1.0), np.full(n, 1.0), weight, weight)
    blocks = cut(s)
    run = carry(S, -S, terms, np.ones(()), 0.5, in_complete_graph(blocks), blocks)
    seconds = median_seconds(lambda: next(run), repeats)
    arrays = [rng.normal(size=n) for _ in range(7)]
    out = np.empty(n)

    def one_pass():
        for array in arrays:
            np.copyto(out, array)

    passing = median_seconds(one_pass, repeats)
    yield {
        "what": f"complete, {n:,} nodes, no edges in memory",
        "ms": 1e3 * seconds,
        "pass_ms": 1e3 * passing,
        "times_pass": seconds / passing,
        "counted_MB": 8 * n * 7 / 1e6,
    }


PARTS = {
    "small": lambda quick: small(quick),
    "figure 3": lambda quick: figure_3(quick),
    "1e3": lambda quick: large(1000, "regular", 200),
    "1e5": lambda quick: large(10_000 if quick else 100_000, "regular", 30),
    "1e6": lambda quick: large(20_000 if quick else 1_000_000, "regular", 15),
    "lattice": lambda quick: large(20_000 if quick else 1_000_000, "ws", 15),
    "rgg": lambda quick: large(20_000 if quick else 200_000, "rgg", 15),
    "complete": lambda quick: complete(20_000 if quick else 1_000_000, 15),
}
SCALING = {"grid": (10**3, 10**4, 10**5, 10**6, 10**7), "regular": (10**3, 10**4, 10**5, 10**6, 4 * 10**6)}


def part(name, quick):
    return list(PARTS[name](quick))


def scale(n, kind):
    (row, _) = large(n, kind, 200 if n < 10**5 else 10)
    return row


def in_a_process(function, *args):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def show(row):
    figures = [
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.items()
        if name != "what"
    ]
    print(f"| {row['what']} | {', '.join(figures)} |", flush=True)


def draw(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel="nodes", ylabel="milliseconds an iteration", xscale="log", yscale="log")
    for kind in SCALING:
        points = [(row["n"], row["ms"]) for row in rows if row["kind"] == kind]
        axes.plot(
            *zip(*points, strict=True), "o-", label={"grid": "grid, shifts", "regular": "8-regular random, CSR"}[kind]
        )
    largest = max(row["n"] for row in rows)
    last = next(row["ms"] for row in rows if row["n"] == largest)
    axes.plot([1e4, largest], [last * 1e4 / largest, last], ":", color="grey", label="linear")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether everything runs")
    parser.add_argument("--only", nargs="*", choices=[*PARTS, "scaling"], default=[*PARTS, "scaling"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    bandwidth = copy_bandwidth()
    about = {
        "machine": platform.processor() or platform.machine(),
        "cores": CORES,
        "load_before": os.getloadavg()[0],
        "numpy": np.__version__,
        "copy_GB_per_second": bandwidth / 1e9,
    }
    print(f"{about}\n\n| work | figures |\n|---|---|", flush=True)
    rows = []
    for name in PARTS:
        if name in options.only:
            for row in in_a_process(part, name, options.quick):
                show(row)
                rows.append(row)
    scaling = []
    if "scaling" in options.only:
        for kind, sizes in SCALING.items():
            for n in sizes:
                if n <= (10**4 if options.quick else 10**7):
                    scaling.append(in_a_process(scale, n, kind))
                    show(scaling[-1])
    (options.out / "run.json").write_text(json.dumps({"about": about, "rows": rows, "scaling": scaling}, indent=1))
    if scaling:
        draw(scaling, options.out / "scaling.png")


if __name__ == "__main__":
    main()
