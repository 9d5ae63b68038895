"""Limits of a transfer: bytes a second, by the time of day, and bytes in memory.

The schedule is written as for rclone: `10M`, or `08:00,512k 19:00,10M 23:00,off`. Time enters through a clock.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from attrs import frozen

from grid.node.quantities import parse_size

_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
BURST_S = 0.25
"""Seconds of the rate that may go out at once."""


@frozen
class Schedule:
    """Bytes a second from each minute of the day on; None: no limit."""

    steps: Sequence[tuple[int, int | None]]

    def rate_at(self, minute: int) -> int | None:
        """The limit at a minute of the day: that of the last step before it, which may be one of the day before."""
        before = [rate for begin, rate in self.steps if begin <= minute]
        return before[-1] if before else self.steps[-1][1]


def parse_schedule(text: str) -> Schedule:
    """A limit for the whole day, or steps; ValueError."""
    words = text.split()
    if len(words) == 1 and "," not in words[0]:
        return Schedule([(0, _rate(words[0]))])
    steps = []
    for word in words:
        time, _, rate = word.partition(",")
        match = _TIME.fullmatch(time)
        if match is None or not rate:
            raise ValueError("expected a rate such as 10M, or times with rates such as '08:00,512k 19:00,off'")
        steps.append((int(match[1]) * 60 + int(match[2]), _rate(rate)))
    if not steps or steps != sorted(steps, key=lambda step: step[0]):
        raise ValueError("expected times in ascending order")
    return Schedule(steps)


def _rate(text: str) -> int | None:
    if text.lower() == "off":
        return None
    rate = parse_size(text)
    if not rate:
        raise ValueError("expected a rate above 0, or off")
    return rate


def minute_of(unix_time: float) -> int:
    """The minute of the day, local time."""
    moment = time.localtime(unix_time)
    return moment.tm_hour * 60 + moment.tm_min


class RateLimit:
    """Lets bytes pass at the rate of a schedule, for all files together."""

    def __init__(self, schedule: Schedule, now: Callable[[], float], minute: Callable[[], int]) -> None:
        """now: monotonic seconds. minute: of the day, local time."""
        self._schedule, self._now, self._minute = schedule, now, minute
        self._free_at = now()

    def take(self, count: int) -> float:
        """Count bytes that go now; seconds to wait after them."""
        rate = self._schedule.rate_at(self._minute())
        now = self._now()
        if rate is None:
            self._free_at = now
            return 0.0
        self._free_at = max(self._free_at, now - BURST_S) + count / rate
        return max(0.0, self._free_at - now)


class ByteBudget:
    """Memory for files on their way: those that do not fit wait, in order."""

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Keep room for the block; more than there is at all counts as all of it."""
        size = min(size, self._size)
        async with self._turn, self._changed:
            await self._changed.wait_for(lambda: self._left >= size)
            self._left -= size
        try:
            yield
        finally:
            self._left += size
            async with self._changed:
                self._changed.notify_all()
