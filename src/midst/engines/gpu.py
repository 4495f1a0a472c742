"""Runs on a device, through JAX: the same step (`step.py`), and nothing copied back before the end.

| runs                               | how                                                                             |
|------------------------------------|---------------------------------------------------------------------------------|
| quantiles, one small graph for all | a Pallas kernel, a run a thread: everything in registers over all iterations    |
| one run of a large graph           | a Pallas kernel, a node a thread: neighbour lists (width, n), one pass a step   |
| any other                          | array operations on (n, runs)                                                   |

Rules:
- Arrays are arguments of compiled functions, never closed over; what is static shapes the program.
- Exposure, bounds and the ends of runs are computed there. Runs that a search ends leave the device once all are close,
  each in the very iteration in which it does elsewhere; the search is the CPU's. A certificate is looked for every
  `LOOK` iterations, so a run may go on for so many after the one in which `solve` finds it.
- At θ = ½ the sums S and R matter by their half difference P only, since (P, −P) has the same future: one array less.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from midst.engines.batches import Batch, join
from midst.errors import InputError, MissingExtra
from midst.graphs import Graph
from midst.methods import Certified, Exact, Stop
from midst.normals import edge_words, normal_pairs
from midst.protocol.certificate import known_at
from midst.protocol.step import Terms, next_sums, next_x
from midst.system import Sums
from midst.types import Array, Bools

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

_ROUNDING = 16  # times the precision: see `certificate.ROUNDING`

Arrays = tuple[Any, Any, Any]  # terms (s, above, below, weight, cd), c, and the neighbours as `Neighbours` or lists


class DeviceState(NamedTuple):
    """Where the runs stand, in working units.

    Attributes:
        S: see `step.next_sums`.
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


class Near(NamedTuple):
    """Whether the nodes of each run know that all x are close (`certificate.py`), in working units.

    Attributes:
        known: whether they did when it ended, 0 or 1.
        at: in which iteration that was; the last one, where they did not.
        low: the smallest x of the sample that was close.
        high: the largest.
    """

    known: Any
    at: Any
    low: Any
    high: Any


def find_device(kind: str) -> Any:
    """The first device of a kind, "gpu" or "cpu".

    Raises:
        InputError: there is none.
    """
    try:
        return jax.devices(kind)[0]
    except RuntimeError:
        raise InputError(f"JAX finds no {kind} on this machine; leave the device out to run on the CPU") from None


@partial(jax.jit, static_argnames="smooth")
def begin(S: Any, R: Any, terms: tuple[Any, ...], *, smooth: bool = False) -> DeviceState:
    """Iteration 0."""
    x, branch = next_x(S, Terms(*(*terms, smooth)))
    blank = jnp.full(x.shape, NEVER, jnp.int32), jnp.full_like(x, -jnp.inf), jnp.full_like(x, jnp.inf)
    return DeviceState(S, R, x, *_watch(0, x, branch, *blank))


def _watch(t: Any, x: Any, branch: Any, first: Any, lower: Any, upper: Any) -> tuple[Any, Any, Any]:
    """What an audit wants to know of iteration t."""
    return (
        jnp.where((branch == 0) & (first == NEVER), jnp.int32(t), first),
        jnp.where((branch < 0) & (x > lower), x, lower),
        jnp.where((branch > 0) & (x < upper), x, upper),
    )


def _hold(S: Any, R: Any, held: int) -> tuple[Any, ...]:
    # At θ = ½ `next_sums` is S' = ½(S − R) − c·a and R' = −½(S − R) − cd·x: of S and R it needs the difference only,
    # and P and −P have the same one. That is an array less, or a register less a node.
    return (0.5 * (S - R),) if held == 1 else (S, R)


def _sums(held: tuple[Any, ...]) -> tuple[Any, Any]:
    return (held[0], -held[0]) if len(held) == 1 else (held[0], held[1])


def _like(array: Any) -> Any:
    described: Any = jax.ShapeDtypeStruct
    return described(array.shape, array.dtype)


class Small(NamedTuple):
    """A graph and slopes that all runs share; without nodes where they do not, or are not in registers.

    Attributes:
        lists: the neighbours of each node.
        above: of each node; see `step.Terms`.
        below: likewise.
    """

    lists: tuple[tuple[int, ...], ...] = ()
    above: tuple[float, ...] = ()
    below: tuple[float, ...] = ()


class DeviceProgram(NamedTuple):
    """What shapes a program: its constants.

    Attributes:
        theta: averaging constant.
        smooth: see `step.Terms`.
        small: of runs in registers.
        nodes: of the one large graph; None where arrays are (n, runs).
        bounds: keep lower and upper up to date, in the kernels.
        interpret: run these without a GPU, slowly.
    """

    theta: float
    smooth: bool = False
    small: Small = Small()
    nodes: int | None = None
    bounds: bool = True
    interpret: bool = False

    @property
    def held(self) -> int:
        """How many sums a node are carried: at θ = ½ the half difference of S and R, else both."""
        return 1 if self.theta == 0.5 else 2

    def advance(self, state: DeviceState, t: Any, steps: int, arrays: Arrays) -> DeviceState:
        """From iteration t to t + steps."""
        how = advance_small if self.small.lists else advance if self.nodes is None else advance_large
        after: DeviceState = how(state, t, arrays, program=self, steps=steps)
        return after


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


def lists_of(graph: Graph, device: Any = None, size: int | None = None) -> Any:
    """The neighbours of each node, one a row of (width, n): so a warp of nodes reads its k-th neighbours at once.

    Args:
        graph: who talks to whom.
        device: where to.
        size: how long a row is: n if not given. A missing neighbour is the last node of longer rows, or n.
    """
    with jax.enable_x64(True):
        target, first = (
            jax.device_put(array, device) for array in (graph.target.astype(np.int32, copy=False), graph.first_edges)
        )
        return _make_lists(target, first, width=int(graph.degree.max()), size=size or graph.n)


@partial(jax.jit, static_argnames=("width", "size"))
def _make_lists(target: Any, first: Any, *, width: int, size: int) -> Any:
    nodes = len(first) - 1
    missing = np.int32(nodes if size == nodes else size - 1)
    place, k = first[:-1], jnp.arange(width)[:, None]
    lists = jnp.where(k < first[1:] - place, target[jnp.minimum(place + k, len(target) - 1)], missing)
    return jnp.pad(lists, ((0, 0), (0, size - nodes)), constant_values=missing)


@partial(jax.jit, static_argnames="nodes")
def draw_sums(lists: Any, key: Any, runs: Any, mu: Any, sigma: Any, *, nodes: int) -> tuple[Any, Any]:
    """S(0) and R(0) of runs on one graph, (n, runs), as `system.draw_z0` draws them edge by edge.

    Args:
        lists: the neighbours of each node, (width, n) or wider; a missing one is no node.
        key: see `EdgeNormals`.
        runs: likewise.
        mu: of each run.
        sigma: likewise.
        nodes: how many there are.
    """
    i = jnp.arange(lists.shape[1])

    def add(k: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
        j = lists[k]
        first, second = normal_pairs(key, edge_words(jnp.minimum(i, j), jnp.maximum(i, j))[:, None], runs)
        outward, here = (i < j)[:, None], (j < nodes)[:, None]
        mine, other = jnp.where(outward, first, -second), jnp.where(outward, -second, first)
        S, R = sums
        return S + jnp.where(here, mu + sigma * mine, 0.0), R + jnp.where(here, mu + sigma * other, 0.0)

    blank = jnp.zeros((lists.shape[1], len(runs)))
    S, R = lax.fori_loop(0, len(lists), add, (blank, blank))
    return S, R


def can_draw(graph: Graph) -> bool:
    """Whether a device draws z(0) of runs on this graph by itself: by lists of neighbours."""
    return graph.ends is not None and int(graph.degree.max()) <= _WIDEST


@partial(jax.jit, static_argnames=("program", "steps"))
def advance(state: DeviceState, t: Any, arrays: Arrays, *, program: DeviceProgram, steps: int) -> DeviceState:
    """From iteration t to t + steps, by operations on whole arrays."""
    terms, c, neighbours = arrays
    local = Terms(*(*terms, program.smooth))

    def step(k: Any, state: DeviceState) -> DeviceState:
        S, R = next_sums(state.S, state.R, state.x, neighbours.sum(state.x), local.cd, c, program.theta)
        x, branch = next_x(S, local)
        return DeviceState(S, R, x, *_watch(t + k + 1, x, branch, state.first_inside, state.lower, state.upper))

    after: DeviceState = lax.fori_loop(0, steps, step, state)
    return after


# Small graphs: a run a thread


@partial(jax.jit, static_argnames=("program", "steps"))
def advance_small(state: DeviceState, t: Any, arrays: Arrays, *, program: DeviceProgram, steps: int) -> DeviceState:
    """From iteration t to t + steps for quantiles over one small graph, with all state in registers.

    Args:
        state: (n, runs); the number of runs a multiple of 128.
        t: iteration, an int32.
        arrays: only s, (n, runs), and c, of each run, are looked at.
        program: the graph and the slopes.
        steps: how many.
    """
    kernel = partial(_small_kernel, program=program, steps=steps)
    return _in_registers(kernel, (jnp.reshape(t, 1),), state, arrays, program)[0]


@partial(jax.jit, static_argnames=("program", "epoch"))
def finish_small(
    state: DeviceState, last: Any, close: Any, arrays: Arrays, *, program: DeviceProgram, epoch: int
) -> tuple[DeviceState, Near]:
    """From iteration 0 to each run's end, in one go: until its nodes know that all x are close.

    Args:
        state: of iteration 0; see `advance_small`, and so for all others.
        last: no run goes beyond this iteration, an int32.
        close: the greatest spread, of each run.
        arrays: s and c.
        program: the graph and the slopes.
        epoch: iterations from one sample to the next: the diameter and one.

    Returns:
        The state of each run's last iteration, and how it ended.
    """
    kernel, c = partial(_finish_kernel, program=program, epoch=epoch), arrays[1]
    blank = tuple(jnp.zeros(close.shape, kind) for kind in (np.int32, np.int32, close.dtype, close.dtype))
    after, (known, at, low, high) = _in_registers(
        kernel, (jnp.reshape(last, 1), close * c), state, arrays, program, blank
    )
    return after, Near(known, at, low / c, high / c)


def _in_registers(
    kernel: Any,
    fixed: tuple[Any, ...],
    state: DeviceState,
    arrays: Arrays,
    program: DeviceProgram,
    more: tuple[Any, ...] = (),
) -> tuple[DeviceState, list[Any]]:
    """A kernel over all runs: the state after it, and what it writes besides.

    In units in which c = 1 (values times c) and with S and R divided by the degree, the step has no division left and
    needs no number but these of a run: the same lines of `step.py`, with weight, cd = 1 and c = 1 / degree.

    Args:
        kernel: what each thread does.
        fixed: what it reads before s.
        state: (n, runs).
        arrays: s and c.
        program: the graph and the slopes.
        more: what it writes besides the state, blank.
    """
    (s, *_), c, _ = arrays
    degree = jnp.array([len(near) for near in program.small.lists], s.dtype)[:, None]
    watched = (state.first_inside, state.lower * c, state.upper * c)[: 3 if program.bounds else 1]
    kept = (*_hold(state.S / degree, state.R / degree, program.held), state.x * c, *watched)
    call = pl.pallas_call(
        kernel,
        out_shape=[_like(array) for array in (*kept, *more)],
        grid=(s.shape[1] // _RUNS,),
        input_output_aliases={len(fixed) + 1 + k: k for k in range(len(kept) + len(more))},
        compiler_params=triton.CompilerParams(num_warps=_RUNS // 32),
        interpret=program.interpret,
    )
    out: list[Any] = list(call(*fixed, s * c, *kept, *more))
    S, R = _sums(tuple(sums * degree for sums in out[: program.held]))
    x, first, *between = out[program.held : len(kept)]
    lower, upper = (bound / c for bound in between) if program.bounds else (state.lower, state.upper)
    return DeviceState(S, R, x / c, first, lower, upper), out[len(kept) :]


Registers = tuple[tuple[Any, ...], ...]  # of each array, of each node, 128 runs


def _small_step(s_ref: Any, mine: Any, program: DeviceProgram) -> Any:
    """The step from iteration t to t + 1, of 128 runs."""
    small, held, nodes = program.small, program.held, range(len(program.small.lists))
    degree = [len(near) for near in small.lists]
    terms = [
        Terms(s_ref[i, mine], small.above[i] / degree[i], small.below[i] / degree[i], 1.0, 1.0)  # type: ignore[arg-type]
        for i in nodes
    ]
    everybody = all(d == len(nodes) - 1 for d in degree)

    def step(t: Any, state: Registers) -> Registers:
        # The loops over nodes and neighbours are unrolled while this is traced: every number of a run then has a
        # register of its own, and nothing is indexed. The tuples are the order of `_in_registers`.
        *sums, x, first = state[: held + 2]
        between = state[held + 2 :]
        total = sum(x[1:], start=x[0]) if everybody else None
        after = []
        for i in nodes:
            a = total - x[i] if everybody else sum((x[j] for j in small.lists[i][1:]), start=x[small.lists[i][0]])
            S, R = next_sums(*_sums(tuple(part[i] for part in sums)), x[i], a, 1.0, 1.0 / degree[i], program.theta)  # type: ignore[arg-type]
            new, branch = next_x(S, terms[i])
            seen = _watch(t + 1, new, branch, first[i], *(bound[i] for bound in between or (x, x)))
            after.append((*_hold(S, R, held), new, *seen[: 1 + len(between)]))
        return tuple(zip(*after, strict=True))

    return step


def _small_kernel(t_ref: Any, s_ref: Any, *refs: Any, program: DeviceProgram, steps: int) -> None:
    # Inputs and outputs are the same arrays. Each is read once and written once, however many the steps.
    nodes = range(len(program.small.lists))
    mine = pl.ds(pl.program_id(0) * _RUNS, _RUNS)
    given, out = refs[: len(refs) // 2], refs[len(refs) // 2 :]
    step, t = _small_step(s_ref, mine, program), t_ref[0]
    begun = tuple(tuple(ref[i, mine] for i in nodes) for ref in given)
    state = lax.fori_loop(0, steps, lambda k, state: step(t + k, state), begun)
    for ref, rows in zip(out, state, strict=True):
        for i in nodes:
            ref[i, mine] = rows[i]


def _finish_kernel(last_ref: Any, close_ref: Any, s_ref: Any, *refs: Any, program: DeviceProgram, epoch: int) -> None:
    """A run that has ended stays as it is; its thread goes on, to no effect, until all 128 have."""
    nodes = range(len(program.small.lists))
    mine = pl.ds(pl.program_id(0) * _RUNS, _RUNS)
    given, out = refs[: len(refs) // 2 - 4], refs[len(refs) // 2 :]
    step, last, close = _small_step(s_ref, mine, program), last_ref[0], close_ref[mine]
    rounding = _ROUNDING * float(np.finfo(s_ref.dtype).eps)

    def sample(state: Registers, near: Any, low: Any, high: Any) -> tuple[Any, ...]:
        """An iteration whose largest and smallest x are told on."""
        x = state[program.held]
        least, most = reduce(jnp.minimum, x), reduce(jnp.maximum, x)
        room = close + rounding * jnp.maximum(jnp.abs(least), jnp.abs(most))
        found = (most - least <= room) & (near == 0)
        low, high = jnp.where(found, least, low), jnp.where(found, most, high)
        return jnp.where(found, 1, near), low, high

    def ends(t: Any, left: Any, near: Any) -> Any:
        """The iteration before a sample: with its messages, the sample before is known."""
        return left * near * jnp.where((t + 2) % epoch == 0, 1, 0)

    def going(now: tuple[Any, ...]) -> Any:
        t, left = now[:2]
        return (t < last) & (jnp.max(left) > 0)

    def iteration(now: tuple[Any, ...]) -> tuple[Any, ...]:
        # The order matters: runs end on the x of iteration t, before the step, and only then the x of t + 1 is sampled.
        t, left, at, near, low, high, state = now
        ended = ends(t, left, near)
        left, at = left - ended, jnp.where(ended > 0, t, at)
        after = step(t, state)
        state = tuple(
            tuple(jnp.where(left > 0, new, old) for new, old in zip(*rows, strict=True))
            for rows in zip(after, state, strict=True)
        )
        about = lax.cond(
            (t + 2) % epoch == 0, lambda *about: sample(state, *about), lambda *about: about, near, low, high
        )
        return t + 1, left, at, *about, state

    begun = tuple(tuple(ref[i, mine] for i in nodes) for ref in given)
    nobody, nothing = jnp.zeros(_RUNS, np.int32), jnp.zeros(_RUNS, s_ref.dtype)
    t, left, at, near, low, high, state = lax.while_loop(
        going, iteration, (jnp.int32(0), nobody + 1, nobody, nobody, nothing, nothing, begun)
    )
    # The loop may have run out just before a sample, where those that came close in the last one end as any other.
    known, at = 1 - left + ends(t, left, near), jnp.where(left > 0, t, at)
    for ref, rows in zip(out[:-4], state, strict=True):
        for i in nodes:
            ref[i, mine] = rows[i]
    for ref, row in zip(out[-4:], (known, at, low, high), strict=True):
        ref[mine] = row


# A large graph: a node a thread


@partial(jax.jit, static_argnames=("program", "steps"), donate_argnums=0)
def advance_large(state: DeviceState, t: Any, arrays: Arrays, *, program: DeviceProgram, steps: int) -> DeviceState:
    """From iteration t to t + steps of one run: neighbour sum, step and exposure in one pass over memory each.

    Args:
        state: (n,) each; n a multiple of 512. Given up to the result.
        t: iteration, an int32.
        arrays: terms (n,), or (1,) where they are the same for all nodes; c (1,); neighbours (width, n), a missing one
            n − 1, whose x has to be 0.
        program: its constants.
        steps: how many.
    """
    terms, c, lists = arrays
    watched = (state.first_inside, state.lower, state.upper)[: 3 if program.bounds else 1]
    carried = (*_hold(state.S, state.R, program.held), *watched)
    inputs = 4 + len(terms)
    call = pl.pallas_call(
        partial(_large_kernel, program=program, carried=len(carried)),
        out_shape=[_like(array) for array in (*carried, state.x)],
        grid=(len(state.x) // _NODES,),
        input_output_aliases={inputs + k: k for k in range(len(carried))},
        compiler_params=triton.CompilerParams(num_warps=_NODES // 64),
        interpret=program.interpret,
    )

    def step(k: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:
        *kept, x = now
        return tuple(call(jnp.reshape(t + k + 1, 1), c, lists, x, *terms, *kept))

    def two(k: Any, now: tuple[Any, ...]) -> tuple[Any, ...]:  # so that x changes buffers and is not copied
        return step(2 * k + 1, step(2 * k, now))

    now = lax.fori_loop(0, steps // 2, two, (*carried, state.x))
    *kept, x = step(steps - 1, now) if steps % 2 else now
    first, *between = kept[program.held :]
    return DeviceState(*_sums(tuple(kept[: program.held])), x, first, *(between or (state.lower, state.upper)))


def _large_kernel(
    t_ref: Any, c_ref: Any, lists_ref: Any, x_ref: Any, *refs: Any, program: DeviceProgram, carried: int
) -> None:
    # What only its own node reads is written in place. Other programs still read the x of before, so the new one goes
    # to another array: the last output, and the only one that is no input.
    mine, held = pl.ds(pl.program_id(0) * _NODES, _NODES), program.held
    given, now, out = refs[:5], refs[5 : 5 + carried], refs[5 + carried :]
    terms = Terms(*(ref[...] if ref.shape == (1,) else ref[mine] for ref in given))
    x: Any = x_ref[mine]
    a: Any = triton.load(x_ref.at[lists_ref[0, mine]])
    for k in range(1, lists_ref.shape[0]):
        a += triton.load(x_ref.at[lists_ref[k, mine]])
    S, R = next_sums(*_sums(tuple(ref[mine] for ref in now[:held])), x, a, terms.cd, c_ref[...], program.theta)
    new, branch = next_x(S, terms)
    first, *between = (ref[mine] for ref in now[held:])
    seen = _watch(t_ref[0], new, branch, first, *(between or (new, new)))
    for ref, value in zip(out, (*_hold(S, R, held), *seen[: 1 + len(between)], new), strict=True):
        ref[mine] = value


# From an ensemble and back


class Test(NamedTuple):
    """What the test of `certificate.py` compares with, (n, runs) or one a run; `present` as in `Batch`."""

    s: Any
    whole_weights: Any
    present: Any
    below: Any
    above: Any
    tolerance: Any


@partial(jax.jit, static_argnames="smooth")
def holds(x: Any, test: Test, *, smooth: bool) -> Any:
    """The test of `certificate.py`, of each run."""
    least, most = _ends(x, test.present)
    spread, whole_weights, s = most - least, test.whole_weights, test.s
    if smooth:
        return spread + jnp.abs((whole_weights * (x - s)).sum(axis=0) / whole_weights.sum(axis=0)) <= test.tolerance
    enough = ((whole_weights * (s <= x)).sum(axis=0) >= test.below) & (
        (whole_weights * (s >= x)).sum(axis=0) >= test.above
    )
    return (spread <= test.tolerance) & enough


class Ends(NamedTuple):
    """When runs end.

    Attributes:
        last: no run goes beyond this iteration.
        diameter: of each run's graph.
        close: the greatest spread, of each run.
        present: which nodes there are, (n, runs); None: all.
    """

    last: Any
    diameter: Any
    close: Any
    present: Any


@partial(jax.jit, static_argnames=("program", "first", "steps"), donate_argnums=0)
def finish(
    state: DeviceState, ends: Ends, arrays: Arrays, *, program: DeviceProgram, first: int, steps: int
) -> tuple[DeviceState, Near, Any, Any]:
    """From iteration 0 to each run's end: until its nodes know that all x are close.

    Args:
        state: of iteration 0: arrays (n, runs), or (n,) of one run. Given up to the result.
        ends: when that is.
        arrays: see `Arrays`.
        program: how to advance.
        first: the first iteration that is sampled in any run.
        steps: from there on every so many.

    Returns:
        The state of each run, how it ends, which of them have, and the iteration in which the others are: no sample is
        left between it and the last.
    """
    last, diameter, close, present = ends
    rounding, never = _ROUNDING * float(np.finfo(state.x.dtype).eps), np.iinfo(np.int32).max

    def go_on(now: tuple[Any, ...]) -> Any:
        t, _, left, _ = now
        return left.any() & (t + steps <= last)

    def sample(t: Any, state: DeviceState, left: Any, near: Near) -> Near:
        least, most = _ends(state.x if program.nodes is None else state.x[: program.nodes, None], present)
        found = left & ((t + 1) % (diameter + 1) == 0) & (near.at == never)
        found &= most - least <= close + rounding * jnp.maximum(jnp.abs(least), jnp.abs(most))
        low, high = jnp.where(found, least, near.low), jnp.where(found, most, near.high)
        return Near(near.known, jnp.where(found, known_at(t, diameter), near.at), low, high)

    def forward(state: DeviceState, t: Any, steps: int, left: Any) -> Any:
        if left.size == 1:
            return lax.cond(
                left.all(), lambda state: program.advance(state, t, steps, arrays), lambda same: same, state
            )
        return _keep(left, program.advance(state, t, steps, arrays), state)

    def some(now: tuple[Any, ...]) -> tuple[Any, ...]:
        t, state, left, near = now
        state = forward(state, t, steps - 1, left) if steps > 1 else state
        left &= near.at != t + steps - 1
        state = forward(state, t + steps - 1, 1, left)
        return t + steps, state, left, sample(t + steps, state, left, near)

    all_runs, t = jnp.ones(close.shape, np.bool_), jnp.int32(first)
    blank = Near(~all_runs, jnp.full(close.shape, never), jnp.zeros_like(close), jnp.zeros_like(close))
    state = program.advance(state, jnp.int32(0), first, arrays)
    t, state, left, near = lax.while_loop(go_on, some, (t, state, all_runs, sample(t, state, all_runs, blank)))
    return state, near._replace(known=near.at <= last, at=jnp.minimum(near.at, last)), left, t


def _ends(x: Any, present: Any) -> tuple[Any, Any]:
    """The least and the greatest x of each run."""
    low, high = (x, x) if present is None else (jnp.where(present, x, end) for end in (jnp.inf, -jnp.inf))
    return low.min(axis=0), high.max(axis=0)


@jax.jit
def _keep(left: Any, after: DeviceState, before: DeviceState) -> DeviceState:
    """What comes after for the runs that are left; the others stay where they ended."""
    kept: DeviceState = jax.tree.map(lambda new, old: jnp.where(left, new, old), after, before)
    return kept


class DeviceEnd(NamedTuple):
    """How the runs ended, on the device, in working units.

    Attributes:
        state: of each run's last iteration.
        at: which that was.
        near: how it ended, where a search is to end it.
    """

    state: DeviceState
    at: Any
    near: Near | None = None


class DeviceOutcome(NamedTuple):
    """How the runs ended, on the host, in the units of the data: (runs,), or (runs, n).

    Attributes:
        iterations: how many were run.
        certified: whether the test of `certificate.py` holds; false where a search is to end the run.
        value: the middle of the last x.
        spread: max x − min x.
        x: the last one; not a number for nodes that a run has not.
        first_inside: see `DeviceState`.
        lower: likewise.
        upper: likewise.
        near: how it ended, where a search is to end it.
    """

    iterations: Any
    certified: Any
    value: Any
    spread: Any
    x: Any
    first_inside: Any
    lower: Any
    upper: Any
    near: Near | None


@partial(jax.jit, static_argnames=("nodes", "runs", "bounds"))
def read_out(state: DeviceState, unit: Any, present: Any, *, nodes: int, runs: int, bounds: bool) -> tuple[Any, ...]:
    """The last five of an outcome but `near`, a row a run; and the least and the greatest x."""
    here = None if present is None else present[:nodes, :runs]

    def rows(array: Any, absent: float, units: Any = None) -> Any:
        array = (array[:, None] if array.ndim == 1 else array)[:nodes, :runs]
        array = array if units is None else array.astype(np.float64) * units[:runs]
        return (array if here is None else jnp.where(here, array, absent)).T

    x = rows(state.x, jnp.nan, unit)
    ends = jnp.nanmin(x, axis=1), jnp.nanmax(x, axis=1)
    between = (rows(state.lower, -jnp.inf, unit), rows(state.upper, jnp.inf, unit)) if bounds else ()
    return *ends, x, rows(state.first_inside, NEVER).astype(np.int64), *between


class DeviceRuns:
    """The runs of a batch, on a device."""

    def __init__(self, batch: Batch, device: Any, dtype: DTypeLike = np.float64, bounds: bool = True) -> None:
        """Choose a way and put everything there.

        Args:
            batch: the runs, on the host.
            device: from `find_device`.
            dtype: of all numbers.
            bounds: keep lower and upper up to date, where leaving them out saves time: in the kernels.
        """
        terms, graphs = batch.terms, (batch.graphs,) if isinstance(batch.graphs, Graph) else batch.graphs
        self._batch, self._dtype, self._device = batch, np.dtype(dtype), device
        self._n, self._count = n, count = terms.s.shape
        shared = all(graph is graphs[0] for graph in graphs)
        alike = all((part == part[:, :1]).all() for part in (terms.above, terms.below))
        small, self._size = Small(), (n, count)
        self._large = count == 1 and n >= _LARGE and graphs[0].degree.max() <= _WIDEST
        if shared and alike and not terms.smooth and n <= _UNROLLED:
            lists = tuple(tuple(graphs[0].neighbours(i).tolist()) for i in range(n))
            small = Small(lists, tuple(terms.above[:, 0].tolist()), tuple(terms.below[:, 0].tolist()))
            self._size = n, -(-count // _RUNS) * _RUNS
        if self._large:  # one node more at least: the one that stands for missing neighbours
            self._size = -(-(n + 1) // _NODES) * _NODES, 1
        interpret, nodes = device.platform == "cpu", n if self._large else None
        self._program = DeviceProgram(batch.theta, terms.smooth, small, nodes, bounds, interpret)
        neighbours = None if small.lists else self._lists(graphs[:1] if shared else graphs)
        self._arrays = self._broadcast(terms), self._put_runs(batch.c), neighbours
        self._graph = graphs[0]

    def run(self, last: int, stop: Stop) -> DeviceEnd:
        """Every run to its end, on the device.

        Args:
            last: iterations at most.
            stop: when a run ends; one that a search ends, when that may begin.
        """
        with jax.enable_x64(True):
            S, R = self._start()
            state = begin(S, R, self._arrays[0], smooth=self._program.smooth)
            if isinstance(stop, Exact):
                return DeviceEnd(*self._run_close(state, last - 1))
            return DeviceEnd(*self._run_on(state, last - 1, isinstance(stop, Certified)))

    def _start(self) -> tuple[Any, Any]:
        """S(0) and R(0), brought there or drawn there."""
        start = self._batch.start
        if isinstance(start, Sums):
            mode = "constant" if self._large else "edge"
            return self.put(self._pad(start.S, mode)), self.put(self._pad(start.R, mode))
        assert start is not None
        mu, sigma = (self._put_runs(part, np.float64) for part in (start.mu, start.sigma))
        key, runs = start.normals.key, self._put_runs(start.normals.runs)
        key = self.put(key) if key.ndim == 1 else self._put_runs(key)
        lists = self._arrays[2] if self._large else lists_of(self._graph, self._device)
        S, R = draw_sums(lists, key, runs, mu, sigma, nodes=self._n)
        S, R = (sums.astype(self._dtype) for sums in (S, R))
        return (S[:, 0], R[:, 0]) if self._large else (S, R)

    def _run_on(self, state: DeviceState, final: int, watch: bool) -> tuple[DeviceState, Any]:
        left, at = jnp.ones(self._size[1], np.bool_), jnp.full(self._size[1], final)
        test = self._make_test() if watch else None
        t = 0
        while t < final:
            if test is not None:
                x = state.x[: self._n, None] if self._large else state.x
                found = left & holds(x, test, smooth=self._program.smooth)
                left, at = left & ~found, jnp.where(found, t, at)
                if not left.any():
                    break
            steps = min(LOOK, final - t) if watch else final - t
            after = self._advance(state, t, steps)
            state = after if self._count == 1 or not watch else _keep(left, after, state)
            t += steps
        return state, at

    def _run_close(self, state: DeviceState, final: int) -> tuple[DeviceState, Any, Near]:
        batch, program = self._batch, self._program
        close, diameter = (self._put_runs(array) for array in (batch.close, batch.diameter))
        first, alike = int(batch.diameter.min()), bool((batch.diameter == batch.diameter[0]).all())
        if final < first:
            none = jnp.zeros(self._size[1], np.bool_)
            nothing = jnp.zeros(self._size[1], self._dtype)
            return self._advance(state, 0, final), none + final, Near(none, none, nothing, nothing)
        if program.small.lists:
            state, near = finish_small(state, jnp.int32(final), close, self._arrays, program=program, epoch=first + 1)
            return state, near.at, near
        ends, steps = Ends(final, diameter, close, self._present()), first + 1 if alike else 1
        state, near, left, t = finish(state, ends, self._arrays, program=program, first=first, steps=steps)
        steps = final - int(t)
        if steps > 0 and left.any():
            after = self._advance(state, int(t), steps)
            state = after if self._count == 1 else _keep(left, after, state)
        return state, near.at, near

    def _make_test(self) -> Test:
        batch, s = self._batch, self._arrays[0][0]
        return Test(
            s=s[: self._n, None] if self._large else s,
            whole_weights=self._put_runs(batch.whole_weights),
            present=self._present(),
            below=self._put_runs(batch.needed_below),
            above=self._put_runs(batch.needed_above),
            tolerance=self._put_runs(batch.tolerance),
        )

    def _present(self) -> Any:
        return None if self._batch.present is None else self._put_runs(self._batch.present)

    def _advance(self, state: DeviceState, t: int, steps: int) -> DeviceState:
        """From iteration t to t + steps."""
        return self._program.advance(state, jnp.int32(t), steps, self._arrays)

    def fetch(self, end: DeviceEnd) -> DeviceOutcome:
        """All of it, on the host."""
        with jax.enable_x64(True):
            return self._fetch(*end)

    def inside(self, end: DeviceEnd) -> Bools:
        """Which nodes of the one run ever sent their own value, on the host."""
        return np.asarray(end.state.first_inside != NEVER).reshape(-1)[: self._n]

    def last_x(self, end: DeviceEnd) -> Array:
        """The last x of the one run, in working units, on the host."""
        return np.asarray(end.state.x, np.float64).reshape(-1)[: self._n]

    def _fetch(self, state: DeviceState, at: Any, near: Near | None) -> DeviceOutcome:
        certified = jnp.zeros(self._count, np.bool_)
        if near is None:
            x = state.x[: self._n, None] if self._large else state.x
            certified = holds(x, self._make_test(), smooth=self._program.smooth)[: self._count]
        unit, bounds = self._put_runs(self._batch.unit, np.float64), self._program.bounds
        least, most, *rows = jax.device_get(
            read_out(state, unit, self._present(), nodes=self._n, runs=self._count, bounds=bounds)
        )
        if not bounds:
            rows += [np.broadcast_to(end, (self._count, self._n)) for end in (-np.inf, np.inf)]
        iterations = np.array(at)[: self._count].astype(np.int64) + 1
        if near is not None:
            known, _, low, high = (np.array(part)[: self._count] for part in near)
            low, high = (end.astype(np.float64) * self._batch.unit for end in (low, high))
            near = Near(known.astype(np.bool_), iterations - 1, low, high)
        middle, (x, first, lower, upper) = least / 2 + most / 2, rows
        return DeviceOutcome(iterations, np.array(certified), middle, most - least, x, first, lower, upper, near)

    def put(self, array: Any, dtype: Any = None) -> Any:
        """An array on the device, numbers in the precision asked for."""
        array = np.asarray(array)
        with jax.enable_x64(True):
            return jax.device_put(
                array.astype(dtype or self._dtype, copy=False) if array.dtype.kind == "f" else array, self._device
            )

    def _put_runs(self, array: Any, dtype: Any = None) -> Any:
        """Whole programs of them, by repeating the last run; or the one entry for all."""
        array = np.broadcast_to(array, (*array.shape[:-1], self._count))
        room = [(0, 0)] * (array.ndim - 1) + [(0, self._size[1] - self._count)]
        return self.put(np.pad(array, room, mode="edge"), dtype)

    def _pad(self, array: Any, mode: str = "edge") -> Any:
        """To whole programs: runs by repeating the last, nodes by ones of no consequence."""
        size = self._size if array.shape[1] == self._count else (self._size[0], 1)  # one entry for all runs
        room = [(0, whole - here) for whole, here in zip(size, array.shape, strict=True)]
        padded = np.pad(array, room, mode=mode)  # type: ignore[call-overload]
        return padded[:, 0] if self._large else padded

    def _broadcast(self, terms: Terms) -> tuple[Any, ...]:
        rest = (terms.above, terms.below, terms.weight, terms.cd)
        if not self._large:
            return tuple(self.put(self._pad(part)) for part in (terms.s, *rest))
        # A node that is not there has to stay at x = 0: with no slopes that pull, and a weight to divide by.
        ways = ("constant", "constant", "edge", "edge")
        kept = [
            part[:1, 0] if (part == part[0]).all() else self._pad(part, way)
            for part, way in zip(rest, ways, strict=True)
        ]
        return tuple(map(self.put, (self._pad(terms.s, "constant"), *kept)))

    def _lists(self, graphs: Sequence[Graph]) -> Any:
        n = self._n
        if len(graphs) > 1:
            dense, (source, target) = join(graphs, n)
            if dense is not None:
                return Neighbours(dense=self.put(dense))
            order = np.argsort(source, kind="stable")
            return Neighbours(joined=(self.put(source[order]), self.put(target[order])))
        (graph,) = graphs
        if graph.is_complete:
            return Neighbours()
        if graph.degree.max() > _WIDEST:
            return Neighbours(ends=(self.put(graph.source), self.put(graph.target)))
        return (
            lists_of(graph, self._device, self._size[0])
            if self._large
            else Neighbours(lists=lists_of(graph, self._device))
        )
