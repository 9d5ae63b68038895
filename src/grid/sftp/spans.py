"""Parts of an open file that are fetched ahead of its client: spans, which are kept, and streams, which pass by.

A stream is one read of the rest of the file. It takes the next bytes only when its client asks for them, so the read
goes on at the client's speed, and the bytes stay where the read has them until they are taken.

Cost: memory: a span, its size; a stream, the last KEPT_BYTES and what the read holds.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from grid.errors import GridError
from grid.ports import Buffer
from grid.runtime import Tasks

KEPT_BYTES = 2**19
"""Bytes that a stream keeps of those it has passed, for requests that come a little out of order."""

NEAR_BYTES = 2**22
"""A request that begins further ahead of a stream does not wait for it."""


class Span:
    """A range of the file. give_up: makes its file forget it. readers: waiting for its bytes."""

    def __init__(self, start: int, stop: int, give_up: Callable[[Span], None]) -> None:
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

    def serves(self, offset: int) -> bool:
        """Whether the byte there is part of it, and has come or may come."""
        return self._error is None and self.start <= offset < self.stop

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


class Stream:
    """The rest of the file from `start` to `stop`, in order. size: as counted for memory."""

    def __init__(self, start: int, stop: int, size: int, give_up: Callable[[Stream], None]) -> None:
        self.start = start
        self.stop = stop
        self.size = size
        self.readers = 0
        self.tasks = Tasks()
        self._give_up = give_up
        self._kept = b""
        self._lent = memoryview(b"")
        self._end = start
        self._wanted = start
        self._error: BaseException | None = None
        self._waiters: list[tuple[int, Deferred[None]]] = []
        self._released: Deferred[None] | None = None

    async def write(self, data: Buffer) -> None:
        """Lend fetched bytes to readers until one wants more."""
        if not data:
            return
        self._lent = memoryview(data)
        self._end += len(data)
        self._wake()
        while self._wanted < self._end and self._error is None:
            self._released = Deferred()
            await self._released
        self._kept = self._copy(max(self._first, self._end - KEPT_BYTES), self._end)
        self._lent = memoryview(b"")

    def fail(self, error: BaseException) -> None:
        """End the stream with an error."""
        self._error = self._error or error
        self._wake()

    def ended(self, _: object) -> None:
        """Mark the stream as complete."""
        if self._end < self.stop:
            self.fail(GridError("the file is shorter than it was; open it again"))

    def serves(self, offset: int) -> bool:
        """Whether bytes from there are here or soon will be."""
        return self._error is None and self._first <= offset < min(self.stop, self._end + NEAR_BYTES)

    def has(self, start: int, stop: int) -> bool:
        """Whether these bytes are here."""
        return self._error is None and self._first <= start and stop <= self._end

    def take(self, start: int, stop: int) -> bytes:
        """Bytes that are here."""
        taken = self._copy(start, stop)
        self._want(stop)
        return taken

    async def read(self, start: int, stop: int) -> bytes:
        """Wait for bytes from `start` on; returns at least one, or none if they have passed. Raises the fetch's error."""
        while self._end <= start:
            if self._error is not None:
                raise self._error
            waiter: Deferred[None] = Deferred()
            self._waiters.append((start, waiter))
            self._want(stop)
            await waiter
        return self.take(start, min(stop, self._end)) if self._first <= start else b""

    def give_up(self) -> None:
        """Drop the stream to free its memory."""
        self._give_up(self)

    def cancel(self) -> None:
        """Cancel the fetch."""
        self.fail(GridError("the file was closed"))
        self.tasks.cancel()

    @property
    def _first(self) -> int:
        """Offset of the first byte that is here."""
        return self._end - len(self._lent) - len(self._kept)

    def _copy(self, start: int, stop: int) -> bytes:
        lent_at = self._end - len(self._lent)
        if start >= lent_at:
            return bytes(self._lent[start - lent_at : stop - lent_at])
        kept_at = lent_at - len(self._kept)
        return self._kept[start - kept_at : stop - kept_at] + bytes(self._lent[: max(0, stop - lent_at)])

    def _want(self, stop: int) -> None:
        """Note that a reader wants bytes up to there; go on once all that are lent are wanted."""
        self._wanted = max(self._wanted, stop)
        released = self._released
        if released is not None and self._wanted >= self._end:
            self._released = None
            released.callback(None)

    def _wake(self) -> None:
        """Let readers go on, the first bytes first: what they take may let later bytes come."""
        waiters, self._waiters = sorted(self._waiters, key=lambda each: each[0]), []
        for start, waiter in waiters:
            if start < self._end or self._error is not None:
                waiter.callback(None)
            else:
                self._waiters.append((start, waiter))
