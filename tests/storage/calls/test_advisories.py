"""Corruption reports as files."""

from __future__ import annotations

import pytest

from grid import limits
from grid.errors import FormatError
from grid.ports import ShareKind, ShareNumber, StorageIndex
from grid.storage.calls import advisories
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import ADVISORIES, index_name
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import put, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import ServiceScene
from tests.support.stored_shares import files_below

INDEX = StorageIndex(b"immutable index!")
SLOT = StorageIndex(b"the mutable one!")


def make(disk: MemoryDisk | FaultyDisk | None = None, settings: StorageSettings | None = None) -> ServiceScene:
    scene = ServiceScene(disk, settings)
    scene.run(put(scene.service, INDEX, {0: b"data"}))
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(), {ShareNumber(3): vector((0, b"slot"))}))
    return scene


def report(scene: ServiceScene, kind: ShareKind, index: StorageIndex, number: int, reason: str = "bad hash") -> None:
    scene.run(scene.service.advise_corrupt(kind, index, ShareNumber(number), reason))


def test_report_when_the_share_is_held_is_a_file_as_1_20_writes_it() -> None:
    scene = make()
    scene.advance(1.25)
    report(scene, "immutable", INDEX, 0, "a hash is wrong – über")
    (path,) = files_below(scene.disk, ADVISORIES)
    name = index_name(INDEX)
    assert path == f"corruption-advisories/2023-11-14T221321.250000--{name}-0"
    handle = scene.disk.open_file(path)
    text = scene.disk.read(handle, 0, 1000).decode()
    scene.disk.close_file(handle)
    assert text == (
        "report: Share Corruption\ntype: immutable\n"
        f"storage_index: {name}\nshare_number: 0\n\na hash is wrong – über\n\n"
    )


def test_report_when_no_such_share_is_held_is_ignored() -> None:
    scene = make()
    report(scene, "immutable", INDEX, 1)
    report(scene, "mutable", INDEX, 0)
    report(scene, "immutable", SLOT, 3)
    report(scene, "immutable", StorageIndex(bytes(16)), 0)
    assert files_below(scene.disk, ADVISORIES) == []
    report(scene, "mutable", SLOT, 3)
    assert len(files_below(scene.disk, ADVISORIES)) == 1


def test_report_when_there_is_no_room_is_dropped() -> None:
    scene = make(MemoryDisk(10**6))
    again = ServiceScene(scene.disk, StorageSettings(readonly=True))
    report(again, "immutable", INDEX, 0)
    assert files_below(scene.disk, ADVISORIES) == []


def test_report_when_too_long_is_refused() -> None:
    scene = make()
    report(scene, "immutable", INDEX, 0, "ü" * (limits.MAX_ADVISORY_LENGTH // 2))
    with pytest.raises(FormatError):
        report(scene, "immutable", INDEX, 0, "xx" + "ü" * (limits.MAX_ADVISORY_LENGTH // 2))
    assert len(files_below(scene.disk, ADVISORIES)) == 1


def test_reports_when_as_many_as_are_kept_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisories, "MAX_ADVISORIES", 3)
    scene = make()
    for _ in range(5):
        report(scene, "immutable", INDEX, 0)
        scene.advance(1)
    assert len(files_below(scene.disk, ADVISORIES)) == 3
    again = ServiceScene(scene.disk)
    report(again, "immutable", INDEX, 0)
    assert len(files_below(scene.disk, ADVISORIES)) == 3


def test_report_when_made_twice_at_once_is_kept_once() -> None:
    scene = make()
    report(scene, "immutable", INDEX, 0, "first")
    report(scene, "immutable", INDEX, 0, "again")
    assert len(files_below(scene.disk, ADVISORIES)) == 1


def test_report_when_it_cannot_be_written_leaves_nothing() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = make(disk)
    disk.fail_in(0, 28, frozenset({"write"}))
    with pytest.raises(Exception, match="the disk takes no more"):
        report(scene, "immutable", INDEX, 0)
    assert files_below(scene.disk, ADVISORIES) == []
