"""Two attempts to connect, the second one begun only if the first fails or takes long; the first to succeed wins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred, DeferredList

from grid.errors import GridError
from grid.ports import Clock, Timer

HEAD_START_S = 2.0
"""How long the first may take before the second begins beside it: a handshake across the world."""

HEAD_START_TICKS = 4

Connect = Callable[[], Awaitable[None]]


@frozen
class Arrival:
    """winner: 0 or 1, None if both have failed. errors: of those that have."""

    winner: int | None
    errors: Mapping[int, GridError]


async def race(first: Connect, second: Connect, clock: Clock) -> Arrival:
    """Who connects. Whoever has not when the other one does is cancelled."""
    errors: dict[int, GridError] = {}
    go: Deferred[None] = Deferred()

    def start_second() -> None:
        if not go.called:
            go.callback(None)

    async def attempt(index: int, connect: Connect) -> int:
        if index:
            await go
        try:
            await connect()
        except GridError as error:
            errors[index] = error
            # In a later turn: the second may connect at once, which ends the race and with it this attempt.
            clock.call_later(0, start_second)
            raise
        return index

    timer = _head_start(clock, start_second)
    tasks = [Deferred.fromCoroutine(attempt(index, connect)) for index, connect in enumerate((first, second))]
    try:
        outcome: Any = await DeferredList(tasks, fireOnOneCallback=True, consumeErrors=True)
    finally:
        timer[0].cancel()
        for task in tasks:
            task.cancel()
    if isinstance(outcome, tuple):
        return Arrival(outcome[0], errors)
    for _, failure in outcome:
        if not isinstance(failure.value, GridError):
            raise failure.value  # A defect, of ours.
    return Arrival(None, errors)


def _head_start(clock: Clock, end: Callable[[], None]) -> list[Timer]:
    """Call `end` after HEAD_START_S. In ticks: what kept this process itself busy counts as one of them, however long.

    The timer that is under way is always the list's only item.
    """
    timers: list[Timer] = []

    def tick(left: int) -> None:
        if left:
            timers[:] = [clock.call_later(HEAD_START_S / HEAD_START_TICKS, lambda: tick(left - 1))]
        else:
            end()

    tick(HEAD_START_TICKS)
    return timers
