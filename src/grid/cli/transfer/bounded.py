"""Runs pieces of work in parallel, up to a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from twisted.internet.defer import Deferred, DeferredSemaphore

from grid.runtime import Tasks
from grid.transfer.jobs import Jobs, limit_of

LARGE_FILE = 4 * 2**20
"""The size in bytes from which one file fills the pool and the window of a transfer by itself."""
LARGE_AT_ONCE = 2

NextPiece = Callable[[], "Coroutine[Any, Any, None] | None"]
"""Returns the next piece, or None while everything left depends on running pieces."""


async def run_pieces(next_piece: NextPiece, jobs: Jobs) -> None:
    """Run pieces until none is left. The first error cancels the rest and is raised.

    Work whose failure must not end the whole catches its own errors.
    """
    tasks = Tasks()
    errors: list[BaseException] = []
    wake: list[Deferred[None]] = []
    running = 0

    def ended(error: BaseException | None = None) -> None:
        nonlocal running
        running -= 1
        if error is not None:
            errors.append(error)
        if wake:
            wake.pop().callback(None)

    try:
        while not errors:
            piece = next_piece() if running < limit_of(jobs) else None
            if piece is not None:
                running += 1
                tasks.start(piece, lambda _: ended(), ended)
                continue
            if not running:
                break
            wake.append(Deferred())
            await wake[-1]
    finally:
        wake.clear()
        tasks.cancel()
        await tasks.wait()
    if errors:
        raise errors[0]


class Room:
    """Makes large files take turns, so memory does not grow with the number of jobs."""

    def __init__(self) -> None:
        self._large = DeferredSemaphore(LARGE_AT_ONCE)

    @asynccontextmanager
    async def for_file(self, size: int) -> AsyncIterator[None]:
        """Wait until a file of this size may be moved, and hold its place for the block."""
        if size < LARGE_FILE:
            yield
            return
        await self._large.acquire()
        try:
            yield
        finally:
            self._large.release()
