"""What all requests of one server together may hold in memory. Pure of sockets; waits are Deferreds."""

from __future__ import annotations

from collections import deque
from types import TracebackType

from twisted.internet.defer import Deferred

LARGEST_PIECE = 1024 * 1024
SMALLEST_PIECE = 64 * 1024


class PieceSizer:
    """Divides a number of octets among the requests being served: each holds at most one piece of its body."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._active = 0

    @property
    def active(self) -> int:
        """Requests being served."""
        return self._active

    @property
    def piece_size(self) -> int:
        """Octets that one request may hold now; never so few that the calls cost more than the octets."""
        return max(SMALLEST_PIECE, min(LARGEST_PIECE, self._total // max(1, self._active)))

    def __enter__(self) -> None:
        self._active += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._active -= 1


class ByteBudget:
    """Octets to be held at once, handed out in the order of asking."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._waiters: deque[tuple[int, Deferred[None]]] = deque()

    async def acquire(self, size: int) -> int:
        """Wait for that many octets, or for all there are; how many were acquired, to be released later."""
        size = min(size, self._total)
        if self._waiters or size > self._free:
            turn: Deferred[None] = Deferred()
            self._waiters.append((size, turn))
            await turn
        else:
            self._free -= size
        return size

    def release(self, size: int) -> None:
        """Give back what acquire gave."""
        self._free += size
        while self._waiters and self._waiters[0][0] <= self._free:
            wanted, turn = self._waiters.popleft()
            self._free -= wanted
            turn.callback(None)
