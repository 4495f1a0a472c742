"""What a power cut would leave: file contents as they were last synced, under names as their folder was."""

from __future__ import annotations

import os
import stat


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
