"""Many runs at once: other values, z(0), parameters and graphs in each, and no trace of any.

Rules:
- Run k is `solve(problem_k, rng=child_k)`: the same step (`update.py`), the same z(0), the same stop.
- Arrays are (n, runs): a neighbour sum is then one matrix product, and every other operation goes along the runs.
- As many runs are under way as have arrays that stay in the cache. One that is done is written to the result; when
  enough of them are, the others close ranks and the next ones join, so that a few long runs hold up nobody.
- Graphs may differ in size (`batches.py`); what is said of a node that a run does not have is nothing.
- What an audit wants to know of a run is gathered on the way: when each node first sent its value, and the bounds that
  an observer who knows z(0) has on it (the greatest x sent from below it, the least from above).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from midst.engines.arrays import sum_over_neighbours
from midst.engines.batches import Batch, Group, Settings, is_dense, join, one_a_run, source_of, z0_streams
from midst.engines.ensemble_tally import Tallies
from midst.errors import InputError
from midst.graphs import Graph
from midst.problems import Problem
from midst.system import RNG, whole_number
from midst.update import Array, Branch, next_sums, next_x

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Stop = Literal["count", "certified"]

NEVER = -1  # the iteration of what did not happen
_NONE_YET = np.int8(2)  # the branch of a node before its first iteration
_NUMBERS = 16_000  # in an array at a time: less than the 128 KiB from which malloc asks the system for every array
_CLOSE_RANKS = 0.8  # as soon as less than this share is still running


@dataclass(frozen=True, eq=False)
class EnsembleResult:
    """What came out of every run; the first axis is the run.

    Attributes:
        value: the answer: what was counted, or the middle of the last x.
        iterations: how many were run.
        certified: whether the value is proved, by a count or by the certificate of the last x.
        proposals: how many candidates were counted; 0 where the run did not end by a count.
        spread: max x − min x in the end.
        error: distance of the value from the nearest right answer, which only a simulation knows.
        first_inside: the first iteration in which each node sent its own value, or `NEVER`.
        lower: a bound on each value that whoever knows z(0) has: the greatest x sent below it, or −∞.
        upper: likewise the least x sent above it, or ∞.
        x: the last one, in the units of the data; not a number where a run has fewer nodes than the largest.
    """

    value: Array
    iterations: Ints
    certified: Bools
    proposals: Ints
    spread: Array
    error: Array
    first_inside: Ints
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    x: Array = field(repr=False)

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.value)

    @property
    def exposed(self) -> Bools:
        """Which nodes sent their own value: inside (Theorem 1), or for the mean all."""
        return np.not_equal(self.first_inside, NEVER)


def solve_ensemble(
    problems: Problem | Sequence[Problem],
    *,
    c: ArrayLike | None = None,
    theta: float = 0.5,
    mu: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    rng: RNG | Sequence[RNG] = None,
    stop: Stop | None = None,
    patience: int | None = None,
    root: int = 0,
    tolerance: float = 1e-6,
    iterations: int | None = None,
    limit: int = 1_000_000,
    force: bool = False,
    bounds: bool = True,
    workers: int = 1,
    device: Literal["cpu", "gpu"] | None = None,
    dtype: DTypeLike = np.float64,
) -> EnsembleResult:
    """Run many problems at once, each until its answer is proved.

    A run that ends without a proof says so in the result; nothing is raised.

    Args:
        problems: one problem with a coordinate a run (its values are (n, runs)), or a sequence of problems with one
            number a node, on graphs of any size.
        c: the convergence parameter; a number, or one a run, like `mu` and `sigma`. Chosen as in `solve` if not given.
        theta: averaging constant in (0, 1).
        mu: mean of z(0).
        sigma: standard deviation of z(0).
        rng: a seed or a generator, of whose children `rng.spawn(runs)` each run gets one; or a sequence of one a run.
        stop: "count" or "certified", as in `solve`; not given: "count" where every run's answer is one of its values.
        patience: how many iterations in a row a node is inside before it proposes its value; chosen if not given.
        root: the node at which a count's sums meet.
        tolerance: relative to the public scale (absolute where c is given and no scale is).
        iterations: run exactly so many instead.
        limit: give up after so many.
        force: accept θ = 1 for a quantile, which does not converge.
        bounds: keep `lower` and `upper`, a tenth of the time; without them these say nothing.
        workers: threads; the result does not depend on it.
        device: run all of them at once through JAX, on this kind of device (`gpu.py`); certificates are looked for
            every 64 iterations.
        dtype: of the numbers on the device. float32 is within about 1e-5 of the scale.

    Raises:
        InputError: the input is refused; nothing was run.
        MissingExtra: a device is asked for, and JAX is not installed.
    """
    source = source_of(problems)
    rules = source.rules(patience, root) if stop in (None, "count") and iterations is None else None
    if stop not in (None, "count", "certified"):
        raise InputError(f"stop must be 'count' or 'certified', not {stop!r}")
    if stop == "count" and rules is None and iterations is None:
        raise InputError("not every run has one value to propose; try side='low', or stop='certified'")
    if not (isinstance(tolerance, int | float) and 0 < tolerance < np.inf):
        raise InputError("tolerance must be a positive number")
    workers = whole_number("workers", workers)
    last = whole_number("limit", limit) if iterations is None else whole_number("iterations", iterations)
    settings = Settings(
        c=one_a_run("c", c, source.runs),
        mu=one_a_run("mu", mu, source.runs),
        sigma=one_a_run("sigma", sigma, source.runs),
        theta=theta,
        force=force,
        tolerance=tolerance,
        last=last,
        bounds=bounds,
        watch_certificate=rules is None and iterations is None,
    )
    drawn = z0_streams(rng, source.runs)
    groups = source.groups()
    result = _blank(source.runs, groups[0].nodes)

    def prepare(which: Ints, group: Group) -> Batch:
        return source.prepare(which, group, settings, [drawn[k] for k in which.tolist()])

    def line_up(which: Ints, batch: Batch) -> Tallies | None:
        if rules is None:
            return None
        return Tallies.start(batch.graphs, [rules[k] for k in which.tolist()], batch.terms.s, batch.counts)

    if device is not None:
        for group in groups:
            batch = prepare(group.runs, group)
            _run_on_device(group.runs, batch, line_up(group.runs, batch), settings, device, dtype, result)
        return result

    def begin(which: Ints, group: Group) -> _Runs:
        batch = prepare(which, group)
        return _Runs.begin(which, batch, line_up(which, batch))

    def drive(share: Group) -> None:
        at_once = max(1, _NUMBERS // share.nodes)
        _drive(lambda which: begin(which, share), share.runs, at_once, settings, result)

    shares = [group._replace(runs=part) for group in groups for part in np.array_split(group.runs, workers)]
    shares = [share for share in shares if share.runs.size]
    if workers == 1:
        for share in shares:
            drive(share)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(drive, shares))
    return result


@dataclass(eq=False, repr=False)
class _Seen:
    """What is gathered of the runs on the way: when a node changes branch, since between two changes nothing is new.

    Attributes:
        first_inside: the first iteration in which each node sent its value, or `NEVER`.
        lower: the greatest x sent from below, before the present stretch.
        upper: the least x sent from above, likewise.
        side: the branch of the present stretch.
        highest: the greatest x sent in it.
        lowest: the least.
    """

    first_inside: Ints
    lower: Array
    upper: Array
    side: Branch
    highest: Array
    lowest: Array

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> _Seen:
        low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        return cls(np.full(shape, NEVER), low, high, np.full(shape, _NONE_YET), low.copy(), high.copy())

    def see(self, t: Ints, x: Array, branch: Branch, bounds: bool) -> None:
        changed = np.flatnonzero(branch != self.side)
        if changed.size:
            self._change(changed, t, x.reshape(-1), branch.reshape(-1))
        if bounds:
            np.maximum(self.highest, x, out=self.highest)
            np.minimum(self.lowest, x, out=self.lowest)

    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds, the present stretch included."""
        lower = np.where(self.side == -1, np.maximum(self.lower, self.highest), self.lower)
        return lower, np.where(self.side == 1, np.minimum(self.upper, self.lowest), self.upper)

    def _change(self, k: Ints, t: Ints, x: Array, branch: Branch) -> None:
        """Nodes k, counted through all runs, are on another branch than before."""
        first, lower, upper, side, highest, lowest = (part.reshape(-1) for part in vars(self).values())
        below, above = k[side[k] == -1], k[side[k] == 1]
        lower[below] = np.maximum(lower[below], highest[below])
        upper[above] = np.minimum(upper[above], lowest[above])
        inside = k[(branch[k] == 0) & (first[k] == NEVER)]
        first[inside] = t[inside % len(t)]
        side[k], highest[k], lowest[k] = branch[k], x[k], x[k]


@dataclass(eq=False, repr=False)
class _Runs:
    """Those under way: which rows of the result they are, and where each stands."""

    row: Ints
    t: Ints
    running: Bools
    batch: Batch
    S: Array
    R: Array
    x: Array
    branch: Branch
    seen: _Seen
    tallies: Tallies | None

    @classmethod
    def begin(cls, row: Ints, batch: Batch, tallies: Tallies | None) -> _Runs:
        x, branch = next_x(batch.S, batch.terms)
        running, seen = np.ones(len(row), np.bool_), _Seen.nothing(x.shape)
        t = np.zeros(len(row), np.int64)
        return cls(row, t, running, batch, batch.S, batch.R, x, branch, seen, tallies)

    def step(self, neighbour_sum: Callable[[Array], Array]) -> None:
        batch = self.batch
        self.S, self.R = next_sums(self.S, self.R, self.x, neighbour_sum(self.x), batch.terms.cd, batch.c, batch.theta)
        self.x, self.branch = next_x(self.S, batch.terms)
        self.t += 1

    def done(self, settings: Settings) -> Bools:
        """Which of the runs end with this iteration."""
        done = self.t + 1 == settings.last
        if self.tallies is not None:
            done |= self.tallies.see(self.t, self.branch)
        elif settings.watch_certificate:
            done |= _holds(self.x, self.batch)
        return np.asarray(done & self.running)


def _drive(
    begin: Callable[[Ints], _Runs], rows: Ints, at_once: int, settings: Settings, result: EnsembleResult
) -> None:
    """Runs one after the other, so many at once, to their rows of the result."""
    runs, waiting = begin(rows[:at_once]), rows[at_once:]
    neighbour_sum = sum_in_each(runs.batch.graphs, len(runs.x))
    while True:
        runs.seen.see(runs.t, runs.x, runs.branch, settings.bounds)
        done = runs.done(settings)
        ended = done.any()
        if ended:
            _write(result, _some_of(runs, done))
            runs.running &= ~done
        runs.step(neighbour_sum)
        if ended and runs.running.sum() < _CLOSE_RANKS * len(runs.running):
            runs = _some_of(runs, runs.running)
            room = at_once - len(runs.row)
            if waiting.size:
                runs, waiting = _beside(runs, begin(waiting[:room])), waiting[room:]
            if not runs.row.size:
                return
            neighbour_sum = sum_in_each(runs.batch.graphs, len(runs.x))


def _some_of(part: Any, which: Bools) -> Any:
    """Some of the runs: of an array the last axis, of a tuple one a run, of a record those of its parts."""
    match part:
        case np.ndarray():
            return part.compress(which, axis=-1)
        case tuple():
            return tuple(one for one, here in zip(part, which, strict=True) if here)
        case None | bool() | float():
            return part
    return replace(part, **{entry.name: _some_of(getattr(part, entry.name), which) for entry in fields(part)})


def _beside(part: Any, other: Any) -> Any:
    """These runs and those, of whatever `_some_of` takes."""
    match part:
        case np.ndarray():
            return np.concatenate([part, other], axis=-1)
        case tuple():
            return part + other
        case None | bool() | float():
            return part
    return replace(
        part, **{entry.name: _beside(getattr(part, entry.name), getattr(other, entry.name)) for entry in fields(part)}
    )


def _run_on_device(
    rows: Ints,
    batch: Batch,
    tallies: Tallies | None,
    settings: Settings,
    kind: str,
    dtype: DTypeLike,
    result: EnsembleResult,
) -> None:
    """All runs at once through JAX."""
    from midst.engines import gpu

    there = gpu.Runs(batch, gpu.find_device(kind), dtype, settings.bounds, tallies)
    end = there.run(settings.last, settings.watch_certificate)
    branch = np.zeros(end.x.shape, np.int8)
    seen = _Seen(end.first_inside, end.lower, end.upper, branch, end.x, end.x)
    running = np.zeros(len(rows), np.bool_)
    _write(result, _Runs(rows, end.t, running, batch, batch.S, batch.R, end.x, branch, seen, end.tallies))


def sum_in_each(graphs: Sequence[Graph], nodes: int) -> Callable[[Array], Array]:
    """The neighbour sum of a (nodes, runs) array, run k on graph k, which may be smaller."""
    alike = all(graph is graphs[0] or (graph.is_complete and graphs[0].is_complete) for graph in graphs)
    if alike and all(graph.n == nodes for graph in graphs):
        return sum_over_neighbours(graphs[0])
    source, target, run = join(graphs)
    runs = len(graphs)
    if is_dense(nodes, runs, len(run)):
        dense = np.zeros((nodes, nodes, runs))
        dense[source, target, run] = 1.0
        return lambda x: np.asarray(np.einsum("ijr,jr->ir", dense, x))
    ends = source * runs + run, target * runs + run
    joined = sparse.csr_array((np.ones(len(run)), ends), shape=(nodes * runs, nodes * runs))
    return lambda x: np.asarray(joined @ x.reshape(-1)).reshape(x.shape)


def _ends(x: Array, batch: Batch) -> tuple[Array, Array]:
    """The least and the greatest x of each run."""
    if batch.present is None:
        return x.min(axis=0), x.max(axis=0)
    return np.where(batch.present, x, np.inf).min(axis=0), np.where(batch.present, x, -np.inf).max(axis=0)


def _holds(x: Array, batch: Batch) -> Bools:
    """The test of `certificate.py`, of each run."""
    lowest, highest = _ends(x, batch)
    spread = highest - lowest
    close = spread <= batch.tolerance
    if close.any():
        k = np.flatnonzero(close)
        x, s, counts = x[:, k], batch.terms.s[:, k], batch.counts[:, k]
        if batch.terms.smooth:
            off = np.abs((counts * (x - s)).sum(axis=0) / counts.sum(axis=0))
            close[k] = spread[k] + off <= batch.tolerance[k]
        else:
            below, above = (counts * (s <= x)).sum(axis=0), (counts * (s >= x)).sum(axis=0)
            close[k] = (below >= batch.needed_below[k]) & (above >= batch.needed_above[k])
    return np.asarray(close)


def _write(result: EnsembleResult, runs: _Runs) -> None:
    """Runs that have ended, to their rows of the result, in the units of the data."""
    to, x, batch, tallies = runs.row, runs.x, runs.batch, runs.tallies
    lowest, highest = _ends(x, batch)
    value, proved = lowest / 2 + highest / 2, np.zeros(len(to), np.bool_)
    if tallies is not None:
        proved = tallies.proved(runs.t)
        value = np.where(proved, tallies.value, value)
        result.proposals[to] = np.where(proved, tallies.number, 0)
    value = value * batch.unit
    low, high = batch.answer
    result.value[to] = value
    result.iterations[to] = runs.t + 1
    result.certified[to] = proved | _holds(x, batch)
    result.spread[to] = (highest - lowest) * batch.unit
    result.error[to] = np.maximum(np.maximum(low - value, value - high), 0.0)
    lower, upper = runs.seen.bounds()
    columns = (runs.seen.first_inside, lower * batch.unit, upper * batch.unit, x * batch.unit)
    for rows, column in zip((result.first_inside, result.lower, result.upper, result.x), columns, strict=True):
        here = np.ones(column.shape, np.bool_) if batch.present is None else batch.present
        rows[to, : len(x)] = np.where(here, column, rows[to, : len(x)].T).T


def _blank(runs: int, nodes: int) -> EnsembleResult:
    """Nothing said yet, of any run or node."""
    shape = runs, nodes
    return EnsembleResult(
        value=np.zeros(runs),
        iterations=np.zeros(runs, np.int64),
        certified=np.zeros(runs, np.bool_),
        proposals=np.zeros(runs, np.int64),
        spread=np.zeros(runs),
        error=np.zeros(runs),
        first_inside=np.full(shape, NEVER),
        lower=np.full(shape, -np.inf),
        upper=np.full(shape, np.inf),
        x=np.full(shape, np.nan),
    )
