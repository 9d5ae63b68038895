"""SSH channels for SFTP sessions; no shells, commands or forwarding.

Owns flow control: how much a client may send before its requests are processed, and how much unread output it may
leave.
"""

from __future__ import annotations

import struct
from typing import Any

from attrs import define
from twisted.conch.error import ConchError
from twisted.conch.interfaces import IConchUser
from twisted.conch.ssh.channel import SSHChannel
from twisted.conch.ssh.connection import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_UNKNOWN_CHANNEL_TYPE, SSHConnection
from zope.interface import implementer

from grid.sftp.accounts import Account
from grid.sftp.door import LARGEST_WINDOW, LEAST_WINDOW, MAX_SESSIONS, MOST_SESSIONS, MOST_WINDOWS, Door
from grid.sftp.protocol import SILENT, SftpProtocol
from grid.sftp.session import Session

LEAST_PACKET = 2**10


class SftpChannel(SSHChannel):
    """One session's channel. It grants the client window only as fast as its requests are processed."""

    name = b"session"
    _log = SILENT
    conn: Any

    def __init__(self, door: Door, account: Account, **settings: Any) -> None:
        super().__init__(localWindow=LEAST_WINDOW, **settings)
        self._load = door.load
        self._load.sessions += 1
        self._load.window_bytes += LEAST_WINDOW
        self._session = Session(door, account)
        self._protocol: SftpProtocol | None = None
        self.is_held = False

    def requestReceived(self, requestType: bytes, data: bytes) -> bool:
        """Accept one request for the SFTP subsystem; refuse anything else."""
        if requestType != b"subsystem" or self._protocol is not None or data[4:] != b"sftp":
            return False
        self._protocol = SftpProtocol(self._session)
        self._protocol.makeConnection(self)
        return True

    def dataReceived(self, data: bytes) -> None:
        """Take bytes of requests, and drop them before there is a protocol for them."""
        if self._protocol is not None:
            self._protocol.dataReceived(data)

    def extReceived(self, dataType: int, data: bytes) -> None:
        """Ignore extended data, which no client should send."""

    def addWindowBytes(self, data: int) -> None:
        """Note that the client accepts more bytes."""
        before = len(self.buf)
        super().addWindowBytes(data)
        if self._protocol is not None:
            self._protocol.go_on(before - len(self.buf))

    @property
    def is_paused(self) -> bool:
        """Whether the client is not accepting what the connection sends."""
        return bool(self.conn.transport.is_paused)

    def resume(self) -> None:
        """Resume sending: the client accepts data again."""
        if self._protocol is not None:
            self._protocol.go_on(0)

    def widen(self) -> int:
        """Enlarge the client's window if there is room; return the additional bytes."""
        more = LARGEST_WINDOW - self.localWindowSize
        if self._load.window_bytes + more > MOST_WINDOWS:
            return 0
        self._load.window_bytes += more
        self.localWindowSize += more
        return more

    def eofReceived(self) -> None:
        """Note that the client sends no more requests."""
        if self._protocol is None:
            self.loseConnection()
        else:
            self._protocol.end()

    def finish(self) -> None:
        """Close the channel successfully."""
        if not self.closing:
            self.conn.sendRequest(self, b"exit-status", struct.pack(">L", 0))
            self.loseConnection()

    def closed(self) -> None:
        """Clean up after the channel."""
        self._load.sessions -= 1
        self._load.window_bytes -= self.localWindowSize
        if self._protocol is not None:
            self._protocol.connectionLost()

    def set_held(self, is_held: bool) -> None:
        """Set whether the client must pause sending."""
        was_held, self.is_held = self.is_held, is_held
        if was_held and not is_held and self.localWindowLeft < self.localWindowSize // 2:
            self.conn.adjustWindow(self, self.localWindowSize - self.localWindowLeft)


class SftpConnection(SSHConnection):
    """The sessions of one connection."""

    _log = SILENT

    def adjustWindow(self, channel: SftpChannel, bytesToAdd: int) -> None:
        """Grant window, or defer it until the channel's requests are processed."""
        if not channel.is_held:
            super().adjustWindow(channel, bytesToAdd + channel.widen())


@implementer(IConchUser)
@define(eq=False)
class User:
    """A connected account."""

    _door: Door
    _account: Account
    conn: Any = None

    def lookupChannel(self, channelType: bytes, windowSize: int, maxPacket: int, data: bytes) -> SftpChannel:
        """Open a new session; ConchError."""
        if channelType != b"session":
            raise ConchError(OPEN_UNKNOWN_CHANNEL_TYPE, "only SFTP sessions are supported")
        is_full = len(self.conn.channels) >= MAX_SESSIONS or self._door.load.sessions >= MOST_SESSIONS
        if is_full or maxPacket < LEAST_PACKET:
            raise ConchError(OPEN_ADMINISTRATIVELY_PROHIBITED, "too many sessions, or too small packets")
        return SftpChannel(self._door, self._account, remoteWindow=windowSize, remoteMaxPacket=maxPacket, data=data)

    def lookupSubsystem(self, subsystem: bytes, data: bytes) -> None:
        """Return nothing: the channel handles subsystems itself."""

    def gotGlobalRequest(self, requestType: bytes, data: bytes) -> bool:
        """Refuse all forwarding."""
        return False
