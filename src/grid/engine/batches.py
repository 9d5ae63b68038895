"""Batches of segments on their way from the servers to the consumer, and how many bytes a batch has. Pure.

It owns what immutable and mutable reads share: the sizes, states, and order of batches. It knows nothing of shares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Generic, TypeVar

from grid.engine.requests import Request
from grid.ports import Buffer, Range
from grid.values import define, field

DEFAULT_MAX_SEGMENT_SIZE = 2**20
"""Bytes of text in a segment of a new immutable file; what 1.20 writes with. [spec immutable 2]"""

READ_BYTES = 8 * 2**20
"""Bytes of text in a full batch of a read: with k = 3, nearly 3 MB from each server, in one message."""

WIDE_READ_BYTES = 2 * READ_BYTES
"""The same if more than WIDE_SHARES shares are needed: each server sends a smaller part."""

WIDE_SHARES = 10

PART_BYTES = 8 * 2**20
"""Largest range of one share that a read requests."""


def full_read_bytes(k: int) -> int:
    """Bytes of text in a full batch of a file that needs k shares."""
    return WIDE_READ_BYTES if k > WIDE_SHARES else READ_BYTES


class BatchState(Enum):
    """FETCHING -> OPENING -> READY, and back to FETCHING when a block proves bad."""

    FETCHING = "fetching"
    OPENING = "opening"
    READY = "ready"


@define(kw_only=True, eq=False)
class SegmentBatch:
    """Segments first .. first + count: fetched with one message per server, and opened with one call on the processor pool.

    share_bytes: of one share; text_bytes: of the file. settled: everything was requested and nothing was late at the last check.
    text: set once the batch is READY. is_delivering: the consumer is taking it.
    """

    first: int
    count: int
    share_bytes: int
    text_bytes: int
    state: BatchState = BatchState.FETCHING
    settled: bool = False
    text: Buffer = field(default=b"", repr=False)
    is_delivering: bool = False


B = TypeVar("B", bound=SegmentBatch)


class BatchQueue(Generic[B]):
    """The batches of one read in file order. The consumer waits for the first."""

    def __init__(self) -> None:
        self._batches: deque[B] = deque()
        self._opening: dict[Request, B] = {}

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[B]:
        return iter(self._batches)

    @property
    def head(self) -> B | None:
        """The batch to deliver next."""
        return self._batches[0] if self._batches else None

    @property
    def text_bytes(self) -> int:
        """Bytes of text in flight."""
        return sum(batch.text_bytes for batch in self._batches)

    def append(self, batch: B) -> None:
        """Add a batch to fetch."""
        self._batches.append(batch)

    def fetching(self) -> list[B]:
        """The batches that still miss blocks."""
        return [batch for batch in self._batches if batch.state is BatchState.FETCHING]

    def unsettle(self) -> None:
        """Check every batch again, because an expected answer may not come."""
        for batch in self._batches:
            batch.settled = False

    def opening(self, batch: B, request: Request) -> Request:
        """Note that this request opens the batch, and return the request."""
        batch.state = BatchState.OPENING
        self._opening[request] = batch
        return request

    def opened(self, request: Request) -> B:
        """The batch that this request has opened."""
        return self._opening.pop(request)

    def next_ready(self) -> B | None:
        """The first batch if it is ready to deliver; each batch is returned once."""
        head = self.head
        if head is None or head.state is not BatchState.READY or head.is_delivering:
            return None
        head.is_delivering = True
        return head

    def delivered(self) -> None:
        """Remove the first batch: the consumer has taken it."""
        self._batches.popleft()


@define(kw_only=True, eq=False)
class TextRange:
    """Bytes offset .. end of a file, and how many of them have been delivered."""

    offset: int
    end: int
    delivered: int = 0

    @property
    def size(self) -> int:
        """Bytes in the range."""
        return self.end - self.offset

    def has_all_of(self, batch: SegmentBatch, segment_size: int) -> bool:
        """Whether the range contains the whole batch."""
        start = batch.first * segment_size
        return self.offset <= start and start + batch.text_bytes <= self.end

    def cut(self, batch: SegmentBatch, segment_size: int) -> memoryview:
        """The part of a ready batch that lies in the range."""
        start = batch.first * segment_size
        return memoryview(batch.text)[max(0, self.offset - start) : self.end - start]


def split_range(whole: Range, size: int) -> list[Range]:
    """Cut a range into consecutive ranges of at most `size` bytes. An empty range gives one empty range."""
    offset, length = whole
    starts = range(offset, offset + max(1, length), size)
    return [(start, min(size, offset + length - start)) for start in starts]
