"""The packets of one session: requests and answers, within bounds.

Conch parses and writes the packets; this owns how much is in progress. A client that sends faster than its requests are
processed, or does not read its answers, is not granted more window. Invalid packets end the session.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.conch.ssh.common import NS, getNS
from twisted.conch.ssh.filetransfer import (
    FXP_ATTRS,
    FXP_DATA,
    FXP_EXTENDED_REPLY,
    FXP_HANDLE,
    FXP_NAME,
    FXP_READ,
    FXP_VERSION,
    FileTransferBase,
    FileTransferServer,
)
from twisted.internet.defer import Deferred
from twisted.logger import Logger, LogPublisher
from twisted.python.failure import Failure

from grid.errors import GridError
from grid.ports import Buffer
from grid.runtime import is_cancellation
from grid.sftp.attributes import Facts
from grid.sftp.calls import FileCalls, SessionCalls
from grid.sftp.door import MAX_HANDLES, MOST_BYTES
from grid.sftp.faults import BAD_MESSAGE, EOF, FAILURE, UNSUPPORTED, SftpFault, sftp_fault
from grid.sftp.session import MAX_READ, Listing, Session

MAX_PACKET = 2**18
MAX_REQUESTS = 128
"""Requests in progress in one session."""

MAX_BYTES = 2**21
"""Bytes of the requests and answers in progress."""

_READ = struct.Struct("!QL")
_WRITE = struct.Struct("!QL")

T = TypeVar("T")

_log = Logger("grid.sftp")
SILENT = Logger("grid.sftp", observer=LogPublisher())
"""For Conch, which would log the bytes of requests and the names of handles."""


class SftpProtocol(FileTransferServer):
    """The protocol of one session. transport: its channel."""

    _log = SILENT
    transport: Any
    client: Any

    def __init__(self, session: Session) -> None:
        FileTransferBase.__init__(self)
        self.client = SessionCalls(session)
        self.openFiles: dict[bytes, FileCalls] = {}
        self.openDirs: dict[bytes, Listing] = {}
        self._session = session
        self._arrived = bytearray()
        self._under_way: dict[bytes, int] = {}
        self._bytes = self._untaken = self._sent = 0
        self._is_draining = False
        self._is_ending = False

    def dataReceived(self, data: Buffer) -> None:
        """Take bytes of requests."""
        self._arrived += data
        self.drain()

    @property
    def is_held(self) -> bool:
        """Whether the client must wait."""
        return (
            self.transport.is_paused
            or len(self._under_way) >= MAX_REQUESTS
            or self._bytes >= MAX_BYTES
            or (self._bytes > 0 and self._session.door.load.request_bytes >= MOST_BYTES)
        )

    def go_on(self, sent: int) -> None:
        """Continue: the client accepts more. sent: bytes moved from the session's buffer to the connection's."""
        if not self._session.is_lost:
            self._weigh(sent)
            self.drain()

    def drain(self) -> None:
        """Start every request that may start now."""
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while not self.is_held and not self._session.is_lost and self._next():
                pass
        except Exception:  # Conch's parsing may raise anything.
            self._give_up()
        finally:
            self._is_draining = False
        self._settle()

    def _settle(self) -> None:
        """Update whether the client must wait, and end once all requests are done."""
        if self._session.is_lost:
            return
        self.transport.set_held(self.is_held)
        self.transport.set_busy(bool(self._under_way or self._untaken))
        if self._is_ending and not self._under_way and not self.is_held:
            self.transport.finish()

    def end(self) -> None:
        """End once all requests are done, because the client sends no more."""
        self._is_ending = True
        self.drain()

    def sendPacket(self, kind: int, data: bytes, rest: Buffer = b"") -> None:
        """Send an answer. rest: further data, which must not change afterwards."""
        if self._session.is_lost:
            return
        if kind != FXP_VERSION:
            self._count(-self._under_way.pop(data[:4], 0))
        self.transport.write(struct.pack("!LB", len(data) + len(rest) + 1, kind) + data)
        self.transport.write(rest)
        self._weigh(0)
        self.drain()

    def connectionLost(self, reason: object = None) -> None:
        """Close everything, discarding what was written but not closed, and end what only reads."""
        if self._session.is_lost:
            return
        self._session.is_lost = True
        self.connected = False
        self._arrived.clear()
        self._count(-self._bytes)
        files, self.openFiles = self.openFiles, {}
        for file in files.values():
            file.opened.abandon()
        listings, self.openDirs = self.openDirs, {}
        for listing in listings.values():
            listing.close()
        self.client.give_up()

    def _next(self) -> bool:
        """Start the next request; return whether there was one."""
        arrived = self._arrived
        if len(arrived) < 4:
            return False
        length = int.from_bytes(arrived[:4], "big")
        if not 5 <= length <= MAX_PACKET:
            raise SftpFault(BAD_MESSAGE, "no packet has that length")
        if len(arrived) < 4 + length:
            return False
        kind = arrived[4]
        with memoryview(arrived) as view:
            data = bytes(view[5 : 4 + length])
        del arrived[: 4 + length]
        name = self.packetTypes.get(kind)
        if name == "INIT":
            self.packet_INIT(data)
            return True
        request_id = data[:4]
        if len(request_id) < 4 or request_id in self._under_way:
            raise SftpFault(BAD_MESSAGE, "no request has that number")
        cost = len(data)
        if kind == FXP_READ:
            cost += min(int.from_bytes(data[-4:], "big"), MAX_READ)
        self._under_way[request_id] = cost
        self._count(cost)
        begin = getattr(self, f"packet_{name}", None)
        if begin is None:
            self._sendStatus(request_id, UNSUPPORTED, b"not supported")
        else:
            begin(data)
        return True

    def _give_up(self) -> None:
        self.connectionLost()
        self.transport.loseConnection()

    def _weigh(self, sent: int) -> None:
        """Count the bytes that the client has not taken: in the session's buffer and, while that is full, in the
        connection's.
        """
        self._sent = self._sent + sent if self.transport.is_paused else 0
        untaken = self._sent + self.transport.unsent
        self._count(untaken - self._untaken)
        self._untaken = untaken

    def _count(self, size: int) -> None:
        self._bytes += size
        self._session.door.load.request_bytes += size

    def _cbOpenFile(self, file: FileCalls, requestId: bytes) -> None:
        if self._session.is_lost:
            return
        handle = self._session.new_handle()
        self.openFiles[handle] = file
        self.sendPacket(FXP_HANDLE, requestId + NS(handle))

    def _cbOpenDirectory(self, listing: Listing, requestId: bytes) -> None:
        if self._session.is_lost:
            listing.close()
            return
        handle = self._session.new_handle()
        self.openDirs[handle] = listing
        self.sendPacket(FXP_HANDLE, requestId + NS(handle))

    def packet_CLOSE(self, data: bytes) -> None:
        """Release the handle at once, whatever happens to the file."""
        request_id = data[:4]
        handle, _ = getNS(data[4:])
        listing = self.openDirs.pop(handle, None)
        if listing is not None:
            listing.close()
            self._cbStatus(None, request_id)
            return
        file = self.openFiles.pop(handle, None)
        if file is None:
            self._ebStatus(Failure(KeyError()), request_id)
            return
        self._answer(file.close(), self._cbStatus, request_id)

    def packet_READ(self, data: bytes) -> None:
        """Bytes of a file."""
        request_id = data[:4]
        handle, rest = getNS(data[4:])
        offset, length = _READ.unpack(rest)
        file = self.openFiles.get(handle)
        if file is None:
            self._ebStatus(Failure(KeyError()), request_id)
            return
        self._answer(file.readChunk(offset, length), self._cbRead, request_id)

    def packet_WRITE(self, data: bytes) -> None:
        """Write bytes of a file, which are not copied."""
        request_id = data[:4]
        start = 8 + int.from_bytes(data[4:8], "big")
        handle = data[8:start]
        offset, length = _WRITE.unpack_from(data, start)
        start += _WRITE.size
        if length != len(data) - start:
            raise SftpFault(BAD_MESSAGE, "a write has no such length")
        file = self.openFiles.get(handle)
        if file is None:
            self._ebStatus(Failure(KeyError()), request_id)
            return
        self._answer(file.writeChunk(offset, memoryview(data)[start:]), self._cbStatus, request_id)

    def packet_READDIR(self, data: bytes) -> None:
        """The next entries of a directory."""
        request_id = data[:4]
        handle, _ = getNS(data[4:])
        listing = self.openDirs.get(handle)
        if listing is None:
            self._ebStatus(Failure(KeyError()), request_id)
            return
        self._answer(self.client.run("readdir", listing.more(), reads_only=True), self._cbEntries, request_id)

    def packet_EXTENDED(self, data: bytes) -> None:
        """OpenSSH's extensions."""
        request_id = data[:4]
        name, rest = getNS(data[4:])
        if name == b"posix-rename@openssh.com":
            old, rest = getNS(rest)
            new, _ = getNS(rest)
            self._answer(self.client.renameFile(old, new, overwrite=True), self._cbStatus, request_id)
        elif name == b"fsync@openssh.com":
            file = self.openFiles.get(getNS(rest)[0])
            if file is None:
                self._ebStatus(Failure(KeyError()), request_id)
                return
            self._answer(file.sync(), self._cbStatus, request_id)
        elif name == b"limits@openssh.com":
            limits = struct.pack("!4Q", MAX_PACKET, MAX_READ, MAX_READ, MAX_HANDLES)
            self.sendPacket(FXP_EXTENDED_REPLY, request_id + limits)
        else:
            self._sendStatus(request_id, UNSUPPORTED, b"not supported")

    def _cbEntries(self, entries: list[tuple[str, Facts]], requestId: bytes) -> None:
        if not entries:
            raise EOFError
        body = b"".join(
            NS(name.encode("utf-8", "replace"))
            + NS(facts.long_name(name).encode("utf-8", "replace"))
            + self._packAttributes(facts.to_wire())
            for name, facts in entries
        )
        self.sendPacket(FXP_NAME, requestId + struct.pack("!L", len(entries)) + body)

    def _cbRead(self, result: Buffer, requestId: bytes) -> None:
        if not result:
            raise EOFError
        self.sendPacket(FXP_DATA, requestId + len(result).to_bytes(4, "big"), result)

    def _cbStat(self, result: Facts, requestId: bytes) -> None:
        self.sendPacket(FXP_ATTRS, requestId + self._packAttributes(result.to_wire()))

    def _answer(self, done: Deferred[T], answer: Callable[..., None], request_id: bytes) -> None:
        done.addCallback(answer, request_id)
        done.addErrback(self._ebStatus, request_id)

    def _ebStatus(self, reason: Failure, requestId: bytes, msg: bytes = b"") -> None:
        error = reason.value
        if isinstance(error, EOFError):
            self._sendStatus(requestId, EOF, b"end of file")
        elif isinstance(error, GridError):
            fault = sftp_fault(error)
            self._sendStatus(requestId, fault.status, fault.message.encode("utf-8", "replace"))
        elif isinstance(error, KeyError):
            self._sendStatus(requestId, FAILURE, b"no such handle")
        else:
            if error is not None and not is_cancellation(error):
                _log.failure("an SFTP request failed", failure=reason)
            self._sendStatus(requestId, FAILURE, b"the SFTP server failed; see its log")
