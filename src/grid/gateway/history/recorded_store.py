"""The gateway's store, whose reads and writes of directories are in the history of operations. [spec webapi 9.2]

Files are recorded by the handlers, which know how long a client takes for them; directories here, for paths, listings, changes and walks
all come by this way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, fields, frozen

from grid.caps import DirectoryCap
from grid.crypto.rsa import PrivateKey
from grid.directory.edits import Edit
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.gateway.history.history import History
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap


@frozen(kw_only=True, eq=False)
class RecordedStore(FileStore):
    """A FileStore that tells the history of what it does with directories, and what its engines do to its observer."""

    history: History = field(repr=False)

    @classmethod
    def over(cls, store: FileStore, history: History) -> RecordedStore:
        """The same grid, recorded there."""
        given = {each.name: getattr(store, each.name) for each in fields(type(store)) if each.init}
        return cls(**{**given, "grid": store.grid.observed_by(history.observe), "history": history})

    def directory(self, cap: DirectoryCap) -> Directory:
        """The directory of this cap; CapError if its numbers cannot be those of a file."""
        super().directory(cap)
        return RecordedDirectory(self, cap, self.history)

    async def put_directory(self, packed: bytes, format: FormatName, key: PrivateKey) -> WriteCap:
        """Store the bytes of a new mutable directory."""
        with self.history.publish(size=len(packed)) as operation:
            cap = await super().put_directory(packed, format, key)
            operation.name(cap.storage_index)
        return cap

    async def create_immutable_directory(self, children: Mapping[str, Child]) -> DirectoryCap:
        """Store a directory that never changes."""
        with self.history.upload() as operation:
            cap = await super().create_immutable_directory(children)
            operation.size = await self.size(cap)
            if cap.storage_index is not None:
                operation.name(cap.storage_index)
        return cap


class RecordedDirectory(Directory):
    """A directory whose reads and changes are operations."""

    def __init__(self, store: FileStore, cap: DirectoryCap, history: History) -> None:
        super().__init__(store, cap)
        self._history = history

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child]:
        """Make all of the edits in one publish, or none of them."""
        with self._history.publish(self.cap.storage_index) as operation:
            previous = await super().edit(edits)
            operation.size = self.published_size
        return previous

    async def _read(self) -> bytes:
        index = self.cap.storage_index
        if index is None:
            return await super()._read()  # It is all in its capability.
        record = self._history.retrieve if self.is_mutable else self._history.download
        with record(index) as operation:
            data = await super()._read()
            operation.size = len(data)
        return data
