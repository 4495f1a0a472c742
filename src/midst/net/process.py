"""What a process with private values owes its machine: no dumps of its memory, and no more than there is room for.

Rules:
- A core dump is a copy of the value and the key on disk. Linux is also told that the process is not to be looked into:
  then others of the same user can neither trace it nor read its memory.
- What a node of `midst up` costs was measured: 10 MiB of its own on a ring of 20, 12 among 100, 13.5 among 300, and
  four files of the process that started it. More nodes than there is memory for would make the machine swap for
  minutes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from midst.errors import InputError
from midst.machine import MOST_WAITED, is_limited, limits, memory_of, set_limit

_PR_SET_DUMPABLE = 4
_NODE, _OTHER = 12 * 2**20, 16 * 2**10  # bytes of a node, and more for each node that there is
_SPARED = 0.9  # of the memory that is available
_FILES, _OTHER_FILES = 4, 64  # a node, in the process that starts it (and its own, on a complete graph), and in all
_UNLIMITED = 2**60  # as control groups write it


def forbid_dumps() -> None:
    """From now on nothing of this process's memory gets to disk when it dies, nor to others of the same user."""
    set_limit("CORE", 0)
    import ctypes

    with suppress(OSError, AttributeError, TypeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def make_room(nodes: int, ports: int) -> None:
    """Sees to it that so many nodes can be started from this process, if so many ports may be had.

    Raises:
        InputError: the machine cannot hold them; says how many it can.
    """
    soft, hard = limits("NOFILE")
    room, why = min(_limits(ports, hard))
    if nodes > room:
        raise InputError(f"{nodes} nodes are too many: {why}; try {room}, or midst run, which simulates them")
    needed = _FILES * nodes + _OTHER_FILES
    if soft < needed:
        set_limit("NOFILE", needed)


def _limits(ports: int, files: float) -> Iterator[tuple[int, str]]:
    """How many nodes there is room for, by each thing that they need, and in words why."""
    yield ports, f"there are {ports:,} ports for them"
    if files < math.inf:
        yield int(files - _OTHER_FILES) // _FILES, f"a process may have {files:,} files open (ulimit -Hn)"
    if not math.isinf(MOST_WAITED):
        yield int(MOST_WAITED), f"this system cannot wait for more than {MOST_WAITED} processes"
    memory = _memory()
    if memory is not None:
        room = (math.sqrt(_NODE**2 + 4 * _OTHER * _SPARED * memory) - _NODE) / (2 * _OTHER)
        yield int(room), f"{memory / 2**30:.1f} GiB of memory are free, and each takes {_NODE // 2**20} MiB or more"
    processes, _ = limits("NPROC")
    if processes < math.inf and is_limited():
        yield max(0, int(processes) - _running()), f"you may have {processes:,} processes (ulimit -u)"
    for folder in _groups("pids"):
        most, now = _number(folder / "pids.max"), _number(folder / "pids.current")
        if most is not None:
            yield max(0, most - (now or 0)), f"this group of processes may have {most:,} (pids.max)"


def _memory() -> int | None:
    """Bytes of memory that can still be had; None where nobody says."""
    found: list[int] = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    free = memory_of("SC_AVPHYS_PAGES")
    if not found and free is not None:
        found.append(free)
    for folder in _groups("memory"):
        for most, now in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            limit, used = _number(folder / most), _number(folder / now)
            if limit is not None and used is not None and limit < _UNLIMITED:
                found.append(max(0, limit - used + _reclaimable(folder)))
    return min(found, default=None)


def _reclaimable(folder: Path) -> int:
    """Bytes of a group's memory that hold files, which can be read again."""
    with suppress(OSError, ValueError):
        said = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(said.get("total_inactive_file", said.get("inactive_file", 0)))
    return 0


def _groups(controller: str) -> list[Path]:
    """The folders of the control group that this process is in."""
    root, found = Path("/sys/fs/cgroup"), []
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                found.append(root / path.lstrip("/"))
            elif controller in controllers.split(","):
                # Seen from inside a container the path may be the host's, and not be there.
                found += [root / controller / path.lstrip("/"), root / controller]
    return found


def _number(file: Path) -> int | None:
    """What a file of the kernel says; None for "max", and where there is none."""
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return None


def _running() -> int:
    """How many processes and threads this user has."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended, or /proc is not Linux's
            if process.stat().st_uid == os.geteuid():
                count += len(os.listdir(process / "task"))
    return count
