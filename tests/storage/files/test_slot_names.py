"""Which directory entries are synced, and how often."""

from __future__ import annotations

import errno

import pytest

from grid.storage.files import slot_writes
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.slot_writes import ShareNames
from tests.support.faulty_disk import FaultyDisk


def make(*, durable: bool = True) -> tuple[FaultyDisk, ShareNames]:
    disk = FaultyDisk(MemoryDisk())
    for directory in ("shares", "shares/aa", "shares/aa/aab", "shares/aa/aac"):
        disk.make_directory(directory)
    return disk, ShareNames(disk, durable=durable)


def syncs(disk: FaultyDisk) -> int:
    return disk.calls.count("sync_directory")


def test_settle_when_first_of_a_prefix_syncs_up_to_the_top_and_the_next_one_not() -> None:
    disk, names = make()
    names.settle("aab")
    assert syncs(disk) == 3
    names.settle("aac")
    assert syncs(disk) == 5


def test_settle_when_nothing_changed_since_syncs_nothing() -> None:
    disk, names = make()
    names.settle("aab")
    names.settle("aab")
    assert syncs(disk) == 3


def test_settle_when_a_share_was_replaced_syncs_its_directory_alone() -> None:
    disk, names = make()
    names.settle("aab")
    names.changing("aab", is_new=False)
    names.settle("aab")
    assert syncs(disk) == 4


def test_settle_when_the_directory_is_new_syncs_the_one_above_again() -> None:
    disk, names = make()
    names.settle("aab")
    names.changing("aab", is_new=True)
    names.settle("aab")
    assert syncs(disk) == 5


def test_settle_when_the_directory_went_makes_that_durable_and_forgets_it() -> None:
    disk, names = make()
    names.settle("aab")
    names.changing("aab", is_new=False)
    disk.remove_directory("shares/aa/aab")
    names.settle("aab")
    assert syncs(disk) == 5
    disk.make_directory("shares/aa/aab")
    names.changing("aab", is_new=False)
    names.settle("aab")
    assert syncs(disk) == 7


def test_settle_when_a_sync_fails_is_owed_until_one_succeeds() -> None:
    disk, names = make()
    disk.fail_in(0, errno.EIO, frozenset({"sync_directory"}))
    with pytest.raises(OSError, match="Errno"):
        names.settle("aab")
    before = syncs(disk)
    names.settle("aab")
    assert syncs(disk) == before + 3


def test_settle_when_many_are_known_forgets_and_syncs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_writes, "KNOWN_NAMES", 1)
    disk, names = make()
    for name in ("aab", "aac", "aab"):
        names.settle(name)
    assert syncs(disk) == 3 + 2 + 2


def test_settle_when_not_durable_syncs_nothing() -> None:
    disk, names = make(durable=False)
    names.settle("aab")
    assert not syncs(disk)
