from __future__ import annotations

import os
import stat
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from power_cuts import Watch
from simnet.disk import Crash, SimFile

from midst.errors import InputError
from midst.net.journal import MAGIC, DiskFile, Journal

records = st.lists(st.binary(max_size=200), max_size=8)
several = st.lists(st.binary(max_size=50), min_size=2, max_size=5)
SUM = 8  # bytes of a mark


def disk():
    return SimFile(Random(0))


@given(records)
def test_what_was_appended_is_read_again(kept):
    file = disk()
    journal = Journal(file, "j")
    for record in kept:
        journal.append(record)
    assert Journal(file, "j").records == kept


def written(*kept):
    """A disk with these records on it, and where each ends, with its mark."""
    file, places = disk(), []
    journal = Journal(file, "j")
    for record in kept:
        journal.append(record)
        places.append(len(file.data))
    return file, places


def refused(data):
    """The file is refused in one line, and stays as it is."""
    file = disk()
    file.data = data
    with pytest.raises(InputError, match=r"damaged|another version|not a midst journal") as refusal:
        Journal(file, "j")
    assert "\n" not in str(refusal.value)
    assert file.data == data, "what is left of it stays"


# The last write, cut short


@given(several, st.binary(max_size=50), st.data())
def test_a_write_cut_short_loses_that_record_and_no_other(kept, last, data):
    """Whatever part of it is there, with zeros for what is not, and whether the mark before it is there or not."""
    file, _ = written(*kept)
    whole = file.data
    Journal(file, "j").append(last)
    begin = len(whole) - data.draw(st.sampled_from([0, SUM]))
    torn = bytearray(file.data[begin:-SUM])
    del torn[data.draw(st.integers(0, len(torn) - 1)) :]
    first, end = sorted(data.draw(st.integers(0, len(torn))) for _ in range(2))
    torn[first:end] = bytes(end - first)
    file.data = whole[:begin] + bytes(torn)
    again = Journal(file, "j")
    assert again.records == kept
    assert file.data == whole, "cut off, and on disk"
    again.append(b"more")
    assert Journal(file, "j").records == [*kept, b"more"]


@given(several, st.integers(0, SUM - 1))
def test_a_whole_record_without_its_mark_is_kept_and_written_anew(kept, there):
    """The process was killed between the sync and the mark, or before the sync: it may be on disk or not."""
    file, _ = written(*kept)
    whole = file.data
    file.data = whole[: len(whole) - SUM + there]
    assert Journal(file, "j").records == kept
    file.cut_power()
    assert file.data == whole


@given(several, st.binary(max_size=50))
def test_a_whole_record_behind_a_lost_mark_is_kept(kept, last):
    """The mark and what comes behind it are written by one sync: the disk may have had time for the second alone."""
    file, places = written(*kept, last)
    data = bytearray(file.data[:-SUM])
    data[places[-2] - SUM : places[-2]] = bytes(SUM)
    file.data = bytes(data)
    assert Journal(file, "j").records == [*kept, last]


def test_every_journal_has_a_mark_of_its_own():
    """Else a neighbour could send it, and have a write that was cut short be taken for damage."""
    one, other = (written(drawn, b"two")[0].data for drawn in (b"drawn once", b"drawn again"))
    assert one[-SUM:] != other[-SUM:]


# Damage


@given(several, st.data())
def test_damage_anywhere_is_refused(kept, data):
    """But in the last mark, which nothing depends on. Of the last record too: by its mark it was on disk."""
    file, _ = written(*kept)
    damaged = bytearray(file.data)
    place = data.draw(st.integers(0, len(damaged) - SUM - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    refused(bytes(damaged))


@given(several, st.data())
def test_damage_to_the_last_mark_costs_nothing(kept, data):
    file, _ = written(*kept)
    whole = file.data
    damaged = bytearray(whole)
    damaged[-data.draw(st.integers(1, SUM))] ^= data.draw(st.integers(1, 255))
    file.data = bytes(damaged)
    assert Journal(file, "j").records == kept
    assert file.data == whole


@given(several, st.data())
def test_bytes_lost_or_gained_in_the_middle_are_refused(kept, data):
    file, _ = written(*kept)
    begin = data.draw(st.integers(0, len(file.data) - SUM - 1))
    end = data.draw(st.integers(begin, len(file.data) - SUM - 1))
    more = data.draw(st.binary(min_size=1 if end == begin else 0, max_size=20))
    changed = file.data[:begin] + more + file.data[end:]
    if changed != file.data:
        refused(changed)


def test_records_in_another_order_or_left_out_are_refused():
    file, (first, second, third) = written(b"one", b"two", b"six")
    data = file.data
    refused(data[:first] + data[second:third] + data[first:second])
    refused(data[:first] + data[second:])
    refused(data + data[second:third])


def test_a_record_of_another_journal_is_refused():
    file, places = written(b"drawn once", b"two", b"three")
    other, _ = written(b"drawn again", b"two", b"three")
    refused(file.data[: places[0]] + other.data[places[0] + 1 : places[1] + 1] + file.data[places[1] :])


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.data())
def test_a_first_record_is_whole_or_not_at_all(kept, data):
    """It holds what was drawn at random: were it taken for a write cut short, another would be drawn."""
    file, places = written(*kept)
    refused(file.data[: data.draw(st.integers(1, places[0] - SUM - 1))])


def test_a_long_journal_with_one_bit_turned_in_its_first_length():
    """It was wiped, and another z(0) was drawn: 61,713 bytes became none, without a word."""
    file, (first, *_) = written(bytes(200), *(bytes([k]) * 400 for k in range(150)))
    for place in (len(MAGIC), first):
        for bit in range(32):
            damaged = bytearray(file.data)
            damaged[place + bit // 8] ^= 1 << bit % 8
            refused(bytes(damaged))


@given(several, st.data())
def test_cut_back_it_is_what_it_was_earlier(kept, data):
    """The file alone cannot tell; neighbours can."""
    file, places = written(*kept)
    cut = data.draw(st.integers(places[0] - SUM, len(file.data)))
    file.data = file.data[:cut]
    assert Journal(file, "j").records == kept[: sum(place - SUM <= cut for place in places)]


def test_another_file_is_refused():
    file = disk()
    file.data = b"something else entirely"
    with pytest.raises(InputError, match="not a midst journal"):
        Journal(file, "j")


@given(st.integers(0, 9), st.integers(0, 2**32))
def test_a_crash_at_any_write_leaves_what_had_returned(fatal, seed):
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
    file.fatal = None
    file.cut_power()
    found = Journal(file, "j").records
    assert found[: len(done)] == done
    assert len(found) <= len(done) + 1


@given(st.integers(0, 7), st.integers(1, 8), st.integers(0, 2**32))
def test_after_a_sync_that_lied_it_is_refused_or_what_it_was_earlier(honest, lies, seed):
    """Never other records, and never a journal that begins anew where somebody may have been told something."""
    file, kept = SimFile(Random(seed)), [bytes([k]) * 20 for k in range(9)]
    journal = Journal(file, "j")
    for k, record in enumerate(kept):
        file.lies += lies if k == honest else 0
        journal.append(record)
    file.cut_power()
    try:
        found = Journal(file, "j").records
    except InputError:
        return
    assert found == kept[: len(found)]
    assert len(found) >= honest


def test_behind_a_write_that_has_failed_nothing_is_written():
    """Whether it is on disk, in part or not at all is known when the file is read again."""
    file, _ = written(b"one")
    journal = Journal(file, "j")
    file.full = True
    with pytest.raises(OSError, match="No space"):
        journal.append(b"two")
    file.full = False
    with pytest.raises(OSError, match="an earlier write has failed"):
        journal.append(b"three")
    again = Journal(file, "j")
    again.append(b"four")
    assert Journal(file, "j").records == [b"one", b"four"]


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
    watch, path = Watch(monkeypatch), tmp_path / "new" / "state" / "a.journal"
    file = DiskFile(path)
    assert watch.left(path) is None, "nothing was written yet"
    journal = Journal(file, "a")
    for change in (journal.append, journal.append, journal.forget, journal.append):
        before = path.read_bytes() if path.exists() else b""
        change(b"what was sent")
        left = watch.left(path)
        assert left is not None
        assert left != before
        assert path.read_bytes() in (left, left + path.read_bytes()[-SUM:]), "the mark alone may be missing"
    file.close()


def test_a_new_folder_survives_a_power_cut(tmp_path, monkeypatch):
    """Each of those that were made, since without one the rest cannot be found."""
    watch = Watch(monkeypatch)
    DiskFile(tmp_path / "a" / "b" / "c.journal").close()
    assert watch.holds(tmp_path / "a")
    assert watch.holds(tmp_path / "a" / "b")


def test_what_is_read_again_is_on_disk_before_anything_is_made_of_it(tmp_path, monkeypatch):
    """The process that wrote it may have been killed before its sync, or by a sync that failed."""
    path = tmp_path / "a.journal"
    file = DiskFile(path)
    journal = Journal(file, "a")
    journal.append(b"one")
    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"two")
    with pytest.raises(OSError, match="an earlier write"):
        journal.append(b"three")
    file.close()
    monkeypatch.undo()
    watch = Watch(monkeypatch)
    again = DiskFile(path)
    assert Journal(again, "a").records == [b"one", b"two"]
    assert watch.left(path) == path.read_bytes()
    again.close()


def failing(*_):
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_file_that_cannot_be_replaced_stays_and_leaves_nothing_behind(tmp_path, monkeypatch, call):
    path = tmp_path / "a.journal"
    file = DiskFile(path)
    journal = Journal(file, "a")
    journal.append(b"a secret")
    before = path.read_bytes()
    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OSError, match="Input/output"):
        journal.forget(b"over")
    monkeypatch.undo()
    file.close()
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"a.journal", "a.lock"}


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "a.journal"
    path.touch()
    for _ in range(2):
        with pytest.raises(InputError, match="damaged: it is empty"):
            DiskFile(path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--state"):
        DiskFile(tmp_path / "file" / "a.journal")


def test_writes_that_end_early_go_on(tmp_path, monkeypatch):
    file = DiskFile(tmp_path / "a.journal")
    journal = Journal(file, "a")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:5]))
    journal.append(b"the first")
    journal.append(b"the second")
    file.close()
    again = DiskFile(tmp_path / "a.journal")
    assert Journal(again, "a").records == [b"the first", b"the second"]
    again.close()


def test_a_disk_that_fills_up_in_the_middle_of_a_record(tmp_path, monkeypatch):
    file = DiskFile(tmp_path / "a.journal")
    journal = Journal(file, "a")
    journal.append(b"one")
    write, room = os.write, [30]

    def fill(handle, data):
        if not room[0]:
            raise OSError(28, "No space left on device")
        part = data[: room[0]]
        room[0] -= len(part)
        return write(handle, part)

    monkeypatch.setattr(os, "write", fill)
    with pytest.raises(OSError, match="No space"):
        journal.append(b"two, which is longer than what is left of the disk")
    monkeypatch.undo()
    file.close()
    again = DiskFile(tmp_path / "a.journal")
    journal = Journal(again, "a")
    assert journal.records == [b"one"]
    journal.append(b"three")
    again.close()
    once_more = DiskFile(tmp_path / "a.journal")
    assert Journal(once_more, "a").records == [b"one", b"three"]
    once_more.close()
