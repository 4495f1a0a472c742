"""What operating systems do not have in common; nothing else in midst asks which one it runs on.

Rules:
- What is asked for is the thing itself, a module or a function, and not the system by its name.
- What does not exist on a system and is not missed there is left out: Windows keeps the names in a folder by itself,
  and gives nobody memory that it has not. What is missed and cannot be had is said: who may read a file there
  (`files.check_alone`).
- Windows keeps to itself what is open or locked: a file is closed before another takes its name.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from midst.errors import InputError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from multiprocessing.connection import Connection


def _find(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_fcntl, _resource, _msvcrt = _find("fcntl"), _find("resource"), _find("msvcrt")

FORKS = hasattr(os, "fork")
HAS_MODES = hasattr(os, "geteuid")  # whether a file's mode says who may read it
SHARES_PORTS = not hasattr(socket, "SO_EXCLUSIVEADDRUSE")  # on Windows whoever shares an address takes it away
MOST_WAITED = math.inf if FORKS else 60  # processes of which one can wait for the first that says something
BINARY: int = getattr(os, "O_BINARY", 0)  # for `os.open`: elsewhere than on Windows there is nothing to tell apart
ENDS: frozenset[signal.Signals] = frozenset(  # what tells a process to end, besides Ctrl-C
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)

Limit = Literal["CORE", "NOFILE", "NPROC"]


# Files


def lock(handle: int) -> None:
    """Lock an open file against other processes.

    Raises:
        BlockingIOError: another process has it.
        InputError: files cannot be locked here.
    """
    if _fcntl is not None:
        _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    elif _msvcrt is not None:
        os.lseek(handle, 0, os.SEEK_SET)  # what is locked is the first byte, whether it is there or not
        try:
            _msvcrt.locking(handle, _msvcrt.LK_NBLCK, 1)
        except PermissionError:
            raise BlockingIOError from None
    else:
        raise InputError("this system locks no files, so that two of midst could write one; use another")


def unlock(handle: int) -> None:
    """Let others have it now; a system may take its time over a file that is only closed."""
    if _fcntl is not None:
        _fcntl.flock(handle, _fcntl.LOCK_UN)
    else:
        os.lseek(handle, 0, os.SEEK_SET)
        _msvcrt.locking(handle, _msvcrt.LK_UNLCK, 1)


def sync_data(handle: int) -> None:
    """Wait until what was written is on disk."""
    getattr(os, "fdatasync", os.fsync)(handle)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk, where that is anybody's to wait for."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# This process and its machine


def limits(what: Limit) -> tuple[float, float]:
    """What this process may have, now and at most; infinite where there is no limit."""
    which = getattr(_resource, f"RLIMIT_{what}", None)
    if which is None:
        return math.inf, math.inf
    now, most = (math.inf if each == _resource.RLIM_INFINITY else each for each in _resource.getrlimit(which))
    return now, most


def set_limit(what: Limit, now: int) -> None:
    """Set what this process may have now, where there is such a limit."""
    which = getattr(_resource, f"RLIMIT_{what}", None)
    if which is not None:
        _resource.setrlimit(which, (now, _resource.getrlimit(which)[1]))


def is_limited() -> bool:
    """Whether limits hold for whoever this process runs as: that of processes does not for root."""
    return HAS_MODES and os.geteuid() != 0


def memory_of(pages: Literal["SC_PHYS_PAGES", "SC_AVPHYS_PAGES"]) -> int | None:
    """Bytes of this machine's memory, all or what is free; None where nobody says."""
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    return None


def watch_end(pipe: Connection, action: Callable[[], None]) -> None:
    """Have something done when the other end of a pipe is gone, in which nothing is ever written.

    In the loop that runs; or in a thread, where a loop cannot wait for a pipe, as on Windows.
    """
    from asyncio import get_running_loop

    try:
        get_running_loop().add_reader(pipe.fileno(), action)
    except NotImplementedError:

        def wait() -> None:
            with suppress(OSError, EOFError):
                pipe.recv_bytes()
            action()

        threading.Thread(target=wait, daemon=True).start()


# Signals


@contextmanager
def catching(loop: AbstractEventLoop, actions: Mapping[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Signals become calls in a loop meanwhile; in another thread than the main one they stay what they are."""
    before: dict[signal.Signals, Any] = {}
    for number, action in actions.items():
        with suppress(ValueError, RuntimeError):  # not in the main thread
            try:
                loop.add_signal_handler(number, action)
            except NotImplementedError:  # Windows' loops have none

                def pass_on(*_: object, action: Callable[[], None] = action) -> None:
                    loop.call_soon_threadsafe(action)

                before[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def holding_back(signals: Set[signal.Signals]) -> Iterator[Callable[[], bool]]:
    """Signals wait until the block is over; gives what says whether one does. Who does not fork need not wait."""
    if not hasattr(signal, "pthread_sigmask"):
        yield lambda: False
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield lambda: bool(signal.sigpending() & signals)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def heed_again(signals: Set[signal.Signals]) -> None:
    """Signals do in this process what they do by default, however they were held back or caught where it was forked."""
    for number in signals:
        signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
