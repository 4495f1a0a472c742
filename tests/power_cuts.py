"""What a power cut would leave: file contents as they were last synced, under names as their folder was."""

from __future__ import annotations

import os
import stat

from simnet.disk import Crash

from midst.net import journal


class Watch:
    """Follows every fsync and fdatasync of this process; nothing else counts as on disk."""

    def __init__(self, monkeypatch):
        self.contents, self._names = {}, {}
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._following(getattr(os, name)))

    def left(self, path):
        """The bytes that are sure to be found at a path; None where there might be no such file."""
        folder = os.stat(path.parent).st_ino
        return self.contents.get(self._names.get(folder, {}).get(path.name))

    def holds(self, path):
        """Whether the name of a file or folder is sure to be found where it stands."""
        return self._names.get(os.stat(path.parent).st_ino, {}).get(path.name) == os.stat(path).st_ino

    def _following(self, sync):
        def follow(handle):
            sync(handle)
            about = os.fstat(handle)
            if stat.S_ISDIR(about.st_mode):
                self._names[about.st_ino] = {name: os.stat(name, dir_fd=handle).st_ino for name in os.listdir(handle)}
            else:
                self.contents[about.st_ino] = os.pread(handle, about.st_size, 0)

        return follow


class MortalDisk:
    """Stands in for `os` in `midst.net.journal`: the process dies at an operation, alone or with its machine.

    An operation is a write, a sync of a file or a folder, a new file, a new name or the end of one. A write at which
    the process dies is done in part. Where the machine loses its power too, what was not synced is there in any mixture
    or not at all: of files the end, with zeros in between, and of names the old or the new.

    Attributes:
        fatal: how many more operations until the one at which the process dies; None for never.
        done: operations so far.
    """

    def __init__(self, monkeypatch, rng):
        self.fatal, self.done = None, 0
        self._rng = rng
        self._handles = {}
        self._names, self._kept_names = {}, {}  # the files by their paths: now, and on disk
        for name, stands_in in (("os", self), ("sync_data", self.fsync), ("sync_folder", self.sync_folder)):
            monkeypatch.setattr(journal, name, stands_in)
        monkeypatch.setattr(journal, "Lock", lambda path: _NoLock())  # this process is not the one that dies

    def __getattr__(self, name):
        return getattr(os, name)

    def open(self, path, flags, mode=0o777):
        if flags & os.O_CREAT:
            self._operate()
            self._names[path] = _Contents()
        handle = os.open(path, flags, mode)
        self._handles[handle] = self._names[path]
        return handle

    def close(self, handle):
        del self._handles[handle]
        os.close(handle)

    def write(self, handle, data):
        try:
            self._operate()
        except Crash:
            self._written(handle, data[: self._rng.randint(0, len(data))])
            raise
        return self._written(handle, data)

    def fsync(self, handle):
        self._operate()
        self._handles[handle].kept = self._handles[handle].seen

    def sync_folder(self, path):
        self._operate()
        self._kept_names = dict(self._names)

    def replace(self, old, new):
        self._operate()
        os.replace(old, new)
        self._names[new] = self._names.pop(old)

    def unlink(self, path):
        self._operate()
        os.unlink(path)
        del self._names[path]

    def end(self, *, power):
        """The process is gone, and perhaps the power."""
        for handle in list(self._handles):
            self.close(handle)
        if not power:
            return
        for path in self._names.keys() | self._kept_names.keys():
            known = self._rng.choice([self._names, self._kept_names]).get(path)
            path.unlink(missing_ok=True)
            if known is None:
                self._names.pop(path, None)
            else:
                path.write_bytes(known.left(self._rng))
                self._names[path] = known
        self._kept_names = dict(self._names)

    def _written(self, handle, data):
        self._handles[handle].seen += data
        return os.write(handle, data)

    def _operate(self):
        if self.fatal == 0:
            self.fatal = None
            raise Crash
        self.fatal = None if self.fatal is None else self.fatal - 1
        self.done += 1


class _Contents:
    """What a file holds, as a reader finds it and as it is on disk."""

    def __init__(self):
        self.seen = self.kept = b""

    def left(self, rng):
        """What a power cut leaves, which is on disk from then on."""
        loose = bytearray(self.seen[len(self.kept) :])
        del loose[rng.randint(0, len(loose)) :]
        if rng.random() < 0.5:
            begin, end = sorted(rng.randint(0, len(loose)) for _ in range(2))
            loose[begin:end] = bytes(end - begin)
        self.seen = self.kept = self.kept + bytes(loose)
        return self.kept


class _NoLock:
    def release(self):
        pass
