"""How a client asks: requests packed, sent over the pool's connections, and their refusals as errors of our tree.

A request that may be repeated is sent again when a connection kept from before turns out to be closed; any other
goes out only over connections that are surely open. Cost: one write and one round trip on an open connection.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import field, frozen
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
from grid.wire.connections.connect_watch import OnQuiet, ignore_quiet
from grid.wire.http.client.connection import ChooseReceiver, Collector, Receiver
from grid.wire.http.client.pool import Address, Pool
from grid.wire.http.format.authority import pack_secrets
from grid.wire.http.format.messages import ResponseHead, pack_head

T = TypeVar("T")

MAX_REMOTE_TEXT = 300

NO_SECRETS: Mapping[str, bytes] = {}


@frozen
class Access:
    """An address, and the headers that open it: they hold the swissnum, or what stands for it."""

    address: Address
    authorization: bytes = field(repr=False)

    @property
    def host(self) -> bytes:
        """The Host header's value."""
        name = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        return f"{name}:{self.address.port}".encode("ascii")


@frozen(kw_only=True)
class HttpRequest:
    """One request. Repeatable: asking twice has the same effect as asking once."""

    method: bytes
    path: bytes
    secrets: Mapping[str, bytes] = field(repr=False, default=NO_SECRETS)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: Sequence[Buffer] | None = field(repr=False, default=None)
    repeatable: bool = True

    def pack(self, access: Access) -> list[Buffer]:
        """The request in pieces; those of the body are as they are."""
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
    """An answer whose body is at hand."""

    status: int
    head: ResponseHead
    body: Buffer = b""


class Requester:
    """Asks one server; where: how messages call it. on_quiet: called when an attempt to connect gets no sign from it."""

    def __init__(self, pool: Pool, where: str, on_quiet: OnQuiet = ignore_quiet) -> None:
        self.pool = pool
        self.where = where
        self.on_quiet = on_quiet

    async def send(self, access: Access, request: HttpRequest, choose: ChooseReceiver) -> ResponseHead:
        """The head of the answer, its body received whole; PeerError, or what the receiver raised."""
        pieces = request.pack(access)
        while True:
            connection, was_used = await self.pool.acquire(
                access.address, self.where, fresh=not request.repeatable, on_quiet=self.on_quiet
            )
            try:
                return await connection.ask(pieces, choose)
            except PeerGoneError:
                if not (was_used and request.repeatable) or connection.got_bytes:
                    raise
            finally:
                self.pool.release(access.address, connection)

    async def ask(self, access: Access, request: HttpRequest, limit: int = MAX_HTTP_CBOR_ANSWER) -> Reply:
        """The answer, whatever its status; PeerError if it cannot be had."""
        received: list[Collector] = []

        def choose(head: ResponseHead) -> Receiver:
            received.append(Collector(limit if head.status < 300 else MAX_HTTP_ERROR_BODY, self.where))
            return received[0]

        head = await self.send(access, request, choose)
        return Reply(head.status, head, received[0].body)

    async def require(self, access: Access, request: HttpRequest, limit: int = MAX_HTTP_CBOR_ANSWER) -> Reply:
        """The answer of a request that was granted; the error for any other status than 2xx."""
        reply = await self.ask(access, request, limit)
        if reply.status >= 300:
            raise self.refusal(reply)
        return reply

    def refusal(self, reply: Reply, errors: Mapping[int, type[GridError]] | None = None) -> GridError:
        """The error for a status; errors: what some statuses mean to the one request."""
        text = printable(reply.body)
        message = f"{self.where} refused with status {reply.status}{': ' if text else ''}{text}"
        kind = (errors or {}).get(reply.status)
        if kind is not None:
            return kind(message)
        if reply.status == 507:
            return NoSpaceError(message)
        return PeerRefusedError(message, kind=f"HTTP {reply.status}")

    def misbehaved(self, error: FormatError | str) -> PeerError:
        """The error for an answer that cannot be what it has to be."""
        return PeerError(f"{self.where} sent an invalid answer: {error}")


def printable(body: Buffer) -> str:
    """Hostile text for a message: cut, and without control characters; nothing if it is a web page."""
    text = bytes(body[:MAX_REMOTE_TEXT]).decode("utf-8", "replace").strip()
    return "" if text.startswith("<") else "".join(letter if letter.isprintable() else " " for letter in text)


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Every result, in order, all run at once; the first error is raised when all have ended. Cancelling cancels all."""
    tasks = [Deferred.fromCoroutine(item) for item in work]
    outcomes: Any = await DeferredList(tasks, consumeErrors=True)
    for succeeded, outcome in outcomes:
        if not succeeded:
            raise outcome.value
    return [outcome for _, outcome in outcomes]


async def first_of(work: Iterable[Coroutine[Any, Any, T]]) -> T:
    """The first result, the others cancelled; an error if all have failed, one that says more than that nobody listens."""
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
