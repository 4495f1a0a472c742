from __future__ import annotations

import os
import stat
import struct
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from power_cuts import Watch

from midst.errors import InputError
from midst.net.journal import MAGIC, DiskFile, Journal
from midst.simnet.disk import Crash, SimFile

records = st.lists(st.binary(max_size=200), max_size=8)


def disk():
    return SimFile(Random(0))


@given(records)
def test_what_was_appended_is_read_again(kept):
    file = disk()
    journal = Journal(file, "j")
    for record in kept:
        journal.append(record)
    assert Journal(file, "j").records == kept


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.data())
def test_a_write_cut_short_loses_that_record_and_no_other(kept, data):
    file = disk()
    journal = Journal(file, "j")
    for record in kept:
        journal.append(record)
    whole = len(file.data)
    journal.append(b"the last")
    file.data = file.data[: data.draw(st.integers(whole, len(file.data) - 1))]
    again = Journal(file, "j")
    assert again.records == kept
    assert len(file.data) == whole
    again.append(b"more")
    assert Journal(file, "j").records == [*kept, b"more"]


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=2, max_size=5), st.data())
def test_damage_in_the_middle_is_refused(kept, data):
    file = disk()
    journal = Journal(file, "j")
    for record in kept[:-1]:
        journal.append(record)
    end = len(file.data)
    journal.append(kept[-1])
    place = data.draw(st.integers(len(MAGIC), end - 1))
    damaged = bytearray(file.data)
    damaged[place] ^= data.draw(st.integers(1, 255))
    file.data = bytes(damaged)
    with pytest.raises(InputError, match="damaged"):
        Journal(file, "j")
    assert file.data == bytes(damaged), "what is left of it stays"


@pytest.mark.parametrize("reach", [-1, 0, 1, 1000, 2**26 + 1, 2**32 - 1])
def test_a_damaged_length_is_no_write_cut_short(reach):
    """Whether it ends before the file, just there, beyond it, or where no record does: what follows has been sent."""
    file = disk()
    journal = Journal(file, "j")
    journal.append(b"first")
    begins = len(file.data)
    journal.append(b"second")
    journal.append(b"third")
    length = min(len(file.data) - begins - 12 + reach, 2**32 - 1)
    file.data = file.data[:begins] + struct.pack("<I", length) + file.data[begins + 4 :]
    with pytest.raises(InputError, match="damaged"):
        Journal(file, "j")


def test_a_length_that_no_record_has_is_refused_at_the_end_too():
    """A crash cuts a write short and writes no other length."""
    file = disk()
    Journal(file, "j").append(b"first")
    file.data += struct.pack("<I8s", 2**26 + 1, bytes(8)) + b"and so on"
    with pytest.raises(InputError, match="damaged"):
        Journal(file, "j")


def test_another_file_is_refused():
    file = disk()
    file.data = b"something else entirely"
    with pytest.raises(InputError, match="not a midst journal"):
        Journal(file, "j")


@given(st.integers(0, 6), st.integers(0, 2**32))
def test_a_crash_at_any_write_leaves_a_prefix(fatal, seed):
    file = SimFile(Random(seed))
    file.fatal = fatal
    done = []
    try:
        journal = Journal(file, "j")
        for k in range(8):
            journal.append(bytes([k]) * 20)
            done.append(bytes([k]) * 20)
    except Crash:
        pass
    assert Journal(file, "j").records[: len(done)] == done


def test_forgetting_leaves_one_record():
    file = disk()
    journal = Journal(file, "j")
    journal.append(b"secret")
    journal.forget(b"over")
    assert Journal(file, "j").records == [b"over"]
    assert b"secret" not in file.data


def test_a_real_file_is_for_its_owner_and_for_one_process(tmp_path):
    path = tmp_path / "state" / "a.journal"
    file = DiskFile(path)
    journal = Journal(file, "a")
    journal.append(b"one")
    journal.append(b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with pytest.raises(InputError, match="another midst node"):
        DiskFile(path)
    journal.forget(b"over")
    journal.append(b"after")
    file.close()
    again = DiskFile(path)
    assert Journal(again, "a").records == [b"over", b"after"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again.close()


def test_what_has_returned_survives_a_power_cut(tmp_path, monkeypatch):
    """A new journal, one that grows, and one that was put in place of another: all of it, under its name."""
    watch, path = Watch(monkeypatch), tmp_path / "a.journal"
    file = DiskFile(path)
    assert watch.left(path) is None, "nothing was written yet"
    journal = Journal(file, "a")
    for change in (journal.append, journal.append, journal.forget, journal.append):
        change(b"what was sent")
        assert watch.left(path) == path.read_bytes() != b""
    file.close()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--state"):
        DiskFile(tmp_path / "file" / "a.journal")


def test_a_real_full_disk_takes_back_what_it_wrote(tmp_path, monkeypatch):
    file = DiskFile(tmp_path / "a.journal")
    journal = Journal(file, "a")
    journal.append(b"one")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:5]))
    with pytest.raises(OSError, match="No space"):
        journal.append(b"two")
    monkeypatch.undo()
    journal.append(b"three")
    file.close()
    again = DiskFile(tmp_path / "a.journal")
    assert Journal(again, "a").records == [b"one", b"three"]
    again.close()
