"""The rate of a transfer: schedules by time of day, and bytes per second."""

from __future__ import annotations

import pytest

from grid.transfer.rates import BURST_S, RateLimit, Schedule, parse_schedule

MIB = 2**20


def test_rate_when_alone_holds_all_day() -> None:
    schedule = parse_schedule("10M")
    assert {schedule.rate_at(minute) for minute in range(24 * 60)} == {10_000_000}


def test_schedule_when_before_its_first_step_continues_from_the_evening() -> None:
    schedule = parse_schedule("08:00,512KiB 19:30,10MiB 23:00,off")
    assert schedule.rate_at(0) is None
    assert schedule.rate_at(8 * 60 - 1) is None
    assert schedule.rate_at(8 * 60) == 512 * 1024
    assert schedule.rate_at(19 * 60 + 29) == 512 * 1024
    assert schedule.rate_at(19 * 60 + 30) == 10 * MIB
    assert schedule.rate_at(23 * 60) is None


@pytest.mark.parametrize(
    "text",
    ["", " ", "0", "-1", "fast", "08:00", "08:00,", "24:00,1M", "08:60,1M", "19:00,1M 08:00,2M", "8:0,1M", "1M 2M", "08:00,0"],
)  # fmt: skip
def test_schedule_when_malformed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_schedule(text)


class _Time:
    """A clock that tests move. minute: of the day."""

    def __init__(self) -> None:
        self.now, self.minute = 100.0, 0


def _limit(schedule: Schedule) -> tuple[RateLimit, _Time]:
    time = _Time()
    return RateLimit(schedule, lambda: time.now, lambda: time.minute), time


def test_limit_when_obeyed_lets_exactly_its_rate_pass() -> None:
    limit, time = _limit(parse_schedule("1000"))
    began = time.now
    for _ in range(200):
        time.now += limit.take(100)
    assert time.now - began == pytest.approx(200 * 100 / 1000, abs=BURST_S)


def test_limit_when_idle_saves_up_no_more_than_a_burst() -> None:
    limit, time = _limit(parse_schedule("1000"))
    limit.take(100)
    time.now += 3600
    assert limit.take(1000) == pytest.approx(1 - BURST_S)


def test_limit_when_several_files_share_it_adds_their_bytes() -> None:
    limit, _ = _limit(parse_schedule("1000"))
    pauses = [limit.take(500) for _ in range(4)]
    assert pauses[-1] == pytest.approx(2000 / 1000, abs=BURST_S)


def test_limit_when_it_ends_by_the_clock_lets_everything_pass() -> None:
    limit, time = _limit(parse_schedule("08:00,1000 19:00,off"))
    time.minute = 9 * 60
    assert limit.take(10_000) > 5
    time.minute = 19 * 60
    assert limit.take(10**12) == 0
    time.minute = 8 * 60
    assert limit.take(1000) <= 1, "what passed without a limit counts no more"
