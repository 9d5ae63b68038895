"""A server that sends what a test tells it to, byte for byte, over TLS with the right key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from grid.ports import ServerVersion
from grid.wire.http.client.pool import Pool
from grid.wire.http.client.server import HttpServer
from grid.wire.http.format.answers import pack_version
from grid.wire.http.format.messages import HEAD_END, pack_head, pack_status_line
from grid.wire.http.format.tls import TlsLayer, spki_hash_of_pem
from grid.wire.locators import Nurl
from tests.wire.http.rig import SWISSNUM, certificate, make_identity, make_runtime, tls_context

VERSION = ServerVersion(
    application="hostile", maximum_immutable_share_size=2**40, maximum_mutable_share_size=2**40, available_space=2**40
)


def reply(status: int, body: bytes = b"", *headers: tuple[str, str], length: int | None = None) -> bytes:
    """A response; length: the Content-Length that it claims."""
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    pairs.append((b"Content-Length", b"%d" % (len(body) if length is None else length)))
    return pack_head(pack_status_line(status), pairs) + body


def version_reply(*, batched: bool) -> bytes:
    """The answer to the request with which a client begins."""
    extra = (("Grid-Extensions", "batch-1"),) if batched else ()
    return reply(200, pack_version(VERSION), ("Content-Type", "application/cbor"), *extra)


Talk = Callable[["Conversation", bytes], None]
"""Gets the head of each request but the first, and writes to the transport, or closes, or does nothing."""


class Conversation(Protocol):
    """One connection; requests have no bodies that matter."""

    transport: Any

    def __init__(self, talk: Talk, batched: bool, open_ones: set[Conversation]) -> None:
        self._talk = talk
        self._batched = batched
        self._received = b""
        self._open_ones = open_ones

    def connectionMade(self) -> None:
        self._open_ones.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._open_ones.discard(self)

    def dataReceived(self, data: bytes) -> None:
        self._received += data
        while HEAD_END in self._received:
            head, _, self._received = self._received.partition(HEAD_END)
            if b"/storage/v1/version" in head:
                self.transport.write(version_reply(batched=self._batched))
            elif b"HTTP/1.1" in head:
                self._talk(self, head)


@asynccontextmanager
async def talking(talk: Talk, *, batched: bool = True) -> AsyncIterator[HttpServer]:
    """A client of such a server."""
    runtime = make_runtime()
    open_ones: set[Conversation] = set()

    class Conversations(Factory):
        def buildProtocol(self, addr: Any) -> TlsLayer:
            return TlsLayer(tls_context(), Conversation(talk, batched, open_ones), server_side=True)

    listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(Conversations())
    port = listening.getHost().port
    nurl = Nurl(spki_hash=spki_hash_of_pem(certificate()), host="127.0.0.1", port=port, swissnum=SWISSNUM)
    client = HttpServer(make_identity(), [nurl], Pool(reactor, runtime.clock), runtime)
    try:
        yield client
    finally:
        client.close()
        for conversation in list(open_ones):
            conversation.transport.abortConnection()
        await listening.stopListening()
