"""TLS as a layer between a Twisted transport and a protocol, over the standard library's `ssl`.

Twisted's own layer cuts what it writes into 16 KiB pieces and wakes its protocol for each record; for bulk data
that costs several times what the cipher does. Here a write is encrypted by one call, and all records of one
read from the socket are delivered together. Records are the only framing: the end of a stream proves nothing,
and the protocol above must know its own. [spec wire 12; docs/decisions/0020-http-transport.md]
"""

from __future__ import annotations

import ssl
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from grid.errors import ConfigError, FormatError
from grid.ports import Buffer
from grid.wire.connections.sockets import largest_chunk, set_wake_mark

_READ_SIZE = 128 * 1024
"""Decrypted and handed on at once: past the size of a processor's cache the copies cost more than the cipher."""
_SEND_SIZE = 512 * 1024
"""Bytes given to the socket at once: a chunk, its records' heads, and what joins it."""
_WAKE_SIZE = 512 * 1024
"""Bytes that a socket waits for at most before it wakes its reader, where they are sure to come."""
_LEAST_WAKE_SIZE = 32 * 1024
"""Fewer are not worth a call into the kernel."""
_BUFFER = memoryview(bytearray(_READ_SIZE))
"""Where records are decrypted to, of whichever connection it is: its content is copied before it is passed on."""
_RECORD_SIZE = 16 * 1024


def server_context(certificate_file: Path) -> ssl.SSLContext:
    """TLS with the certificate and key of that PEM file; ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{certificate_file} does not hold a PEM certificate and its key") from error
    return context


def client_context() -> ssl.SSLContext:
    """TLS that believes nobody: the caller compares the hash of the server's key once the handshake is done."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    return context


def spki_hash(certificate_der: bytes) -> str:
    """The hash of a certificate's public key as NURLs have it; FormatError. [spec wire 12]"""
    try:
        key = x509.load_der_x509_certificate(certificate_der).public_key()
    except (ValueError, TypeError) as error:
        raise FormatError("a certificate that cannot be read") from error
    info = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return urlsafe_b64encode(sha256(info).digest()).rstrip(b"=").decode("ascii")


def spki_hash_of_pem(pem: bytes) -> str:
    """The same for the first certificate of a PEM text; FormatError."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise FormatError("a PEM text without a certificate") from error
    return spki_hash(certificate.public_bytes(Encoding.DER))


def send_pieces(transport: Any, pieces: Sequence[Buffer]) -> None:
    """Write the pieces to a TlsLayer, or joined to a transport of Twisted's, which takes byte strings only."""
    if isinstance(transport, TlsLayer):
        transport.writeSequence(pieces)
    else:
        transport.write(b"".join(pieces))


def expect(transport: Any, size: int) -> None:
    """Tell a TlsLayer, or a transport of Twisted's, how many bytes are sure to come; 0: any number."""
    if isinstance(transport, TlsLayer):
        transport.expect(size)
    else:
        set_wake_mark(transport, min(size, _WAKE_SIZE) if size >= _LEAST_WAKE_SIZE else 1)


class TlsLayer(Protocol):
    """The protocol of the plain transport, and the transport of the protocol above."""

    transport: Any

    def __init__(
        self,
        context: ssl.SSLContext,
        upper: Any,
        *,
        server_side: bool,
        accept_peer: Callable[[bytes | None], bool] = lambda _: True,
        on_open: Callable[[], None] = lambda: None,
        chunk_size: Callable[[], int] = largest_chunk,
    ) -> None:
        """accept_peer: is given the peer's certificate (DER) after the handshake; False ends the connection.
        on_open: called when the peer is accepted and data can be sent. chunk_size: bytes to ask of the socket at once,
        and from which on it counts as full.

        The protocol above is connected at once, so that its deadlines run; what it writes waits for the handshake.
        """
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self._upper = upper
        self._accept_peer = accept_peer
        self._on_open = on_open
        self._chunk_size = chunk_size
        self._is_open = False
        self._waiting: list[Buffer] = []
        self._lost = False
        self._expected = 0
        self._wake_mark = 1
        self.disconnecting = False

    # What the plain transport calls.

    def connectionMade(self) -> None:
        """Begin the handshake."""
        self.transport.bufferSize, self.transport.SEND_LIMIT = self._chunk_size(), _SEND_SIZE
        self._upper.makeConnection(self)
        self._handshake()

    def dataReceived(self, data: bytes) -> None:
        """Decrypt what has come."""
        if self._lost:
            return
        self.transport.bufferSize = self._chunk_size()
        self._incoming.write(data)
        if not self._is_open:
            self._handshake()
        if self._is_open:
            self._deliver()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass the loss on."""
        self._lost = True
        self._waiting.clear()
        self._upper.connectionLost(reason)

    def _handshake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ValueError):
            self._flush()
            self.abortConnection()
            return
        self._flush()
        if not self._accept_peer(self._tls.getpeercert(binary_form=True)):
            self.abortConnection()
            return
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self.write(data)
        self._on_open()
        if self.disconnecting:
            self._shut()

    def _deliver(self) -> None:
        size = 0
        ended = False
        while not self._lost:
            try:
                count = self._read_into(_BUFFER[size:])
            except ssl.SSLWantReadError:
                break
            except (ssl.SSLError, OSError):
                ended = True
                break
            if not count:
                ended = True
                break
            size += count
            if size == _READ_SIZE:
                self._upper.dataReceived(bytes(_BUFFER))
                size = 0
        if size and not self._lost:
            self._upper.dataReceived(bytes(_BUFFER[:size]))
        self._flush()
        self._set_wake_mark()
        if ended and not self._lost:
            self.transport.loseConnection()

    def _set_wake_mark(self) -> None:
        # What has come of a record that is not whole yet is not waited for a second time.
        mark = min(_WAKE_SIZE, self._expected - self._incoming.pending - 2 * _RECORD_SIZE)
        if mark < _LEAST_WAKE_SIZE:
            mark = 1
        if mark != self._wake_mark and not self._lost:
            self._wake_mark = mark
            set_wake_mark(self.transport, mark)

    def _read_into(self, room: memoryview) -> int:
        count: Any = self._tls.read(len(room), room)
        return int(count)

    def _flush(self) -> None:
        if self._outgoing.pending and self.transport is not None:
            self.transport.bufferSize = self._chunk_size()
            self.transport.write(self._outgoing.read())

    def _shut(self) -> None:
        try:
            self._tls.unwrap()
        except (ssl.SSLError, OSError, ValueError):
            pass  # The peer's half of the farewell is not waited for.
        self._flush()
        self.transport.loseConnection()

    # What the protocol above calls.

    def write(self, data: Buffer) -> None:
        """Encrypt and send."""
        if self._lost or self.disconnecting:
            return
        if not self._is_open:
            self._waiting.append(bytes(data))
            return
        if self._encrypt(data):
            self._flush()

    def writeSequence(self, pieces: Sequence[Buffer]) -> None:
        """Encrypt and send the pieces; small ones are joined, since each record has a cost of its own."""
        if self._lost or self.disconnecting:
            return
        if not self._is_open:
            self._waiting.append(b"".join(pieces))
            return
        small: list[Buffer] = []
        for piece in pieces:
            if len(piece) < _RECORD_SIZE:
                small.append(piece)
                continue
            if small and not self._encrypt(b"".join(small)):
                return
            small = []
            if not self._encrypt(piece):
                return
        if small and not self._encrypt(b"".join(small)):
            return
        # At once, for Twisted joins what it is given in parts.
        self._flush()

    def _encrypt(self, data: Buffer) -> bool:
        try:
            if len(data):
                self._tls.write(data)
        except (ssl.SSLError, OSError):
            self.abortConnection()
            return False
        return True

    def expect(self, size: int) -> None:
        """Note how many bytes are sure to come: the socket need not wake us for fewer. 0: any number may come."""
        self._expected = size
        if not size:
            self._set_wake_mark()

    def loseConnection(self) -> None:
        """Close once all is sent."""
        if self.disconnecting:
            return
        self.disconnecting = True
        if self._is_open:
            self._shut()
        elif not self._waiting:
            self.transport.loseConnection()

    def abortConnection(self) -> None:
        """Close now."""
        self.disconnecting = True
        if self.transport is not None:
            self.transport.abortConnection()

    def pauseProducing(self) -> None:
        """Read no more from the socket; what is decrypted already still comes."""
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Read on."""
        self.transport.resumeProducing()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Whether what is written leaves at once, even if it fills no packet."""
        self.transport.setTcpNoDelay(enabled)

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """The producer hears when the socket is full and when it has room."""
        self.transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """The end of registerProducer."""
        self.transport.unregisterProducer()

    def getPeer(self) -> Any:
        """The address of the other end."""
        return self.transport.getPeer()

    def getHost(self) -> Any:
        """The address of this end."""
        return self.transport.getHost()
