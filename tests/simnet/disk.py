"""A disk that remembers what was synchronised, and fails when told to.

Rules:
- What was synced survives everything but damage.
- When a process dies, what it had written is there. When the machine does (`cut_power`), what was not synced may be
  there in any mixture: a part of it, with zeros in between.
- A sync that lies returns as if the data were on disk. A file that was put in place by such a one may be the old one
  again after a power cut.
- Damage (`flip_bit`, `truncate`) happens while nobody has the file open.
"""

from __future__ import annotations

from random import Random


class Crash(BaseException):
    """The participant died in the middle of something. Not an Exception: no handler of the code under test sees it."""


class SimFile:
    """The `File` of one participant; it outlives crashes.

    Attributes:
        fatal: how many more writes until the one that kills; None for never.
        full: whether writes are refused for want of space.
        lies: how many of the next syncs return without having written anything.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._seen = b""  # what a reader finds
        self._kept = b""  # what survives a power cut
        self.fatal: int | None = None
        self.full = False
        self.lies = 0

    @property
    def data(self) -> bytes:
        """What a reader finds; nothing where there is no file. What is put there from outside is on disk."""
        return self._seen

    @data.setter
    def data(self, data: bytes) -> None:
        self._seen = self._kept = data

    def read(self) -> bytes:
        """All of it."""
        return self._seen

    def append(self, data: bytes, mark: bytes) -> None:
        """Write at the end; a crash may leave any mixture of it. The mark is not synced."""
        self._refuse_if_full()
        self._seen += data
        if self._dies():
            self.cut_power()
            raise Crash
        self._sync()
        self._seen += mark

    def replace(self, data: bytes) -> None:
        """Put this in place of everything; a crash leaves either."""
        self._refuse_if_full()
        if self._dies():
            self.cut_power()
            self.data = self._rng.choice([self._seen, data])
            raise Crash
        self._seen = data
        self._sync()

    def cut_power(self) -> None:
        """What was not synced is there in any mixture, or not at all."""
        if not self._seen.startswith(self._kept):  # a replacement that is not on disk
            self.data = self._rng.choice([self._seen, self._kept])
        else:
            loose = bytearray(self._seen[len(self._kept) :])
            del loose[self._rng.randint(0, len(loose)) :]
            if self._rng.random() < 0.5:
                begin, end = sorted(self._rng.randint(0, len(loose)) for _ in range(2))
                loose[begin:end] = bytes(end - begin)
            self.data = self._kept + bytes(loose)

    def flip_bit(self) -> None:
        """Turn one bit of what is there."""
        if self._seen:
            bits = bytearray(self._seen)
            bits[self._rng.randrange(len(bits))] ^= 1 << self._rng.randrange(8)
            self.data = bytes(bits)

    def truncate(self) -> None:
        """Cut off the end of what is there; something stays."""
        if self._seen:
            self.data = self._seen[: self._rng.randrange(1, len(self._seen) + 1)]

    def _sync(self) -> None:
        if self.lies > 0:
            self.lies -= 1
        else:
            self._kept = self._seen

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
