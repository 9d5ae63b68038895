"""Files being written: buffered until they are closed, and then stored as a whole.

An immutable file is stored anew, including what remains of its old contents, and its link changes in one publish:
others see either the old file or the new one. In a mutable file, only the written parts are replaced. A draft that is
never closed leaves nothing behind.

All handles of one path in a session share its draft, so each reads what the others wrote. Requests are processed in the
order of their arrival, so a read sees all earlier writes, answered or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from twisted.internet.defer import Deferred

from grid.caps import KnownCap, MdmfWriteCap
from grid.directory.edits import NONCE
from grid.directory.metadata import Metadata
from grid.errors import DataTooLargeError
from grid.gateway.files.uploads import (
    UPDATE_SIZE,
    NewFile,
    arriving_key,
    require_sdmf_size,
    store_spooled,
)
from grid.gateway.shared.store_turns import Semaphore
from grid.ports import Buffer
from grid.sftp.attributes import Facts, Wire, changed_metadata, facts_of
from grid.sftp.door import Door
from grid.sftp.paths import Path
from grid.sftp.read_ahead import ReadAhead
from grid.sftp.scratch import OldContents, Scratch
from grid.sftp.tree import Tree
from grid.values import define, field

MAX_FILE = 2**40
"""Bytes of the largest file."""


@define(kw_only=True, eq=False)
class Draft:
    """The draft of one path. path: None once it was removed. target: what the path led to, or None.

    metadata: the link's, or of a new file with a NONCE if nobody else may create it.
    wire: attributes set by the client. closing: how many of its handles are being closed. is_changed: whether there are contents to store.
    """

    door: Door
    tree: Tree
    path: Path | None
    target: KnownCap | None = field(repr=False)
    metadata: Metadata = field(repr=False)
    old_size: int
    is_changed: bool
    wire: dict[str, int] = field(factory=dict)
    handles: int = 0
    closing: int = 0
    _is_described: bool = field(init=False, default=True)
    _shortest: int = field(init=False)
    _scratch: Scratch = field(init=False)
    _turn: Semaphore = field(init=False, factory=lambda: Semaphore(1))

    def __attrs_post_init__(self) -> None:
        services = self.door.services
        target, old, key = self.target, None, None
        if target is not None and self.old_size:
            known = target
            ahead = ReadAhead(
                lambda sink, start, length: self.door.read(known, sink, start, length), self.old_size, self.door.room
            )
            old = OldContents(self.old_size, ahead.read, ahead.close)
        if target is None or not target.is_mutable:
            key = arriving_key(services.store, None)
        self._shortest = self.old_size
        self._scratch = Scratch(services.settings.spools, services.store.runtime.cpu, self.door.pieces, old, key)

    @property
    def facts(self) -> Facts:
        """The attributes that the file would have if closed now."""
        metadata = changed_metadata(self.metadata, {"mtime": int(self.door.now()), **self.wire})
        return facts_of(self.target, metadata, self._scratch.size)

    async def write(self, offset: int | None, data: Buffer) -> None:
        """Write bytes; offset None: at the end. Raises the errors of `Scratch.write`."""
        async with self._turn.one():
            where = self._scratch.size if offset is None else offset
            if where + len(data) > MAX_FILE:
                raise DataTooLargeError(f"a file has at most {MAX_FILE} bytes here")
            self.is_changed = True
            await self._scratch.write(where, data)

    def write_now(self, offset: int | None, data: Buffer) -> bool:
        """The same if no request is being waited for and nothing is refused; return whether it was done."""
        where = self._scratch.size if offset is None else offset
        if not self._turn.is_free or where + len(data) > MAX_FILE or not self._scratch.write_now(where, data):
            return False
        self.is_changed = True
        return True

    async def read(self, offset: int, length: int) -> Buffer:
        """Read bytes as the earlier writes left them; fewer at the end."""
        async with self._turn.one():
            fitting = max(0, min(length, self._scratch.size - offset))
            # It determines at once where the bytes are, so later writes may continue while they are fetched.
            reading = Deferred.fromCoroutine(self._scratch.read_at(offset, fitting))
        return await reading

    async def settled_facts(self) -> Facts:
        """The attributes after all earlier writes."""
        async with self._turn.one():
            return self.facts

    async def set_attributes(self, wire: Wire) -> None:
        """Record attributes for when the file is stored; a size takes effect at once."""
        async with self._turn.one():
            size = wire.get("size")
            if size is not None:
                if size > MAX_FILE:
                    raise DataTooLargeError(f"a file has at most {MAX_FILE} bytes here")
                self._scratch.truncate(size)
                self._shortest = min(self._shortest, size)
                self.is_changed = True
            kept = {name: value for name, value in wire.items() if name in ("permissions", "mtime", "atime")}
            if kept:
                self.wire.update(kept)
                self._is_described = False

    async def store(self) -> None:
        """Store and link the file durably; does nothing if it is unchanged. Raises the engines' errors."""
        async with self._turn.one():
            await self._store()

    @asynccontextmanager
    async def held(self, *, is_stored: bool) -> AsyncIterator[None]:
        """Wait until earlier requests, such as a close, have ended, and keep later ones waiting meanwhile.

        is_stored: store the file first if necessary. Only then may its path change, because a store links to one path.
        """
        async with self._turn.one():
            if is_stored and self.handles:
                await self._store()
            yield

    async def remove(self, unlink: Callable[[Path], Awaitable[None]]) -> None:
        """Unlink the file if it was ever stored, and never store it again. On an error, nothing changes."""
        async with self._turn.one():
            if self.path is not None and self.target is not None:
                await unlink(self.path)
            self.path = None

    async def wait(self) -> None:
        """Wait until earlier requests, such as a close, have ended."""
        async with self._turn.one():
            pass

    async def _store(self) -> None:
        path = self.path
        if path is None:
            return
        if not self.is_changed:
            if not self._is_described:
                await self.tree.describe(path, lambda before: changed_metadata(before, self.wire))
                self._is_described = True
            return
        times = {"mtime": int(self.door.now()), **self.wire}
        if self.target is not None and self.target.is_mutable:
            await self._replace(self.target)
            parent, _ = await self.tree.look(path)
            if parent.authority == "write":
                await self.tree.describe(path, lambda before: changed_metadata(before, times))
        else:
            target = await self._store_new()
            await self.tree.link_file(path, target, lambda before: changed_metadata(before, times), self._nonce)
            self.target = target
        self.is_changed, self._is_described = False, True

    @property
    def _nonce(self) -> str | None:
        """What the link must have that this draft may change, until it has made that link itself."""
        nonce = self.metadata.get(NONCE)
        return nonce if self.target is None and isinstance(nonce, str) else None

    def discard(self) -> None:
        """Discard the draft."""
        self._scratch.close()

    async def _store_new(self) -> KnownCap:
        services = self.door.services
        await self._scratch.settle()
        with services.history.upload(size=self._scratch.size) as operation:
            key = await self._scratch.finish()
            cap = await store_spooled(services.store, services.stores, NewFile(), self._scratch, key)
            if cap.storage_index is not None:
                operation.name(cap.storage_index)
        return cap

    async def _replace(self, target: KnownCap) -> None:
        """Replace the written parts of a mutable file; all of it if it was truncated, has a hole, or is not MDMF."""
        services = self.door.services
        services.require_allowed(target)
        file = services.store.open_mutable(target)
        written, scratch = self._scratch.written, self._scratch
        end = self.old_size
        for start, stop in written:
            if start > end:
                end = -1
                break
            end = max(end, stop)
        in_place = isinstance(target, MdmfWriteCap) and self._shortest == self.old_size and end == scratch.size
        if not in_place:
            if not isinstance(target, MdmfWriteCap):
                require_sdmf_size(scratch.size)
            await scratch.settle()
        with services.history.publish(target.storage_index, size=scratch.size):
            async with services.stores.turn(scratch.size):
                if not in_place:
                    await file.overwrite(scratch)
                    return
                for start, stop in written:
                    for offset in range(start, stop, UPDATE_SIZE):
                        await file.update(offset, await scratch.read_at(offset, min(UPDATE_SIZE, stop - offset)))
