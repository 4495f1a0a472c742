"""Files that are there whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import stat

import pytest
from power_cuts import Watch

from midst.errors import InputError
from midst.files import make_folder, read_at_most, write_whole


def test_what_was_written_survives_a_power_cut(tmp_path, monkeypatch):
    watch, path = Watch(monkeypatch), tmp_path / "answer.json"
    for text in (b"the first", b"the second"):
        write_whole(path, lambda file, text=text: file.write(text))
        assert watch.left(path) == path.read_bytes() == text


def test_the_bytes_are_on_disk_before_their_name(tmp_path, monkeypatch):
    """Else a power cut in between leaves an empty file where a whole one was."""
    path, seen = tmp_path / "answer.json", []
    watch, replace = Watch(monkeypatch), os.replace

    def move(source, target):
        seen.append(os.stat(source).st_ino in watch.contents)
        replace(source, target)

    monkeypatch.setattr(os, "replace", move)
    write_whole(path, lambda file: file.write(b"what counts"))
    assert seen == [True]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch, call):
    path = tmp_path / "answer.json"
    path.write_bytes(b"before")

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output"):
        write_whole(path, lambda file: file.write(b"after"))
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["answer.json"]


def test_modes(tmp_path):
    write_whole(tmp_path / "own", lambda file: file.write(b""))
    write_whole(tmp_path / "open", lambda file: file.write(b""), mode=0o644)
    make_folder(tmp_path / "state")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("own", "open", "state")] == [
        0o600,
        0o644,
        0o700,
    ]


def test_folders_that_were_made_survive_a_power_cut(tmp_path, monkeypatch):
    watch = Watch(monkeypatch)
    make_folder(tmp_path / "a" / "b")
    assert watch.holds(tmp_path / "a")
    assert watch.holds(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist; make it first"):
        write_whole(tmp_path / "none" / "file", lambda file: file.write(b""))


def test_no_more_is_read_than_is_asked_for(tmp_path):
    file = tmp_path / "four"
    file.write_bytes(b"1234")
    assert read_at_most(file, 4, "too large") == b"1234"
    with pytest.raises(InputError, match="four: too large"):
        read_at_most(file, 3, "too large")
    with pytest.raises(InputError, match="nothing: No such file or directory"):
        read_at_most(tmp_path / "nothing", 4, "too large")


def test_a_file_that_others_may_read_is_refused_where_that_matters(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(b"1")
    for mode, allowed in ((0o600, True), (0o644, False)):
        file.chmod(mode)
        if allowed:
            assert read_at_most(file, 4, "too large", alone="key") == b"1"
        else:
            with pytest.raises(InputError, match="others may read or write this key"):
                read_at_most(file, 4, "too large", alone="key")
