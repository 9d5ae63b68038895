"""The writes of a put to one server: what waits, what is in flight, and how writes are cut into messages. Pure.

It owns the order of the writes and the window. Other modules decide whether to wait for the server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from grid import limits
from grid.engine.write_batches import WriteBatch
from grid.immutable.share.encode import EncodedBatch
from grid.immutable.share.requests import WriteShares
from grid.ports import Buffer, ServerId, ShareNumber, ShareWrite
from grid.values import define, field


@define(kw_only=True, eq=False)
class ServerWrites:
    """The writes to one server. trailers: the end of each share, once known. last_queued: nothing more will be added."""

    server_id: ServerId
    shares: frozenset[ShareNumber]
    queue: deque[tuple[WriteBatch[EncodedBatch], Sequence[ShareWrite]]] = field(factory=deque)
    writing: dict[WriteShares, WriteBatch[EncodedBatch]] = field(factory=dict)
    trailers: Mapping[ShareNumber, Sequence[Buffer]] | None = None
    making_trailers: bool = False
    last_queued: bool = False
    closed: frozenset[ShareNumber] = frozenset()

    def add(self, batch: WriteBatch[EncodedBatch], header: Buffer, data_offset: int) -> None:
        """Queue a batch: one write per share, with the header before the first batch and the trailer after the last."""
        assert batch.encoded is not None
        offset = 0 if batch.first == 0 else data_offset + batch.encoded.data_offset
        writes = []
        for share in sorted(self.shares):
            pieces: list[Buffer] = list(batch.encoded.pieces(share))
            if batch.first == 0:
                pieces.insert(0, header)
            if self.trailers is not None:
                pieces += self.trailers[share]
            writes.append(ShareWrite(share, offset, pieces))
        for message in split_writes(writes, limits.WRITE_CALL_BYTES // 2):
            self.queue.append((batch, message))

    @property
    def is_done(self) -> bool:
        """Whether all shares are closed."""
        return self.closed == self.shares

    def send(self, window_bytes: int) -> list[WriteShares]:
        """The writes to send now. The last one of each share closes it.

        window_bytes: how much may be in flight at once, or one message if that is longer.
        """
        numbers = tuple(sorted(self.shares))
        requests: list[WriteShares] = []
        while self.queue:
            batch, writes = self.queue[0]
            size = sum(write.size for write in writes)
            if self.writing and sum(other.size for other in self.writing) + size > window_bytes:
                break
            self.queue.popleft()
            request = WriteShares(
                server_id=self.server_id, writes=writes, size=size, share_numbers=numbers, closing=self._ending(writes)
            )
            self.writing[request] = batch
            requests.append(request)
        return requests

    def _ending(self, writes: Sequence[ShareWrite]) -> frozenset[ShareNumber]:
        """The shares that end with these writes, which are no longer queued."""
        if not self.last_queued:
            return frozenset()
        later = {write.share_number for _, message in self.queue for write in message}
        return frozenset(write.share_number for write in writes) - later

    def stored(self, request: WriteShares) -> None:
        """Note that the server has done what the request asked."""
        self.closed |= request.closing
        batch = self.writing.pop(request)
        pending = [*self.writing.values(), *(queued for queued, _ in self.queue)]
        if not any(other is batch for other in pending):
            batch.waiting_for.discard(self.server_id)

    @property
    def outstanding(self) -> list[WriteShares]:
        """The writes in flight."""
        return list(self.writing)


def split_writes(writes: Sequence[ShareWrite], limit: int) -> list[list[ShareWrite]]:
    """Split writes into as few messages of at most `limit` bytes as possible: the same bytes, offsets and order.

    The result is nearly always one message with the writes unchanged. Writes that must be cut become views.
    """
    if sum(write.size for write in writes) <= limit:
        return [list(writes)]
    messages: list[list[ShareWrite]] = [[]]
    room = limit
    for write in writes:
        offset = write.offset
        pieces: list[Buffer] = []
        for piece in write.pieces:
            view = memoryview(piece)
            while len(view) > room:
                pieces.append(view[:room])
                messages[-1].append(ShareWrite(write.share_number, offset, pieces))
                offset += sum(len(part) for part in pieces)
                view, pieces, room = view[room:], [], limit
                messages.append([])
            pieces.append(view)
            room -= len(view)
        messages[-1].append(ShareWrite(write.share_number, offset, pieces))
    return messages
