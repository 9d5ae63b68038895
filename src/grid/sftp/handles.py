"""Files that a client has open: for reading only, or being written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from grid.caps import KnownCap
from grid.directory.pack import Child
from grid.ports import Buffer
from grid.sftp.attributes import Facts, Wire, facts_of
from grid.sftp.door import Door
from grid.sftp.drafts import Draft
from grid.sftp.faults import PERMISSION_DENIED, SftpFault
from grid.sftp.read_ahead import ReadAhead
from grid.values import define, field

READ, WRITE, APPEND, CREATE, TRUNCATE, EXCLUSIVE = 1, 2, 4, 8, 16, 32
"""Flags for opening a file."""


class OpenFile(Protocol):
    """An open file."""

    async def read(self, offset: int, length: int) -> Buffer:
        """Read bytes; none beyond the end."""

    def read_now(self, offset: int, length: int) -> Buffer | None:
        """Read bytes if that requires no waiting; None if it does."""

    async def write(self, offset: int, data: Buffer) -> None:
        """Write bytes."""

    def write_now(self, offset: int, data: Buffer) -> bool:
        """Write bytes if that requires no waiting and is not refused; return whether it did."""

    async def facts(self) -> Facts:
        """Its attributes."""

    async def set_attributes(self, wire: Wire) -> None:
        """Set its attributes."""

    async def sync(self) -> None:
        """Store what was written."""

    async def close(self) -> None:
        """Store what was written, and close the file."""

    def abandon(self) -> None:
        """Close the file without storing; discard what was written unless another handle has it open."""


@define(eq=False, kw_only=True)
class ReadHandle:
    """A file open for reading only. closed: called once, when it is closed."""

    door: Door
    child: Child
    target: KnownCap = field(repr=False)
    size: int
    closed: Callable[[], None]
    _ahead: ReadAhead = field(init=False)
    _is_closed: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        door, target = self.door, self.target
        self._ahead = ReadAhead(
            lambda sink, start, length: door.read(target, sink, start, length), self.size, door.room
        )

    async def read(self, offset: int, length: int) -> Buffer:
        """Read bytes."""
        return await self._ahead.read(offset, length)

    def read_now(self, offset: int, length: int) -> Buffer | None:
        """Read bytes that were fetched ahead."""
        return self._ahead.read_now(offset, length)

    async def write(self, offset: int, data: Buffer) -> None:
        """Refuse: the file is open for reading only."""
        raise SftpFault(PERMISSION_DENIED, "the file is open for reading only")

    def write_now(self, offset: int, data: Buffer) -> bool:
        """Do nothing: `write` refuses."""
        return False

    async def facts(self) -> Facts:
        """The attributes when it was opened."""
        return facts_of(self.target, self.child.metadata, self.size)

    async def set_attributes(self, wire: Wire) -> None:
        """Refuse: the file is open for reading only."""
        raise SftpFault(PERMISSION_DENIED, "the file is open for reading only")

    async def sync(self) -> None:
        """Do nothing: nothing was written."""

    async def close(self) -> None:
        """Close the file."""
        self.abandon()

    def abandon(self) -> None:
        """Close the file."""
        if not self._is_closed:
            self._is_closed = True
            self.closed()
            self._ahead.close()


@define(eq=False, kw_only=True)
class DraftHandle:
    """A file being written. closed: called once when it is closed, if it counted as open. drop: called in any case.

    flags: with CREATE if this handle created the file, which is then stored at its close even if nothing was written.
    """

    draft: Draft
    flags: int
    closed: Callable[[], None]
    drop: Callable[[Draft], None]
    _is_closed: bool = field(init=False, default=False)

    async def read(self, offset: int, length: int) -> Buffer:
        """Read bytes as written so far."""
        if not self.flags & READ:
            raise SftpFault(PERMISSION_DENIED, "the file is open for writing only")
        return await self.draft.read(offset, length)

    def read_now(self, offset: int, length: int) -> Buffer | None:
        """None: a read waits for earlier writes."""
        return None

    async def write(self, offset: int, data: Buffer) -> None:
        """Write bytes, at the end if the file was opened for appending."""
        if not self.flags & (WRITE | APPEND):
            raise SftpFault(PERMISSION_DENIED, "the file is open for reading only")
        await self.draft.write(None if self.flags & APPEND else offset, data)

    def write_now(self, offset: int, data: Buffer) -> bool:
        """The same unless it must wait or is refused."""
        if not self.flags & (WRITE | APPEND):
            return False
        return self.draft.write_now(None if self.flags & APPEND else offset, data)

    async def facts(self) -> Facts:
        """The attributes that the file would have if closed now."""
        return await self.draft.settled_facts()

    async def set_attributes(self, wire: Wire) -> None:
        """Record attributes for when the file is stored."""
        await self.draft.set_attributes(wire)

    async def sync(self) -> None:
        """Store what was written."""
        await self.draft.store()

    async def close(self) -> None:
        """Store what was written, and close the file even if that fails."""
        self.draft.closing += 1
        try:
            if self.flags & (WRITE | APPEND | CREATE):
                await self.draft.store()
        finally:
            self.draft.closing -= 1
            self.abandon()

    def abandon(self) -> None:
        """Close the file without storing."""
        if not self._is_closed:
            self.closed()
            self.forget()

    def forget(self) -> None:
        """Close a handle that does not count as open."""
        self._is_closed = True
        self.drop(self.draft)
