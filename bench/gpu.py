"""What the device engine reaches on a GPU, against a device copy and cuSPARSE's product.

    python -m bench.gpu [--quick] [--only calls kernels] [--out bench/results]

Prints Markdown, and writes the rows to gpu.json. Where there is no GPU, or no JAX for it, it says so and ends.
Every figure stands beside the bytes it has to move, counted by hand: each input read once, each output written once.
Timings are the median of several, each of work that is waited for, after a first one that compiles.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # CuPy wants some of the memory too
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit(print("no JAX here, so there is nothing to measure: pip install '.[gpu]'"))
import numpy as np
from bench.tables import make_parser, parse

from midst import Certified, Consensus, Exact, Problem, Search, graphs, solve, solve_ensemble
from midst.engines import ensemble as ensembles
from midst.engines import gpu
from midst.engines.arrays import carry, cut
from midst.engines.batches import BatchSettings, Group, Together, edge_normals, make_batch
from midst.engines.ensemble_search import SearchStart, search_some
from midst.graphs import Graph
from midst.graphs.neighbour_sums import neighbour_sum
from midst.protocol.step import Terms
from midst.workers import cores

rows: list[dict[str, object]] = []
failed: list[str] = []


def seconds(work, repeats=5):
    jax.block_until_ready(work())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(work())
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(what, figure, unit, **more):
    rows.append({"what": what, "figure": figure, "unit": unit} | more)
    extra = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in more.items()
    )
    print(f"| {what} | {figure:.4g} {unit} | {extra} |", flush=True)


def copy_bandwidth(count):
    """A device-to-device copy, read and written: the best of CuPy's, which is the driver's, and of XLA's."""
    x = jnp.arange(count, dtype=jnp.float64)
    copy = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, x: x + 1.0, x))
    rates = {"XLA, x + 1": 16 * count * 50 / seconds(lambda: copy(x))}
    try:
        import cupy
    except ImportError:
        pass
    else:
        a, b = cupy.ones(count), cupy.empty(count)
        rates["CuPy"] = 16 * count / median_on_device(cupy, lambda: cupy.copyto(b, a))
    for name, rate in rates.items():
        report(f"copy of {8 * count / 1e9:.1f} GB, {name}", rate / 1e12, "TB/s, read and written")
    return max(rates.values())


def median_on_device(cupy, work, repeats=7):
    """Seconds between two events around the work."""
    times = []
    for _ in range(repeats):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return statistics.median(times[1:])


# Ensembles


def ensemble(kind, dtype, runs, steps, half, bounds, check=False):
    graph = graphs.make(kind, 15, rng=1)
    n = graph.n
    small = gpu.Small(tuple(tuple(graph.neighbours(i).tolist()) for i in range(n)), (-1.0,) * n, (1.0,) * n)
    rng = np.random.default_rng(0)
    s, S, R = (rng.normal(size=(n, runs)) for _ in range(3))
    R += (S.sum(axis=0) - R.sum(axis=0)) / n
    on_device = [jnp.asarray(array, dtype) for array in (s, S, R)]
    c = jnp.ones(runs, dtype)
    cd = jnp.asarray(graph.degree, dtype)[:, None]
    local = (on_device[0], jnp.asarray(-1.0, dtype), jnp.asarray(1.0, dtype), cd, cd)
    state = gpu.begin(on_device[1], on_device[2], local)
    theta = 0.5 if half else 0.4  # at ½ the half difference of S and R is enough
    program = gpu.DeviceProgram(theta, small=small, bounds=bounds)

    def work(steps=steps):
        return program.advance(state, jnp.int32(0), steps, ((on_device[0],), c, None))

    if check:
        some = slice(0, 64)
        terms = Terms(
            s[:, some],
            np.full((n, 64), -1.0),
            np.full((n, 64), 1.0),
            *[np.repeat(graph.degree[:, None] * 1.0, 64, 1)] * 2,
        )
        blocks = cut(s[:, some])
        run = carry(
            S[:, some].copy(),
            R[:, some].copy(),
            terms,
            np.ones(64),
            theta,
            neighbour_sum(graph, blocks, None, np.float64),
            blocks,
        )
        expected = [next(run)[0].copy() for _ in range(201)][-1]
        report(
            f"{kind}-15 {jnp.dtype(dtype).name}: largest difference from NumPy after 200",
            float(np.abs(np.asarray(work(200).x)[:, some] - expected).max()),
            "",
        )
    took = seconds(work)
    size = jnp.dtype(dtype).itemsize
    moved = runs * n * (size * (2 * (3 + 2 * bounds) - 1) + 8)
    report(
        f"ensemble {kind}-15 {jnp.dtype(dtype).name}{', P' if half else ', S and R'}{', bounds' if bounds else ''}",
        runs * steps / took,
        "run-iterations/s",
        counted_bytes_an_iteration=moved / steps / runs,
        us_a_step=1e6 * took / steps,
    )


def memory_bound(kind, runs, steps):
    """The same ensemble by array operations, which go through memory in every iteration."""
    graph = graphs.make(kind, 15, rng=1)
    rng = np.random.default_rng(0)
    s, S, R = (jnp.asarray(rng.normal(size=(15, runs))) for _ in range(3))
    cd = jnp.asarray(graph.degree, jnp.float64)[:, None]
    terms = (s, jnp.float64(-1), jnp.float64(1), cd, cd)
    state, program = gpu.begin(S, R, terms), gpu.DeviceProgram(0.5)
    lists = gpu.Neighbours(lists=jnp.asarray(gpu.lists_of(graph)))
    took = seconds(lambda: program.advance(state, jnp.int32(0), steps, (terms, jnp.ones(runs), lists)), 3)
    report(f"the same by array operations, {kind}-15 float64", runs * steps / took, "run-iterations/s")


def to_the_end(kind, runs, device, stop):
    """Every run of an ensemble to its end, on the device from z(0) to the last iteration; without the search."""
    rng = np.random.default_rng(0)
    problem = Problem(graphs.make(kind, 15, rng=1), rng.normal(size=(15, runs)), scale=1)
    settings = BatchSettings(None, None, None, theta=0.5, force=False, stop=stop, last=10**6, bounds=False)
    batch = make_batch(problem, settings, np.arange(runs), edge_normals(1, runs), draw=False)
    there = gpu.DeviceRuns(batch, device, bounds=False)
    took = seconds(lambda: there.run(10**6, stop), 3)
    iterations = there.fetch(there.run(10**6, stop)).iterations
    report(
        f"ensemble {kind}-15 float64, to the end: {stop}",
        float(iterations.sum()) / took,
        "run-iterations/s",
        runs_per_second=runs / took,
        median_iterations=float(np.median(iterations)),
        last=int(iterations.max()),
    )


# What a user calls


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
    settings = BatchSettings(None, None, None, theta=0.5, force=False, stop=stop, last=10**6, bounds=True)
    batch = make_batch(problem, settings, np.arange(runs), edge_normals(1, runs), draw=False)
    mark("prepare_ms")
    there = gpu.DeviceRuns(batch, gpu.find_device("gpu"))
    jax.block_until_ready(there._arrays)
    mark("copy_ms")
    end = jax.block_until_ready(there.run(10**6, stop))
    mark("draw_and_run_ms")
    out = there.fetch(end)
    mark("fetch_ms")
    start = SearchStart(out.near.low, out.near.high, batch.scale)

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


# Large graphs


def lists_for(kind, n):
    i = jnp.arange(n, dtype=jnp.int32)
    if kind == "lattice":
        return jnp.stack([(i + offset) % n for offset in (-4, -3, -2, -1, 1, 2, 3, 4)])
    if kind == "torus":
        width = int(n**0.5) // 512 * 512
        return jnp.stack(
            [(i + offset) % n for offset in (-width - 1, -width, -width + 1, -1, 1, width - 1, width, width + 1)]
        )
    rows = []
    for k in range(4):
        order = jax.random.permutation(jax.random.key(k), n).astype(jnp.int32)
        rows += [order, jnp.zeros_like(order).at[order].set(i)]
    return jnp.stack(rows)


def large(kind, n, dtype, copy, bounds=False, steps=20, plain=False, cusparse=False):
    name = f"{kind}, {n:.2g} nodes, {8 * n:.2g} directed edges, {jnp.dtype(dtype).name}"
    lists = lists_for(kind, n)
    size = jnp.dtype(dtype).itemsize
    keys = jax.random.split(jax.random.key(9), 3)
    s, S, R = (jax.random.normal(key, (n,), dtype) for key in keys)
    one = jnp.ones(1, dtype)
    terms = (s, -one, one, 8 * one, 8 * one)

    def begin():
        return gpu.begin(S + 0, R + 0, terms)

    def advance(state, steps):
        program = gpu.DeviceProgram(0.5, nodes=n, bounds=bounds)
        return program.advance(state, jnp.int32(0), steps, (terms, one, lists))

    if plain or n <= 10**6:
        columns = tuple(term[:, None] for term in terms)
        start_state = gpu.DeviceState(*(array[:, None] for array in begin()))
        neighbours = gpu.Neighbours(lists=lists)

        def by_arrays(steps, state=start_state):
            return gpu.DeviceProgram(0.5).advance(state, jnp.int32(0), steps, (columns, one, neighbours))

        expected, found = by_arrays(6).x[:, 0], advance(begin(), 6).x
        report(f"{name}: largest difference from array operations after 6", float(jnp.abs(expected - found).max()), "")
        if plain:
            took = (seconds(lambda: by_arrays(12), 3) - seconds(lambda: by_arrays(2), 3)) / 10
            report(f"{name}, plain JAX", 1e3 * took, "ms an iteration")
        del start_state, by_arrays, expected, found, columns
    advance(begin(), steps)
    times = []
    for _ in range(5):
        state = jax.block_until_ready(begin())
        start = time.perf_counter()
        state = jax.block_until_ready(advance(state, steps))
        times.append((time.perf_counter() - start) / steps)
        del state
    took = statistics.median(times)
    moved = n * (
        32 + size * (5 + 4 * bounds) + 8
    )  # lists, P read and written, x read and written, s; first read and written
    report(
        f"{name}{', bounds' if bounds else ''}",
        1e3 * took,
        "ms an iteration",
        counted_GB=moved / 1e9,
        floor_ms=1e3 * moved / copy,
        times_the_floor=took * copy / moved,
    )
    if cusparse:
        del s, S, R
        cusparse_product(name, lists, n, dtype)


def cusparse_product(name, lists, n, dtype):
    try:
        import cupy
        from cupyx.scipy import sparse
    except ImportError:
        print("CuPy is not here: no cuSPARSE")
        return
    indices = cupy.from_dlpack(jnp.sort(lists.T, axis=1).reshape(-1))
    starts = cupy.arange(0, 8 * n + 1, 8, dtype=cupy.int32)
    matrix = sparse.csr_matrix((cupy.ones(8 * n, jnp.dtype(dtype).name), indices, starts), shape=(n, n))
    x = cupy.random.standard_normal(n).astype(jnp.dtype(dtype).name)
    report(f"{name}: cuSPARSE product alone", 1e3 * median_on_device(cupy, lambda: matrix @ x), "ms")
    cupy.get_default_memory_pool().free_all_blocks()


def attempt(what, work):
    """One that does not compile must not hide the others."""
    try:
        work()
    except Exception as error:
        failed.append(what)
        print(f"FAILED {what}: {error!r:.400}", flush=True)


def main():
    options = parse(make_parser(("calls", "kernels")))
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() != "gpu":
        print("no GPU here, so there is nothing to measure")
        return
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}", flush=True)
    if "calls" in options.only:
        calls(options.quick)
    if "kernels" in options.only:
        kernels(options.quick)
    (options.out / "gpu.json").write_text(json.dumps(rows, indent=1))
    if failed:
        sys.exit(f"{len(failed)} failed")


def calls(quick):
    for kind in ("ring",) if quick else ("ring", "rgg", "complete"):
        ensemble_call(kind, 1_000 if quick else 100_000)
    side = 500 if quick else 7071
    for name, graph in (("torus, degree 8", torus(side)), ("random, degree 8", random_graph(side * side))):
        large_call(name, graph)


def kernels(quick):
    copy = copy_bandwidth(10**7 if quick else 5 * 10**8)
    runs, steps = (2**14, 200) if quick else (2**20, 2000)
    dtypes, kinds = (jnp.float64, jnp.float32), ("rgg",) if quick else ("rgg", "ring", "complete")
    for dtype, kind, half, bounds in product(dtypes, kinds, (False, True), (False, True)):
        check = bounds and dtype == jnp.float64
        work = partial(ensemble, kind, dtype, runs, steps, half, bounds, check)
        attempt(f"{kind} {dtype.__name__} {half=} {bounds=}", work)
    memory_bound("rgg", runs, 100)
    for kind, stop in product(kinds, (Exact(), Certified())):
        attempt(f"{kind} {stop}", partial(to_the_end, kind, 2**10 if quick else 2**17, jax.devices()[0], stop))
    n = 512 * (2_000 if quick else 97_656)
    for kind, dtype, bounds in product(("lattice", "torus", "random"), dtypes, (False, True)):
        main_case = not bounds and dtype == jnp.float64
        work = partial(large, kind, n, dtype, copy, bounds, plain=main_case, cusparse=main_case)
        attempt(f"{kind} {dtype.__name__} {bounds=}", work)


if __name__ == "__main__":
    main()
