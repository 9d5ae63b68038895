"""Offers any StorageServer over HTTP: routing, authorization and limits. [spec wire 14, 16]

Checks come in the order path, Authorization, secrets, the rest. Nothing has an effect before all of them pass.
No body is read, and nothing is allocated for one, before the request is known to be permitted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from types import TracebackType

from grid.errors import GridError, PeerGoneError
from grid.limits import HTTP_BODIES_BYTES, HTTP_PIECES_BYTES, MAX_HTTP_ERROR_BODY, MAX_SHARED_BODY, SMALL_REQUEST
from grid.ports import Buffer
from grid.values import frozen
from grid.wire.budget.server_memory import MadeWay, PressedRate, ServerMemory
from grid.wire.http.format.authority import Gatekeeper, parse_secrets
from grid.wire.http.format.messages import Headers, first_value
from grid.wire.http.format.refusals import RefusedError, status_of
from grid.wire.http.format.routes import (
    REQUIRED_SECRETS,
    Endpoint,
    Route,
    UnknownPathError,
    WrongMethodError,
    find_route,
)
from grid.wire.http.server.body_room import BodyRoom
from grid.wire.http.server.exchange import Exchange
from grid.wire.http.server.pieces import PieceSizer

CBOR = b"application/cbor"
BYTES = b"application/octet-stream"
CBOR_HEADERS = ((b"Content-Type", CBOR),)
TEXT_HEADERS = ((b"Content-Type", b"text/plain; charset=utf-8"),)
BYTES_HEADERS = ((b"Content-Type", BYTES),)

SMALL_BODY = 64 * 1024
"""Bodies up to this size need not wait for room."""

NO_SECRETS: frozenset[str] = frozenset()


@frozen(kw_only=True)
class Request:
    """A permitted request: its route, its secrets, and the exchange for its answer."""

    route: Route
    secrets: Mapping[str, bytes]
    exchange: Exchange

    @property
    def headers(self) -> Headers:
        """The request's headers."""
        return self.exchange.head.headers

    def send_cbor(self, status: int, body: bytes) -> None:
        """Answer with a CBOR value."""
        self.exchange.send(status, CBOR_HEADERS, [body])

    def require_cbor_wanted(self) -> None:
        """RefusedError (406) unless the client accepts CBOR."""
        if not wants_cbor(self.headers):
            raise RefusedError(406)

    def require_cbor_sent(self) -> None:
        """RefusedError (415) if the body is declared as something other than CBOR."""
        values = self.headers.get(b"content-type", ())
        if any(value.partition(b";")[0].strip().lower() != CBOR for value in values):
            raise RefusedError(415)


Answerer = Callable[[Request], Awaitable[None]]


class Bounds:
    """The memory limits of one server's requests, over all listeners."""

    def __init__(self, memory: ServerMemory) -> None:
        self.pieces = PieceSizer(HTTP_PIECES_BYTES)
        self.bodies = BodyRoom(HTTP_BODIES_BYTES, memory.clock, memory.returned)
        self.answers = memory.answers
        self._memory = memory

    @asynccontextmanager
    async def body(self, exchange: Exchange, limit: int, weight: int = 1) -> AsyncIterator[Buffer]:
        """The whole body, held until the block ends; RefusedError (413) past the limit.

        weight: bytes of memory per body byte once it is parsed.
        """
        length = exchange.body_length
        if length is not None and length > limit:
            raise RefusedError(413)
        most = limit if length is None else length
        if most <= SMALL_BODY and most * (weight - 1) <= SMALL_REQUEST:  # It always has room: there is nothing to hold.
            yield await _collect(exchange, most, _no_wait)
            return
        held = self._long_body(exchange, most) if most > MAX_SHARED_BODY else self._shared_body(exchange, most)
        async with held as body, self._parsed(exchange, len(body) * (weight - 1)):
            yield body

    @asynccontextmanager
    async def _shared_body(self, exchange: Exchange, most: int) -> AsyncIterator[Buffer]:
        with self.bodies.claim(exchange) as claim:
            body = await _collect(exchange, most, _no_wait if most <= SMALL_BODY else claim.take)
            held = claim.keep()
        try:
            yield body
        finally:
            self.bodies.release(held)

    @asynccontextmanager
    async def _long_body(self, exchange: Exchange, most: int) -> AsyncIterator[Buffer]:
        """A long body, of which only a few fit at once: none of it is received before there is room for all of it."""
        memory = self._memory
        exchange.hold_back()
        held = await memory.requests.acquire(most, lambda: exchange.is_broken, exchange.peer_address)
        way: MadeWay | None = None
        try:
            if held < most:
                way = await memory.make_way(most - held)
            with _Arrival(memory, exchange, most) as arrival:
                body = await _collect(exchange, most, arrival.count)
            yield body
        finally:
            memory.requests.release(held)
            if way is not None:
                way.release()

    @asynccontextmanager
    async def _parsed(self, exchange: Exchange, size: int) -> AsyncIterator[None]:
        reserved = await self._memory.requests.acquire(size, lambda: exchange.is_broken) if size > SMALL_REQUEST else 0
        try:
            yield
        finally:
            self._memory.requests.release(reserved)


class _Arrival:
    """A long body on its way. Its connection is closed if it comes too slowly while others wait for room."""

    def __init__(self, memory: ServerMemory, exchange: Exchange, size: int) -> None:
        self._memory = memory
        self._exchange = exchange
        self._size = size
        self._received = 0
        self._rate = PressedRate(0, memory.clock.now())

    def __enter__(self) -> _Arrival:
        self._memory.coming[self] = None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        del self._memory.coming[self]

    async def count(self, size: int) -> None:
        """Count `size` more bytes."""
        self._received += size

    def hurry(self, now: float) -> None:
        """Give the body up if it comes too slowly, because others wait for room."""
        if self._rate.is_too_slow(self._size, self._received, now):
            self._exchange.abort()


async def _no_wait(_: int) -> None:
    """Do not wait: small bodies always have room."""


async def _collect(exchange: Exchange, limit: int, take: Callable[[int], Awaitable[None]]) -> Buffer:
    # It grows as data comes. A buffer of the announced length would take that memory before the first byte.
    body = bytearray()
    while pieces := await exchange.read_piece(1):
        size = sum(map(len, pieces))
        if len(body) + size > limit:
            raise RefusedError(413)
        await take(size)
        for piece in pieces:
            body += piece
        del pieces
    return memoryview(body)


class HttpService:
    """The handler of requests: decides whether a request is permitted, and passes it to the right method."""

    def __init__(self, gatekeeper: Gatekeeper, answerers: Mapping[Endpoint, Answerer], bounds: Bounds) -> None:
        """answerers: the methods of the endpoints offered here. The paths of other endpoints are unknown."""
        self._gatekeeper = gatekeeper
        self._answerers = answerers
        self._bounds = bounds

    async def serve(self, exchange: Exchange) -> None:
        """Answer one request; PeerGoneError if the client has gone."""
        try:
            request, answerer = self._admit(exchange)
            with self._bounds.pieces:
                await answerer(request)
        except PeerGoneError:
            exchange.abort()
            raise
        except GridError as error:
            if exchange.answered:
                exchange.abort()
            else:
                self._refuse(exchange, error)

    @staticmethod
    def _refuse(exchange: Exchange, error: GridError) -> None:
        """Answer with the error's status and, unless the status says it all, its text, which never contains a secret."""
        if isinstance(error, RefusedError):
            exchange.send(error.status)
        else:
            exchange.send(status_of(error), TEXT_HEADERS, [str(error).encode("utf-8", "replace")[:MAX_HTTP_ERROR_BODY]])

    def _admit(self, exchange: Exchange) -> tuple[Request, Answerer]:
        head = exchange.head
        try:
            route = find_route(head.method, head.target)
            answerer = self._answerers.get(route.endpoint)
        except UnknownPathError:
            raise RefusedError(404) from None
        except WrongMethodError:
            raise RefusedError(405) from None
        if answerer is None:
            raise RefusedError(404)
        if not self._gatekeeper.admits(head.headers):
            raise RefusedError(401)
        exchange.admit()
        required: Collection[str] = REQUIRED_SECRETS.get(route.endpoint, NO_SECRETS)
        return Request(route=route, secrets=parse_secrets(head.headers, required), exchange=exchange), answerer


def wants_cbor(headers: Headers) -> bool:
    """Whether the Accept header is absent or prefers exactly application/cbor. [spec wire 14]"""
    if b"accept" not in headers:
        return True
    value = first_value(headers, b"accept")
    if value is None:
        return False
    best, best_quality = b"", 0.0
    for item in value.split(b","):
        kind, *parameters = (part.strip().lower() for part in item.split(b";"))
        quality = _quality(parameters)
        if quality > best_quality:
            best, best_quality = kind, quality
    return best == CBOR


def _quality(parameters: list[bytes]) -> float:
    for parameter in parameters:
        if parameter.startswith(b"q="):
            try:
                return min(1.0, max(0.0, float(parameter[2:])))
            except ValueError:
                return 0.0
    return 1.0
