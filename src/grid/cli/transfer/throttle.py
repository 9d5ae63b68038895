"""Limits the rate of file contents to `--bwlimit`, for all files of a command together.

It counts bytes of files, not of shares. Data that is only hashed, already stored, or read again from a disk is free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from grid.ports import Buffer, Clock, Sink, Source

if TYPE_CHECKING:
    from grid.transfer.rates import Schedule, Slow

F = TypeVar("F", bound=Callable[..., object])


class Rate(click.ParamType["Schedule"]):
    """The type of an option that takes a rate, or rates by the time of day."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Schedule:
        """Parse the schedule; UsageError."""
        from grid.transfer.rates import Schedule, parse_schedule

        if isinstance(value, Schedule):
            return value
        try:
            return parse_schedule(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def bwlimit_option(command: F) -> F:
    """Add `--bwlimit` to a command that moves contents of files."""
    text = "Bandwidth limit in bytes per second, such as 10M, or a schedule, such as '08:00,512k 19:00,off'."
    return click.option("--bwlimit", metavar="RATE", type=Rate(), help=text)(command)


class Throttle:
    """Limits the flow of bytes to the rate of a schedule."""

    def __init__(self, clock: Clock, schedule: Schedule | None = None) -> None:
        """schedule: None for no limit."""
        self._clock = clock
        self._take: Slow | None = None
        if schedule is not None:
            from grid.transfer.rates import RateLimit, minute_of

            self._take = RateLimit(schedule, clock.now, lambda: minute_of(clock.unix_time())).take

    async def let_pass(self, byte_count: float) -> None:
        """Wait until these bytes may pass."""
        if self._take is not None and byte_count > 0:
            from grid.transfer.rates import let_pass

            await let_pass(self._take, round(byte_count), self._clock.sleep)

    def sink(self, sink: Sink) -> Sink:
        """Wrap a sink so that it accepts bytes at the limited rate."""
        return sink if self._take is None else _SlowedSink(sink, self)


class SlowedSource:
    """A source that supplies bytes at the limited rate."""

    def __init__(self, source: Source, throttle: Throttle, free_bytes: int = 0) -> None:
        """free_bytes: how many of the first bytes read are free, because they are only hashed."""
        self._source, self._throttle, self._free_bytes = source, throttle, free_bytes
        self._passed = 0

    @property
    def size(self) -> int:
        """Total bytes."""
        return self._source.size

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Return exactly these bytes; raises the errors of the source."""
        data = await self._source.read_at(offset, length)
        free = min(length, self._free_bytes)
        self._free_bytes -= free
        self._passed += length - free
        await self._throttle.let_pass(length - free)
        return data

    async def finish(self) -> None:
        """Charge for the rest of a stored file, if it was read and sent in one step."""
        await self._throttle.let_pass(self.size - self._passed)


class _SlowedSink:
    """A sink behind a throttle."""

    def __init__(self, sink: Sink, throttle: Throttle) -> None:
        self._sink, self._throttle = sink, throttle

    async def write(self, data: Buffer) -> None:
        size = len(data)
        await self._sink.write(data)
        await self._throttle.let_pass(size)
