"""Sends requests: packs them, uses the pool's connections, and converts refusals to GridErrors.

A request that may be repeated is sent again if a reused connection turns out to be closed. Any other request
uses only connections that are surely open. Cost: one write and one round trip on an open connection.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList

from grid.errors import (
    FormatError,
    GridError,
    NobodyListensError,
    NoSpaceError,
    PeerError,
    PeerGoneError,
    PeerRefusedError,
)
from grid.limits import MAX_HTTP_CBOR_ANSWER, MAX_HTTP_ERROR_BODY
from grid.ports import Buffer
from grid.values import field, frozen
from grid.wire.connections.connect_watch import OnQuiet, ignore_quiet
from grid.wire.http.client.connection import ChooseReceiver, Collector, Receiver
from grid.wire.http.client.pool import Address, Pool
from grid.wire.http.client.spread import Direction
from grid.wire.http.format.authority import pack_secrets
from grid.wire.http.format.messages import ResponseHead, pack_head

T = TypeVar("T")

MAX_REMOTE_TEXT = 300

NO_SECRETS: Mapping[str, bytes] = {}


@frozen
class Access:
    """An address, and the headers that authorize requests; they contain the swissnum or a token in its place."""

    address: Address
    authorization: bytes = field(repr=False)

    @property
    def host(self) -> bytes:
        """The value of the Host header."""
        name = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return f"{name}:{self.address.port}".encode("ascii")


@frozen(kw_only=True)
class HttpRequest:
    """One request. repeatable: sending it twice has the same effect as sending it once. most: where most of its bytes go, if many."""

    method: bytes
    path: bytes
    secrets: Mapping[str, bytes] = field(repr=False, default=NO_SECRETS)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: Sequence[Buffer] | None = field(repr=False, default=None)
    repeatable: bool = True
    most: Direction | None = None

    def pack(self, access: Access) -> list[Buffer]:
        """The request in pieces; pieces of the body are not copied."""
        headers = [
            (b"Host", access.host),
            (b"Authorization", access.authorization),
            *self.headers,
            *pack_secrets(self.secrets),
        ]
        body = self.body or ()
        if self.body is not None:
            headers.append((b"Content-Length", b"%d" % sum(map(len, body))))
        return [pack_head(b"%b %b HTTP/1.1" % (self.method, self.path), headers), *body]


@frozen
class Reply:
    """An answer with its body."""

    status: int
    head: ResponseHead
    body: Buffer = b""


class Requester:
    """Sends requests to one server. where: its name in messages. on_quiet: called when an attempt to connect gets no sign of life."""

    def __init__(self, pool: Pool, where: str, on_quiet: OnQuiet = ignore_quiet) -> None:
        self.pool = pool
        self.where = where
        self.on_quiet = on_quiet

    async def send(self, access: Access, request: HttpRequest, choose: ChooseReceiver) -> ResponseHead:
        """The head of the answer, after its body was received; PeerError, or an error of the receiver."""
        pieces = request.pack(access)
        while True:
            connection, was_used = await self.pool.acquire(
                access.address,
                self.where,
                fresh=not request.repeatable,
                most=request.most,
                on_quiet=self.on_quiet,
            )
            try:
                return await connection.ask(pieces, choose)
            except PeerGoneError:
                if not (was_used and request.repeatable) or connection.got_bytes:
                    raise
            finally:
                self.pool.release(access.address, connection)

    async def ask(self, access: Access, request: HttpRequest, limit: int = MAX_HTTP_CBOR_ANSWER) -> Reply:
        """The answer, whatever its status; PeerError if there is none."""
        received: list[Collector] = []

        def choose(head: ResponseHead) -> Receiver:
            received.append(Collector(limit if head.status < 300 else MAX_HTTP_ERROR_BODY, self.where))
            return received[0]

        head = await self.send(access, request, choose)
        return Reply(head.status, head, received[0].body)

    async def require(self, access: Access, request: HttpRequest, limit: int = MAX_HTTP_CBOR_ANSWER) -> Reply:
        """The answer if its status is 2xx; otherwise raises the error for the status."""
        reply = await self.ask(access, request, limit)
        if reply.status >= 300:
            raise self.refusal(reply)
        return reply

    def refusal(self, reply: Reply, errors: Mapping[int, type[GridError]] | None = None) -> GridError:
        """The error for a status. errors: what some statuses mean for this request."""
        text = printable(reply.body)
        message = f"{self.where} refused with status {reply.status}{': ' if text else ''}{text}"
        kind = (errors or {}).get(reply.status)
        if kind is not None:
            return kind(message)
        if reply.status == 507:
            return NoSpaceError(message)
        return PeerRefusedError(message, kind=f"HTTP {reply.status}")

    def misbehaved(self, error: FormatError | str) -> PeerError:
        """The error for an invalid answer."""
        return PeerError(f"{self.where} sent an invalid answer: {error}")


def printable(body: Buffer) -> str:
    """Hostile text for a message: shortened, without control characters; "" for a web page."""
    text = bytes(body[:MAX_REMOTE_TEXT]).decode("utf-8", "replace").strip()
    return "" if text.startswith("<") else "".join(letter if letter.isprintable() else " " for letter in text)


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all and return every result, in order. After all have ended, the first error is raised. Canceling cancels all."""
    tasks = [Deferred.fromCoroutine(item) for item in work]
    outcomes: Any = await DeferredList(tasks, consumeErrors=True)
    for succeeded, outcome in outcomes:
        if not succeeded:
            raise outcome.value
    return [outcome for _, outcome in outcomes]


async def first_of(work: Iterable[Coroutine[Any, Any, T]]) -> T:
    """The first result; the others are canceled. If all fail, the error that says more than that nobody listens."""
    tasks = [Deferred.fromCoroutine(item) for item in work]
    try:
        outcome: Any = await DeferredList(tasks, fireOnOneCallback=True, consumeErrors=True)
    finally:
        for task in tasks:
            task.cancel()
    if isinstance(outcome, tuple):
        result: T = outcome[0]
        return result
    errors = [failure.value for _, failure in outcome]
    raise next((error for error in reversed(errors) if not isinstance(error, NobodyListensError)), errors[-1])
