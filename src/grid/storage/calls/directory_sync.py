"""Syncs of directories, shared by all callers that wait for one.

While a directory is being synced, all new callers wait for one further sync, which serves all of them. A hundred
shares that finish together cost a few syncs, not hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.ports import CpuPool
from grid.storage.calls.tasks import awaited, together
from grid.storage.files.disk import Disk
from grid.storage.files.paths import SHARES, prefix_directory, share_directory


class DirectorySync:
    """Syncs directories of a disk on the pool. Does nothing unless `durable`."""

    def __init__(self, disk: Disk, pool: CpuPool, *, durable: bool) -> None:
        self._disk = disk
        self._pool = pool
        self._durable = durable
        self._waiting: dict[str, list[Deferred[None]]] = {}
        """Directories with a running sync, and the callers that came after it began."""
        self._settled: set[str] = set()
        """Prefix directories (never removed) whose own names are durable."""

    async def sync(self, directories: Iterable[str]) -> None:
        """Return when every change made to the directories before this call is durable; OSError."""
        if not self._durable:
            return
        for error in await together(awaited(self._join(directory)) for directory in directories):
            if error is not None:
                raise error

    async def sync_shares(self, name: str) -> None:
        """Like sync, for the names of that storage index's finished shares, up to the storage directory."""
        prefix = prefix_directory(name)
        above = () if prefix in self._settled else (SHARES,)
        await self.sync((share_directory(name), prefix, *above))
        self._settled.add(prefix)

    def _join(self, directory: str) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        if directory in self._waiting:
            self._waiting[directory].append(done)
        else:
            self._begin(directory, [done])
        return done

    def _begin(self, directory: str, served: list[Deferred[None]]) -> None:
        self._waiting[directory] = []
        task = Deferred.fromCoroutine(self._run(directory))
        task.addBoth(self._ended, directory, served)

    async def _run(self, directory: str) -> None:
        # This must be a coroutine: an error of the pool itself must also end the wait of all callers.
        await self._pool.run(self._sync_one, directory)

    def _ended(self, outcome: Failure | None, directory: str, served: list[Deferred[None]]) -> None:
        waiting = self._waiting.pop(directory)
        if waiting:
            self._begin(directory, waiting)
        for done in served:
            done.callback(outcome)  # A Failure fails all of them.

    def _sync_one(self, directory: str) -> None:
        try:
            self._disk.sync_directory(directory)
        except FileNotFoundError:
            pass  # It was empty and has been removed. The call that removed it syncs the parent.
