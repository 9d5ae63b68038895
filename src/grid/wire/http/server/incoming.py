"""Uploads in progress that were begun over HTTP: which secret may write them, and what is still missing. [spec wire 17]

They do not belong to a connection. They end when they are complete, when they are aborted, or after half an hour without a write;
the storage enforces that, and this module only forgets them. A share closes itself when its last byte
has come, so the write with that byte also closes it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from twisted.internet.defer import DeferredLock

from grid.errors import PeerRefusedError
from grid.limits import MAX_HTTP_UPLOAD_IDLE_S, MAX_UPLOAD_SPANS
from grid.ports import Clock, ShareNumber, ShareWrite, StorageIndex, Upload
from grid.values import define, field
from grid.wire.http.format.ranges import Coverage
from grid.wire.http.format.refusals import RefusedError

FORGET_EVERY_S = 60.0
GRACE_S = 120.0

OVER = "UploadOver"
"""The kind of refusal by which a storage service says that an upload has ended."""


@define(eq=False)
class Incoming:
    """One share being uploaded. All shares of one allocation use the same lock, so that their writes take turns."""

    upload: Upload
    secret: bytes = field(repr=False)
    coverage: Coverage
    lock: DeferredLock
    touched: float

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing. A share of zero bytes is complete as soon as it is allocated."""
        return self.coverage.complete or not self.coverage.size


class IncomingShares:
    """All uploads in progress, by storage index and share number."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shares: dict[tuple[StorageIndex, ShareNumber], Incoming] = {}
        self._swept = clock.now()

    def __len__(self) -> int:
        return len(self._shares)

    def begin(self, index: StorageIndex, upload: Upload, secret: bytes, size: int) -> None:
        """Register the shares of a new allocation, of `size` bytes each. Clients that know the secret may write them."""
        now = self._clock.now()
        self._forget_old(now)
        lock = DeferredLock()
        for number in upload.share_numbers:
            self._shares[index, number] = Incoming(upload, secret, Coverage(size), lock, now)

    def find(self, index: StorageIndex, number: ShareNumber, secret: bytes) -> Incoming | None:
        """The share, or None if it is not being uploaded; RefusedError (401) if the secret is wrong."""
        incoming = self._shares.get((index, number))
        if incoming is not None and not hmac.compare_digest(incoming.secret, secret):
            raise RefusedError(401)
        return incoming

    def require(self, index: StorageIndex, number: ShareNumber, secret: bytes) -> Incoming:
        """The share; RefusedError if it is not being uploaded (404) or the secret is wrong (401)."""
        incoming = self.find(index, number, secret)
        if incoming is None:
            raise RefusedError(404)
        return incoming

    async def write(
        self, index: StorageIndex, writes: Sequence[ShareWrite], targets: Mapping[ShareNumber, Incoming]
    ) -> None:
        """Store the writes, whose targets are all of one upload, and close the shares that are complete then.

        RefusedError (404) if one of the shares has ended meanwhile; also raises the errors of Upload.write.
        """
        some = next(iter(targets.values()))
        await some.lock.acquire()
        try:
            for number, incoming in targets.items():
                if self._shares.get((index, number)) is not incoming:
                    raise RefusedError(404)
                incoming.touched = self._clock.now()
                if incoming.coverage.span_count > MAX_UPLOAD_SPANS:
                    raise RefusedError(413)
            await self._store(index, writes, targets)
            for write in writes:
                targets[write.share_number].coverage.add(write.offset, write.offset + write.size)
            whole = [number for number, incoming in targets.items() if incoming.is_whole]
            if whole:
                # Finished or lost: the storage has nothing left to write to.
                self._drop(index, whole)
                await some.upload.close(whole)
        finally:
            some.lock.release()

    async def _store(
        self, index: StorageIndex, writes: Sequence[ShareWrite], targets: Mapping[ShareNumber, Incoming]
    ) -> None:
        some = next(iter(targets.values()))
        try:
            await some.upload.write(writes)
        except PeerRefusedError as error:
            if error.kind != OVER:
                raise
            # The storage has aborted the shares, because nobody wrote to them for too long.
            self._drop(index, list(targets))
            raise RefusedError(404) from None

    async def abort(self, index: StorageIndex, number: ShareNumber, incoming: Incoming) -> None:
        """Abort the share."""
        await incoming.lock.acquire()
        try:
            if self._shares.get((index, number)) is incoming:
                await incoming.upload.abort([number])
                self._drop(index, [number])
        finally:
            incoming.lock.release()

    def _drop(self, index: StorageIndex, numbers: Sequence[ShareNumber]) -> None:
        for number in numbers:
            self._shares.pop((index, number), None)

    def _forget_old(self, now: float) -> None:
        if now - self._swept < FORGET_EVERY_S:
            return
        self._swept = now
        oldest = now - MAX_HTTP_UPLOAD_IDLE_S - GRACE_S
        for key in [key for key, incoming in self._shares.items() if incoming.touched < oldest]:
            del self._shares[key]
