"""Removes links of empty directories while others may add something to them: nothing that is added is lost unseen.

Test-and-set covers one directory at a time, so a directory may gain an entry while its link is being removed elsewhere. In
this process, additions and removals of one directory wait for each other. Other processes know nothing of that, so a
directory is read again after its link is gone, and linked again if something is in it.
[docs/decisions/0489-removed-directories-are-read-again.md]

Cost: a removal: one more read of the directory. An addition: nothing, except another lookup of its path if some removal has
ended meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from grid.caps import DirectoryCap
from grid.directory.edits import SetChild
from grid.directory.pack import Child
from grid.directory.store import OpenDirectory
from grid.errors import ExistingChildError, GridError
from grid.read_write_locks import ReadWriteLocks

MOST_NAMES = 10


class Removals:
    """The removals of directories that take place in one part of this process."""

    def __init__(self) -> None:
        self._locks = ReadWriteLocks()
        self._ended_count = 0

    @asynccontextmanager
    async def adding(self, find: Callable[[], Awaitable[DirectoryCap]]) -> AsyncIterator[DirectoryCap]:
        """The directory that `find` finds. It is not removed meanwhile."""
        while True:
            ended_count = self._ended_count
            found = await find()
            async with self._locks.shared(found.storage_index, refusable=False):
                if self._ended_count == ended_count or await find() == found:
                    yield found
                    return

    @asynccontextmanager
    async def removing(self, directory: DirectoryCap) -> AsyncIterator[None]:
        """Nothing is added to the directory meanwhile. Its link is to be removed, if it is empty, and then `put_back`."""
        async with self._locks.exclusive(directory.storage_index, refusable=False):
            try:
                yield
            finally:
                self._ended_count += 1


async def put_back(parent: OpenDirectory, name: str, removed: Child, inside: OpenDirectory) -> str | None:
    """Link a directory again if something was added to it before its link was removed; return its name, or None if it is empty.

    If it cannot be read, that is unknown, so it is linked again, and the error is raised. Also raises the errors of `edit`.
    """
    try:
        is_empty = not await inside.list()
    except GridError:
        await restore(parent, name, removed)
        raise
    return None if is_empty else await restore(parent, name, removed)


async def restore(parent: OpenDirectory, name: str, child: Child) -> str:
    """Link a child again under its name, or a similar one if that is taken by now; return the name. ExistingChildError."""
    for number in range(MOST_NAMES):
        free = name if not number else f"{name}~{number}"
        try:
            await parent.edit([SetChild(free, child.target, child.metadata, overwrite=False)])
            return free
        except ExistingChildError:
            continue
    raise ExistingChildError(f"{name!r} and all names like it are taken", name=name)
