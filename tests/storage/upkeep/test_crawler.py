"""The walk over storage indexes: its order, its rate, and how it continues after a restart."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence

import pytest

from grid.errors import PeerError
from grid.ports import StorageIndex
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.paths import PREFIXES, SHARES, index_name
from grid.storage.upkeep.crawler import SLICE_S, Crawler, State, index_names, load_state, save_state
from grid.storage.upkeep.housekeeping import BucketCounter
from tests.contract.storage_server import put
from tests.support.crash_disk import CrashDisk
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import ServiceScene
from tests.support.stored_shares import load, store

INDEXES = sorted(index_name(StorageIndex(bytes([number * 37 % 256, number]) * 8)) for number in range(20))


class Visitor:
    """A task that records its position, and takes its time."""

    name = "visitor"
    first_delay_s = 100.0
    cycle_s = 1000.0

    def __init__(self, scene: ServiceScene, work_s: float = 0.0) -> None:
        self.visited: list[str] = []
        self.prefixes: list[str] = []
        self.cycles: list[tuple[int, float]] = []
        self.fail_on: str | None = None
        self._scene = scene
        self._work_s = work_s

    def is_state(self, state: State) -> bool:
        return True

    def begin_cycle(self, state: State) -> None:
        self.visited.clear()
        self.prefixes.clear()

    async def visit_prefix(self, state: State, prefix: str, names: Sequence[str]) -> None:
        self.prefixes.append(prefix)

    async def visit(self, state: State, name: str, now: float) -> None:
        self.visited.append(name)
        if name == self.fail_on:
            raise PeerError("this one cannot be looked at")
        self._scene.runtime.clock.task_clock.rightNow += self._work_s

    async def end_cycle(self, state: State, now: float) -> None:
        self.cycles.append((state["current-cycle"], now))


@pytest.fixture
def scene() -> ServiceScene:
    scene = ServiceScene()
    for name in INDEXES:
        store(scene.disk, f"shares/{name[:2]}/{name}/0", b"x")
    return scene


def start(scene: ServiceScene, task: Visitor) -> Crawler:
    crawler = Crawler(scene.service, task, scene.runtime.clock)
    crawler.start()
    return crawler


def test_walk_when_quick_visits_everything_in_order_once_a_cycle(scene: ServiceScene) -> None:
    task = Visitor(scene)
    crawler = start(scene, task)
    scene.advance(99)
    assert task.visited == []
    scene.advance(1)
    assert task.visited == INDEXES
    assert task.prefixes == list(PREFIXES)
    assert [cycle for cycle, _ in task.cycles] == [0]
    scene.advance(999)
    assert len(task.cycles) == 1
    scene.advance(1)
    assert [cycle for cycle, _ in task.cycles] == [0, 1]
    assert crawler.state["last-cycle-finished"] == 1
    scene.run(crawler.stop())


def test_walk_when_slow_works_for_a_tenth_of_the_time(scene: ServiceScene) -> None:
    task = Visitor(scene, work_s=0.4)
    crawler = start(scene, task)
    clock = scene.runtime.clock
    scene.advance(100)
    assert len(task.visited) == 3
    assert clock.now() == pytest.approx(101.2)
    scene.advance(10.7)
    assert len(task.visited) == 3
    scene.advance(0.2)
    assert len(task.visited) == 6
    scene.run(crawler.stop())


def test_walk_when_one_visit_takes_very_long_sleeps_for_five_minutes_at_most(scene: ServiceScene) -> None:
    task = Visitor(scene, work_s=1000)
    crawler = start(scene, task)
    scene.advance(100)
    assert len(task.visited) == 1
    scene.advance(299)
    assert len(task.visited) == 2
    scene.run(crawler.stop())


def test_walk_when_stopped_goes_on_where_it_was_after_a_restart(scene: ServiceScene) -> None:
    task = Visitor(scene, work_s=0.4)
    crawler = start(scene, task)
    scene.advance(100)
    scene.run(crawler.stop())
    state = json.loads(load(scene.disk, "visitor.state.json"))
    assert state["version"] == 1
    assert state["current-cycle"] == 0
    assert state["last-complete-bucket"] == INDEXES[2] or state["last-complete-prefix"] == INDEXES[2][:2]
    again = ServiceScene(scene.disk)
    task = Visitor(again)
    crawler = start(again, task)
    again.advance(100)
    assert task.visited == INDEXES[3:]
    assert [cycle for cycle, _ in task.cycles] == [0]
    again.run(crawler.stop())
    assert json.loads(load(scene.disk, "visitor.state.json"))["last-cycle-finished"] == 0
    assert not scene.disk.exists("visitor.state.json.tmp")


def test_walk_when_stopped_before_it_began_ends_at_once(scene: ServiceScene) -> None:
    crawler = start(scene, Visitor(scene))
    scene.run(crawler.stop())
    assert not scene.runtime.clock.task_clock.getDelayedCalls()


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"version": 2}', b'{"version": 1, "current-cycle": "x"}',
     b'{"version": 1, "current-cycle": -1}', b'{"version": 1, "current-cycle": 3}',
     b'{"version": 1, "last-complete-prefix": 7}',
     b'{"version": 1, "current-cycle": 3, "current-cycle-start-time": ' + b"9" * 400 + b"}",
     b'{"version": 1, "current-cycle": 3, "current-cycle-start-time": NaN}',
     b'{"version": 1, "current-cycle": 3, "current-cycle-start-time": 1e999}'],
)  # fmt: skip
def test_walk_when_its_state_cannot_be_read_starts_afresh(scene: ServiceScene, text: bytes) -> None:
    store(scene.disk, "visitor.state.json", text)
    task = Visitor(scene)
    crawler = start(scene, task)
    scene.advance(100)
    assert task.visited == INDEXES
    assert [cycle for cycle, _ in task.cycles] == [0]
    scene.run(crawler.stop())


def test_walk_when_one_visit_fails_goes_on(scene: ServiceScene) -> None:
    task = Visitor(scene)
    task.fail_on = INDEXES[4]
    crawler = start(scene, task)
    scene.advance(100)
    assert task.visited == INDEXES
    scene.run(crawler.stop())


def test_names_when_unrelated_files_exist_are_those_of_storage_indexes() -> None:
    disk = MemoryDisk()
    name = INDEXES[0]
    store(disk, f"shares/{name[:2]}/{name}/0", b"x")
    store(disk, f"shares/{name[:2]}/{name[:2]}notes", b"x")
    disk.make_directory(f"shares/{name[:2]}/{name[:-1]}")
    disk.make_directory(f"{SHARES}/zz")
    disk.make_directory(f"{SHARES}/zz/{name}")
    assert index_names(disk, name[:2]) == [name]
    assert index_names(disk, "zz") == []
    assert index_names(disk, "yy") == []


def test_counter_when_its_cycle_is_over_knows_the_number(scene: ServiceScene) -> None:
    crawler = Crawler(scene.service, BucketCounter(), scene.runtime.clock)
    crawler.start()
    scene.advance(300)
    assert crawler.state["last-complete-bucket-count"] == len(INDEXES)
    scene.run(put(scene.service, StorageIndex(b"one more index.."), {0: b"x", 1: b"y"}))
    scene.advance(3600)
    assert crawler.state["last-complete-bucket-count"] == len(INDEXES) + 1
    assert list(crawler.state["bucket-counts"]) == ["1"]
    scene.run(crawler.stop())
    state = json.loads(load(scene.disk, "bucket_counter.state.json"))
    assert sum(state["bucket-counts"]["1"].values()) == len(INDEXES) + 1
    assert set(state["storage-index-samples"]) == {"22"}
    assert BucketCounter().is_state(state)
    assert not BucketCounter().is_state({**state, "bucket-counts": 5})
    assert not BucketCounter().is_state({**state, "current-cycle": 9})


def test_slice_when_named_is_about_a_second() -> None:
    assert SLICE_S == 1.0


def test_progress_when_a_walk_is_under_way_says_how_far_it_is(scene: ServiceScene) -> None:
    task = Visitor(scene, work_s=0.6)
    crawler = start(scene, task)
    assert crawler.progress()["cycle-in-progress"] is False
    assert crawler.progress()["remaining-wait-time"] == 100
    scene.advance(100)
    found = crawler.progress()
    assert found.keys() == {
        "cycle-in-progress",
        "cycle-complete-percentage",
        "remaining-sleep-time",
        "estimated-cycle-complete-time-left",
        "estimated-time-per-cycle",
    }
    assert found["cycle-in-progress"] is True
    assert 0 <= found["cycle-complete-percentage"] < 100
    assert found["remaining-sleep-time"] > 0
    scene.advance(20)
    later = crawler.progress()
    assert later["cycle-complete-percentage"] > found["cycle-complete-percentage"]
    assert later["estimated-cycle-complete-time-left"] > 0
    scene.run(crawler.stop())


def test_walk_when_the_disk_is_full_goes_on_and_saves_its_place_later() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    for name in INDEXES:
        store(disk.inside, f"shares/{name[:2]}/{name}/0", b"x")
    task = Visitor(scene)
    crawler = start(scene, task)
    writes = frozenset({"create_file", "write", "rename", "unlink", "make_directory", "sync_file"})
    disk.fail_in(0, errno.EROFS, writes, writes)
    scene.advance(100)
    assert task.visited == INDEXES and disk.fired
    disk.heal()
    scene.advance(1000)
    assert [cycle for cycle, _ in task.cycles] == [0, 1]
    scene.run(crawler.stop())
    assert json.loads(load(disk.inside, "visitor.state.json"))["last-cycle-finished"] == 1


def test_count_of_shares_when_the_disk_cannot_list_a_directory_stays_as_it_was() -> None:
    disk = FaultyDisk(MemoryDisk())
    scene = ServiceScene(disk)
    for name in INDEXES:
        store(disk.inside, f"shares/{name[:2]}/{name}/0", b"x")
    crawler = Crawler(scene.service, BucketCounter(), scene.runtime.clock)
    crawler.start()
    scene.advance(300)
    assert crawler.state["last-complete-bucket-count"] == len(INDEXES)
    disk.fail_in(0, errno.EIO, frozenset({"list_directory"}), frozenset({"list_directory"}))
    scene.advance(3600)
    assert disk.fired and crawler.state["last-cycle-finished"] == 1
    assert crawler.state["last-complete-bucket-count"] == len(INDEXES)
    disk.heal()
    store(disk.inside, f"shares/{INDEXES[0][:2]}/{INDEXES[0]}/1", b"x")
    scene.advance(3600)
    assert crawler.state["last-complete-bucket-count"] == len(INDEXES)
    scene.run(crawler.stop())


def test_state_when_saved_survives_a_loss_of_power() -> None:
    disk = CrashDisk()
    save_state(disk, "walk.json", {"cycle": 1})
    assert load_state(disk.after_power_loss(None), "walk.json") == {"cycle": 1}
    save_state(disk, "walk.json", {"cycle": 2})
    assert all(load_state(disk.after_power_loss(seed), "walk.json") == {"cycle": 2} for seed in range(20))
