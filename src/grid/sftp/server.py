"""The SSH side of the door: authentication, algorithms, and limits per connection.

Only public keys are accepted, and no algorithms with SHA-1, CBC or finite-field groups chosen by the client. A
connection opens SFTP sessions and nothing else: no shell, no commands, no forwarding. At worst, hostile input ends its
own connection.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from twisted.conch.error import ValidPublicKey
from twisted.conch.interfaces import IConchUser
from twisted.conch.ssh.common import getNS
from twisted.conch.ssh.factory import SSHFactory
from twisted.conch.ssh.keys import Key
from twisted.conch.ssh.transport import DISCONNECT_NO_MORE_AUTH_METHODS_AVAILABLE
from twisted.conch.ssh.userauth import SSHUserAuthServer
from twisted.cred.checkers import ICredentialsChecker
from twisted.cred.credentials import ISSHPrivateKey
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import IRealm, Portal
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger
from zope.interface import implementer

from grid.sftp.accounts import Account
from grid.sftp.channels import SftpChannel, SftpConnection, User
from grid.sftp.door import MAX_CONNECTIONS_OF_ACCOUNT, Door
from grid.sftp.packets import GCM_KEY_SIZES, PacketTransport
from grid.sftp.protocol import SILENT
from grid.values import define
from grid.wire.connections.connection_limit import ConnectionLimit, Permit, Standing
from grid.wire.connections.sockets import acknowledged_size, chunk_size, probe_when_idle

LOGIN_S = 60
PROBE_AFTER_S = 120.0
"""Seconds of silence after which the system probes whether the client is still there."""

STALL_S = 600.0
"""Seconds after which a connection is closed if nothing of what waits for its client was taken."""

WATCH_S = 60.0
"""How often that is looked at."""

MAX_FAILURES = 6
"""Refused signatures or keys after which a connection is closed."""

MAX_AUTHENTICATION_REQUESTS = 32
MAX_EARLY_KEY_EXCHANGES = 2

LEAST_RSA_BITS = 2048

USUAL_READ = 2**16
"""Bytes read at once from a client that sends little, such as requests to read."""

SEND_SIZE = 2**20
"""Bytes written to the socket at once."""

CIPHERS = (*GCM_KEY_SIZES, b"aes256-ctr", b"aes192-ctr", b"aes128-ctr")
MACS = (b"hmac-sha2-512", b"hmac-sha2-256")
KEY_EXCHANGES = (
    b"mlkem768x25519-sha256",
    b"curve25519-sha256",
    b"curve25519-sha256@libssh.org",
    b"ecdh-sha2-nistp256",
    b"ecdh-sha2-nistp384",
    b"ecdh-sha2-nistp521",
)
SIGNATURES = (
    b"ssh-ed25519",
    b"ecdsa-sha2-nistp256",
    b"ecdsa-sha2-nistp384",
    b"ecdsa-sha2-nistp521",
    b"rsa-sha2-512",
    b"rsa-sha2-256",
)

_log = Logger("grid.sftp")


@implementer(ICredentialsChecker)
@define(eq=False)
class _Checker:
    """Finds the account of a key and verifies that the client has the key."""

    _door: Door
    credentialInterfaces = (ISSHPrivateKey,)

    def requestAvatarId(self, credentials: Any) -> Deferred[Any]:
        """Return the account; UnauthorizedLogin, without a reason."""
        account = self._find(credentials)
        if account is None:
            return fail(UnauthorizedLogin())
        if not credentials.signature:
            return fail(ValidPublicKey())
        if getNS(credentials.signature)[0] != credentials.algName:
            return fail(UnauthorizedLogin())
        if not Key.fromString(credentials.blob).verify(credentials.signature, credentials.sigData):
            return fail(UnauthorizedLogin())
        return succeed(account)

    def _find(self, credentials: Any) -> Account | None:
        if credentials.algName not in SIGNATURES:
            return None
        try:
            name = credentials.username.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return self._door.find_account(name, credentials.blob)


@implementer(IRealm)
@define(eq=False)
class _Realm:
    """Counts the connections of each account."""

    _door: Door

    def requestAvatar(self, avatarId: Any, mind: object, *interfaces: object) -> Any:
        """The connected account; UnauthorizedLogin if it has too many connections."""
        connections, name = self._door.connections, avatarId.name
        if connections[name] >= MAX_CONNECTIONS_OF_ACCOUNT:
            raise UnauthorizedLogin
        connections[name] += 1

        def logout() -> None:
            connections[name] -= 1
            if not connections[name]:
                del connections[name]

        return IConchUser, User(self._door, avatarId), logout


class SftpUserAuth(SSHUserAuthServer):
    """Authentication that counts failures per connection."""

    _log = SILENT
    transport: Any
    loginTimeout = LOGIN_S

    def ssh_USERAUTH_REQUEST(self, packet: bytes) -> Any:
        """Process one attempt or query."""
        self.transport.authentication_requests += 1
        if self.transport.authentication_requests > MAX_AUTHENTICATION_REQUESTS:
            self.transport.sendDisconnect(DISCONNECT_NO_MORE_AUTH_METHODS_AVAILABLE, b"too many attempts")
            return None
        return super().ssh_USERAUTH_REQUEST(packet)

    def _ebBadAuth(self, reason: Any) -> None:
        self.loginAttempts = self.transport.failures
        super()._ebBadAuth(reason)
        self.transport.failures = self.loginAttempts

    attemptsBeforeDisconnect = MAX_FAILURES - 1


class Stalls:
    """What has waited for a client without progress since when: tells one that takes nothing from a slow one."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[int, float]] = {}

    def longest_s(self, waiting: Mapping[Hashable, int], now: float) -> float:
        """Note how much was taken of each thing of which more waits; return for how long nothing of some thing was."""
        before = self._seen
        self._seen = {}
        for thing, taken in waiting.items():
            seen = before.get(thing)
            self._seen[thing] = seen if seen is not None and seen[0] == taken else (taken, now)
        return max((now - since for _, since in self._seen.values()), default=0.0)


class SftpTransport(PacketTransport):
    """One connection. permit: counts it among the connections of the process."""

    _log = SILENT
    supportedCiphers = list(CIPHERS)
    supportedMACs = list(MACS)
    supportedKeyExchanges = [name for name in KEY_EXCHANGES if name in PacketTransport.supportedKeyExchanges]
    supportedCompressions = [b"none"]
    ourVersionString = b"SSH-2.0-Grid"

    transport: Any
    factory: Any
    permit: Permit

    def __init__(self) -> None:
        super().__init__()
        self.authentication_requests = self.failures = self._key_exchanges = 0
        self._timer: Any = None
        self._paused_at: float | None = None
        self._stalls = Stalls()

    def connectionMade(self) -> None:
        """Start the timer that drops a client that has not logged in after LOGIN_S.

        Answers leave at once: a client whose window is used up sends nothing that could acknowledge the last answer, so the
        system would keep the next one, and the window that comes with it, for the 40 ms that acknowledgments may take.
        """
        self.permit.hold(self.transport.abortConnection, self._waited_s)
        self.factory.transports.add(self)
        if hasattr(self.transport, "setTcpKeepAlive"):
            self.transport.setTcpKeepAlive(1)
            self.transport.setTcpNoDelay(True)
        probe_when_idle(self.transport, PROBE_AFTER_S)
        self.transport.SEND_LIMIT = SEND_SIZE
        self.transport.registerProducer(self, True)
        self._timer = self.factory.reactor.callLater(LOGIN_S, self._watch)
        super().connectionMade()

    def connectionLost(self, reason: Any = None) -> None:
        """Clean up after the connection."""
        self.factory.transports.discard(self)
        self.permit.release()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; invalid ones close the connection. A client that has logged in and sends much is read in large
        pieces, if there are few of them.
        """
        if hasattr(self, "avatar"):
            size = chunk_size(self.permit.crowd)
            self.transport.bufferSize = size if len(data) >= USUAL_READ else min(size, USUAL_READ)
        try:
            super().dataReceived(data)
        except Exception as error:  # Conch's parsing may raise anything.
            _log.debug("an SFTP client sent what cannot be read: {kind}", kind=type(error).__name__)
            self.transport.abortConnection()

    def setService(self, service: Any) -> None:
        """Switch to the service. An authenticated client's permit takes precedence over a stranger's."""
        super().setService(service)
        self.settle_standing()

    def settle_standing(self) -> None:
        """Note whether a request of the client is under way: between requests, its permit may go to somebody else."""
        if hasattr(self, "avatar"):
            is_busy = any(channel.is_busy for channel in self._channels)
            self.permit.stand(Standing.ACTIVE if is_busy else Standing.IDLE)

    def ssh_KEXINIT(self, packet: bytes) -> None:
        """Exchange keys; strangers may do so only once or twice."""
        self._key_exchanges += 1
        if self._key_exchanges > MAX_EARLY_KEY_EXCHANGES and not hasattr(self, "avatar"):
            self.transport.abortConnection()
            return
        super().ssh_KEXINIT(packet)

    def sendExtInfo(self, extensions: object) -> None:
        """Announce the accepted signature algorithms."""
        super().sendExtInfo([(b"server-sig-algs", b",".join(SIGNATURES))])

    def pauseProducing(self) -> None:
        """Pause: the client does not read its answers, so read nothing from it either."""
        self._paused_at = self.factory.reactor.seconds()
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume reading."""
        self._paused_at = None
        self.transport.resumeProducing()
        for channel in self._channels:
            channel.resume()

    def stopProducing(self) -> None:
        """Stop: the connection is gone."""

    @property
    def is_paused(self) -> bool:
        """Whether the client is not reading what is sent."""
        return self._paused_at is not None

    def _waited_s(self) -> float:
        """Seconds for which the client has read nothing."""
        return 0.0 if self._paused_at is None else self.factory.reactor.seconds() - self._paused_at

    @property
    def _channels(self) -> Sequence[SftpChannel]:
        return list(getattr(self.service, "channels", {}).values())

    def _watch(self) -> None:
        """End the connection of a stranger, or of a client that has taken nothing of what waits for it for STALL_S."""
        waiting: dict[Hashable, int] = {channel: channel.sent_size for channel in self._channels if channel.unsent}
        if self.is_paused:
            waiting[self] = acknowledged_size(self.transport) or 0
        now = self.factory.reactor.seconds()
        if not hasattr(self, "avatar") or self._stalls.longest_s(waiting, now) >= STALL_S:
            self.transport.abortConnection()
            return
        self._timer = self.factory.reactor.callLater(WATCH_S, self._watch)


class SftpFactory(SSHFactory):
    """All connections of a door."""

    noisy = False
    _log = SILENT
    protocol = SftpTransport
    services = {b"ssh-userauth": SftpUserAuth, b"ssh-connection": SftpConnection}

    def __init__(self, door: Door, host_keys: Sequence[Key], reactor: Any, connection_limit: ConnectionLimit) -> None:
        """connection_limit: on all connections of this process."""
        self.door = door
        self.reactor = reactor
        self.transports: set[SftpTransport] = set()
        self._limit = connection_limit
        self.privateKeys = {key.sshType(): key for key in host_keys}
        self.publicKeys = {key.sshType(): key.public() for key in host_keys}
        self.portal = Portal(_Realm(door), [_Checker(door)])

    def buildProtocol(self, addr: Any) -> SftpTransport | None:  # type: ignore[override]
        """Accept a connection; None closes it."""
        permit = self._limit.acquire(getattr(addr, "host", None))
        if permit is None:
            return None
        made = super().buildProtocol(addr)
        assert isinstance(made, SftpTransport)
        made.permit = permit
        made.supportedPublicKeys = [name for name in made.supportedPublicKeys if name in SIGNATURES]
        return made

    def getService(self, transport: SftpTransport, service: bytes) -> Any:
        """Authentication for strangers, sessions for authenticated clients."""
        known = hasattr(transport, "avatar")
        return self.services.get(service) if known == (service == b"ssh-connection") else None

    async def drain(self, seconds: float) -> None:
        """Let running requests finish for at most `seconds`; then close all connections."""
        if self.door.tasks.count:
            ended: Deferred[None] = Deferred.fromCoroutine(self.door.tasks.wait())
            ended.addTimeout(seconds, self.reactor).addErrback(lambda _: None)
            await ended
        for transport in list(self.transports):
            transport.transport.abortConnection()
