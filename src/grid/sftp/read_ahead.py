"""Reads an open file ahead of a client that reads in order, without using the disk.

A span is a range of the file that is being or has been fetched; its bytes are available as they arrive. While a client
reads in order, spans double in size, and the next one starts when the client reaches the last. Other spans are as long
as the request.

All files of a door share its memory and take turns at fetching. When memory runs out, the least recently used span that
nobody is reading is dropped.

Cost: memory: KEPT_SPANS spans per file, of at most LARGEST_SPAN bytes, and AHEAD_BYTES for all files, plus the reads in
progress.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.errors import GridError
from grid.gateway.shared.store_turns import Semaphore
from grid.ports import Buffer, Sink
from grid.runtime import Tasks

FIRST_SPAN = 2**18
LARGEST_SPAN = 2**23
FETCHES = 16
"""Fetches in parallel by all files of a door; each takes memory for segments."""

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
    """The memory shared by all files of a door. taken: bytes. files: number with spans.

    fetches: the semaphore for fetching.
    """

    size: int = AHEAD_BYTES
    taken: int = field(init=False, default=0)
    files: int = field(init=False, default=0)
    fetches: Semaphore = field(init=False, factory=lambda: Semaphore(FETCHES))
    _spans: dict[_Span, None] = field(init=False, factory=dict)

    def fitting(self, wanted: int) -> int:
        """The size allowed for a span: as wanted, or a fair share of the memory."""
        return min(wanted, max(LEAST_SPAN, self.size // (KEPT_SPANS * max(2, self.files))))

    def add(self, span: _Span) -> None:
        """Add a span, dropping others if necessary."""
        self.taken += span.size
        self._spans[span] = None
        if self.taken > self.size:
            for each in [each for each in self._spans if each is not span and not each.readers]:
                if self.taken > self.size:
                    each.give_up()

    def use(self, span: _Span) -> None:
        """Mark the span as recently used."""
        if span in self._spans:
            del self._spans[span]
            self._spans[span] = None

    def remove(self, span: _Span) -> None:
        """Release the span's memory."""
        del self._spans[span]
        self.taken -= span.size


class _Span:
    """A range of the file. give_up: makes its file forget it. readers: waiting for its bytes."""

    def __init__(self, start: int, stop: int, give_up: Callable[[_Span], None]) -> None:
        self.start = start
        self.stop = stop
        self.readers = 0
        self._give_up = give_up
        self._data = bytearray()
        self._error: BaseException | None = None
        self._waiters: list[tuple[int, Deferred[None]]] = []
        self.tasks = Tasks()

    async def write(self, data: Buffer) -> None:
        """Take fetched bytes."""
        self._data += data
        self._wake()

    def fail(self, error: BaseException) -> None:
        """End the span with an error."""
        self._error = self._error or error
        self._wake()

    def ended(self, _: object) -> None:
        """Mark the span as complete."""
        if len(self._data) < self.stop - self.start:
            self.fail(GridError("the file is shorter than it was; open it again"))

    def has(self, start: int, stop: int) -> bool:
        """Whether these bytes have arrived."""
        return self.start <= start and stop <= self.start + len(self._data) and self._error is None

    def take(self, start: int, stop: int) -> bytes:
        """Bytes that have arrived."""
        with memoryview(self._data) as view:
            return bytes(view[start - self.start : stop - self.start])

    async def read(self, start: int, stop: int) -> bytes:
        """Wait for bytes within the span; raises the error that ended the fetch."""
        while len(self._data) < stop - self.start:
            if self._error is not None:
                raise self._error
            waiter: Deferred[None] = Deferred()
            self._waiters.append((stop, waiter))
            await waiter
        return self.take(start, stop)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stop - self.start

    @property
    def has_failed(self) -> bool:
        """Whether it ended before its last byte."""
        return self._error is not None

    def give_up(self) -> None:
        """Drop the span to free its memory."""
        self._give_up(self)

    def cancel(self) -> None:
        """Cancel the fetch."""
        self.fail(GridError("the file was closed"))
        self.tasks.cancel()

    def _wake(self) -> None:
        here = self.start + len(self._data)
        ready = [waiter for stop, waiter in self._waiters if self._error is not None or stop <= here]
        self._waiters = [each for each in self._waiters if self._error is None and each[0] > here]
        for waiter in ready:
            waiter.callback(None)


class ReadAhead:
    """One open file of known size."""

    def __init__(self, fetch: Fetch, size: int, room: AheadRoom) -> None:
        self._fetch = fetch
        self._size = size
        self._room = room
        self._spans: list[_Span] = []
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
        pieces: list[bytes] = []
        while offset < stop:
            if self._is_closed:
                raise GridError("the file was closed")
            span = self._span_at(offset, stop)
            end = min(stop, span.stop)
            self._room.use(span)
            span.readers += 1
            try:
                self._go_ahead(span)
                pieces.append(await span.read(offset, end))
            finally:
                span.readers -= 1
            offset = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Cancel all fetches."""
        self._is_closed = True
        for span in list(self._spans):
            self._drop(span)

    def _span_at(self, offset: int, stop: int) -> _Span:
        for span in self._spans:
            if span.start <= offset < span.stop and not span.has_failed:
                return span
        in_order = any(span.stop == offset for span in self._spans) or offset == 0
        if not in_order:
            self._next_size = FIRST_SPAN
        return self._begin(offset, FIRST_SPAN if in_order else stop - offset)

    def _go_ahead(self, span: _Span) -> None:
        """Start the next span if the client, reading in order, has reached the last."""
        if span is not self._spans[-1] or span.stop >= self._size:
            return
        before = len(self._spans) > 1 and self._spans[-2].stop == span.start
        if before or span.start == 0:
            self._next_size = min(2 * self._next_size, LARGEST_SPAN)
            self._begin(span.stop, self._next_size)

    def _begin(self, start: int, wanted: int) -> _Span:
        if not self._spans:
            self._room.files += 1
        size = self._room.fitting(wanted)
        stop = start + size
        if size > SEGMENT_SIZE:
            stop -= stop % SEGMENT_SIZE
        span = _Span(start, min(self._size, stop), self._drop)
        self._spans.append(span)
        self._room.add(span)
        span.tasks.start(self._run(span), span.ended, span.fail)
        while len(self._spans) > KEPT_SPANS:
            self._drop(next((each for each in self._spans[:-2] if not each.readers), self._spans[0]))
        return span

    async def _run(self, span: _Span) -> None:
        async with self._room.fetches.one():
            await self._fetch(span, span.start, span.size)

    def _drop(self, span: _Span) -> None:
        self._spans.remove(span)
        self._room.remove(span)
        if not self._spans:
            self._room.files -= 1
        if not span.readers or self._is_closed:
            span.cancel()
