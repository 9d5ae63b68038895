"""Uploads in progress: timeouts, lost connections, shutdown, limits, and the cost of closing."""

from __future__ import annotations

import errno

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid import limits
from grid.errors import ConflictError, FormatError, GridError, NoSpaceError, PeerError, PeerRefusedError
from grid.ports import Allocation, ShareNumber, StorageIndex
from grid.storage.calls import service, uploads
from grid.storage.calls.uploads import IDLE_S, ShareUpload
from grid.storage.files import incoming
from grid.storage.files.disk import Handle
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import INCOMING, SHARES
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import begin, lease, piece, plain, put, share_numbers, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.gated_pool import GatedPool
from tests.support.storage import ServiceScene
from tests.support.stored_shares import files_below

INDEX = StorageIndex(b"immutable index!")
WHOLE = (0, 1000)


def start(scene: ServiceScene, numbers: list[int], size: int) -> ShareUpload:
    upload = scene.run(begin(scene.service, INDEX, numbers, size))
    assert isinstance(upload, ShareUpload)
    return upload


def held(scene: ServiceScene) -> dict[int, list[bytes]]:
    return plain(scene.run(scene.service.find_shares(INDEX, [WHOLE])))


def timers(scene: ServiceScene) -> int:
    return len(scene.runtime.clock.task_clock.getDelayedCalls())


def test_upload_when_idle_for_half_an_hour_is_given_up() -> None:
    scene = ServiceScene()
    upload = start(scene, [0, 1], 4)
    scene.advance(IDLE_S - 1)
    scene.run(upload.write([piece(1, 0, b"late")]))
    scene.advance(2)
    assert files_below(scene.disk, INCOMING)[-1].endswith("/1")
    assert upload.share_numbers == {1}
    with pytest.raises(PeerRefusedError):
        scene.run(upload.write([piece(0, 0, b"late")]))
    scene.advance(IDLE_S - 2)
    assert upload.share_numbers == frozenset()
    assert files_below(scene.disk, INCOMING) == []
    assert scene.service.reserved_size == 0
    assert timers(scene) == 0
    assert start(scene, [0, 1], 4).share_numbers == {0, 1}


@pytest.mark.parametrize("ending", ["close", "abort"])
def test_upload_when_over_leaves_no_timer(ending: str) -> None:
    scene = ServiceScene()
    upload = start(scene, [0, 1], 4)
    assert timers(scene) == 1
    scene.run(upload.close([ShareNumber(0), ShareNumber(1)]) if ending == "close" else upload.abort())
    assert timers(scene) == 0
    assert scene.service.reserved_size == 0


def test_service_when_it_stops_gives_up_uploads_and_takes_no_more() -> None:
    scene = ServiceScene()
    start(scene, [0, 1], 4)
    scene.run(scene.service.stop())
    assert files_below(scene.disk, INCOMING) == []
    assert timers(scene) == 0
    with pytest.raises(PeerRefusedError):
        scene.run(scene.service.allocate(INDEX, lease(), share_numbers(0), 4))
    with pytest.raises(PeerRefusedError):
        scene.run(scene.service.test_and_write(INDEX, slot_secrets(), {}))
    assert held(scene) == {}


def test_service_when_it_stops_finishes_what_is_being_closed() -> None:
    pool = GatedPool("sync")
    scene = ServiceScene(io=pool)
    upload = start(scene, [0, 1], 4)
    closing = Deferred.fromCoroutine(upload.close([ShareNumber(0)]))
    stopping = Deferred.fromCoroutine(scene.service.stop())
    assert not stopping.called
    pool.release()
    assert closing.called
    assert stopping.called
    assert held(scene) == {0: [bytes(4)]}
    assert files_below(scene.disk, INCOMING) == []


def test_directories_when_an_upload_is_given_up_are_gone() -> None:
    scene = ServiceScene()
    upload = start(scene, [0], 4)
    assert len(files_below(scene.disk, SHARES)) == 6
    scene.run(upload.abort())
    assert [path for path in files_below(scene.disk, SHARES) if path.count("/") > 1] == []


def test_shares_when_closing_are_hidden_until_they_are_durable() -> None:
    """The name is there before its directory is synced: nobody may build on it yet."""
    pool = GatedPool("_sync_one")
    scene = ServiceScene(io=pool)
    upload = start(scene, [0], 4)
    closing = Deferred.fromCoroutine(upload.close([ShareNumber(0)]))
    assert pool.waiting_count == 3
    assert any(path.endswith("/0") for path in files_below(scene.disk, SHARES))
    assert held(scene) == {}
    again = Deferred.fromCoroutine(scene.service.allocate(INDEX, lease(b"s"), share_numbers(0), 4))
    answers: list[Allocation] = []
    again.addCallback(answers.append)
    assert not answers
    pool.release_all()
    assert closing.called
    assert answers[0].already == {0}
    assert held(scene) == {0: [bytes(4)]}


def test_close_when_of_ten_shares_costs_one_sync_each_and_one_per_directory() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    scene.run(put(scene.service, StorageIndex(b"immutable indey!"), {0: b"same prefix"}))
    upload = start(scene, list(range(10)), 4)
    disk.calls.clear()
    scene.runtime.cpu.calls.clear()
    scene.run(upload.close([ShareNumber(number) for number in range(10)]))
    assert disk.calls.count("sync_file") == 10
    assert disk.calls.count("sync_directory") == 2
    assert disk.calls.count("rename") == 10
    assert scene.runtime.cpu.calls.count("sync") == 10, "each file is synced in a pool call of its own"
    assert len(scene.runtime.cpu.calls) == 13


def test_write_when_of_many_shares_is_one_pool_call() -> None:
    scene = ServiceScene()
    upload = start(scene, list(range(10)), 100)
    scene.runtime.cpu.calls.clear()
    scene.run(upload.write([piece(number, 0, *[b"x" * 10] * 10) for number in range(10)]))
    assert len(scene.runtime.cpu.calls) == 1


def test_close_when_not_durable_syncs_nothing() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk, StorageSettings(durability="none"))
    scene.run(put(scene.service, INDEX, {0: b"data"}))
    scene.run(scene.service.add_lease(INDEX, lease(b"s")))
    scene.run(
        scene.service.test_and_write(StorageIndex(bytes(16)), slot_secrets(), {ShareNumber(0): vector((0, b"x"))})
    )
    assert not [call for call in disk.calls if call.startswith("sync") or call == "start_writeback"]


def test_close_when_one_file_cannot_be_synced_finishes_the_others() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    upload = start(scene, [0, 1, 2], 4)
    disk.fail_in(1, errno.EIO, frozenset({"sync_file"}))
    with pytest.raises(PeerError, match="the disk failed"):
        scene.run(upload.close(share_numbers(0, 1, 2)))
    assert set(held(scene)) == {0, 2}
    assert files_below(scene.disk, INCOMING) == []


def test_close_when_the_directory_cannot_be_synced_takes_the_shares_back() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    upload = start(scene, [0, 1], 4)
    disk.fail_in(0, errno.EIO, frozenset({"sync_directory"}))
    with pytest.raises(PeerError, match="the disk failed"):
        scene.run(upload.close(share_numbers(0, 1)))
    assert held(scene) == {}
    assert not [path for path in files_below(scene.disk, SHARES) if path.count("/") > 1]


def test_close_when_another_share_has_taken_the_place_is_refused() -> None:
    scene = ServiceScene()
    upload = start(scene, [0, 1], 4)
    scene.run(scene.service.test_and_write(INDEX, slot_secrets(), {ShareNumber(0): vector((0, b"mutable"))}))
    with pytest.raises(ConflictError):
        scene.run(upload.close(share_numbers(0, 1)))
    assert held(scene) == {1: [bytes(4)]}
    assert plain(scene.run(scene.service.read_slot(INDEX, frozenset(), [WHOLE]))) == {0: [b"mutable"]}


class _ExhaustedDisk(MemoryDisk):
    """A disk on which one sync fails with an error that is not a disk error."""

    exhausted = True

    def sync_file(self, handle: Handle) -> None:
        if self.exhausted:
            self.exhausted = False
            raise MemoryError
        super().sync_file(handle)


def test_close_when_it_fails_unexpectedly_gives_up_all_its_shares() -> None:
    scene = ServiceScene(_ExhaustedDisk())
    upload = start(scene, [0, 1, 2], 4)
    with pytest.raises(MemoryError):
        scene.run(upload.close(share_numbers(0, 1)))
    assert upload.share_numbers == {2}
    assert scene.service.reserved_size == 4
    scene.run(upload.close(share_numbers(2)))
    assert (timers(scene), scene.service.reserved_size, held(scene)) == (0, 0, {2: [bytes(4)]})
    assert files_below(scene.disk, INCOMING) == []
    assert start(scene, [0, 1], 4).share_numbers == {0, 1}, "nothing hides the shares that were given up"
    scene.run(scene.service.stop())


def test_write_when_the_disk_is_full_loses_that_share_for_good() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    upload = start(scene, [0, 1], 4)
    disk.fail_in(0, errno.ENOSPC, frozenset({"write"}))
    with pytest.raises(NoSpaceError):
        scene.run(upload.write([piece(0, 0, b"data")]))
    with pytest.raises(NoSpaceError):
        scene.run(upload.write([piece(0, 0, b"data")]))
    scene.run(upload.write([piece(1, 0, b"data")]))
    with pytest.raises(NoSpaceError):
        scene.run(upload.close(share_numbers(0)))
    scene.run(upload.close(share_numbers(1)))
    assert held(scene) == {1: [b"data"]}


def test_write_when_nothing_of_it_fits_is_refused_before_the_disk_is_asked() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    upload = start(scene, [0], 4)
    disk.calls.clear()
    for offset in (-1, limits.MAX_FILE_SIZE + 1):
        with pytest.raises(FormatError):
            scene.run(upload.write([piece(0, offset, b"x")]))
    big = memoryview(bytes(2**20))
    with pytest.raises(FormatError):
        scene.run(upload.write([piece(0, 0, *[big] * (limits.WRITE_CALL_BYTES // 2**20), b"x")]))
    with pytest.raises(PeerRefusedError):
        scene.run(upload.write([piece(0, 0, b"fits"), piece(7, 0, b"x")]))
    assert disk.calls == []


def test_write_when_too_much_waits_already_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BACKLOG", 10)
    pool = GatedPool("_store_all")
    scene = ServiceScene(io=pool)
    upload = start(scene, [0], 20)
    first = Deferred.fromCoroutine(upload.write([piece(0, 0, b"12345")]))
    second = Deferred.fromCoroutine(upload.write([piece(0, 5, b"67890")]))
    with pytest.raises(PeerRefusedError):
        scene.run(upload.write([piece(0, 10, b"x")]))
    assert pool.waiting_count == 1, "writes to one share are made one after the other"
    pool.release()
    pool.release()
    assert first.called
    assert second.called
    third = Deferred.fromCoroutine(upload.write([piece(0, 10, b"x")]))
    pool.release()
    scene.run(upload.close(share_numbers(0)))
    assert third.called
    assert held(scene) == {0: [b"1234567890x".ljust(20, b"\0")]}


def test_share_when_written_in_too_many_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "MAX_UPLOAD_SPANS", 3)
    scene = ServiceScene()
    upload = start(scene, [0], 100)
    scene.run(upload.write([piece(0, 2 * number, b"x") for number in range(3)]))
    with pytest.raises(FormatError):
        scene.run(upload.write([piece(0, 50, b"x")]))


@pytest.mark.parametrize("ending", ["close", "abort"])
def test_shares_when_they_come_in_many_pieces_together_may_have_few_each(
    monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(incoming, "MOST_UPLOAD_SPANS", 4)
    monkeypatch.setattr(incoming, "FEW_UPLOAD_SPANS", 2)
    scene = ServiceScene()
    upload = start(scene, [0, 1], 100)
    scene.run(upload.write([piece(0, 2 * each, b"x") for each in range(4)]))
    scene.run(upload.write([piece(1, 2 * each, b"x") for each in range(2)]))
    with pytest.raises(FormatError):
        scene.run(upload.write([piece(1, 50, b"x")]))
    first = [ShareNumber(0)]
    scene.run(upload.close(first) if ending == "close" else upload.abort(first))
    scene.run(upload.write([piece(1, 50, b"x")]))


def test_missing_when_asked_is_what_was_not_written() -> None:
    scene = ServiceScene()
    upload = start(scene, [0], 10)
    scene.run(upload.write([piece(0, 2, b"ab", b"cd"), piece(0, 8, b"ef")]))
    assert upload.missing(ShareNumber(0)) == [(0, 2), (6, 8)]
    scene.run(upload.abort())
    with pytest.raises(PeerRefusedError):
        upload.missing(ShareNumber(0))


@pytest.fixture
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_UPLOAD_FILES", 2)


@pytest.mark.usefixtures("few_files")
def test_shares_when_more_than_may_stay_open_are_synced_at_every_write() -> None:
    disk = FaultyDisk(inside := MemoryDisk())
    scene = ServiceScene(disk)
    upload = start(scene, [0, 1, 2, 3], 8)
    assert inside.open_count == 2
    disk.calls.clear()
    scene.run(upload.write([piece(number, 0, b"half") for number in range(4)]))
    assert disk.calls.count("sync_file") == 2
    other = scene.run(begin(scene.service, StorageIndex(bytes(16)), [0], 8))
    assert inside.open_count == 2
    scene.run(upload.write([piece(number, 4, b"full") for number in range(4)]))
    scene.run(upload.close(share_numbers(0, 1, 2, 3)))
    scene.run(other.abort())
    assert inside.open_count == 0
    assert held(scene) == {number: [b"halffull"] for number in range(4)}


def test_writeback_when_much_was_written_is_begun_before_the_end() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    upload = start(scene, [0], 3 * incoming.WRITEBACK_SIZE)
    data = bytes(incoming.WRITEBACK_SIZE // 2)
    for index in range(5):
        scene.run(upload.write([piece(0, index * len(data), data)]))
    assert disk.calls.count("start_writeback") == 2


def test_allocation_when_its_caller_is_gone_is_given_up() -> None:
    pool = GatedPool("allocate")
    scene = ServiceScene(io=pool)
    task = Deferred.fromCoroutine(scene.service.allocate(INDEX, lease(), share_numbers(0, 1), 10))
    task.cancel()
    task.addErrback(lambda _: None)
    pool.release()
    assert scene.service.reserved_size == 0
    assert files_below(scene.disk, INCOMING) == []
    assert timers(scene) == 0


def test_abort_when_a_write_is_under_way_waits_for_it() -> None:
    pool = GatedPool("_store_all")
    scene = ServiceScene(io=pool)
    upload = start(scene, [0], 4)
    writing = Deferred.fromCoroutine(upload.write([piece(0, 0, b"data")]))
    queued = Deferred.fromCoroutine(upload.write([piece(0, 0, b"data")]))
    aborting = Deferred.fromCoroutine(upload.abort())
    failures: list[Failure] = []
    queued.addErrback(failures.append)
    assert not aborting.called
    pool.release()
    assert writing.called
    assert isinstance(failures[0].value, GridError)
    assert aborting.called
    assert files_below(scene.disk, INCOMING) == []


def test_abort_of_one_share_when_a_write_to_two_waits_ends_that_write() -> None:
    """The write has its turn at the first share when the second is given up: it must not wait for that one without end."""
    pool = GatedPool("_store_all")
    scene = ServiceScene(io=pool)
    upload = start(scene, [0, 1], 4)
    writing = Deferred.fromCoroutine(upload.write([piece(0, 0, b"data")]))
    queued = Deferred.fromCoroutine(upload.write([piece(0, 0, b"data"), piece(1, 0, b"data")]))
    aborting = Deferred.fromCoroutine(upload.abort([ShareNumber(1)]))
    failures: list[Failure] = []
    queued.addErrback(failures.append)
    pool.release()
    assert writing.called and aborting.called
    assert [type(failure.value) for failure in failures] == [PeerRefusedError]
    scene.run(upload.close([ShareNumber(0)]))
    assert held(scene) == {0: [b"data"]}
    scene.run(scene.service.stop())
    assert scene.service.reserved_size == 0
