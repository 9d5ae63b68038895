"""TLS under Foolscap in large strokes: the same octets on the wire for a fraction of the calls.

Twisted's TLS layer encrypts 16 KiB at a time, fetches each record by itself and hands each one to the protocol
by itself; at megabytes a message that costs more than the cipher. Here a stroke of a quarter megabyte is one
call each way. It leans on three inner methods of that layer, which the tests of this module hold still.

Cost per MiB sent or received: 4 calls into OpenSSL instead of 64, and no copy per record.
"""

from __future__ import annotations

from typing import Any

from foolscap.crypto import FoolscapContextFactory
from foolscap.negotiate import Negotiation
from OpenSSL import SSL
from twisted.protocols.policies import ProtocolWrapper
from twisted.protocols.tls import BufferingTLSTransport
from twisted.python.failure import Failure

STROKE_SIZE = 2**18
"""Octets encrypted or read at once."""

_RECORD_ROOM = STROKE_SIZE // 16384 * 64 + 4096
"""What records add to a stroke: some 22 octets each, and handshake messages."""

_RECORD_SIZE = 2**14
"""Octets in a full TLS record."""

_ENABLE_PARTIAL_WRITE = 0x1
"""OpenSSL's SSL_MODE_ENABLE_PARTIAL_WRITE, which pyOpenSSL sets and does not name."""


class BulkTransport(BufferingTLSTransport):
    """Twisted's TLS layer with large strokes."""

    transport: Any

    def _write(self, data: bytes) -> None:
        if self._lostTLSConnection:
            return
        view, sent = memoryview(data), 0
        while sent < len(view):
            try:
                sent += self._tlsConnection.send(view[sent : sent + STROKE_SIZE])
            except SSL.WantReadError:
                self._bufferedWrite(bytes(view[sent:]))  # type: ignore[no-untyped-call]
                return
            except SSL.Error:
                self._tlsShutdownFinished(Failure())  # type: ignore[no-untyped-call]
                return
            self._flushSendBIO()

    def _flushSendBIO(self) -> None:
        while True:
            try:
                octets = self._tlsConnection.bio_read(STROKE_SIZE + _RECORD_ROOM)
            except SSL.WantReadError:
                return
            self.transport.write(octets)
            if len(octets) < STROKE_SIZE + _RECORD_ROOM:
                return

    def _flushReceiveBIO(self) -> None:
        """Hand on all records that have come as one, and let Twisted deal with what is no plain record."""
        records: list[bytes] = []
        while not self._lostTLSConnection:
            try:
                records.append(self._tlsConnection.recv(_RECORD_SIZE))
            except (SSL.WantReadError, SSL.ZeroReturnError, SSL.Error):
                break
        if records and not self._aborted:
            ProtocolWrapper.dataReceived(self, b"".join(records))
        super()._flushReceiveBIO()  # type: ignore[no-untyped-call]


class _BulkContextFactory(FoolscapContextFactory):
    def getContext(self) -> Any:
        """Foolscap's context, whose writes take a whole stroke instead of one record."""
        context = super().getContext()
        context.clear_mode(_ENABLE_PARTIAL_WRITE)
        return context


class BulkNegotiation(Negotiation):
    """Foolscap's negotiation, on a transport with large strokes."""

    def startTLS(self, cert: Any) -> None:
        """Begin TLS with the Tub's certificate."""
        options = {"privateKey": cert.privateKey.original, "certificate": cert.original} if cert else {}
        self.transport.startTLS(_BulkContextFactory(**options))
        layer = self.transport.protocol
        if type(layer) is BufferingTLSTransport:
            # The layer is made inside Twisted, which offers no other place to say of which class.
            layer.__class__ = BulkTransport
        self.transport.bufferSize = STROKE_SIZE
