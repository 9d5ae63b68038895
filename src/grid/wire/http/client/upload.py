"""An upload to one server over HTTP. [spec wire 17, 18]

The server closes a share when it receives the last byte. So that nothing is finished before `close`, the client keeps the last
TAIL_SIZE bytes of each share until then. Closing sends them, with zeros for bytes that were
never written. So a small share takes one request in all, the last writes of a large one include the tail,
and an aborted upload leaves nothing behind.
It does not end with a connection. An upload that an earlier process began is resumed: what the server has is not
sent again. Memory: TAIL_SIZE bytes per share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from grid.errors import ConflictingWriteError, DataTooLargeError, PeerError, PeerGoneError
from grid.limits import WRITE_CALL_BYTES
from grid.ports import Buffer, ShareNumber, ShareWrite, StorageIndex
from grid.under_way import WritesUnderWay
from grid.values import field, frozen
from grid.wire.http.client import single_requests, wide_requests
from grid.wire.http.client.link import Session
from grid.wire.http.client.requester import Requester, all_of
from grid.wire.http.format.ranges import Coverage

TAIL_SIZE = 64 * 1024
_ZEROS = bytes(256 * 1024)

Gap = tuple[int, int]
"""(begin, end) of bytes that a share lacks."""


@frozen(kw_only=True)
class UploadTarget:
    """What the shares of an upload belong to."""

    session: Session
    index: StorageIndex
    secret: bytes = field(repr=False)


class _OpenShare:
    """The state of one share: the server has the bytes before `tail_start`, and the others are here.

    held: those that the server had before, of which nothing more is sent.
    """

    def __init__(self, size: int, gaps: Sequence[Gap] | None) -> None:
        """gaps: what the server lacks of a share begun earlier; None for a new share."""
        self.tail_start = max(0, size - TAIL_SIZE)
        self.sent, self.held = Coverage(self.tail_start), Coverage(self.tail_start)
        if gaps is not None:
            edges = [0, *(edge for gap in gaps for edge in gap), size]
            for begin, end in zip(edges[::2], edges[1::2], strict=True):
                for coverage in (self.sent, self.held):
                    coverage.add(begin, min(end, self.tail_start))
        self.tail = bytearray(size - self.tail_start)
        self._kept = Coverage(len(self.tail))

    def keep(self, offset: int, data: memoryview) -> None:
        """Keep bytes of the tail; offset: within the tail. ConflictingWriteError if other bytes were written there."""
        end = offset + len(data)
        for begin, stop in self._kept.overlap(offset, end):
            if self.tail[begin:stop] != data[begin - offset : stop - offset]:
                raise ConflictingWriteError("other bytes were written here before")
        self.tail[offset:end] = data
        self._kept.add(offset, end)


class HttpUpload:
    """The new shares that a server has allocated, each of `size` bytes."""

    def __init__(
        self,
        requester: Requester,
        target: UploadTarget,
        share_numbers: frozenset[ShareNumber],
        size: int,
        gaps: Mapping[ShareNumber, Sequence[Gap]],
    ) -> None:
        """gaps: what is missing of each of the shares that were begun earlier."""
        self._requester = requester
        self._target = target
        self._size = size
        self._share_numbers = share_numbers
        self._open = {number: _OpenShare(size, gaps.get(number)) for number in share_numbers}
        self._complete: set[ShareNumber] = set()
        self._writes = WritesUnderWay()

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated."""
        return self._share_numbers

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all writes except the shares' tails: one request, or with 1.20 one per run of bytes."""
        with self._writes.counted({write.share_number for write in writes}):
            await self._send(self._fronts(writes))

    def _fronts(self, writes: Sequence[ShareWrite]) -> list[ShareWrite]:
        """The parts of the writes to send before the shares are closed. The rest is kept."""
        self._require_open(write.share_number for write in writes)
        if any(write.offset + write.size > self._size for write in writes):
            raise DataTooLargeError(f"a write past the end of a share of {self._size} bytes")
        fronts = [front for write in writes if (front := self._split(write)) is not None]
        for front in fronts:
            self._open[front.share_number].sent.add(front.offset, front.offset + front.size)
        return [part for front in fronts for part in _without(front, self._open[front.share_number].held)]

    def _split(self, write: ShareWrite) -> ShareWrite | None:
        """The part of the write to send now, if any. The part in the tail is kept."""
        share = self._open[write.share_number]
        offset = write.offset
        front: list[Buffer] = []
        for piece in write.pieces:
            view = memoryview(piece)
            before = max(0, min(len(view), share.tail_start - offset))
            if before:
                front.append(view[:before])
            if before < len(view):
                share.keep(offset + before - share.tail_start, view[before:])
            offset += len(view)
        return ShareWrite(write.share_number, write.offset, front) if front else None

    async def _send(self, writes: Sequence[ShareWrite]) -> None:
        """Send the writes, and note which shares they complete."""
        if writes:
            self._complete |= await self._send_all(writes)

    async def _send_all(self, writes: Sequence[ShareWrite]) -> frozenset[ShareNumber]:
        session, index, secret = self._target.session, self._target.index, self._target.secret
        if session.version.batched_writes:
            return await wide_requests.write_shares(self._requester, session.access, index, secret, writes)
        runs = _runs([write for write in writes if write.size])

        async def write_runs(number: ShareNumber) -> bool:
            complete = False
            for offset, pieces in runs[number]:
                complete = await single_requests.write_share(
                    self._requester, session.access, index, secret, ShareWrite(number, offset, pieces)
                )
            return complete

        numbers = list(runs)
        outcomes = await all_of(write_runs(number) for number in numbers)
        return frozenset(number for number, complete in zip(numbers, outcomes, strict=True) if complete)

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the writes and finish their shares: one request."""
        numbers = frozenset(write.share_number for write in writes)
        self._writes.require_whole(numbers)
        await self._close(numbers, self._fronts(writes))

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Send the tails and finish these shares; PeerError if the server does not confirm that."""
        numbers = frozenset(share_numbers)
        self._require_open(numbers)
        await self._close(numbers, [])

    async def _close(self, numbers: frozenset[ShareNumber], fronts: Sequence[ShareWrite]) -> None:
        for number in sorted(numbers):
            for begin, end in self._open[number].sent.missing():
                await self._fill(number, begin, end)
        last = [
            *fronts,
            *(ShareWrite(number, share.tail_start, [share.tail]) for number, share in self._named(numbers)),
        ]
        last.sort(key=lambda write: write.share_number)  # A share's tail follows directly after the earlier bytes.
        for batch in _batches(last):
            await self._send(batch)
        # The request that brings a share's last byte learns that the share is complete. This may have been an earlier one.
        await self._writes.stored(numbers)
        unfinished = sorted(numbers - self._complete)
        if unfinished:
            raise PeerError(f"{self._requester.where} did not confirm that shares {unfinished} are complete")
        for number in numbers:
            self._open.pop(number, None)

    def _named(self, numbers: frozenset[ShareNumber]) -> list[tuple[ShareNumber, _OpenShare]]:
        return [(number, self._open[number]) for number in sorted(numbers)]

    async def _fill(self, number: ShareNumber, begin: int, end: int) -> None:
        while begin < end:
            size = min(end - begin, len(_ZEROS))
            await self.write([ShareWrite(number, begin, [memoryview(_ZEROS)[:size]])])
            begin += size

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Abort those of the shares that are open. A server that cannot be reached does so itself after half an hour."""
        numbers = self._open.keys() & set(self._open if share_numbers is None else share_numbers)
        for number in numbers:
            del self._open[number]
        try:
            target = self._target
            await single_requests.abort_shares(
                self._requester, target.session.access, target.index, target.secret, numbers
            )
        except PeerGoneError:
            return

    def _require_open(self, share_numbers: Iterable[ShareNumber]) -> None:
        closed = set(share_numbers) - self._open.keys()
        if closed:
            raise PeerError(f"shares {sorted(closed)} are not being uploaded to {self._requester.where}")


def _without(write: ShareWrite, held: Coverage) -> list[ShareWrite]:
    """The write without the bytes that are there already, in as many parts as that leaves."""
    end = write.offset + write.size
    overlap = held.overlap(write.offset, end)
    if not overlap:
        return [write]
    parts, position = list[ShareWrite](), write.offset
    for begin, stop in [*overlap, (end, end)]:
        if position < begin:
            pieces = _cut(write.pieces, position - write.offset, begin - write.offset)
            parts.append(ShareWrite(write.share_number, position, pieces))
        position = stop
    return parts


def _cut(pieces: Sequence[Buffer], begin: int, end: int) -> list[Buffer]:
    """Bytes begin .. end of the pieces, as views."""
    found, offset = list[Buffer](), 0
    for piece in pieces:
        view = memoryview(piece)[max(0, begin - offset) : max(0, end - offset)]
        if view:
            found.append(view)
        offset += len(piece)
    return found


def _batches(writes: Sequence[ShareWrite]) -> Iterator[list[ShareWrite]]:
    """The writes in groups of at most WRITE_CALL_BYTES."""
    batch: list[ShareWrite] = []
    size = 0
    for write in writes:
        if batch and size + write.size > WRITE_CALL_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(write)
        size += write.size
    if batch:
        yield batch


def _runs(writes: Sequence[ShareWrite]) -> Mapping[ShareNumber, list[tuple[int, list[Buffer]]]]:
    """Per share, the runs of consecutive bytes as (offset, pieces), in the given order."""
    runs: dict[ShareNumber, list[tuple[int, list[Buffer]]]] = {}
    ends: dict[ShareNumber, int] = {}
    for write in writes:
        of_share = runs.setdefault(write.share_number, [])
        if ends.get(write.share_number) == write.offset:
            of_share[-1][1].extend(write.pieces)
        else:
            of_share.append((write.offset, list(write.pieces)))
        ends[write.share_number] = write.offset + write.size
    return runs
