"""TLS under Foolscap in large chunks: the same bytes on the wire with far fewer calls.

Twisted's TLS layer encrypts 16 KiB at a time, and fetches each record and delivers it to the protocol
separately; for megabyte messages, that costs more than the cipher. Here a chunk of a quarter megabyte is sent with one
call, and incoming records are decrypted one by one into one buffer and delivered together. Long data is
encrypted only when the socket has sent the previous chunk, so that ciphertext is neither stored nor joined, and is still in
the processor's caches when it is sent. This depends on private methods of that layer; the tests of this module verify them.

Cost per MiB sent: 4 calls to encrypt, 4 turns of the event loop, one copy. Received: one call per record, which takes
half a microsecond besides the cipher, and one copy. Memory: one chunk of ciphertext per connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from foolscap.crypto import FoolscapContextFactory
from foolscap.negotiate import Negotiation
from OpenSSL import SSL
from twisted.internet.protocol import connectionDone
from twisted.protocols.policies import ProtocolWrapper
from twisted.protocols.tls import BufferingTLSTransport, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from grid.wire.connections.sockets import LARGEST_CHUNK, largest_chunk
from grid.wire.connections.tls_records import ENABLE_PARTIAL_WRITE, Room, TlsRecords

_READ_CHUNKS = 4
"""Chunks to request from the socket at once."""

_SEND_SIZE = 2**19
"""Bytes to pass to the socket at once: a chunk and whatever joins it."""

_RECORD_SIZE = 2**14
"""Bytes in a full TLS record."""

_LARGE_WRITE = 2**16
"""A write of at least this many bytes is not joined with others."""

_ROOM = Room(LARGEST_CHUNK + _RECORD_SIZE)
"""Where the records of all connections are decrypted. The content is copied before it is delivered."""


_factories: WeakKeyDictionary[Any, _BulkContextFactory] = WeakKeyDictionary()
"""By Tub: what makes the one context that its connections share."""


class BulkTransport(BufferingTLSTransport):
    """Twisted's TLS layer with large chunks."""

    transport: Any
    _appSendBuffer: Any  # noqa: N815 - the name is Twisted's; here it is a deque

    @property
    def is_empty(self) -> bool:
        """Whether the socket has been given everything that was written."""
        return not self._appSendBuffer

    def hold_what_waits(self) -> None:
        """Start to send long data chunk by chunk, and let OpenSSL read received data where it is."""
        self._records = TlsRecords(self._tlsConnection)
        vars(self._tlsConnection)["bio_write"] = self._records.offer
        self._appSendBuffer = deque()
        self._unsent_size = 0
        self._has_paused = False
        self._is_gone = False
        self.written_size = 0
        self.fed_size = 0
        self.transport.registerProducer(_Feeder(self), False)

    def size_chunks(self, size: Callable[[], int], connection: Any) -> None:
        """Set the function that gives the chunk size at any time. The connection's socket reads accordingly."""
        self._chunk_size = size
        self._connection = connection
        connection.bufferSize = _READ_CHUNKS * size()

    def dataReceived(self, data: bytes) -> None:
        """Decrypt received data."""
        self._connection.bufferSize = _READ_CHUNKS * self._chunk_size()
        super().dataReceived(data)  # type: ignore[no-untyped-call]

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Drop what waits: this object is part of a reference cycle, and would keep it until a garbage collection."""
        self._is_gone = True
        self._appSendBuffer.clear()
        super().connectionLost(reason)
        self._appSendBuffer.clear()

    def _write(self, data: bytes) -> None:
        if self._lostTLSConnection or self._is_gone:
            return
        if data:
            self.written_size += len(data)
            self._appSendBuffer.append(memoryview(data))
        self._feed()

    def _feed(self) -> None:
        """Encrypt what waits, until the socket has enough."""
        waiting = self._appSendBuffer
        while waiting and self._unsent_size < _LARGE_WRITE and not self._lostTLSConnection:
            view = waiting.popleft()
            chunk = view[: self._chunk_size()]
            try:
                self._records.seal(chunk)
            except SSL.WantReadError:
                waiting.appendleft(view)
                break
            except SSL.Error:
                self._tlsShutdownFinished(Failure())
                return
            self.fed_size += len(chunk)
            if len(chunk) < len(view):
                waiting.appendleft(view[len(chunk) :])
            self._flushSendBIO()
        if waiting and not self._has_paused and self._producer is not None:
            self._has_paused = True
            self._producer.pauseProducing()

    def socket_is_empty(self) -> None:
        """Continue, because everything given to the socket is sent."""
        self._unsent_size = 0
        if (told := getattr(self._producer, "sent_up_to", None)) is not None:
            told(self.fed_size)
        if self._appSendBuffer:
            self._feed()
            if not self._appSendBuffer:
                self._close_if_asked()
        elif self.transport.disconnecting:
            # It closes once nobody may have more to send.
            self.transport.unregisterProducer()
        elif self._has_paused and self._producer is not None:
            self._has_paused = False
            self._producer.resumeProducing()

    def socket_is_gone(self) -> None:
        """Drop what waits."""
        self._appSendBuffer.clear()
        if self._producer is not None:
            self._producer.stopProducing()

    def _close_if_asked(self) -> None:
        if self.disconnecting and self._producer is None and not self._appSendBuffer:
            self._shutdownTLS()  # type: ignore[no-untyped-call]

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Tell this producer when something waits, and when everything is sent."""
        if not streaming or self._producer is not None:
            raise RuntimeError("one producer at a time, and one that can be paused")
        if self._lostTLSConnection:
            producer.stopProducing()
        else:
            self._producer = producer
            if hasattr(producer, "layer"):
                producer.layer = self

    def unregisterProducer(self) -> None:
        """Expect no further data. Close if that was requested and nothing waits."""
        if self._producer is not None:
            self._producer = None
            self._has_paused = False
            self._close_if_asked()

    def _unbufferPendingWrites(self) -> None:
        self._feed()

    def _tlsShutdownFinished(self, reason: Failure | None) -> None:
        self._appSendBuffer.clear()
        super()._tlsShutdownFinished(reason)  # type: ignore[no-untyped-call]

    def _flushSendBIO(self) -> None:
        for sealed in self._records.sealed():
            self._unsent_size += len(sealed)
            self.transport.write(bytes(sealed))

    def _flushReceiveBIO(self) -> None:
        """Deliver all records that have come together."""
        size = 0
        while not self._lostTLSConnection:
            try:
                count = self._records.read(_ROOM, size)
            except SSL.Error as error:
                self._hand_on(size)
                self._end(error)
                break
            if not count:
                self._hand_on(size)
                break
            size += count
            if size >= LARGEST_CHUNK:
                self._hand_on(size)
                size = 0
        self._flushSendBIO()

    def _hand_on(self, size: int) -> None:
        if size and not self._aborted:
            ProtocolWrapper.dataReceived(self, bytes(_ROOM.view[:size]))

    def _end(self, error: SSL.Error) -> None:
        """The peer has closed the stream, or broken the protocol."""
        if isinstance(error, SSL.ZeroReturnError):
            self._shutdownTLS()  # type: ignore[no-untyped-call]
            self._tlsShutdownFinished(None)
        else:
            self._tlsShutdownFinished(Failure(error))

    def write_promptly(self, data: bytes) -> None:
        """Send long data unjoined, after the data that waits to be joined."""
        if len(data) < _LARGE_WRITE:
            self._aggregator.write(data)
        else:
            self._aggregator.flush()
            TLSMemoryBIOProtocol.write(self, data)


class _Feeder:
    """A producer that a socket asks for more whenever it has sent everything."""

    def __init__(self, layer: BulkTransport) -> None:
        self._layer = layer

    def resumeProducing(self) -> None:
        """Send more."""
        self._layer.socket_is_empty()

    def stopProducing(self) -> None:
        """Do nothing: there is nothing to stop."""
        self._layer.socket_is_gone()


class _BulkContextFactory(FoolscapContextFactory):
    _bulk_context: Any = None

    def getContext(self) -> Any:
        """Foolscap's context, the same for all connections, whose writes take a whole chunk instead of one record."""
        if self._bulk_context is None:
            self._bulk_context = super().getContext()
            self._bulk_context.clear_mode(ENABLE_PARTIAL_WRITE)
        return self._bulk_context


class BulkNegotiation(Negotiation):
    """Foolscap's negotiation, on a transport with large chunks."""

    def chunk_size(self) -> int:
        """Bytes to encrypt at once."""
        return largest_chunk()

    def startTLS(self, cert: Any) -> None:
        """Start TLS with the Tub's certificate."""
        factory = _factories.get(self.tub)
        if factory is None:
            options = {"privateKey": cert.privateKey.original, "certificate": cert.original} if cert else {}
            factory = _factories[self.tub] = _BulkContextFactory(**options)
        self.transport.startTLS(factory)
        layer = self.transport.protocol
        if type(layer) is BufferingTLSTransport:
            # Twisted creates the layer internally, and offers no other way to choose its class.
            layer.__class__ = BulkTransport
            layer.write = layer.write_promptly  # type: ignore[method-assign]
            layer.hold_what_waits()
            layer.size_chunks(self.chunk_size, self.transport)
            self.transport.SEND_LIMIT = _SEND_SIZE
