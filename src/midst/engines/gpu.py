"""Runs on a device, through JAX: the same step (`update.py`), and nothing copied back before the end.

| runs                               | how                                                                             |
|------------------------------------|---------------------------------------------------------------------------------|
| quantiles, one small graph for all | a Pallas kernel, a run a thread: everything in registers over all iterations    |
| one run of a large graph           | a Pallas kernel, a node a thread: neighbour lists (width, n), one pass a step   |
| any other, and runs with a count   | array operations on (n, runs)                                                   |

Rules:
- Arrays are arguments of compiled functions, never closed over; what is static shapes the program.
- Exposure, bounds, certificates and counts are computed there; nothing is copied back but, at a look, whether any run
  is left. A certificate is looked for every `LOOK` iterations, so a run may go on for so many after the one in which
  `solve` finds it; a count ends a run in the very same iteration.
- At θ = ½ the sums S and R matter by their half difference P only, since (P, −P) has the same future: one array less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from midst.engines.batches import Batch, is_dense, join
from midst.engines.ensemble_tally import Tallies
from midst.errors import InputError, MissingExtra
from midst.graphs import Graph
from midst.update import Terms, next_sums, next_x

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton
except ImportError:
    raise MissingExtra("JAX", "gpu") from None

from midst.engines.gpu_tally import Agreed, Tally, run_to_proof

NEVER = -1
LOOK = 64
_UNROLLED = 24  # nodes whose state fits the registers of a thread
_LARGE = 20_000  # nodes from which a single run is worth a kernel
_WIDEST = 64  # neighbours in a list at most: each is a line of the program
_RUNS = 128  # a program
_NODES = 512  # a program

Lists = tuple[tuple[int, ...], ...]


class State(NamedTuple):
    """Where the runs stand, in working units.

    Attributes:
        S: see `update.next_sums`.
        R: likewise.
        x: of the last iteration.
        first_inside: the first iteration in which each node sent its value, or `NEVER`.
        lower: the greatest x sent from below the value.
        upper: the least x sent from above.
    """

    S: Any
    R: Any
    x: Any
    first_inside: Any
    lower: Any
    upper: Any


def find_device(kind: str) -> Any:
    """The first device of a kind, "gpu" or "cpu".

    Raises:
        InputError: there is none.
    """
    try:
        return jax.devices(kind)[0]
    except RuntimeError:
        raise InputError(f"JAX finds no {kind} on this machine; leave device= out to run on the CPU") from None


def begin(S: Any, terms: Terms, R: Any) -> tuple[State, Any]:
    """Iteration 0, and the branch there."""
    x, branch = next_x(S, terms)
    blank = jnp.full(x.shape, NEVER, jnp.int32), jnp.full_like(x, -jnp.inf), jnp.full_like(x, jnp.inf)
    return State(S, R, x, *_watch(0, x, branch, *blank)), branch


def _watch(t: Any, x: Any, branch: Any, first: Any, lower: Any, upper: Any) -> tuple[Any, Any, Any]:
    """What an audit wants to know of iteration t."""
    return (
        jnp.where((branch == 0) & (first == NEVER), jnp.int32(t), first),
        jnp.where((branch < 0) & (x > lower), x, lower),
        jnp.where((branch > 0) & (x < upper), x, upper),
    )


def _hold(S: Any, R: Any, half: bool) -> tuple[Any, ...]:
    return (0.5 * (S - R),) if half else (S, R)


def _sums(held: tuple[Any, ...]) -> tuple[Any, Any]:
    return (held[0], -held[0]) if len(held) == 1 else (held[0], held[1])


def _like(array: Any) -> Any:
    described: Any = jax.ShapeDtypeStruct
    return described(array.shape, array.dtype)


# Any runs


class Neighbours(NamedTuple):
    """The graph on a device: one of these, or none for a complete graph.

    Attributes:
        lists: the neighbours of each node, (width, n), padded with n.
        ends: source and target of every directed edge, sorted by source: where degrees differ too much for lists.
        dense: a matrix a run, (n, n, runs), where runs differ in their graph.
        joined: source and target of every run's edges, as places in an array of all nodes and runs: where they differ,
            and most of such a matrix would be 0.
    """

    lists: Any = None
    ends: Any = None
    dense: Any = None
    joined: Any = None

    def sum(self, x: Any) -> Any:
        """The neighbour sum of x, (n, runs)."""
        if self.dense is not None:
            return jnp.einsum("ijr,jr->ir", self.dense, x, precision=lax.Precision.HIGHEST)
        if self.joined is not None:
            source, target = self.joined
            sums = jax.ops.segment_sum(x.reshape(-1)[target], source, x.size, indices_are_sorted=True)
            return sums.reshape(x.shape)
        if self.ends is not None:
            source, target = self.ends
            return jax.ops.segment_sum(x[target], source, len(x), indices_are_sorted=True)
        if self.lists is not None:
            padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
            return sum(padded[neighbour] for neighbour in self.lists)
        return x.sum(axis=0) - x


def lists_of(graph: Graph) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The neighbours of each node, one a row of (width, n): so a warp of nodes reads its k-th neighbours at once."""
    lists = np.full((int(graph.degree.max()), graph.n), graph.n, np.int32)
    place = np.arange(graph.source.size) - graph.offsets[graph.source]
    lists[place, graph.source] = graph.target
    return lists


@partial(jax.jit, static_argnames=("theta", "steps", "smooth"))
def advance(
    state: State,
    t: Any,
    terms: tuple[Any, ...],
    c: Any,
    neighbours: Neighbours,
    *,
    theta: float,
    steps: int,
    smooth: bool,
) -> State:
    """From iteration t to t + steps, by operations on whole arrays."""

    def step(k: Any, state: State) -> State:
        return _step(state, t + k, (terms, c, neighbours), (theta, smooth))[0]

    after: State = lax.fori_loop(0, steps, step, state)
    return after


def _step(state: State, t: Any, arrays: tuple[Any, ...], options: tuple[float, bool]) -> tuple[State, Any]:
    """From iteration t to t + 1, and the branch there."""
    (terms, c, neighbours), (theta, smooth) = arrays, options
    local = Terms(*(*terms, smooth))
    S, R = next_sums(state.S, state.R, state.x, neighbours.sum(state.x), local.cd, c, theta)
    x, branch = next_x(S, local)
    return State(S, R, x, *_watch(t + 1, x, branch, state.first_inside, state.lower, state.upper)), branch


# Small graphs: a run a thread


class Small(NamedTuple):
    """A graph and slopes that all runs share, as constants of a program.

    Attributes:
        lists: the neighbours of each node.
        above: of each node; see `update.Terms`.
        below: likewise.
    """

    lists: Lists
    above: tuple[float, ...]
    below: tuple[float, ...]


@partial(jax.jit, static_argnames=("small", "theta", "steps", "half", "bounds", "interpret"))
def advance_small(
    state: State,
    t: Any,
    s: Any,
    c: Any,
    *,
    small: Small,
    theta: float,
    steps: int,
    half: bool,
    bounds: bool = True,
    interpret: bool = False,
) -> State:
    """From iteration t to t + steps for quantiles over one small graph, with all state in registers.

    In units in which c = 1 (values times c) and with S and R divided by the degree, the step has no division left and
    needs no number but these of a run: the same lines of `update.py`, with weight, cd = 1 and c = 1 / degree.

    Args:
        state: (n, runs); the number of runs a multiple of 128.
        t: iteration, an int32.
        s: the values, (n, runs).
        c: of each run.
        small: the graph and the slopes.
        theta: averaging constant.
        steps: how many.
        half: keep the half difference of S and R only; for theta = ½.
        bounds: keep lower and upper up to date.
        interpret: run it without a GPU, slowly.
    """
    runs = s.shape[1]
    degree = jnp.array([len(near) for near in small.lists], s.dtype)[:, None]
    held = _hold(state.S / degree, state.R / degree, half)
    watched = (state.first_inside, state.lower * c, state.upper * c)[: 3 if bounds else 1]
    arrays = (*held, state.x * c, *watched)
    call = pl.pallas_call(
        partial(_small_kernel, small=small, theta=theta, steps=steps, held=len(held)),
        out_shape=[_like(array) for array in arrays],
        grid=(runs // _RUNS,),
        input_output_aliases={2 + k: k for k in range(len(arrays))},
        compiler_params=triton.CompilerParams(num_warps=_RUNS // 32),
        interpret=interpret,
    )
    out = call(jnp.reshape(t, 1), s * c, *arrays)
    S, R = _sums(tuple(sums * degree for sums in out[: len(held)]))
    x, first, *between = out[len(held) :]
    lower, upper = (bound / c for bound in between) if bounds else (state.lower, state.upper)
    return State(S, R, x / c, first, lower, upper)


def _small_kernel(t_ref: Any, s_ref: Any, *refs: Any, small: Small, theta: float, steps: int, held: int) -> None:
    nodes = range(len(small.lists))
    mine = pl.ds(pl.program_id(0) * _RUNS, _RUNS)
    given, out = refs[: len(refs) // 2], refs[len(refs) // 2 :]
    degree = [len(near) for near in small.lists]
    terms = [
        Terms(s_ref[i, mine], small.above[i] / degree[i], small.below[i] / degree[i], 1.0, 1.0)  # type: ignore[arg-type]
        for i in nodes
    ]
    everybody = all(d == len(nodes) - 1 for d in degree)
    t = t_ref[0]

    def step(k: Any, state: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
        *sums, x, first = state[: held + 2]
        between = state[held + 2 :]
        total = sum(x[1:], start=x[0]) if everybody else None
        after = []
        for i in nodes:
            a = total - x[i] if everybody else sum((x[j] for j in small.lists[i][1:]), start=x[small.lists[i][0]])
            S, R = next_sums(*_sums(tuple(part[i] for part in sums)), x[i], a, 1.0, 1.0 / degree[i], theta)  # type: ignore[arg-type]
            new, branch = next_x(S, terms[i])
            kept = between[0][i] if between else new, between[1][i] if between else new
            seen = _watch(t + k + 1, new, branch, first[i], *kept)
            after.append((*_hold(S, R, held == 1), new, *(seen if between else seen[:1])))
        return tuple(zip(*after, strict=True))

    state = lax.fori_loop(0, steps, step, tuple(tuple(ref[i, mine] for i in nodes) for ref in given))
    for ref, rows in zip(out, state, strict=True):
        for i in nodes:
            ref[i, mine] = rows[i]


# A large graph: a node a thread


@partial(jax.jit, static_argnames=("theta", "steps", "half", "bounds", "interpret"), donate_argnums=0)
def advance_large(
    state: State,
    t: Any,
    terms: tuple[Any, ...],
    c: Any,
    lists: Any,
    *,
    theta: float,
    steps: int,
    half: bool,
    bounds: bool = True,
    interpret: bool = False,
) -> State:
    """From iteration t to t + steps of one run: neighbour sum, step and exposure in one pass over memory each.

    Args:
        state: (n,) each; n a multiple of 512. Given up to the result.
        t: iteration, an int32.
        terms: s, above, below, weight and cd: (n,), or (1,) where it is the same for all nodes.
        c: (1,).
        lists: neighbours (width, n); a missing one is n − 1, whose x has to be 0.
        theta: averaging constant.
        steps: how many.
        half: keep the half difference of S and R only; for theta = ½.
        bounds: keep lower and upper up to date.
        interpret: run it without a GPU, slowly.
    """
    n = state.x.shape[0]
    held = _hold(state.S, state.R, half)
    watched = (state.first_inside, state.lower, state.upper)[: 3 if bounds else 1]
    carried = (*held, *watched)
    inputs = 4 + len(terms)
    call = pl.pallas_call(
        partial(_large_kernel, theta=theta, held=len(held), carried=len(carried)),
        out_shape=[_like(array) for array in (*carried, state.x)],
        grid=(n // _NODES,),
        input_output_aliases={inputs + k: k for k in range(len(carried))},
        compiler_params=triton.CompilerParams(num_warps=_NODES // 64),
        interpret=interpret,
    )

    def step(k: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:
        *kept, x = now
        return tuple(call(jnp.reshape(t + k + 1, 1), c, lists, x, *terms, *kept))

    def two(k: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:  # so that x changes buffers and is not copied
        return step(2 * k + 1, step(2 * k, now))

    now = lax.fori_loop(0, steps // 2, two, (*carried, state.x))
    now = step(steps - 1, now) if steps % 2 else now
    *kept, x = now
    first, *between = kept[len(held) :]
    return State(*_sums(tuple(kept[: len(held)])), x, first, *(between or (state.lower, state.upper)))


def _large_kernel(
    t_ref: Any, c_ref: Any, lists_ref: Any, x_ref: Any, *refs: Any, theta: float, held: int, carried: int
) -> None:
    mine = pl.ds(pl.program_id(0) * _NODES, _NODES)
    given, now, out = refs[:5], refs[5 : 5 + carried], refs[5 + carried :]
    terms = Terms(*(ref[...] if ref.shape == (1,) else ref[mine] for ref in given))
    x: Any = x_ref[mine]
    a: Any = triton.load(x_ref.at[lists_ref[0, mine]])
    for k in range(1, lists_ref.shape[0]):
        a += triton.load(x_ref.at[lists_ref[k, mine]])
    S, R = next_sums(*_sums(tuple(ref[mine] for ref in now[:held])), x, a, terms.cd, c_ref[...], theta)
    new, branch = next_x(S, terms)
    first, *between = (ref[mine] for ref in now[held:])
    seen = _watch(t_ref[0], new, branch, first, *(between or (new, new)))
    after = (*_hold(S, R, held == 1), *(seen if between else seen[:1]), new)
    for ref, value in zip(out, after, strict=True):
        ref[mine] = value


# From an ensemble and back


class Test(NamedTuple):
    """What the test of `certificate.py` compares with, (n, runs) or one a run; `present` as in `Batch`."""

    s: Any
    counts: Any
    present: Any
    below: Any
    above: Any
    tolerance: Any


@partial(jax.jit, static_argnames="smooth")
def holds(x: Any, test: Test, *, smooth: bool) -> Any:
    """The test of `certificate.py`, of each run."""
    low, high = (x, x) if test.present is None else (jnp.where(test.present, x, end) for end in (jnp.inf, -jnp.inf))
    spread, counts, s = high.max(axis=0) - low.min(axis=0), test.counts, test.s
    if smooth:
        return spread + jnp.abs((counts * (x - s)).sum(axis=0) / counts.sum(axis=0)) <= test.tolerance
    enough = ((counts * (s <= x)).sum(axis=0) >= test.below) & ((counts * (s >= x)).sum(axis=0) >= test.above)
    return (spread <= test.tolerance) & enough


@jax.jit
def _keep(left: Any, after: State, before: State) -> State:
    """What comes after for the runs that are left; the others stay where they ended."""
    kept: State = jax.tree.map(lambda new, old: jnp.where(left, new, old), after, before)
    return kept


class Outcome(NamedTuple):
    """Where each run ended, on the host: (n, runs), or one a run.

    Attributes:
        t: its last iteration.
        x: there.
        first_inside: see `State`.
        lower: likewise.
        upper: likewise.
        tallies: where its count stood; None where there was none.
    """

    t: Any
    x: Any
    first_inside: Any
    lower: Any
    upper: Any
    tallies: Tallies | None


class Runs:
    """The runs of a batch, on a device."""

    def __init__(
        self,
        batch: Batch,
        device: Any,
        dtype: DTypeLike = np.float64,
        bounds: bool = True,
        tallies: Tallies | None = None,
    ) -> None:
        """Choose a way and put everything there.

        Args:
            batch: the runs, on the host.
            device: from `find_device`.
            dtype: of all numbers.
            bounds: keep lower and upper up to date, where leaving them out saves time: in the kernels.
            tallies: of the counts that end the runs; None where none do.
        """
        graphs, terms = batch.graphs, batch.terms
        self._dtype, self._device, self._theta, self._bounds = np.dtype(dtype), device, batch.theta, bounds
        self._smooth, (self._n, self._count) = terms.smooth, terms.s.shape
        self._interpret = device.platform == "cpu"
        self._tallies = tallies
        shared = all(graph is graphs[0] for graph in graphs)
        alike = all((part == part[:, :1]).all() for part in (terms.above, terms.below))
        plain = tallies is None
        self._small: Small | None = None
        self._large = plain and self._count == 1 and self._n >= _LARGE and graphs[0].degree.max() <= _WIDEST
        if plain and shared and alike and not terms.smooth and self._n <= _UNROLLED:
            lists = tuple(tuple(graphs[0].neighbours(i).tolist()) for i in range(self._n))
            self._small = Small(lists, tuple(terms.above[:, 0].tolist()), tuple(terms.below[:, 0].tolist()))
        size = (-(-self._count // _RUNS) * _RUNS, self._n)[::-1] if self._small else (self._n, self._count)
        if self._large:
            size = (-(-(self._n + 1) // _NODES) * _NODES, 1)
        self._size = size
        self._terms = self._spread(terms)
        self._c = self.put(self._pad_runs(batch.c))
        self._neighbours = None if self._small else self._lists(graphs[:1] if shared else graphs)
        self._batch = batch

    def run(self, last: int, watch: bool) -> Outcome:
        """Every run to its end.

        Args:
            last: iterations at most.
            watch: end a run that a certificate proves.
        """
        with jax.enable_x64(True):
            mode = "constant" if self._large else "edge"
            S, R = (self.put(self._pad(sums, mode)) for sums in (self._batch.S, self._batch.R))
            state, branch = begin(S, Terms(*(*self._terms, self._smooth)), R)
            if self._tallies is not None:
                return self._run_to_proof(state, branch, self._tallies, last)
            return self._run_on(state, last, watch)

    def _run_on(self, state: State, last: int, watch: bool) -> Outcome:
        final = last - 1
        left, at = jnp.ones(self._size[1], np.bool_), jnp.full(self._size[1], final)
        test = self._make_test() if watch else None
        t = 0
        while t < final:
            if test is not None:
                x = state.x[: self._n, None] if self._large else state.x
                found = left & holds(x, test, smooth=self._smooth)
                left, at = left & ~found, jnp.where(found, t, at)
                if not left.any():
                    break
            steps = min(LOOK, final - t) if watch else final - t
            after = self._advance(state, t, steps)
            state = after if self._count == 1 or not watch else _keep(left, after, state)
            t += steps
        return self._fetch(state, at, None)

    def _make_test(self) -> Test:
        batch = self._batch
        return Test(
            s=self._terms[0][: self._n, None] if self._large else self._terms[0],
            counts=self.put(self._pad_runs(batch.counts)),
            present=None if batch.present is None else self.put(self._pad_runs(batch.present)),
            below=self.put(self._pad_runs(batch.needed_below)),
            above=self.put(self._pad_runs(batch.needed_above)),
            tolerance=self.put(self._pad_runs(batch.tolerance)),
        )

    def _run_to_proof(self, state: State, branch: Any, tallies: Tallies, last: int) -> Outcome:
        there = {name: jax.device_put(array, self._device) for name, array in vars(tallies).items()}
        agreed = Agreed(**{name: there[name] for name in Agreed._fields})
        tally = Tally(**{name: there[name] for name in Tally._fields})
        arrays, options = (self._terms, self._c, self._neighbours), (self._theta, self._smooth)
        state, tally, at = run_to_proof(
            state, branch, tally, agreed, jnp.int64(last), arrays, step=_step, options=options
        )
        return self._fetch(
            state, at, replace(tallies, **{name: np.array(part) for name, part in tally._asdict().items()})
        )

    def _advance(self, state: State, t: int, steps: int) -> State:
        """From iteration t to t + steps."""
        how: dict[str, Any] = {"theta": self._theta, "steps": steps}
        kernel = {"half": self._theta == 0.5, "bounds": self._bounds, "interpret": self._interpret}
        now = jnp.int32(t)
        after: State
        if self._small is not None:
            after = advance_small(state, now, self._terms[0], self._c, small=self._small, **how, **kernel)
        elif self._large:
            after = advance_large(state, now, self._terms, self._c, self._neighbours, **how, **kernel)
        else:
            after = advance(state, now, self._terms, self._c, self._neighbours, smooth=self._smooth, **how)
        return after

    def _fetch(self, state: State, at: Any, tallies: Tallies | None) -> Outcome:
        def back(array: Any) -> Any:
            array = np.array(array)
            return (array[:, None] if self._large else array)[: self._n, : self._count]

        first = back(state.first_inside).astype(np.int64)
        last = np.array(at)[: self._count].astype(np.int64)
        return Outcome(last, back(state.x), first, back(state.lower), back(state.upper), tallies)

    def put(self, array: Any) -> Any:
        """An array on the device, numbers in the precision asked for."""
        array = np.asarray(array)
        with jax.enable_x64(True):
            return jax.device_put(array.astype(self._dtype) if array.dtype.kind == "f" else array, self._device)

    def _pad_runs(self, array: Any) -> Any:
        """To whole programs, by repeating the last run."""
        room = [(0, 0)] * (array.ndim - 1) + [(0, self._size[1] - self._count)]
        return np.pad(array, room, mode="edge")

    def _pad(self, array: Any, mode: str = "edge") -> Any:
        """To whole programs: runs by repeating the last, nodes by ones of no consequence."""
        room = [(0, whole - here) for whole, here in zip(self._size, array.shape, strict=True)]
        padded = np.pad(array, room, mode=mode)  # type: ignore[call-overload]
        return padded[:, 0] if self._large else padded

    def _spread(self, terms: Terms) -> tuple[Any, ...]:
        if not self._large:
            return tuple(
                self.put(self._pad(part)) for part in (terms.s, terms.above, terms.below, terms.weight, terms.cd)
            )
        rest = (terms.above, terms.below, terms.weight, terms.cd)
        kept = [part[:1, 0] if (part == part[0]).all() else self._pad(part) for part in rest]
        return tuple(map(self.put, (self._pad(terms.s, "constant"), *kept)))

    def _lists(self, graphs: Sequence[Graph]) -> Any:
        n = self._n
        if len(graphs) > 1:
            source, target, run = join(graphs)
            if is_dense(n, len(graphs), len(run)):
                dense = np.zeros((n, n, len(graphs)))
                dense[source, target, run] = 1.0
                return Neighbours(dense=self.put(dense))
            start = source * len(graphs) + run
            order = np.argsort(start, kind="stable")
            return Neighbours(joined=(self.put(start[order]), self.put((target * len(graphs) + run)[order])))
        (graph,) = graphs
        if graph.is_complete:
            return Neighbours()
        if graph.degree.max() > _WIDEST:
            return Neighbours(ends=(self.put(graph.source), self.put(graph.target)))
        lists = lists_of(graph)
        if not self._large:
            return Neighbours(lists=self.put(lists))
        last = self._size[0] - 1
        return self.put(
            np.pad(np.where(lists == n, last, lists), ((0, 0), (0, self._size[0] - n)), constant_values=last)
        )
