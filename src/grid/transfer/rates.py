"""The rate of a transfer: bytes per second, by the time of day.

Schedules use rclone's syntax: `10M`, or `08:00,512k 19:00,10M 23:00,off`. Time comes from a clock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from attrs import frozen

from grid.node.quantities import parse_size

_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
BURST_S = 0.25
"""Seconds' worth of bytes that may be sent at once."""


@frozen
class Schedule:
    """The rate in bytes per second from each minute of the day on; None: no limit."""

    steps: Sequence[tuple[int, int | None]]

    def rate_at(self, minute: int) -> int | None:
        """The limit at a minute of the day: that of the last step before it, possibly on the previous day."""
        before = [rate for begin, rate in self.steps if begin <= minute]
        return before[-1] if before else self.steps[-1][1]


def parse_schedule(text: str) -> Schedule:
    """Parse a single limit or steps; ValueError."""
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
    """Limits all files together to the rate of a schedule."""

    def __init__(self, schedule: Schedule, now: Callable[[], float], minute: Callable[[], int]) -> None:
        """now: monotonic seconds. minute: of the day, local time."""
        self._schedule, self._now, self._minute = schedule, now, minute
        self._free_at = now()

    def take(self, count: int) -> float:
        """Count bytes about to be sent; return the seconds to wait after them."""
        rate = self._schedule.rate_at(self._minute())
        now = self._now()
        if rate is None:
            self._free_at = now
            return 0.0
        self._free_at = max(self._free_at, now - BURST_S) + count / rate
        return max(0.0, self._free_at - now)
