"""A system without what only POSIX has, for processes of a test: put on PYTHONPATH as `sitecustomize`.

Modules that Windows lacks cannot be imported, functions that it lacks are gone, its loops take no signals, and
`msvcrt` locks bytes of a file, by a lock of this system's.
"""

from __future__ import annotations

import asyncio
import multiprocessing.util  # noqa: F401  (what the library itself has taken from below stays with it)
import os
import signal
import socket
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
import types

_fcntl = __import__("fcntl")


def _locking(handle: int, mode: int, count: int) -> None:
    assert (count, os.lseek(handle, 0, os.SEEK_CUR)) == (1, 0), "it locks from where it stands"
    try:
        _fcntl.flock(handle, _fcntl.LOCK_UN if mode == 0 else _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None


class _Nowhere:
    """Refuses to find what is not there on Windows."""

    names = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty")

    def find_spec(self, name: str, *_: object) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _no_handler(*_: object) -> None:
    raise NotImplementedError


for name in _Nowhere.names:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, _Nowhere())  # type: ignore[arg-type]
msvcrt = types.ModuleType("msvcrt")
msvcrt.__dict__.update(locking=_locking, LK_UNLCK=0, LK_LOCK=1, LK_NBLCK=2)
sys.modules["msvcrt"] = msvcrt
for name in """fork forkpty geteuid getuid getegid getgid getpgid killpg setsid sysconf sched_getaffinity fdatasync
        pread getxattr O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK""".split():
    if hasattr(os, name):
        delattr(os, name)
for name in "SIGHUP SIGUSR1 SIGUSR2 SIGALRM pthread_sigmask sigpending".split():
    delattr(signal, name)
socket.SO_EXCLUSIVEADDRUSE = -5  # type: ignore[attr-defined]
for loop in (asyncio.SelectorEventLoop, asyncio.get_event_loop_policy()._loop_factory):  # type: ignore[attr-defined]
    loop.add_signal_handler = loop.add_reader = _no_handler
