"""Reads of single shares over Foolscap, as in 1.20: answered at once, or streamed if the answer is too long to hold.

A streamed answer is no snapshot: a mutable share that changes meanwhile is read partly old and partly new,
as over HTTP, and its reader's proofs detect that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from foolscap.api import Referenceable
from twisted.internet.defer import Deferred
from zope.interface import implementer

from grid.engine.requests import UNREAD
from grid.errors import DataTooLargeError, FormatError, PeerError
from grid.limits import MAX_FILE_SIZE, MAX_SEGMENT_SIZE, READ_CALL_BYTES
from grid.ports import Buffer, Range, ShareNumber, StorageIndex, StorageServer
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.measured import MeasuredReads, clipped_length
from grid.wire.budget.reservation import Outgoing, Reservation
from grid.wire.foolscap.outgoing import StreamedBytes, held_answer
from grid.wire.foolscap.remote_errors import answer
from grid.wire.foolscap.schema import RIBucketReader
from grid.wire.foolscap.values import as_bytes, natural

MAX_STREAMS = 64
"""Ranges of one answer that may be streamed: each is looked up first."""

ReadWithin = Callable[[Reservation, Sequence[Range]], Awaitable[Sequence[Buffer]]]
"""Reads those ranges of one share within a reservation."""


async def streamed_slot(
    server: StorageServer,
    answers: AnswerBudget,
    outgoing: Outgoing | None,
    storage_index: StorageIndex,
    numbers: frozenset[ShareNumber],
    ranges: Sequence[Range],
) -> dict[int, list[Any]]:
    """The answer of slot_readv if it is too long to hold; DataTooLargeError if it also has too many ranges."""
    reads = MeasuredReads(server)
    held = await server.read_slot(storage_index, numbers, ())
    if len(held) * len(ranges) > MAX_STREAMS:
        raise DataTooLargeError(
            "an answer too long to be held, of too many ranges to be streamed: ask for less at once"
        )

    async def read(number: ShareNumber, room: Reservation, wanted: Sequence[Range]) -> Sequence[Buffer]:
        return _there(await reads.read_slot(room, storage_index, frozenset((number,)), wanted), number)

    return {
        number: [await _streamed(answers, outgoing, partial(read, number), offset, length) for offset, length in ranges]
        for number in held
    }


async def _streamed(
    answers: AnswerBudget, outgoing: Outgoing | None, read: ReadWithin, offset: int, length: int
) -> Any:
    """The range for Foolscap to send; it is read later."""
    with answers.reserve(outgoing) as room:
        length = max(0, min(length, MAX_FILE_SIZE - offset))
        length = await clipped_length(partial(read, room), offset, length) if length else 0

    async def read_part(room: Reservation, position: int, size: int) -> Buffer:
        (part,) = await read(room, [(offset + position, size)])
        return part

    return StreamedBytes(length, answers.reserve(outgoing), read_part)


def told_shares(found: Mapping[ShareNumber, Sequence[Buffer]], ranges: Sequence[Range]) -> Mapping[ShareNumber, Any]:
    """What slot_readv says of the shares found, which has no word for one that the disk does not give.

    Such shares are left out beside others; PeerError where there are no others.
    """
    told = {number: pieces for number, pieces in found.items() if pieces or not ranges}
    if found and not told:
        raise PeerError(UNREAD)
    return told


def _there(found: Any, number: ShareNumber) -> Sequence[Buffer]:
    if number not in found:
        raise FormatError("this share no longer exists")
    pieces: Sequence[Buffer] = found[number]
    if not pieces:
        raise PeerError(UNREAD)
    return pieces


@implementer(RIBucketReader)  # type: ignore[misc]
class RemoteReader(Referenceable):
    """One finished immutable share."""

    def __init__(
        self, server: StorageServer, answers: AnswerBudget, storage_index: StorageIndex, number: ShareNumber
    ) -> None:
        self._server = server
        self._answers = answers
        self._reads = MeasuredReads(server)
        self._storage_index = storage_index
        self._number = number

    def remote_read(self, offset: int, length: int) -> Deferred[Any]:
        """Read that range, cut at the end of the share."""
        return held_answer(self._answers, lambda room: self._read(room, offset, length))

    async def _read(self, room: Reservation, offset: int, length: int) -> Any:
        offset, length = natural(offset), natural(length)
        if length <= READ_CALL_BYTES:
            return as_bytes(await self._read_ranges(room, [(offset, length)]))
        streamed = await _streamed(self._answers, room.outgoing, self._read_ranges, offset, length)
        if streamed.size > MAX_SEGMENT_SIZE:
            raise FormatError(f"a read of more than {MAX_SEGMENT_SIZE} bytes at once")
        if streamed.size <= READ_CALL_BYTES:
            return as_bytes(await self._read_ranges(room, [(offset, streamed.size)]))
        return streamed

    async def _read_ranges(self, room: Reservation, ranges: Sequence[Range]) -> Sequence[Buffer]:
        found = await self._reads.read_shares(room, self._storage_index, {self._number: ranges})
        return _there(found, self._number)

    def remote_advise_corrupt_share(self, reason: bytes) -> Deferred[None]:
        """Take a client's report that this share is corrupt."""
        text = reason.decode("utf-8", "backslashreplace")
        return answer(self._server.advise_corrupt("immutable", self._storage_index, self._number, text))
