"""Runs on a device, through JAX: the same step (`update.py`), and nothing copied back before the end.

| runs                               | how                                                                             |
|------------------------------------|---------------------------------------------------------------------------------|
| quantiles, one small graph for all | a Pallas kernel, a run a thread: everything in registers over all iterations    |
| one run of a large graph           | a Pallas kernel, a node a thread: neighbour lists (width, n), one pass a step   |
| any other                          | array operations on (n, runs)                                                   |

Rules:
- Arrays are arguments of compiled functions, never closed over; what is static shapes the program.
- Exposure, bounds and certificates are computed there. A proof is looked for every `LOOK` iterations, so a run may go
  on for so many after the one in which `solve` finds it.
- At θ = ½ the sums S and R matter by their half difference P only, since (P, −P) has the same future: one array less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

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


def begin(S: Any, terms: Terms, R: Any) -> State:
    """Iteration 0."""
    x, branch = next_x(S, terms)
    blank = jnp.full(x.shape, NEVER, jnp.int32), jnp.full_like(x, -jnp.inf), jnp.full_like(x, jnp.inf)
    return State(S, R, x, *_watch(0, x, branch, *blank))


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
    """

    lists: Any = None
    ends: Any = None
    dense: Any = None

    def sum(self, x: Any) -> Any:
        """The neighbour sum of x, (n, runs)."""
        if self.dense is not None:
            return jnp.einsum("ijr,jr->ir", self.dense, x, precision=lax.Precision.HIGHEST)
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
    local = Terms(*(*terms, smooth))

    def step(k: Any, state: State) -> State:
        S, R = next_sums(state.S, state.R, state.x, neighbours.sum(state.x), local.cd, c, theta)
        x, branch = next_x(S, local)
        return State(S, R, x, *_watch(t + k + 1, x, branch, state.first_inside, state.lower, state.upper))

    after: State = lax.fori_loop(0, steps, step, state)
    return after


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


@partial(jax.jit, static_argnames="smooth")
def holds(x: Any, s: Any, counts: Any, below: Any, above: Any, tolerance: Any, *, smooth: bool) -> Any:
    """The test of `certificate.py`, of each run."""
    spread = x.max(axis=0) - x.min(axis=0)
    if smooth:
        return spread + jnp.abs((counts * (x - s)).sum(axis=0) / counts.sum(axis=0)) <= tolerance
    enough = ((counts * (s <= x)).sum(axis=0) >= below) & ((counts * (s >= x)).sum(axis=0) >= above)
    return (spread <= tolerance) & enough


class Runs:
    """The runs of a batch, on a device."""

    def __init__(
        self,
        graphs: Sequence[Graph],
        terms: Terms,
        c: Any,
        theta: float,
        device: Any,
        dtype: DTypeLike = np.float64,
        bounds: bool = True,
    ) -> None:
        """Choose a way and put everything there.

        Args:
            graphs: of each run.
            terms: of all runs, (n, runs), on the host.
            c: of each run.
            theta: averaging constant.
            device: from `find_device`.
            dtype: of all numbers.
            bounds: keep lower and upper up to date, where leaving them out saves time: in the kernels.
        """
        self._dtype, self._device, self._theta, self._bounds = np.dtype(dtype), device, theta, bounds
        self._smooth, (self._n, self._count) = terms.smooth, terms.s.shape
        self._interpret = device.platform == "cpu"
        shared = all(graph is graphs[0] for graph in graphs)
        alike = all((part == part[:, :1]).all() for part in (terms.above, terms.below))
        self._small: Small | None = None
        self._large = self._count == 1 and self._n >= _LARGE and graphs[0].degree.max() <= _WIDEST
        if shared and alike and not terms.smooth and self._n <= _UNROLLED:
            lists = tuple(tuple(graphs[0].neighbours(i).tolist()) for i in range(self._n))
            self._small = Small(lists, tuple(terms.above[:, 0].tolist()), tuple(terms.below[:, 0].tolist()))
        size = (-(-self._count // _RUNS) * _RUNS, self._n)[::-1] if self._small else (self._n, self._count)
        if self._large:
            size = (-(-(self._n + 1) // _NODES) * _NODES, 1)
        self._size = size
        self._terms = self._spread(terms)
        self._c = self.put(np.pad(np.asarray(c), (0, size[1] - self._count), mode="edge"))
        self._neighbours = None if self._small else self._lists(graphs[:1] if shared else graphs)

    def put(self, array: Any) -> Any:
        """An array on the device, numbers in the precision asked for."""
        array = np.asarray(array)
        with jax.enable_x64(True):
            return jax.device_put(array.astype(self._dtype) if array.dtype.kind == "f" else array, self._device)

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
            dense = np.zeros((n, n, len(graphs)))
            for k, graph in enumerate(graphs):
                dense[graph.source, graph.target, k] = 1.0
            return Neighbours(dense=self.put(dense))
        (graph,) = graphs
        if graph.edges == n * (n - 1) // 2:
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

    def begin(self, S: Any, R: Any) -> State:
        """Iteration 0, from the sums on the host."""
        mode = "constant" if self._large else "edge"
        with jax.enable_x64(True):
            return begin(
                self.put(self._pad(S, mode)), Terms(*(*self._terms, self._smooth)), self.put(self._pad(R, mode))
            )

    def advance(self, state: State, t: int, steps: int) -> State:
        """From iteration t to t + steps."""
        how: dict[str, Any] = {"theta": self._theta, "steps": steps}
        kernel = {"half": self._theta == 0.5, "bounds": self._bounds, "interpret": self._interpret}
        with jax.enable_x64(True):
            now = jnp.int32(t)
            after: State
            if self._small is not None:
                after = advance_small(state, now, self._terms[0], self._c, small=self._small, **how, **kernel)
            elif self._large:
                after = advance_large(state, now, self._terms, self._c, self._neighbours, **how, **kernel)
            else:
                after = advance(state, now, self._terms, self._c, self._neighbours, smooth=self._smooth, **how)
            return after

    def certified(self, state: State, counts: Any, below: Any, above: Any, tolerance: Any) -> Any:
        """Which runs are proved, on the host; see `holds`."""
        if self._large:  # nodes that only fill a program up take no part
            x, s = state.x[: self._n, None], self._terms[0][: self._n, None]
        else:
            x, s = state.x[:, : self._count], self._terms[0][:, : self._count]
        with jax.enable_x64(True):
            return np.asarray(holds(x, s, counts, below, above, tolerance, smooth=self._smooth))

    def fetch(self, array: Any) -> Any:
        """Back on the host, as (n, runs)."""
        array = np.asarray(array)
        array = array[:, None] if self._large else array
        return array[: self._n, : self._count]
