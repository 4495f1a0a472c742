"""Many runs at once: other values, z(0), parameters and graphs in each, and no trace of any.

Rules:
- Run k is `solve(problem_k, method, rng=rng, run=k)`: the same step (`step.py`), the same z(0), the same stop, and the
  same search (`ensemble_search.py`), which has no iteration before it or follows one.
- Arrays are (n, runs): a neighbour sum is then one matrix product, and every other operation goes along the runs.
- As many runs are under way as have arrays that stay in the cache. One that is done is written to the result; when
  enough of them are, the others are copied together.
- Graphs may differ in size (`batches.py`); what is said of a node that a run does not have is nothing.
- What an audit wants to know of a run is gathered on the way: when each node first sent its value, and the bounds that
  an observer who knows z(0) has on it (the greatest x sent from below it, the least from above).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from scipy import sparse

from midst.engines.batches import (
    Apart,
    Batch,
    BatchSettings,
    Group,
    Stack,
    Together,
    check_rngs,
    edge_normals,
    join,
    make_batch,
    some_of,
    source_of,
)
from midst.engines.ensemble_search import SearchStart, check_search, search_some
from midst.errors import InputError, whole_number
from midst.frames import make_frame
from midst.graphs import Graph
from midst.graphs.neighbour_sums import sum_over_neighbours
from midst.methods import (
    Certified,
    Consensus,
    Exact,
    Method,
    MethodName,
    Paper,
    Search,
    Stop,
    choose_method,
    choose_stop,
    require_participants,
)
from midst.normals import EdgeNormals
from midst.problems import Problem
from midst.protocol.certificate import known_at, lie_within
from midst.protocol.step import next_sums, next_x
from midst.system import RNG, Sums
from midst.types import Array, Bools, Branch, Ints
from midst.workers import cores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from midst.plots.style import Width

EnsemblePanel = Literal["rounds", "exposed"]

NEVER = -1  # the iteration of what did not happen
_NONE_YET = np.int8(2)  # the branch of a node before its first iteration
_NUMBERS = 80_000  # in an array at a time: half a megabyte, so that calls cost little, and threads wait little
_MOST_DRIVING = 2  # threads: more of them only wait for each other, between operations as short as these
_SEARCHES = 500_000  # numbers at least for every thread that searches
_SHARE_RUNNING = 0.8  # with less than this, those that have ended are left out


@dataclass(frozen=True, eq=False)
class EnsembleResult:
    """What came out of every run; the first axis is the run.

    A run by a search alone has no iterations: nobody is exposed, there is no x, and the spread is 0.

    Attributes:
        value: the answer: what was found by a search, or the middle of the last x.
        iterations: how many were run.
        certified: whether the value is proved, by the totals of a search or by the certificate of the last x.
        probes: questions of the search; 0 where the run did not end by one.
        rounds: of messages: the iterations and, where a search ended the run, z(0), and a diameter for each probe, for
            the keys and for the signatures.
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
    probes: Ints
    rounds: Ints
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

    @overload
    def plot(self, ax: None = None, *, of: EnsemblePanel | None = None, width: Width | None = None) -> Figure: ...
    @overload
    def plot(self, ax: Axes, *, of: EnsemblePanel | None = None) -> Axes: ...
    def plot(
        self, ax: Axes | None = None, *, of: EnsemblePanel | None = None, width: Width | None = None
    ) -> Figure | Axes:
        """Draw after how many rounds the runs had their answer, and how many nodes they exposed.

        Args:
            ax: axes of matplotlib to draw one of the two into, the rounds if not said otherwise; returned, then.
            of: "rounds" or "exposed": that alone.
            width: of the figure: "column" or "page" of a journal; for a screen if not given.

        Raises:
            InputError: what is asked for is not there.
            MissingExtra: matplotlib is not installed.
        """
        from midst.plots.ensembles import draw_ensemble

        return draw_ensemble(self, ax=ax, of=of, width=width)

    def to_pandas(self) -> DataFrame:
        """A row a run: `run`, `value`, `rounds`, `iterations`, `probes`, `certified`, `exposed`, `spread`, `error`.

        `exposed` is how many nodes were.

        Raises:
            MissingExtra: pandas is not installed.
        """
        names = ("value", "rounds", "iterations", "probes", "certified", "spread", "error")
        columns = {name: getattr(self, name) for name in names} | {"exposed": self.exposed.sum(axis=1)}
        return make_frame({"run": np.arange(self.runs)} | columns)


def solve_ensemble(
    problems: Problem | Sequence[Problem],
    method: Method | MethodName | None = None,
    *,
    runs: int | None = None,
    rng: RNG | Sequence[RNG] = None,
    first: int = 0,
    bounds: bool = True,
    workers: int | None = None,
    device: Literal["cpu", "gpu"] | None = None,
) -> EnsembleResult:
    """Run many problems at once, each until its answer is found.

    A run that ends without a proof says so in the result; nothing is raised.

    Args:
        problems: one problem with a coordinate a run (its values are (n, runs)), or a sequence of problems with one
            number a node, on graphs of any size.
        method: `midst.Search(…)`, or `midst.Consensus(…)` or `midst.Paper(…)`, whose c, mu and sigma may be one a run;
            or the name of one. If not given, the search, or consensus where a search finds no answer. The stop of
            consensus, if not given: exact where every run's answer is one of its values, else certified to 1e-6.
        runs: how many runs of one problem with one number a node, each with a z(0) of its own.
        rng: a seed or a generator; or a sequence of one a run. Run k has the z(0) of `solve(…, rng=rng, run=k)`, or of
            `solve(…, rng=rng[k])`. A search has no use for it.
        first: the number of the first run, where these are a piece of a larger ensemble with one rng.
        bounds: keep `lower` and `upper`, a tenth of the time; without them these say nothing.
        workers: threads at most, as many as there are cores if not given; the result does not depend on it.
        device: run all of them at once through JAX, on this kind of device (`gpu.py`); certificates are looked for
            every 64 iterations. A search is not for it, but for one that ends an iteration: that is the CPU's. z(0) has
            the same numbers, but for a last bit now and then.

    Raises:
        InputError: the input is refused; nothing was run.
        MissingExtra: a device is asked for, and JAX is not installed.
    """
    if not isinstance(bounds, bool):
        raise InputError("bounds is True or False here, to keep `lower` and `upper`; give public bounds to the Problem")
    source = source_of(problems, runs)
    method = choose_method(method, source.different)
    if isinstance(method, Paper):
        source, method = source.map(method.of), method.iteration
    workers = whole_number("workers", cores() if workers is None else workers)
    check_rngs(rng, source.runs)  # by every method, although a search draws nothing
    if isinstance(method, Search):
        if device is not None:
            raise InputError("device is of method consensus; choose that method, or leave it out")
        return _search(source, method, workers)
    settings, normals = _settings(source, method, bounds), edge_normals(rng, source.runs, first)
    groups = source.groups()
    result = _blank(source.runs, groups[0].nodes, lambda number, shape: np.full(shape, number))
    starts = SearchStart(*np.full((3, source.runs), np.nan))  # of runs whose nodes know that the x are close
    if device is not None:
        _run_on_device(source, groups, settings, normals, result, starts, device)
    else:
        driving = min(workers, _MOST_DRIVING)
        _in_threads(lambda share: _drive(source, share, settings, normals, result, starts), groups, driving)
    _in_threads(lambda share: _end(source, share.runs, starts, result), groups, workers, _SEARCHES)
    return result


def _end(source: Together | Apart, which: Ints, starts: SearchStart, result: EnsembleResult) -> None:
    """The searches that end some of the runs; and how far off the others are."""
    unknown = np.isnan(starts.scale[which])
    close, other = which[~unknown], which[unknown]
    if close.size:
        _write_search(source, close, Search(), SearchStart(*(each[close] for each in starts)), result)
    result.error[other] = source.distances(other, result.value[other])


def _settings(source: Together | Apart, method: Consensus, bounds: bool) -> BatchSettings:
    """What was asked for, checked."""
    stops = [choose_stop(problem, method.stop) for problem in source.different]
    stop = stops[0] if all(isinstance(each, type(stops[0])) for each in stops) else Certified()
    for problem in source.different:
        choose_stop(problem, stop)
    if isinstance(stop, Exact):
        check_search(source, Search())
    if method.z0 is not None:
        raise InputError("z0 is one run's; give it to midst.solve")
    return BatchSettings.of(method, stop, source.runs, bounds)


def _search(source: Together | Apart, method: Search, workers: int) -> EnsembleResult:
    """Every run by a search alone."""
    for problem in source.different:
        require_participants(problem.graph.n)
    check_search(source, method)
    groups = source.groups()
    result = _blank(source.runs, groups[0].nodes, np.broadcast_to)
    _in_threads(lambda share: _write_search(source, share.runs, method, None, result), groups, workers, _SEARCHES)
    return result


def _in_threads(work: Callable[[Group], None], groups: Sequence[Group], workers: int, least: int = 1) -> None:
    """Each group in as many shares as there are workers, of no fewer numbers than that; threads wait for each other."""
    parts = []
    for group in groups:
        shares = min(workers, max(1, len(group.runs) * group.nodes // least), len(group.runs))
        parts += [group._replace(runs=part) for part in np.array_split(group.runs, shares)]
    with ThreadPoolExecutor(workers) as pool:  # which starts no thread before it is used
        for_each = map if workers == 1 or len(parts) == 1 else pool.map
        list(for_each(work, parts))


def _write_search(
    source: Together | Apart, which: Ints, method: Search, start: SearchStart | None, result: EnsembleResult
) -> None:
    """What a search finds, to its rows of the result."""
    found = search_some(source, which, method, start)
    result.value[which], result.probes[which], result.error[which] = found.value, found.probes, found.error
    result.certified[which] = True
    result.rounds[which] += (start is not None) + (found.probes + 2) * source.diameters(which)  # z(0) takes one


@dataclass(eq=False, repr=False)
class _Nearing:
    """Until the nodes of each run know that all x are close (`certificate.py`), in working units.

    Attributes:
        due: the next iteration that is sampled.
        ends: the last iteration, with whose messages they know; `NEVER` while none was close.
        low: the smallest x of the one that was.
        high: the largest.
    """

    due: Ints
    ends: Ints
    low: Array
    high: Array

    @classmethod
    def begin(cls, batch: Batch) -> _Nearing:
        runs = len(batch.diameter)
        return cls(batch.diameter.copy(), np.full(runs, NEVER), np.zeros(runs), np.zeros(runs))

    def see(self, t: Ints, x: Array, batch: Batch) -> Bools:
        """Iteration t of each run: in which of them everybody knows."""
        k = np.flatnonzero(t == self.due)
        if k.size:
            low, high = _ends(x[:, k], None if batch.present is None else batch.present[:, k])
            near = lie_within(low, high, batch.close[k]) & (self.ends[k] == NEVER)
            self.due[k] += batch.diameter[k] + 1
            k, low, high = k[near], low[near], high[near]
            self.low[k], self.high[k], self.ends[k] = low, high, known_at(t[k], batch.diameter[k])
        return np.asarray(self.ends == t)


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
class _RunningBatch:
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
    nearing: _Nearing | None

    @classmethod
    def begin(cls, row: Ints, batch: Batch, stop: Stop) -> _RunningBatch:
        assert isinstance(batch.start, Sums), "drawn"
        S, R = batch.start.S, batch.start.R
        x, branch = next_x(S, batch.terms)
        running, seen = np.ones(len(row), np.bool_), _Seen.nothing(x.shape)
        t = np.zeros(len(row), np.int64)
        nearing = _Nearing.begin(batch) if isinstance(stop, Exact) else None
        return cls(row.copy(), t, running, replace(batch, start=None), S, R, x, branch, seen, nearing)

    def step(self, neighbour_sum: Callable[[Array], Array]) -> None:
        batch = self.batch
        self.S, self.R = next_sums(self.S, self.R, self.x, neighbour_sum(self.x), batch.terms.cd, batch.c, batch.theta)
        self.x, self.branch = next_x(self.S, batch.terms)
        self.t += 1

    def done(self, settings: BatchSettings) -> Bools:
        """Which of the runs end with this iteration."""
        done = self.t + 1 == settings.last
        if self.nearing is not None:
            done |= self.nearing.see(self.t, self.x, self.batch)
        elif isinstance(settings.stop, Certified):
            done |= _holds(self.x, self.batch)
        return np.asarray(done & self.running)


def _drive(
    source: Together | Apart,
    share: Group,
    settings: BatchSettings,
    normals: EdgeNormals,
    result: EnsembleResult,
    starts: SearchStart,
) -> None:
    """Runs, so many at once, to their rows of the result."""
    for which in np.array_split(share.runs, -(-len(share.runs) * share.nodes // _NUMBERS)):
        batch = make_batch(source.some(which, share.nodes), settings, which, normals, draw=True)
        runs: _RunningBatch = _RunningBatch.begin(which, batch, settings.stop)
        while runs.running.any():
            runs = some_of(runs, np.flatnonzero(runs.running))
            _step_together(runs, settings, result, starts)


def _step_together(runs: _RunningBatch, settings: BatchSettings, result: EnsembleResult, starts: SearchStart) -> None:
    """Take runs on until many have ended; these are written to the result, and computed on until then."""
    neighbour_sum, left = sum_in_each(runs.batch.graphs, len(runs.x)), len(runs.row)
    while left >= _SHARE_RUNNING * len(runs.row):
        runs.seen.see(runs.t, runs.x, runs.branch, settings.bounds)
        done = runs.done(settings)
        if done.any():
            _write(runs, np.flatnonzero(done), result, starts)
            runs.running &= ~done
            left = runs.running.sum()
        runs.step(neighbour_sum)


def _run_on_device(
    source: Together | Apart,
    groups: Sequence[Group],
    settings: BatchSettings,
    normals: EdgeNormals,
    result: EnsembleResult,
    starts: SearchStart,
    kind: str,
) -> None:
    """All runs at once through JAX, to their rows of the result."""
    from midst.engines import gpu

    device = gpu.find_device(kind)
    for group in groups:
        part = source.some(group.runs, group.nodes)
        draw = isinstance(part, Stack) or not gpu.can_draw(part.graph)
        batch = make_batch(part, settings, group.runs, normals, draw)
        end, stopped = gpu.run(batch, device, settings.last, settings.stop)
        S, R, *others = end
        x, first_inside, lower, upper, last, low, high = map(np.asarray, others)
        seen = _Seen(first_inside, lower, upper, np.zeros(x.shape, np.int8), x, x)  # on branch 0: bounds are complete
        nearing = None
        if isinstance(settings.stop, Exact):
            nearing = _Nearing(last, np.where(stopped, last, NEVER), low, high)
        batch = replace(batch, start=None)
        runs = _RunningBatch(group.runs, last, stopped, batch, S, R, x, seen.side, seen, nearing)
        _write(runs, slice(None), result, starts)


def sum_in_each(graphs: Graph | Sequence[Graph], nodes: int) -> Callable[[Array], Array]:
    """The neighbour sum of a (nodes, runs) array, run k on graph k, which may be smaller, or all on one."""
    if isinstance(graphs, Graph):
        return sum_over_neighbours(graphs)
    alike = all(graph is graphs[0] or (graph.is_complete and graphs[0].is_complete) for graph in graphs)
    if alike and all(graph.n == nodes for graph in graphs):
        return sum_over_neighbours(graphs[0])
    runs, (dense, ends) = len(graphs), join(graphs, nodes)
    if dense is not None:
        return lambda x: np.asarray(np.einsum("ijr,jr->ir", dense, x))
    joined = sparse.csr_array((np.ones(len(ends[0])), ends), shape=(nodes * runs, nodes * runs))
    return lambda x: np.asarray(joined @ x.reshape(-1)).reshape(x.shape)


def _ends(x: Array, present: Bools | None) -> tuple[Array, Array]:
    """The least and the greatest x of each run."""
    if present is None:
        return x.min(axis=0), x.max(axis=0)
    return np.where(present, x, np.inf).min(axis=0), np.where(present, x, -np.inf).max(axis=0)


def _holds(x: Array, batch: Batch) -> Bools:
    """The test of `certificate.py`, of each run."""
    lowest, highest = _ends(x, batch.present)
    spread = highest - lowest
    close = spread <= batch.tolerance
    if close.any():
        k = np.flatnonzero(close)
        x, s, whole_weights = x[:, k], batch.terms.s[:, k], batch.whole_weights
        whole_weights = whole_weights if whole_weights.shape[1] == 1 else whole_weights[:, k]
        if batch.terms.smooth:
            off = np.abs((whole_weights * (x - s)).sum(axis=0) / whole_weights.sum(axis=0))
            close[k] = spread[k] + off <= batch.tolerance[k]
        else:
            below, above = (whole_weights * (s <= x)).sum(axis=0), (whole_weights * (s >= x)).sum(axis=0)
            close[k] = (below >= batch.needed_below[k]) & (above >= batch.needed_above[k])
    return np.asarray(close)


def _write(runs: _RunningBatch, k: Ints | slice, result: EnsembleResult, starts: SearchStart) -> None:
    """Runs k, which have ended, to their rows of the result, in the units of the data."""
    batch, nearing = runs.batch, runs.nearing
    to, t, unit, x, seen = runs.row[k], runs.t[k], batch.unit[k], runs.x[:, k], some_of(runs.seen, k)
    present = None if batch.present is None else batch.present[:, k]
    lowest, highest = _ends(x, present)
    if nearing is None:
        result.certified[to] = _holds(x, some_of(batch, k))
    else:  # what a search ends, its totals prove
        starts.scale[to] = np.where(nearing.ends[k] == t, batch.scale[k], np.nan)
        starts.low[to], starts.high[to] = nearing.low[k] * unit, nearing.high[k] * unit
    result.value[to], result.spread[to] = (lowest / 2 + highest / 2) * unit, (highest - lowest) * unit
    result.iterations[to] = result.rounds[to] = t + 1
    lower, upper = seen.bounds()
    columns = (seen.first_inside, lower * unit, upper * unit, x * unit)
    for rows, column in zip((result.first_inside, result.lower, result.upper, result.x), columns, strict=True):
        rows[to, : len(x)] = column.T if present is None else np.where(present, column, rows[to, : len(x)].T).T


def _blank(runs: int, nodes: int, fill: Callable[[Any, tuple[int, int]], Any]) -> EnsembleResult:
    """Nothing said yet, of any run or node; `fill` makes an array of the same number for all."""
    shape = runs, nodes
    return EnsembleResult(
        value=np.zeros(runs),
        iterations=np.zeros(runs, np.int64),
        certified=np.zeros(runs, np.bool_),
        probes=np.zeros(runs, np.int64),
        rounds=np.zeros(runs, np.int64),
        spread=np.zeros(runs),
        error=np.zeros(runs),
        first_inside=fill(NEVER, shape),
        lower=fill(-np.inf, shape),
        upper=fill(np.inf, shape),
        x=fill(np.nan, shape),
    )
