"""The journal: what a participant must not forget, on disk before anything that depends on it leaves.

Rules:
- A session is a fold: an opening record (what was drawn at random) and then the inputs of every step, in order. Playing
  the records again gives the same state to the last bit, so that is how a node resumes.
- `append` returns when the record is on disk (`sync_data`). If it cannot be written it raises, nothing is sent,
  and nothing more is written behind it: what a failed sync has left is known when the file is read again.
- A record is its length, two checksums and its bytes. The first covers the record and all before it, the second the
  length and the first. When the record is on disk a mark is written behind it, for which nobody waits: it reaches the
  disk with the next record at the latest. It is a number of this journal's own, from what was drawn at random, so that
  nobody can have it written by what it sends.
- The first record comes into being with the file, whole or not at all.
- What stands before the last mark was on disk: if one bit of it is wrong the journal is refused, since what is lost
  there has been sent. So is a file without a whole first record, an empty one included.
- The torn tail is what stands behind the last mark and is no whole record: the one write that a crash cut short, which
  may have left any part of itself, zeros included. Nothing depends on it, and it is cut off. A whole record without a
  mark may be on disk or not, so the file is written anew before anything is made of it.
- What the file alone cannot show: that it was cut back to where it had stood before, or put back from a backup. Then
  the same is done again as long as the same is heard, and neighbours notice where it is not (`Peer`).
- One process at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from pathlib import Path
from typing import Protocol

from midst.errors import InputError
from midst.files import Lock, make_folder
from midst.machine import BINARY, sync_data, sync_folder

MAGIC = b"midst journal 2\n"
_FAMILY = b"midst journal "
_SUM = 8  # bytes of a checksum, and of a mark
_CLOSED = -1  # no handle
_OPEN = os.O_RDWR | os.O_APPEND | BINARY
_HEAD = struct.Struct(f"<I{_SUM}s")  # length and checksum of a record; the checksum of both follows


class File(Protocol):
    """The few things a journal asks of a disk; a simulated one can fail at each of them."""

    def read(self) -> bytes:
        """All of it; nothing where there is no file yet."""
        ...

    def append(self, data: bytes, mark: bytes) -> None:
        """Write at the end; the mark once the data is on disk. On return the data is there, or OSError is raised."""
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
            OSError: it ended in a write that was cut short, and cannot be written anew.
        """
        self._file = file
        self._failed = False
        self._last = self._mark = b""
        self.records: list[bytes] = []
        data = file.read()
        if not data:
            return
        self.records, self._last, self._mark, end = _split(data, where)
        if data[end:] != self._mark:
            file.replace(data[:end] + self._mark)

    def append(self, record: bytes) -> None:
        """Put a record on disk, and come back when it is there."""
        if not self._mark:
            self.forget(record)
            return
        if self._failed:
            raise OSError(5, "an earlier write has failed")
        self._failed = True
        data, checksum = _frame(record, self._last)
        self._file.append(data, self._mark)
        self._failed = False
        self._last = checksum

    def forget(self, record: bytes) -> None:
        """Put one record in place of all: the secrets of a session that is over are nobody's any more."""
        self._failed = True
        data, checksum = _frame(record, MAGIC)
        mark = _mark(checksum)
        self._file.replace(MAGIC + data + mark)
        self._failed = False
        self._last, self._mark = checksum, mark


def _frame(record: bytes, before: bytes) -> tuple[bytes, bytes]:
    """A record as it stands in the file behind one with a checksum, the first behind the magic bytes; and its own."""
    checksum = _sum(b"record", before, record)
    head = _HEAD.pack(len(record), checksum)
    return head + _sum(b"head", before, head) + record, checksum


def _mark(first: bytes) -> bytes:
    """The mark of a journal whose first record has a checksum."""
    return _sum(b"mark", b"", first)


def _sum(kind: bytes, before: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(before + data, digest_size=_SUM, person=kind).digest()


def _record_at(data: bytes, place: int, before: bytes) -> tuple[bytes, bytes] | None:
    """The record that stands there and its checksum, if it is whole and right."""
    middle = place + _HEAD.size
    start = middle + _SUM
    if len(data) < start or data[middle:start] != _sum(b"head", before, data[place:middle]):
        return None
    length, checksum = _HEAD.unpack_from(data, place)
    record = data[start : start + length]
    return (record, checksum) if _sum(b"record", before, record) == checksum else None


def _split(data: bytes, where: str) -> tuple[list[bytes], bytes, bytes, int]:
    """The whole records, the checksum of the last, the mark, and where the last record ends."""
    if not data.startswith(MAGIC):
        known = data.startswith(_FAMILY)
        text = "a journal of another version, or damaged; start a new session" if known else "not a midst journal"
        raise InputError(f"{where}: {text}{'' if known else '; give --state another folder'}")
    records: list[bytes] = []
    last, mark, place, end, marked = MAGIC, b"", len(MAGIC), 0, -1
    while (found := _record_at(data, place, last)) is not None:
        record, last = found
        records.append(record)
        end = place + _HEAD.size + _SUM + len(record)
        if not mark:
            mark = _mark(last)
            marked = data.rfind(mark)  # where the last mark stands; what is before it was on disk
        place = end + len(mark)
        if end < marked and data[end:place] != mark:
            break
    if not records or end < marked:
        raise InputError(f"{where}: damaged; the session cannot be resumed, start a new one")
    return records, last, mark, end


class DiskFile:
    """A file on a real disk, readable by its owner alone, locked against a second process."""

    def __init__(self, path: Path) -> None:
        """Open it, if it is there; make its folder, if that is not.

        Raises:
            InputError: it cannot be opened or made, it is empty, or another process has it.
        """
        self._path = path
        self._handle = _CLOSED
        self._lock: Lock | None = None
        try:
            self._open()
        except OSError as error:
            self.close()
            raise InputError(f"{path}: {error.strerror}; give --state a folder that can be written") from None
        except InputError:
            self.close()
            raise

    def _open(self) -> None:
        path = self._path
        make_folder(path.parent)
        try:
            self._lock = Lock(path.with_suffix(".lock"))
        except BlockingIOError:
            raise InputError(f"{path}: another midst node is running this session") from None
        with contextlib.suppress(FileNotFoundError):
            self._handle = os.open(path, _OPEN)
            sync_folder(path.parent)  # the process that put it there may have been killed before its name was on disk
        if self._handle != _CLOSED and os.fstat(self._handle).st_size == 0:
            raise InputError(f"{path}: damaged: it is empty; the session cannot be resumed, start a new one")

    def read(self) -> bytes:
        """All of it; nothing where there is no file yet."""
        if self._handle == _CLOSED:
            return b""
        with open(os.dup(self._handle), "rb") as file:
            file.seek(0)
            return file.read()

    def append(self, data: bytes, mark: bytes) -> None:
        """Write at the end and wait for the disk; then the mark, for which nobody waits."""
        _write_all(self._handle, data)
        sync_data(self._handle)
        _write_all(self._handle, mark)

    def replace(self, data: bytes) -> None:
        """Write a new file beside it and move it there."""
        fresh = self._path.with_suffix(".new")
        handle = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | BINARY, 0o600)
        try:
            try:
                _write_all(handle, data)
                # The bytes before the name, and the name before we return. Were the rename on disk first, a crash would
                # leave an empty journal; were it later than this, a crash could undo what the caller takes to be done.
                os.fsync(handle)
            finally:
                os.close(handle)
            self._let_go()
            os.replace(fresh, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
        self._handle = os.open(self._path, _OPEN)
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Give it back."""
        self._let_go()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _let_go(self) -> None:
        if self._handle != _CLOSED:
            os.close(self._handle)
            self._handle = _CLOSED


def _write_all(handle: int, data: bytes) -> None:
    """All of it: where a disk is nearly full, a write may end early, and only the next one says why."""
    while (written := os.write(handle, data)) < len(data):
        data = data[written:]
