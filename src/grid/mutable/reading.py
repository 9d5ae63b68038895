"""Reading the best version that reads: what proves false leaves the map, and the best is chosen again.

It owns the order of the attempts, and the warning about a version that is older than one known before. [spec mutable 10, 14]
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

from grid.errors import ConflictError, NotEnoughSharesError
from grid.mutable.read.newest import outdated_text
from grid.mutable.session import Session
from grid.mutable.share.versions import VersionMap
from grid.mutable.writing import require_best
from grid.ports import Event

REMAPS = 2
"""How often a read begins with a new map because the file changed under it, or shares were false or missing."""

Choice = Callable[[int], tuple[int, int]]
"""(bytes of the version that is read) -> the first byte that is wanted of it, and the first that is not any more."""

Guess = Callable[[int], tuple[int, int | None] | None]
"""(bytes that the file had) -> the first byte that is wanted, and how many (None: to the end); None if not known."""

Attempt = Callable[[VersionMap], Awaitable[None]]
"""Reads the best version of a map."""


async def read_best(
    session: Session,
    found: VersionMap,
    attempt: Attempt,
    find: Callable[[], Awaitable[VersionMap]],
    may_retry: Callable[[], bool] = lambda: True,
) -> VersionMap:
    """The map of whose best version `attempt` has made something.

    Where it fails, everybody is asked again (`find`), REMAPS times; then shares that prove false are left out of the map
    until a version reads, or none is left. NotEnoughSharesError; the errors of `attempt`.
    """
    require_best(found)
    for failures in count():
        try:
            await attempt(found)
            return found
        except (ConflictError, NotEnoughSharesError) as error:
            if not may_retry():
                raise
            failure = error.with_traceback(None)  # Its frames hold what the attempt had read.
        before = found
        found = await find() if failures < REMAPS else session.without_refuted(found)
        is_new = failures < REMAPS or len(found.sightings) < len(before.sightings)
        if found.best is None or not is_new:
            raise failure
    raise AssertionError("the loop returns or raises")


def warning_of(found: VersionMap) -> str | None:
    """What the user should know who is given the best version of this map, or builds upon it."""
    best = found.best
    return outdated_text(found, best) if best is not None and found.is_outdated else None


def warn_if_outdated(session: Session, found: VersionMap) -> str | None:
    """As warning_of; observers hear it too."""
    text = warning_of(found)
    if text is not None:
        session.grid.observer(Event(at=session.grid.runtime.clock.now(), what="warning", detail=text))
    return text
