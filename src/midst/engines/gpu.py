"""Runs on a device, through JAX: the same step (`step.py`), and nothing copied back before the end.

Rules:
- Arrays are (n, runs), and arguments of the compiled function, never closed over.
- z(0) is drawn there where all runs share a listed graph of few neighbours a node, else on the CPU. The numbers are the
  same, but for a last bit now and then.
- Exposure, bounds and the ends of runs are computed there. Runs that a search ends leave the device once all x are
  close, each in the very iteration in which it does elsewhere; the search is the CPU's. A certificate is looked for
  every `LOOK` iterations, so a run may go on for so many after the one in which `solve` finds it.
- A run that has ended keeps the state of its last iteration while the others go on.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from midst.engines.batches import Batch, BatchSettings, ToDraw, columns_of, join, make_batch
from midst.errors import InputError, MissingExtra
from midst.graphs import Graph
from midst.methods import After, Certified, Consensus, Exact, Stop
from midst.normals import EdgeNormals, edge_words, normal_pairs
from midst.problems import Problem
from midst.protocol.certificate import ROUNDING, known_at
from midst.protocol.step import Terms, next_sums, next_x
from midst.system import Sums
from midst.types import Array, Bools

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    raise MissingExtra("JAX", "gpu") from None

NEVER = -1
LOOK = 64
_WIDEST = 64  # neighbours of a node at most, where z(0) is drawn on the device
_UNROLLED = 32  # neighbours that one operation adds up: an array of any more is slow, a program of many more grows long
_NOT_YET = 2**31 - 1  # the last iteration of a run for which none is known

for _kind, _static in ((Sums, []), (Terms, ["smooth"]), (Batch, ["graphs", "theta"])):
    _arrays = [field.name for field in fields(_kind) if field.name not in _static]
    jax.tree_util.register_dataclass(_kind, _arrays, _static)


class DeviceState(NamedTuple):
    """Where the runs stand, in working units: (n, runs), and the last three (runs,).

    Attributes:
        S: see `step.next_sums`.
        R: likewise.
        x: of the last iteration.
        first_inside: the first iteration in which each node sent its value, or `NEVER`.
        lower: the greatest x sent from below the value.
        upper: the least x sent from above.
        last: the iteration that ends the run, once that is known.
        low: the smallest x of the sample that was close, where a search is to end the run.
        high: the largest.
    """

    S: Any
    R: Any
    x: Any
    first_inside: Any
    lower: Any
    upper: Any
    last: Any
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


def can_draw(graph: Graph) -> bool:
    """Whether a device draws z(0) of runs on this graph by itself."""
    return graph.ends is not None and int(graph.degree.max()) <= _WIDEST


def run(batch: Batch, device: Any, limit: int, stop: Stop) -> tuple[DeviceState, Bools]:
    """Take every run from iteration 0 to its end.

    Args:
        batch: the runs, on the host.
        device: from `find_device`.
        limit: iterations at most.
        stop: when a run ends; one that a search ends, when that may begin.

    Returns:
        The state of each run in its last iteration, on the device; and which runs have come to their stop.
    """
    terms, graphs = batch.terms, (batch.graphs,) if isinstance(batch.graphs, Graph) else batch.graphs
    shared = all(graph is graphs[0] for graph in graphs)
    complete = shared and graphs[0].is_complete
    above, below, weight, cd = map(_once, (terms.above, terms.below, terms.weight, terms.cd))
    terms = Terms(terms.s, above, below, weight, cd, terms.smooth)
    with jax.enable_x64(True):
        there = jax.device_put(replace(batch, graphs=(), terms=terms), device)
        lists = None
        if not (complete and isinstance(batch.start, Sums)):
            lists = _list_neighbours(graphs[:1] if shared else graphs, len(terms.s), device)
        every = _every(stop, batch)
        state, stopped = _finish(there, lists, jnp.int32(limit - 1), stop=type(stop), complete=complete, every=every)
        return state, np.asarray(stopped)


def _every(stop: Stop, batch: Batch) -> int:
    """How many iterations lie between two looks at where the runs stand; each look waits for the device."""
    if not isinstance(stop, Exact):
        return LOOK
    sampled = np.unique(batch.diameter) + 1
    return int(sampled[0]) if len(sampled) == 1 else 1


def _once(part: Array) -> Array:
    """One row for all nodes, where it is the same for all."""
    return part[:1] if (part == part[:1]).all() else part


def _list_neighbours(graphs: tuple[Graph, ...], nodes: int, device: Any) -> Any:
    """The neighbours of each node, (width, n); of a graph a run, those of each place in an array of (nodes, runs)."""
    if len(graphs) == 1:
        degree, target = graphs[0].degree, graphs[0].target
    else:
        source, target = join(graphs, nodes)[1]
        degree, target = np.bincount(source, minlength=nodes * len(graphs)), target[np.argsort(source, kind="stable")]
    target = target.astype(np.int32 if len(degree) < _NOT_YET else np.int64)
    return _pad_lists(*(jax.device_put(array, device) for array in (target, degree)), width=int(degree.max()))


@partial(jax.jit, static_argnames="width")
def _pad_lists(target: Any, degree: Any, *, width: int) -> Any:
    """Lists of one length: a missing neighbour is n."""
    place, k = jnp.cumsum(degree) - degree, jnp.arange(width)[:, None]
    return jnp.where(k < degree, target[jnp.minimum(place + k, len(target) - 1)], len(degree))


def _draw(start: ToDraw, lists: Any) -> tuple[Any, Any]:
    """S(0) and R(0) of runs on one graph, (n, runs), as `system.draw_z0` draws them edge by edge."""
    i, n = jnp.arange(lists.shape[1]), lists.shape[1]
    mu, sigma, (key, runs) = start

    def add(k: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
        j = lists[k]
        first, second = normal_pairs(key, edge_words(jnp.minimum(i, j), jnp.maximum(i, j))[:, None], runs)
        outward, here = (i < j)[:, None], (j < n)[:, None]
        mine, other = jnp.where(outward, first, -second), jnp.where(outward, -second, first)
        S, R = sums
        return S + jnp.where(here, mu + sigma * mine, 0.0), R + jnp.where(here, mu + sigma * other, 0.0)

    blank = jnp.zeros((n, len(runs)))
    S, R = lax.fori_loop(0, len(lists), add, (blank, blank))
    return S, R


@partial(jax.jit, static_argnames=("stop", "complete", "every"))
def _finish(
    batch: Batch, lists: Any, final: Any, *, stop: type[Stop], complete: bool, every: int
) -> tuple[DeviceState, Any]:
    """See `run`; `final` is the iteration beyond which no run goes."""
    start: Any = batch.start
    S, R = (start.S, start.R) if isinstance(start, Sums) else _draw(start, lists)
    terms, runs = batch.terms, S.shape[1]

    def sum_neighbours(x: Any) -> Any:
        if complete:
            return x.sum(axis=0) - x
        rows, unroll = x.reshape(lists.shape[1], -1), min(_UNROLLED, len(lists))

        def add(a: Any, near: Any) -> tuple[Any, None]:
            return a + rows.at[near].get(mode="fill", fill_value=0.0), None

        return lax.scan(add, jnp.zeros_like(rows), lists, unroll=unroll)[0].reshape(x.shape)

    def arrive(t: Any, S: Any, R: Any, before: DeviceState) -> DeviceState:
        """Iteration t, from its sums and what was gathered before it."""
        x, branch = next_x(S, terms)
        first = jnp.where((branch == 0) & (before.first_inside == NEVER), t, before.first_inside)
        lower = jnp.where(branch < 0, jnp.maximum(before.lower, x), before.lower)
        upper = jnp.where(branch > 0, jnp.minimum(before.upper, x), before.upper)
        return DeviceState(S, R, x, first, lower, upper, *before[-3:])

    def step(_: Any, now: tuple[Any, DeviceState]) -> tuple[Any, DeviceState]:
        t, state = now
        sums = next_sums(state.S, state.R, state.x, sum_neighbours(state.x), terms.cd, batch.c, batch.theta)
        after, left = arrive(t + 1, *sums, state), t < jnp.minimum(state.last, final)
        return t + 1, DeviceState(*(jnp.where(left, new, old) for new, old in zip(after, state, strict=True)))

    def look(now: tuple[Any, DeviceState]) -> tuple[Any, DeviceState]:
        t, state = now
        return t, DeviceState(*state[:-3], *_find_end(t, state.x, state, batch, stop))

    def go_on(now: tuple[Any, DeviceState]) -> Any:
        t, state = now
        return (t < final) & (t < state.last).any()

    never, nothing = jnp.full(S.shape, NEVER, jnp.int32), jnp.zeros(runs)
    bounds = jnp.full(S.shape, -jnp.inf), jnp.full(S.shape, jnp.inf)
    blank = DeviceState(S, R, S, never, *bounds, jnp.full(runs, _NOT_YET), nothing, nothing)
    begun = jnp.int32(0), arrive(jnp.int32(0), S, R, blank)
    begun = look(lax.fori_loop(0, every - 1, step, begun) if stop is Exact else begun)
    state: DeviceState = lax.while_loop(go_on, lambda now: look(lax.fori_loop(0, every, step, now)), begun)[1]
    return state._replace(last=jnp.minimum(state.last, final)), state.last <= final


def _find_end(t: Any, x: Any, before: DeviceState, batch: Any, stop: type[Stop]) -> tuple[Any, Any, Any]:
    """The last three of a state, after iteration t."""
    if stop is After:
        return before[-3:]
    least, most = (x if batch.present is None else jnp.where(batch.present, x, end) for end in (jnp.inf, -jnp.inf))
    low, high = least.min(axis=0), most.max(axis=0)
    if stop is Certified:
        end, found = t, _holds(x, high - low, batch)
    else:
        room = batch.close + ROUNDING * jnp.maximum(jnp.abs(low), jnp.abs(high))
        end, found = known_at(t, batch.diameter), ((t + 1) % (batch.diameter + 1) == 0) & (high - low <= room)
    found &= before.last == _NOT_YET
    end, low, high = (jnp.where(found, *pair) for pair in zip((end, low, high), before[-3:], strict=True))
    return end, low, high


def _holds(x: Any, spread: Any, batch: Any) -> Any:
    """The test of `certificate.py`, of each run."""
    s, whole_weights = batch.terms.s, batch.whole_weights
    if batch.terms.smooth:
        return spread + jnp.abs((whole_weights * (x - s)).sum(axis=0) / whole_weights.sum(axis=0)) <= batch.tolerance
    below, above = ((whole_weights * side).sum(axis=0) for side in (s <= x, s >= x))
    return (spread <= batch.tolerance) & (below >= batch.needed_below) & (above >= batch.needed_above)


class LargeEnd(NamedTuple):
    """How one run of a large graph ended.

    Attributes:
        iterations: how many there were.
        close: whether all nodes know that the x are close, where a search is to end the run.
        low: the smallest x that they know of, in the units of the data.
        high: the largest.
        inside: which nodes ever sent their own value.
        x: the last one, in working units.
    """

    iterations: int
    close: bool
    low: float
    high: float
    inside: Bools
    x: Array


def run_large(problem: Problem, method: Consensus, stop: Stop, normals: EdgeNormals) -> LargeEnd:
    """Run one problem on the GPU, for `solve`.

    Args:
        problem: with a number a node, on a graph that is listed, no node of which has very many neighbours.
        method: its parameters.
        stop: when it ends.
        normals: of the run.

    Raises:
        InputError: it is not for a device, or there is none.
    """
    device = find_device("gpu")
    if problem.values.ndim != 1:
        raise InputError("engine gpu takes a number a node; for more, give solve_ensemble(…, device='gpu')")
    if not can_draw(problem.graph):
        raise InputError("engine gpu takes graphs with at most 64 neighbours a node; try engine arrays")
    if method.z0 is not None:
        raise InputError("engine gpu draws z(0) by itself; leave z0 out, or try engine arrays")
    settings = BatchSettings.of(method, stop, runs=1, bounds=False)
    batch = make_batch(columns_of(problem, 1), settings, np.arange(1), normals, draw=False)
    state, stopped = run(batch, device, settings.last, stop)
    low, high = (float(np.array(end)[0] * batch.unit[0]) for end in (state.low, state.high))
    inside, x = np.asarray(state.first_inside)[:, 0] != NEVER, np.asarray(state.x)[:, 0]
    return LargeEnd(int(state.last[0]) + 1, isinstance(stop, Exact) and bool(stopped[0]), low, high, inside, x)
