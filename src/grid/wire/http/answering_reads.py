"""The server's answers to reads: whole shares, ranges, and batches, streamed in pieces. [spec wire 17]

Cost: a range of at most a piece takes one read from the store and one write to the socket. Longer ones are read
piece by piece, the next only when the socket has taken the last, so that a slow reader costs one piece. A long
range that ends beyond its share costs a few probes more, since its length must be told first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from grid.errors import GridError, PeerError
from grid.limits import MAX_FILE_SIZE, MAX_HTTP_ADVISORY_BODY
from grid.ports import Buffer, Range, ShareKind, ShareNumber, StorageIndex, StorageServer
from grid.wire.batch import parse_ranges, parse_wants
from grid.wire.finds import MAX_FIND_MESSAGE, finder_of, pack_find_answers, parse_finds
from grid.wire.http.answers import (
    EXTENSIONS_HEADER,
    EXTENSIONS_VALUE,
    FIND_EXTENSION,
    STORE_EXTENSION,
    pack_numbers,
    pack_version,
)
from grid.wire.http.bodies import parse_reason
from grid.wire.http.budget import SMALLEST_PIECE
from grid.wire.http.frames import (
    END_FRAME,
    FRAME,
    MAX_READ_BODY,
    Frame,
    pack_answer,
)
from grid.wire.http.partition import Part, partition
from grid.wire.http.ranges import pack_content_range, parse_range
from grid.wire.http.refusals import RefusedError
from grid.wire.http.routes import Endpoint
from grid.wire.http.service import CBOR_HEADERS, OCTETS_HEADERS, Answerer, Bounds, Request
from grid.wire.slots import MAX_SLOT_WANTS, parse_slot_wants

Read = Callable[[Sequence[Range]], Awaitable[Sequence[Buffer]]]
"""Those ranges of one share; RefusedError (404) if it is not there."""

PROBES = 64


class ReadAnswers:
    """Everything that changes nothing."""

    def __init__(self, server: StorageServer, bounds: Bounds, *, extensions: bool) -> None:
        """Whether the version says that there are batched endpoints: extensions."""
        self._server = server
        self._find = finder_of(server)
        self._bounds = bounds
        offers = (EXTENSIONS_VALUE, STORE_EXTENSION, FIND_EXTENSION) if extensions else ()
        offered = tuple((EXTENSIONS_HEADER, offer) for offer in offers)
        self._version_headers = (*CBOR_HEADERS, *offered)

    def answerers(self) -> dict[Endpoint, Answerer]:
        """By endpoint."""
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
        }

    async def _version(self, request: Request) -> None:
        request.require_cbor_wanted()
        body = pack_version(await self._server.get_version())
        request.exchange.send(200, self._version_headers, [body])

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

        async def read(ranges: Sequence[Range]) -> Sequence[Buffer]:
            return _share(await self._server.read_shares(index, {number: ranges}), number)

        await self._send_share(request, read)

    async def _read_mutable(self, request: Request) -> None:
        index, number = request.route.storage_index, request.route.share_number

        async def read(ranges: Sequence[Range]) -> Sequence[Buffer]:
            return _share(await self._server.read_slot(index, frozenset((number,)), ranges), number)

        await self._send_share(request, read)

    async def _send_share(self, request: Request, read: Read) -> None:
        values = request.headers.get(b"range")
        if values is None:
            await self._send_whole(request, read)
        elif len(values) != 1:
            raise RefusedError(416)
        else:
            try:
                offset, length = parse_range(values[0])
            except GridError:
                raise RefusedError(416) from None
            await self._send_range(request, read, offset, length)

    async def _send_whole(self, request: Request, read: Read) -> None:
        exchange = request.exchange
        asked = self._bounds.pieces.piece_size
        (piece,) = await read([(0, asked)])
        if len(piece) < asked:
            exchange.send(200, OCTETS_HEADERS, [piece])
            return
        exchange.start(200, OCTETS_HEADERS, None)
        offset = 0
        while piece:
            offset += len(piece)
            await exchange.write([piece])
            asked = self._bounds.pieces.piece_size
            (piece,) = await read([(offset, asked)])
        exchange.finish()

    async def _send_range(self, request: Request, read: Read, offset: int, length: int) -> None:
        exchange = request.exchange
        length = max(0, min(length, MAX_FILE_SIZE - offset))
        asked = min(length, self._bounds.pieces.piece_size)
        if length > asked:
            length = await _clipped(read, offset, length)
            asked = min(length, asked)
        (piece,) = await read([(offset, asked)]) if length else await read([(0, 0)])
        if length > asked == len(piece):
            exchange.start(206, _range_headers(offset, length), length, [piece])
            await self._send_rest(request, read, offset + asked, length - asked)
        elif piece:
            exchange.send(206, _range_headers(offset, len(piece)), [piece])
        else:
            exchange.send(204)

    async def _send_rest(self, request: Request, read: Read, offset: int, length: int) -> None:
        await request.exchange.write(())
        while length:
            asked = min(length, self._bounds.pieces.piece_size)
            (piece,) = await read([(offset, asked)])
            if len(piece) < asked:
                raise PeerError("a share became shorter while it was read")
            await request.exchange.write([piece])
            offset += asked
            length -= asked

    async def _advise_immutable(self, request: Request) -> None:
        await self._advise(request, "immutable")

    async def _advise_mutable(self, request: Request) -> None:
        await self._advise(request, "mutable")

    async def _advise(self, request: Request, kind: ShareKind) -> None:
        request.require_cbor_sent()
        index, number = request.route.storage_index, request.route.share_number
        body, _ = await self._bounds.read_body(request.exchange, MAX_HTTP_ADVISORY_BODY)
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
        body, _ = await self._bounds.read_body(request.exchange, MAX_READ_BODY)
        ranges = parse_ranges(bytes(body))
        index = request.route.storage_index
        if sum(length for _, length in ranges) <= SMALLEST_PIECE:
            found = await self._server.find_shares(index, ranges)
            request.exchange.send(200, OCTETS_HEADERS, pack_answer(found))
        else:
            held = await self._server.find_shares(index)
            await self._send_parts(request, dict.fromkeys(held, ranges))

    async def _batched_finds(self, request: Request) -> None:
        body, _ = await self._bounds.read_body(request.exchange, MAX_FIND_MESSAGE)
        answers = await self._find(parse_finds(body))
        request.exchange.send(200, OCTETS_HEADERS, [pack_find_answers(answers)])

    async def _batched_read(self, request: Request) -> None:
        body, _ = await self._bounds.read_body(request.exchange, MAX_READ_BODY)
        await self._send_parts(request, parse_wants(bytes(body)))

    async def _send_parts(self, request: Request, wants: Mapping[ShareNumber, Sequence[Range]]) -> None:
        exchange = request.exchange
        for parts, is_last_group in partition(wants, lambda: self._bounds.pieces.piece_size):
            pieces = await self._read_parts(request.route.storage_index, parts, wants)
            if is_last_group:
                pieces.append(END_FRAME)
            if not exchange.answered:
                if is_last_group:
                    exchange.send(200, OCTETS_HEADERS, pieces)
                    return
                exchange.start(200, OCTETS_HEADERS, None)
            await exchange.write(pieces)
        exchange.finish()

    async def _read_parts(
        self, index: StorageIndex, parts: Sequence[Part], wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> list[Buffer]:
        asked: dict[ShareNumber, list[Range]] = {}
        for part in parts:
            asked.setdefault(part.share_number, []).append((part.offset, part.length))
        found = {number: iter(data) for number, data in (await self._server.read_shares(index, asked)).items()}
        pieces: list[Buffer] = []
        for part in parts:
            data = found.get(part.share_number)
            if data is None:
                if not part.begins_share:
                    raise PeerError("a share went while it was read")
                continue
            if part.begins_share:
                pieces.append(FRAME.pack(Frame.SHARE, part.share_number, len(wants[part.share_number])))
            piece = next(data)
            kind = Frame.LAST if part.ends_range else Frame.DATA
            if piece or kind is Frame.LAST:
                pieces += (FRAME.pack(kind, part.share_number, len(piece)), piece)
        return pieces

    async def _batched_slot_read(self, request: Request) -> None:
        body, _ = await self._bounds.read_body(request.exchange, MAX_SLOT_WANTS)
        numbers, ranges = parse_slot_wants(bytes(body))
        room = await self._bounds.answers.acquire(sum(length for _, length in ranges) * max(1, len(numbers)))
        try:
            found = await self._server.read_slot(request.route.storage_index, numbers, ranges)
            request.exchange.send(200, OCTETS_HEADERS, pack_answer(found))
            await request.exchange.write(())
        finally:
            self._bounds.answers.release(room)


def _share(found: Mapping[ShareNumber, Sequence[Buffer]], number: ShareNumber) -> Sequence[Buffer]:
    if number not in found:
        raise RefusedError(404)
    return found[number]


def _range_headers(offset: int, length: int) -> tuple[tuple[bytes, bytes], ...]:
    return (*OCTETS_HEADERS, (b"Content-Range", pack_content_range(offset, length)))


async def _clipped(read: Read, offset: int, length: int) -> int:
    """How many of those octets the share has: found by looking at single ones, PROBES at a time."""
    (last,) = await read([(offset + length - 1, 1)])
    if last:
        return length
    low, high = 0, length - 1  # At least and at most that many are there.
    while low < high:
        step = -(-(high - low) // PROBES)
        counts = sorted({min(high, low + step * (i + 1)) for i in range(PROBES)})
        answers = await read([(offset + count - 1, 1) for count in counts])
        there = sum(1 for octet in answers if octet)
        low, high = (counts[there - 1] if there else low), (counts[there] - 1 if there < len(counts) else high)
    return low
