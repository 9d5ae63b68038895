"""Keeps immutable files open between requests, so a second range of a file costs only its blocks.

Owns how many stay open, when what was learned of a file is forgotten, and how far a read runs ahead of its client. A
player that seeks in a film requests one range after another, and browsers request several at once.

Cost: memory: KEPT_FILES times what one read has learned of its file, which may include the blocks of two segments.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from grid.caps import ChkCap, ExtentCap, KnownCap, SequenceCap, SliceCap
from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.engine.grid import Grid
from grid.errors import GridError
from grid.extents.reader import PIECE_BYTES, ExtentReader
from grid.extents.table import Table
from grid.immutable.get import ImmutableFile
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer, Clock, Observer, ServerId, Sink
from grid.sinks import CountingSink
from grid.values import field, frozen

MOMENT_S = 0.25
"""Seconds in which the client should take a chunk."""

BOLD_SIZE = 16 * 2**20
"""Bytes of the first chunk, while few others read."""

LARGEST_SIZE = 64 * 2**20
"""The largest chunk in bytes: beyond it, the fixed cost of starting the next chunk is negligible."""

TOGETHER_SIZE = 64 * 2**20
"""Bytes that all running reads together may be ahead of their clients.

A socket's buffer makes a new client look fast, and two hundred such clients must not each get the largest chunk.
"""

SHARE = 4
"""The fraction of the remaining budget given to one chunk while others read too, so that later reads get some."""

FEW = 4
"""A new read starts with a large chunk while at most this number of others run."""


class ReadChunks:
    """Chooses the chunks of one read: as much as its client takes in a moment.

    A read has up to 32 MiB in flight, which is right for one fast client and far too much for two hundred slow ones. So
    a file is read in chunks, and each begins when the client has taken the one before it. Only the client's own
    slowness makes chunks small: a slow or distant grid gets long ones, because each begins with a round trip.
    segment_size: the smallest piece of the file that can be read.
    """

    def __init__(self, segment_size: int, others: int) -> None:
        """others: other reads in progress."""
        self._segment_size = segment_size
        self._size = float(BOLD_SIZE if others < FEW else segment_size)

    def next_stop(self, position: int, stop: int, room: int = TOGETHER_SIZE) -> int:
        """The end of the chunk that begins at `position`: the end of a segment, but at most `stop`.

        room: bytes that it may have beyond its first segment.
        """
        size = min(int(self._size), room)
        segments = max(1, size // self._segment_size)
        return min(stop, (position // self._segment_size + segments) * self._segment_size)

    def taken(self, size: int, waited_s: float) -> None:
        """Note that the client took a chunk of `size` bytes after making us wait for waited_s seconds."""
        self._size = min(float(LARGEST_SIZE), size / max(waited_s, 1e-6) * MOMENT_S)


KEPT_FILES = 16
"""Files kept open: more than people look at simultaneously."""

KEPT_SIZE = 2**20
"""The size in bytes from which files are kept open; smaller ones take few requests anyway."""

KEPT_S = 60.0
"""Seconds after which a file is reopened: absent servers may be back, and shares may have moved."""


@frozen
class _Open:
    file: ImmutableFile = field(repr=False)
    servers: frozenset[ServerId]
    opened_at: float


class OpenFiles:
    """The immutable files that were read last."""

    def __init__(self, grid: Grid, permit: Callable[[KnownCap], None] = lambda cap: None) -> None:
        """grid: its server list is consulted again for each read. permit: raises if a file must not be read."""
        self._grid = grid
        self._permit = permit
        self._extents = ExtentReader(self._read_chk)
        self._files: OrderedDict[ChkCap, _Open] = OrderedDict()
        self._reading = 0
        self.found_open = self.opened = 0
        self._ahead = 0

    @property
    def count(self) -> int:
        """The number of open files."""
        return len(self._files)

    async def read(self, cap: ChkCap | ExtentCap, sink: Sink, start: int, length: int, observer: Observer) -> int:
        """ImmutableFile.read in chunks, each of which waits until the client has taken the one before it.

        An empty write asks the sink whether it has room. If a file that was already open fails before its first byte,
        the read is tried once more.
        """
        if isinstance(cap, SliceCap | SequenceCap):
            return await self._extents.read(cap, _PatientSink(sink), start, length)
        return await self._read_by_chunks(cap, sink, start, length, observer)

    async def _read_by_chunks(
        self,
        cap: ChkCap,
        sink: Sink,
        start: int,
        length: int,
        observer: Observer,
        likely_size: int = DEFAULT_MAX_SEGMENT_SIZE,
    ) -> int:
        """likely_size: of the file's segments."""
        timed = TimedSink(sink, self._grid.runtime.clock)
        chunks = ReadChunks(Geometry.of_file(cap.size, cap.needed, cap.total).segment_size, self._reading)
        position, stop = start, min(cap.size, start + length)
        self._reading += 1
        try:
            while position < stop:
                end = chunks.next_stop(position, stop, self._room())
                self._ahead += end - position
                try:
                    await self._read_chunk(cap, timed, position, end - position, observer, likely_size)
                    if end < stop:
                        await timed.write(b"")
                        chunks.taken(end - position, timed.take_waited())
                finally:
                    self._ahead -= end - position
                position = end
        finally:
            self._reading -= 1
        return position - start

    async def table(self, cap: SequenceCap) -> Table:
        """The parts of a sequence; raises the errors of a read."""
        return await self._extents.table(cap)

    async def _read_chk(self, cap: ChkCap, sink: Sink, offset: int, length: int, segment_size: int) -> int:
        self._permit(cap)
        read = self._read_by_chunks if length > PIECE_BYTES else self._read_chunk
        return await read(cap, sink, offset, length, self._grid.observer, segment_size)

    def _room(self) -> int:
        """Bytes that the next chunk of one read may have."""
        left = max(0, TOGETHER_SIZE - self._ahead)
        return left if self._reading == 1 else left // SHARE

    async def _read_chunk(
        self,
        cap: ChkCap,
        sink: Sink,
        start: int,
        length: int,
        observer: Observer,
        segment_size: int = DEFAULT_MAX_SEGMENT_SIZE,
    ) -> int:
        kept, is_new = self._open(cap, segment_size)
        counting = CountingSink(sink)
        try:
            return (await kept.file.read(counting, start, length, observer)).size
        except GridError:
            self._forget(cap, kept)
            if is_new or counting.written:
                raise
        except BaseException:
            self._forget(cap, kept)
            raise
        kept, _ = self._open(cap, segment_size)
        return (await kept.file.read(sink, start, length, observer)).size

    def _open(self, cap: ChkCap, segment_size: int) -> tuple[_Open, bool]:
        """The open file, and whether it is newly opened."""
        ids = frozenset(server.identity.server_id for server in self._grid.servers)
        now = self._grid.runtime.clock.now()
        kept = self._files.get(cap)
        if kept is not None and kept.servers == ids and now - kept.opened_at < KEPT_S:
            self._files.move_to_end(cap)
            self.found_open += 1
            return kept, False
        self.opened += 1
        kept = _Open(ImmutableFile(cap, self._grid, segment_size), ids, now)
        if cap.size >= KEPT_SIZE:
            self._files[cap] = kept
            self._files.move_to_end(cap)
            if len(self._files) > KEPT_FILES:
                self._files.popitem(last=False)
        return kept, True

    def _forget(self, cap: ChkCap, kept: _Open) -> None:
        if self._files.get(cap) is kept:
            del self._files[cap]


class _PatientSink:
    """Passes bytes on, and waits until the client has taken them."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on."""
        await self._sink.write(data)
        await self._sink.write(b"")


class TimedSink:
    """Passes bytes on, and measures how long the receiver makes it wait."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self._waited_s = 0.0

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on."""
        began_at = self._clock.now()
        await self._sink.write(data)
        self._waited_s += self._clock.now() - began_at

    def take_waited(self) -> float:
        """Seconds waited since the last call."""
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s
