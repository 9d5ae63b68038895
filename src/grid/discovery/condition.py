"""A condition that tasks wait for."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from grid.ports import Clock


class Condition:
    """Lets tasks wait until a condition of the owner's holds; the owner says when it may have changed.

    Those who wait go on in a later turn of the event loop, never from inside the owner's own work.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: list[Deferred[None]] = []

    def changed(self) -> None:
        """Let all who wait look again."""
        if self._waiters:
            self._clock.call_later(0, self._release)

    async def wait_until(self, holds: Callable[[], bool], deadline_s: float) -> bool:
        """Return whether the condition holds, as soon as it does or after deadline_s seconds."""
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
            if not waiter.called:  # One that went on before it may have canceled it.
                waiter.callback(None)

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)
