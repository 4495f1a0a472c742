"""Who computes the cells: this process, several of them, or a cluster. The numbers are the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from midst.errors import InputError, MissingExtra
from midst.studies.sweep.cells import Task, compute
from midst.types import Row

Done = Iterator[tuple[int, list[Row]]]

DEADLINE = 10  # seconds in which a cluster has to answer


def on_this_machine(tasks: Iterable[Task], workers: int) -> Done:
    """Cells as they are done, in no order.

    Raises:
        MissingExtra: several processes were asked for, and joblib is not installed.
    """
    if workers == 1:
        yield from map(compute, tasks)
        return
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise MissingExtra("joblib", "sweep") from None
    yield from Parallel(n_jobs=workers, return_as="generator_unordered")(delayed(compute)(task) for task in tasks)


class Cluster:
    """A Dask cluster that has answered."""

    def __init__(self, address: str) -> None:
        """Connect.

        Raises:
            InputError: nobody answers there before the deadline, or it has no workers.
            MissingExtra: Dask is not installed.
        """
        try:
            self._dask: Any = import_module("distributed")
        except ImportError:
            raise MissingExtra("Dask", "cluster") from None
        try:
            self._client = self._dask.Client(address, timeout=DEADLINE, set_as_default=False)
        except (OSError, ValueError, TypeError):
            raise InputError(f"no Dask cluster answers at {address} within {DEADLINE} s; check the address") from None
        self.workers = len(self._client.scheduler_info(n_workers=-1)["workers"])
        if not self.workers:
            self.close()
            raise InputError(f"the Dask cluster at {address} has no workers; start some first")

    def close(self) -> None:
        """Let go of it."""
        self._client.close()

    def compute(self, tasks: Iterable[Task]) -> Done:
        """Cells as they are done, in no order."""
        futures = self._client.map(compute, list(tasks), pure=False)
        for _, result in self._dask.as_completed(futures, loop=self._client.loop, with_results=True):
            yield result
