"""TLS as a layer between a Twisted transport and a protocol, based on pyOpenSSL.

Twisted's own layer cuts what it writes into 16 KiB pieces and wakes its protocol for each record. For bulk data
that costs several times as much as the cipher. Here one call encrypts a chunk, which leaves at once if the socket takes it,
and all records of one read from the socket are delivered together. Records are the only framing: the end of a stream proves
nothing, and the protocol above must know where its messages end. [spec wire 12; docs/decisions/0020-http-transport.md]
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from OpenSSL import SSL
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from grid.errors import ConfigError, FormatError
from grid.ports import Buffer
from grid.wire.connections.sockets import clients_chunk, send_now, set_wake_mark
from grid.wire.connections.tls_records import CHUNK_SIZE, ENABLE_PARTIAL_WRITE, Room, TlsRecords

_READ_SIZE = 128 * 1024
"""Bytes to decrypt and deliver at once: beyond the processor's caches, the copies cost more than the cipher."""
_SEND_SIZE = 768 * 1024
"""Bytes to pass to the socket at once: a chunk, the heads of its records, and whatever joins it."""
_WAKE_SIZE = 512 * 1024
"""Most bytes for which a socket waits before it wakes its reader, if they are sure to come."""
_LEAST_WAKE_SIZE = 32 * 1024
"""Fewer bytes are not worth a system call."""
_ROOM = Room(_READ_SIZE)
"""Where the records of all connections are decrypted. The content is copied before it is delivered."""
_RECORD_SIZE = 16 * 1024

_PROTOCOLS = [b"http/1.1"]
_CIPHERS = b"ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES:DHE+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
"""For TLS 1.2; those of TLS 1.3 are all good."""


def server_context(certificate_file: Path) -> SSL.Context:
    """A TLS context with the certificate and key in that PEM file; ConfigError."""
    context = _new_context()
    context.set_alpn_select_callback(_choose_protocol)
    try:
        context.use_certificate_chain_file(str(certificate_file))
        context.use_privatekey_file(str(certificate_file))
        context.check_privatekey()
    except SSL.Error as error:
        raise ConfigError(f"{certificate_file} does not hold a PEM certificate and its key") from error
    return context


def client_context() -> SSL.Context:
    """A TLS context that accepts any certificate: the caller compares the hash of the server's key after the handshake."""
    context = _new_context()
    context.set_alpn_protos(_PROTOCOLS)
    return context


def _new_context() -> SSL.Context:
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_cipher_list(_CIPHERS)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.clear_mode(ENABLE_PARTIAL_WRITE)
    return context


def _choose_protocol(_: SSL.Connection, offered: list[bytes]) -> Any:
    return next((name for name in offered if name in _PROTOCOLS), SSL.NO_OVERLAPPING_PROTOCOLS)


def spki_hash(certificate_der: bytes) -> str:
    """The hash of a certificate's public key in the form of NURLs; FormatError. [spec wire 12]"""
    try:
        key = x509.load_der_x509_certificate(certificate_der).public_key()
    except (ValueError, TypeError) as error:
        raise FormatError("a certificate that cannot be read") from error
    info = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return urlsafe_b64encode(sha256(info).digest()).rstrip(b"=").decode("ascii")


def spki_hash_of_pem(pem: bytes) -> str:
    """The same for the first certificate in a PEM text; FormatError."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise FormatError("a PEM text without a certificate") from error
    return spki_hash(certificate.public_bytes(Encoding.DER))


def send_pieces(transport: Any, pieces: Sequence[Buffer]) -> None:
    """Write the pieces to a TlsLayer, or join them for a Twisted transport, which takes only byte strings."""
    if isinstance(transport, TlsLayer):
        transport.writeSequence(pieces)
    else:
        transport.write(b"".join(pieces))


def expect(transport: Any, size: int) -> None:
    """Set on a TlsLayer or a Twisted transport how many bytes are sure to come; 0: any number."""
    if isinstance(transport, TlsLayer):
        transport.expect(size)
    else:
        set_wake_mark(transport, min(size, _WAKE_SIZE) if size >= _LEAST_WAKE_SIZE else 1)


class TlsLayer(Protocol):
    """The protocol of the plain transport, and the transport of the protocol above."""

    transport: Any

    def __init__(
        self,
        context: SSL.Context,
        upper: Any,
        *,
        server_side: bool,
        accept_peer: Callable[[bytes | None], bool] = lambda _: True,
        on_open: Callable[[], None] = lambda: None,
        chunk_size: Callable[[], int] = clients_chunk,
    ) -> None:
        """accept_peer: receives the peer's certificate (DER) after the handshake; if it returns False, the connection ends.
        on_open: called when the peer is accepted and data can be sent. chunk_size: bytes to request from the socket at once,
        and the limit above which it counts as full.

        The protocol above is connected at once, so that its deadlines run. What it writes waits for the handshake.
        """
        self._tls = SSL.Connection(context)
        (self._tls.set_accept_state if server_side else self._tls.set_connect_state)()
        self._records = TlsRecords(self._tls)
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

    # Called by the plain transport.

    def connectionMade(self) -> None:
        """Start the handshake."""
        self.transport.bufferSize, self.transport.SEND_LIMIT = self._chunk_size(), _SEND_SIZE
        self._upper.makeConnection(self)
        self._handshake()

    def dataReceived(self, data: bytes) -> None:
        """Decrypt received data."""
        if self._lost:
            return
        self.transport.bufferSize = self._chunk_size()
        self._records.offer(data)
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
        except SSL.WantReadError:
            self._flush()
            return
        except SSL.Error:
            self._flush()
            self.abortConnection()
            return
        self._flush()
        certificate = self._tls.get_peer_certificate(as_cryptography=True)
        if not self._accept_peer(None if certificate is None else certificate.public_bytes(Encoding.DER)):
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
        read = self._records.read  # Each call decrypts one record.
        size = 0
        ended = False
        while not self._lost:
            try:
                count = read(_ROOM, size)
            except SSL.Error:
                ended = True
                break
            if not count:
                break
            size += count
            if size == _READ_SIZE:
                self._upper.dataReceived(bytes(_ROOM.view))
                size = 0
        if size and not self._lost:
            self._upper.dataReceived(bytes(_ROOM.view[:size]))
        self._flush()
        self._set_wake_mark()
        if ended and not self._lost:
            self.transport.loseConnection()

    def _set_wake_mark(self) -> None:
        # Do not wait a second time for the part of an incomplete record that has come.
        mark = min(_WAKE_SIZE, self._expected - 2 * _RECORD_SIZE)
        if mark < _LEAST_WAKE_SIZE:
            mark = 1
        if mark != self._wake_mark and not self._lost:
            self._wake_mark = mark
            set_wake_mark(self.transport, mark)

    def _flush(self) -> None:
        transport = self.transport
        if transport is None:
            return
        for sealed in self._records.sealed():
            transport.bufferSize = self._chunk_size()
            for unsent in send_now(transport, [sealed]):
                transport.write(bytes(unsent))

    def _shut(self) -> None:
        try:
            self._tls.shutdown()
        except SSL.Error:
            pass  # Do not wait for the peer's closing message.
        self._flush()
        self.transport.loseConnection()

    # Called by the protocol above.

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
        """Encrypt and send the pieces, joining small ones, because each record has a cost."""
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
        self._flush()

    def _encrypt(self, data: Buffer) -> bool:
        view = memoryview(data)
        for start in range(0, len(view), CHUNK_SIZE):
            if start:
                self._flush()
            try:
                self._records.seal(view[start : start + CHUNK_SIZE])
            except SSL.Error:
                self.abortConnection()
                return False
        return True

    def expect(self, size: int) -> None:
        """Note how many bytes are sure to come; the socket need not wake us for fewer. 0: any number may come."""
        self._expected = size
        if not size:
            self._set_wake_mark()

    def loseConnection(self) -> None:
        """Close once everything is sent."""
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
        """Stop reading from the socket. Data that is decrypted already is still delivered."""
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume reading."""
        self.transport.resumeProducing()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Set whether written data leaves at once, even if it does not fill a packet."""
        self.transport.setTcpNoDelay(enabled)

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Notify the producer when the socket is full and when it has room."""
        self.transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """Stop notifying the producer."""
        self.transport.unregisterProducer()

    def getPeer(self) -> Any:
        """The address of the other end."""
        return self.transport.getPeer()

    def getHost(self) -> Any:
        """The address of this end."""
        return self.transport.getHost()
