"""Immutable files that stay open between requests, so that a second range of one costs only its blocks.

Owns the bound on how many, when what was learned of a file is forgotten, and how far a read runs ahead of its client. A
player that seeks in a film asks for one range after another, and browsers ask for several at once.

Cost: memory: KEPT_FILES times what one read has learned of its file, which may be the first megabyte of its blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from attrs import field, frozen

from grid.caps import ChkCap, ExtentCap, KnownCap, SequenceCap, SliceCap
from grid.engine.grid import Grid
from grid.errors import GridError
from grid.extents.reader import ExtentReader
from grid.extents.table import Table
from grid.immutable.get import ImmutableFile
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer, Clock, Observer, ServerId, Sink
from grid.sinks import CountingSink

MOMENT_S = 0.25
"""Seconds in which the client is to take a chunk."""

BOLD_SIZE = 16 * 2**20
"""Bytes of the first chunk, while few others read."""

LARGEST_SIZE = 64 * 2**20
"""Bytes of a chunk at most: what the next one costs at its beginning is nothing to it."""

TOGETHER_SIZE = 64 * 2**20
"""Bytes that all reads under way may be ahead of their clients together. What the system's sockets take in at once looks
like a fast client, and two hundred of those at the same time must not each be given the largest chunk."""

SHARE = 4
"""The part of the room left that one chunk takes while others read too: those who come later need some too."""

FEW = 4
"""Reads beside which a new one begins boldly."""


class ReadChunks:
    """The chunks of one read: as much as its client takes in a moment.

    A read has up to 32 MiB in flight: right for one fast client, and far too much for two hundred slow ones. So a file
    is read in chunks, each begun when the client has taken the one before it. Only the client's own slowness makes
    them small: a slow or distant grid gets long ones, because each begins with a round trip.
    segment_size: the least that can be read of the file.
    """

    def __init__(self, segment_size: int, others: int) -> None:
        """others: other reads in progress."""
        self._segment_size = segment_size
        self._size = float(BOLD_SIZE if others < FEW else segment_size)

    def next_stop(self, position: int, stop: int, room: int = TOGETHER_SIZE) -> int:
        """The end of the chunk that begins at `position`: that of a segment, and not past `stop`.

        room: bytes that it may have, beyond its first segment.
        """
        size = min(int(self._size), room)
        segments = max(1, size // self._segment_size)
        return min(stop, (position // self._segment_size + segments) * self._segment_size)

    def taken(self, size: int, waited_s: float) -> None:
        """Note that the client took a chunk of `size` bytes, and kept us waiting for waited_s."""
        self._size = min(float(LARGEST_SIZE), size / max(waited_s, 1e-6) * MOMENT_S)


KEPT_FILES = 16
"""Files kept open: more than are looked at at once."""

KEPT_SIZE = 2**20
"""Bytes from which a file is kept open: what is smaller is read with few questions anyway."""

KEPT_S = 60.0
"""Seconds after which a file is reopened: servers that were away may be back, and shares may have moved."""


@frozen
class _Open:
    file: ImmutableFile = field(repr=False)
    servers: frozenset[ServerId]
    opened_at: float


class OpenFiles:
    """The immutable files that were read last."""

    def __init__(self, grid: Grid, permit: Callable[[KnownCap], None] = lambda cap: None) -> None:
        """grid: its servers are looked at again for each read. permit: raises if a file must not be read."""
        self._grid = grid
        self._permit = permit
        self._extents = ExtentReader(self._read_chk)
        self._files: OrderedDict[ChkCap, _Open] = OrderedDict()
        self._reading = 0
        self.found_open = self.opened = 0
        self._ahead = 0

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._files)

    async def read(self, cap: ChkCap | ExtentCap, sink: Sink, start: int, length: int, observer: Observer) -> int:
        """ImmutableFile.read, in chunks of which each waits until the client has taken the one before it.

        The sink takes an empty write as the question whether it has room. A file that was open already and fails
        before it gave anything is tried once more.
        """
        if isinstance(cap, SliceCap | SequenceCap):
            return await self._extents.read(cap, _PatientSink(sink), start, length)
        timed = TimedSink(sink, self._grid.runtime.clock)
        chunks = ReadChunks(Geometry.of_file(cap.size, cap.needed, cap.total).segment_size, self._reading)
        position, stop = start, min(cap.size, start + length)
        self._reading += 1
        try:
            while position < stop:
                end = chunks.next_stop(position, stop, self._room())
                self._ahead += end - position
                try:
                    await self._read_chunk(cap, timed, position, end - position, observer)
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
        """The parts of a sequence; the errors of a read."""
        return await self._extents.table(cap)

    async def _read_chk(self, cap: ChkCap, sink: Sink, offset: int, length: int) -> int:
        self._permit(cap)
        return await self._read_chunk(cap, sink, offset, length, self._grid.observer)

    def _room(self) -> int:
        """Bytes that the next chunk of one read may have."""
        left = max(0, TOGETHER_SIZE - self._ahead)
        return left if self._reading == 1 else left // SHARE

    async def _read_chunk(self, cap: ChkCap, sink: Sink, start: int, length: int, observer: Observer) -> int:
        kept, is_new = self._open(cap)
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
        kept, _ = self._open(cap)
        return (await kept.file.read(sink, start, length, observer)).size

    def _open(self, cap: ChkCap) -> tuple[_Open, bool]:
        """The file, and whether nothing was known of it."""
        ids = frozenset(server.identity.server_id for server in self._grid.servers)
        now = self._grid.runtime.clock.now()
        kept = self._files.get(cap)
        if kept is not None and kept.servers == ids and now - kept.opened_at < KEPT_S:
            self._files.move_to_end(cap)
            self.found_open += 1
            return kept, False
        self.opened += 1
        kept = _Open(ImmutableFile(cap, self._grid), ids, now)
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
        """Take the bytes."""
        await self._sink.write(data)
        await self._sink.write(b"")


class TimedSink:
    """Passes bytes on, and knows how long it had to wait for their taker."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self._waited_s = 0.0

    async def write(self, data: Buffer) -> None:
        """Take the bytes."""
        began_at = self._clock.now()
        await self._sink.write(data)
        self._waited_s += self._clock.now() - began_at

    def take_waited(self) -> float:
        """Seconds since this was asked last."""
        waited_s, self._waited_s = self._waited_s, 0.0
        return waited_s
