"""Tells a slow server from a stalled one during a write. Part of the put plan; pure.

A slow server is waited for, because it was chosen for its share. A server that holds up everything is not.
"""

from __future__ import annotations

from math import inf

from grid.engine.lateness import WriteLateness
from grid.immutable.share.requests import WriteShares

STALL_FLOOR_S = 0.9
STALL_FACTOR = 6.0
"""A write is stalled when it takes longer than this, and this many times the slowest answered one. The put checks only when it
waits for nothing else, so other work is not affected."""

UNANSWERED_S = 30.0
"""Before any write was answered, none is stalled sooner: there is nothing to compare it with."""

RECHECK_S = 0.1
"""How often to look at stalled writes again while other work is going on."""


class StallWatch:
    """The writes that are not answered yet."""

    def __init__(self) -> None:
        self._sent_at: dict[WriteShares, float] = {}
        self._lateness = WriteLateness(
            floor_s=STALL_FLOOR_S, factor=STALL_FACTOR, unanswered_s=UNANSWERED_S, unanswered_rate=inf
        )
        self._checked_at = float("-inf")

    def sent(self, request: WriteShares, now: float) -> None:
        """Note that a write was sent."""
        self._sent_at[request] = now

    def ended(self, request: WriteShares, now: float | None) -> None:
        """Note that it was answered at `now`, or (None) failed."""
        sent_at = self._sent_at.pop(request, None)
        if sent_at is not None and now is not None:
            self._lateness.learn(request.size, now - sent_at)

    def stalled(self, now: float, *, blocked: bool) -> list[WriteShares]:
        """Writes not worth waiting for. blocked: the put waits for nothing but servers.

        While a write that is not stalled is outstanding, only hopeless ones are returned.
        """
        self._checked_at = now
        stalled = [request for request in self._sent_at if now >= self._stalls_at(request)]
        if not blocked or len(stalled) < len(self._sent_at):
            stalled = [request for request in stalled if self.hopeless(request, now)]
        return stalled

    def hopeless(self, request: WriteShares, now: float) -> bool:
        """Whether to give up on it even if the put then fails."""
        return now >= self._hopeless_at(request)

    def wake_at(self) -> float | None:
        """When to call `stalled` again."""
        times = [self._stalls_at(request) for request in self._sent_at]
        return max(min(times), self._checked_at + RECHECK_S) if times else None

    def _stalls_at(self, request: WriteShares) -> float:
        kind = type(request).__name__
        late_at = self._lateness.late_at(request.server_id, kind, request.size, self._sent_at[request])
        return min(late_at, self._hopeless_at(request))

    def _hopeless_at(self, request: WriteShares) -> float:
        return self._lateness.hopeless_at(request.size, self._sent_at[request])
