"""Syncs of directories: each serves all callers that arrived before it began."""

from __future__ import annotations

import errno

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.storage.calls.directory_sync import DirectorySync
from grid.storage.calls.tasks import awaited, together
from grid.storage.files.memory_disk import MemoryDisk
from tests.support.faulty_disk import FaultyDisk
from tests.support.gated_pool import GatedPool


def start(sync: DirectorySync, *directories: str) -> Deferred[None]:
    return Deferred.fromCoroutine(sync.sync(directories))


def make(*, durable: bool = True) -> tuple[GatedPool, FaultyDisk, DirectorySync]:
    pool, disk = GatedPool(), FaultyDisk(MemoryDisk())
    for directory in ("a", "b"):
        disk.make_directory(directory)
    return pool, disk, DirectorySync(disk, pool, durable=durable)


def test_sync_when_many_wait_costs_two_at_most() -> None:
    pool, disk, sync = make()
    first = start(sync, "a")
    others = [start(sync, "a") for _ in range(50)]
    pool.release()
    assert first.called
    assert not any(other.called for other in others), "a sync that began before the change does not count"
    pool.release()
    assert all(other.called for other in others)
    assert disk.calls.count("sync_directory") == 2
    assert not pool.waiting_count


def test_sync_when_of_several_directories_waits_for_all_at_once() -> None:
    pool, disk, sync = make()
    done = start(sync, "a", "b")
    assert pool.waiting_count == 2
    pool.release()
    assert not done.called
    pool.release()
    assert done.called
    assert disk.calls.count("sync_directory") == 2


def test_sync_when_it_fails_fails_those_it_was_for_and_no_others() -> None:
    pool, disk, sync = make()
    disk.fail_in(0, errno.EIO, frozenset({"sync_directory"}))
    first, second = start(sync, "a"), start(sync, "a")
    failures: list[Failure] = []
    first.addErrback(failures.append)
    pool.release()
    assert isinstance(failures[0].value, OSError)
    pool.release()
    assert second.called
    assert len(failures) == 1


def test_sync_when_the_directory_is_gone_is_done() -> None:
    pool, _, sync = make()
    done = start(sync, "nothing")
    pool.release()
    assert done.called


def test_sync_when_not_durable_does_nothing() -> None:
    pool, _, sync = make(durable=False)
    assert start(sync, "a").called
    assert not pool.waiting_count


def test_sync_of_shares_when_the_prefix_is_known_leaves_the_top_alone() -> None:
    pool, disk, sync = make()
    for directory in ("shares", "shares/aa", "shares/aa/aab"):
        disk.make_directory(directory)
    for expected in (3, 2):
        done = Deferred.fromCoroutine(sync.sync_shares("aab"))
        assert pool.waiting_count == expected
        pool.release_all()
        assert done.called


async def test_together_when_some_fail_reports_which() -> None:
    async def work(error: OSError | None) -> None:
        if error is not None:
            raise error

    error = OSError("one")
    assert await together(work(outcome) for outcome in (None, error, None)) == [None, error, None]


async def test_together_when_there_is_a_defect_raises_it() -> None:
    async def work(defect: bool) -> None:
        if defect:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await together([work(False), work(True), work(True)])


async def test_awaited_when_given_a_deferred_is_its_result() -> None:
    done: Deferred[int] = Deferred()
    done.callback(5)
    assert await awaited(done) == 5


def test_sync_when_the_pool_takes_no_call_fails_and_the_next_one_is_made() -> None:
    pool, disk, sync = make()
    run, failures = pool.run, list[Failure]()

    def refuse(*_: object) -> None:
        raise MemoryError

    pool.run = refuse  # type: ignore[assignment,method-assign]
    start(sync, "a").addErrback(failures.append)
    pool.run = run  # type: ignore[method-assign]
    assert isinstance(failures[0].value, MemoryError)
    second = start(sync, "a")
    pool.release()
    assert second.called
    assert disk.calls.count("sync_directory") == 1
