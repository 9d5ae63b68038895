"""What a storage server refuses, and that files it did not write affect only themselves."""

from __future__ import annotations

import errno
import struct

import pytest

from grid import limits
from grid.errors import DataTooLargeError, FormatError, GridError, NoSpaceError, PeerError, UnknownVersionError
from grid.ports import Find, ShareNumber, StorageIndex
from grid.storage.files import slot_store
from grid.storage.files import store as store_module
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import ADVISORIES, INCOMING, index_name, share_path
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import lease, plain, put, share_numbers, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import ServiceScene
from tests.support.stored_shares import files_below, immutable_file, load, store

INDEX = StorageIndex(b"immutable index!")
OTHER = StorageIndex(b"another index...")
WHOLE = (0, 10_000)


def bad_files(scene: ServiceScene, index: StorageIndex) -> None:
    """Everything that may lie about in a share directory."""
    name = index_name(index)
    store(scene.disk, share_path(name, 1), b"")
    store(scene.disk, share_path(name, 2), b"\0\0\0\x09not of a known version")
    store(scene.disk, share_path(name, 3), struct.pack(">LLL", 2, 5, 1000))
    store(scene.disk, share_path(name, 4), b"Tahoe mutable container v2\n\xc3\x55\x21\x99\x25 cut short")
    scene.disk.make_directory(share_path(name, 5))
    for other in ("007", "1000", "-1", "notes.txt"):
        store(scene.disk, f"shares/{name[:2]}/{name}/{other}", b"junk")


def test_bad_files_when_beside_shares_spoil_only_themselves() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"whole"}))
    bad_files(scene, INDEX)
    assert plain(scene.run(scene.service.find_shares(INDEX, [WHOLE]))) == {0: [b"whole"]}
    wants = {ShareNumber(number): [WHOLE] for number in range(8)}
    assert plain(scene.run(scene.service.read_shares(INDEX, wants))) == {0: [b"whole"]}
    scene.run(scene.service.add_lease(INDEX, lease(b"s")))
    assert len(load(scene.disk, share_path(index_name(INDEX), 0))) == 12 + 5 + 2 * 72
    allocation = scene.run(scene.service.allocate(INDEX, lease(b"t"), share_numbers(0, 1, 2, 4, 6), 4))
    assert allocation.already == {0}
    assert allocation.upload.share_numbers == {6}, "a file that is no share is not overwritten"
    scene.run(allocation.upload.abort())


def test_bad_files_when_in_a_slot_spoil_only_themselves() -> None:
    scene = ServiceScene()
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))}))
    bad_files(scene, OTHER)
    store(scene.disk, share_path(index_name(OTHER), 9), immutable_file(b"immutable", b"r"))
    assert plain(scene.run(scene.service.read_slot(OTHER, frozenset(), [WHOLE]))) == {0: [b"slot"]}
    answer = scene.run(
        scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"new!"))}, [WHOLE])
    )
    assert plain(answer.data) == {0: [b"slot"]}
    for number in (1, 2, 3, 4, 9):
        for change in (vector((0, b"x")), vector(new_length=0)):
            with pytest.raises(FormatError):
                scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(number): change}))
    with pytest.raises(UnknownVersionError):
        scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(9): vector((0, b"x"))}))
    assert slot_data(scene) == b"new!"


def slot_data(scene: ServiceScene) -> bytes:
    return plain(scene.run(scene.service.read_slot(OTHER, share_numbers(0), [WHOLE])))[0][0]


def test_disk_when_it_fails_is_a_peer_error() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    scene.run(put(scene.service, INDEX, {0: b"data"}))
    disk.fail_in(0, 13, frozenset({"list_directory"}))
    with pytest.raises(PeerError):
        scene.run(scene.service.find_shares(INDEX))
    disk.fail_in(0, 13, frozenset({"list_directory"}))
    bad, good = scene.run(scene.service.find_each([Find(OTHER), Find(INDEX, [WHOLE])]))
    assert bad is None
    assert plain(good or {}) == {0: [b"data"]}
    disk.fail_in(0, 13, frozenset({"list_directory"}))
    assert scene.run(scene.service.read_slots([Find(OTHER), Find(OTHER, [WHOLE])])) == [None, {}]
    disk.fail_in(0, 5, frozenset({"read"}))
    assert plain(scene.run(scene.service.find_shares(INDEX, [WHOLE]))) == {0: []}, "a share that cannot be read is here"
    disk.fail_in(0, 5, frozenset({"read"}))
    with pytest.raises(GridError):
        scene.run(scene.service.add_lease(INDEX, lease(b"s")))


@pytest.mark.parametrize("call", ["open_file", "read"])
def test_share_when_the_disk_cannot_read_it_is_reported_without_its_bytes(call: str) -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    service = scene.service
    scene.run(put(service, INDEX, {0: b"data", 1: b"more"}))
    scene.run(service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))}))
    for question in (
        service.read_shares(INDEX, {ShareNumber(0): [WHOLE]}),
        service.read_slot(OTHER, share_numbers(0), [WHOLE]),
        service.read_slot(OTHER, frozenset(), [WHOLE]),
    ):
        disk.fail_in(0, errno.EIO, frozenset({call}))
        assert plain(scene.run(question)) == {0: []}
        assert disk.fired.pop() == call
    disk.fail_in(0, errno.EIO, frozenset({call}))
    both = service.read_shares(INDEX, {ShareNumber(0): [WHOLE], ShareNumber(1): [WHOLE]})
    assert plain(scene.run(both)) == {0: [], 1: [b"more"]}, "one bad sector does not cost the other share"
    disk.heal()
    assert scene.run(service.read_shares(INDEX, {ShareNumber(2): [WHOLE]})) == {}


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_temporary_failure_of_the_server_is_an_error_of_all_shares(error: int) -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    service = scene.service
    scene.run(put(service, INDEX, {0: b"data", 1: b"more"}))
    scene.run(service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))}))
    for question in (
        service.find_shares(INDEX, [WHOLE]),
        service.read_shares(INDEX, {ShareNumber(0): [WHOLE], ShareNumber(1): [WHOLE]}),
        service.read_slot(OTHER, frozenset(), [WHOLE]),
    ):
        disk.fail_in(0, error, frozenset({"open_file"}))
        with pytest.raises(PeerError, match="disk failed"):
            scene.run(question)


def test_report_of_a_share_that_the_disk_cannot_read_is_recorded() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    scene.run(put(scene.service, INDEX, {0: b"data"}))
    disk.fail_in(0, errno.EIO, frozenset({"open_file"}))
    scene.run(scene.service.advise_corrupt("immutable", INDEX, ShareNumber(0), "its disk does not give it"))
    assert len(files_below(scene.disk, ADVISORIES)) == 1


@pytest.mark.parametrize("index", [b"", bytes(15), bytes(17)])
def test_calls_when_the_storage_index_is_invalid_are_refused(index: bytes) -> None:
    scene = ServiceScene()
    for call in (
        scene.service.find_shares(StorageIndex(index)),
        scene.service.add_lease(StorageIndex(index), lease()),
        scene.service.read_slot(StorageIndex(index), frozenset(), []),
    ):
        with pytest.raises(FormatError):
            scene.run(call)


@pytest.mark.parametrize("number", [-1, 256, 2**40])
def test_calls_when_a_share_number_is_out_of_range_are_refused(number: int) -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    disk.calls.clear()
    share = ShareNumber(number)
    for call in (
        scene.service.read_shares(INDEX, {share: [(0, 1)]}),
        scene.service.allocate(INDEX, lease(), frozenset({share}), 1),
        scene.service.advise_corrupt("immutable", INDEX, share, "reason"),
        scene.service.read_slot(INDEX, frozenset({share}), []),
        scene.service.test_and_write(INDEX, slot_secrets(), {share: vector()}),
    ):
        with pytest.raises(FormatError):
            scene.run(call)
    assert disk.calls == []


def test_calls_when_numbers_are_negative_or_too_large_are_refused() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    disk.calls.clear()
    service, share = scene.service, ShareNumber(0)
    many = [(0, 1)] * (limits.READ_CALL_RANGES + 1)
    vectors = [(0, b"")] * (limits.MAX_SLOT_VECTORS + 1)
    for call in (
        service.allocate(INDEX, lease(), share_numbers(0), -1),
        service.allocate(INDEX, lease(), share_numbers(0), limits.MAX_FILE_SIZE + 1),
        service.find_shares(INDEX, [(-1, 1)]),
        service.find_shares(INDEX, [(0, -1)]),
        service.find_shares(INDEX, [(0, limits.READ_CALL_BYTES), (0, 1)]),
        service.find_shares(INDEX, many),
        service.find_each([Find(INDEX)] * (limits.FIND_CALL_FILES + 1)),
        service.find_each([Find(INDEX), Find(INDEX, [(-1, 1)])]),
        service.find_each([Find(INDEX), Find(INDEX, [(0, limits.READ_CALL_BYTES), (0, 1)])]),
        service.read_slots([Find(INDEX)] * (limits.FIND_CALL_FILES + 1)),
        service.read_slots([Find(INDEX), Find(INDEX, [(0, -5)])]),
        service.read_slots([Find(INDEX), Find(INDEX, [(0, 1)] * (limits.MAX_SLOT_VECTORS + 1))]),
        service.read_shares(INDEX, {share: many}),
        service.read_shares(INDEX, {ShareNumber(n): [(0, limits.READ_CALL_BYTES // 2)] for n in range(3)}),
        service.read_slot(INDEX, frozenset(), [(0, -5)]),
        service.read_slot(INDEX, frozenset(), [(0, 1)] * (limits.MAX_SLOT_VECTORS + 1)),
        service.test_and_write(INDEX, slot_secrets(), {}, [(-1, 0)]),
        service.test_and_write(INDEX, slot_secrets(), {share: vector((-1, b"x"))}),
        service.test_and_write(INDEX, slot_secrets(), {share: vector(tests=[(0, -1, b"")])}),
        service.test_and_write(INDEX, slot_secrets(), {share: vector(new_length=-1)}),
        service.test_and_write(INDEX, slot_secrets(), {share: vector(*vectors)}),
        service.test_and_write(INDEX, slot_secrets(), {share: vector((0, bytes(limits.MAX_SLOT_WRITE + 1)))}),
    ):
        with pytest.raises(FormatError):
            scene.run(call)
    assert disk.calls == []


def test_slot_write_when_past_what_is_possible_is_refused() -> None:
    scene = ServiceScene()
    with pytest.raises(DataTooLargeError):
        scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((69105 * 10**12, b"x"))}))
    assert files_below(scene.disk, INCOMING) == []


def test_slot_write_when_the_disk_has_no_room_for_it_changes_nothing() -> None:
    scene = ServiceScene(MemoryDisk(20_000))
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"kept"))}))
    with pytest.raises(NoSpaceError):
        scene.run(
            scene.service.test_and_write(
                OTHER,
                slot_secrets(),
                {ShareNumber(0): vector((0, b"lost")), ShareNumber(1): vector((30_000, b"x"))},
            )
        )
    assert slot_data(scene) == b"kept"
    assert files_below(scene.disk, INCOMING) == []


def test_slot_read_when_it_would_hold_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_store, "MAX_SLOT_WRITE", 10)
    scene = ServiceScene()
    writes = {ShareNumber(number): vector((0, b"1234")) for number in (0, 1, 2)}
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), writes))
    assert len(scene.run(scene.service.read_slot(OTHER, share_numbers(0, 1), [(0, 2**40)]))) == 2
    with pytest.raises(FormatError):
        scene.run(scene.service.read_slot(OTHER, frozenset(), [(0, 2**40)]))
    with pytest.raises(FormatError):
        scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"x"))}, [(0, 9)]))
    assert slot_data(scene) == b"1234"


def test_find_when_the_answer_would_grow_too_long_leaves_data_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "READ_CALL_BYTES", 10)
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"1234", 1: b"5678", 2: b"9abc"}))
    assert plain(scene.run(scene.service.find_shares(INDEX, [(0, 9)]))) == {0: [b"1234"], 1: [b"5678"], 2: []}
    assert plain(scene.run(scene.service.find_shares(INDEX, [(0, 3)]))) == {0: [b"123"], 1: [b"567"], 2: [b"9ab"]}


def test_files_when_calls_are_over_are_all_closed() -> None:
    disk = MemoryDisk()
    scene = ServiceScene(disk)
    scene.run(put(scene.service, INDEX, {0: b"data"}))
    bad_files(scene, INDEX)
    scene.run(scene.service.find_shares(INDEX, [WHOLE]))
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"x"))}, [WHOLE]))
    scene.run(scene.service.add_lease(OTHER, lease(b"s")))
    scene.run(scene.service.read_slot(OTHER, frozenset(), [WHOLE]))
    assert disk.open_count == 0


def test_slot_writes_that_make_no_share_larger_are_taken_with_the_disk_at_its_reserve() -> None:
    scene = ServiceScene(MemoryDisk(2**30), StorageSettings(reserved_space=2**40))
    assert scene.run(scene.service.get_version()).available_space == 0
    old = vector((0, b"o" * 5000))
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): old}))
    for change in (vector((0, b"n" * 5000)), vector((0, b"s" * 100), new_length=100), vector((50, b"g" * 10_000))):
        answer = scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): change}))
        assert answer.passed
