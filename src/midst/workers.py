"""Many independent tasks: in this process, in several, or on a cluster. Who computes them changes no result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from importlib import import_module
from multiprocessing import get_context
from typing import Any, TypeVar

from midst.errors import InputError, MissingExtra

Task = TypeVar("Task")
Done = TypeVar("Done")
TaskProgress = Callable[[int, int], None]

DEADLINE = 10  # seconds in which a cluster has to answer
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_CHUNKS = 16  # a worker asks for tasks about so often: few enough to be cheap, enough to see progress


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    with _processes(workers) as pool:
        return _watched(pool.map(function, tasks, chunksize=size), len(tasks), progress)


def run_as_done(function: Callable[[Task], Done], tasks: Sequence[Task], workers: int = 1) -> Iterator[Done]:
    """The function of every task, in no order: each as soon as it is done, so that it can be kept before the rest."""
    workers = min(workers, len(tasks))
    if workers <= 1:
        yield from map(function, tasks)
        return
    with _processes(workers) as pool:
        try:
            yield from (future.result() for future in as_completed([pool.submit(function, task) for task in tasks]))
        finally:  # whoever stops early waits for what is running, and for nothing else
            pool.shutdown(cancel_futures=True)


@contextmanager
def on_cluster(address: str) -> Iterator[Callable[[Callable[[Task], Done], Sequence[Task]], Iterator[Done]]]:
    """The like of `run_as_done` on a Dask cluster, once that has answered.

    Raises:
        InputError: nobody answers there before the deadline, or it has no workers.
        MissingExtra: Dask is not installed.
    """
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise MissingExtra("Dask", "cluster") from None
    try:
        client = dask.Client(address, timeout=DEADLINE, set_as_default=False)
    except (OSError, ValueError, TypeError):
        raise InputError(f"no Dask cluster answers at {address} within {DEADLINE} s; check the address") from None

    def run(function: Callable[[Task], Done], tasks: Sequence[Task]) -> Iterator[Done]:
        futures = client.map(function, tasks, pure=False)
        return (done for _, done in dask.as_completed(futures, loop=client.loop, with_results=True))

    with closing(client):
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise InputError(f"the Dask cluster at {address} has no workers; start some first")
        yield run


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes leave the cores to each other: NumPy's own threads would fight over them."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        with ProcessPoolExecutor(count, get_context("spawn")) as pool:
            yield pool
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
