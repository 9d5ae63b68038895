"""Requests to a gateway: a connection pool, deadlines, and answers of bounded size.

It follows no redirects, and repeats no request that might have an effect twice. No error contains a request's URL,
because that contains a capability.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from treq.client import HTTPClient
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.error import TimeoutError as ConnectTimeoutError
from twisted.python.failure import Failure
from twisted.web._newclient import RequestNotSent
from twisted.web.client import (
    RequestGenerationFailed,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.http_headers import Headers

from grid.cli.webapi.address import GatewayAddress, tls_policy
from grid.cli.webapi.agent import make_agent, make_pool
from grid.cli.webapi.bodies import AnswerBody, SourceProducer
from grid.cli.webapi.refusals import MAX_REFUSAL_TEXT, GatewayError, refusal
from grid.errors import GridError, PeerGoneError, PeerTimeoutError
from grid.mutable.sources import MemorySource
from grid.ports import Runtime, Source
from grid.runtime import with_deadline
from grid.values import frozen

CONNECT_S = 30.0
ANSWER_S = 900.0
"""Seconds to wait for an answer: 1.20 sends nothing until a whole file is checked or repaired."""
SLOWEST = 128 * 1024
"""The slowest rate, in bytes per second, at which a gateway is expected to store what it received."""
STALL_S = 300.0
"""Seconds that an answer may stall."""
STREAM_STALL_S = 3600.0
"""Seconds that a stream over a tree may be silent: a single object may be large."""
KEPT_IDLE_S = 10
"""Seconds to keep an idle connection: less than any gateway keeps it."""

USER_AGENT = "grid"

Query = Sequence[tuple[str, str]]


@frozen
class Answer:
    """An answer with a successful status. length: of the body, if known."""

    status: int
    length: int | None
    content_range: str
    body: AnswerBody

    async def read_all(self, limit: int) -> bytes:
        """Read the whole body; GatewayError if it exceeds the limit."""
        pieces = []
        size = 0
        while piece := await self.body.next():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise GatewayError(f"the gateway's answer is longer than the {limit} bytes allowed")
        return b"".join(pieces)


class GatewayClient:
    """Sends requests to one gateway."""

    def __init__(
        self, address: GatewayAddress, runtime: Runtime, reactor: Any, warn: Callable[[str], None] = lambda text: None
    ) -> None:
        """Opens nothing yet. warn: called with each warning of the gateway.

        ConfigError for an invalid file of certificates.
        """
        self.address = address
        self.runtime = runtime
        self._reactor = reactor
        self._warn = warn
        self._pool = make_pool(reactor, persistent=True, idle_s=KEPT_IDLE_S)
        policy = tls_policy(address)
        self._client = HTTPClient(make_agent(reactor, policy, CONNECT_S, self._pool))
        # For answers that leave the connection open when they fail halfway, as 1.20's do: a fresh connection each.
        once = make_agent(reactor, policy, CONNECT_S, make_pool(reactor, persistent=False))
        self._client_once = HTTPClient(once)

    async def close(self) -> None:
        """Close the idle connections, including that of an answer just given up."""
        await self.runtime.clock.sleep(0)
        await self._pool.closeCachedConnections()

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        segments: Sequence[str],
        query: Query = (),
        *,
        body: Source | bytes | None = None,
        headers: Sequence[tuple[str, str]] = (),
        once: bool = False,
        stall_s: float = STALL_S,
        sent: Callable[[int], None] | None = None,
        conflict: Callable[[str], GridError] | None = None,
    ) -> AsyncGenerator[Answer, None]:
        """Send a request and yield the answer, or raise the error that its status stands for.

        Leaving the block drops the answer.

        segments: of the path, below the gateway's URL. once: use a fresh connection. sent: called with the number of
        bytes sent. conflict: translates status 409. PeerGoneError, PeerTimeoutError.
        """
        source = MemorySource(body) if isinstance(body, bytes) else body
        arguments: dict[str, Any] = {} if source is None else {"data": SourceProducer(source, sent)}
        client = self._client_once if once else self._client
        patience_s = ANSWER_S + (0 if source is None else source.size / SLOWEST)

        async def request() -> Any:
            return await client.request(
                method,
                self._url(segments, query),
                headers=Headers(self._headers(headers)),
                allow_redirects=False,
                unbuffered=True,
                reactor=self._reactor,
                **arguments,
            )

        try:
            response = await with_deadline(
                self.runtime.clock, request(), patience_s, lambda: PeerTimeoutError("the gateway did not answer")
            )
        except GridError:
            raise
        except Exception as error:
            raise self._explain(error) from None
        taken = AnswerBody(self.runtime.clock, stall_s)
        response.deliverBody(taken)
        try:
            if response.code not in (200, 201, 206):
                raise refusal(response.code, await _refusal_text(taken), conflict)
            self._warn(_header(response, "X-Grid-Warning"))
            yield Answer(
                status=response.code,
                length=_length(response),
                content_range=_header(response, "Content-Range"),
                body=taken,
            )
        finally:
            taken.abort()

    async def text(self, method: str, segments: Sequence[str], query: Query = (), **options: Any) -> str:
        """The text of a short answer, such as a capability; raises the errors of `ask`."""
        async with self.ask(method, segments, query, **options) as answer:
            data = await answer.read_all(65536 + 2)
        try:
            return data.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise GatewayError("the gateway's answer is not text") from None

    async def json(self, method: str, segments: Sequence[str], query: Query = (), *, limit: int, **options: Any) -> Any:
        """The value of a JSON answer of at most `limit` bytes; raises the errors of `ask`."""
        async with self.ask(method, segments, query, **options) as answer:
            data = await answer.read_all(limit)
        if len(data) > 2**18:
            return await self.runtime.cpu.run(parse_json, data)
        return parse_json(data)

    def _url(self, segments: Sequence[str], query: Query) -> str:
        path = "/".join(quote(segment, safe="").replace(".", "%2E") if set(segment) <= {"."} else
                        quote(segment, safe="") for segment in segments)  # fmt: skip
        asked = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query)
        return self.address.base + path + (f"?{asked}" if asked else "")

    def _headers(self, more: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
        # With text/plain, 1.20 reports its own failures as plain text. [spec webapi 1.6]
        fields = {"User-Agent": USER_AGENT, "Accept": "text/plain, application/octet-stream", **dict(more)}
        return {name: [value] for name, value in fields.items()}

    def _explain(self, error: Exception) -> GridError:
        """Why a request failed, without the error's own text, which may contain a URL."""
        where = self.address.shown
        match error:
            case RequestGenerationFailed():
                for reason in _reasons(error):
                    if isinstance(reason, GridError | OSError):
                        return reason if isinstance(reason, GridError) else GridError(f"{reason.strerror}")
                return GridError("the data to send to the gateway could not be read")
            case ValueError():
                return GatewayError(f"the gateway {where} has a host name that cannot be looked up; is its URL right?")
            case ConnectTimeoutError():
                return PeerTimeoutError(f"the gateway {where} did not finish connecting; is it running?")
            case ConnectError() | DNSLookupError():
                return PeerGoneError(f"the gateway {where} cannot be reached ({type(error).__name__}); is it running?")
            case ResponseFailed() if found := [
                reason for reason in _reasons(error) if isinstance(reason, GatewayError)
            ]:
                return found[0]
            case ResponseFailed() | ResponseNeverReceived() | RequestTransmissionFailed() | RequestNotSent():
                if any(
                    "SSL" in type(reason).__module__ or "Verif" in type(reason).__name__ for reason in _reasons(error)
                ):
                    return PeerGoneError(
                        f"the gateway {where} did not prove its identity;"
                        " --gateway-ca FILE names the certificates to trust"
                    )
                return PeerGoneError(f"the gateway {where} closed the connection before it answered")
            case _:
                return GatewayError(f"the gateway {where} gave an invalid answer ({type(error).__name__})")


def parse_json(data: bytes) -> Any:
    """Parse JSON; GatewayError if it is malformed."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise GatewayError("the gateway's answer is not the JSON expected; is it a gateway?") from None


async def _refusal_text(body: AnswerBody) -> bytes:
    """The beginning of a refusal's body, or whatever part of it arrived."""
    text = b""
    try:
        while len(text) < MAX_REFUSAL_TEXT and (piece := await body.next()):
            text += piece
    except (PeerGoneError, PeerTimeoutError):
        pass
    return text[:MAX_REFUSAL_TEXT]


def _length(response: Any) -> int | None:
    return response.length if isinstance(response.length, int) else None


def _header(response: Any, name: str) -> str:
    values: list[str] = response.headers.getRawHeaders(name, [])
    return values[0] if len(values) == 1 else ""


def _reasons(error: Any) -> list[BaseException]:
    """The underlying errors, as Twisted reports them."""
    given = error.args[0] if error.args else []
    given = getattr(error, "reasons", given)
    failures = given if isinstance(given, list) else [given]
    return [failure.value for failure in failures if isinstance(failure, Failure) and failure.value is not None]
