"""The server's answers to reads: whole shares, ranges, and batches, streamed in pieces. [spec wire 17]

Cost: a range of at most a piece, or what a find requests of all shares, takes one read from the store and one write to the socket. Longer ones are read
piece by piece, each when the socket has taken the one before, so that a slow reader costs one piece. A long
range that reaches past the end of its share costs a few more probes, because its length must be sent first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from grid.engine.requests import UNREAD
from grid.errors import GridError, PeerError
from grid.limits import MAX_FILE_SIZE, MAX_HTTP_ADVISORY_BODY, PARSED_WEIGHT
from grid.ports import Buffer, Clock, Range, ShareKind, ShareNumber, StorageIndex, StorageServer
from grid.wire.budget.measured import MeasuredReads, clipped_length
from grid.wire.budget.reservation import Reservation
from grid.wire.http.format.answers import (
    DATE_HEADER,
    EXTENSIONS_HEADER,
    EXTENSIONS_VALUE,
    FIND_EXTENSION,
    SLOTS_EXTENSION,
    STORE_EXTENSION,
    pack_date,
    pack_numbers,
    pack_version,
    room_headers,
)
from grid.wire.http.format.bodies import parse_reason
from grid.wire.http.format.frames import (
    END_FRAME,
    FRAME,
    MAX_READ_BODY,
    Frame,
    pack_answer,
)
from grid.wire.http.format.ranges import pack_content_range, parse_range
from grid.wire.http.format.refusals import RefusedError
from grid.wire.http.format.routes import Endpoint
from grid.wire.http.server.pieces import SMALLEST_PIECE, Part, partition
from grid.wire.http.server.service import BYTES_HEADERS, CBOR_HEADERS, Answerer, Bounds, Request
from grid.wire.packed.find_messages import MAX_FIND_MESSAGE, pack_find_answers, parse_finds
from grid.wire.packed.share_ranges import parse_ranges, parse_wants
from grid.wire.packed.slots import MAX_SLOT_WANTS, parse_slot_wants

Read = Callable[[Sequence[Range]], Awaitable[Sequence[Buffer]]]
"""Reads those ranges of one share; RefusedError (404) if the share does not exist."""


class ReadAnswers:
    """The answers to all requests that change nothing."""

    def __init__(self, server: StorageServer, bounds: Bounds, clock: Clock, *, extensions: bool) -> None:
        """extensions: whether the version offers the batched endpoints."""
        self._clock = clock
        self._server = server
        self._reads = MeasuredReads(server)
        self._bounds = bounds
        offers = (EXTENSIONS_VALUE, STORE_EXTENSION, FIND_EXTENSION, SLOTS_EXTENSION) if extensions else ()
        offered = tuple((EXTENSIONS_HEADER, offer) for offer in offers)
        self._has_extensions = extensions
        self._version_headers = (*CBOR_HEADERS, *offered)

    def answerers(self) -> dict[Endpoint, Answerer]:
        """The method for each endpoint."""
        return {
            Endpoint.VERSION: self._version,
            Endpoint.LIST_IMMUTABLE: self._list_immutable,
            Endpoint.LIST_MUTABLE: self._list_mutable,
            Endpoint.READ_IMMUTABLE: self._read_immutable,
            Endpoint.READ_MUTABLE: self._read_mutable,
            Endpoint.ADVISE_IMMUTABLE: self._advise_immutable,
            Endpoint.ADVISE_MUTABLE: self._advise_mutable,
            Endpoint.BATCHED_FIND: self._batched_find,
            Endpoint.BATCHED_FINDS: self._batched_finds,
            Endpoint.BATCHED_READ: self._batched_read,
            Endpoint.BATCHED_SLOT_READ: self._batched_slot_read,
            Endpoint.BATCHED_SLOT_READS: self._batched_slot_reads,
        }

    async def _version(self, request: Request) -> None:
        request.require_cbor_wanted()
        version = await self._server.get_version()
        room = room_headers(version) if self._has_extensions else ()
        date = (DATE_HEADER, pack_date(self._clock.unix_time()))
        request.exchange.send(200, (*self._version_headers, *room, date), [pack_version(version)])

    async def _list_immutable(self, request: Request) -> None:
        request.require_cbor_wanted()
        found = await self._server.find_shares(request.route.storage_index)
        request.send_cbor(200, pack_numbers(found.keys()))

    async def _list_mutable(self, request: Request) -> None:
        request.require_cbor_wanted()
        found = await self._server.read_slot(request.route.storage_index, frozenset(), ())
        request.send_cbor(200, pack_numbers(found.keys()))

    async def _read_immutable(self, request: Request) -> None:
        index, number = request.route.storage_index, request.route.share_number
        with request.exchange.reserve(self._bounds.answers) as room:

            async def read(ranges: Sequence[Range]) -> Sequence[Buffer]:
                return _share(await self._reads.read_shares(room, index, {number: ranges}), number)

            await self._send_share(request, read, room)

    async def _read_mutable(self, request: Request) -> None:
        index, number = request.route.storage_index, request.route.share_number
        with request.exchange.reserve(self._bounds.answers) as room:

            async def read(ranges: Sequence[Range]) -> Sequence[Buffer]:
                return _share(await self._reads.read_slot(room, index, frozenset((number,)), ranges), number)

            await self._send_share(request, read, room)

    async def _send_share(self, request: Request, read: Read, room: Reservation) -> None:
        values = request.headers.get(b"range")
        if values is None:
            await self._send_whole(request, read, room)
        elif len(values) != 1:
            raise RefusedError(416)
        else:
            try:
                offset, length = parse_range(values[0])
            except GridError:
                raise RefusedError(416) from None
            await self._send_range(request, read, room, offset, length)
        await request.exchange.sent(room)

    async def _send_whole(self, request: Request, read: Read, room: Reservation) -> None:
        exchange = request.exchange
        asked = self._bounds.pieces.piece_size
        (piece,) = await read([(0, asked)])
        if len(piece) < asked:
            exchange.send(200, BYTES_HEADERS, [piece])
            return
        exchange.start(200, BYTES_HEADERS, None)
        offset = 0
        while piece:
            offset += len(piece)
            exchange.write([piece])
            del piece  # Otherwise it would be held together with the next one.
            await self._make_room(request, room)
            asked = self._bounds.pieces.piece_size
            (piece,) = await read([(offset, asked)])
        exchange.finish()

    @staticmethod
    async def _make_room(request: Request, room: Reservation) -> None:
        """Return when everything written is sent and nothing is held for it."""
        await request.exchange.sent(room)
        room.empty()

    async def _send_range(self, request: Request, read: Read, room: Reservation, offset: int, length: int) -> None:
        exchange = request.exchange
        length = max(0, min(length, MAX_FILE_SIZE - offset))
        asked = min(length, self._bounds.pieces.piece_size)
        if length > asked:
            length = await clipped_length(read, offset, length)
            asked = min(length, asked)
            room.empty()
        (piece,) = await read([(offset, asked)]) if length else await read([(0, 0)])
        if length > asked == len(piece):
            exchange.start(206, _range_headers(offset, length), length, [piece])
            del piece
            await self._send_rest(request, read, room, offset + asked, length - asked)
        elif piece:
            exchange.send(206, _range_headers(offset, len(piece)), [piece])
        else:
            exchange.send(204)

    async def _send_rest(self, request: Request, read: Read, room: Reservation, offset: int, length: int) -> None:
        while length:
            await self._make_room(request, room)
            asked = min(length, self._bounds.pieces.piece_size)
            (piece,) = await read([(offset, asked)])
            if len(piece) < asked:
                raise PeerError("a share became shorter while it was read")
            request.exchange.write([piece])
            del piece
            offset += asked
            length -= asked

    async def _advise_immutable(self, request: Request) -> None:
        await self._advise(request, "immutable")

    async def _advise_mutable(self, request: Request) -> None:
        await self._advise(request, "mutable")

    async def _advise(self, request: Request, kind: ShareKind) -> None:
        request.require_cbor_sent()
        index, number = request.route.storage_index, request.route.share_number
        async with self._bounds.body(request.exchange, MAX_HTTP_ADVISORY_BODY) as body:
            reason = parse_reason(body)
        if kind == "immutable":
            found = await self._server.find_shares(index)
        else:
            found = await self._server.read_slot(index, frozenset((number,)), ())
        if number not in found:
            raise RefusedError(404)
        await self._server.advise_corrupt(kind, index, number, reason)
        request.exchange.send(200)

    async def _batched_find(self, request: Request) -> None:
        index = request.route.storage_index
        async with self._records(request, MAX_READ_BODY) as (body, room):
            ranges = parse_ranges(body)
            if sum(length for _, length in ranges) <= SMALLEST_PIECE:
                request.exchange.send(
                    200, BYTES_HEADERS, pack_answer(await self._reads.find_shares(room, index, ranges))
                )
            elif rest := await self._send_first(request, room, ranges):
                await self._send_parts(request, room, dict.fromkeys(rest, ranges))

    async def _send_first(self, request: Request, room: Reservation, ranges: Sequence[Range]) -> list[ShareNumber]:
        """Send those ranges of the shares that one call can read as one piece, and return the other shares."""
        exchange = request.exchange
        found = await self._reads.find_some(room, request.route.storage_index, ranges, self._bounds.pieces.piece_size)
        rest = [number for number, data in found.items() if not data]
        pieces = pack_answer({number: data for number, data in found.items() if data})
        del found  # Otherwise it would be held until all of it is sent.
        if not rest:
            exchange.send(200, BYTES_HEADERS, pieces)
        elif len(pieces) > 1:
            exchange.start(200, BYTES_HEADERS, None)
            exchange.write(pieces[:-1])  # Without the end of the answer.
            del pieces
            await self._make_room(request, room)
        return rest

    async def _batched_finds(self, request: Request) -> None:
        async with self._records(request, MAX_FIND_MESSAGE) as (body, room):
            finds = parse_finds(body)
            request.exchange.send(200, BYTES_HEADERS, pack_find_answers(await self._reads.find_each(room, finds)))

    async def _batched_slot_reads(self, request: Request) -> None:
        async with self._records(request, MAX_FIND_MESSAGE) as (body, room):
            finds = parse_finds(body)
            request.exchange.send(200, BYTES_HEADERS, pack_find_answers(await self._reads.read_slots(room, finds)))

    async def _batched_read(self, request: Request) -> None:
        async with self._records(request, MAX_READ_BODY) as (body, room):
            await self._send_parts(request, room, parse_wants(body))

    @asynccontextmanager
    async def _records(self, request: Request, limit: int) -> AsyncIterator[tuple[bytes, Reservation]]:
        """A request that consists of records, and room for its answer. Leave the block when the answer is sent."""
        with request.exchange.reserve(self._bounds.answers) as room:
            async with self._bounds.body(request.exchange, limit, PARSED_WEIGHT) as body:
                room.holds_request = True
                yield bytes(body), room
                await request.exchange.sent(room)

    async def _send_parts(
        self, request: Request, room: Reservation, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> None:
        exchange = request.exchange
        unread: set[ShareNumber] = set()
        for parts, is_last_group in partition(wants, lambda: self._bounds.pieces.piece_size):
            parts = [part for part in parts if part.share_number not in unread]
            pieces = await self._read_parts(room, request.route.storage_index, parts, wants, unread)
            if is_last_group:
                pieces.append(END_FRAME)
            if not exchange.answered:
                if is_last_group:
                    exchange.send(200, BYTES_HEADERS, pieces)
                    return
                exchange.start(200, BYTES_HEADERS, None)
            exchange.write(pieces)
            del pieces
            await self._make_room(request, room)
        exchange.finish()

    async def _read_parts(
        self,
        room: Reservation,
        index: StorageIndex,
        parts: Sequence[Part],
        wants: Mapping[ShareNumber, Sequence[Range]],
        unread: set[ShareNumber],
    ) -> list[Buffer]:
        """The frames of those parts. unread: takes the shares that the disk does not give, of which the answer has no ranges."""
        asked: dict[ShareNumber, list[Range]] = {}
        for part in parts:
            asked.setdefault(part.share_number, []).append((part.offset, part.length))
        answer = await self._reads.read_shares(room, index, asked)
        found = {number: iter(data) for number, data in answer.items()}
        lacking = {number for number, data in answer.items() if not data}
        del answer  # Or it would be held as long as its last piece.
        pieces: list[Buffer] = []
        for part in parts:
            data = found.get(part.share_number)
            if data is None:
                if not part.begins_share:
                    raise PeerError("a share went while it was read")
                continue
            if part.share_number in lacking:
                if part.begins_share:
                    unread.add(part.share_number)
                    pieces.append(FRAME.pack(Frame.SHARE, part.share_number, 0))
                if part.share_number not in unread:
                    raise PeerError(UNREAD)
                continue
            if part.begins_share:
                pieces.append(FRAME.pack(Frame.SHARE, part.share_number, len(wants[part.share_number])))
            piece = next(data)
            kind = Frame.LAST if part.ends_range else Frame.DATA
            if piece or kind is Frame.LAST:
                pieces += (FRAME.pack(kind, part.share_number, len(piece)), piece)
        return pieces

    async def _batched_slot_read(self, request: Request) -> None:
        async with self._records(request, MAX_SLOT_WANTS) as (body, room):
            wants = parse_slot_wants(body)
            # No name refers to what was read, so that the outbox can release it piece by piece.
            request.exchange.send(
                200,
                BYTES_HEADERS,
                pack_answer(await self._reads.read_slot(room, request.route.storage_index, *wants)),
            )


def _share(found: Mapping[ShareNumber, Sequence[Buffer]], number: ShareNumber) -> Sequence[Buffer]:
    if number not in found:
        raise RefusedError(404)
    if not found[number]:
        raise PeerError(UNREAD)
    return found[number]


def _range_headers(offset: int, length: int) -> tuple[tuple[bytes, bytes], ...]:
    return (*BYTES_HEADERS, (b"Content-Range", pack_content_range(offset, length)))
