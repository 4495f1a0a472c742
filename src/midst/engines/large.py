"""One run of a large graph on a device, for `solve`: everything stays there until it is asked for.

Rules:
- z(0) is drawn there, by the numbers that `solve` draws on the host; values and neighbours are brought there once.
- No iteration is recorded. Who was ever inside is known, and the last x, where it is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from midst.engines import gpu
from midst.engines.batches import BatchSettings, columns_of, make_batch
from midst.errors import InputError
from midst.methods import Consensus, Stop
from midst.normals import EdgeNormals
from midst.problems import Problem
from midst.types import Array, Bools


class LargeRun:
    """A run that has come to its end.

    Attributes:
        iterations: how many there were.
        close: whether all nodes know that the x are close, where a search is to end the run.
        low: the smallest x that they know of, in the units of the data.
        high: the largest.
    """

    def __init__(self, problem: Problem, method: Consensus, stop: Stop, normals: EdgeNormals) -> None:
        """Run it.

        Args:
            problem: with a number a node, on a graph that is listed, no node of which has very many neighbours.
            method: its parameters.
            stop: when it ends.
            normals: of the run.

        Raises:
            InputError: it is not for a device, or there is none.
        """
        device, graph = gpu.find_device("gpu"), problem.graph
        if problem.values.ndim != 1:
            raise InputError("engine gpu takes a number a node; for more, give solve_ensemble(…, device='gpu')")
        if not gpu.can_draw(graph):
            raise InputError("engine gpu takes graphs with at most 64 neighbours a node; try engine arrays")
        if method.z0 is not None:
            raise InputError("engine gpu draws z(0) by itself; leave z0 out, or try engine arrays")
        settings = BatchSettings.of(method, stop, runs=1, bounds=False)
        batch = make_batch(columns_of(problem, 1), settings, np.arange(1), normals, draw=False)
        self._runs = gpu.DeviceRuns(batch, device, bounds=False)
        self._end = self._runs.run(settings.last, stop)
        self._unit = batch.unit[0]
        near = self._end.near
        self.iterations = int(np.array(self._end.at)[0]) + 1
        self.close = near is not None and bool(np.array(near.known)[0])
        self.low, self.high = (0.0, 0.0) if near is None else (self._number(near.low), self._number(near.high))

    def _number(self, array: Any) -> float:
        return float(np.array(array)[0] * self._unit)

    @property
    def inside(self) -> Bools:
        """Which nodes ever sent their own value."""
        return self._runs.inside(self._end)

    @property
    def x(self) -> Array:
        """The last one, in working units."""
        return self._runs.last_x(self._end)
