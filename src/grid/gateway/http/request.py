"""One request of the gateway: its body streams in, a handler runs, the answer streams out. [spec webapi 1.1]

Owns how much time and memory a request may take, and what the log says of it. Bypasses Twisted's spooling of whole
bodies.

Cost: memory: a body's bound and one flow window of the engine per request. One turn of the event loop before a handler
runs.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.web import http

from grid.errors import GridError
from grid.gateway.faults import (
    BadRequest,
    Headers,
    HttpFault,
    InternalError,
    RequestTimeout,
    ServiceUnavailable,
    fault_of,
)
from grid.gateway.http.answers import COMMON, SANDBOX, Answer, AnyAnswer, StreamedAnswer, keeping, protecting
from grid.gateway.http.arguments import Arguments, parse_query
from grid.gateway.http.body import Body, LateBodyWatch, gone
from grid.gateway.http.exchange import Exchange, split_path
from grid.gateway.http.exchange import Headers as RequestHeaders
from grid.gateway.http.guards import check_host, check_origin, loggable, split_target
from grid.gateway.http.mistakes import refusal
from grid.gateway.http.routing import Routes
from grid.gateway.http.websocket import SwitchingAnswer
from grid.gateway.http.writer import Writer, piece_size
from grid.gateway.shared.services import Services
from grid.gateway.shared.spool import Spool
from grid.gateway.shared.traffic import Traffic
from grid.limits import GATEWAY_BODY_RATE, GATEWAY_DISCARDED
from grid.ports import Clock
from grid.values import define
from grid.wire.connections.body_rate import BodyRate
from grid.wire.connections.connection_limit import Standing

_log = Logger("grid.gateway")


class RequestOwner(Protocol):
    """The factory behind all requests of a gateway, as one request sees it."""

    gateway: Services
    routes: Routes
    requests: set[GatewayRequest]
    is_closing: bool

    def forget(self, request: GatewayRequest) -> None:
        """Called when the request is over."""


@define
class _Reply:
    """An answer being sent. is_over: all of it is written; the request's body may still be arriving."""

    answer: AnyAnswer | None = None
    has_begun: bool = False
    is_over: bool = False
    writer: Writer | None = None


@define
class _Record:
    """What is logged and counted of a request. shown: its path without secrets.

    called: its name in the traffic counters.
    """

    began_at: float = 0.0
    shown: str = "/"
    called: tuple[str, str] = ("other", "")
    sent: int = 0


class GatewayRequest(http.Request):
    """One request, from the end of its headers on."""

    channel: Any
    factory: RequestOwner

    def __init__(self, channel: Any, *arguments: Any) -> None:
        super().__init__(channel, *arguments)
        self.factory = channel.factory
        self.body: Body | None = None
        self._task: Deferred[None] | None = None
        self._reply = _Reply()
        self._record = _Record()
        self._host = ""
        self._is_gone = False
        self._exchange: Exchange | None = None
        self._rate: LateBodyWatch | None = None

    @property
    def clock(self) -> Clock:
        """The gateway's clock."""
        return self.factory.gateway.store.runtime.clock

    # Called by the channel.

    def gotLength(self, length: int | None) -> None:
        """Start handling the request: its headers are complete."""
        self.method, self.uri = self.channel._command, self.channel._path
        self.clientproto = self.channel._version
        kind = (self.getHeader(b"content-type") or b"").decode("latin-1")
        gateway = self.factory.gateway
        self.body = Body(
            length,
            kind,
            pause=self.channel.stop_reading,
            resume=self.channel.go_on_reading,
            make_spool=lambda: Spool(gateway.settings.spools, gateway.store.runtime.cpu),
            memory=gateway.settings.spools,
            rate=BodyRate(self.clock, GATEWAY_BODY_RATE),
        )
        self.factory.requests.add(self)
        self._record.began_at = self.clock.now()
        self._rate = LateBodyWatch(self.clock, self.body, self._body_is_late)
        self._rate.watch()
        self.clock.call_later(0, self._start)

    def handleContentChunk(self, data: bytes) -> None:
        """Take in more of the body."""
        if self.body is not None:
            self.body.arrive(data)
            if self._reply.is_over and self.body.received > GATEWAY_DISCARDED:
                self._hang_up()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Mark the body as complete."""
        if self.body is not None:
            self.body.end()
        if self._reply.is_over:
            self._finish()

    def connectionLost(self, reason: Any) -> None:
        """Cancel all work for the request: the client went away."""
        self._is_gone = True
        super().connectionLost(reason)
        self._relax()
        if self.body is not None:
            self.body.fail(gone())
        if self._task is not None:
            self._task.cancel()
        if self.body is not None:
            self.body.close()
        if self.body is not None and not self.finished:
            self._count(None)
        self.factory.forget(self)

    @property
    def is_answered(self) -> bool:
        """Whether the whole answer is written; the body may still be arriving."""
        return self._reply.is_over

    def withdraw(self) -> None:
        """Stop handling the request: the connection has already sent a refusal, so this request must send nothing."""
        self._is_gone = True
        self._relax()
        if self.body is not None:
            self.body.fail(BadRequest("the body is not framed correctly"))
        if self._task is not None:
            self._task.cancel()

    @property
    def waited_s(self) -> float:
        """Seconds spent waiting for the client, either for its body or for it to accept the answer."""
        body_s = 0.0 if self.body is None else self.body.waited_s
        return max(body_s, 0.0 if self._reply.writer is None else self._reply.writer.waited_s)

    # Called by the answer.

    def begin_answer(self) -> None:
        """Send the head, once."""
        if self._reply.has_begun or self._reply.answer is None:
            return
        self._reply.has_begun = True
        answer = self._reply.answer
        if isinstance(answer, SwitchingAnswer):
            self._switch(answer)
            return
        self.setResponseCode(answer.status, HTTPStatus(answer.status).phrase.encode("ascii"))
        for name, value in (*self._common_headers(answer), *answer.headers):
            self.responseHeaders.setRawHeaders(name, [value])
        self.responseHeaders.setRawHeaders("Date", [http.datetimeToString().decode("ascii")])
        if answer.content_type:
            self.responseHeaders.setRawHeaders("Content-Type", [answer.content_type])
        size = len(answer.body) if isinstance(answer, Answer) else answer.size
        if self.method == b"HEAD" and isinstance(answer, Answer) and not answer.body:
            size = None  # The body that GET would send was not made, so its length is unknown.
        if size is not None and answer.status not in (204, 304):
            self.responseHeaders.setRawHeaders("Content-Length", [str(size)])
        if self.factory.is_closing or (self.body is not None and not self.body.has_ended):
            self.responseHeaders.setRawHeaders("Connection", ["close"])
            self.channel.persistent = False

    def _common_headers(self, answer: AnyAnswer) -> Headers:
        """Default headers, which the answer may override."""
        return (*COMMON, *keeping(answer), *protecting(answer, self._host))

    def _switch(self, answer: SwitchingAnswer) -> None:
        """Send the head of an answer after which the connection no longer speaks HTTP."""
        self.setResponseCode(answer.status)
        lines = [f"{name}: {value}" for name, value in (*COMMON, *SANDBOX, *answer.headers)]
        head = "\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""])
        self.startedWriting = 1  # Otherwise Twisted would write its own head, and chunks.
        self.channel.switch(answer.receive)
        self.channel.writeSequence([head.encode("latin-1")])

    def abort(self) -> None:
        """Close the connection at once, so the client notices that the answer is incomplete."""
        if self.channel is not None:
            self.channel.transport.abortConnection()

    # Internals.

    def _start(self) -> None:
        if not self._is_gone:
            self._task = Deferred.fromCoroutine(self._serve())
            self._task.addErrback(self._give_up)

    def _give_up(self, failure: Any) -> None:
        if failure.check(CancelledError) is None:
            _log.failure("a request failed", failure=failure)
            self.abort()

    async def _serve(self) -> None:
        try:
            try:
                answer = await self._answer()
            except (GridError, CancelledError) as error:
                answer = self._of_error(error)
            except Exception:
                _log.failure("a request failed")
                answer = self._of_error(InternalError("internal error; see the gateway's log"))
            await self._send(answer)
        finally:
            if self._exchange is not None:
                self._exchange.close()

    async def _answer(self) -> AnyAnswer:
        """Run the handler and return its answer; raises its errors."""
        exchange = self._exchange = self._make_exchange()
        return await self.factory.routes.dispatch(exchange)

    def _of_error(self, error: BaseException) -> Answer:
        if not isinstance(error, GridError):
            raise error
        return refusal(self._exchange, error if isinstance(error, HttpFault) else fault_of(error))

    def _make_exchange(self) -> Exchange:
        if len(self.factory.requests) > self.factory.gateway.settings.max_concurrent:
            raise ServiceUnavailable("too many requests at once; try again later", headers=(("Retry-After", "5"),))
        target_host, target = split_target(self.uri)
        raw_path, _, raw_query = target.partition(b"?")
        raw = list(self.requestHeaders.getAllRawHeaders())
        headers = RequestHeaders({name.decode("latin-1").lower(): values[0].decode("latin-1") for name, values in raw})
        segments = split_path(raw_path)
        method = self.method.decode("latin-1")
        if len(self.requestHeaders.getRawHeaders(b"host") or ()) > 1:
            raise BadRequest("the request has more than one Host header")
        host = check_host(headers, self.factory.gateway.settings.hosts, self._own_address, target=target_host)
        self._host = host
        check_origin(method, headers, host)
        self.channel.permit.stand(Standing.ACTIVE)
        arguments = Arguments(parse_query(raw_query))
        self._record.shown = loggable(segments, arguments.t)
        self._record.called = self.factory.gateway.traffic.called(segments[0], arguments.t.lower())
        assert self.body is not None
        scheme, peer = "https" if self.isSecure() else "http", str(getattr(self.channel.getPeer(), "host", ""))
        scheme, peer = self.factory.gateway.settings.proxies.behind(scheme, peer, raw)
        return Exchange(
            method=method,
            segments=segments,
            headers=headers,
            arguments=arguments,
            body=self.body,
            gateway=self.factory.gateway,
            origin=f"{scheme}://{host}",
            raw_path=raw_path.decode("latin-1"),
            raw_query=raw_query.decode("latin-1"),
            peer=peer,
        )

    @property
    def _own_address(self) -> str | None:
        """The address the client connected to, for HTTP/1.0 requests without a Host. [RFC 9112 3.2]"""
        if self.clientproto != b"HTTP/1.0":
            return None
        address = self.getHost()
        host = getattr(address, "host", "")
        if not host:
            return "localhost"
        return f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}"

    async def _send(self, answer: AnyAnswer) -> None:
        if self._is_gone:
            return  # No client is left to read it; the error may even say so.
        self._reply.answer = answer
        if isinstance(answer, StreamedAnswer) and self.method != b"HEAD":
            await self._stream(answer)
        else:
            self.begin_answer()
            if isinstance(answer, Answer) and answer.body and self.method != b"HEAD":
                self._record.sent = len(answer.body)
                self.write(answer.body)
        self._reply.is_over = True
        if self.channel is not None:
            # An unwanted body that is being discarded must not protect this connection from making room for others.
            self.channel.permit.stand(Standing.IDLE if self.code < 400 else Standing.STRANGER)
        if self.body is None or self.body.has_ended:
            self._finish()
        else:
            # Closing while the body is still arriving would destroy the answer at the client.
            self.body.discard()
            self.write(b"")  # Otherwise the head of an empty answer would wait for the end of the request.
            if self._rate is not None:
                self._rate.end(self._hang_up)

    async def _stream(self, answer: StreamedAnswer) -> None:
        writer = self._reply.writer = Writer(self, lambda: piece_size(len(self.factory.requests)))
        self.registerProducer(writer, True)
        try:
            if isinstance(answer, SwitchingAnswer):
                self.begin_answer()
            await answer.write(writer)
            if answer.size is not None and writer.written != answer.size:
                raise InternalError("the answer does not have its announced size")
        except Exception as error:
            if writer.written == 0 and isinstance(error, GridError):
                self._reply.answer = self._of_error(error)
                self.begin_answer()
                self.write(self._reply.answer.body)
                return
            if not isinstance(error, CancelledError):
                reason = str(error) if isinstance(error, GridError) else f"unexpected {type(error).__name__}"
                _log.info("an answer was cut short: {reason}", reason=reason)
                self.abort()
            raise
        finally:
            self._record.sent = writer.written
            writer.stopProducing()
            if not self._is_gone:
                self.unregisterProducer()
        self.begin_answer()

    def _finish(self) -> None:
        if self.finished or self._is_gone:
            return
        self._relax()
        took_ms = 1000 * (self.clock.now() - self._record.began_at)
        code, size, path = self.code, self._record.sent, self._record.shown
        said = "{method} {path} {code} {size} {ms:.0f} ms"
        _log.info(said, method=self._method, path=path, code=code, size=size, ms=took_ms)
        self._count(code)
        if self.body is not None:
            self.body.close()
        self.finish()
        self.factory.forget(self)

    def _count(self, code: int | None) -> None:
        """Count and log the ended request. code: None if the client did not get the whole answer."""
        received = 0 if self.body is None else self.body.received
        seconds = self.clock.now() - self._record.began_at
        self._traffic.ended(self._method, self._record.called, code, seconds, received, self._record.sent)

    @property
    def _traffic(self) -> Traffic:
        """Where the request is counted."""
        return self.factory.gateway.traffic

    @property
    def _method(self) -> str:
        text = self.method.decode("latin-1")
        return text if text.isalpha() and len(text) < 12 else "?"

    def _hang_up(self) -> None:
        if not self.finished and not self._is_gone:
            self.channel.persistent = False
            self._finish()

    def _body_is_late(self) -> None:
        if self.body is not None and not self._reply.has_begun and self._task is not None:
            self.body.fail(RequestTimeout("the body arrives too slowly"))
        else:
            self.abort()

    def _relax(self) -> None:
        if self._rate is not None:
            self._rate.stop()
