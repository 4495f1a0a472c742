"""A disk that remembers what was synchronised, and fails when told to."""

from __future__ import annotations

from random import Random


class Crash(BaseException):
    """The participant died in the middle of something. Not an Exception: no handler of the code under test sees it."""


class SimFile:
    """The `File` of one participant; it outlives crashes.

    Attributes:
        data: what is on disk.
        fatal: how many more writes until the one that kills; None for never.
        full: whether writes are refused for want of space.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.data = b""
        self.fatal: int | None = None
        self.full = False

    def read(self) -> bytes:
        """All of it."""
        return self.data

    def append(self, data: bytes) -> None:
        """Write at the end; a crash may leave any part of it."""
        self._refuse_if_full()
        if self._dies():
            self.data += data[: self._rng.randint(0, len(data))]
            raise Crash
        self.data += data

    def replace(self, data: bytes) -> None:
        """Put this in place of everything; a crash leaves either."""
        self._refuse_if_full()
        if self._dies():
            self.data = self._rng.choice([self.data, data])
            raise Crash
        self.data = data

    def _refuse_if_full(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")

    def _dies(self) -> bool:
        if self.fatal is None:
            return False
        self.fatal -= 1
        if self.fatal >= 0:
            return False
        self.fatal = None
        return True
