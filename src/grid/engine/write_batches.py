"""Batches of segments on their way from the source to the servers. Pure.

It owns what all writes of large files share: when to read the next batch, which batches to send, and when to
forget a batch. It knows nothing of shares and sends nothing itself.

Memory: live_bytes of shares that were read and encoded, and that some server has not taken yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from grid.engine.requests import ReadSource, Request
from grid.ports import ServerId
from grid.values import define, field

E = TypeVar("E")
R = TypeVar("R", bound=Request)

SERVER_BYTES = 8 * 2**20
"""Bytes of a batch that one server gets at most, for it holds a message whole: one of few servers gets smaller ones."""


def bytes_of_a_share(batch_bytes: int, n: int, share_counts: Iterable[int]) -> int:
    """How many bytes of each of n shares go into a batch of that many bytes. share_counts: of the servers, how many each gets."""
    return min(batch_bytes // n, SERVER_BYTES // max((1, *share_counts)))


@define(kw_only=True, eq=False)
class WriteBatch(Generic[E]):
    """Segments first .. first + count.

    source_offset, source_bytes: their range in the source. share_bytes: of all their shares together. encoded: their shares,
    once encoded. absorbed: their hashes are in the file's trees. waiting_for: servers that still have to take them.
    """

    first: int
    count: int
    source_offset: int
    source_bytes: int
    share_bytes: int
    encoded: E | None = None
    absorbed: bool = False
    queued: bool = False
    waiting_for: set[ServerId] = field(factory=set)


class WriteBatches(Generic[E]):
    """The batches of one write, in file order. One is read at a time; several may be encoded at once."""

    def __init__(self, segment_count: int, live_bytes: int, cut: Callable[[int], WriteBatch[E]]) -> None:
        """cut: makes the batch that begins with a given segment."""
        self._segment_count = segment_count
        self._live_bytes = live_bytes
        self._cut = cut
        self._next_segment = 0
        self._batches: deque[WriteBatch[E]] = deque()
        self._reading: WriteBatch[E] | None = None
        self._encoding: dict[Request, WriteBatch[E]] = {}

    def __iter__(self) -> Iterator[WriteBatch[E]]:
        return iter(self._batches)

    @property
    def all_read(self) -> bool:
        """Whether the last batch has been cut."""
        return self._next_segment >= self._segment_count

    @property
    def is_busy(self) -> bool:
        """Whether a batch is being read or encoded."""
        return self._reading is not None or bool(self._encoding)

    @property
    def last(self) -> WriteBatch[E] | None:
        """The batch with the last segment, from when it is cut until it is forgotten."""
        return self._batches[-1] if self._batches and self.is_last(self._batches[-1]) else None

    def is_last(self, batch: WriteBatch[E]) -> bool:
        """Whether the batch has the last segment."""
        return batch.first + batch.count >= self._segment_count

    def read_on(self) -> Sequence[ReadSource]:
        """A request that reads the next batch, if it is time for one."""
        if self._reading is not None or self.all_read:
            return []
        batch = self._cut(self._next_segment)
        live = sum(other.share_bytes for other in self._batches)
        if live and live + batch.share_bytes > self._live_bytes:
            return []
        self._next_segment += batch.count
        self._batches.append(batch)
        self._reading = batch
        return [ReadSource(offset=batch.source_offset, length=batch.source_bytes, size=batch.source_bytes)]

    def read(self) -> WriteBatch[E]:
        """Return the batch that was being read."""
        assert self._reading is not None
        batch, self._reading = self._reading, None
        return batch

    def encoding(self, batch: WriteBatch[E], request: R) -> R:
        """Note that this request encodes the batch, and return the request."""
        self._encoding[request] = batch
        return request

    def encoded(self, request: Request, encoded: E) -> WriteBatch[E]:
        """Store the result of the request in its batch, and return the batch."""
        batch = self._encoding.pop(request)
        batch.encoded = encoded
        return batch

    def to_absorb(self) -> WriteBatch[E] | None:
        """The first batch whose hashes are not in the trees yet, if it is encoded."""
        batch = next((batch for batch in self._batches if not batch.absorbed), None)
        return batch if batch is not None and batch.encoded is not None else None

    def to_send(self, servers: Iterable[ServerId]) -> list[WriteBatch[E]]:
        """The batches to queue for these servers now. Each is returned once, the last batch never."""
        ready = []
        for batch in self._batches:
            if batch.encoded is None or self.is_last(batch):
                break
            if not batch.queued:
                batch.queued = True
                batch.waiting_for = set(servers)
                ready.append(batch)
            if not batch.absorbed:
                break
        return ready

    def lose(self, server_id: ServerId) -> None:
        """Stop waiting for a server."""
        for batch in self._batches:
            batch.waiting_for.discard(server_id)

    def retire(self) -> Iterator[WriteBatch[E]]:
        """Remove and return the batches that all servers have taken."""
        while self._batches:
            batch = self._batches[0]
            if not batch.queued or not batch.absorbed or batch.waiting_for:
                break
            yield self._batches.popleft()
