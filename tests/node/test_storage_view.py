"""What a node shows of its own storage server. The names were read from a storage node of 1.20."""

from __future__ import annotations

import pytest

from grid.node.storage_view import LocalStorage
from grid.ports import StorageIndex
from grid.storage.housekeeping import Housekeeping
from grid.storage.memory_disk import MemoryDisk
from grid.storage.settings import ExpirySettings, StorageSettings
from tests.contract.storage_server import begin, put
from tests.support.storage import ServiceScene

INDEX = StorageIndex(bytes(range(16)))

ALWAYS = {"allocated", "reserved_space", "accepting_immutable_shares"}
DISK = {"disk_total", "disk_used", "disk_free_for_root", "disk_free_for_nonroot", "disk_avail"}
STATE = {
    "version",
    "last-cycle-finished",
    "current-cycle",
    "last-complete-prefix",
    "last-complete-bucket",
    "current-cycle-start-time",
}
IDLE = {"cycle-in-progress", "next-crawl-time", "remaining-wait-time", "estimated-time-per-cycle"}


def view_of(scene: ServiceScene, settings: StorageSettings | None = None) -> tuple[LocalStorage, Housekeeping]:
    settings = settings or StorageSettings()
    housekeeping = Housekeeping(scene.service, settings.expire, scene.runtime.clock)
    return LocalStorage(scene.service, housekeeping, settings), housekeeping


def names(*groups: set[str]) -> set[str]:
    return {f"storage_server.{name}" for group in groups for name in group}


def test_statistics_when_nothing_was_asked_have_the_names_of_1_20() -> None:
    settings = StorageSettings(reserved_space=300)
    scene = ServiceScene(MemoryDisk(10_000), settings)
    view, _ = view_of(scene, settings)
    found = scene.run(view.statistics())
    assert found.keys() == names(ALWAYS, DISK)
    assert found["storage_server.disk_total"] == 10_000
    assert found["storage_server.disk_avail"] == 9700
    assert found["storage_server.reserved_space"] == 300
    assert found["storage_server.accepting_immutable_shares"] == 1
    assert view.counters() == {}


@pytest.mark.parametrize(
    ("disk", "settings", "accepting"),
    [
        (MemoryDisk(100), StorageSettings(reserved_space=300), 0),
        (MemoryDisk(10_000), StorageSettings(readonly=True), 0),
        (MemoryDisk(None), StorageSettings(reserved_space=300), 1),
    ],
    ids=["full", "readonly", "unknown"],
)
def test_statistics_when_there_is_room_or_none_say_so(
    disk: MemoryDisk, settings: StorageSettings, accepting: int
) -> None:
    scene = ServiceScene(disk, settings)
    found = scene.run(view_of(scene, settings)[0].statistics())
    assert found["storage_server.accepting_immutable_shares"] == accepting
    assert ("storage_server.disk_avail" in found) is (disk.free_space() is not None)


def test_statistics_when_used_tell_latencies_counts_and_what_is_promised() -> None:
    scene = ServiceScene()
    view, _ = view_of(scene)
    scene.run(put(scene.service, INDEX, {0: b"octets", 1: b"of one"}))
    upload = scene.run(begin(scene.service, StorageIndex(bytes(16)), [0, 1], 1000))
    found = scene.run(view.statistics())
    assert found["storage_server.allocated"] == 2000
    assert found["storage_server.latencies.allocate.samplesize"] == 2
    assert found["storage_server.latencies.allocate.99_9_percentile"] is None
    assert view.counters()["storage_server.allocate"] == 2
    assert view.counters()["storage_server.bytes_added"] == 12
    scene.run(upload.abort())
    assert scene.run(view.statistics())["storage_server.allocated"] == 0


def test_crawlers_when_they_wait_walk_and_are_through_have_the_keys_of_1_20() -> None:
    scene = ServiceScene()
    view, housekeeping = view_of(scene)
    scene.run(put(scene.service, INDEX, {0: b"octets"}))
    housekeeping.start()
    found = scene.run(view.crawlers())
    assert found.keys() == {"bucket-counter", "lease-checker", "lease-checker-progress"}
    assert found["bucket-counter"].keys() == STATE | {
        "bucket-counts",
        "last-complete-bucket-count",
        "storage-index-samples",
    }
    assert found["lease-checker"].keys() == STATE | {"history"}
    assert found["lease-checker"]["current-cycle-start-time"] > 0
    assert found["lease-checker-progress"].keys() == IDLE
    assert found["lease-checker-progress"]["remaining-wait-time"] == 360
    assert view.counting()["remaining-wait-time"] == 300
    scene.advance(400)
    found = scene.run(view.crawlers())
    assert found["bucket-counter"]["last-complete-bucket-count"] == 1
    assert scene.run(view.statistics())["storage_server.total_bucket_count"] == 1
    assert found["lease-checker"]["history"]["0"]["leases-per-share-histogram"] == {"1": 1}
    assert found["lease-checker-progress"]["estimated-time-per-cycle"] is not None
    assert found["lease-checker-progress"]["next-crawl-time"] > scene.runtime.clock.unix_time()
    scene.run(housekeeping.stop())


def test_counts_when_the_node_was_started_again_are_known_at_once() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"octets"}))
    _, before = view_of(scene)
    before.start()
    scene.advance(400)
    scene.run(before.stop())
    view, after = view_of(scene)
    after.start()
    assert scene.run(view.statistics())["storage_server.total_bucket_count"] == 1
    scene.run(after.stop())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ExpirySettings(), "none is removed"),
        (ExpirySettings(enabled=True, immutable=False, mutable=False), "none is removed"),
        (ExpirySettings(enabled=True), "immutable and mutable shares end 31 days"),
        (ExpirySettings(enabled=True, override_s=864_000, mutable=False), "immutable shares end 10 days"),
        (ExpirySettings(enabled=True, mode="cutoff-date", cutoff=86_400), "renewed before 1970-01-02"),
    ],
)
def test_expiry_when_shown_is_in_words(settings: ExpirySettings, words: str) -> None:
    view, _ = view_of(ServiceScene(), StorageSettings(expire=settings))
    assert words in view.expiry
