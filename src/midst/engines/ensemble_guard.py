"""The guard in many runs at once: `update.step_aside`, with a last axis of runs.

Run k draws the numbers that `System.guard_draws` gives it alone, some iterations ahead: asking every run's generator in
every iteration would take longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from midst.engines.batches import Batch
from midst.system import Guard, guard_seed
from midst.update import Array, Branch, step_aside

_AHEAD = 32  # iterations


@dataclass(eq=False, repr=False)
class Guarding:
    """The guard of all runs; the last axis of every array is the run.

    Attributes:
        schedule: of the distances.
        rngs: one a run.
        moves: how often each node has stepped aside.
        draws: the random numbers of the next iterations.
    """

    schedule: Guard
    rngs: tuple[np.random.Generator, ...]
    moves: NDArray[np.int64]
    draws: Array

    @classmethod
    def start(cls, schedule: Guard, batch: Batch, streams: Sequence[np.random.Generator]) -> Guarding:
        """Before iteration 0.

        Args:
            schedule: of the distances.
            batch: the runs.
            streams: each run's stream for this purpose.
        """
        rngs = tuple(np.random.default_rng(guard_seed(stream)) for stream in streams)
        return cls(schedule, rngs, np.zeros(batch.S.shape, np.int64), np.zeros((_AHEAD, *batch.S.shape)))

    def step(
        self, t: NDArray[np.int64], S: Array, x: Array, branch: Branch, batch: Batch
    ) -> tuple[Array, NDArray[np.bool_]]:
        """What is sent in iteration t of each run, and where that is not x."""
        at = t % _AHEAD
        for k in np.flatnonzero(at == 0).tolist():
            nodes = batch.graphs[k].n
            self.draws[:, :nodes, k] = self.rngs[k].random((_AHEAD, nodes))
        drawn = self.draws[at[0]] if (at == at[0]).all() else np.take_along_axis(self.draws, at[None, None], axis=0)[0]
        u = 0.5 + 0.5 * drawn
        distances = _distances(self.schedule, int(self.moves.max()).bit_length())
        distance = distances[self.moves] * batch.scale
        sent, moved = step_aside(S, batch.terms, x, branch, distance, u)
        self.moves += moved
        return sent, moved


@lru_cache(maxsize=64)
def _distances(schedule: Guard, bits: int) -> Array:
    """Those after 0, 1, … moves, as many as have numbers of so many bits: powers are slow."""
    return schedule.distance(np.arange(2**bits))
