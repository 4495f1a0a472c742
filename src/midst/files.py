"""Files written whole or not at all, and on disk when that is said; files for their owner alone; locks."""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from midst.errors import InputError, MidstWarning
from midst.machine import BINARY, HAS_MODES, lock, sync_folder, unlock

_ACL = struct.Struct("<HHI")  # an entry of an access control list, after four bytes: tag, permissions, whose
_OWNER, _USER, _MASK = 0x01, 0x02, 0x10


def check_writable(path: str | Path) -> Path:
    """The path, if a file can be written there.

    Raises:
        InputError: its folder does not exist or cannot be written, or something other than a file is there already.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"{target}: folder {target.parent} does not exist; make it first")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is {'a folder' if target.is_dir() else 'not a file'}; give a file name")
    if not os.access(target.parent, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InputError(f"{target} cannot be written")
    return target


def read_at_most(path: str | Path, most: int, excess: str, alone: str = "") -> bytes:
    """The bytes of a file.

    Args:
        path: where.
        most: bytes that are read.
        excess: what an error says of a larger file.
        alone: of a file that its owner alone may touch, what it holds.

    Raises:
        InputError: it cannot be read, is larger, or others may touch it.
    """
    try:
        with open(path, "rb") as file:
            if alone:
                check_alone(file.fileno(), path, alone)
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    if len(content) > most:
        raise InputError(f"{path}: {excess}")
    return content


def check_alone(file: int, path: str | Path, what: str) -> None:
    """Refuses an open file that others may read or write; of what is no file on a disk nothing is said.

    Where modes say nothing about that, as on Windows, a warning says that nobody has checked it.

    Args:
        file: its descriptor: looked at is what is read, whatever is at the path by now.
        path: what to call it.
        what: it holds.

    Raises:
        InputError: others may.
    """
    mode = os.fstat(file).st_mode
    if not HAS_MODES:
        if stat.S_ISREG(mode):
            said = f"{path}: who else may read this {what} cannot be checked on this system; see to it that nobody may"
            warnings.warn(said, MidstWarning, stacklevel=2)
        return
    if (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)) and mode & 0o077 and _is_shared(file):
        raise InputError(f"{path}: others may read or write this {what}; try: chmod 600 {path}")


def _is_shared(file: int) -> bool:
    """Whether others may touch a file whose mode says so.

    With an access control list the mode's group is only the most that anybody on the list may do. systemd gives a
    service its credentials that way: a file of root's, and the service's user on the list.
    """
    entries: list[tuple[int, int, int]] = []
    with suppress(OSError, AttributeError, struct.error):  # there is no list, or no such thing here
        entries = list(_ACL.iter_unpack(os.getxattr(file, "system.posix_acl_access")[4:]))
    if not entries:
        return True
    own = ((_OWNER, None), (_USER, os.geteuid()), (_MASK, None))
    return any(may and (tag, None if tag != _USER else who) not in own for tag, may, who in entries)


def write_whole(path: str | Path, write: Callable[[BinaryIO], object], mode: int = 0o600) -> None:
    """Write a file beside its place and move it there when it is complete; a failure leaves what was there before.

    On return it is on disk, under its name.

    Args:
        path: where.
        write: writes the content to an open file.
        mode: who may read it.

    Raises:
        InputError: it cannot be written there; see `check_writable`.
    """
    target = check_writable(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            os.chmod(name, mode)
            # The bytes before the name: were the rename on disk first, a crash would leave an empty file.
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    sync_folder(target.parent)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file that everybody may read, as `write_whole` does."""
    write_whole(path, lambda file: file.write(content), mode=0o644)


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone, with those that lead to it; their names are on disk on return."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


class Lock:
    """A file that one process at a time has; it is empty, and stays."""

    def __init__(self, path: Path) -> None:
        """Have it.

        Raises:
            BlockingIOError: another process has it.
            OSError: it cannot be made.
        """
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | BINARY, 0o600)
        try:
            lock(self._handle)
        except BaseException:
            os.close(self._handle)
            raise

    def release(self) -> None:
        """Let others have it."""
        unlock(self._handle)
        os.close(self._handle)
