"""Mutable shares rewritten and changed in place: the same share either way, and the cheaper way is chosen."""

from __future__ import annotations

import pytest

from grid.ports import ShareNumber, StorageIndex, TestWrite
from grid.storage.files import slot_writes
from grid.storage.files.disk import Handle
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import index_name, share_path
from grid.storage.files.slot_writes import COPY_FACTOR, COPY_LIMIT, is_worth_copying
from grid.storage.files.slots import Slot
from tests.contract.storage_server import lease, slot, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import ServiceScene
from tests.support.stored_shares import load

SLOT = StorageIndex(b"the mutable one!")
NUMBER = ShareNumber(0)
OLD = bytes(range(1, 251)) * 20


def make(*, in_place: bool, patch: pytest.MonkeyPatch) -> tuple[ServiceScene, FaultyDisk]:
    """A share of 5000 bytes with six leases; later writes change it in place or rewrite it."""
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(), {NUMBER: vector((0, OLD))}))
    for letter in b"abcde":
        scene.run(scene.service.add_lease(SLOT, lease(bytes([letter]))))
    patch.setattr(slot_writes, "COPY_LIMIT", 0 if in_place else 2**20)
    patch.setattr(slot_writes, "COPY_FACTOR", 0)
    disk.calls.clear()
    return scene, disk


WRITES = [
    [vector((10, b"inside"))],
    [vector((4990, b"over the end by some"))],
    [vector((5000, b"behind"), (5006, b"and behind that"))],
    [vector((6000, b"over a gap"))],
    [vector((6000, b""))],
    [vector((7000, b"far"), (5500, b"and nearer"), (8000, b"and farther"))],
    [vector(new_length=100), vector((300, b"over what was cut off"))],
    [vector(new_length=100), vector((4000, b"over much"), (4800, b"of what was cut off"))],
    [vector(new_length=100), vector((4999, b"to the end and further"), new_length=5010)],
    [vector((10, b"and cut"), new_length=50), vector((20, b"again"), new_length=40)],
]


@pytest.mark.parametrize("vectors", WRITES)
@pytest.mark.parametrize("in_place", [True, False])
def test_share_when_written_either_way_holds_what_was_written(
    vectors: list[object], in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, disk = make(in_place=in_place, patch=monkeypatch)
    expected = bytearray(OLD)
    for change in vectors:
        assert isinstance(change, type(vector()))
        for offset, data in change.writes:
            expected.extend(bytes(max(0, offset - len(expected))))
            expected[offset : offset + len(data)] = data
        if change.new_length is not None:
            del expected[change.new_length :]
        scene.run(scene.service.test_and_write(SLOT, slot_secrets(letter=b"f"), {NUMBER: change}))
    assert scene.run(slot(scene.service, SLOT)) == {0: bytes(expected)}
    assert ("rename" in disk.calls) is not in_place
    name = index_name(SLOT)
    data = load(scene.disk, share_path(name, 0))
    leases_at = int.from_bytes(data[92:100], "big")
    assert int.from_bytes(data[84:92], "big") == len(expected)
    assert int.from_bytes(data[leases_at : leases_at + 4], "big") == 3
    assert len(data) == leases_at + 4 + 3 * 92
    for letter in b"rabcdef":
        scene.run(scene.service.add_lease(SLOT, lease(bytes([letter]))))
    assert len(load(scene.disk, share_path(name, 0))) == len(data), "every lease is still known"


def test_share_when_it_grows_piece_by_piece_then_has_room_until_its_length_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, disk = make(in_place=False, patch=monkeypatch)
    monkeypatch.setattr(slot_writes, "ROOM_FROM", 1000)
    expected, seen = OLD, []

    def write(data: bytes, at: int | None = None, new_length: int | None = None) -> None:
        nonlocal expected
        offset = len(expected) if at is None else at
        disk.calls.clear()
        change = vector((offset, data), new_length=new_length)
        scene.run(scene.service.test_and_write(SLOT, slot_secrets(letter=b"e"), {NUMBER: change}))
        expected = expected[:offset].ljust(offset, b"\0") + data + expected[offset + len(data) :]
        assert scene.run(slot(scene.service, SLOT)) == {0: expected}
        file = load(scene.disk, share_path(index_name(SLOT), 0))
        leases_at = int.from_bytes(file[92:100], "big")
        assert int.from_bytes(file[84:92], "big") == len(expected)
        assert file[leases_at : leases_at + 4] == (2).to_bytes(4, "big") and len(file) == leases_at + 4 + 2 * 92
        seen.append((leases_at - 468 - len(expected), "rename" in disk.calls))

    write(b"little")
    write(b"more " * 400)
    write(b"fills the room " * 200)
    write(b"and a gap", at=len(expected) + 50)
    write(b"x" * 2000)
    write(b"inside", at=10)
    write(b"beyond the room " * 400)
    write(b"the end", new_length=len(expected) + 7)
    assert seen[:6] == [(0, True), (7006, True), (4006, False), (3947, True), (1947, False), (1947, True)]
    assert seen[6:] == [(len(expected) - 7, True), (0, True)]


def test_choice_when_the_share_is_small_or_mostly_written_is_to_copy() -> None:
    small = Slot(version=2, node_id=bytes(20), write_enabler=bytes(32), data_size=COPY_LIMIT, leases_offset=10**9)
    large = Slot(version=2, node_id=bytes(20), write_enabler=bytes(32), data_size=COPY_LIMIT + 1, leases_offset=10**9)
    assert is_worth_copying(small, vector((0, b"x")))
    assert not is_worth_copying(large, vector((0, b"x")))
    assert is_worth_copying(large, vector((0, bytes(COPY_LIMIT // COPY_FACTOR + 1))))


class ReadingDisk(MemoryDisk):
    """Counts the bytes that are read."""

    bytes_read = 0

    def read(self, handle: Handle, offset: int, length: int) -> bytes:
        data = super().read(handle, offset, length)
        self.bytes_read += len(data)
        return data


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (vector((0, bytes(5000)), new_length=5000), 0),
        (vector((4000, bytes(2000)), (0, bytes(4000)), new_length=6000), 0),
        (vector((0, bytes(100)), new_length=100), 0),
        (vector((100, bytes(4900))), 100),
        (vector((0, bytes(10)), (20, bytes(30)), new_length=60), 20),
    ],
)
def test_rewritten_share_reads_only_what_stays_of_it(change: TestWrite, kept: int) -> None:
    disk = ReadingDisk()
    scene = ServiceScene(disk)
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(), {NUMBER: vector((0, OLD))}))
    disk.bytes_read = 0
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(), {NUMBER: vector((0, b""))}))
    besides, disk.bytes_read = disk.bytes_read, 0
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(), {NUMBER: change}))
    assert disk.bytes_read == besides - len(OLD) + kept
