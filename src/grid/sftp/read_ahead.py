"""Reads of one open file, ahead of what its client asks for while it reads in order; nothing goes to the disk.

A span is a range that is being fetched, or has been: its bytes are given out as they come. Spans of a client that reads in
order double in size, and the next one begins when the client reaches the last; others are as long as what was asked for.

All files of a door share its room, and take turns at fetching. Where it is taken, the span that was used longest ago is given up,
unless somebody reads it.

Cost: memory: KEPT_SPANS spans a file, of LARGEST_SPAN bytes at most, and AHEAD_BYTES for all files, beside what is being read.
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
"""At once, of all files of a door: each takes memory for segments while it lasts."""

LEAST_SPAN = 2**16
KEPT_SPANS = 3

SEGMENT_SIZE = 2**20
"""Of most files: long spans end where a segment does, so that none is fetched twice."""

AHEAD_BYTES = 48 * 2**20
"""Bytes of the spans of all files of a door."""

Fetch = Callable[[Sink, int, int], Awaitable[object]]
"""Write bytes to the sink: an offset, and how many from there."""


@define(eq=False)
class AheadRoom:
    """The room of all files of a door. taken: bytes. files: how many have spans. fetches: turns at fetching one."""

    size: int = AHEAD_BYTES
    taken: int = field(init=False, default=0)
    files: int = field(init=False, default=0)
    fetches: Semaphore = field(init=False, factory=lambda: Semaphore(FETCHES))
    _spans: dict[_Span, None] = field(init=False, factory=dict)

    def fitting(self, wanted: int) -> int:
        """How long a span may be: what is wanted, or a fair share of the room."""
        return min(wanted, max(LEAST_SPAN, self.size // (KEPT_SPANS * max(2, self.files))))

    def add(self, span: _Span) -> None:
        """Make room for one more."""
        self.taken += span.size
        self._spans[span] = None
        if self.taken > self.size:
            for each in [each for each in self._spans if each is not span and not each.readers]:
                if self.taken > self.size:
                    each.give_up()

    def use(self, span: _Span) -> None:
        """Give others up before this one."""
        if span in self._spans:
            del self._spans[span]
            self._spans[span] = None

    def remove(self, span: _Span) -> None:
        """Have its room back."""
        del self._spans[span]
        self.taken -= span.size


class _Span:
    """A range of the file. give_up: has its file forget it. readers: who waits for bytes of it."""

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
        """More bytes."""
        self._data += data
        self._wake()

    def fail(self, error: BaseException) -> None:
        """Nothing more comes."""
        self._error = self._error or error
        self._wake()

    def ended(self, _: object) -> None:
        """All that there is has come."""
        if len(self._data) < self.stop - self.start:
            self.fail(GridError("the file is shorter than it was; open it again"))

    async def read(self, start: int, stop: int) -> bytes:
        """Bytes within the span, once they are here; what ended the fetch."""
        while len(self._data) < stop - self.start:
            if self._error is not None:
                raise self._error
            waiter: Deferred[None] = Deferred()
            self._waiters.append((stop, waiter))
            await waiter
        return bytes(memoryview(self._data)[start - self.start : stop - self.start])

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stop - self.start

    @property
    def has_failed(self) -> bool:
        """Whether it has ended before its last byte."""
        return self._error is not None

    def give_up(self) -> None:
        """Make room for others."""
        self._give_up(self)

    def cancel(self) -> None:
        """Give the fetch up."""
        self.fail(GridError("the file was closed"))
        self.tasks.cancel()

    def _wake(self) -> None:
        here = self.start + len(self._data)
        ready = [waiter for stop, waiter in self._waiters if self._error is not None or stop <= here]
        self._waiters = [each for each in self._waiters if self._error is None and each[0] > here]
        for waiter in ready:
            waiter.callback(None)


class ReadAhead:
    """One open file of a size that is known."""

    def __init__(self, fetch: Fetch, size: int, room: AheadRoom) -> None:
        self._fetch = fetch
        self._size = size
        self._room = room
        self._spans: list[_Span] = []
        self._next_size = FIRST_SPAN
        self._is_closed = False

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file, fewer at its end, none behind it. The errors of a read."""
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
        """Give up what is under way."""
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
        """Begin the next span if the client has reached the last, in order."""
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
