"""The server's answers to requests that change shares: uploads, leases, and mutable writes. [spec wire 17]

Cost: bodies go to the store in pieces of up to 1 MiB, in the buffers they came in, while the socket waits.
A share is made durable once, by the write that completes it; all shares that one batch completes are made durable together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from grid.errors import BadWriteEnablerError, FormatError
from grid.limits import MAX_FILE_SIZE, MAX_HTTP_ALLOCATE_BODY, MAX_HTTP_SLOT_BODY, READ_CALL_BYTES
from grid.ports import (
    Buffer,
    Clock,
    LeaseSecrets,
    ShareNumber,
    ShareWrite,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StorageServer,
)
from grid.wire.budget.measured import MeasuredReads
from grid.wire.budget.reservation import Reservation
from grid.wire.http.format.answers import pack_allocation, pack_required, pack_slot_answer
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD, WRITE_ENABLER
from grid.wire.http.format.bodies import parse_allocation_request, parse_slot_request
from grid.wire.http.format.frames import COUNT, MAX_WRITE_RECORDS, RECORD, parse_write_records
from grid.wire.http.format.ranges import parse_content_range
from grid.wire.http.format.refusals import RefusedError
from grid.wire.http.format.routes import Endpoint
from grid.wire.http.server.exchange import Exchange
from grid.wire.http.server.incoming import Incoming, IncomingShares
from grid.wire.http.server.service import BYTES_HEADERS, CBOR_HEADERS, Answerer, Bounds, Request
from grid.wire.packed.store_messages import MAX_STORE_MESSAGE, pack_store_answers, parse_stores


class UploadAnswers:
    """Allocations, writes, aborts, and leases."""

    def __init__(self, server: StorageServer, clock: Clock, bounds: Bounds) -> None:
        self._server = server
        self._bounds = bounds
        self._incoming = IncomingShares(clock)

    def answerers(self) -> dict[Endpoint, Answerer]:
        """The method for each endpoint."""
        return {
            Endpoint.ADD_LEASE: self._add_lease,
            Endpoint.ALLOCATE: self._allocate,
            Endpoint.WRITE: self._write,
            Endpoint.ABORT: self._abort,
            Endpoint.BATCHED_WRITE: self._batched_write,
            Endpoint.BATCHED_STORE: self._batched_store,
        }

    async def _add_lease(self, request: Request) -> None:
        index = request.route.storage_index
        immutable = await self._server.find_shares(index)
        if not immutable and not await self._server.read_slot(index, frozenset(), ()):
            raise RefusedError(404)
        await self._server.add_lease(index, lease_secrets(request))
        request.exchange.send(204)

    async def _allocate(self, request: Request) -> None:
        request.require_cbor_wanted()
        request.require_cbor_sent()
        async with self._bounds.body(request.exchange, MAX_HTTP_ALLOCATE_BODY) as body:
            numbers, size = parse_allocation_request(body)
        if size > MAX_FILE_SIZE:
            raise FormatError("an allocation larger than any share")
        index = request.route.storage_index
        allocation = await self._server.allocate(index, lease_secrets(request), numbers, size)
        self._incoming.begin(index, allocation.upload, request.secrets[UPLOAD], size)
        request.send_cbor(200, pack_allocation(allocation.already, allocation.upload.share_numbers))

    async def _write(self, request: Request) -> None:
        request.require_cbor_wanted()
        index, number = request.route.storage_index, request.route.share_number
        incoming = self._incoming.require(index, number, request.secrets[UPLOAD])
        offset, remaining = _content_range(request, incoming.coverage.size)
        length = request.exchange.body_length
        if length is not None and length < remaining:
            raise FormatError("a body shorter than its Content-Range")
        source = ByteSource(request.exchange)
        while remaining:
            with self._bounds.pieces.held() as room:
                size = min(remaining, room)
                pieces = await source.take(size)
                taken = sum(map(len, pieces))
                if taken:
                    await self._incoming.write(index, [ShareWrite(number, offset, pieces)], {number: incoming})
                del pieces
            if taken < size:
                raise FormatError("a body shorter than its Content-Range")
            offset += size
            remaining -= size
        status = 201 if incoming.coverage.complete else 200
        request.send_cbor(status, pack_required(incoming.coverage.missing()))

    async def _abort(self, request: Request) -> None:
        index, number = request.route.storage_index, request.route.share_number
        incoming = self._incoming.find(index, number, request.secrets[UPLOAD])
        if incoming is None:
            held = await self._server.find_shares(index)
            raise RefusedError(405 if number in held else 404)
        await self._incoming.abort(index, number, incoming)
        request.exchange.send(200)

    async def _batched_store(self, request: Request) -> None:
        async with self._bounds.body(request.exchange, MAX_STORE_MESSAGE) as body:
            answers = await self._server.store_shares(parse_stores(body))
        request.exchange.send(200, BYTES_HEADERS, [pack_store_answers(answers)])

    async def _batched_write(self, request: Request) -> None:
        index, secret = request.route.storage_index, request.secrets[UPLOAD]
        source = ByteSource(request.exchange)
        (count,) = COUNT.unpack(await source.take_exactly(COUNT.size))
        if count > MAX_WRITE_RECORDS:
            raise FormatError("a batched write of too many pieces")
        records = parse_write_records(await source.take_exactly(count * RECORD.size))
        targets = {number: self._incoming.require(index, number, secret) for number, _, _ in records}
        if any(offset + length > targets[number].coverage.size for number, offset, length in records):
            raise RefusedError(416)
        await self._store_batch(index, source, records, targets)
        whole = bytes(sorted(number for number, incoming in targets.items() if incoming.is_whole))
        request.exchange.send(200, BYTES_HEADERS, [whole])

    async def _store_batch(
        self,
        index: StorageIndex,
        source: ByteSource,
        records: Sequence[tuple[ShareNumber, int, int]],
        targets: dict[ShareNumber, Incoming],
    ) -> None:
        """Write the data as it comes, with as many records at once as one piece holds."""
        position = done = 0
        while done < len(records):
            with self._bounds.pieces.held() as room:
                batch: list[ShareWrite] = []
                pieces: list[Buffer] = []
                upload = targets[records[done][0]].upload
                while done < len(records):
                    number, offset, length = records[done]
                    if batch and (not room or targets[number].upload is not upload):
                        break
                    size = min(length - position, room)
                    pieces = await source.take(size)
                    if sum(map(len, pieces)) < size:
                        raise FormatError("a batched write that ends too early")
                    batch.append(ShareWrite(number, offset + position, pieces))
                    position += size
                    room -= size
                    if position == length:
                        done, position = done + 1, 0
                await self._store(index, batch, targets)
                del batch, pieces

    async def _store(self, index: StorageIndex, batch: list[ShareWrite], targets: dict[ShareNumber, Incoming]) -> None:
        named = {write.share_number: targets[write.share_number] for write in batch}
        await self._incoming.write(index, batch, named)


def lease_secrets(request: Request) -> LeaseSecrets:
    """The two lease secrets of the request."""
    return LeaseSecrets(renew=request.secrets[RENEW], cancel=request.secrets[CANCEL])


def _content_range(request: Request, share_size: int) -> tuple[int, int]:
    """Where the body belongs; RefusedError (416) if the header does not say, or if it is outside the share."""
    values = request.headers.get(b"content-range", ())
    try:
        offset, length = parse_content_range(values[0] if len(values) == 1 else b"")
    except FormatError:
        raise RefusedError(416) from None
    if offset + length > share_size:
        raise RefusedError(416)
    return offset, length


class ByteSource:
    """Reads an exchange's body. It holds at most one piece more than was requested."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._held: deque[Buffer] = deque()
        self._held_size = 0

    async def take_exactly(self, size: int) -> bytes:
        """The next `size` bytes, joined; FormatError if the body ends first."""
        pieces = await self.take(size)
        if sum(map(len, pieces)) < size:
            raise FormatError("a request's body that ends too early")
        return b"".join(pieces)

    async def take(self, size: int) -> list[Buffer]:
        """The next `size` bytes, fewer only at the body's end."""
        while self._held_size < size:
            pieces = await self._exchange.read_piece(size - self._held_size)
            if not pieces:
                break
            self._held.extend(pieces)
            self._held_size += sum(map(len, pieces))
        taken: list[Buffer] = []
        while size and self._held:
            piece = self._held.popleft()
            if len(piece) > size:
                view = memoryview(piece)
                self._held.appendleft(view[size:])
                piece = view[:size]
            taken.append(piece)
            size -= len(piece)
            self._held_size -= len(piece)
        return taken


WRITE_ENABLER_SIZE = 32


class SlotAnswers:
    """Mutable writes. The whole request is held, because its tests must pass before its first byte is stored."""

    def __init__(self, server: StorageServer, bounds: Bounds) -> None:
        self._reads = MeasuredReads(server)
        self._bounds = bounds

    def answerers(self) -> dict[Endpoint, Answerer]:
        """The method for each endpoint."""
        return {Endpoint.READ_TEST_WRITE: self._read_test_write}

    async def _read_test_write(self, request: Request) -> None:
        request.require_cbor_wanted()
        request.require_cbor_sent()
        enabler = request.secrets[WRITE_ENABLER]
        if len(enabler) != WRITE_ENABLER_SIZE:
            raise BadWriteEnablerError("no slot has a write enabler of that length")
        secrets = SlotSecrets(write_enabler=enabler, lease=lease_secrets(request))
        with request.exchange.reserve(self._bounds.answers) as room:
            request.exchange.send(200, CBOR_HEADERS, pack_slot_answer(await self._answer(request, secrets, room)))
            await request.exchange.sent(room)

    async def _answer(self, request: Request, secrets: SlotSecrets, room: Reservation) -> SlotAnswer:
        async with self._bounds.body(request.exchange, MAX_HTTP_SLOT_BODY) as body:
            writes, ranges = parse_slot_request(body)
            if sum(length for _, length in ranges) > READ_CALL_BYTES:
                raise FormatError(f"a mutable write that reads more than {READ_CALL_BYTES} bytes of a share")
            return await self._reads.test_and_write(room, request.route.storage_index, secrets, writes, ranges)
