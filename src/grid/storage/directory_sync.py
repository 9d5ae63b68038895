"""Syncs of directories, shared by all that wait for them.

While one sync of a directory runs, all that come meanwhile wait for one more, which serves them all: a hundred
shares finished at once cost a few syncs, not hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.ports import CpuPool
from grid.storage.disk import Disk
from grid.storage.tasks import awaited, together


@define(eq=False)
class _Round:
    """Those who wait for a sync that has not begun."""

    waiting: list[Deferred[None]] = field(factory=list)


class DirectorySync:
    """Syncs directories of a disk on the pool; does nothing at all unless `durable`."""

    def __init__(self, disk: Disk, pool: CpuPool, *, durable: bool) -> None:
        self._disk = disk
        self._pool = pool
        self._durable = durable
        self._rounds: dict[str, _Round] = {}
        """Directories of which a sync is running, with those who came since."""

    async def sync(self, directories: Iterable[str]) -> None:
        """Return when every change made to the directories before this call is on the medium; OSError."""
        if not self._durable:
            return
        for error in await together(awaited(self._join(directory)) for directory in directories):
            if error is not None:
                raise error

    def _join(self, directory: str) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        running = self._rounds.get(directory)
        if running is not None:
            running.waiting.append(done)
        else:
            self._rounds[directory] = _Round([done])
            Deferred.fromCoroutine(self._run(directory))
        return done

    async def _run(self, directory: str) -> None:
        while waiting := self._rounds[directory].waiting:
            self._rounds[directory] = _Round()
            error: OSError | None = None
            try:
                await self._pool.run(self._sync_one, directory)
            except OSError as caught:
                error = caught
            for done in waiting:
                if error is None:
                    done.callback(None)
                else:
                    done.errback(error)
        del self._rounds[directory]

    def _sync_one(self, directory: str) -> None:
        try:
            self._disk.sync_directory(directory)
        except FileNotFoundError:
            pass  # It was empty, and is gone; whoever removed it syncs its parent.
