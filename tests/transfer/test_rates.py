"""The rate of a transfer: schedules by time of day, and bytes per second."""

from __future__ import annotations

import asyncio
import time

import pytest

from grid.transfer.rates import BURST_S, DAY, STEP_S, RateLimit, Schedule, let_pass, minute_of, parse_schedule

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
    ["", " ", "0", "-1", "fast", "08:00", "08:00,", "24:00,1M", "08:60,1M", "19:00,1M 08:00,2M", "8:0,1M", "1M 2M", "08:00,0", "Mon,1M", "Foo-08:00,1M",
     "-08:00,1M"],
)  # fmt: skip
def test_schedule_when_malformed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_schedule(text)


class _Time:
    """A clock that tests move. minute: of the week."""

    def __init__(self) -> None:
        self.now, self.minute = 100.0, 0


def _limit(schedule: Schedule) -> tuple[RateLimit, _Time]:
    time = _Time()
    return RateLimit(schedule, lambda: time.now, lambda: time.minute), time


def test_limit_when_obeyed_lets_exactly_its_rate_pass() -> None:
    limit, time = _limit(parse_schedule("1000"))
    began = time.now
    for _ in range(200):
        time.now += limit.take(100)()
    assert time.now - began == pytest.approx(200 * 100 / 1000, abs=BURST_S)


def test_limit_when_idle_saves_up_no_more_than_a_burst() -> None:
    limit, time = _limit(parse_schedule("1000"))
    limit.take(100)
    time.now += 3600
    assert limit.take(1000)() == pytest.approx(1 - BURST_S)


def test_limit_when_several_files_share_it_adds_their_bytes() -> None:
    limit, _ = _limit(parse_schedule("1000"))
    pauses = [limit.take(500)() for _ in range(4)]
    assert pauses[-1] == pytest.approx(2000 / 1000, abs=BURST_S)


def test_limit_when_it_ends_by_the_clock_lets_everything_pass() -> None:
    limit, time = _limit(parse_schedule("08:00,1000 19:00,off"))
    time.minute = 9 * 60
    assert limit.take(10_000)() > 5
    time.minute = 19 * 60
    assert limit.take(10**12)() == 0
    time.minute = 8 * 60
    assert limit.take(1000)() <= 1, "what passed without a limit counts no more"


def test_schedule_with_weekdays_holds_on_those() -> None:
    schedule = parse_schedule("Mon-08:00,1M 18:00,2M Saturday-00:00,off sun-12:00,3M")
    rates = {"Mon 07:59": 2, "Mon 08:00": 1, "Tue 17:59": 2, "Sat 00:00": None, "Sat 17:59": None, "Sat 18:00": 2,
             "Sun 11:59": 2, "Sun 12:00": 3, "Sun 23:59": 2}  # fmt: skip
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    for text, rate in rates.items():
        day, moment = text.split()
        minute = days.index(day) * DAY + int(moment[:2]) * 60 + int(moment[3:])
        assert schedule.rate_at(minute) == (None if rate is None else rate * 10**6), text


def test_minute_of_the_week_begins_with_monday() -> None:
    for day in range(7):
        moment = time.mktime((2026, 11, 23 + day, 1, 2, 3, 0, 0, -1))  # The first is a Monday.
        assert minute_of(moment) == day * DAY + 62


def test_limit_when_it_rises_shortens_what_waits() -> None:
    limit, time = _limit(parse_schedule("08:00,10k 19:00,10M"))
    time.minute = 18 * 60
    waiting = [limit.take(MIB) for _ in range(8)]
    assert waiting[-1]() > 800
    time.minute = 19 * 60
    assert [round(left(), 3) for left in waiting] == sorted(round(left(), 3) for left in waiting)
    assert waiting[-1]() < 1 and limit.take(MIB)() < 1


def test_waiting_when_the_limit_ends_ends_soon() -> None:
    limit, time = _limit(parse_schedule("08:00,10k 19:00,off"))
    time.minute = 18 * 60
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        time.now += seconds
        if len(slept) == 3:
            time.minute = 19 * 60

    asyncio.run(let_pass(limit.take, 8 * MIB, sleep))
    assert slept == [STEP_S] * 3
