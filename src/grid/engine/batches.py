"""Runs of segments on their way from the servers to the consumer, and how many bytes go together. Pure.

It owns what batches of immutable and of mutable files have in common: their sizes, states, and order. It knows nothing of shares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Generic, TypeVar

from attrs import define, field

from grid.engine.requests import Request
from grid.ports import Buffer, Range

DEFAULT_MAX_SEGMENT_SIZE = 2**20
"""Bytes of text in a segment of a new immutable file; what 1.20 writes with. [spec immutable 2]"""

READ_BYTES = 8 * 2**20
"""Bytes of text in a full batch of a read: nearly three megabytes from each server of 3, and one message."""

WIDE_READ_BYTES = 2 * READ_BYTES
"""The same where more than WIDE_SHARES are needed: more servers are asked, and each for less."""

WIDE_SHARES = 10

PART_BYTES = 8 * 2**20
"""Bytes of one share that are asked for in one range."""


def full_read_bytes(k: int) -> int:
    """Bytes of text in a full batch of a file of which k shares are needed."""
    return WIDE_READ_BYTES if k > WIDE_SHARES else READ_BYTES


class BatchState(Enum):
    """FETCHING -> OPENING -> READY, and back to FETCHING when a block proves bad."""

    FETCHING = "fetching"
    OPENING = "opening"
    READY = "ready"


@define(kw_only=True, eq=False)
class SegmentBatch:
    """Segments first .. first + count: what one message per server fetches and one call on the processor pool opens.

    share_bytes: of one share; text_bytes: of the file. settled: everything is asked for, and was in time when that was looked at
    last. text: once the batch is READY. is_delivering: the consumer is taking it.
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
    """The batches of one read in the file's order; the first is the one that the consumer waits for."""

    def __init__(self) -> None:
        self._batches: deque[B] = deque()
        self._opening: dict[Request, B] = {}

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[B]:
        return iter(self._batches)

    @property
    def head(self) -> B | None:
        """The batch that is delivered next."""
        return self._batches[0] if self._batches else None

    @property
    def text_bytes(self) -> int:
        """Bytes of text in flight."""
        return sum(batch.text_bytes for batch in self._batches)

    def append(self, batch: B) -> None:
        """Have one more batch fetched."""
        self._batches.append(batch)

    def fetching(self) -> list[B]:
        """The batches that still lack something."""
        return [batch for batch in self._batches if batch.state is BatchState.FETCHING]

    def unsettle(self) -> None:
        """Look at every batch again: what it was promised may not come."""
        for batch in self._batches:
            batch.settled = False

    def opening(self, batch: B, request: Request) -> Request:
        """The request, which opens this batch."""
        batch.state = BatchState.OPENING
        self._opening[request] = batch
        return request

    def opened(self, request: Request) -> B:
        """The batch that the request has opened."""
        return self._opening.pop(request)

    def next_ready(self) -> B | None:
        """The head, once it is ready, to be delivered now; each is returned once."""
        head = self.head
        if head is None or head.state is not BatchState.READY or head.is_delivering:
            return None
        head.is_delivering = True
        return head

    def delivered(self) -> None:
        """The consumer has taken the head."""
        self._batches.popleft()


@define(kw_only=True, eq=False)
class TextRange:
    """Bytes offset .. end of a file, and how many of them have been delivered."""

    offset: int
    end: int
    delivered: int = 0

    @property
    def size(self) -> int:
        """How many bytes are wanted."""
        return self.end - self.offset

    def cut(self, batch: SegmentBatch, segment_size: int) -> memoryview:
        """The bytes of a ready batch that are wanted."""
        start = batch.first * segment_size
        return memoryview(batch.text)[max(0, self.offset - start) : self.end - start]


def split_range(whole: Range, size: int) -> list[Range]:
    """Consecutive ranges of at most `size` bytes; at least one, even of nothing."""
    offset, length = whole
    starts = range(offset, offset + max(1, length), size)
    return [(start, min(size, offset + length - start)) for start in starts]
