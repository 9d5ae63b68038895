"""The undo log by itself: what it can and cannot undo, and what it does with incomplete logs."""

from __future__ import annotations

import errno
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import INCOMING, share_path, undo_path
from grid.storage.files.undo import Change, UndoLog
from tests.support.crash_disk import CrashDisk
from tests.support.faulty_disk import FaultyDisk, Stopped

NAME = "aaaqeayeaudaocajbifqydiob4"
OLD = bytes(range(256)) * 8


def make_disk(*numbers: int) -> CrashDisk:
    disk = CrashDisk()
    for directory in ("shares", INCOMING, "shares/aa", f"shares/aa/{NAME}"):
        disk.make_directory(directory)
    for number in numbers:
        handle = disk.create_file(share_path(NAME, number))
        disk.write(handle, 0, [OLD])
        disk.close_file(handle)
    return disk


def load(disk: MemoryDisk, path: str) -> bytes:
    handle = disk.open_file(path)
    try:
        return disk.read(handle, 0, 10_000)
    finally:
        disk.close_file(handle)


def store(disk: MemoryDisk, path: str, data: bytes) -> None:
    handle = disk.create_file(path)
    disk.write(handle, 0, [data])
    disk.close_file(handle)


CHANGES = [
    Change(share_number=0, writes=[(10, b"new"), (2040, b"past the end")], saves=[(10, 3), (2040, 100)]),
    Change(share_number=1, writes=[(0, b"front")], saves=[(0, 5), (1000, 5000)], cut=1000, size=1500),
]
NEW = (
    OLD[:10] + b"new" + OLD[13:2040] + b"past the end",
    b"front" + OLD[5:1000] + bytes(500),
)


def test_change_when_made_leaves_no_log() -> None:
    disk = make_disk(0, 1)
    UndoLog(disk, durable=True).change(NAME, CHANGES)
    assert (load(disk, share_path(NAME, 0)), load(disk, share_path(NAME, 1))) == NEW
    assert disk.list_directory(INCOMING) == []
    assert disk.open_count == 0


def test_change_when_atomic_needs_no_log() -> None:
    inside = make_disk(0)
    disk = FaultyDisk(inside)
    UndoLog(disk, durable=True).change(NAME, [Change(share_number=0, writes=[(508, b"four")], saves=[(508, 4)])])
    assert "create_file" not in disk.calls
    assert disk.calls.count("sync_file") == 1
    assert load(inside, share_path(NAME, 0))[508:512] == b"four"
    UndoLog(disk, durable=True).change(NAME, [Change(share_number=0, writes=[(509, b"four")], saves=[(509, 4)])])
    assert "create_file" in disk.calls, "a change across two sectors may be made by halves"


@pytest.mark.parametrize("durable", [True, False])
def test_change_when_the_process_ends_at_any_call_is_taken_back_or_made(durable: bool) -> None:
    for count in range(1000):
        inside = make_disk(0, 1)
        disk = FaultyDisk(inside)
        disk.stop_in(count)
        try:
            UndoLog(disk, durable=durable).change(NAME, CHANGES)
        except Stopped:
            pass
        else:
            break
        assert UndoLog(inside, durable=durable).recover_all() == frozenset()
        state = (load(inside, share_path(NAME, 0)), load(inside, share_path(NAME, 1)))
        assert state in ((OLD, OLD), NEW)
        assert inside.list_directory(INCOMING) == []
    assert count > 20


def test_change_when_it_cannot_be_taken_back_yet_is_taken_back_later() -> None:
    inside = make_disk(0, 1)
    disk = FaultyDisk(inside)
    undo = UndoLog(disk, durable=True)
    disk.fail_in(0, errno.EIO, frozenset({"truncate"}), frozenset({"truncate"}))
    with pytest.raises(OSError):
        undo.change(NAME, CHANGES)
    for to_read in (True, False):
        with pytest.raises(OSError):
            undo.settle(NAME, to_read=to_read)
    undo.settle("another name")
    disk.heal()
    undo.settle(NAME)
    assert load(inside, share_path(NAME, 0)) == load(inside, share_path(NAME, 1)) == OLD
    assert inside.list_directory(INCOMING) == []
    undo.change(NAME, CHANGES)
    assert (load(inside, share_path(NAME, 0)), load(inside, share_path(NAME, 1))) == NEW


@pytest.mark.parametrize("seed", range(8))
def test_log_when_its_change_was_made_does_not_come_back_to_undo_later_ones(seed: int) -> None:
    disk = make_disk(0, 1).copied()
    undo = UndoLog(disk, durable=True)
    undo.change(NAME, CHANGES[:1])
    undo.change(NAME, [Change(share_number=0, writes=[(11, b"X")], saves=[(11, 1)])])
    survivor = disk.after_power_loss(seed)
    UndoLog(survivor, durable=True).recover_all()
    assert load(survivor, share_path(NAME, 0)) == NEW[0][:11] + b"X" + NEW[0][12:]


def test_log_when_it_cannot_be_removed_does_not_keep_anyone_from_reading() -> None:
    inside = make_disk(0)
    disk = FaultyDisk(inside)
    undo = UndoLog(disk, durable=True)
    disk.fail_in(0, errno.EIO, frozenset({"sync_directory"}), frozenset({"sync_directory"}))
    with pytest.raises(OSError):
        undo.change(NAME, CHANGES[:1])
    undo.settle(NAME, to_read=True)
    assert load(inside, share_path(NAME, 0)) == OLD
    with pytest.raises(OSError):
        undo.settle(NAME)
    disk.heal()
    undo.settle(NAME)


def test_recovery_when_it_fails_says_which_log_must_be_kept() -> None:
    inside = make_disk(0)
    disk = FaultyDisk(inside)
    disk.stop_in(14)
    with pytest.raises(Stopped):
        UndoLog(disk, durable=False).change(NAME, CHANGES[:1])
    assert inside.exists(undo_path(NAME))
    again = FaultyDisk(inside)
    again.fail_in(0, errno.EIO, frozenset({"read"}))
    undo = UndoLog(again, durable=True)
    assert undo.recover_all() == {undo_path(NAME)}
    undo.settle(NAME)
    assert load(inside, share_path(NAME, 0)) == OLD


def whole_log(numbers: tuple[int, ...] = (0,)) -> bytes:
    """A log as a crash leaves it in the midst of a change."""
    inside = make_disk(*numbers)
    for count in range(100):
        disk = FaultyDisk(inside)
        disk.stop_in(count)
        try:
            UndoLog(disk, durable=False).change(NAME, [CHANGES[number] for number in numbers])
        except Stopped:
            pass
        if load(inside, share_path(NAME, numbers[0])) != OLD:
            return load(inside, undo_path(NAME))
        if inside.exists(undo_path(NAME)):
            inside.unlink(undo_path(NAME))
    raise AssertionError("the change was never begun")


LOG = whole_log()


@given(st.integers(0, len(LOG) - 1), st.integers(1, 255))
def test_log_when_any_byte_is_different_is_not_followed(place: int, mask: int) -> None:
    disk = make_disk(0)
    store(disk, undo_path(NAME), LOG[:place] + bytes([LOG[place] ^ mask]) + LOG[place + 1 :])
    assert UndoLog(disk, durable=True).recover_all() == frozenset()
    assert load(disk, share_path(NAME, 0)) == OLD
    assert disk.list_directory(INCOMING) == []


@given(st.integers(0, len(LOG) - 1))
def test_log_when_cut_short_is_not_followed(size: int) -> None:
    disk = make_disk(0)
    changed = disk.open_file(share_path(NAME, 0), writable=True)
    disk.write(changed, 10, [b"!!!"])
    disk.close_file(changed)
    store(disk, undo_path(NAME), LOG[:size])
    UndoLog(disk, durable=True).recover_all()
    assert load(disk, share_path(NAME, 0))[10:13] == b"!!!"
    assert disk.list_directory(INCOMING) == []


def test_log_when_a_share_is_gone_restores_the_others() -> None:
    log = whole_log((0, 1))
    disk = make_disk(1)
    store(disk, undo_path(NAME), log)
    changed = disk.open_file(share_path(NAME, 1), writable=True)
    disk.write(changed, 0, [b"!!!"])
    disk.close_file(changed)
    UndoLog(disk, durable=True).recover_all()
    assert load(disk, share_path(NAME, 1)) == OLD


def test_recovery_when_unrelated_files_exist_leaves_them_alone() -> None:
    disk = make_disk()
    disk.make_directory(f"{INCOMING}/aa.undo")
    store(disk, f"{INCOMING}/notes", b"x")
    assert UndoLog(disk, durable=True).recover_all() == frozenset()
    assert len(disk.list_directory(INCOMING)) == 2
    assert sha256(LOG[:-32]).digest() == LOG[-32:]
