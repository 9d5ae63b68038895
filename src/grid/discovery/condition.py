"""A condition that tasks can wait for."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from grid.ports import Clock


class Condition:
    """Lets tasks wait until a condition of the owner holds. The owner says when it may have changed.

    Waiting tasks continue in a later turn of the event loop, never inside the owner's own work.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: list[Deferred[None]] = []

    def changed(self) -> None:
        """Make all waiting tasks check again."""
        if self._waiters:
            self._clock.call_later(0, self._release)

    async def wait_until(self, holds: Callable[[], bool], deadline_s: float) -> bool:
        """Wait until the condition holds, for at most deadline_s seconds. Returns whether it holds."""
        late: list[bool] = []

        def expire() -> None:
            late.append(True)
            self._release()

        timer = self._clock.call_later(deadline_s, expire)
        try:
            while not holds() and not late:
                waiter: Deferred[None] = Deferred(self._forget)
                self._waiters.append(waiter)
                await waiter
        finally:
            timer.cancel()
        return holds()

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.called:  # A task that continued earlier may have canceled it.
                waiter.callback(None)

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
