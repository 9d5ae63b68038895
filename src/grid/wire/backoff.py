"""When to try again to reach a server after a failure. Pure.

After a failure, calls wait for a connection only in short tries until the backoff is over: at most one attempt per second,
for SHORT_TRY_S. So the first operation that asks a server that is back can use it, and one that is still away costs little.
[docs/decisions/0140-short-tries.md]
"""

from __future__ import annotations

from grid.errors import PeerUnreachableError
from grid.limits import MAX_RECONNECT_DELAY_S
from grid.ports import Clock

FIRST_RECONNECT_DELAY_S = 0.5

SHORT_TRY_S = 0.5
"""How long calls wait for an attempt during the backoff: three round trips to a distant server. The attempt itself continues."""

ATTEMPTS_APART_S = 1.0
"""Least time between the starts of attempts during the backoff."""


class Backoff:
    """How long calls wait for an attempt: until it ends after a loss, less and more rarely after failures."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay_s = 0.0
        self._due_at = -1.0
        self._began_at = float("-inf")
        self._why = ""

    def begin(self, where: str) -> None:
        """Note that an attempt begins. PeerUnreachableError with the last failure's reason if it is too soon."""
        now = self._clock.now()
        if now < min(self._due_at, self._began_at + ATTEMPTS_APART_S):
            raise self.away(where)
        self._began_at = now

    def patience_s(self) -> float | None:
        """How long a call may wait for the running attempt; None: until it ends; 0: not at all."""
        if self._clock.now() >= self._due_at:
            return None
        return max(0.0, self._began_at + SHORT_TRY_S - self._clock.now())

    def away(self, where: str) -> PeerUnreachableError:
        """The error for a call that stops waiting."""
        wait_s = max(0.0, self._due_at - self._clock.now())
        return PeerUnreachableError(
            f"{where} cannot be reached ({self._why}); the next attempt is in {wait_s:.1f} s",
            reason=self._why,
            server=where,
        )

    def failed(self, why: str) -> None:
        """Note that an attempt failed."""
        self._delay_s = min(MAX_RECONNECT_DELAY_S, 2 * self._delay_s or FIRST_RECONNECT_DELAY_S)
        self._due_at = self._clock.now() + self._delay_s
        self._why = why

    def reset(self) -> None:
        """Note that an attempt succeeded."""
        self._delay_s, self._due_at = 0.0, -1.0

    def forget(self) -> None:
        """Forget failures, because the server is said to be back. The time between attempts still counts."""
        self._delay_s = min(self._delay_s, FIRST_RECONNECT_DELAY_S)
        self._due_at = min(self._due_at, self._began_at + ATTEMPTS_APART_S)
