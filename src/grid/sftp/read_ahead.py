"""Reads an open file ahead of a client that reads in order, without using the disk.

A span is a range of the file that is being or has been fetched; its bytes are available as they arrive. While a client
reads in order, spans double in size, and the next one starts when the client reaches the last. Instead of a large one, a
stream starts, which is one read of the rest of the file. Other spans are as long as the request.

All files of a door share its memory and take turns at fetching. When memory runs out, the least recently used span that
nobody is reading is dropped.

Cost: memory: KEPT_SPANS spans per file, of at most LARGEST_SPAN bytes, and AHEAD_BYTES for all files, plus the reads in
progress, of which MOST_STREAMS are streams. A stream takes one message to each server for 8 MiB, and looks for shares
once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred

from grid.errors import GridError
from grid.gateway.shared.store_turns import Semaphore
from grid.ports import Sink
from grid.sftp.spans import Span, Stream
from grid.values import define, field

FIRST_SPAN = 2**18
LARGEST_SPAN = 2**23
FETCHES = 16
"""Fetches in parallel by all files of a door; each takes memory for segments."""

STREAM_FROM = 2**21
"""A span of this size or more is a stream instead, if there may be one."""

STREAM_ROOM = 2**22
"""There may be one if a span of this size would get the memory that it wants."""

MOST_STREAMS = 4
"""Streams of all files of a door."""

LEAST_SPAN = 2**16
KEPT_SPANS = 3

SEGMENT_SIZE = 2**20
"""The usual segment size: long spans end on a segment boundary, so no segment is fetched twice."""

AHEAD_BYTES = 48 * 2**20
"""Bytes of the spans of all files of a door."""

Fetch = Callable[[Sink, int, int], Awaitable[object]]
"""Writes bytes to the sink, given an offset and a length."""


@define(eq=False)
class AheadRoom:
    """The memory shared by all files of a door. taken: bytes. files: number with spans. streams: their number.

    fetches: the semaphore for fetching.
    """

    size: int = AHEAD_BYTES
    taken: int = field(init=False, default=0)
    files: int = field(init=False, default=0)
    streams: int = field(init=False, default=0)
    fetches: Semaphore = field(init=False, factory=lambda: Semaphore(FETCHES))
    _spans: dict[Span | Stream, None] = field(init=False, factory=dict)

    def fitting(self, wanted: int) -> int:
        """The size allowed for a span: as wanted, or a fair share of the memory."""
        return min(wanted, max(LEAST_SPAN, self.size // (KEPT_SPANS * max(2, self.files))))

    @property
    def has_room_for_stream(self) -> bool:
        """Whether one more stream may start."""
        return self.streams < MOST_STREAMS and self.fitting(STREAM_ROOM) == STREAM_ROOM

    def add(self, span: Span | Stream) -> None:
        """Add a span, dropping others if necessary."""
        self.taken += span.size
        self.streams += isinstance(span, Stream)
        self._spans[span] = None
        if self.taken > self.size:
            for each in [each for each in self._spans if each is not span and not each.readers]:
                if self.taken > self.size:
                    each.give_up()

    def use(self, span: Span | Stream) -> None:
        """Mark the span as recently used."""
        if span in self._spans:
            del self._spans[span]
            self._spans[span] = None

    def remove(self, span: Span | Stream) -> None:
        """Release the span's memory."""
        del self._spans[span]
        self.taken -= span.size
        self.streams -= isinstance(span, Stream)


class ReadAhead:
    """One open file of known size."""

    def __init__(self, fetch: Fetch, size: int, room: AheadRoom) -> None:
        self._fetch = fetch
        self._size = size
        self._room = room
        self._spans: list[Span | Stream] = []
        self._next_size = FIRST_SPAN
        self._is_closed = False

    def read_now(self, offset: int, length: int) -> bytes | None:
        """The same bytes as `read` if they have arrived; None if not, or if there are none."""
        stop = min(offset + length, self._size)
        span = next((each for each in self._spans if each.has(offset, stop)), None)
        if span is None or offset >= stop or self._is_closed:
            return None
        data = span.take(offset, stop)
        self._room.use(span)
        self._go_ahead(span)
        return data

    async def read(self, offset: int, length: int) -> bytes:
        """Read bytes; fewer at the end, none beyond it. Raises the errors of a read."""
        stop = min(offset + length, self._size)
        start, pieces = offset, list[bytes]()
        while offset < stop:
            if self._is_closed:
                raise GridError("the file was closed")
            span = self._span_at(offset, stop)
            self._room.use(span)
            span.readers += 1
            try:
                self._go_ahead(span)
                stream = self._stream_from(span.stop) if span.stop < stop else None
                if stream is None:
                    pieces.append(await span.read(offset, min(stop, span.stop)))
                else:
                    pieces += await _read_both(span, offset, stream, stop)
            finally:
                span.readers -= 1
            offset = start + sum(map(len, pieces))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Cancel all fetches."""
        self._is_closed = True
        for span in list(self._spans):
            self._drop(span)

    def _span_at(self, offset: int, stop: int) -> Span | Stream:
        for span in self._spans:
            if span.serves(offset):
                return span
        in_order = any(span.stop == offset for span in self._spans) or offset == 0
        if not in_order:
            self._next_size = FIRST_SPAN
        return self._begin(offset, FIRST_SPAN if in_order else stop - offset)

    def _stream_from(self, start: int) -> Stream | None:
        """The stream that begins there, if there is one."""
        return next((each for each in self._spans if isinstance(each, Stream) and each.start == start), None)

    def _go_ahead(self, span: Span | Stream) -> None:
        """Start the next span if the client, reading in order, has reached the last."""
        if span is not self._spans[-1] or span.stop >= self._size:
            return
        before = len(self._spans) > 1 and self._spans[-2].stop == span.start
        if before or span.start == 0:
            self._next_size = min(2 * self._next_size, LARGEST_SPAN)
            if self._next_size >= STREAM_FROM and self._room.has_room_for_stream:
                self._begin_stream(span.stop)
            else:
                self._begin(span.stop, max(self._next_size, SEGMENT_SIZE - span.stop % SEGMENT_SIZE))

    def _begin(self, start: int, wanted: int) -> Span:
        size = self._room.fitting(wanted)
        stop = start + size
        if size > SEGMENT_SIZE:
            stop -= stop % SEGMENT_SIZE
        span = Span(start, min(self._size, stop), self._drop)
        self._add(span)
        span.tasks.start(self._run(span), span.ended, span.fail)
        return span

    def _begin_stream(self, start: int) -> None:
        """Start to read the rest of the file. That does not take a turn at fetching, since the client may keep it waiting."""
        stream = Stream(start, self._size, min(LARGEST_SPAN, self._size - start), self._drop)
        self._add(stream)
        fetching = self._fetch_all(stream, start, self._size - start)
        stream.tasks.start(fetching, stream.ended, stream.fail)

    def _add(self, span: Span | Stream) -> None:
        if not self._spans:
            self._room.files += 1
        self._spans.append(span)
        self._room.add(span)
        while len(self._spans) > KEPT_SPANS:
            self._drop(next((each for each in self._spans[:-2] if not each.readers), self._spans[0]))

    async def _run(self, span: Span) -> None:
        async with self._room.fetches.one():
            await self._fetch_all(span, span.start, span.size)

    async def _fetch_all(self, sink: Sink, start: int, size: int) -> None:
        await self._fetch(sink, start, size)

    def _drop(self, span: Span | Stream) -> None:
        self._spans.remove(span)
        self._room.remove(span)
        if not self._spans:
            self._room.files -= 1
        if not span.readers or self._is_closed:
            span.cancel()


async def _read_both(span: Span | Stream, start: int, stream: Stream, stop: int) -> list[bytes]:
    """Read the end of a span and the beginning of the stream behind it, which is asked at once: later requests, whose bytes
    may come sooner than the span's, make it go on.
    """
    stream.readers += 1
    second = Deferred.fromCoroutine(stream.read(span.stop, stop))
    try:
        return [await span.read(start, span.stop), await second]
    finally:
        stream.readers -= 1
        second.addErrback(lambda _: None)
        second.cancel()
