"""Files that a client has open: one that is only read, and one that is being written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import define, field

from grid.caps import KnownCap
from grid.directory.pack import Child
from grid.ports import Buffer
from grid.sftp.attributes import Facts, Wire, facts_of
from grid.sftp.door import Door
from grid.sftp.drafts import Draft
from grid.sftp.faults import PERMISSION_DENIED, SftpFault
from grid.sftp.read_ahead import ReadAhead

READ, WRITE, APPEND, CREATE, TRUNCATE, EXCLUSIVE = 1, 2, 4, 8, 16, 32
"""How a file is opened."""


class OpenFile(Protocol):
    """A file that a client has open."""

    async def read(self, offset: int, length: int) -> Buffer:
        """Bytes of it; none behind its end."""

    async def write(self, offset: int, data: bytes) -> None:
        """Put bytes there."""

    async def facts(self) -> Facts:
        """Its attributes."""

    async def set_attributes(self, wire: Wire) -> None:
        """Change that."""

    async def sync(self) -> None:
        """Have what was written stored."""

    async def close(self) -> None:
        """Have what was written stored, and forget the file."""

    def abandon(self) -> None:
        """Forget the file, and what was written if nobody else has it open."""


@define(eq=False, kw_only=True)
class ReadHandle:
    """A file that is only read. closed: called once when it is closed."""

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
        """Bytes of it."""
        return await self._ahead.read(offset, length)

    async def write(self, offset: int, data: bytes) -> None:
        """Refused."""
        raise SftpFault(PERMISSION_DENIED, "the file was opened to be read")

    async def facts(self) -> Facts:
        """As it was opened."""
        return facts_of(self.target, self.child.metadata, self.size)

    async def set_attributes(self, wire: Wire) -> None:
        """Refused."""
        raise SftpFault(PERMISSION_DENIED, "the file was opened to be read")

    async def sync(self) -> None:
        """Nothing was written."""

    async def close(self) -> None:
        """Forget it."""
        self.abandon()

    def abandon(self) -> None:
        """The same."""
        if not self._is_closed:
            self._is_closed = True
            self.closed()
            self._ahead.close()


@define(eq=False, kw_only=True)
class DraftHandle:
    """A file that is being written. closed: called once when it is closed, if it counted as open. drop: called in any case."""

    draft: Draft
    flags: int
    closed: Callable[[], None]
    drop: Callable[[Draft], None]
    _is_closed: bool = field(init=False, default=False)

    async def read(self, offset: int, length: int) -> Buffer:
        """Bytes as they were written."""
        if not self.flags & READ:
            raise SftpFault(PERMISSION_DENIED, "the file was opened to be written")
        return await self.draft.read(offset, length)

    async def write(self, offset: int, data: bytes) -> None:
        """Put bytes there, or at the end of a file opened to append."""
        if not self.flags & (WRITE | APPEND):
            raise SftpFault(PERMISSION_DENIED, "the file was opened to be read")
        await self.draft.write(None if self.flags & APPEND else offset, data)

    async def facts(self) -> Facts:
        """As they would be if it were closed now."""
        return await self.draft.settled_facts()

    async def set_attributes(self, wire: Wire) -> None:
        """Note them."""
        await self.draft.set_attributes(wire)

    async def sync(self) -> None:
        """Have it stored."""
        await self.draft.store()

    async def close(self) -> None:
        """Have it stored, and forget it; also if that fails."""
        try:
            if self.flags & (WRITE | APPEND):
                await self.draft.store()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Forget it."""
        if not self._is_closed:
            self.closed()
            self.forget()

    def forget(self) -> None:
        """The same, of one that does not count as open."""
        self._is_closed = True
        self.drop(self.draft)
