from __future__ import annotations

import contextlib
import os
import stat
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    with contextlib.suppress(InputError):  # the length of a record may be damaged to reach beyond the end
        read = Journal(file, "j").records
        assert read == kept[: len(read)]
        assert len(read) < len(kept)


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
