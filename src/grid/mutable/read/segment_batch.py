"""Batches of consecutive segments on their way to the consumer, and how a read is cut into them.

Pure; part of the read plan. One message per server fetches a batch, and one pool call opens it.
"""

from __future__ import annotations

from grid.engine.batches import full_read_bytes
from grid.mutable.read.held_share import ChunkBatch, HeldShare
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.hash_rows import chunk_leaves, hash_ranges
from grid.mutable.share.offset_table import ShareTable
from grid.ports import Buffer, Range, ShareNumber
from grid.values import define, field

FIRST_BYTES = 512 * 2**10
"""Bytes of text in the first batch, so that the first bytes come soon. Each further batch has twice as many."""


@define(kw_only=True, eq=False)
class Fetch:
    """A share's run on its way, or a part of it. hashes: the chunk whose hashes come with it.

    replaceable: it is late enough that the batch takes another share instead, if there is one. parts: those that have come,
    by offset, of all fetches of the run.
    """

    share: HeldShare
    hashes: int | None
    parts: dict[int, Buffer]
    part_count: int = 1
    replaceable: bool = False

    def take(self, offset: int, data: Buffer) -> Buffer | None:
        """Add a part. Returns the whole run once its last part has come."""
        self.parts[offset] = data
        if len(self.parts) < self.part_count:
            return None
        return data if self.part_count == 1 else b"".join(self.parts[start] for start in sorted(self.parts))


@define(kw_only=True, eq=False)
class Batch(ChunkBatch):
    """A batch of a read. runs: share number to (its source, its bytes)."""

    runs: dict[ShareNumber, tuple[HeldShare, Buffer]] = field(factory=dict, repr=False)
    fetches: list[Fetch] = field(factory=list, repr=False)


class BatchCutter:
    """Cuts the segments that hold a range of the file into batches."""

    def __init__(self, geometry: Geometry, offset: int, length: int) -> None:
        self._geometry = geometry
        self._next, self._stop = geometry.segment_range(offset, length)
        self._chunk = chunk_leaves(self._stop - self._next)
        self._bytes = FIRST_BYTES
        self._full_bytes = full_read_bytes(geometry.k)

    @property
    def block_bytes(self) -> int:
        """Bytes of the blocks that are still to be cut, from all shares that the read needs together."""
        share_bytes, _ = self._geometry.run_sizes(self._next, self._stop - self._next)
        return self._geometry.k * share_bytes

    @property
    def at_end(self) -> bool:
        """Whether all segments are cut."""
        return self._next >= self._stop

    def cut(self) -> Batch:
        """The next batch."""
        first = self._next
        chunk_first = first // self._chunk * self._chunk
        full = max(1, self._bytes // self._geometry.segment_size)
        self._bytes = min(self._full_bytes, 2 * self._bytes)
        self._next = min(first + full, self._stop, chunk_first + self._chunk)
        count = self._next - first
        share_bytes, text_bytes = self._geometry.run_sizes(first, count)
        return Batch(
            first=first,
            count=count,
            share_bytes=share_bytes,
            text_bytes=text_bytes,
            chunk_first=chunk_first,
            chunk_leaves=self._chunk,
        )


def ranges_of_read(geometry: Geometry, table: ShareTable, offset: int, length: int) -> list[Range]:
    """The ranges that a read of those bytes needs from each share it chooses, besides its chain."""
    cutter = BatchCutter(geometry, offset, length)
    ranges: list[Range] = []
    while not cutter.at_end:
        batch = cutter.cut()
        ranges.append((table.data[0] + geometry.run_offset(batch.first), batch.share_bytes))
        ranges += hash_ranges(geometry, table, batch.chunk_first, batch.chunk_leaves)
    return ranges
