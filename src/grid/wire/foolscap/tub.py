"""Tubs, Foolscap's ends of connections, with 1.20's options; certificates and FURL files.

A server's Tub keeps its certificate, and thereby its TubID, in `private/node.pem`. A client's Tub has a throwaway
certificate, so that two processes of one user never take over each other's connections. [spec wire 1]
"""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from foolscap.api import Referenceable, Tub, fireEventually
from foolscap.crypto import loadCertificate
from OpenSSL.crypto import Error as CertificateError
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IStreamServerEndpoint
from zope.interface import implementer

from grid.errors import ConfigError, FormatError
from grid.limits import CONNECT_DEADLINE_S, MAX_FURL_LENGTH
from grid.ports import Clock
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.foolscap.broker import BoundedBroker
from grid.wire.foolscap.negotiation import LimitedNegotiation
from grid.wire.locators import Furl, parse_furl

COMMON_NAME = "newpb_thingy"
MAX_CERTIFICATE_FILE = 64 * 1024

CLOSE_S = 1.0
"""Seconds that a peer has to confirm the end of a connection, of which nothing is sent any more."""


def node_certificate(path: Path) -> bytes:
    """The PEM certificate and key of a node. Creates the file (mode 0600) if it is missing; ConfigError if it is malformed."""
    try:
        with path.open("rb") as file:
            pem = file.read(MAX_CERTIFICATE_FILE)
    except FileNotFoundError:
        pem = _self_signed(rsa.generate_private_key(65537, 2048))
        write_private(path, pem)
    try:
        loadCertificate(pem)
    except (CertificateError, ValueError) as error:
        raise ConfigError(f"{path} does not hold a PEM certificate and its key: restore it or remove it") from error
    return pem


def throwaway_certificate() -> bytes:
    """A new PEM certificate with an elliptic-curve key, thousands of times faster to make than a node's RSA key."""
    return _self_signed(ec.generate_private_key(ec.SECP256R1()))


def _self_signed(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    """PEM certificate and PKCS#8 key, like 1.20's but X.509 version 3. Nobody checks its validity period. [spec wire 1]"""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365))
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM) + private


def start_tub(
    certificate: bytes | None = None,
    *,
    keepalive_s: int = 60,
    disconnect_s: int | None = 600,
    connect_deadline_s: float = CONNECT_DEADLINE_S,
) -> Any:
    """Start a Tub with that certificate (None: a throwaway one). Stop it with stop_tub.

    keepalive_s: idle seconds before the peer is pinged. disconnect_s: seconds of silence before it is dropped.
    """
    tub = Tub(certData=certificate or throwaway_certificate(), _test_options={"connect_timeout": connect_deadline_s})
    tub.brokerClass = BoundedBroker
    tub.negotiationClass = LimitedNegotiation
    tub.unsafeTracebacks = False
    tub.setOption("expose-remote-exception-types", False)
    tub.setOption("accept-gifts", False)
    tub.setOption("keepaliveTimeout", keepalive_s)
    if disconnect_s is not None:
        tub.setOption("disconnectTimeout", disconnect_s)
    tub.startService()
    return tub


def share_memory(tub: Any, memory: ServerMemory) -> None:
    """Let calls on the objects that this Tub offers use that shared memory."""
    tub.server_memory = memory


async def stop_tub(tub: Any, clock: Clock | None = None) -> None:
    """Close all connections and ports of the Tub. Returns when they are closed.

    clock: connections whose peers do not confirm the end of TLS within CLOSE_S, such as those of a suspended process, are
    cut. Without a clock, this waits until they do.
    """
    if tub.running:
        brokers = list(tub.brokers.values())

        def cut() -> None:
            for broker in brokers:
                broker.transport.abortConnection()

        timer = None if clock is None else clock.call_later(CLOSE_S, cut)
        try:
            await tub.stopService()
        finally:
            if timer is not None:
                timer.cancel()
    await fireEventually()


@implementer(IStreamServerEndpoint)
class _WatchedEndpoint:
    """An endpoint that reports its outcome; Foolscap itself would drop a failure to listen."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint
        self.outcome: Deferred[Any] = Deferred()

    def listen(self, factory: Any) -> Deferred[Any]:
        quiet: Deferred[Any] = Deferred()

        def started(port: Any) -> None:
            quiet.callback(port)
            self.outcome.callback(port)

        self._endpoint.listen(factory).addCallbacks(started, self.outcome.errback)
        return quiet


async def listen(tub: Any, endpoint: Any) -> int:
    """Listen on the endpoint and return the port number; ConfigError if that is impossible."""
    watched = _WatchedEndpoint(endpoint)
    tub.listenOn(watched)
    try:
        port = await watched.outcome
    except (CannotListenError, OSError, OverflowError) as error:  # Overflow: no such port exists.
        if isinstance(error, CannotListenError) and getattr(error.socketError, "errno", 0) == errno.EADDRINUSE:
            raise ConfigError(f"cannot listen: port {error.port} is already in use; choose another tub.port") from error
        raise ConfigError(f"cannot listen: {error}") from error
    return int(port.getHost().port)


def set_location(tub: Any, hints: tuple[str, ...]) -> None:
    """Set where the Tub can be reached. Call this once, before anything is registered."""
    tub.setLocation(*hints)


def register(tub: Any, referenceable: Referenceable, furl_file: Path) -> Furl:
    """Offer the object under the name in the file, or under a new name that is stored there (mode 0600). Returns its FURL.

    ConfigError if the file's FURL belongs to another node or is malformed. [spec wire 1]
    """
    kept = _kept_furl(furl_file)
    if kept is not None and kept.tub_id != tub.tubID:
        raise ConfigError(
            f"{furl_file} belongs to another private/node.pem: restore that one, or remove {furl_file.name} to go on without it"
        )
    text = tub.registerReference(referenceable, name=None if kept is None else kept.swissnum)
    write_private(furl_file, text.encode() + b"\n")
    return parse_furl(text)


def _kept_furl(furl_file: Path) -> Furl | None:
    try:
        with furl_file.open(encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_FURL_LENGTH).strip()
    except FileNotFoundError:
        return None
    if not text:
        return None
    try:
        return parse_furl(text)
    except FormatError as error:
        raise ConfigError(f"{furl_file} does not hold a FURL: {error}") from error


def write_private(path: Path, data: bytes) -> None:
    """Write the data to a file of mode 0600, atomically."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
