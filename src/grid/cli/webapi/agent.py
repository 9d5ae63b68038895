"""Connections to a gateway: answers whose heads end, and whose bodies are the bytes that were sent.

Twisted keeps headers as long as they come, and treq unpacks what says that it is packed: a file by the name of `x.gz` would
come back as another one than was stored, and a thousandth of what memory holds would fill it. So treq is told of no
packing.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web._newclient import HEADER, STATUS, HTTP11ClientProtocol
from twisted.web.client import Agent, HTTPConnectionPool, _HTTP11ClientFactory
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent
from zope.interface import implementer

from grid.cli.webapi.refusals import GatewayError

MAX_HEAD = 256 * 1024
"""Bytes before an answer's body begins, with all that announces it: a gateway of ours sends some hundreds."""


class _Connection(HTTP11ClientProtocol):
    """Gives an answer up whose head does not end."""

    _parser: Any
    _taken = 0

    def request(self, request: Any) -> Any:
        """Send one request."""
        self._taken = 0
        return super().request(request)

    def dataReceived(self, data: bytes) -> None:
        """More of an answer."""
        if getattr(self._parser, "state", None) in (STATUS, HEADER):
            self._taken += len(data)
            if self._taken > MAX_HEAD:
                self._giveUp(Failure(GatewayError("the gateway's answer begins with headers that do not end")))
                return
        super().dataReceived(data)


@implementer(IAgent)
class AsSent:
    """An agent for treq whose answers are never packed, whatever they say."""

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


class _ConnectionFactory(_HTTP11ClientFactory):
    noisy = False

    def buildProtocol(self, addr: Any) -> HTTP11ClientProtocol:
        return _Connection(self._quiescentCallback)


def make_pool(reactor: Any, *, persistent: bool, idle_s: int = 0) -> HTTPConnectionPool:
    """Connections that are kept for the next request for so long, or not at all."""
    pool = HTTPConnectionPool(reactor, persistent=persistent)
    pool.maxPersistentPerHost = 16
    pool.cachedConnectionTimeout = idle_s
    pool.retryAutomatically = False
    pool._factory = _ConnectionFactory
    return pool
