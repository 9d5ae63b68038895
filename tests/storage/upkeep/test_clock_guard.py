"""When to trust the clock, and what a wrong one must not delete."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.ports import StorageIndex
from grid.storage.settings import ExpirySettings
from grid.storage.upkeep.clock_guard import CONFIRM_S, EARLIEST_S, JUMP_S, ClockGuard
from grid.storage.upkeep.crawler import Crawler
from grid.storage.upkeep.lease_checker import LeaseChecker
from tests.contract.storage_server import put
from tests.support.storage import ServiceScene
from tests.support.stored_shares import load, stored_shares

DAY = 86400.0
NOW = 1_800_000_000.0
PERIOD = 31 * DAY
FILE = StorageIndex(b"immutable index!")


def guard() -> ClockGuard:
    return ClockGuard(wait_s=PERIOD)


def confirmed() -> ClockGuard:
    """A guard that has run for two days with a right clock."""
    one = guard()
    for hours in range(0, 49, 6):
        one.look(hours * 3600.0, NOW + hours * 3600.0)
    return one


def test_guard_when_it_begins_judges_nothing_before_a_day_of_running_is_over() -> None:
    one = guard()
    assert one.judging_time is None
    one.look(0.0, NOW)
    one.look(CONFIRM_S - 1, NOW + CONFIRM_S - 1)
    assert one.judging_time is None
    one.look(CONFIRM_S, NOW + CONFIRM_S)
    assert one.judging_time == NOW


@pytest.mark.parametrize("jump_s", [40 * DAY, -40 * DAY, JUMP_S + 1, -JUMP_S - 1])
def test_guard_when_the_clock_is_set_waits_for_a_lease_period_and_a_day(jump_s: float) -> None:
    one = confirmed()
    assert one.judging_time is not None and not one.reason
    at = 2 * DAY
    assert one.look(at + 1, NOW + at + 1 + jump_s)
    assert one.judging_time is None and one.reason and one.held_s == PERIOD
    day = 1
    while one.judging_time is None:
        assert not one.look(at + day * DAY, NOW + at + day * DAY + jump_s)
        day += 1
    assert 31 <= day <= 33 and not one.reason
    assert one.judging_time <= NOW + at + day * DAY + jump_s - CONFIRM_S


@pytest.mark.parametrize("drift_s", [0.0, JUMP_S - 1, 1 - JUMP_S])
def test_guard_when_the_clock_is_adjusted_by_little_goes_on(drift_s: float) -> None:
    one = confirmed()
    assert not one.look(2 * DAY + 1, NOW + 2 * DAY + 1 + drift_s)
    assert one.judging_time is not None


def test_guard_when_it_starts_behind_its_last_time_waits() -> None:
    later = guard()
    later.restore(json.loads(json.dumps(confirmed().export())))
    assert later.look(5.0, NOW - 400 * DAY)
    assert later.judging_time is None


def test_guard_when_it_starts_later_keeps_what_was_confirmed() -> None:
    later = guard()
    later.restore(json.loads(json.dumps(confirmed().export())))
    assert not later.look(5.0, NOW + 10 * DAY)
    assert later.judging_time == NOW + DAY, "time that it did not run confirms nothing"


def test_guard_when_the_clock_is_older_than_the_program_waits_as_long_as_it_is() -> None:
    one = confirmed()
    for day in range(3, 50):
        one.look(day * DAY, EARLIEST_S - 1)
        assert one.judging_time is None


def test_guard_when_a_lease_is_from_the_future_waits_once() -> None:
    one = confirmed()
    unix = NOW + 2 * DAY
    assert not one.saw_grant(unix + JUMP_S, unix)
    assert one.saw_grant(unix + 30 * DAY, unix)
    assert one.judging_time is None
    assert not one.saw_grant(unix + 30 * DAY, unix), "the same lease says nothing new in the next cycle"
    assert one.saw_grant(unix + 31 * DAY, unix)


@given(
    saved=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["running", "held-until", "reason", "unix", "newest-grant", "notes"]), inner, max_size=6
            )
        ),
        max_leaves=15,
    )
)
def test_guard_when_its_state_is_anything_never_fails(saved: object) -> None:
    one = guard()
    one.restore(saved)
    one.look(0.0, NOW)
    json.dumps(one.export())


class Scene:
    """A server with expiry on whose clock a test sets."""

    def __init__(self) -> None:
        self.scene = ServiceScene()
        self.clock = self.scene.runtime.clock
        self.offset = 400 * DAY
        true_time = self.clock.unix_time
        self.clock.unix_time = lambda: true_time() + self.offset  # type: ignore[method-assign]

    def start(self) -> None:
        checker = LeaseChecker(self.scene.service, ExpirySettings(enabled=True), self.clock)
        self.crawler = Crawler(self.scene.service, checker, self.clock)
        self.crawler.start()

    def restart(self) -> None:
        self.scene.run(self.crawler.stop())
        self.start()

    def days(self, count: float) -> None:
        for _ in range(int(count * 4)):
            self.scene.advance(DAY / 4)

    def put(self) -> None:
        self.scene.run(put(self.scene.service, FILE, {0: b"zero"}))

    @property
    def share_count(self) -> int:
        return len(stored_shares(self.scene.disk))


def test_share_when_put_under_a_clock_that_was_behind_outlives_its_correction() -> None:
    scene = Scene()
    scene.start()
    scene.days(3)
    scene.offset -= 400 * DAY
    scene.put()
    scene.days(1)
    scene.offset += 400 * DAY
    scene.days(30)
    assert scene.share_count == 1
    scene.days(10)
    assert scene.share_count == 0, "in the end it goes like any other"
    scene.scene.run(scene.crawler.stop())


def test_share_when_put_under_a_clock_that_was_behind_outlives_a_restart_with_the_right_one() -> None:
    scene = Scene()
    scene.start()
    scene.days(3)
    scene.scene.run(scene.crawler.stop())
    scene.offset -= 390 * DAY
    scene.start()
    scene.days(0.5)
    scene.put()
    scene.days(0.5)
    scene.scene.run(scene.crawler.stop())
    scene.offset += 390 * DAY
    scene.start()
    scene.days(29)
    assert scene.share_count == 1
    scene.scene.run(scene.crawler.stop())


def test_share_when_the_clock_leaps_ahead_for_a_while_stays_until_its_lease_ends() -> None:
    scene = Scene()
    scene.start()
    scene.days(3)
    scene.put()
    scene.offset += 40 * DAY
    scene.days(0.75)
    scene.offset -= 40 * DAY
    scene.days(28)
    assert scene.share_count == 1
    scene.scene.run(scene.crawler.stop())


def test_crawler_when_the_clock_leaps_back_still_begins_its_next_cycle_in_time() -> None:
    scene = Scene()
    scene.start()
    scene.days(1)
    scene.offset -= 390 * DAY
    scene.days(1)
    before = json.loads(load(scene.scene.disk, "lease_checker.state.json"))["last-cycle-finished"]
    scene.days(2)
    after = json.loads(load(scene.scene.disk, "lease_checker.state.json"))["last-cycle-finished"]
    assert after - before == 4
    scene.scene.run(scene.crawler.stop())
