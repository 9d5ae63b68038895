"""TLS under Foolscap in large strokes: the same octets on the wire for a fraction of the calls.

Twisted's TLS layer encrypts 16 KiB at a time, fetches each record by itself and hands each one to the protocol
by itself; at megabytes a message that costs more than the cipher. Here a stroke of a quarter megabyte is one
call out, and on its way in is decrypted record by record to one place and handed on as one. It leans on inner
methods of that layer and on pyOpenSSL's binding, which the tests of this module hold still.

Cost per MiB sent: 4 calls into OpenSSL, and no copy to join it with what is small. Received: a call per record, of
half a microsecond each beside the cipher, and one copy.
"""

from __future__ import annotations

from typing import Any

from foolscap.crypto import FoolscapContextFactory
from foolscap.negotiate import Negotiation
from OpenSSL import SSL
from OpenSSL._util import ffi, lib
from twisted.protocols.policies import ProtocolWrapper
from twisted.protocols.tls import BufferingTLSTransport, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

STROKE_SIZE = 2**18
"""Octets encrypted or read at once."""

_READ_SIZE = 2**20
"""Octets asked of the socket at once."""

_RECORD_ROOM = STROKE_SIZE // 16384 * 64 + 4096
"""What records add to a stroke: some 22 octets each, and handshake messages."""

_RECORD_SIZE = 2**14
"""Octets in a full TLS record."""

_LARGE_WRITE = 2**16
"""Octets from which on a write is not joined with others."""

_ROOM = bytearray(STROKE_SIZE + _RECORD_SIZE)
_ROOM_VIEW = memoryview(_ROOM)
_ROOM_START = ffi.from_buffer("char[]", _ROOM) + 0
"""Where records are decrypted to, of whichever connection it is: its content is copied before it is passed on."""

_WANT_READ = 2
"""OpenSSL's code for: no whole record has come."""

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
        size = 0
        while not self._lostTLSConnection:
            connection = self._tlsConnection._ssl
            count = lib.SSL_read(connection, _ROOM_START + size, STROKE_SIZE + _RECORD_SIZE - size)
            if count > 0:
                size += count
                if size >= STROKE_SIZE:
                    self._hand_on(size)
                    size = 0
                continue
            ended = lib.SSL_get_error(connection, count) != _WANT_READ
            if size:
                self._hand_on(size)
            if not ended:
                self._flushSendBIO()
            else:
                super()._flushReceiveBIO()  # type: ignore[no-untyped-call]
            return

    def _hand_on(self, size: int) -> None:
        if not self._aborted:
            ProtocolWrapper.dataReceived(self, bytes(_ROOM_VIEW[:size]))

    def write_promptly(self, data: bytes) -> None:
        """Send what is large as it is, behind what waits to be joined."""
        if len(data) < _LARGE_WRITE:
            self._aggregator.write(data)
        else:
            self._aggregator.flush()
            TLSMemoryBIOProtocol.write(self, data)


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
            layer.write = layer.write_promptly  # type: ignore[method-assign]
        self.transport.bufferSize = _READ_SIZE
