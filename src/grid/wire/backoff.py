"""When to try again to reach a server that is away."""

from __future__ import annotations

from grid.errors import PeerGoneError
from grid.limits import MAX_RECONNECT_DELAY_S
from grid.ports import Clock

FIRST_RECONNECT_DELAY_S = 0.5


class Backoff:
    """When the next attempt is due: at once after a loss, later and later after failures."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay_s = 0.0
        self._due_at = -1.0
        self._why = ""

    def require_due(self, where: str) -> None:
        """PeerGoneError with the last failure's reason if the next attempt is not due yet."""
        wait_s = self._due_at - self._clock.now()
        if self._delay_s and wait_s > 0:
            raise PeerGoneError(f"{where} is away ({self._why}); the next attempt is in {wait_s:.1f} s")

    def failed(self, why: str) -> None:
        """An attempt failed."""
        self._delay_s = min(MAX_RECONNECT_DELAY_S, 2 * self._delay_s or FIRST_RECONNECT_DELAY_S)
        self._due_at = self._clock.now() + self._delay_s
        self._why = why

    def reset(self) -> None:
        """An attempt succeeded."""
        self._delay_s = 0.0
