"""What the engines reach on this machine's CPU, against what bounds them. `make bench` calls it.

    python -m bench.run [--quick] [--only PART …] [--patience SECONDS] [--out bench/results]

Prints Markdown, writes run.json, run.md and scaling.png. Ratios are between figures of the same run: against a
plain edge-wise NumPy loop of one run, against a SciPy product with the adjacency matrix alone, and against the time a
copy takes for the bytes that an iteration has to move (counted by hand: every array read or written once). Each part
has a process of its own, so that its memory is its own. What is compared is measured in turn; times of large graphs are
the best of several, since others can only make them longer, and the medians stand beside them. On a machine that others
use too, look at the ratio in CPU time: what the cores would do if they did nothing else; or give --patience, so that a
large graph is measured only while other processes use less than a fifth of a core, for so many seconds at most.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench.tables import make_parser, parse, run_parts

from midst import After, Certified, Consensus, Problem, Search, graphs, solve
from midst.engines.arrays import node_form
from midst.engines.ensemble import solve_ensemble
from midst.normals import EdgeNormals
from midst.system import assemble, draw_z0, settle

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
COPIED, FEW_BYTES = 2**27, 2**22  # far larger than the cache, and quick


def median_seconds(work, repeats):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Took(NamedTuple):
    """Seconds: the least and the median on the clock, and the least of the CPU's.

    Of so many samples, while so many others were disturbed and left out; of those if there were no samples else.
    """

    best: float
    usual: float
    cpu: float
    samples: int = 0
    left_out: int = 0


def in_turn(works, repeats, patience=0):
    """What each takes, one after the other and again: whatever slows the machine down slows all of them.

    With patience, a sample lasts a tenth of a second at least, since the system counts its use in hundredths, and is
    left out if other processes used more than a fifth of a core meanwhile.
    """
    at_once = {}
    for name, work in works.items():
        work()
        start = time.perf_counter()
        work()
        at_once[name] = max(1, int(0.12 / (time.perf_counter() - start))) if patience else 1
    times, disturbed = {name: [] for name in works}, {name: [] for name in works}
    end = time.perf_counter() + patience
    while min(map(len, times.values())) < repeats and (not patience or time.perf_counter() < end):
        for name, work in works.items():
            used = cpu_seconds_of_all() if patience else 0
            start, cpu = time.perf_counter(), time.process_time()
            for _ in range(at_once[name]):
                work()
            clock, cpu = time.perf_counter() - start, time.process_time() - cpu
            quiet = not patience or cpu_seconds_of_all() - used - cpu < 0.2 * clock
            (times if quiet else disturbed)[name].append((clock / at_once[name], cpu / at_once[name]))
    found = {}
    for name, taken in times.items():
        clock, cpu = zip(*(taken or disturbed[name]), strict=True)
        found[name] = Took(min(clock), statistics.median(clock), min(cpu), len(taken), len(disturbed[name]))
    return found


def cpu_seconds_of_all():
    """What all processes have used of the CPUs since the machine was started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def resident():
    """The most memory this process has had, in MiB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def copy_bandwidth(size):
    """Bytes a second, read and written, of a copy of so many."""
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


def copy_alone(quick):
    """One far larger than the cache."""
    yield {"what": "a copy, read and written", "GB/s": copy_bandwidth(FEW_BYTES if quick else COPIED) / 1e9}


def small(quick):
    """Ensembles of n = 15 against the plain loop."""
    rng = np.random.default_rng(0)
    iterations, runs, alone_for, repeats = (50, 100, 100, 1) if quick else (3000, 2000 * CORES, 2000, 9)
    for kind in ("ring",) if quick else ("ring", "rgg", "complete"):
        graph = graphs.make(kind, 15, rng=1)
        problem = Problem(graph, rng.normal(size=(15, runs)))
        z = rng.normal(size=graph.source.size) * 0.1

        s = rng.normal(size=15)

        def alone(graph=graph, s=s, z=z):
            return plain_loop(graph, s, z, 1.0, alone_for)

        before = alone_for / median_seconds(alone, repeats)
        started = time.process_time()
        alone()
        plain_cpu = alone_for / (time.process_time() - started)
        for bounds in (True, False):
            with ProcessPoolExecutor(CORES, get_context("spawn")) as pool:  # as `midst sweep --workers` does

                def shares(p=problem, b=bounds, i=iterations, pool=pool):
                    parts = np.array_split(p.values, CORES, axis=1)
                    return sum(pool.map(ensemble, [p.graph] * CORES, parts, [i] * CORES, [b] * CORES))

                shares(i=1)
                took = median_seconds(shares, 3)
                cpu = shares() / CORES
            after = alone_for / median_seconds(alone, repeats)
            plain = max(before, after)  # on a machine whose speed changes, the better for it
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
    method = Consensus(c=1.0, mu=0.0, sigma=0.1, stop=After(iterations))
    solve_ensemble(Problem(graph, values), method, rng=1, bounds=bounds)
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
        method = Consensus(c=1.0, mu=0.0, sigma=0.1, stop=Certified())
        result = solve_ensemble(problems, method, rng=1, workers=CORES)
        done[kind] = float(1 - result.exposed.mean())
    took = time.perf_counter() - start
    yield {"what": f"Fig. 3: {3 * runs} runs, until certified", "seconds": took} | {
        f"secure_{k}": v for k, v in done.items()
    }


def exact(quick):
    """Whole runs a second to the exact median, set up and all: by a search alone, and by one after the iteration."""
    rng = np.random.default_rng(0)
    for kind in ("ring", "rgg", "complete"):
        for method, runs in ((Search(), 10**6), (Consensus(), 20_000)):
            runs //= 100 if quick else 1
            problem = Problem(graphs.make(kind, 15, rng=1), rng.normal(size=(15, runs)), scale=1)
            for workers in dict.fromkeys((1, CORES)):
                start, started = time.perf_counter(), time.process_time()
                result = solve_ensemble(problem, method, rng=1, bounds=False, workers=workers)
                assert result.certified.all()
                assert not result.error.any()
                yield {
                    "what": f"{kind}-15, {runs:,} runs to the exact median by {method.name}, {workers} threads",
                    "runs_per_second": runs / (time.perf_counter() - start),
                    "runs_per_cpu_second": runs / (time.process_time() - started),
                    "mean_iterations": float(result.iterations.mean()),
                    "mean_probes": float(result.probes.mean()),
                    "mean_rounds": float(result.rounds.mean()),
                    "largest_error": float(result.error.max()),
                }


def large(n, kind, repeats, patience, quick=False):
    """One graph: an iteration against the product alone and against a copy of its bytes."""
    if kind == "lattice":
        pairs = [np.column_stack([np.arange(n), (np.arange(n) + step) % n]) for step in range(1, 5)]
        graph = graphs.from_edges(n, np.concatenate(pairs), name=kind)
    else:
        graph = graphs.make(kind, n, rng=1, **({"k": 8} if kind == "regular" else {}))
    rng = np.random.default_rng(0)
    problem = Problem(graph, rng.normal(size=n), scale=1)
    parameters = settle(problem)
    system = assemble(problem, parameters, draw_z0(problem.graph, parameters, EdgeNormals.drawn(rng)))
    run = node_form(system)
    del system
    next(run)
    peak = resident()
    adjacency, x = graph.adjacency(), rng.normal(size=n)
    took = in_turn({"iteration": lambda: next(run), "product": lambda: adjacency @ x}, repeats, patience)
    copy = copy_bandwidth(FEW_BYTES if quick else COPIED)
    product, (best, usual, cpu, samples, left_out) = took["product"], took["iteration"]
    moved = 4 * graph.source.size + 74 * n  # indices; S, R, x read and written, s, weight, cd; branch
    yield {
        "what": f"{kind}, {n:,} nodes, {graph.source.size:,} directed edges",
        "n": n,
        "directed_edges": int(graph.source.size),
        "kind": kind,
        "iterations_per_second": 1 / best,
        "ms": 1e3 * best,
        "median_ms": 1e3 * usual,
        "product_ms": 1e3 * product.best,
        "times_product": best / product.best,
        "times_product_by_medians": usual / product.usual,
        "times_product_in_cpu_time": cpu / product.cpu,
        "counted_MB": moved / 1e6,
        "copy_ms": 1e3 * moved / copy,
        "times_copy": best * copy / moved,
        "resident_MiB": peak,
        "samples": samples,
        "left_out": left_out,
    }


def complete(n, repeats, patience):
    """A complete graph without its edges, as `solve` runs it, against one pass over its arrays."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=n)
    problem = Problem(graphs.complete(n, listed=False), values, scale=1)
    arrays = [rng.normal(size=n) for _ in range(7)]
    out = np.empty(n)

    def one_pass():
        for array in arrays:
            np.copyto(out, array)

    few, many = 10, 50
    options = {"rng": 1, "record": "none"}
    works = {
        "pass": one_pass,
        "few": lambda: solve(problem, Consensus(stop=After(few)), **options),
        "many": lambda: solve(problem, Consensus(stop=After(many)), **options),
    }
    took = in_turn(works, repeats, patience)
    seconds, usual, cpu = ((took["many"][k] - took["few"][k]) / (many - few) for k in range(3))
    yield {
        "what": f"complete, {n:,} nodes, no edges in memory, solve()",
        "ms": 1e3 * seconds,
        "median_ms": 1e3 * usual,
        "pass_ms": 1e3 * took["pass"].best,
        "times_pass": seconds / took["pass"].best,
        "times_pass_by_medians": usual / took["pass"].usual,
        "times_pass_in_cpu_time": cpu / took["pass"].cpu,
        "counted_MB": 8 * n * 7 / 1e6,
        "resident_MiB": resident(),
    }


PARTS = {
    "copy": lambda quick, patience: copy_alone(quick),
    "small": lambda quick, patience: small(quick),
    "exact": lambda quick, patience: exact(quick),
    "figure 3": lambda quick, patience: figure_3(quick),
    "1e3": lambda quick, patience: large(1000, "regular", 20 if quick else 200, patience, quick),
    "1e5": lambda quick, patience: large(2_000 if quick else 100_000, "regular", 30, patience, quick),
    "1e6": lambda quick, patience: large(5_000 if quick else 1_000_000, "regular", 15, patience, quick),
    "lattice": lambda quick, patience: large(5_000 if quick else 1_000_000, "lattice", 15, patience, quick),
    "rgg": lambda quick, patience: large(5_000 if quick else 200_000, "rgg", 15, patience, quick),
    "complete": lambda quick, patience: complete(5_000 if quick else 1_000_000, 7, patience),
}
SIZES = (10**3, 10**4, 10**5, 10**6, 4 * 10**6, 10**7)
SCALING = {"grid": "grid", "regular": "random, 8 neighbours each"}
BYTES_A_NODE = 600  # of the largest graphs, while they are made


def part(name, patience, quick):
    """Its rows; with --quick in this process, which saves the time that another one takes to start."""
    return list(PARTS[name](quick, patience)) if quick else in_a_process(part_alone, name, patience)


def part_alone(name, patience):
    return list(PARTS[name](False, patience))


def scaling(patience, quick):
    for kind in SCALING:
        for n in SIZES[:1] if quick else SIZES:
            if room_for(n):
                yield in_a_process(scale, n, kind, patience, quick)
            else:
                print(f"{kind}, {n:,} nodes: left out, it takes {BYTES_A_NODE * n / 2**30:.0f} GiB")


def scale(n, kind, patience, quick):
    (row,) = large(n, kind, 200 if n < 10**5 and not patience else 10, patience, quick)
    return row


def room_for(n):
    """Whether the largest graphs fit into half of what memory is free."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return BYTES_A_NODE * n <= free / 2


def in_a_process(function, *args):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def draw(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set(xlabel="directed edges", ylabel="milliseconds an iteration", xscale="log", yscale="log")
    right.set(xlabel="directed edges", ylabel="nanoseconds an iteration and directed edge", xscale="log", yscale="log")
    for colour, marker, (kind, name) in zip(("#0072b2", "#d55e00"), "os", SCALING.items(), strict=True):
        edges, ms, product = np.array(
            [(row["directed_edges"], row["ms"], row["product_ms"]) for row in rows if row["kind"] == kind]
        ).T
        for axes, scaled in ((left, 1), (right, 1e6 / edges)):
            axes.plot(edges, ms * scaled, marker + "-", color=colour, label=name)
            axes.plot(edges, product * scaled, ":", color=colour, label="the SciPy product alone")
        if edges[-1] >= 1e6:
            slope = ms[-1] / edges[-1]
            left.plot([1e4, edges[-1]], [slope * 1e4, ms[-1]], "-", color="0.8", linewidth=4, zorder=0)
    left.plot([], [], "-", color="0.8", linewidth=4, label="in proportion to the edges")
    left.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main():
    parser = make_parser([*PARTS, "scaling"])
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS", help="wait for others to be quiet")
    options = parse(parser)
    parts = {name: partial(part, name, options.patience) for name in PARTS}
    found = run_parts("run", parts | {"scaling": partial(scaling, options.patience)}, options)
    if "scaling" in found:
        draw(found["scaling"], options.out / "scaling.png")


if __name__ == "__main__":
    main()
