"""Expired leases, and shares removed with their last one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grid.ports import ShareNumber, StorageIndex, TestWrite
from grid.storage.files.disk import RealDisk
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import SHARES, index_name, share_path
from grid.storage.settings import ExpirySettings
from grid.storage.upkeep.crawler import Crawler
from grid.storage.upkeep.housekeeping import Housekeeping
from grid.storage.upkeep.lease_checker import LeaseChecker
from tests.contract.storage_server import begin, lease, put, share_numbers, slot_secrets, vector
from tests.support.crash_disk import CrashDisk
from tests.support.faulty_disk import FaultyDisk, Stopped
from tests.support.storage import ServiceScene
from tests.support.stored_shares import blake, files_below, immutable_file, load, store, stored_shares

FILE = StorageIndex(b"immutable index!")
SLOT = StorageIndex(b"the mutable one!")
DAY = 86400
ENABLED = ExpirySettings(enabled=True)


def populate(scene: ServiceScene) -> None:
    """Leases of r from day 0, of s from day 20 on the file, and of t on the slot."""
    scene.run(put(scene.service, FILE, {0: b"zero", 1: b"one!"}))
    writes = {ShareNumber(number): vector((0, b"slot")) for number in (0, 1)}
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(), writes))
    scene.advance(20 * DAY)
    scene.run(scene.service.add_lease(FILE, lease(b"s")))
    scene.run(scene.service.test_and_write(SLOT, slot_secrets(letter=b"t"), {ShareNumber(1): vector((0, b"x"))}))


def owners(scene: ServiceScene) -> dict[tuple[str, int], list[bytes]]:
    letters = {blake(bytes([letter]) * 32): bytes([letter]) for letter in b"rst"}
    return {
        (key[0][:4], key[1]): [letters[renew] for renew, _ in share.leases]
        for key, share in stored_shares(scene.disk).items()
    }


def check(scene: ServiceScene, settings: ExpirySettings) -> Crawler:
    crawler = Crawler(scene.service, LeaseChecker(scene.service, settings, scene.runtime.clock), scene.runtime.clock)
    crawler.start()
    scene.advance(360)
    return crawler


def confirmed_clock(unix: float) -> dict[str, object]:
    """What a clock guard saves that noted this time two days ago."""
    guard = {"running": 2.0 * DAY, "held-until": 0, "reason": "", "unix": unix, "newest-grant": 0}
    return {**guard, "notes": [[0.0, unix]]}


def pass_days(scene: ServiceScene, count: int) -> None:
    """Let days go by, a quarter at a time, so that every cycle has its own time."""
    for _ in range(4 * count):
        scene.advance(DAY / 4)


F, S = index_name(FILE)[:4], index_name(SLOT)[:4]


def test_leases_when_they_run_out_go_one_by_one_and_then_the_share() -> None:
    scene = ServiceScene()
    populate(scene)
    before = {key: share.data for key, share in stored_shares(scene.disk).items()}
    crawler = check(scene, ENABLED)
    assert owners(scene) == {(F, 0): [b"r", b"s"], (F, 1): [b"r", b"s"], (S, 0): [b"r"], (S, 1): [b"r", b"t"]}
    pass_days(scene, 12)
    assert owners(scene) == {(F, 0): [b"s"], (F, 1): [b"s"], (S, 1): [b"t"]}
    assert {key: share.data for key, share in stored_shares(scene.disk).items()} == {
        key: data for key, data in before.items() if key != (index_name(SLOT), 0)
    }
    scene.run(scene.service.add_lease(FILE, lease(b"s")))
    pass_days(scene, 25)
    assert owners(scene) == {(F, 0): [b"s"], (F, 1): [b"s"]}
    pass_days(scene, 10)
    assert owners(scene) == {}
    assert all(path.count("/") == 1 for path in files_below(scene.disk, SHARES)), "empty directories are removed"
    scene.run(crawler.stop())


def test_report_when_the_history_has_keys_that_are_no_numbers_is_kept() -> None:
    scene = ServiceScene()
    store(scene.disk, "lease_checker.history.json", json.dumps({"\u00b2": {}, "9" * 5000: {}, "x": {}}).encode())
    crawler = check(scene, ExpirySettings())
    pass_days(scene, 1)
    assert set(json.loads(load(scene.disk, "lease_checker.history.json"))) <= {"0", "1", "2"}
    scene.run(crawler.stop())


def test_leases_when_expiry_is_not_enabled_stay() -> None:
    scene = ServiceScene()
    populate(scene)
    crawler = check(scene, ExpirySettings())
    for _ in range(12):
        pass_days(scene, 10)
    assert len(owners(scene)) == 4
    history = json.loads(load(scene.disk, "lease_checker.history.json"))
    assert len(history) == 10
    last = history[max(history, key=int)]
    assert last["space-recovered"]["examined-shares"] == 4
    assert last["space-recovered"]["original-shares"] == last["space-recovered"]["configured-shares"] == 4
    assert last["space-recovered"]["configured-buckets"] == 2
    assert last["space-recovered"]["actual-shares"] == 0
    assert last["leases-per-share-histogram"] == {"1": 1, "2": 3}
    assert not last["expiration-enabled"]
    start, finish = last["cycle-start-finish-times"]
    assert start <= finish
    scene.run(crawler.stop())


def test_leases_when_of_a_kind_that_is_switched_off_stay() -> None:
    scene = ServiceScene()
    populate(scene)
    crawler = check(scene, ExpirySettings(enabled=True, override_s=DAY, mutable=False))
    pass_days(scene, 2)
    assert owners(scene) == {(S, 0): [b"r"], (S, 1): [b"r", b"t"]}
    scene.run(crawler.stop())


def test_leases_when_older_than_a_date_go() -> None:
    scene = ServiceScene()
    populate(scene)
    crawler = check(scene, ExpirySettings(enabled=True, mode="cutoff-date", cutoff=1_700_000_000 + 10 * DAY))
    assert len(owners(scene)) == 4, "nothing goes that was not found expired a day before, too"
    pass_days(scene, 1)
    assert owners(scene) == {(F, 0): [b"s"], (F, 1): [b"s"], (S, 1): [b"t"]}
    scene.run(crawler.stop())


@pytest.mark.parametrize("version", [1, 2])
def test_leases_when_some_are_removed_leave_the_others_in_order_and_the_data_alone(version: int) -> None:
    scene = ServiceScene()
    path = share_path(index_name(FILE), 0)
    now, later = 1_700_000_000, 1_700_000_000 + 20 * DAY
    mixed = immutable_file(b"data", b"a", b"b", b"c", b"d", version=version)
    times = [now - 5, later, now - 5, later]
    data = bytearray(mixed)
    for index, time in enumerate(times):
        end = 16 + 72 * (index + 1)
        data[end - 4 : end] = time.to_bytes(4, "big")
    store(scene.disk, path, bytes(data))
    crawler = check(scene, ENABLED)
    pass_days(scene, 1)
    records = [bytes(data[16 + 72 * index : 88 + 72 * index]) for index in (1, 3)]
    assert load(scene.disk, path) == bytes(data[:8]) + (2).to_bytes(4, "big") + b"data" + b"".join(records)
    scene.run(crawler.stop())


def test_share_when_it_has_no_lease_at_all_stays() -> None:
    scene = ServiceScene()
    store(scene.disk, share_path(index_name(FILE), 0), immutable_file(b"data"))
    crawler = check(scene, ENABLED)
    assert len(stored_shares(scene.disk)) == 1
    scene.run(crawler.stop())


def test_share_when_it_cannot_be_read_is_named() -> None:
    scene = ServiceScene()
    populate(scene)
    store(scene.disk, share_path(index_name(FILE), 7), b"junk")
    crawler = check(scene, ENABLED)
    history = json.loads(load(scene.disk, "lease_checker.history.json"))
    assert history["0"]["corrupt-shares"] == [[index_name(FILE), 7]]
    assert history["0"]["space-recovered"]["examined-shares"] == 4
    scene.run(crawler.stop())


def test_share_when_unfinished_is_not_looked_at() -> None:
    scene = ServiceScene()
    upload = scene.run(begin(scene.service, FILE, [0], 4))
    crawler = check(scene, ENABLED)
    scene.run(upload.write([]))
    scene.run(upload.close(share_numbers(0)))
    assert len(stored_shares(scene.disk)) == 1
    scene.run(crawler.stop())


def test_cycle_when_interrupted_by_a_restart_continues_its_report() -> None:
    scene = ServiceScene()
    populate(scene)
    state = {
        "version": 1,
        "last-cycle-finished": 6,
        "current-cycle": 7,
        "current-cycle-start-time": 1.5,
        "last-complete-prefix": F[:2],
        "last-complete-bucket": None,
    }
    from grid.storage.upkeep.expiry import new_report

    state["cycle-to-date"] = {**new_report(ENABLED), "lease-age-histogram": [[0, DAY, 3]]}
    store(scene.disk, "lease_checker.state.json", json.dumps(state).encode())
    crawler = check(scene, ENABLED)
    history = json.loads(load(scene.disk, "lease_checker.history.json"))
    assert history["7"]["space-recovered"]["examined-shares"] == (2 if F < S else 0)
    assert history["7"]["lease-age-histogram"][0][:2] == [0, DAY]
    assert history["7"]["cycle-start-finish-times"][0] == 1.5
    scene.run(crawler.stop())


def test_status_when_asked_in_the_midst_of_a_cycle_estimates_the_whole() -> None:
    scene = ServiceScene()
    populate(scene)
    checker = LeaseChecker(scene.service, ENABLED, scene.runtime.clock)
    from grid.storage.upkeep.expiry import new_report

    report = new_report(ENABLED)
    report["space-recovered"]["examined-shares"] = 10
    state = {"current-cycle": 3, "last-complete-prefix": "zz", "cycle-to-date": report}
    status = scene.run(checker.status({**state, "last-complete-prefix": "h7"}))
    assert status["history"] == {}
    whole = status["estimated-current-cycle"]["space-recovered"]["examined-shares"]
    assert whole > 10
    assert status["estimated-remaining-cycle"]["space-recovered"]["examined-shares"] == whole - 10
    assert "estimated-current-cycle" not in scene.run(checker.status({**state, "current-cycle": None}))


def test_housekeeping_when_stopped_has_saved_both_walks() -> None:
    scene = ServiceScene()
    populate(scene)
    housekeeping = Housekeeping(scene.service, ENABLED, scene.runtime.clock)
    assert housekeeping.bucket_count is None
    housekeeping.start()
    scene.advance(400)
    assert housekeeping.bucket_count == 2
    assert scene.run(housekeeping.lease_status())["last-cycle-finished"] == 0
    scene.run(housekeeping.stop())
    assert not scene.runtime.clock.task_clock.getDelayedCalls()
    names = {name for name, _ in scene.disk.list_directory(".")}
    assert {"lease_checker.state.json", "bucket_counter.state.json", "lease_checker.history.json"} <= names


@pytest.mark.parametrize("seed", ["killed", None, 1, 2])
def test_expiry_when_the_machine_stops_at_any_call_loses_no_lease_that_runs(seed: str | int | None) -> None:
    base = CrashDisk()
    scene = ServiceScene(base)
    populate(scene)
    scene.run(scene.service.stop())
    now = scene.runtime.clock.unix_time() + 12 * DAY + 1
    before = stored_shares(base)
    for count in range(1000):
        inside = base.copied()
        disk = FaultyDisk(inside)
        scene = ServiceScene(disk)
        scene.advance(32 * DAY)
        checker = LeaseChecker(scene.service, ENABLED, scene.runtime.clock)
        assert checker.is_state({"current-cycle": None, "clock": confirmed_clock(now)})
        disk.stop_in(count)
        state = {"current-cycle": 0}
        checker.begin_cycle(state)
        try:
            for index in (FILE, SLOT):
                scene.run(checker.visit(state, index_name(index), now))
        except Stopped:
            survivor = inside.killed() if isinstance(seed, str) else inside.after_power_loss(seed)
            ServiceScene(survivor)
            after = stored_shares(survivor)
            for key, share in before.items():
                running = {item for item in share.leases if item[1] >= now}
                if running:
                    assert running <= set(after[key].leases) <= set(share.leases)
                    assert after[key].data == share.data
        else:
            break
    assert count > 20


def test_memory_disk_when_walked_over_is_closed_again() -> None:
    scene = ServiceScene()
    populate(scene)
    crawler = check(scene, ENABLED)
    assert isinstance(scene.disk, MemoryDisk)
    assert scene.disk.open_count == 0
    scene.run(crawler.stop())


def test_share_that_is_sparse_counts_its_full_length_and_little_disk_space(tmp_path: Path) -> None:
    disk = RealDisk(str(tmp_path))
    scene = ServiceScene(disk)
    write = TestWrite(tests=[], writes=[(2**40 - 1, b"x")], new_length=None)
    assert scene.run(scene.service.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): write})).passed
    size, taken = disk.usage(share_path(index_name(SLOT), ShareNumber(0)))
    assert size > 2**40
    assert taken < 2**20
