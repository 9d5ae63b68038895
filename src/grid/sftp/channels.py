"""SSH channels for SFTP sessions; no shells, commands or forwarding.

Owns flow control: how much a client may send before its requests are processed, and how much unread output it may
leave.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

from twisted.conch.error import ConchError
from twisted.conch.interfaces import IConchUser
from twisted.conch.ssh.channel import SSHChannel
from twisted.conch.ssh.connection import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_UNKNOWN_CHANNEL_TYPE, SSHConnection
from zope.interface import implementer

from grid.ports import Buffer
from grid.sftp.accounts import Account
from grid.sftp.door import LARGEST_WINDOW, LEAST_WINDOW, MAX_SESSIONS, MOST_WINDOWS, Door
from grid.sftp.packets import MAX_DATA
from grid.sftp.protocol import SILENT, SftpProtocol
from grid.sftp.session import Session
from grid.values import define

LEAST_PACKET = 2**10


class SftpChannel(SSHChannel):
    """One session's channel. It grants the client window only as fast as its requests are processed."""

    name = b"session"
    _log = SILENT
    conn: Any

    def __init__(self, door: Door, account: Account, **settings: Any) -> None:
        super().__init__(localWindow=LEAST_WINDOW, localMaxPacket=MAX_DATA, **settings)
        self._output = Output()
        self._load = door.load
        self._load.window_bytes += LEAST_WINDOW
        self._session = Session(door, account)
        self._session.usage.count_session(1)
        self._protocol: SftpProtocol | None = None
        self._is_flushing = False
        self.is_held = self.is_busy = False
        self.sent_size = 0

    def requestReceived(self, requestType: bytes, data: bytes) -> bool:
        """Accept one request for the SFTP subsystem; refuse anything else."""
        if requestType != b"subsystem" or self._protocol is not None or data[4:] != b"sftp":
            return False
        self._protocol = SftpProtocol(self._session)
        self._protocol.makeConnection(self)
        return True

    def dataReceived(self, data: Buffer) -> None:
        """Take bytes of requests, and drop them before there is a protocol for them."""
        if self._protocol is not None:
            self._protocol.dataReceived(data)

    def extReceived(self, dataType: int, data: bytes) -> None:
        """Ignore extended data, which no client should send."""

    @property
    def unsent(self) -> int:
        """Bytes that wait for the client to accept them, or for the end of this turn of the event loop."""
        return self._output.size

    def write(self, data: Buffer) -> None:
        """Send bytes, which must not change afterwards.

        All bytes of one turn of the event loop are sent together, in the fewest packets: the answers to requests that came
        together, once the last of these has been handled.
        """
        self._output.add(data)
        if not self._is_flushing:
            self._is_flushing = True
            self.conn.transport.call_afterwards(self._flush_later)

    def addWindowBytes(self, data: int) -> None:
        """Note that the client accepts more bytes."""
        self.remoteWindowLeft += data
        self._flush()

    def loseConnection(self) -> None:
        """Close the channel once all bytes are sent."""
        self.closing = 1
        self._flush()

    def _flush_later(self) -> None:
        self._is_flushing = False
        self._flush()

    def _flush(self) -> None:
        """Send what the client accepts, and go on."""
        sent = self._send()
        if self._protocol is not None:
            self._protocol.go_on(sent)
        if self.closing and not self._output.size:
            self.conn.sendClose(self)

    def _send(self) -> int:
        """Send what the client accepts; return the number of bytes."""
        output, window, packets = self._output, self.remoteWindowLeft, []
        if self.localClosed:
            output.clear()
        while output.size and self.remoteWindowLeft:
            packet = output.take(min(self.remoteMaxPacket, self.remoteWindowLeft))
            self.remoteWindowLeft -= packet[0]
            packets.append(packet)
        if packets:
            self.conn.send_data(self, packets)
        sent = window - self.remoteWindowLeft
        self.sent_size += sent
        return sent

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
            self.closing = 1
            self._send()
            self.conn.sendRequest(self, b"exit-status", struct.pack(">L", 0))
            self._flush()

    def closed(self) -> None:
        """Clean up after the channel."""
        self._session.usage.count_session(-1)
        self._load.window_bytes -= self.localWindowSize
        self.set_busy(False)
        if self._protocol is not None:
            self._protocol.connectionLost()

    def set_held(self, is_held: bool) -> None:
        """Set whether the client must pause sending."""
        was_held, self.is_held = self.is_held, is_held
        if was_held and not is_held and self.localWindowLeft < self.localWindowSize // 2:
            self.conn.adjustWindow(self, self.localWindowSize - self.localWindowLeft)

    def set_busy(self, is_busy: bool) -> None:
        """Set whether a request is under way, or the client has not taken an answer."""
        if is_busy != self.is_busy:
            self.is_busy = is_busy
            self.conn.transport.settle_standing()


class Output:
    """Bytes to send, in order. size: their number."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: deque[Buffer] = deque()

    def add(self, data: Buffer) -> None:
        """Add bytes."""
        if data:
            self._pieces.append(data)
            self.size += len(data)

    def take(self, most: int) -> tuple[int, list[Buffer]]:
        """Remove the next bytes; return their number, at most this one, and the pieces."""
        left, taken = min(most, self.size), []
        self.size -= left
        size = left
        while left:
            piece = self._pieces.popleft()
            if len(piece) > left:
                view = memoryview(piece)
                self._pieces.appendleft(view[left:])
                piece = view[:left]
            taken.append(piece)
            left -= len(piece)
        return size, taken

    def clear(self) -> None:
        """Drop everything."""
        self.size = 0
        self._pieces.clear()


class SftpConnection(SSHConnection):
    """The sessions of one connection."""

    _log = SILENT
    channels: dict[int, Any]
    channelsToRemoteChannel: dict[Any, int]
    transport: Any

    def ssh_CHANNEL_DATA(self, packet: Buffer) -> None:
        """Take data of a channel, without the copies that Conch makes."""
        number, size = struct.unpack_from(">2L", packet)
        channel = self.channels[number]
        if size > min(channel.localWindowLeft, channel.localMaxPacket) or size != len(packet) - 8:
            self.sendClose(channel)
            return
        channel.localWindowLeft -= size
        if channel.localWindowLeft < channel.localWindowSize // 2:
            self.adjustWindow(channel, channel.localWindowSize - channel.localWindowLeft)
        channel.dataReceived(memoryview(packet)[8:])

    def send_data(self, channel: SftpChannel, packets: list[tuple[int, list[Buffer]]]) -> None:
        """Send data of the channel: the size of each packet's, and its pieces."""
        self.transport.send_data(self.channelsToRemoteChannel[channel], packets)

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
        has_room = len(self.conn.channels) < MAX_SESSIONS and self._door.load.of(self._account.name).may_begin_session
        if not has_room or maxPacket < LEAST_PACKET:
            raise ConchError(OPEN_ADMINISTRATIVELY_PROHIBITED, "too many sessions, or too small packets")
        return SftpChannel(self._door, self._account, remoteWindow=windowSize, remoteMaxPacket=maxPacket, data=data)

    def lookupSubsystem(self, subsystem: bytes, data: bytes) -> None:
        """Return nothing: the channel handles subsystems itself."""

    def gotGlobalRequest(self, requestType: bytes, data: bytes) -> bool:
        """Refuse all forwarding."""
        return False
