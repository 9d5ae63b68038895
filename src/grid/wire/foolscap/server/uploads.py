"""Uploads in progress as remote objects: one writer per share for 1.20 clients, one object for all shares for ours.

A session ties the objects of one allocation to the client's canary: if the connection is lost before every
share is closed or aborted, the others are aborted. [spec storage-server 8.2]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foolscap.api import Referenceable
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from grid.errors import FormatError
from grid.ports import ShareNumber, ShareWrite, Upload
from grid.under_way import WritesUnderWay
from grid.wire.foolscap.remote_errors import answer
from grid.wire.foolscap.schema import RIBucketWriter, RIShareUpload
from grid.wire.foolscap.values import natural, share_number
from grid.wire.packed import share_ranges

log = Logger()


class UploadSession:
    """The upload of one allocation, aborted when its client's connection is lost."""

    def __init__(self, upload: Upload, canary: Any) -> None:
        self._upload = upload
        self._canary = canary
        self._open = set(upload.share_numbers)
        self.share_numbers = frozenset(upload.share_numbers)
        self._marker = canary.notifyOnDisconnect(self._lost) if self._open else None

    def require_open(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Raise FormatError if one of these shares is no longer being uploaded."""
        if not self._open.issuperset(share_numbers):
            raise FormatError("this share was never allocated here, or was closed or given up already")

    async def write(self, writes: list[ShareWrite]) -> None:
        """Store the writes, which must all be to open shares."""
        self.require_open([write.share_number for write in writes])
        await self._upload.write(writes)

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Finish these shares."""
        numbers = frozenset(share_numbers)
        self.require_open(numbers)
        await self._upload.close(numbers)
        self._settle(numbers)

    async def abort(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Abort those of the shares that are open."""
        numbers = frozenset(share_numbers) & self._open
        if numbers:
            await self._upload.abort(numbers)
            self._settle(numbers)

    def _settle(self, share_numbers: frozenset[ShareNumber]) -> None:
        self._open -= share_numbers
        if not self._open and self._marker is not None:
            self._canary.dontNotifyOnDisconnect(self._marker)
            self._marker = None

    def _lost(self) -> None:
        self._marker = None
        if self._open:
            log.info("an upload of {count} shares ended with its connection", count=len(self._open))
            remaining, self._open = frozenset(self._open), set()
            task = Deferred.fromCoroutine(_abort(self._upload, remaining))
            task.addErrback(lambda failure: log.failure("an upload could not be aborted", failure=failure))


async def _abort(upload: Upload, share_numbers: frozenset[ShareNumber]) -> None:
    await upload.abort(share_numbers)


def share_writers(session: UploadSession) -> dict[int, Referenceable]:
    """One writer for each share of the session."""
    return {number: RemoteWriter(session, number) for number in session.share_numbers}


@implementer(RIBucketWriter)  # type: ignore[misc]
class RemoteWriter(Referenceable):
    """One immutable share being written."""

    def __init__(self, session: UploadSession, number: ShareNumber) -> None:
        self._session = session
        self._number = number

    def remote_write(self, offset: int, data: bytes) -> Deferred[None]:
        """Store the bytes at that offset."""
        return answer(self._write(offset, data))

    async def _write(self, offset: int, data: bytes) -> None:
        await self._session.write([ShareWrite(self._number, natural(offset), [data])])

    def remote_close(self) -> Deferred[None]:
        """Close the complete share."""
        return answer(self._session.close([self._number]))

    def remote_abort(self) -> Deferred[None]:
        """Abort the share."""
        return answer(self._session.abort([self._number]))


@implementer(RIShareUpload)  # type: ignore[misc]
class RemoteUpload(Referenceable):
    """All shares of one allocation, written in batches."""

    def __init__(self, session: UploadSession) -> None:
        self._session = session
        self._writes = WritesUnderWay()

    def remote_write(self, records: bytes, data: bytes) -> Deferred[None]:
        """Store all the bytes, for the shares that the records name."""
        return answer(self._write(records, data))

    async def _write(self, records: bytes, data: bytes) -> None:
        with self._writes.counted(self._session.share_numbers):
            writes = share_ranges.parse_writes(records, data)
        with self._writes.counted({write.share_number for write in writes}):
            await self._session.write(writes)

    def remote_close(self, sharenums: set[int]) -> Deferred[None]:
        """Close these complete shares."""
        return answer(self._close(sharenums))

    async def _close(self, sharenums: set[int]) -> None:
        numbers = [share_number(number) for number in sharenums]
        # A client does not wait for the answers to its writes before it closes their shares.
        await self._writes.stored(numbers)
        await self._session.close(numbers)

    def remote_abort(self, sharenums: set[int]) -> Deferred[None]:
        """Abort these shares."""
        return answer(self._abort(sharenums))

    async def _abort(self, sharenums: set[int]) -> None:
        await self._session.abort([share_number(number) for number in sharenums])
