"""Runs pieces of work side by side, so many at once, as long as there are any."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred

from grid.runtime import Tasks

NextPiece = Callable[[], "Coroutine[Any, Any, None] | None"]
"""Gives the next piece, or None when all that is left waits for what runs."""


async def run_pieces(next_piece: NextPiece, jobs: int) -> None:
    """Return when there is no further piece and none runs; the first error cancels the rest and is raised.

    Work that can fail by itself, without ending the whole, catches its own errors.
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
            piece = next_piece() if running < jobs else None
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
