"""The journal: what a participant must not forget, on disk before anything that depends on it leaves.

Rules:
- A session is a fold: an opening record (what was drawn at random) and then the inputs of every step, in order. Playing
  the records again gives the same state to the last bit, so that is how a node resumes.
- `append` returns when the record is on disk (fdatasync). If it cannot be written it raises, and the caller sends
  nothing.
- A record is its length, a checksum and its bytes. An incomplete one at the end is a write that a crash cut short:
  nothing depends on it, and it is cut off. A damaged one anywhere else is refused: what is lost there has been sent.
- One process at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import struct
from pathlib import Path
from typing import Protocol

from midst.errors import InputError

MAGIC = b"midst journal 1\n"
_HEAD = struct.Struct("<I8s")
_LONGEST = 1 << 26


class File(Protocol):
    """The few things a journal asks of a disk; a simulated one can fail at each of them."""

    def read(self) -> bytes:
        """All of it; nothing where there is no file yet."""
        ...

    def append(self, data: bytes) -> None:
        """Write at the end; on return the data is on disk, or OSError is raised."""
        ...

    def replace(self, data: bytes) -> None:
        """Put this in place of everything, whole or not at all; on return it is on disk."""
        ...


class Journal:
    """The records of one participant in one session.

    Attributes:
        records: what was there when it was opened; whoever plays them again may let go of them.
    """

    def __init__(self, file: File, where: str) -> None:
        """Read what is there.

        Args:
            file: the disk.
            where: what to call it in an error.

        Raises:
            InputError: it is not a journal, or a damaged one.
        """
        self._file = file
        data = file.read()
        if not MAGIC.startswith(data[: len(MAGIC)]):
            raise InputError(f"{where}: not a midst journal; give --state another folder")
        self.records, end = _split(data, where)
        self._begun = bool(self.records)
        if end < len(data):
            file.replace(data[:end])

    def append(self, record: bytes) -> None:
        """Put a record on disk, and come back when it is there."""
        self._file.append((b"" if self._begun else MAGIC) + _frame(record))
        self._begun = True

    def forget(self, record: bytes) -> None:
        """Put one record in place of all: the secrets of a session that is over are nobody's any more."""
        self._file.replace(MAGIC + _frame(record))


def _frame(record: bytes) -> bytes:
    return _HEAD.pack(len(record), _checksum(record)) + record


def _checksum(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=8).digest()


def _split(data: bytes, where: str) -> tuple[list[bytes], int]:
    """The whole records, and where the last of them ends."""
    records: list[bytes] = []
    place = len(MAGIC)
    if len(data) < place:
        return records, 0
    while place + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, place)
        record = data[place + _HEAD.size : place + _HEAD.size + length]
        end = place + _HEAD.size + length
        if length > _LONGEST or end > len(data) or _checksum(record) != checksum:
            if length > _LONGEST or end < len(data) or _begins_with(data[place + _HEAD.size :], checksum):
                raise InputError(f"{where}: damaged; the session cannot be resumed, start a new one")
            break
        records.append(record)
        place = end
    return records, place if records else 0


def _begins_with(data: bytes, checksum: bytes) -> bool:
    """Whether a whole record stands there: then its length is wrong, and no crash has cut it short."""
    so_far = hashlib.blake2b(digest_size=8)
    for k in range(len(data)):
        if so_far.digest() == checksum:
            return True
        so_far.update(data[k : k + 1])
    return so_far.digest() == checksum


class DiskFile:
    """A file on a real disk, readable by its owner alone, locked against a second process."""

    def __init__(self, path: Path) -> None:
        """Open or make it, with its folder.

        Raises:
            InputError: it cannot be made, or another process has it.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
            self._path = path
            self._lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; give --state a folder that can be written") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{path}: another midst node is running this session") from None
        os.fsync(self._folder)
        self._size = os.fstat(self._handle).st_size

    def read(self) -> bytes:
        """All of it."""
        with open(os.dup(self._handle), "rb") as file:
            file.seek(0)
            return file.read()

    def append(self, data: bytes) -> None:
        """Write at the end and wait for the disk; what was written in part is taken back."""
        # A record cut short and left behind would read as a crash now, but as damage once another is written after it.
        try:
            written = os.write(self._handle, data)
            if written < len(data):
                raise OSError(28, "No space left on device")
            os.fdatasync(self._handle)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._size)
            raise
        self._size += written

    def replace(self, data: bytes) -> None:
        """Write a new file beside it and move it there."""
        fresh = self._path.with_suffix(".new")
        handle = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.write(handle, data) < len(data):
            raise OSError(28, "No space left on device", str(fresh))
        # The bytes before the name, and the name before we return. Were the rename on disk first, a crash would leave
        # an empty journal; were it later than this, the secrets could come back that the caller takes to be gone.
        os.fsync(handle)
        os.replace(fresh, self._path)
        os.fsync(self._folder)
        os.close(self._handle)
        self._handle, self._size = handle, len(data)

    def close(self) -> None:
        """Give it back."""
        for handle in (self._handle, self._folder, self._lock):
            os.close(handle)
