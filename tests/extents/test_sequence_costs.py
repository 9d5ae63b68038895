"""What a sequence asks of the files of its parts: how often, for which bytes, and how far ahead of its reader."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random

import pytest
from twisted.internet.defer import Deferred

from grid.caps import ChkCap, SequenceCap
from grid.errors import GridError
from grid.extents.reader import AHEAD_BYTES, PIECE_BYTES, ExtentReader
from grid.extents.table import Part, pack_table
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer, Sink

MIB = 2**20
STEP = MIB // 2
BLOCK = 65_521


class Files:
    """CHK files of known contents, and what was asked of them: (which, first byte, byte count)."""

    def __init__(self, *sizes: int) -> None:
        self.caps = [_chk(index, size) for index, size in enumerate(sizes)]
        self.asked: list[tuple[int, int, int]] = []
        self.missing = 0
        table = pack_table([Part.whole(cap) for cap in self.caps])
        self.table = _chk(255, len(table))
        self._tables = {self.table: table}
        self.sequence = SequenceCap(size=sum(sizes), table=self.table)
        self.reader = ExtentReader(self.read)

    async def read(self, cap: ChkCap, sink: Sink, offset: int, length: int, _: int) -> None:
        """Write the bytes; `missing` of them are left out."""
        if cap in self._tables:
            await sink.write(self._tables[cap][offset : offset + length])
            return
        self.asked.append((self.caps.index(cap), offset, length))
        for begun in range(offset, offset + length - self.missing, STEP):
            await sink.write(contents(cap, begun, min(STEP, offset + length - self.missing - begun)))

    def left(self, taken: int) -> list[int]:
        """The lengths of what was asked for, except what is among the first `taken` bytes of the sequence."""
        starts = [0, *accumulate(cap.size for cap in self.caps)]
        return [length for index, offset, length in self.asked if starts[index] + offset + length > taken]

    def whole(self) -> bytes:
        """The contents of the sequence."""
        return b"".join(contents(cap, 0, cap.size) for cap in self.caps)


def _chk(index: int, size: int) -> ChkCap:
    return ChkCap(key=bytes([index] * 16), ueb_hash=bytes(32), needed=3, total=10, size=size)


def contents(cap: ChkCap, offset: int, length: int) -> bytes:
    """Bytes of a file: a block of its own, again and again."""
    block = Random(cap.key[0]).randbytes(BLOCK)
    return (block * (length // BLOCK + 2))[offset % BLOCK :][:length]


class Reader:
    """A sink that takes a write only after `go`, if it is slow."""

    def __init__(self, *, slow: bool = False) -> None:
        self.data = bytearray()
        self._slow = slow
        self._waiting: list[Deferred[None]] = []

    async def write(self, data: Buffer) -> None:
        """Take the bytes."""
        if self._slow:
            waiter: Deferred[None] = Deferred()
            self._waiting.append(waiter)
            await waiter
        self.data += data

    def go(self) -> bool:
        """Take what waits. Returns whether there was something."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(None)
        return bool(waiting)


async def test_a_sequence_when_its_parts_are_short_asks_for_each_of_them_once() -> None:
    files = Files(*[5 * MIB] * 9, MIB)
    reader = Reader()
    assert await files.reader.read(files.sequence, reader) == 46 * MIB
    assert files.asked == [(index, 0, cap.size) for index, cap in enumerate(files.caps)]
    assert reader.data == files.whole()


async def test_a_sequence_when_a_long_part_is_read_asks_for_it_once() -> None:
    files = Files(20 * MIB, 20 * MIB, 20 * MIB)
    reader = Reader()
    assert await files.reader.read(files.sequence, reader, 20 * MIB, 20 * MIB) == 20 * MIB
    assert files.asked == [(1, 0, 20 * MIB)]
    assert reader.data == contents(files.caps[1], 0, 20 * MIB)


async def test_a_sequence_when_its_parts_are_long_asks_for_no_segment_twice() -> None:
    files = Files(20 * MIB, 20 * MIB, 3 * MIB)
    reader = Reader()
    assert await files.reader.read(files.sequence, reader, 1000) == 43 * MIB - 1000
    geometry = Geometry.of_file(20 * MIB, 3, 10)
    head = PIECE_BYTES // geometry.segment_size * geometry.segment_size
    asked = [(0, 1000, 20 * MIB - 1000), (1, 0, head), (1, head, 20 * MIB - head), (2, 0, 3 * MIB)]
    assert sorted(files.asked) == asked
    assert reader.data == files.whole()[1000:]


@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ([5 * MIB] * 20, AHEAD_BYTES),
        ([2 * MIB] * 20, 12 * MIB),
        ([40 * MIB] * 4, PIECE_BYTES),
        ([MIB, 40 * MIB], MIB + PIECE_BYTES),
    ],
)
async def test_a_sequence_when_its_reader_is_slow_runs_ahead_of_it_no_further_than_it_may(
    sizes: Sequence[int], most: int
) -> None:
    files = Files(*sizes)
    reader = Reader(slow=True)
    reading = Deferred.fromCoroutine(files.reader.read(files.sequence, reader))
    while not reading.called:
        left = files.left(len(reader.data))
        assert sum(length for length in left if length <= PIECE_BYTES) <= most
        assert sum(length > PIECE_BYTES for length in left) <= 2
        assert reader.go()
    assert await reading == sum(sizes)
    assert reader.data == files.whole()


@pytest.mark.parametrize("sizes", [(MIB, MIB), (20 * MIB, MIB), (MIB, 20 * MIB)])
async def test_a_sequence_when_a_part_is_shorter_than_it_says_is_not_read_to_its_end(sizes: tuple[int, ...]) -> None:
    files = Files(*sizes)
    files.missing = 1
    with pytest.raises(GridError, match="shorter than its table says"):
        await files.reader.read(files.sequence, Reader())


async def test_a_sequence_when_its_reader_leaves_asks_for_nothing_more() -> None:
    files = Files(20 * MIB, 20 * MIB)
    reader = Reader(slow=True)
    reading = Deferred.fromCoroutine(files.reader.read(files.sequence, reader))
    reading.addErrback(lambda failure: None)
    reader.go()
    reading.cancel()
    asked = len(files.asked)
    while reader.go():
        pass
    assert len(files.asked) == asked
