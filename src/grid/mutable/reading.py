"""Reads the best readable version: shares that prove false leave the map, and the best version is chosen again.

It owns the order of the attempts, and the warning about a version older than a known one. [spec mutable 10, 14]
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

from grid.caps import KnownCap
from grid.engine.grid import Grid
from grid.errors import ConflictError, NotEnoughSharesError
from grid.mutable.read.map_plan import MapMode
from grid.mutable.read.newest import outdated_text
from grid.mutable.session import Session
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap
from grid.mutable.writing import require_best
from grid.ports import Event

REMAPS = 2
"""How often a read starts with a new map because the file changed meanwhile, or shares were false or missing."""

Choice = Callable[[int], tuple[int, int]]
"""(size of the version in bytes) -> (first byte to read, end of the range)."""

Guess = Callable[[int], tuple[int, int | None] | None]
"""(last known size in bytes) -> (first byte to read, byte count or None for the rest of the file), or None if unknown."""

Attempt = Callable[[VersionMap], Awaitable[None]]
"""Reads the best version of a map."""


async def read_best(
    session: Session,
    found: VersionMap,
    attempt: Attempt,
    find: Callable[[], Awaitable[VersionMap]],
    may_retry: Callable[[], bool] = lambda: True,
) -> VersionMap:
    """Call `attempt` on the best version. Returns the map whose best version succeeded.

    If it fails, ask all servers again with `find`, up to REMAPS times. After that, leave shares that prove false out of the map
    until a version reads or none is left. NotEnoughSharesError; also raises the errors of `attempt`.
    """
    require_best(found)
    for failures in count():
        try:
            await attempt(found)
            return found
        except (ConflictError, NotEnoughSharesError) as error:
            if not may_retry():
                raise
            failure = error.with_traceback(None)  # The exception's frames hold what the attempt had read.
        before = found
        found = await find() if failures < REMAPS else session.without_refuted(found)
        is_new = failures < REMAPS or len(found.sightings) < len(before.sightings)
        if found.best is None or not is_new:
            raise failure
    raise AssertionError("the loop returns or raises")


async def newest_version(cap: KnownCap, grid: Grid) -> Prefix:
    """The newest readable version of a mutable file, asked for anew. NotEnoughSharesError, NoServersError, CapError."""
    session = Session.open(FileKeys.of_cap(cap), grid)
    found = await session.find(MapMode.READ)
    if found.best is None and found.silent and found.unrecoverable():
        found = await session.find(MapMode.CHECK)  # Silent servers may have the shares that are missing.
    return require_best(found)


def warning_of(found: VersionMap) -> str | None:
    """A warning for the user who gets the best version of this map or builds upon it; None if there is none."""
    best = found.best
    return outdated_text(found, best) if best is not None and found.is_outdated else None


def warn_if_outdated(session: Session, found: VersionMap) -> str | None:
    """Like warning_of, but also notifies observers."""
    text = warning_of(found)
    if text is not None:
        session.grid.observer(Event(at=session.grid.runtime.clock.now(), what="warning", detail=text))
    return text
