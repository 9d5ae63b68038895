"""Reads slices and sequences, through any reader of the CHK files that contain them. [spec extents 2, 3]

It owns the order of the requests. Short parts of a sequence are requested side by side and delivered in order. A long one is
a read of its own, which goes straight to the sink: cut in pieces that are read at the same time, its file would be searched
for each of them.

Memory: AHEAD_BYTES per sequence being read, what one read of a CHK file has in flight, and the cached packs of the reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from twisted.internet.defer import Deferred

from grid.caps import ChkCap, ExtentCap, LitCap, SequenceCap, SliceCap, require_usable
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.errors import FormatError, GridError, IntegrityError
from grid.extents.ciphers import decrypt_slice
from grid.extents.pack_reader import LONGEST_RUN, BoundedSink, PackReader, ReadChk
from grid.extents.table import Part, Table, parse_table
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer, Sink
from grid.runtime import Tasks
from grid.values import define, field

PIECE_BYTES = 8 * 2**20
"""Largest piece of a sequence that is requested before its turn: a whole part as clients of S3 usually send them."""

AHEAD_BYTES = 3 * PIECE_BYTES
"""Bytes of a sequence that are requested before their turn."""

PIECES_AT_ONCE = 6
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

    async def _read_pieces(self, pieces: Iterator[_Piece], sink: Sink) -> int:
        """Write the pieces in order, with several in flight."""
        tasks, line = Tasks(), deque[_Piece]()
        following = next(pieces, None)
        written = 0
        try:
            while True:
                while following is not None and _fits(line, following):
                    line.append(following)
                    if len(line) == 1 or not following.is_long:
                        self._begin(following, tasks)
                    following = next(pieces, None)
                if not line:
                    return written
                first = line[0]
                await first.arrived()
                if len(line) > 1 and line[1].is_long:
                    self._begin(line[1], tasks)  # Its first bytes come while those before it are delivered.
                await first.deliver(sink)
                written += first.part.length
                line.popleft()
        finally:
            tasks.cancel()

    def _begin(self, piece: _Piece, tasks: Tasks) -> None:
        tasks.start(self._read_part(piece.part, piece.sink), piece.done, piece.fail)

    async def _read_part(self, part: Part, sink: BoundedSink | _TurnSink) -> None:
        cap = part.cap
        stop = part.offset + part.length
        if isinstance(cap, LitCap):
            await sink.write(cap.data[part.offset : stop])
        elif isinstance(cap, SliceCap):
            await self._read_slice(cap, sink, part.offset, stop)
        else:
            await self._read_chk(cap, sink, part.offset, part.length, DEFAULT_MAX_SEGMENT_SIZE)
        if sink.size != part.length:
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


class _TurnSink:
    """Passes bytes on, up to a given size, once it is their turn."""

    def __init__(self, most: int) -> None:
        self.size = 0
        self._most = most
        self._sink: Sink | None = None
        self._turn: Deferred[None] = Deferred()

    def open(self, sink: Sink) -> None:
        """It is their turn."""
        self._sink = sink
        self._turn.callback(None)

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on; GridError if they are more than requested."""
        if self.size + len(data) > self._most:
            raise GridError("a read returned more bytes than requested")
        if self._sink is None:
            await self._turn
        assert self._sink is not None
        await self._sink.write(data)
        self.size += len(data)


@define(eq=False)
class _Piece:
    """A part of a sequence, or a piece of one. is_long: it is not kept, but delivered while it comes."""

    part: Part
    is_long: bool
    sink: BoundedSink | _TurnSink = field(init=False)
    outcome: BaseException | None = None
    is_done: bool = False
    waiter: Deferred[None] | None = field(default=None)

    def __attrs_post_init__(self) -> None:
        self.sink = _TurnSink(self.part.length) if self.is_long else BoundedSink(self.part.length)

    def done(self, _: object) -> None:
        self._settle(None)

    def fail(self, error: BaseException) -> None:
        self._settle(error)

    async def arrived(self) -> None:
        """Return when it can be delivered; raises the error of a piece that is kept."""
        if not self.is_long:
            await self._wait()

    async def deliver(self, sink: Sink) -> None:
        """Write it to the sink; raises the error of a long one."""
        if isinstance(self.sink, BoundedSink):
            await sink.write(self.sink.data)
        else:
            self.sink.open(sink)
            await self._wait()

    async def _wait(self) -> None:
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


def _fits(line: Sequence[_Piece], piece: _Piece) -> bool:
    """Whether the piece may stand in line: behind a long one that waits for its turn, none does."""
    if not line:
        return True
    if len(line) >= PIECES_AT_ONCE or any(before.is_long for before in islice(line, 1, None)):
        return False
    kept = sum(before.part.length for before in line if not before.is_long)
    return piece.is_long or kept + piece.part.length <= AHEAD_BYTES


def _cut(parts: Iterator[Part]) -> Iterator[_Piece]:
    """Short parts as they are; of long files, a piece to request before its turn, and the rest as a long piece.

    The first piece needs no request before its turn.
    """
    is_first = True
    for part in parts:
        if not isinstance(part.cap, ChkCap):
            for begun in range(0, part.length, PIECE_BYTES):
                yield _Piece(_within(part, begun, min(PIECE_BYTES, part.length - begun)), False)
        elif part.length <= PIECE_BYTES:
            yield _Piece(part, False)
        else:
            head = 0 if is_first else _head_length(part, part.cap)
            if head:
                yield _Piece(_within(part, 0, head), False)
            yield _Piece(_within(part, head, part.length - head), True)
        is_first = False


def _head_length(part: Part, cap: ChkCap) -> int:
    """About PIECE_BYTES from the start of a longer part, up to the end of a segment: a segment is fetched and decoded as a whole."""
    segment_size = Geometry.of_file(cap.size, cap.needed, cap.total).segment_size
    end = (part.offset + PIECE_BYTES) // segment_size * segment_size
    return end - part.offset if end > part.offset else PIECE_BYTES


def _within(part: Part, begun: int, length: int) -> Part:
    """Bytes of the part from `begun` on."""
    return Part(cap=part.cap, offset=part.offset + begun, length=length)
