"""The plan that encodes a file and pushes its shares to the servers that have allocated them.

Synchronous and pure; drive.py runs it. Reading, encoding, hashing and sending overlap; one write per server
carries all of its shares of a batch; a server that fails or stalls is left behind as long as enough others
remain, and success means that what is counted was said to be durable. [spec immutable 11; placement 5]

Cost: round trips: per server one message per batch, a window of bytes at once, and one to close. Memory:
LIVE_BYTES of shares of a few batches. CPU: per batch one pool call to encode and one to hash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from grid import limits
from grid.engine.plan import PlanBase
from grid.engine.requests import ReadSource, Request, ServerRequest
from grid.errors import GridError, NotHappyError, PeerTimeoutError
from grid.immutable.share.encode import EncodedBatch, Encoder, FinishedEncoding
from grid.immutable.share.requests import (
    AbortUpload,
    AbsorbBatch,
    CloseShares,
    EncodeSegments,
    FinishEncoding,
    MakeTrailers,
    WriteShares,
)
from grid.immutable.write.select_plan import Selection
from grid.immutable.write.stalls import StallWatch
from grid.immutable.write.unhappiness import describe_unhappiness
from grid.immutable.write.write_split import split_writes
from grid.placement.happiness import happiness
from grid.ports import Buffer, Event, ServerId, ShareNumber, ShareWrite

WRITE_BYTES = 20 * 2**20
"""Bytes of all shares in a batch of a write: nearly two megabytes to each of ten servers, as each message has its price."""

LIVE_BYTES = 2 * WRITE_BYTES
"""Bytes of shares read, encoded and not yet taken by all servers: one batch on its way, and the next one."""

WRITE_WINDOW = 2**21 + 2**17
"""Bytes outstanding per server, or one message if that is longer: all servers' together are what travels."""


@define(kw_only=True, eq=False)
class _Batch:
    """A run of segments; waiting_for: servers that have yet to take it."""

    first: int
    count: int
    text_bytes: int
    share_bytes: int
    encoded: EncodedBatch | None = None
    absorbed: bool = False
    queued: bool = False
    waiting_for: set[ServerId] = field(factory=set)


@define(kw_only=True, eq=False)
class _Server:
    server_id: ServerId
    shares: frozenset[ShareNumber]
    queue: deque[tuple[_Batch, Sequence[ShareWrite]]] = field(factory=deque)
    writing: dict[WriteShares, _Batch] = field(factory=dict)
    trailers: Mapping[ShareNumber, Sequence[Buffer]] | None = None
    making_trailers: bool = False
    last_queued: bool = False
    closing: CloseShares | None = None
    closed: bool = False


def require_whole(data: Buffer, length: int) -> None:
    """GridError unless a source gave as many bytes as it was asked for."""
    if len(data) != length:
        raise GridError("the file became shorter while it was read; put it again when it no longer changes")


@frozen(kw_only=True)
class Pushed:
    """finished: the encoding, with the UEB hash. sharemap: every share counted on, and the servers that hold it."""

    finished: FinishedEncoding
    sharemap: Mapping[ShareNumber, frozenset[ServerId]]
    pushed_count: int


class PutPlan(PlanBase):
    """Pushes the shares of a selection to the servers that allocated them."""

    def __init__(self, encoder: Encoder, selection: Selection, *, happy: int) -> None:
        super().__init__()
        self._encoder = encoder
        self._geometry = encoder.geometry
        self._happy = happy
        self._existing = selection.existing
        self._servers = {sid: _Server(server_id=sid, shares=shares) for sid, shares in selection.placed.items()}
        self._count = max(1, WRITE_BYTES // (self._geometry.n * self._geometry.block_size))
        self._next_segment = 0
        self._reading: _Batch | None = None
        self._to_encode: tuple[_Batch, Buffer] | None = None
        self._encoding: dict[EncodeSegments, _Batch] = {}
        self._absorbing: _Batch | None = None
        self._batches: deque[_Batch] = deque()
        self._finishing = False
        self._finished: FinishedEncoding | None = None
        self._stalls = StallWatch()
        self._done_bytes = 0
        self._causes: list[GridError] = []

    def _is_done(self) -> bool:
        return self._finished is not None and all(server.closed for server in self._servers.values())

    def result(self) -> Pushed:
        """What was stored; NotHappyError when too few servers remain (abort what is allocated)."""
        self._raise_error()
        assert self._finished is not None
        pushed = sum(len(server.shares) for server in self._servers.values())
        sharemap = {share: frozenset(holders) for share, holders in self._sharemap().items()}
        return Pushed(finished=self._finished, sharemap=sharemap, pushed_count=pushed)

    def wake_at(self) -> float | None:
        """When an unanswered write counts as a stall."""
        return self._stalls.wake_at()

    def advance(self, now: float) -> Sequence[Request]:
        """What to read, encode, hash, write and close now."""
        requests: list[Request] = []
        if not self.finished:
            requests += self._leave_stalled_behind(now)
            self._retire(now)
            requests += self._read()
            requests += self._absorb()
            for server in self._servers.values():
                requests += self._send(server, now)
        return [] if self._error is not None else requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Bytes of the source, encoded batches, trailers, and the consent of servers."""
        match request:
            case ReadSource():
                assert self._reading is not None and isinstance(answer, bytes | bytearray | memoryview)
                self._take_text(self._reading, answer)
            case EncodeSegments():
                assert isinstance(answer, EncodedBatch)
                self._encoding.pop(request).encoded = answer
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
            case WriteShares() | CloseShares():
                self._stalls.ended(request, now)
                self._stored(request)
            case _:
                pass

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """A server that fails is left behind; the source or the processor failing ends the put."""
        if isinstance(request, WriteShares | CloseShares):
            self._stalls.ended(request, None)
            self._lose(request.server_id, error, now)
        elif not isinstance(request, ServerRequest):
            self._stop(error)

    def _take_text(self, batch: _Batch, text: Buffer) -> None:
        self._reading = None
        try:
            require_whole(text, batch.text_bytes)
        except GridError as error:
            self._stop(error)
        else:
            self._to_encode = batch, text

    def _read(self) -> list[Request]:
        """Encode what was read, and read on while there is room."""
        requests: list[Request] = []
        if self._to_encode is not None:
            batch, text = self._to_encode
            self._to_encode = None
            encode = EncodeSegments(first_segment=batch.first, text=text, size=batch.text_bytes)
            self._encoding[encode] = batch
            requests.append(encode)
        live = sum(batch.share_bytes for batch in self._batches)
        if self._reading is None and self._next_segment < self._geometry.segment_count:
            batch = self._cut()
            if not self._batches or live + batch.share_bytes <= LIVE_BYTES:
                self._next_segment += batch.count
                self._batches.append(batch)
                self._reading = batch
                offset = self._geometry.segment_offset(batch.first)
                requests.append(ReadSource(offset=offset, length=batch.text_bytes, size=batch.text_bytes))
        return requests

    def _cut(self) -> _Batch:
        geometry, first = self._geometry, self._next_segment
        count = min(self._count, geometry.segment_count - first)
        end = min(geometry.size, geometry.segment_offset(first + count))
        share_bytes = geometry.n * (geometry.block_offset(first + count) - geometry.block_offset(first))
        text_bytes = end - geometry.segment_offset(first)
        return _Batch(first=first, count=count, text_bytes=text_bytes, share_bytes=share_bytes)

    def _absorb(self) -> list[Request]:
        """Hash encoded batches in order, queue them for the servers, and finish behind the last one."""
        requests: list[Request] = []
        for batch in self._batches:
            if batch.encoded is None:
                break
            if not batch.absorbed and self._absorbing is None:
                self._absorbing = batch
                requests.append(AbsorbBatch(batch=batch.encoded, size=batch.text_bytes))
            if not batch.queued and not self._is_last(batch):
                self._queue(batch)
            if not batch.absorbed:
                break
        complete = self._next_segment == self._geometry.segment_count
        if complete and not self._finishing and all(batch.absorbed for batch in self._batches):
            self._finishing = True
            requests.append(FinishEncoding())
        return requests

    def _is_last(self, batch: _Batch) -> bool:
        return batch.first + batch.count == self._geometry.segment_count

    def _queue(self, batch: _Batch) -> None:
        batch.queued = True
        batch.waiting_for = set(self._servers)
        for server in self._servers.values():
            self._queue_for(server, batch)

    def _queue_for(self, server: _Server, batch: _Batch) -> None:
        for message in split_writes(self._writes(batch, server), limits.WRITE_CALL_BYTES // 2):
            server.queue.append((batch, message))

    def _writes(self, batch: _Batch, server: _Server) -> list[ShareWrite]:
        """One write per share: with the header before the first batch, and the trailer behind the last."""
        assert batch.encoded is not None
        start = self._encoder.layout.data_offset + batch.encoded.data_offset
        writes = []
        for share in sorted(server.shares):
            pieces: list[Buffer] = list(batch.encoded.pieces(share))
            if batch.first == 0:
                pieces.insert(0, self._encoder.header)
            if server.trailers is not None:
                pieces += server.trailers[share]
            writes.append(ShareWrite(share, 0 if batch.first == 0 else start, pieces))
        return writes

    def _send(self, server: _Server, now: float) -> list[Request]:
        requests: list[Request] = []
        if self._finished is not None and not server.making_trailers:
            server.making_trailers = True
            requests.append(MakeTrailers(for_server=server.server_id, shares=server.shares, finished=self._finished))
        last = self._batches[-1] if self._batches else None
        if server.trailers is not None and not server.last_queued and last is not None and self._is_last(last):
            server.last_queued = last.queued = True
            last.waiting_for.add(server.server_id)
            self._queue_for(server, last)
        while server.queue:
            batch, writes = server.queue[0]
            size = sum(write.size for write in writes)
            if server.writing and sum(other.size for other in server.writing) + size > WRITE_WINDOW:
                break
            server.queue.popleft()
            request = WriteShares(
                server_id=server.server_id, writes=writes, size=size, share_numbers=tuple(sorted(server.shares))
            )
            server.writing[request] = batch
            self._stalls.sent(request, now)
            requests.append(request)
        if server.last_queued and not server.queue and not server.writing and server.closing is None:
            server.closing = CloseShares(
                server_id=server.server_id, closing=server.shares, share_numbers=tuple(sorted(server.shares))
            )
            self._stalls.sent(server.closing, now)
            requests.append(server.closing)
        return requests

    def _stored(self, request: WriteShares | CloseShares) -> None:
        server = self._servers.get(request.server_id)
        if server is None:
            return
        if isinstance(request, CloseShares):
            server.closed = True
            return
        batch = server.writing.pop(request)
        pending = [*server.writing.values(), *(queued for queued, _ in server.queue)]
        if not any(other is batch for other in pending):
            batch.waiting_for.discard(server.server_id)

    def _retire(self, now: float) -> None:
        """Let go of batches that all servers have taken."""
        unmade = [server for server in self._servers.values() if not server.last_queued]
        while self._batches:
            batch = self._batches[0]
            last_pending = self._is_last(batch) and bool(unmade)
            if not batch.queued or not batch.absorbed or batch.waiting_for or last_pending:
                break
            self._batches.popleft()
            self._done_bytes += batch.text_bytes
            event = Event(at=now, what="progress", count=self._done_bytes, total=self._geometry.size)
            self._events.append(event)

    def _leave_stalled_behind(self, now: float) -> list[Request]:
        requests: list[Request] = []
        waiting = self._reading or self._encoding or self._absorbing or (self._finishing and self._finished is None)
        for request in self._stalls.stalled(now, blocked=not waiting):
            if request.server_id in self._servers:
                server_id = request.server_id
                error = PeerTimeoutError(f"server {server_id} did not answer a write in time")
                hopeless = self._stalls.hopeless(request, now)
                if hopeless or self._bearable(without=server_id):
                    self._lose(server_id, error, now)
                    requests.append(AbortUpload(server_id=server_id))
        return requests

    def _bearable(self, without: ServerId) -> bool:
        sharemap = self._sharemap(without)
        return happiness(sharemap) >= self._happy and len(sharemap) >= self._geometry.k

    def _lose(self, server_id: ServerId, error: GridError, now: float) -> None:
        """Count no more on the shares of a server that failed; too few left end the put."""
        server = self._servers.pop(server_id, None)
        if server is None:
            return
        self._causes.append(error)
        outstanding: list[Request] = [*server.writing]
        if server.closing is not None:
            outstanding.append(server.closing)
        for request in outstanding:
            if isinstance(request, WriteShares | CloseShares):
                self._stalls.ended(request, None)
        self._withdrawn += outstanding
        for batch in self._batches:
            batch.waiting_for.discard(server_id)
        self._events.append(Event(at=now, what="reject", server_id=server_id, share_numbers=tuple(server.shares)))
        sharemap = self._sharemap()
        reached = happiness(sharemap)
        if reached < self._happy or len(sharemap) < self._geometry.k:
            holders = {holder for servers in sharemap.values() for holder in servers}
            message = describe_unhappiness(len(holders), reached, self._geometry.k, self._happy, len(sharemap))
            self._stop(NotHappyError(f"{message}: {error}", causes=self._causes, reached=reached, happy=self._happy))

    def _sharemap(self, without: ServerId | None = None) -> dict[ShareNumber, set[ServerId]]:
        sharemap: dict[ShareNumber, set[ServerId]] = {}
        held = [*self._existing.items(), *((server.server_id, server.shares) for server in self._servers.values())]
        for server_id, shares in held:
            if server_id != without:
                for share in shares:
                    sharemap.setdefault(share, set()).add(server_id)
        return sharemap
