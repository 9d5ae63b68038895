"""Two attempts to connect. The second begins only if the first fails or takes long; the first to succeed wins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from twisted.internet.defer import Deferred

from grid.errors import GridError
from grid.ports import Clock, Timer
from grid.runtime import Tasks
from grid.values import frozen

HEAD_START_S = 2.0
"""How long the first attempt may take before the second begins as well: a handshake around the world."""

HEAD_START_TICKS = 4

AGAIN_S = 1.0
"""How long a failed transport waits before it tries again, while the other one has not connected either."""

Connect = Callable[[], Awaitable[object]]


@frozen
class Arrival:
    """winner: 0 or 1; None if both have failed. errors: of the failed ones."""

    winner: int | None
    errors: Mapping[int, GridError]


async def race(first: Connect, second: Connect, clock: Clock, head_start_s: float = HEAD_START_S) -> Arrival:
    """Connect over both. When one has connected, the other is canceled. One that fails while the other still tries, tries again."""
    running = _Race((first, second), clock)
    timer = _head_start(clock, head_start_s, running.start_second)
    try:
        winner = await running.run()
    finally:
        timer[0].cancel()
    return Arrival(winner, running.errors)


class _Race:
    def __init__(self, connects: tuple[Connect, Connect], clock: Clock) -> None:
        self.errors: dict[int, GridError] = {}
        self._connects = connects
        self._clock = clock
        self._down: set[int] = set()
        self._go: Deferred[None] = Deferred()
        self._outcome: Deferred[int | None] = Deferred()
        self._tasks = Tasks()

    async def run(self) -> int | None:
        for index in (0, 1):
            self._tasks.start(self._attempt(index), on_error=self._broke)
        try:
            return await self._outcome
        finally:
            self._tasks.cancel()

    def start_second(self) -> None:
        if not self._go.called:
            self._go.callback(None)

    async def _attempt(self, index: int) -> None:
        if index:
            await self._go
        while True:
            try:
                await self._connects[index]()
                self._end(index)
                return
            except GridError as error:
                self.errors[index] = error
                self._down.add(index)
            if len(self._down) == len(self._connects):
                self._end(None)
                return
            # In a later turn: the second may connect at once, which ends the race and thereby this attempt.
            self._clock.call_later(0, self.start_second)
            await self._clock.sleep(AGAIN_S)
            self._down.discard(index)

    def _end(self, winner: int | None) -> None:
        if not self._outcome.called:
            self._outcome.callback(winner)

    def _broke(self, error: BaseException) -> None:
        if not self._outcome.called:
            self._outcome.errback(error)  # A bug of ours.


def _head_start(clock: Clock, head_start_s: float, end: Callable[[], None]) -> list[Timer]:
    """Call `end` after that time. Counted in ticks, so that any time in which this process was busy counts as one tick.

    The running timer is always the only item of the list.
    """
    timers: list[Timer] = []

    def tick(left: int) -> None:
        if left:
            timers[:] = [clock.call_later(head_start_s / HEAD_START_TICKS, lambda: tick(left - 1))]
        else:
            end()

    tick(HEAD_START_TICKS)
    return timers
