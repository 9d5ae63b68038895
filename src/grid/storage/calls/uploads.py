"""Uploads in progress on a server: who writes which share, how much room is promised, and when an upload is aborted.

A share is open, then closing, then over; or open, then over if it is aborted. A share counts as unfinished,
and no answer mentions it, until it is as durable as the server's setting requires. [spec storage-server 8.2]
Cost: a write is one pool call for all shares in it. Closing any number of shares costs one sync per file,
in parallel as far as the pool allows, one pool call to rename them, and a sync of their directories that
concurrent closes share.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred, DeferredLock

from grid.errors import FormatError, GridError, NoSpaceError, PeerError, PeerRefusedError
from grid.limits import MAX_FILE_SIZE, MAX_UPLOAD_BACKLOG, MAX_UPLOAD_FILES, WRITE_CALL_BYTES
from grid.ports import Clock, ShareNumber, ShareWrite, Timer
from grid.read_write_locks import ReadWriteLocks
from grid.storage.calls.directory_sync import DirectorySync
from grid.storage.calls.meter import Meter, count_writes, counted_later, metered
from grid.storage.calls.tasks import shielded, together
from grid.storage.files.disk import FULL
from grid.storage.files.incoming import IncomingShare, Span
from grid.storage.files.store import ShareStore
from grid.under_way import WritesUnderWay
from grid.values import define, field

IDLE_S = 1800.0
"""A share is aborted after this many seconds without a write. [spec storage-server 8.2]"""

T = TypeVar("T")


class RunOnDisk(Protocol):
    """Calls a function on the pool. An OSError becomes a GridError."""

    def __call__(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Run the function and return its result."""


class _State(Enum):
    OPEN = auto()
    CLOSING = auto()
    OVER = auto()


@define(eq=False)
class _Part:
    """One share of an upload. Hold its lock while working on its file."""

    share: IncomingShare
    last_used: float
    state: _State = _State.OPEN
    users: int = 0
    lock: DeferredLock = field(factory=DeferredLock)


class UploadTable:
    """Every unfinished share of a server."""

    def __init__(self, most_open: int = MAX_UPLOAD_FILES) -> None:
        """most_open: how many shares' files may stay open."""
        self._most_open = most_open
        self._numbers: dict[str, set[ShareNumber]] = {}
        self.uploads: set[ShareUpload] = set()
        self._drained: list[Deferred[None]] = []
        self.reserved_size = 0
        self._file_count = 0

    @property
    def keep_open(self) -> int:
        """How many more shares' files may stay open."""
        return max(0, self._most_open - self._file_count)

    def hidden(self, name: str) -> frozenset[ShareNumber]:
        """The unfinished shares of the storage index of that name."""
        return frozenset(self._numbers.get(name, ()))

    async def drained(self) -> None:
        """Return when no upload is in progress."""
        if self.uploads:
            drained: Deferred[None] = Deferred()
            self._drained.append(drained)
            await drained

    def forget(self, upload: ShareUpload) -> None:
        """Remove a finished upload."""
        self.uploads.discard(upload)
        waiting: list[Deferred[None]] = []
        if not self.uploads:
            waiting, self._drained = self._drained, waiting
        for drained in waiting:
            drained.callback(None)

    def add(self, share: IncomingShare) -> None:
        """Count an unfinished share."""
        self._numbers.setdefault(share.name, set()).add(share.share_number)
        self.reserved_size += share.size
        self._file_count += 1

    def remove(self, share: IncomingShare) -> None:
        """Stop counting a share that is finished or gone."""
        numbers = self._numbers[share.name]
        numbers.discard(share.share_number)
        if not numbers:
            del self._numbers[share.name]
        self.reserved_size -= share.size
        self._file_count -= 1


@define(eq=False)
class UploadContext:
    """What the uploads of one server have in common."""

    store: ShareStore
    table: UploadTable
    locks: ReadWriteLocks
    directories: DirectorySync
    clock: Clock
    run: RunOnDisk
    meter: Meter


class ShareUpload:
    """The shares of one allocation; implements ports.Upload. name: of their storage index."""

    def __init__(self, context: UploadContext, name: str, shares: Sequence[IncomingShare]) -> None:
        self._context = context
        self.meter = context.meter
        self._name = name
        now = context.clock.now()
        self._parts = {share.share_number: _Part(share, now) for share in shares}
        self._backlog_size = 0
        self._timer: Timer | None = None
        self._writes = WritesUnderWay()
        for share in shares:
            context.table.add(share)
        if shares:
            context.table.uploads.add(self)
            self._timer = context.clock.call_later(IDLE_S, self._give_up_idle)

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The numbers of the shares allocated here."""
        return frozenset(self._parts)

    def missing(self, share_number: ShareNumber) -> list[Span]:
        """The half-open spans of the share that are not written yet; PeerRefusedError if the share is over."""
        (part,) = self._open_parts([share_number])
        return part.share.missing()

    @metered("write", count_writes)
    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store the writes in order."""
        with self._writes.counted({write.share_number for write in writes}):
            await shielded(self._write(writes))

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the writes, and finish their shares."""
        numbers = {write.share_number for write in writes}
        await self.write(writes)
        await self._writes.stored(numbers)
        await self.close(numbers)

    @metered("close", counted_later)
    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Finish the shares, and remove those that cannot be finished."""
        await shielded(self._close(share_numbers))

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Abort the shares that are still open; never fails."""
        await shielded(self._abort(self._parts if share_numbers is None else share_numbers))

    async def _write(self, writes: Sequence[ShareWrite]) -> None:
        parts = self._open_parts({write.share_number for write in writes})
        size = sum(_checked_size(write) for write in writes)
        if size > WRITE_CALL_BYTES:
            raise FormatError(f"a write of {size} bytes at once; at most {WRITE_CALL_BYTES} are possible")
        if self._backlog_size + size > MAX_UPLOAD_BACKLOG:
            raise PeerRefusedError("too much waits to be written in this upload", kind="Busy")
        self._backlog_size += size
        for part in parts:
            part.users += 1
        try:
            for part in parts:
                await part.lock.acquire()
            try:
                if any(part.state is _State.OVER for part in parts):
                    raise PeerRefusedError("the upload was abandoned", kind="UploadOver")
                await self._context.run(self._store_all, writes)
            finally:
                for part in parts:
                    part.lock.release()
        finally:
            self._backlog_size -= size
            for part in parts:
                part.users -= 1
                part.last_used = self._context.clock.now()

    def _store_all(self, writes: Sequence[ShareWrite]) -> None:
        for write in writes:
            self._parts[write.share_number].share.write(write.offset, write.pieces)

    async def _close(self, share_numbers: Iterable[ShareNumber]) -> None:
        parts = self._open_parts(share_numbers)
        for part in parts:
            part.state = _State.CLOSING
        try:
            await self._close_parts(parts)
        finally:
            # After an unexpected error, no share may stay half closed, because its room would be reserved forever.
            if unsettled := [part for part in parts if part.state is _State.CLOSING]:
                await self._discard(unsettled)

    async def _close_parts(self, parts: list[_Part]) -> None:
        errors = await together(self._sync_file(part) for part in parts)
        lost = [part for part, error in zip(parts, errors, strict=True) if error is not None]
        whole = [part for part, error in zip(parts, errors, strict=True) if error is None]
        failures = [error for error in errors if error is not None]
        if lost:
            await self._discard(lost)
        if whole:
            failures += await self._finish(whole)
        if failures:
            raise failures[0]

    async def _sync_file(self, part: _Part) -> None:
        await part.lock.acquire()
        try:
            await self._context.run(part.share.sync)
        finally:
            part.lock.release()

    async def _finish(self, parts: list[_Part]) -> list[GridError | OSError]:
        """Give the shares their final names. Returns the errors of those that failed."""
        context = self._context
        async with context.locks.shared(self._name, refusable=False):
            try:
                shares = [part.share for part in parts]
                finished, errors = await context.run(context.store.finish, self._name, shares)
                failures = [disk_error(error) if isinstance(error, OSError) else error for error in errors]
                is_durable = False
                try:
                    await context.directories.sync_shares(self._name)
                    is_durable = True
                except OSError as error:
                    failures.append(disk_error(error))
                if is_durable:
                    context.meter.count("close", len(finished))
                    context.meter.count("bytes_added", sum(share.size for share in finished))
                else:
                    await context.run(context.store.retract, self._name, finished)
            finally:
                self._end(parts)
        return [*failures]

    async def _abort(self, share_numbers: Iterable[ShareNumber]) -> None:
        wanted = frozenset(share_numbers)
        parts = [part for number, part in sorted(self._parts.items()) if number in wanted and part.state is _State.OPEN]
        if not parts:
            return
        self.meter.count("abort", len(parts))
        for part in parts:
            part.state = _State.OVER
        for part in parts:
            await part.lock.acquire()
        try:
            await self._discard(parts)
        finally:
            # A write to several shares that waited for one of these finds it over, and lets go of the others.
            for part in parts:
                part.lock.release()

    async def _discard(self, parts: list[_Part]) -> None:
        async with self._context.locks.exclusive(self._name, refusable=False):
            try:
                await self._context.run(self._context.store.discard, self._name, [part.share for part in parts])
            finally:
                self._end(parts)

    def _end(self, parts: Iterable[_Part]) -> None:
        for part in parts:
            part.state = _State.OVER
            self._context.table.remove(part.share)
            del self._parts[part.share.share_number]
        if not self._parts:
            if self._timer is not None:
                self._timer.cancel()
            self._context.table.forget(self)

    def _open_parts(self, share_numbers: Iterable[ShareNumber]) -> list[_Part]:
        """The open parts of those shares, in order; PeerRefusedError unless all are open."""
        parts = []
        for number in sorted(set(share_numbers)):
            part = self._parts.get(number)
            if part is None or part.state is not _State.OPEN:
                raise PeerRefusedError(f"share {number} is not being uploaded here any more", kind="UploadOver")
            parts.append(part)
        return parts

    def _give_up_idle(self) -> None:
        now = self._context.clock.now()
        waiting = [part for part in self._parts.values() if part.state is _State.OPEN]
        idle = [part for part in waiting if not part.users and now - part.last_used >= IDLE_S]
        kept = [part.last_used for part in waiting if part not in idle]
        if kept:
            self._timer = self._context.clock.call_later(max(1.0, min(kept) + IDLE_S - now), self._give_up_idle)
        if idle:
            shielded(self._abort([part.share.share_number for part in idle]))


def disk_error(error: OSError) -> GridError:
    """The error to send to a caller for an error of the disk: no space, or a failure."""
    if error.errno in FULL:
        return NoSpaceError(f"the disk takes no more: {error.strerror}")
    return PeerError(f"the disk failed: {error.strerror}")


def _checked_size(write: ShareWrite) -> int:
    if not 0 <= write.offset <= MAX_FILE_SIZE:
        raise FormatError(f"an offset outside 0 to {MAX_FILE_SIZE}")
    return write.size
