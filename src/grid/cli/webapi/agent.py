"""Connections to a gateway, with bounded heads of answers and unmodified bodies.

Twisted accepts headers of any length, and treq decompresses a body that claims to be compressed: a file called `x.gz`
would come back changed, and a small answer could fill the memory. So connections count the bytes of heads, and treq
sees no content encoding.
"""

from __future__ import annotations

import re
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IAgentEndpointFactory
from zope.interface import implementer

from grid.cli.webapi.refusals import GatewayError
from grid.values import frozen

MAX_HEAD = 256 * 1024
"""Bytes of all heads before an answer's body; our gateway sends a few hundred."""

_REQUEST_LINE = re.compile(rb"[A-Z]+ \S+ HTTP/1\.1\r\n")
_HEAD_END = re.compile(rb"\n\r?\n")
_INTERIM = re.compile(rb"HTTP/\S{1,8} 1\d\d\b")
"""The first line of an interim head, after which another head comes."""


class _BoundedProtocol(ProtocolWrapper):
    """Closes a connection on which an answer's head is too long, with an error that says so."""

    def __init__(self, factory: Any, protocol: Any) -> None:
        super().__init__(factory, protocol)
        self._head = bytearray()
        self._taken = 0
        self._is_in_head = True
        self._error: GatewayError | None = None

    def write(self, data: bytes) -> None:
        """Send a request or part of it."""
        self._expect_head(data)
        super().write(data)

    def writeSequence(self, data: Any) -> None:
        """Send a request or part of it."""
        pieces = list(data)
        self._expect_head(pieces[0] if pieces else b"")
        super().writeSequence(pieces)

    def dataReceived(self, data: bytes) -> None:
        """Take more of an answer."""
        if self._error is not None:
            return
        if self._is_in_head:
            self._taken += len(data)
            if not self._read_head(data) and self._taken > MAX_HEAD:
                self._error = GatewayError("the headers of the gateway's answer are too long")
                self._head.clear()
                self.abortConnection()
                return
        super().dataReceived(data)

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008 - as Twisted has it
        """Pass the reason to the request."""
        super().connectionLost(reason if self._error is None else Failure(self._error))

    def _expect_head(self, data: bytes) -> None:
        """Restart the count with each request: whatever is written after a complete head is a new request or the rest
        of one.
        """
        if not self._is_in_head and _REQUEST_LINE.match(data):
            self._is_in_head, self._taken = True, 0

    def _read_head(self, data: bytes) -> bool:
        """Whether the final head ends in this data; interim heads are skipped."""
        begin = max(0, len(self._head) - 2)
        self._head += data
        while end := _HEAD_END.search(self._head, begin):
            if not _INTERIM.match(self._head):
                self._is_in_head = False
                self._head.clear()
                return True
            del self._head[: end.end()]
            begin = 0
        return False


class _BoundedFactory(WrappingFactory):
    noisy = False
    protocol = _BoundedProtocol


@implementer(IStreamClientEndpoint)
@frozen
class _BoundedEndpoint:
    """An endpoint whose connections bound the heads of answers."""

    endpoint: Any

    def connect(self, factory: Any) -> Deferred[Any]:
        """Connect, and return the factory's protocol."""
        factory.noisy = False
        connected: Deferred[Any] = self.endpoint.connect(_BoundedFactory(factory))
        return connected.addCallback(lambda wrapper: wrapper.wrappedProtocol)


@implementer(IAgentEndpointFactory)
@frozen
class _Endpoints:
    """Connects to a gateway by TCP, or by TLS if its URL says so."""

    reactor: Any
    policy: Any
    connect_s: float

    def endpointForURI(self, uri: URI) -> _BoundedEndpoint:
        """The endpoint of the URL's host."""
        host = HostnameEndpoint(self.reactor, uri.host.decode("ascii"), uri.port, timeout=self.connect_s)
        if uri.scheme == b"http":
            return _BoundedEndpoint(host)
        return _BoundedEndpoint(wrapClientTLS(self.policy.creatorForNetloc(uri.host, uri.port), host))


@implementer(IAgent)
class AsSent:
    """An agent for treq that hides content encodings."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: Any = None
    ) -> Deferred[Any]:
        """Send one request."""
        fields = Headers() if headers is None else headers.copy()
        fields.setRawHeaders(b"accept-encoding", [b"identity"])
        return self._agent.request(method, uri, fields, bodyProducer).addCallback(_unmarked)


def _unmarked(response: Any) -> Any:
    response.headers.removeHeader(b"content-encoding")
    return response


def make_agent(reactor: Any, policy: Any, connect_s: float, pool: HTTPConnectionPool) -> AsSent:
    """An agent with bounded heads and unmodified bodies. policy: an IPolicyForHTTPS."""
    endpoints = _Endpoints(reactor, policy, connect_s)
    return AsSent(Agent.usingEndpointFactory(reactor, endpoints, pool))


def make_pool(reactor: Any, *, persistent: bool, idle_s: int = 0) -> HTTPConnectionPool:
    """A pool that keeps connections for `idle_s` seconds, or not at all."""
    pool = HTTPConnectionPool(reactor, persistent=persistent)
    pool.maxPersistentPerHost = 16
    pool.cachedConnectionTimeout = idle_s
    pool.retryAutomatically = False
    return pool
