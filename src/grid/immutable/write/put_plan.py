"""The plan that encodes a file and pushes its shares to the servers that have allocated them.

Synchronous and pure; drive.py runs it. Reading, encoding, hashing and sending overlap, with one write per server
for all its shares of a batch. A server that fails or stalls is left behind as long as enough others
remain. Success means that every share it counts was confirmed durable. [spec immutable 11; placement 5]

Cost: round trips: per server one message per batch, with a window of bytes in flight; the last message closes the shares. Memory:
LIVE_BYTES of shares of a few batches. CPU: per batch one pool call to encode and one to hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from grid.engine.latency import are_distant
from grid.engine.plan import PlanBase
from grid.engine.requests import ReadSource, Request, ServerRequest
from grid.engine.write_batches import WriteBatch, WriteBatches, bytes_of_a_share
from grid.errors import GridError, NotHappyError, PeerTimeoutError
from grid.immutable.share.encode import EncodedBatch, Encoder, FinishedEncoding
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.requests import (
    AbortUpload,
    AbsorbBatch,
    EncodeSegments,
    FinishEncoding,
    MakeTrailers,
    WriteShares,
)
from grid.immutable.write.select_plan import Selection
from grid.immutable.write.server_writes import ServerWrites
from grid.immutable.write.sharemap import ShareHolders
from grid.immutable.write.stalls import StallWatch
from grid.ports import Buffer, Event, ServerId, ShareNumber
from grid.values import frozen

WRITE_BYTES = 20 * 2**20
"""Bytes of all shares in a batch of a write: nearly 2 MB to each of ten servers, because each message has a fixed cost."""

LIVE_BYTES = 2 * WRITE_BYTES
"""Bytes of shares that are read and encoded, but that some server has not taken: one batch on its way, and the next one."""

WRITE_WINDOW = 2**21 + 2**17
"""Bytes in flight per server, or one message if that is longer: a batch to each of ten servers. A server that had two would work on both at
once and finish them together, while this process waits; then it would wait for the next two."""

DISTANT_WINDOW = 2 * WRITE_WINDOW
"""The same if servers are distant: two batches, so that the line stays busy while the answer to one of them is on its way."""


def require_whole(data: Buffer, length: int) -> None:
    """GridError unless the source returned as many bytes as requested."""
    if len(data) != length:
        raise GridError("the file became shorter while it was read; put it again when it no longer changes")


@frozen(kw_only=True)
class Pushed:
    """finished: the encoding, with the UEB hash. sharemap: every share that counts, and the servers that hold it."""

    finished: FinishedEncoding
    sharemap: Mapping[ShareNumber, frozenset[ServerId]]
    pushed_count: int


class PutPlan(PlanBase):
    """Pushes the shares of a selection to the servers that allocated them."""

    def __init__(self, encoder: Encoder, selection: Selection, *, happy: int) -> None:
        super().__init__()
        self._encoder = encoder
        self._geometry = geometry = encoder.geometry
        self._holders = ShareHolders(selection.existing, selection.placed, k=geometry.k, happy=happy)
        self._happy = happy
        self._is_distant = are_distant(selection.answer_s)
        self._servers = {sid: ServerWrites(server_id=sid, shares=shares) for sid, shares in selection.placed.items()}
        size = bytes_of_a_share(WRITE_BYTES, geometry.n, map(len, selection.placed.values()))
        cut = partial(_cut, geometry, max(1, size // geometry.block_size))
        self._batches: WriteBatches[EncodedBatch] = WriteBatches(geometry.segment_count, LIVE_BYTES, cut)
        self._absorbing: WriteBatch[EncodedBatch] | None = None
        self._finishing = False
        self._finished: FinishedEncoding | None = None
        self._stalls = StallWatch()
        self._causes: list[GridError] = []

    def _is_done(self) -> bool:
        return self._finished is not None and all(server.is_done for server in self._servers.values())

    def result(self) -> Pushed:
        """What was stored; NotHappyError if too few servers remain (then abort what is allocated)."""
        self._raise_error()
        assert self._finished is not None
        sharemap = {share: frozenset(holders) for share, holders in self._holders.sharemap().items()}
        return Pushed(finished=self._finished, sharemap=sharemap, pushed_count=self._holders.placed_count)

    def wake_at(self) -> float | None:
        """When an unanswered write counts as a stall."""
        return self._stalls.wake_at()

    def advance(self, now: float) -> Sequence[Request]:
        """The requests that read, encode, hash, write and close now."""
        requests: list[Request] = []
        if not self.finished:
            requests += self._leave_stalled_behind(now)
            self._retire(now)
            requests += [*self._take_outbox(), *self._batches.read_on(), *self._absorb()]
            for batch in self._batches.to_send(self._servers):
                for server in self._servers.values():
                    self._queue(server, batch)
            for server in self._servers.values():
                requests += self._send(server, now)
        return [] if self._error is not None else requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take bytes of the source, encoded batches, trailers, and servers' confirmations."""
        match request:
            case ReadSource():
                assert isinstance(answer, bytes | bytearray | memoryview)
                self._encode(answer)
            case EncodeSegments():
                assert isinstance(answer, EncodedBatch)
                self._batches.encoded(request, answer)
            case AbsorbBatch():
                assert self._absorbing is not None
                self._absorbing.absorbed, self._absorbing = True, None
            case FinishEncoding():
                assert isinstance(answer, FinishedEncoding)
                self._finished = answer
            case MakeTrailers():
                assert isinstance(answer, Mapping)
                if request.for_server in self._servers:
                    self._servers[request.for_server].trailers = answer
            case WriteShares():
                self._stalls.ended(request, now)
                if request.server_id in self._servers:
                    self._servers[request.server_id].stored(request)
            case _:
                pass

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Leave a failed server behind. A failure of the source or of a pool job ends the put."""
        if isinstance(request, WriteShares):
            self._stalls.ended(request, None)
            self._lose(request.server_id, error, now)
        elif not isinstance(request, ServerRequest):
            self._stop(error)

    def _encode(self, text: Buffer) -> None:
        """Encode the batch whose text has come."""
        batch = self._batches.read()
        try:
            require_whole(text, batch.source_bytes)
        except GridError as error:
            self._stop(error)
        else:
            encode = EncodeSegments(first_segment=batch.first, text=text, size=batch.source_bytes)
            self._outbox.append(self._batches.encoding(batch, encode))

    def _absorb(self) -> list[Request]:
        """Hash encoded batches in order, and finish after the last one."""
        requests: list[Request] = []
        if self._absorbing is None:
            self._absorbing = batch = self._batches.to_absorb()
            if batch is not None and batch.encoded is not None:
                requests.append(AbsorbBatch(batch=batch.encoded, size=batch.source_bytes))
        if self._batches.all_read and not self._finishing and all(batch.absorbed for batch in self._batches):
            self._finishing = True
            requests.append(FinishEncoding())
        return requests

    def _queue(self, server: ServerWrites, batch: WriteBatch[EncodedBatch]) -> None:
        server.add(batch, self._encoder.header, self._encoder.layout.data_offset)

    def _send(self, server: ServerWrites, now: float) -> list[Request]:
        requests: list[Request] = []
        if self._finished is not None and not server.making_trailers:
            server.making_trailers = True
            requests.append(MakeTrailers(for_server=server.server_id, shares=server.shares, finished=self._finished))
        last = self._batches.last
        if server.trailers is not None and not server.last_queued and last is not None:
            server.last_queued = True
            last.waiting_for.add(server.server_id)
            self._queue(server, last)
        for request in server.send(DISTANT_WINDOW if self._is_distant else WRITE_WINDOW):
            self._stalls.sent(request, now)
            requests.append(request)
        return requests

    def _retire(self, now: float) -> None:
        """Drop the batches that all servers have taken."""
        last = self._batches.last
        if last is not None:
            last.queued = all(server.last_queued for server in self._servers.values())
        for batch in self._batches.retire():
            done = batch.source_offset + batch.source_bytes
            self._events.append(Event(at=now, what="progress", count=done, total=self._geometry.size))

    def _leave_stalled_behind(self, now: float) -> list[Request]:
        requests: list[Request] = []
        is_finishing = self._finishing and self._finished is None
        waiting = self._batches.is_busy or self._absorbing is not None or is_finishing
        for request in self._stalls.stalled(now, blocked=not waiting):
            if request.server_id in self._servers:
                server_id = request.server_id
                error = PeerTimeoutError(f"server {server_id} did not answer a write in time")
                hopeless = self._stalls.hopeless(request, now)
                if hopeless or self._holders.are_enough(without=server_id):
                    request.is_late = True
                    self._lose(server_id, error, now)
                    requests.append(AbortUpload(server_id=server_id))
        return requests

    def _lose(self, server_id: ServerId, error: GridError, now: float) -> None:
        """Stop counting on the shares of a failed server. End the put if too few are left."""
        server = self._servers.pop(server_id, None)
        if server is None:
            return
        self._causes.append(error)
        for request in server.outstanding:
            self._stalls.ended(request, None)
            self._withdrawn.append(request)
        self._batches.lose(server_id)
        self._holders.lose(server_id)
        self._events.append(Event(at=now, what="reject", server_id=server_id, share_numbers=tuple(server.shares)))
        if not self._holders.are_enough():
            reached, message = self._holders.happiness, f"{self._holders.explain()}: {error}"
            self._stop(NotHappyError(message, causes=self._causes, reached=reached, happy=self._happy))


def _cut(geometry: Geometry, most: int, first: int) -> WriteBatch[EncodedBatch]:
    """The batch of at most `most` segments that begins with segment `first`."""
    count = min(most, geometry.segment_count - first)
    offset = geometry.segment_offset(first)
    return WriteBatch(
        first=first,
        count=count,
        source_offset=offset,
        source_bytes=min(geometry.size, geometry.segment_offset(first + count)) - offset,
        share_bytes=geometry.n * (geometry.block_offset(first + count) - geometry.block_offset(first)),
    )
