"""Whole shares stored at once: costs, refusals, and conflicts."""

from __future__ import annotations

import errno

import pytest

from grid.errors import FormatError, PeerRefusedError
from grid.limits import STORE_CALL_BYTES, STORE_CALL_SHARES
from grid.ports import NewShares, ShareNumber, StorageIndex, StoreAnswer
from grid.storage.files.disk import Handle
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import INCOMING, SHARES, index_name, share_directory, share_path
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import begin, lease, put, share_numbers, slot_secrets, vector, whole
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import ServiceScene
from tests.support.stored_shares import files_below, load, stored_shares

INDEX = StorageIndex(b"immutable index!")
DONE = StoreAnswer(already=frozenset(), stored=True)
REFUSED = StoreAnswer(already=frozenset(), stored=False)


def index(number: int) -> StorageIndex:
    return StorageIndex(number.to_bytes(16, "big"))


def store(scene: ServiceScene, *stores: NewShares) -> list[StoreAnswer]:
    return list(scene.run(scene.service.store_shares(stores)))


def test_store_when_done_makes_the_file_that_an_upload_makes() -> None:
    at_once, by_steps = ServiceScene(), ServiceScene()
    assert store(at_once, whole(INDEX, {3: b"share", 200: b"other"})) == [DONE]
    by_steps.run(put(by_steps.service, INDEX, {3: b"share", 200: b"other"}))
    for number in (3, 200):
        path = share_path(index_name(INDEX), number)
        assert load(at_once.disk, path) == load(by_steps.disk, path)
    assert files_below(at_once.disk, INCOMING) == []


def test_store_when_of_many_files_takes_one_pool_call_and_three_syncs_a_file() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    disk.calls.clear()
    scene.runtime.cpu.calls.clear()
    assert store(scene, *(whole(index(number << 123), {0: b"small"}) for number in range(20))) == [DONE] * 20
    assert scene.runtime.cpu.calls == ["store"]
    assert disk.calls.count("sync_file") == 20
    assert disk.calls.count("sync_directory") == 20 + 20 + 1
    assert disk.calls.count("list_directory") == 0
    last_write = max(place for place, call in enumerate(disk.calls) if call == "write")
    assert disk.calls.index("sync_file") > last_write, "one commit of the journal should serve all files"
    disk.calls.clear()
    assert store(scene, whole(index(1), {0: b"small"})) == [DONE]
    assert disk.calls.count("sync_directory") == 2, "the directory of all shares is synced for new prefixes alone"


def test_store_when_nothing_need_be_durable_syncs_nothing() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk, StorageSettings(durability="none"))
    assert store(scene, whole(INDEX, {0: b"small"})) == [DONE]
    assert not {"sync_file", "sync_directory"} & set(disk.calls)


def test_store_when_a_file_is_named_twice_stores_the_first_and_finds_it() -> None:
    scene = ServiceScene()
    answers = store(scene, whole(INDEX, {0: b"a"}), whole(index(1), {5: b"b"}), whole(INDEX, {1: b"c"}))
    assert answers == [DONE, DONE, StoreAnswer(already=share_numbers(0), stored=False)]


def test_store_when_there_is_room_for_some_refuses_the_rest() -> None:
    scene = ServiceScene(MemoryDisk(100_000))
    answers = store(scene, *(whole(index(number), {0: bytes(30_000)}) for number in range(5)))
    assert answers == [DONE, DONE, DONE, REFUSED, REFUSED]
    assert len(stored_shares(scene.disk)) == 3


def test_store_when_room_is_promised_to_an_upload_leaves_it_alone() -> None:
    scene = ServiceScene(MemoryDisk(100_000))
    upload = scene.run(begin(scene.service, index(9), [0], 60_000))
    assert store(scene, whole(INDEX, {0: bytes(50_000)})) == [REFUSED]
    scene.run(upload.abort())
    assert store(scene, whole(INDEX, {0: bytes(50_000)})) == [DONE]


def test_store_when_the_server_is_read_only_renews_what_is_held_and_stores_nothing() -> None:
    scene = ServiceScene()
    assert store(scene, whole(INDEX, {0: b"a"})) == [DONE]
    scene.run(scene.service.stop())
    scene = ServiceScene(scene.disk, StorageSettings(readonly=True))
    scene.advance(1000)
    answers = store(scene, whole(INDEX, {1: b"b"}), whole(index(1), {1: b"b"}))
    assert answers == [StoreAnswer(already=share_numbers(0), stored=False), REFUSED]
    (held,) = stored_shares(scene.disk).values()
    assert len(held.leases) == 1


def test_store_when_shares_are_held_adds_a_lease_to_each() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"a", 1: b"b"}))
    store(scene, whole(INDEX, {1: b"b"}, owner=b"s"))
    assert [len(held.leases) for held in stored_shares(scene.disk).values()] == [2, 2]


def test_store_when_the_slot_holds_a_mutable_share_of_that_number_stores_nothing() -> None:
    scene = ServiceScene()
    scene.run(scene.service.test_and_write(INDEX, slot_secrets(), {ShareNumber(0): vector((0, b"mutable"))}))
    assert store(scene, whole(INDEX, {0: b"a"})) == [REFUSED]
    assert len(stored_shares(scene.disk)) == 1


def test_store_when_an_upload_has_left_its_directory_is_stored_there() -> None:
    scene = ServiceScene()
    upload = scene.run(begin(scene.service, INDEX, [0], 3))
    assert store(scene, whole(INDEX, {1: b"abc"})) == [DONE]
    scene.run(upload.abort())
    assert set(stored_shares(scene.disk)) == {(index_name(INDEX), 1)}


def test_store_when_one_file_fails_stores_the_others() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    disk.fail_in(1, errno.EIO, frozenset({"sync_file"}))
    answers = store(scene, *(whole(index(number << 123), {0: b"data"}) for number in range(3)))
    assert disk.fired
    assert answers == [DONE, REFUSED, DONE]
    assert len(stored_shares(disk.inside)) == 2
    assert files_below(disk.inside, INCOMING) == []
    assert not disk.inside.exists(share_directory(index_name(index(1 << 123))))


def test_store_when_the_directory_of_all_shares_cannot_be_synced_refuses_all() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    disk.fail_in(2, errno.EIO, frozenset({"sync_directory"}))
    assert store(scene, whole(INDEX, {0: b"data"})) == [REFUSED]
    assert stored_shares(disk.inside) == {}
    assert store(scene, whole(INDEX, {0: b"data"})) == [DONE]
    assert disk.inside.exists(SHARES)


@pytest.mark.parametrize(
    "stores",
    [
        [whole(INDEX, {})],
        [whole(INDEX, {0: b"a", 1: b"ab"})],
        [whole(StorageIndex(b"short"), {0: b"a"})],
        [whole(INDEX, {256: b"a"})],
        [whole(index(number), {0: b""}) for number in range(STORE_CALL_SHARES + 1)],
        [whole(index(number), {0: bytes(STORE_CALL_BYTES // 2 + 1)}) for number in range(2)],
    ],
    ids=["none", "sizes", "index", "number", "many", "large"],
)
def test_store_when_impossible_is_refused_as_a_whole(stores: list[NewShares]) -> None:
    scene = ServiceScene()
    with pytest.raises(FormatError):
        store(scene, *stores)
    assert stored_shares(scene.disk) == {}


def test_store_when_the_server_stops_is_refused() -> None:
    scene = ServiceScene()
    scene.run(scene.service.stop())
    with pytest.raises(PeerRefusedError):
        store(scene, whole(INDEX, {0: b"a"}))


def test_store_when_repeated_by_another_owner_keeps_both_leases() -> None:
    scene = ServiceScene()
    store(scene, whole(INDEX, {0: b"a"}))
    scene.run(scene.service.allocate(INDEX, lease(b"z"), frozenset(), 1))
    (held,) = stored_shares(scene.disk).values()
    assert len(held.leases) == 2


class CountingDisk(MemoryDisk):
    """A disk that knows how many files were open at once."""

    most_open = 0

    def create_file(self, path: str) -> Handle:
        handle = super().create_file(path)
        self.most_open = max(self.most_open, self.open_count)
        return handle


@pytest.mark.parametrize(("open_files", "most"), [(2, 2), (16, 8), (2**16, 100)])
def test_store_when_few_files_may_be_open_syncs_some_before_it_writes_others(open_files: int, most: int) -> None:
    disk = CountingDisk()
    scene = ServiceScene(disk, StorageSettings(open_files=open_files))
    shares = dict.fromkeys(range(10), b"small")
    assert store(scene, *(whole(index(number << 120), shares) for number in range(10))) == [DONE] * 10
    assert disk.most_open <= most
    assert disk.open_count == 0
    assert len(stored_shares(disk)) == 100


def test_uploads_when_few_files_may_be_open_leave_room_for_others() -> None:
    disk = CountingDisk()
    scene = ServiceScene(disk, StorageSettings(open_files=8))
    for number in range(10):
        scene.run(begin(scene.service, index(number << 120), range(10), 5))
    assert disk.open_count <= 4
