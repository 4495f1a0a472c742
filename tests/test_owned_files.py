"""Files for their owner alone."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from midst.errors import InputError
from midst.files import check_alone

OWNER, USER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 2**32 - 1


def is_refused(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            check_alone(file.fileno(), path, "value")
        except InputError:
            return True
    return False


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700, 0o640, 0o604, 0o620, 0o602, 0o644, 0o666])
def test_what_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "value.txt"
    path.write_text("1\n")
    path.chmod(mode)
    assert is_refused(path) == bool(mode & 0o077)


@pytest.mark.parametrize(
    ("user", "group", "other", "shared"),
    [(os.geteuid(), 0, 0, False), (12345, 0, 0, True), (os.geteuid(), 4, 0, True), (os.geteuid(), 0, 4, True)],
    ids=["as systemd gives credentials", "somebody else", "the group", "everybody"],
)
def test_a_list_says_who_it_is(tmp_path: Path, user: int, group: int, other: int, shared: bool) -> None:
    entries = ((OWNER, 4, NOBODY), (USER, 4, user), (GROUP, group, NOBODY), (MASK, 4, NOBODY), (OTHER, other, NOBODY))
    path = tmp_path / "value"
    path.write_text("1\n")
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", packed)
    except (OSError, AttributeError):
        pytest.skip("there are no access control lists here")
    assert path.stat().st_mode & 0o070, "the list's mask is shown as the group's mode"
    assert is_refused(path) == shared


def test_it_says_what_to_try(tmp_path: Path) -> None:
    path = tmp_path / "value.txt"
    path.touch(mode=0o644)
    with path.open("rb") as file, pytest.raises(InputError) as refused:
        check_alone(file.fileno(), path, "value")
    assert str(refused.value) == f"{path}: others may read or write this value; try: chmod 600 {path}"


def test_a_pipe_is_no_file() -> None:
    for end in os.pipe():
        check_alone(end, "a pipe", "value")
        os.close(end)
    with Path("/dev/null").open() as nothing:
        check_alone(nothing.fileno(), "/dev/null", "value")
