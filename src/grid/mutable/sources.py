"""Sources of a publish: bytes in memory, a version on the grid, or a version on the grid with part of it changed.

Every byte from the grid is proven. No source holds more than one piece of a file in memory.
"""

from __future__ import annotations

from grid.mutable.session import Session
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap
from grid.ports import Buffer, Source
from grid.values import field, frozen


@frozen
class MemorySource:
    """Bytes in memory."""

    data: Buffer = field(repr=False)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.data)

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes."""
        return memoryview(self.data)[offset : offset + length]


@frozen(kw_only=True)
class OverlaySource:
    """A version with `data` in place of its bytes from `offset` on, or appended to it; there are no holes."""

    session: Session
    found: VersionMap
    prefix: Prefix
    offset: int
    data: Buffer = field(repr=False)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return max(self.prefix.size, self.offset + len(self.data))

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes; raises the errors of a read."""
        stop = offset + length
        first, last = self.offset, self.offset + len(self.data)
        before = await self._old(offset, min(stop, first))
        inside = memoryview(self.data)[max(0, offset - first) : max(0, stop - first)]
        after = await self._old(max(offset, last), stop)
        return inside if not (before or after) else b"".join((before, inside, after))

    async def _old(self, start: int, stop: int) -> Buffer:
        if start >= stop:
            return b""
        return await self.session.gather(self.found, self.prefix, start, stop - start)


@frozen(kw_only=True)
class SealedSource:
    """The encrypted segments of a version, each after its salt (SDMF: without it)."""

    session: Session
    found: VersionMap
    prefix: Prefix

    @property
    def size(self) -> int:
        """Size in bytes."""
        geometry = self.prefix.geometry
        return geometry.size + geometry.salt_size * geometry.segment_count

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes, which must be whole segments with their salts; raises the errors of a read."""
        geometry = self.prefix.geometry
        first = offset // (geometry.segment_size + geometry.salt_size)
        start = first * geometry.segment_size
        count = -(-length // (geometry.segment_size + geometry.salt_size))
        _, text_bytes = geometry.run_sizes(first, count)
        return await self.session.gather(self.found, self.prefix, start, text_bytes, raw=True)


def as_source(contents: Buffer | Source) -> Source:
    """Wrap bytes as a source; return a source unchanged."""
    if isinstance(contents, bytes | bytearray | memoryview):
        return MemorySource(contents)
    return contents
