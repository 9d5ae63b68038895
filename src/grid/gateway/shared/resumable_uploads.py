"""Uploads that outlive the connections they arrive over. [spec webapi 4.9]

It owns their bounds: how many there are, and how long each waits for its next request. Their bytes are spooled as those
of every body: encrypted, in a file that no other process can open. Nothing is in the grid before a PUT links it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from twisted.internet.defer import Deferred

from grid.codec.base32 import encode
from grid.gateway.faults import Conflict, NotFound, PayloadTooLarge, ServiceUnavailable
from grid.gateway.shared.spool import Spool, SpoolFolder
from grid.ports import Runtime, Timer
from grid.runtime import Tasks
from grid.values import define, field

MAX_UPLOADS = 64
"""Uploads at once, waiting or in progress."""

KEPT_S = 3600.0
"""Seconds that an upload waits for its next request."""

_ID_SIZE = 16


@define(eq=False)
class ResumableUpload:
    """One upload. size: of the whole file. stop: ends the request that sends bytes now."""

    spool: Spool
    size: int
    expires_at: float = 0.0
    timer: Timer | None = None
    users: int = 0
    stop: Callable[[], None] | None = None
    tasks: Tasks = field(factory=Tasks)

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are here."""
        return self.spool.size == self.size


class ResumableUploads:
    """All of them, by identifiers that nobody can guess."""

    def __init__(self, folder: SpoolFolder, runtime: Runtime) -> None:
        self._folder, self._runtime = folder, runtime
        self._uploads: dict[str, ResumableUpload] = {}

    def __len__(self) -> int:
        return len(self._uploads)

    async def create(self, size: int) -> str:
        """Begin an upload of a file of this size; ServiceUnavailable, NoSpaceError."""
        if len(self._uploads) >= MAX_UPLOADS:
            raise ServiceUnavailable("too many unfinished uploads; try again later", headers=(("Retry-After", "60"),))
        upload = ResumableUpload(Spool(self._folder, self._runtime.cpu), size)
        await upload.spool.expect(size)
        if not size:
            await upload.spool.finish()
        identifier = encode(self._runtime.entropy.random_bytes(_ID_SIZE))
        self._uploads[identifier] = upload
        self._wait(identifier, upload)
        return identifier

    @contextmanager
    def using(self, identifier: str) -> Iterator[ResumableUpload]:
        """An upload, which does not expire meanwhile; NotFound."""
        upload = self._uploads.get(identifier)
        if upload is None:
            raise NotFound("there is no such upload: it has expired, or is complete")
        upload.users += 1
        if upload.timer is not None:
            upload.timer.cancel()
            upload.timer = None
        try:
            yield upload
        finally:
            upload.users -= 1
            if not upload.users and self._uploads.get(identifier) is upload:
                self._wait(identifier, upload)

    async def interrupt(self, upload: ResumableUpload) -> None:
        """End the request that sends bytes, if any: its connection may be dead without this end knowing."""
        if upload.stop is not None:
            upload.stop()
        await upload.tasks.wait()

    async def append(
        self, upload: ResumableUpload, offset: int, chunks: AsyncIterator[bytes], stop: Callable[[], None]
    ) -> None:
        """Take the bytes from `offset` on. stop: makes the chunks end.

        Conflict unless the upload has `offset` bytes; PayloadTooLarge; the errors of the chunks, after those before.
        """
        await self.interrupt(upload)
        if offset != upload.spool.size:
            raise Conflict(f"the upload has {upload.spool.size} bytes: continue there")
        ended: Deferred[None] = Deferred()
        upload.stop = stop
        # A task of its own: if the client goes away, what has arrived is kept.
        upload.tasks.start(self._receive(upload, chunks), ended.callback, ended.errback)
        await ended

    def release(self, identifier: str) -> None:
        """Discard an upload."""
        upload = self._uploads.pop(identifier, None)
        if upload is None:
            return
        if upload.timer is not None:
            upload.timer.cancel()
        if upload.stop is not None:
            upload.stop()
        upload.tasks.cancel()
        upload.spool.close()

    def close(self) -> None:
        """Discard all of them."""
        for identifier in list(self._uploads):
            self.release(identifier)

    async def _receive(self, upload: ResumableUpload, chunks: AsyncIterator[bytes]) -> None:
        try:
            async for chunk in chunks:
                if upload.spool.size + len(chunk) > upload.size:
                    raise PayloadTooLarge(f"the upload was announced with {upload.size} bytes")
                await upload.spool.write(chunk)
            if upload.is_complete:
                await upload.spool.finish()
        finally:
            upload.stop = None

    def _wait(self, identifier: str, upload: ResumableUpload) -> None:
        clock = self._runtime.clock
        upload.expires_at = clock.unix_time() + KEPT_S
        upload.timer = clock.call_later(KEPT_S, lambda: self._expire(identifier, upload))

    def _expire(self, identifier: str, upload: ResumableUpload) -> None:
        upload.timer = None
        self.release(identifier)
