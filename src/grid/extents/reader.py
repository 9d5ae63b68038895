"""Reads slices and sequences, through any reader of the CHK files that contain them. [spec extents 2, 3]

It owns the order of the requests. Parts of a sequence are requested side by side and delivered in order.

Memory: PARTS_AT_ONCE pieces of PIECE_BYTES per sequence being read, and the cached packs of the reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.caps import ChkCap, ExtentCap, LitCap, SequenceCap, SliceCap, require_usable
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.errors import FormatError, GridError, IntegrityError
from grid.extents.ciphers import decrypt_slice
from grid.extents.pack_reader import LONGEST_RUN, BoundedSink, PackReader, ReadChk
from grid.extents.table import Part, Table, parse_table
from grid.ports import Sink
from grid.runtime import Tasks

PIECE_BYTES = 4 * 2**20
"""Largest piece of a sequence requested at once."""

PARTS_AT_ONCE = 6
"""Pieces of a sequence requested at the same time."""

KEPT_TABLES = 4
"""Tables of sequences that are cached: further ranges of a file need not fetch them again."""

Permit = Callable[[ChkCap], None]
"""Raises if the CHK file may not be read."""


class ExtentReader:
    """Reads slices and sequences. Any number of reads may run at once, and share what they fetch from packs."""

    def __init__(self, read_chk: ReadChk) -> None:
        self._read_chk = read_chk
        self.packs = PackReader(read_chk)
        self._tables: dict[SequenceCap, Table] = {}

    async def read(self, cap: ExtentCap, sink: Sink, offset: int = 0, length: int | None = None) -> int:
        """Write bytes offset .. offset + length of a file to the sink, and return the byte count. length None: to the end.

        CapError if no file can have the capability's numbers; IntegrityError if the table of a sequence is
        invalid; also raises the errors of reading the CHK files.
        """
        require_usable(cap)
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("the offset and the length of a range must not be negative")
        stop = cap.size if length is None else min(cap.size, offset + length)
        if offset >= stop:
            return 0
        if isinstance(cap, SliceCap):
            return await self._read_slice(cap, sink, offset, stop)
        table = await self.table(cap)
        return await self._read_pieces(_cut(table.between(offset, stop)), sink)

    async def read_around(self, cap: SliceCap) -> tuple[int, bytes | memoryview]:
        """The ciphertext of a slice of at most LONGEST_RUN bytes and of its neighbors, as far as it was fetched with it.

        Returns the offset in the pack at which it starts, and the bytes, which nobody changes. Raises the errors of `read`.
        """
        require_usable(cap)
        return await self.packs.read_around(cap.pack, cap.offset, cap.length)

    async def table(self, cap: SequenceCap) -> Table:
        """The parts of a sequence; raises the errors of `read`."""
        table = self._tables.pop(cap, None)
        if table is None:
            table = await read_table(cap, self._read_chk)
        self._tables[cap] = table
        if len(self._tables) > KEPT_TABLES:
            del self._tables[next(iter(self._tables))]
        return table

    async def _read_slice(self, cap: SliceCap, sink: Sink, start: int, stop: int) -> int:
        position = start
        while position < stop:
            size = min(LONGEST_RUN, stop - position)
            ciphertext = await self.packs.read(cap.pack, cap.offset + position, size)
            await sink.write(decrypt_slice(cap.key, ciphertext, position))
            position += size
        return stop - start

    async def _read_pieces(self, pieces: Iterator[Part], sink: Sink) -> int:
        """Write the pieces in order, with several in flight."""
        tasks, ahead = Tasks(), deque[_Piece]()
        written = 0
        try:
            while True:
                while len(ahead) < PARTS_AT_ONCE and (part := next(pieces, None)) is not None:
                    piece = _Piece(BoundedSink(part.length))
                    ahead.append(piece)
                    tasks.start(self._read_part(part, piece.sink), piece.done, piece.fail)
                if not ahead:
                    return written
                first = ahead.popleft()
                await first.wait()
                await sink.write(first.sink.data)
                written += len(first.sink.data)
        finally:
            tasks.cancel()

    async def _read_part(self, part: Part, sink: BoundedSink) -> None:
        cap = part.cap
        stop = part.offset + part.length
        if isinstance(cap, LitCap):
            await sink.write(cap.data[part.offset : stop])
        elif isinstance(cap, SliceCap):
            await self._read_slice(cap, sink, part.offset, stop)
        else:
            await self._read_chk(cap, sink, part.offset, part.length, DEFAULT_MAX_SEGMENT_SIZE)
        if len(sink.data) != part.length:
            raise GridError("a part of a sequence is shorter than its table says")


async def read_table(cap: SequenceCap, read_chk: ReadChk) -> Table:
    """The parts of a sequence; raises the errors of `ExtentReader.read`."""
    require_usable(cap)
    data = cap.table.data if isinstance(cap.table, LitCap) else b""
    if isinstance(cap.table, ChkCap):
        sink = BoundedSink(cap.table.size)
        await read_chk(cap.table, sink, 0, cap.table.size, DEFAULT_MAX_SEGMENT_SIZE)
        data = bytes(sink.data)
    try:
        return parse_table(data, cap.size)
    except FormatError as error:
        raise IntegrityError(f"this sequence cannot be read: {error}") from None


@define(eq=False)
class _Piece:
    """A part in flight."""

    sink: BoundedSink
    outcome: BaseException | None = None
    is_done: bool = False
    waiter: Deferred[None] | None = field(default=None)

    def done(self, _: object) -> None:
        self._settle(None)

    def fail(self, error: BaseException) -> None:
        self._settle(error)

    async def wait(self) -> None:
        """Return when it has come; raises its error."""
        if not self.is_done:
            self.waiter = Deferred()
            await self.waiter
        if self.outcome is not None:
            raise self.outcome

    def _settle(self, error: BaseException | None) -> None:
        self.outcome, self.is_done = error, True
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.callback(None)


def _cut(parts: Iterator[Part]) -> Iterator[Part]:
    """Cut parts into parts of at most PIECE_BYTES."""
    for part in parts:
        for begun in range(0, part.length, PIECE_BYTES):
            yield Part(cap=part.cap, offset=part.offset + begun, length=min(PIECE_BYTES, part.length - begun))
