"""When to try again to reach a server that is away. Pure.

After a failure calls wait for a connection only in short tries until the backoff is over: one attempt a second at most, and
SHORT_TRY_S of it. So a server that is back is used by the first operation that asks it, and one that is not costs little.
[docs/decisions/0140-short-tries.md]
"""

from __future__ import annotations

from grid.errors import PeerUnreachableError
from grid.limits import MAX_RECONNECT_DELAY_S
from grid.ports import Clock

FIRST_RECONNECT_DELAY_S = 0.5

SHORT_TRY_S = 0.5
"""How long calls wait for an attempt while the backoff runs: three round trips to a distant server. The attempt goes on."""

ATTEMPTS_APART_S = 1.0
"""Between the beginnings of attempts while the backoff runs, at least."""


class Backoff:
    """How long to wait for an attempt: as long as it takes after a loss, shorter and more rarely after failures."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay_s = 0.0
        self._due_at = -1.0
        self._began_at = float("-inf")
        self._why = ""

    def begin(self, where: str) -> None:
        """An attempt begins now; PeerUnreachableError with the last failure's reason if it is too soon for one."""
        now = self._clock.now()
        if now < min(self._due_at, self._began_at + ATTEMPTS_APART_S):
            raise self.away(where)
        self._began_at = now

    def patience_s(self) -> float | None:
        """How long a call may wait for the attempt under way; None for as long as it takes, 0 for not at all."""
        if self._clock.now() >= self._due_at:
            return None
        return max(0.0, self._began_at + SHORT_TRY_S - self._clock.now())

    def away(self, where: str) -> PeerUnreachableError:
        """The error for a call that waits no longer."""
        wait_s = max(0.0, self._due_at - self._clock.now())
        return PeerUnreachableError(
            f"{where} is away ({self._why}); the next attempt is in {wait_s:.1f} s", reason=self._why
        )

    def failed(self, why: str) -> None:
        """An attempt failed."""
        self._delay_s = min(MAX_RECONNECT_DELAY_S, 2 * self._delay_s or FIRST_RECONNECT_DELAY_S)
        self._due_at = self._clock.now() + self._delay_s
        self._why = why

    def reset(self) -> None:
        """An attempt succeeded."""
        self._delay_s, self._due_at = 0.0, -1.0

    def forget(self) -> None:
        """The server is said to be back: what failed before counts no more, but for the time between attempts."""
        self._delay_s = min(self._delay_s, FIRST_RECONNECT_DELAY_S)
        self._due_at = min(self._due_at, self._began_at + ATTEMPTS_APART_S)
