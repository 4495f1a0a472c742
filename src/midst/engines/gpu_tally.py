"""The count of `counting.py` on a device: `ensemble_tally.Tallies`, as whole arrays and without a choice of indices.

All runs on a device are in the same iteration, so t is one number.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from midst.engines.ensemble_tally import NOBODY, NOT_YET


class Agreed(NamedTuple):
    """What does not change in a run; see `Tallies`, whose attributes these are."""

    s: Any
    counts: Any
    depth: Any
    parent: Any
    height: Any
    root: Any
    ready: Any
    patience: Any
    most_below: Any
    most_above: Any


class Tally(NamedTuple):
    """Where the counts stand; see `Tallies`, whose attributes these are."""

    since: Any
    first: Any
    low: Any
    high: Any
    told_low: Any
    told_high: Any
    number: Any
    holder: Any
    value: Any
    announced: Any
    decided: Any
    found: Any


def see(agreed: Agreed, tally: Tally, t: Any, branch: Any) -> tuple[Tally, Any]:
    """Iteration t: where the counts stand then, and in which runs every node knows the proof."""
    tally = tally._replace(since=jnp.where(branch == 0, jnp.minimum(tally.since, t), NOBODY))
    tally = _announce(agreed, _line_up(agreed, _decide(agreed, _spread_bounds(agreed, tally, t), t), t), t)
    return tally, tally.found & (t >= tally.decided + agreed.height)


def _spread_bounds(agreed: Agreed, tally: Tally, t: Any) -> Tally:
    reached = (tally.decided != NOT_YET) & (agreed.depth == t - tally.decided)
    return tally._replace(
        low=jnp.where(reached, tally.told_low, tally.low), high=jnp.where(reached, tally.told_high, tally.high)
    )


def _decide(agreed: Agreed, tally: Tally, t: Any) -> Tally:
    due = (tally.announced != NOT_YET) & ~tally.found & (t == tally.announced + 2 * agreed.height)
    below = (agreed.counts * (agreed.s < tally.value)).sum(axis=0)
    above = (agreed.counts * (agreed.s > tally.value)).sum(axis=0)
    lies_below = below > agreed.most_below
    lies_above = ~lies_below & (above > agreed.most_above)
    found = tally.found | (due & ~lies_below & ~lies_above)
    told_high = jnp.where(due & lies_below, tally.value, tally.told_high)
    told_low = jnp.where(due & lies_above, tally.value, tally.told_low)
    at_root = due & (jnp.arange(len(agreed.s))[:, None] == agreed.root)
    return tally._replace(
        found=found,
        told_high=told_high,
        told_low=told_low,
        low=jnp.where(at_root, told_low, tally.low),
        high=jnp.where(at_root, told_high, tally.high),
        announced=jnp.where(due & ~found, NOT_YET, tally.announced),
        decided=jnp.where(due, t, tally.decided),
    )


def _line_up(agreed: Agreed, tally: Tally, t: Any) -> Tally:
    n, runs = agreed.s.shape
    node, run = jnp.arange(n)[:, None], jnp.broadcast_to(jnp.arange(runs), (n, runs))
    value = agreed.s[tally.first % n, run]
    above = tally.low[agreed.parent, run], tally.high[agreed.parent, run]
    climbing = (tally.first != NOBODY) & (agreed.parent != node) & (t >= agreed.depth)
    arriving = jnp.where(climbing & (above[0] < value) & (value < above[1]), tally.first, NOBODY)
    proposing = (tally.since <= t + 1 - agreed.patience) & (tally.low < agreed.s) & (agreed.s < tally.high)
    own = jnp.where(proposing, tally.since * n + node, NOBODY)
    return tally._replace(first=own.at[agreed.parent, run].min(arriving))


def _announce(agreed: Agreed, tally: Tally, t: Any) -> Tally:
    n, runs = agreed.s.shape
    run = jnp.arange(runs)
    first = tally.first[agreed.root, run]
    due = (tally.announced == NOT_YET) & (t >= agreed.ready) & (first != NOBODY)
    holder = jnp.where(due, first % n, tally.holder)
    return tally._replace(
        holder=holder,
        value=jnp.where(due, agreed.s[holder, run], tally.value),
        number=tally.number + due,
        announced=jnp.where(due, t, tally.announced),
    )


@partial(jax.jit, static_argnames=("step", "options"))
def run_to_proof(
    state: Any, branch: Any, tally: Tally, agreed: Agreed, last: Any, arrays: Any, *, step: Any, options: Any
) -> tuple[Any, Tally, Any]:
    """Each run to its proof, or to iteration `last` − 1; nothing leaves the device.

    Args:
        state: of iteration 0, of arrays (n, runs).
        branch: likewise.
        tally: before it.
        agreed: what the nodes agreed on.
        last: iterations at most.
        arrays: that the step needs.
        step: from (state, t, arrays, options) to the state of iteration t + 1 and its branch.
        options: of the step that shape the program.

    Returns:
        State and tally of each run's last iteration, and which that was.
    """

    def go_on(now: tuple[Any, ...]) -> Any:
        return now[-1].any()

    def iteration(now: tuple[Any, ...]) -> tuple[Any, ...]:
        t, state, branch, tally, at, left = now
        seen, proved = see(agreed, tally, t, branch)
        tally = _only(left, seen, tally)
        ended = left & (proved | (t + 1 == last))
        left = left & ~ended
        after, branch = step(state, t, arrays, options)
        return t + 1, _only(left, after, state), branch, tally, jnp.where(ended, t, at), left

    runs = agreed.s.shape[1]
    begun = (jnp.int64(0), state, branch, tally, jnp.zeros(runs, np.int64), jnp.ones(runs, np.bool_))
    _, state, _, tally, at, _ = lax.while_loop(go_on, iteration, begun)
    return state, tally, at


def _only(left: Any, after: Any, before: Any) -> Any:
    """What comes after for the runs that are left; the others stay as they are."""
    return jax.tree.map(lambda new, old: jnp.where(left, new, old), after, before)
