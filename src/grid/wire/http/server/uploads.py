"""The server's answers to uploads of immutable shares, and to leases. [spec wire 17]

Cost: bodies go to the store in pieces of up to 1 MiB, as the buffers they came in, while the socket is left alone;
a share is made durable once, by the write that completes it, and all shares that one batch completes together.
"""

from __future__ import annotations

from collections.abc import Sequence

from grid.errors import FormatError
from grid.limits import MAX_FILE_SIZE, MAX_HTTP_ALLOCATE_BODY
from grid.ports import Buffer, Clock, LeaseSecrets, ShareNumber, ShareWrite, StorageIndex, StorageServer
from grid.wire.http.format.answers import pack_allocation, pack_required
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD
from grid.wire.http.format.bodies import parse_allocation_request
from grid.wire.http.format.frames import COUNT, MAX_WRITE_RECORDS, RECORD, parse_write_records
from grid.wire.http.format.ranges import parse_content_range
from grid.wire.http.format.refusals import RefusedError
from grid.wire.http.format.routes import Endpoint
from grid.wire.http.server.byte_source import ByteSource
from grid.wire.http.server.incoming import Incoming, IncomingShares
from grid.wire.http.server.service import BYTES_HEADERS, Answerer, Bounds, Request
from grid.wire.packed.stores import MAX_STORE_MESSAGE, pack_store_answers, parse_stores


class UploadAnswers:
    """Allocation, writing, giving up, and leases."""

    def __init__(self, server: StorageServer, clock: Clock, bounds: Bounds) -> None:
        self._server = server
        self._bounds = bounds
        self._incoming = IncomingShares(clock)

    def answerers(self) -> dict[Endpoint, Answerer]:
        """By endpoint."""
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
        """Write the data as it comes, as many records at once as one piece holds."""
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
    """The request's two lease secrets."""
    return LeaseSecrets(renew=request.secrets[RENEW], cancel=request.secrets[CANCEL])


def _content_range(request: Request, share_size: int) -> tuple[int, int]:
    """Where the body belongs; RefusedError (416) if the header does not say, or says outside of the share."""
    values = request.headers.get(b"content-range", ())
    try:
        offset, length = parse_content_range(values[0] if len(values) == 1 else b"")
    except FormatError:
        raise RefusedError(416) from None
    if offset + length > share_size:
        raise RefusedError(416)
    return offset, length
