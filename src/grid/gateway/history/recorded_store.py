"""The gateway's store, which records its reads and writes of directories in the history of operations. [spec webapi
9.2]

It decorates another store and delegates everything else to it. Handlers record files, since they know how long the
client takes; directories are recorded here, because paths, listings, changes and walks all pass through this store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap
from grid.crypto.rsa import PrivateKey
from grid.directory.edits import Edit, Overwrite, previous_of
from grid.directory.file_store import FileHealth, FileRepair, FileStore
from grid.directory.moving import move, move_all, same_directory
from grid.directory.names import normalize_name
from grid.directory.node import Choose, Directory, DirectoryStore, Look
from grid.directory.pack import Child
from grid.directory.parsed import ParsedDirectories
from grid.directory.store import Trail
from grid.directory.unpacking import UnpackingBudget
from grid.engine.grid import Grid
from grid.errors import MayHoldError
from grid.gateway.history.history import History
from grid.gateway.history.undo_journal import UndoJournal
from grid.mutable.node import MutableFile
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.ports import Buffer, Runtime, Sink, Source


class RecordedStore:
    """A store that reports directory operations to the history, and its engines' events to its observer.

    journal: keeps what changes to directories replaced or removed. Each method raises the errors of `FileStore`.
    """

    def __init__(self, store: FileStore, history: History, journal: UndoJournal | None = None) -> None:
        self._store = store.observed_by(history.observe)
        self._history = history
        self.journal = journal or UndoJournal()

    @property
    def grid(self) -> Grid:
        """The grid behind this store."""
        return self._store.grid

    @property
    def runtime(self) -> Runtime:
        """The runtime of the grid."""
        return self._store.runtime

    @property
    def room(self) -> UnpackingBudget:
        """The budget of memory for unpacked directories."""
        return self._store.room

    @property
    def parsed(self) -> ParsedDirectories:
        """Parsed directories."""
        return self._store.parsed

    def directory(self, cap: DirectoryCap) -> Directory:
        """The directory of this capability."""
        self._store.require_directory(cap)
        return RecordedDirectory(self, cap, self._history, self.journal)

    async def create_directory(
        self,
        children: Mapping[str, Child] | None = None,
        *,
        format: FormatName | None = None,
        key: PrivateKey | None = None,
    ) -> DirectoryCap:
        """Store a new mutable directory."""
        new = await self._store.pack_directory(children or {}, format=format, key=key)
        with self._history.publish(size=len(new.data)) as operation:
            operation.subject.is_directory = True
            cap = await self._store.put_directory(new)
            operation.name(cap.storage_index)
        return DirectoryCap(cap)

    async def create_immutable_directory(self, children: Mapping[str, Child]) -> DirectoryCap:
        """Store an immutable directory."""
        with self._history.upload() as operation:
            operation.subject.is_directory = True
            cap = await self._store.create_immutable_directory(children)
            operation.size = await self.size(cap)
            if cap.storage_index is not None:
                operation.name(cap.storage_index)
        return cap

    async def move(
        self, source: Trail, name: str, target: Trail, new_name: str, *, overwrite: Overwrite = True
    ) -> Child | None:
        """Move or rename a link. Return the replaced child, if known."""
        replaced = await move(self, source, name, target, new_name, overwrite=overwrite)
        if not same_directory(source.end, target.end):
            self.journal.forget_moved(source.end, [normalize_name(name)])
        return replaced

    async def move_all(self, source: Trail, names: Sequence[str], target: Trail) -> None:
        """Move links to another directory under their own names. Errors: as in `grid.directory.moving.move_all`."""
        await move_all(self, source, names, target)
        self.journal.forget_moved(source.end, [normalize_name(name) for name in names])

    @property
    def convergence(self) -> bytes | None:
        """The convergence secret; None if equal files are to get different capabilities."""
        return self._store.convergence

    async def put_immutable(
        self, source: Source, *, key: bytes | None = None, segment_size: int | None = None
    ) -> ChkCap | LitCap:
        """Store an immutable file."""
        return await self._store.put_immutable(source, key=key, segment_size=segment_size)

    async def put_unique(self, source: Source, *, segment_size: int | None = None) -> ChkCap | LitCap:
        """Store an immutable file under a random key."""
        return await self._store.put_immutable(source, convergence=None, segment_size=segment_size)

    async def put_mutable(
        self, source: Source | Buffer, *, format: FormatName | None = None, key: PrivateKey | None = None
    ) -> WriteCap:
        """Store a new mutable file."""
        return await self._store.put_mutable(source, format=format, key=key)

    def open_mutable(self, cap: KnownCap) -> MutableFile:
        """The mutable file of this capability."""
        return self._store.open_mutable(cap)

    async def read(self, cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> int:
        """Write bytes of a file to the sink and return their count."""
        return await self._store.read(cap, sink, offset, length)

    async def read_bytes(self, cap: KnownCap, sink: Sink) -> int:
        """Read the file in which a directory is stored."""
        return await self._store.read_bytes(cap, sink)

    async def size(self, cap: KnownCap) -> int:
        """The size of a file in bytes."""
        return await self._store.size(cap)

    async def check(self, cap: KnownCap, *, verify: bool = False, add_lease: bool = False) -> FileHealth:
        """Check the health of a file or directory."""
        return await self._store.check(cap, verify=verify, add_lease=add_lease)

    async def repair(self, cap: KnownCap, *, force: bool = False) -> FileRepair:
        """Repair a file or directory."""
        return await self._store.repair(cap, force=force)


class RecordedDirectory(Directory):
    """A directory whose reads and changes are recorded as operations, and its changes so that they can be undone."""

    def __init__(self, store: DirectoryStore, cap: DirectoryCap, history: History, journal: UndoJournal) -> None:
        super().__init__(store, cap)
        self._history = history
        self._journal = journal

    async def edit_by(self, choose: Choose, count: int = 1) -> Mapping[str, Child]:
        """Apply the edits that `choose` returns, in one publish, or none of them."""
        edits: Sequence[Edit] = ()

        def noted(look: Look, retrying: bool) -> Sequence[Edit]:
            nonlocal edits
            edits = choose(look, retrying)
            return edits

        with self._history.publish(self.cap.storage_index) as operation:
            operation.subject.is_directory = True
            try:
                previous = await super().edit_by(noted, count)
            except MayHoldError as error:
                self._record(edits, previous_of(error))
                raise
            operation.size = self.published_size
        self._record(edits, previous)
        return previous

    def _record(self, edits: Sequence[Edit], previous: Mapping[str, Child]) -> None:
        self._journal.record(self.cap, edits, previous, self._store.runtime.clock.unix_time())

    async def _read(self) -> bytes:
        index = self.cap.storage_index
        if index is None:
            return await super()._read()  # A literal directory: its capability holds everything.
        record = self._history.retrieve if self.is_mutable else self._history.download
        with record(index) as operation:
            operation.subject.is_directory = True
            data = await super()._read()
            operation.size = len(data)
        return data
