"""Rules of a storage server that show only on its disk: leases, space, bad files, and costs."""

from __future__ import annotations

import struct

import pytest

from grid.errors import NoSpaceError
from grid.limits import READ_CALL_BYTES
from grid.placement.leases import LeaseMaster, write_enabler
from grid.ports import Find, LeaseSecrets, ShareNumber, SlotSecrets, StorageIndex
from grid.storage.calls.service import UNLIMITED
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import ADVISORIES, INCOMING, ROOT, SHARES, index_name, share_path
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import begin, lease, piece, plain, put, share_numbers, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import NODE_ID, ServiceScene
from tests.support.stored_shares import Stored, blake, files_below, immutable_file, load, store, stored_shares

INDEX = StorageIndex(b"immutable index!")
OTHER = StorageIndex(b"another index...")
PERIOD = 31 * 86400
WHOLE = (0, 10_000)


def the_share(scene: ServiceScene, index: StorageIndex = INDEX, number: int = 0) -> Stored:
    return stored_shares(scene.disk)[index_name(index), number]


def test_immutable_share_when_stored_is_the_container_of_1_20() -> None:
    scene = ServiceScene()
    index = StorageIndex(bytes(range(16)))
    secrets = LeaseMaster(bytes(range(32))).secrets_for(index, NODE_ID)
    allocation = scene.run(scene.service.allocate(index, secrets, share_numbers(3), 5))
    path = "shares/incoming/aa/aaaqeayeaudaocajbifqydiob4/3"
    record = (
        "00000000adee7e551a74ab50515d6f52cb0da472436da13b6925c4aaa23aff6638f102bc"
        "d1c81611856e5c9e5328166ad25a23f23216b26e19fae9d88b4feb004d9dfbb9" + f"{1_700_000_000 + PERIOD:08x}"
    )
    assert load(scene.disk, path).hex() == "000000020000000500000001" + "00" * 5 + record
    scene.run(allocation.upload.write([piece(3, 0, b"share")]))
    scene.run(allocation.upload.close(share_numbers(3)))
    final = load(scene.disk, "shares/aa/aaaqeayeaudaocajbifqydiob4/3")
    assert final.hex() == "000000020000000500000001" + b"share".hex() + record


def test_mutable_share_when_stored_is_the_container_of_1_20() -> None:
    scene = ServiceScene()
    index = StorageIndex(bytes(range(16)))
    secrets = SlotSecrets(
        write_enabler=write_enabler(bytes(range(16, 32)), NODE_ID),
        lease=LeaseMaster(bytes(range(32))).secrets_for(index, NODE_ID),
    )
    scene.run(scene.service.test_and_write(index, secrets, {ShareNumber(1): vector((2, b"slot"))}))
    assert load(scene.disk, share_path(index_name(index), 1)).hex() == (
        "5461686f65206d757461626c6520636f6e7461696e65722076320ac355219925"
        + NODE_ID.hex()
        + "07f8d73be995ed2881ec1e0c7dc3b2049765de69b268a284731ff0fecd17b738"
        + f"{6:016x}{474:016x}"
        + f"00000001{1_700_000_000 + PERIOD:08x}"
        + "adee7e551a74ab50515d6f52cb0da472436da13b6925c4aaa23aff6638f102bc"
        + "d1c81611856e5c9e5328166ad25a23f23216b26e19fae9d88b4feb004d9dfbb9"
        + NODE_ID.hex()
        + "00" * 276
        + "0000736c6f74"
        + "00000000"
    )


def test_directories_when_started_are_made_and_incoming_is_empty() -> None:
    disk = MemoryDisk()
    store(disk, "shares/incoming/aa/aaaqeayeaudaocajbifqydiob4/3", b"half a share")
    store(disk, "shares/incoming/junk", b"junk")
    store(disk, "shares/aa/aaaqeayeaudaocajbifqydiob4/3", immutable_file(b"whole", b"r"))
    ServiceScene(disk)
    assert sorted(name for name, _ in disk.list_directory(ROOT)) == [ADVISORIES, SHARES]
    assert files_below(disk, INCOMING) == []
    assert disk.exists("shares/aa/aaaqeayeaudaocajbifqydiob4/3")


def test_service_when_the_disk_is_full_starts_and_serves_reads() -> None:
    inside = MemoryDisk()
    store(inside, share_path(index_name(INDEX), 0), immutable_file(b"whole", b"r"))
    disk = FaultyDisk(inside)
    disk.fail_in(0, 28, frozenset({"make_directory", "create_file", "write"}), frozenset({"make_directory", "write"}))
    scene = ServiceScene(disk)
    assert disk.fired
    assert plain(scene.run(scene.service.find_shares(INDEX, [WHOLE]))) == {0: [b"whole"]}
    allocation = scene.run(scene.service.allocate(OTHER, lease(), share_numbers(1), 5))
    assert allocation.upload.share_numbers == frozenset()


def test_version_when_space_is_reserved_says_what_is_left() -> None:
    scene = ServiceScene(MemoryDisk(1000), StorageSettings(reserved_space=300))
    version = scene.run(scene.service.get_version())
    assert version.available_space == version.maximum_immutable_share_size == 700
    assert version.maximum_mutable_share_size == 69105 * 10**12
    assert version.batched_reads
    assert version.batched_writes
    assert version.is_read_only is False
    assert ServiceScene(MemoryDisk(100), StorageSettings(reserved_space=300)).run(available()) == 0
    scene = ServiceScene(MemoryDisk(None), StorageSettings(reserved_space=300))
    assert scene.run(scene.service.get_version()).available_space == UNLIMITED


async def available() -> int:
    scene = ServiceScene(MemoryDisk(100), StorageSettings(reserved_space=300))
    return (await scene.service.get_version()).available_space


def test_allocation_when_space_is_promised_to_others_counts_it() -> None:
    scene = ServiceScene(MemoryDisk(10**6), StorageSettings(reserved_space=10**6 - 10_000))
    first = scene.run(begin(scene.service, INDEX, [0, 1, 2, 3], 1000))
    # In memory a hole takes room as well: what is in progress counts twice, as for a disk that is written to.
    second = scene.run(scene.service.allocate(OTHER, lease(), share_numbers(*range(9)), 600))
    assert len(second.upload.share_numbers) == 2
    scene.run(first.abort())
    scene.run(second.upload.abort())
    assert len(scene.run(begin(scene.service, OTHER, [0, 1, 2, 3], 2000)).share_numbers) == 4


def test_allocations_when_made_at_once_do_not_share_the_last_room() -> None:
    from twisted.internet.defer import Deferred

    from tests.support.gated_pool import GatedPool

    pool = GatedPool("allocate")
    scene = ServiceScene(MemoryDisk(10**6), StorageSettings(reserved_space=10**6 - 1000), pool)
    tasks = [
        Deferred.fromCoroutine(scene.service.allocate(index, lease(), share_numbers(0), 700))
        for index in (INDEX, OTHER)
    ]
    taken: list[int] = []
    for task in tasks:
        task.addCallback(lambda allocation: taken.append(len(allocation.upload.share_numbers)))
    pool.release_all()
    assert sum(taken) <= 1
    assert len(taken) == 2


def test_server_when_read_only_takes_no_shares_but_renews_and_writes_slots() -> None:
    disk = MemoryDisk()
    ServiceScene(disk)
    store(disk, share_path(index_name(INDEX), 0), immutable_file(b"whole", b"r"))
    scene = ServiceScene(disk, StorageSettings(readonly=True))
    version = scene.run(scene.service.get_version())
    assert (version.available_space, version.is_read_only) == (0, True)
    assert scene.run(scene.service.allocate(OTHER, lease(), share_numbers(1), 1)).upload.share_numbers == frozenset()
    allocation = scene.run(scene.service.allocate(INDEX, lease(b"r"), share_numbers(0, 1), 1))
    assert allocation.already == {0}
    assert the_share(scene).leases == ((blake(b"r" * 32), 1_700_000_000 + PERIOD),)
    with pytest.raises(NoSpaceError):
        scene.run(scene.service.allocate(INDEX, lease(b"s"), share_numbers(0), 1))
    with pytest.raises(NoSpaceError):
        scene.run(scene.service.add_lease(INDEX, lease(b"s")))
    assert len(the_share(scene).leases) == 1
    for letter in (b"a", b"b", b"c", b"d"):
        scene.run(
            scene.service.test_and_write(OTHER, slot_secrets(letter=letter), {ShareNumber(0): vector((0, letter))})
        )
    with pytest.raises(NoSpaceError):
        scene.run(scene.service.test_and_write(OTHER, slot_secrets(letter=b"e"), {ShareNumber(0): vector((0, b"e"))}))
    assert the_share(scene, OTHER).data == b"d"
    empty = scene.run(scene.service.allocate(StorageIndex(bytes(16)), lease(), share_numbers(1), 0))
    assert empty.upload.share_numbers == {1}
    scene.run(empty.upload.abort())


@pytest.mark.parametrize("version", [1, 2])
def test_lease_when_renewed_keeps_everything_but_its_time(version: int) -> None:
    scene = ServiceScene()
    path = share_path(index_name(INDEX), 0)
    old = immutable_file(b"data", b"q", b"r", b"s", version=version)
    store(scene.disk, path, old)
    scene.run(scene.service.add_lease(INDEX, LeaseSecrets(renew=b"r" * 32, cancel=b"!" * 32)))
    new = load(scene.disk, path)
    place = 12 + 4 + 72 + 68
    assert new[place : place + 4] == struct.pack(">L", 1_700_000_000 + PERIOD)
    assert new[:place] + old[place : place + 4] + new[place + 4 :] == old


def test_lease_when_it_runs_longer_already_is_not_shortened() -> None:
    scene = ServiceScene()
    data = immutable_file(b"data", b"r", expires=2**32 - 1)
    store(scene.disk, share_path(index_name(INDEX), 0), data)
    scene.run(scene.service.add_lease(INDEX, lease(b"r")))
    assert load(scene.disk, share_path(index_name(INDEX), 0)) == data


@pytest.mark.parametrize("version", [1, 2])
def test_lease_when_new_is_added_behind_the_others_as_the_version_stores_it(version: int) -> None:
    scene = ServiceScene()
    path = share_path(index_name(INDEX), 0)
    old = immutable_file(b"data", b"q", version=version)
    store(scene.disk, path, old)
    scene.run(scene.service.add_lease(INDEX, lease(b"r")))
    new = load(scene.disk, path)
    renew, cancel = (b"r" * 32, b"R" * 32) if version == 1 else (blake(b"r" * 32), blake(b"R" * 32))
    record = struct.pack(">L32s32sL", 1, renew, cancel, 1_700_000_000 + PERIOD)
    assert new == old[:8] + struct.pack(">L", 2) + old[12:] + record


def test_leases_when_a_share_has_as_many_as_are_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from grid.storage.files import share_files, slot_writes

    for module in (share_files, slot_writes):
        monkeypatch.setattr(module, "MAX_LEASES", 5)
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"data"}))
    for letter in (b"a", b"b", b"c", b"d"):
        scene.run(scene.service.add_lease(INDEX, lease(letter)))
    with pytest.raises(NoSpaceError):
        scene.run(scene.service.add_lease(INDEX, lease(b"e")))
    scene.run(scene.service.add_lease(INDEX, lease(b"d")))
    for letter in (b"a", b"b", b"c", b"d", b"e"):
        scene.run(
            scene.service.test_and_write(OTHER, slot_secrets(letter=letter), {ShareNumber(0): vector((0, letter))})
        )
    with pytest.raises(NoSpaceError):
        scene.run(scene.service.test_and_write(OTHER, slot_secrets(letter=b"f"), {ShareNumber(0): vector((0, b"f"))}))
    with pytest.raises(NoSpaceError):
        scene.run(scene.service.add_lease(OTHER, lease(b"f")))


def test_leases_when_shares_are_allocated_go_to_every_share_held() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"data", 1: b"more"}))
    scene.advance(1000)
    upload = scene.run(begin(scene.service, INDEX, [5], 4, owner=b"s"))
    old, new = 1_700_000_000 + PERIOD, 1_700_001_000 + PERIOD
    for number in (0, 1):
        assert the_share(scene, number=number).leases == ((blake(b"r" * 32), old), (blake(b"s" * 32), new))
    scene.run(scene.service.add_lease(INDEX, lease(b"t")))
    scene.run(upload.close(share_numbers(5)))
    assert the_share(scene, number=5).leases == ((blake(b"s" * 32), new),), "an unfinished share is not touched"


def test_leases_when_a_slot_is_written_go_to_the_shares_named_that_remain() -> None:
    scene = ServiceScene()
    writes = {ShareNumber(number): vector((0, b"data")) for number in (0, 1, 2)}
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(letter=b"r"), writes))
    writes = {ShareNumber(0): vector(tests=[(0, 4, b"data")]), ShareNumber(2): vector(new_length=0)}
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(letter=b"s"), writes))
    writes = {ShareNumber(0): vector(tests=[(0, 4, b"!!!!")]), ShareNumber(1): vector((0, b"x"))}
    assert not scene.run(scene.service.test_and_write(OTHER, slot_secrets(letter=b"t"), writes)).passed
    owners = {number: [renew for renew, _ in share.leases] for (_, number), share in stored_shares(scene.disk).items()}
    assert owners == {0: [blake(b"r" * 32), blake(b"s" * 32)], 1: [blake(b"r" * 32)]}


def test_old_slot_when_written_keeps_its_version_and_clear_secrets() -> None:
    scene = ServiceScene()
    magic = bytes.fromhex("5461686f65206d757461626c6520636f6e7461696e65722076310a750944038e")
    path = share_path(index_name(OTHER), 0)
    store(scene.disk, path, magic + b"n" * 20 + b"w" * 32 + struct.pack(">QQ", 0, 468) + bytes(368 + 4))
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"data"))}))
    data = load(scene.disk, path)
    assert data[:84] == magic + b"n" * 20 + b"w" * 32
    assert data[100:192] == struct.pack(">LL32s32s20s", 1, 1_700_000_000 + PERIOD, b"r" * 32, b"R" * 32, NODE_ID)


def test_reads_when_of_many_shares_and_ranges_are_one_pool_call() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {number: bytes(100) for number in range(20)}))
    scene.runtime.cpu.calls.clear()
    wants = {ShareNumber(number): [(offset, 10) for offset in range(0, 100, 10)] for number in range(20)}
    scene.run(scene.service.read_shares(INDEX, wants))
    scene.run(scene.service.find_shares(INDEX, [(0, 10), (50, 10)]))
    assert len(scene.runtime.cpu.calls) == 2


def test_finds_when_of_many_files_are_one_pool_call() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {1: b"one"}))
    scene.runtime.cpu.calls.clear()
    finds = [Find(INDEX, [(0, 2)]), Find(OTHER), Find(INDEX, [(1, 9), (2, 1)])]
    answers = scene.run(scene.service.find_each(finds))
    assert [plain(found or {}) for found in answers] == [{1: [b"on"]}, {}, {1: [b"ne", b"e"]}]
    assert len(scene.runtime.cpu.calls) == 1


def test_reads_when_of_many_slots_are_one_pool_call() -> None:
    scene = ServiceScene()
    scene.run(scene.service.test_and_write(INDEX, slot_secrets(), {ShareNumber(1): vector((0, b"one"))}))
    scene.runtime.cpu.calls.clear()
    finds = [Find(INDEX, [(0, 2)]), Find(OTHER, [(0, 2)]), Find(INDEX, [(1, 9), (2, 1)])]
    answers = scene.run(scene.service.read_slots(finds))
    assert [plain(found or {}) for found in answers] == [{1: [b"on"]}, {}, {1: [b"ne", b"e"]}]
    assert len(scene.runtime.cpu.calls) == 1


def test_slots_beyond_the_limit_of_one_answer_are_left_to_be_asked_alone() -> None:
    scene = ServiceScene()
    data = bytes(READ_CALL_BYTES // 2)
    for index in (INDEX, OTHER):
        scene.run(scene.service.test_and_write(index, slot_secrets(), {ShareNumber(1): vector((0, data))}))
    wanted = [(0, len(data))]
    finds = [Find(INDEX, wanted), Find(OTHER, wanted), Find(INDEX, [(0, 1)]), Find(INDEX, [(0, 1)])]
    answers = scene.run(scene.service.read_slots(finds))
    assert [None if found is None else len(found) for found in answers] == [1, 1, None, None]


def test_secrets_when_things_are_printed_are_not_in_them() -> None:
    assert "wwww" not in repr(slot_secrets())
    assert "rrrr" not in repr(lease())
