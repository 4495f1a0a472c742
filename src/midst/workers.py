"""Many independent tasks on several processes; the same results, in the same order, for any number of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Done = TypeVar("Done")
TaskProgress = Callable[[int, int], None]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CHUNKS = 16  # a worker asks for tasks about so often: few enough to be cheap, enough to see progress


def run_in_parallel(
    function: Callable[[Task], Done], tasks: Iterable[Task], workers: int = 1, progress: TaskProgress | None = None
) -> list[Done]:
    """The function of every task, in order.

    Args:
        function: of a module, so that another process can find it.
        tasks: what it is called with.
        workers: how many processes; 1 stays in this one.
        progress: told how many tasks of how many are done.
    """
    tasks = list(tasks)
    workers = min(workers, len(tasks))
    if workers <= 1:
        return _watched(map(function, tasks), len(tasks), progress)
    size = max(1, len(tasks) // (workers * _CHUNKS))
    with _one_thread_each(), ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return _watched(pool.map(function, tasks, chunksize=size), len(tasks), progress)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside leave the cores to each other: NumPy's own threads would fight over them."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _watched(results: Iterable[Done], total: int, progress: TaskProgress | None) -> list[Done]:
    done = []
    for result in results:
        done.append(result)
        if progress is not None:
            progress(len(done), total)
    return done
