"""The rate of a transfer: bytes per second, by the time of the week.

Schedules use rclone's syntax: `10M`, `08:00,512k 19:00,10M 23:00,off`, or `Mon-08:00,512k Sat-00:00,off`. Time comes from
a clock.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence

from grid.node.quantities import parse_size
from grid.values import frozen

_TIME = re.compile(r"(?:([A-Za-z]+)-)?([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = 24 * 60
"""Minutes."""

BURST_S = 0.25
"""Seconds' worth of bytes that may be sent at once."""

STEP_S = 2.0
"""The longest wait in one piece, in seconds: the rate may change meanwhile."""

Left = Callable[[], float]
"""Returns the seconds until some bytes may pass, at the rate of now."""

Slow = Callable[[int], Left]
"""Counts bytes about to be sent."""


def unlimited(count: int) -> Left:
    """Count nothing, and let everything pass."""
    return _nothing


def _nothing() -> float:
    return 0.0


async def let_pass(slow: Slow, count: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Wait until these bytes may pass."""
    left = slow(count)
    while (pause := left()) > 0:
        await sleep(min(pause, STEP_S))


@frozen
class Schedule:
    """The rate in bytes per second from each minute of the week on, which begins with Monday; None: no limit."""

    steps: Sequence[tuple[int, int | None]]

    def rate_at(self, minute: int) -> int | None:
        """The limit at a minute of the week: that of the last step before it, possibly in the previous week."""
        before = [rate for begin, rate in self.steps if begin <= minute]
        return before[-1] if before else self.steps[-1][1]


def parse_schedule(text: str) -> Schedule:
    """Parse a single limit or steps; ValueError. A step without a weekday holds on all of them."""
    words = text.split()
    if len(words) == 1 and "," not in words[0]:
        return Schedule([(0, _rate(words[0]))])
    steps: dict[int, int | None] = {}
    daily = []
    for word in words:
        time, _, rate = word.partition(",")
        match = _TIME.fullmatch(time)
        days = [] if match is None else _days(match[1])
        if match is None or not days or not rate:
            raise ValueError("expected a rate such as 10M, or times with rates such as '08:00,512k Sat-00:00,off'")
        minute = int(match[2]) * 60 + int(match[3])
        daily += [minute] if match[1] is None else []
        steps |= {day * DAY + minute: _rate(rate) for day in days}
    if not steps or daily != sorted(daily):
        raise ValueError("expected times in ascending order")
    return Schedule(sorted(steps.items(), key=lambda step: step[0]))


def _days(name: str | None) -> Sequence[int]:
    """The days of the week that a name or its first three letters mean; all for None."""
    if name is None:
        return range(len(_DAYS))
    return [number for number, day in enumerate(_DAYS) if name.lower() in (day, day[:3])]


def _rate(text: str) -> int | None:
    if text.lower() == "off":
        return None
    rate = parse_size(text)
    if not rate:
        raise ValueError("expected a rate above 0, or off")
    return rate


def minute_of(unix_time: float) -> int:
    """The minute of the week, local time."""
    moment = time.localtime(unix_time)
    return moment.tm_wday * DAY + moment.tm_hour * 60 + moment.tm_min


class RateLimit:
    """Limits all files together to the rate of a schedule. Bytes pass in the order in which they were counted."""

    def __init__(self, schedule: Schedule, now: Callable[[], float], minute: Callable[[], int]) -> None:
        """now: monotonic seconds. minute: of the week, local time."""
        self._schedule, self._now, self._minute = schedule, now, minute
        self._at = now()
        self._taken = 0
        self._passed = 0.0

    def take(self, count: int) -> Left:
        """Count bytes about to be sent; return what tells the seconds to wait after them."""
        self._rate()
        self._taken += count
        end = self._taken

        def left() -> float:
            rate = self._rate()
            return 0.0 if rate is None else max(0.0, (end - self._passed) / rate)

        return left

    def _rate(self) -> int | None:
        """The rate of now. What has passed since the last call is counted at that rate."""
        rate, now = self._schedule.rate_at(self._minute()), self._now()
        elapsed, self._at = now - self._at, now
        if rate is None:
            self._passed = self._taken
        else:
            self._passed = min(self._passed + elapsed * rate, self._taken + BURST_S * rate)
        return rate
