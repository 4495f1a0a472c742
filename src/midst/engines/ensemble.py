"""Many runs at once: other values, z(0), parameters and graphs in each, and no trace of any.

Rules:
- Run k is `solve(problem_k, rng=child_k)`: the same step (`update.py`), the same z(0), the same stop.
- Arrays are (n, runs): a neighbour sum is then one matrix product, and every other operation goes along the runs.
- As many runs are under way as have arrays that stay in the cache. One that is done is written to the result; when
  enough of them are, the others close ranks and the next ones join, so that a few long runs hold up nobody.
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
from midst.engines.batches import Batch, Settings, one_a_run, source_of, z0_streams
from midst.engines.ensemble_tally import Tallies
from midst.errors import InputError
from midst.graphs import Graph
from midst.problems import Problem
from midst.system import (
    RNG,
    whole_number,
)
from midst.update import Array, Branch, next_sums, next_x

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Stop = Literal["count", "certified"]

NEVER = -1  # the iteration of what did not happen
_NONE_YET = np.int8(2)  # the branch of a node before its first iteration
_NUMBERS = 16_000  # in an array at a time: less than the 128 KiB from which malloc asks the system for every array
_PER_ENTRY = 3  # a dense product of many small graphs has so many entries in the time of one of a sparse product
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
        x: the last one, in the units of the data.
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
        """Which nodes were ever inside, so that their value itself was sent (Theorem 1); for the mean, all."""
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
        problems: one problem with a coordinate a run (its values are (n, runs)), or a sequence of problems with the
            same number of nodes and one number a node.
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
        device: run all of them at once through JAX, on this kind of device (`gpu.py`), without a count; proofs are
            looked for every 64 iterations.
        dtype: of the numbers on the device. float32 is within about 1e-5 of the scale.

    Raises:
        InputError: the input is refused; nothing was run.
        MissingExtra: a device is asked for, and JAX is not installed.
    """
    source = source_of(problems)
    if device is not None and iterations is None and stop != "certified":
        raise InputError("a device runs no count; give iterations=, or stop='certified'")
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
    result = _blank(source.runs, source.nodes)
    if device is not None:
        _run_on_device(source.prepare(slice(0, source.runs), settings, drawn), settings, device, dtype, result)
        return result
    share = -(-source.runs // workers)
    shares = [range(k, min(k + share, source.runs)) for k in range(0, source.runs, share)]

    def begin(which: slice) -> _Runs:
        batch = source.prepare(which, settings, drawn[which])
        tallies = None if rules is None else Tallies.start(batch.graphs, rules[which], batch.terms.s, batch.counts)
        return _Runs.begin(np.arange(which.start, which.stop), batch, tallies)

    at_once = max(1, _NUMBERS // source.nodes)
    if workers == 1:
        _drive(begin, shares[0], at_once, settings, result)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda share: _drive(begin, share, at_once, settings, result), shares))
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
        return cls(row, np.zeros(len(row), np.int64), running, batch, batch.S, batch.R, x, branch, seen, tallies)

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
    begin: Callable[[slice], _Runs], rows: range, at_once: int, settings: Settings, result: EnsembleResult
) -> None:
    """Runs one after the other, so many at once, to their rows of the result."""
    waiting = min(rows.start + at_once, rows.stop)
    runs = begin(slice(rows.start, waiting))
    neighbour_sum = sum_in_each(runs.batch.graphs)
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
            room = slice(waiting, min(waiting + at_once - len(runs.row), rows.stop))
            if room.start < room.stop:
                runs, waiting = _beside(runs, begin(room)), room.stop
            if not runs.row.size:
                return
            neighbour_sum = sum_in_each(runs.batch.graphs)


def _some_of(part: Any, which: Bools) -> Any:
    """Some of the runs: of an array the last axis, of graphs one a run, of a record those of its parts."""
    match part:
        case np.ndarray():
            return part.compress(which, axis=-1)
        case tuple():
            return tuple(graph for graph, here in zip(part, which, strict=True) if here)
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


def _run_on_device(batch: Batch, settings: Settings, kind: str, dtype: DTypeLike, result: EnsembleResult) -> None:
    """All runs at once through JAX; those that are proved are written down, and wait for the others."""
    from midst.engines import gpu

    chosen = gpu.Runs(batch.graphs, batch.terms, batch.c, batch.theta, gpu.find_device(kind), dtype, settings.bounds)
    state = chosen.begin(batch.S, batch.R)
    left = np.ones(len(batch.c), np.bool_)
    t, final = 0, settings.last - 1
    test = batch.counts, batch.needed_below, batch.needed_above, batch.tolerance
    while left.any():
        looked = settings.watch_certificate and t < final
        done = left & (chosen.certified(state, *test) if looked else t == final)
        if done.any():
            x, first, lower, upper = map(chosen.fetch, state[2:])
            seen = _Seen(first.astype(np.int64), lower, upper, np.zeros(x.shape, np.int8), x, x)
            row, branch = np.arange(len(left)), np.zeros(x.shape, np.int8)
            at = np.full(len(left), t)
            _write(result, _some_of(_Runs(row, at, left, batch, batch.S, batch.R, x, branch, seen, None), done))
            left &= ~done
        steps = min(gpu.LOOK, final - t) if settings.watch_certificate else final - t
        if left.any():
            state, t = chosen.advance(state, t, steps), t + steps


def sum_in_each(graphs: Sequence[Graph]) -> Callable[[Array], Array]:
    """The neighbour sum of an (n, runs) array, run k on graph k."""
    if all(graph is graphs[0] for graph in graphs):
        return sum_over_neighbours(graphs[0])
    runs, n = len(graphs), graphs[0].n
    run = np.repeat(np.arange(runs), [graph.source.size for graph in graphs])
    source, target = (np.concatenate([getattr(graph, end) for graph in graphs]) for end in ("source", "target"))
    if n * n * runs <= _PER_ENTRY * len(run):
        dense = np.zeros((n, n, runs))
        dense[source, target, run] = 1.0
        return lambda x: np.asarray(np.einsum("ijr,jr->ir", dense, x))
    ends = source * runs + run, target * runs + run
    joined = sparse.csr_array((np.ones(len(run)), ends), shape=(n * runs, n * runs))
    return lambda x: np.asarray(joined @ x.reshape(-1)).reshape(x.shape)


def _holds(x: Array, batch: Batch) -> Bools:
    """The test of `certificate.py`, of each run."""
    spread = x.max(axis=0) - x.min(axis=0)
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
    lowest, highest = x.min(axis=0), x.max(axis=0)
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
    result.first_inside[to] = runs.seen.first_inside.T
    lower, upper = runs.seen.bounds()
    for rows, columns in ((result.lower, lower), (result.upper, upper), (result.x, x)):
        rows[to] = (columns * batch.unit).T


def _blank(runs: int, nodes: int) -> EnsembleResult:
    each, all_nodes = np.zeros(runs), np.zeros((runs, nodes))
    return EnsembleResult(
        value=each,
        iterations=np.zeros(runs, np.int64),
        certified=np.zeros(runs, np.bool_),
        proposals=np.zeros(runs, np.int64),
        spread=each.copy(),
        error=each.copy(),
        first_inside=np.zeros((runs, nodes), np.int64),
        lower=all_nodes,
        upper=all_nodes.copy(),
        x=all_nodes.copy(),
    )
