"""Running writes, for code that must wait until they have ended or must not run after one has failed.

It makes no calls, and has no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from twisted.internet.defer import Deferred

from grid.errors import PeerRefusedError
from grid.ports import ShareNumber


class WritesUnderWay:
    """The running writes to the shares of one upload."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: list[Deferred[None]] = []
        self._failed: set[ShareNumber] = set()

    @contextmanager
    def counted(self, share_numbers: Collection[ShareNumber]) -> Iterator[None]:
        """Count a write to these shares while the context lasts; an exception counts as its failure."""
        self._count += 1
        try:
            yield
        except BaseException:
            self._failed.update(share_numbers)
            raise
        finally:
            self._count -= 1
            if not self._count:
                waiting, self._waiting = self._waiting, []
                for waiter in waiting:
                    waiter.callback(None)

    async def stored(self, share_numbers: Collection[ShareNumber]) -> None:
        """Return when no write is running; PeerRefusedError if a write to one of these shares has failed."""
        while self._count:
            waiter: Deferred[None] = Deferred()
            self._waiting.append(waiter)
            await waiter
        self.require_whole(share_numbers)

    def require_whole(self, share_numbers: Collection[ShareNumber]) -> None:
        """Raise PeerRefusedError if a write to one of these shares has failed."""
        if not self._failed.isdisjoint(share_numbers):
            raise PeerRefusedError("a write to one of these shares failed; give the upload up", kind="WriteFailed")
