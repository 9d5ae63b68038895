"""Applying a node's configuration to its store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.directory import NodeDirectory, open_directory
from grid.node.storage_node import LocalStorage, read_certificates, server_settings
from grid.ports import StorageIndex
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import ExpirySettings, StorageSettings
from grid.storage.upkeep.housekeeping import Housekeeping
from tests.contract.storage_server import begin, put
from tests.support.storage import ServiceScene


def settings_of(path: Path, text: str) -> StorageSettings:
    (path / "grid.cfg").write_text(f"[storage]\n{text}")
    return server_settings(open_directory(path))


def test_store_has_the_settings_of_the_configuration(tmp_path: Path) -> None:
    text = "reserved_space = 2M\nreadonly = true\ndurability = none\n"
    assert settings_of(tmp_path, text) == StorageSettings(reserved_space=2_000_000, readonly=True, durability="none")


def test_leases_end_as_the_configuration_says(tmp_path: Path) -> None:
    text = "expire.enabled = true\nexpire.mode = age\nexpire.override_lease_duration = 2 months\nexpire.mutable = no\n"
    assert settings_of(tmp_path, text).expire == ExpirySettings(enabled=True, override_s=62 * 86400, mutable=False)
    text = "expire.enabled = true\nexpire.mode = cutoff-date\nexpire.cutoff_date = 1970-01-02\nexpire.immutable = no\n"
    assert settings_of(tmp_path, text).expire == ExpirySettings(
        enabled=True, mode="cutoff-date", cutoff=86400, immutable=False
    )


def test_leases_never_end_when_expiry_is_off_whatever_else_is_written(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "expire.mode = cutoff-date\n").expire == ExpirySettings()


CERTIFICATE = {"certificate": '{"expires":"2030-01-02T03:04:05+00:00"}', "signature": "abcd"}


def node(path: Path, *, switched_on: bool = True) -> NodeDirectory:
    (path / "grid.cfg").write_text(
        f"[storage]\ngrid_management = {switched_on}\n[grid_manager_certificates]\nmine = mine.cert\n"
    )
    return open_directory(path)


def test_certificate_that_the_configuration_names_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.cert").write_text(json.dumps(CERTIFICATE, indent=4))
    assert read_certificates(node(tmp_path)) == (CERTIFICATE,)


def test_certificates_when_grid_management_is_off_are_none(tmp_path: Path) -> None:
    assert read_certificates(node(tmp_path, switched_on=False)) == ()


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"certificate": "x"}', '{"certificate": "x", "signature": 5}'])
def test_file_without_a_certificate_is_an_error_naming_its_key(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "mine.cert").write_text(text)
    with pytest.raises(ConfigError, match=r"section \[grid_manager_certificates\], key mine: "):
        read_certificates(node(tmp_path))


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
def test_statistics_when_there_is_space_or_none_say_so(
    disk: MemoryDisk, settings: StorageSettings, accepting: int
) -> None:
    scene = ServiceScene(disk, settings)
    found = scene.run(view_of(scene, settings)[0].statistics())
    assert found["storage_server.accepting_immutable_shares"] == accepting
    assert ("storage_server.disk_avail" in found) is (disk.free_space() is not None)


def test_statistics_when_used_have_latencies_counts_and_promised_space() -> None:
    scene = ServiceScene()
    view, _ = view_of(scene)
    scene.run(put(scene.service, INDEX, {0: b"sample", 1: b"of one"}))
    upload = scene.run(begin(scene.service, StorageIndex(bytes(16)), [0, 1], 1000))
    found = scene.run(view.statistics())
    assert found["storage_server.allocated"] == 2000
    assert found["storage_server.latencies.allocate.samplesize"] == 2
    assert found["storage_server.latencies.allocate.99_9_percentile"] is None
    assert view.counters()["storage_server.allocate"] == 2
    assert view.counters()["storage_server.bytes_added"] == 12
    scene.run(upload.abort())
    assert scene.run(view.statistics())["storage_server.allocated"] == 0


def test_crawlers_when_they_wait_walk_or_are_done_have_the_keys_of_1_20() -> None:
    scene = ServiceScene()
    view, housekeeping = view_of(scene)
    scene.run(put(scene.service, INDEX, {0: b"sample"}))
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


def test_counts_when_the_node_was_restarted_are_known_at_once() -> None:
    scene = ServiceScene()
    scene.run(put(scene.service, INDEX, {0: b"sample"}))
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
