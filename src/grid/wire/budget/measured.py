"""The reads of a storage server, each within a reservation: it waits for room for its answer before anything is read.

A server that measures its answers reserves the room itself, share by share. The answer of any other server is measured once it
exists, and dropped if it must wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

from grid.errors import GridError, NoRoomError
from grid.limits import ANSWER_RANGE_BYTES
from grid.ports import (
    Buffer,
    Find,
    Range,
    Room,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StorageServer,
    TestWrite,
)
from grid.wire.budget.reservation import Reservation
from grid.wire.packed.find_messages import finder_of

Shares = Mapping[ShareNumber, Sequence[Buffer]]


@runtime_checkable
class MeasuringServer(Protocol):
    """A server that measures each share of an answer and reserves room for it before it reads it.

    NoRoomError if it does not fit. Nothing has happened then, and the call can be repeated once there is room.
    """

    measures_answers: Literal[True]

    async def find_shares(
        self,
        storage_index: StorageIndex,
        ranges: Sequence[Range] = (),
        *,
        room: Room | None = None,
        most: int | None = None,
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every immutable share of the storage index, with those ranges of each.

        most: bytes of ranges, if fewer than usual; shares beyond it have none.
        """

    async def find_each(
        self, finds: Sequence[Find], *, room: Room | None = None
    ) -> Sequence[Mapping[ShareNumber, Sequence[Buffer]] | None]:
        """Like find_shares, for several files."""

    async def read_shares(
        self,
        storage_index: StorageIndex,
        wants: Mapping[ShareNumber, Sequence[Range]],
        *,
        room: Room | None = None,
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of immutable shares."""

    async def read_slot(
        self,
        storage_index: StorageIndex,
        share_numbers: frozenset[ShareNumber],
        ranges: Sequence[Range],
        *,
        room: Room | None = None,
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of mutable shares."""

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
        *,
        room: Room | None = None,
    ) -> SlotAnswer:
        """Test and, if every test holds, write. If there is no room for the answer, nothing is written."""


@runtime_checkable
class ReadsSlotsTogether(Protocol):
    """A storage server that reads the mutable shares of several files in one call."""

    async def read_slots(
        self, finds: Sequence[Find], *, room: Room | None = None
    ) -> Sequence[Mapping[ShareNumber, Sequence[Buffer]] | None]:
        """For each in order, the result of read_slot with all shares, or None if it must be asked for alone."""


class MeasuredReads:
    """The calls of a storage server whose answers contain share data.

    DataTooLargeError for an answer that never fits; PeerRefusedError for one that has waited too long.
    """

    def __init__(self, server: StorageServer) -> None:
        self._server = server
        self._measuring = server if isinstance(server, MeasuringServer) else None
        self._find = finder_of(server)

    async def find_shares(self, room: Reservation, index: StorageIndex, ranges: Sequence[Range]) -> Shares:
        """Every immutable share with those ranges."""
        server = self._measuring
        if server is None:
            return await _measured_later(room, lambda: self._server.find_shares(index, ranges))
        return await room.read(lambda: server.find_shares(index, ranges, room=room))

    async def find_some(self, room: Reservation, index: StorageIndex, ranges: Sequence[Range], most: int) -> Shares:
        """Every immutable share, with those ranges if they are not more than `most` bytes together with those of shares before it.

        A server that does not measure its answers reads none.
        """
        server = self._measuring
        if server is None:
            return await self._server.find_shares(index)
        return await room.read(lambda: server.find_shares(index, ranges, room=room, most=most))

    async def find_each(self, room: Reservation, finds: Sequence[Find]) -> Sequence[Shares | None]:
        """Like find_shares, for several files."""
        server = self._measuring
        if server is not None:
            return await room.read(lambda: server.find_each(finds, room=room))

        async def work() -> Sequence[Shares | None]:
            answers = await self._find(finds)
            _take(room, [found for found in answers if found])
            return answers

        return await room.read(work)

    async def read_shares(
        self, room: Reservation, index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Shares:
        """Read ranges of immutable shares."""
        server = self._measuring
        if server is None:
            return await _measured_later(room, lambda: self._server.read_shares(index, wants))
        return await room.read(lambda: server.read_shares(index, wants, room=room))

    async def read_slot(
        self, room: Reservation, index: StorageIndex, numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Shares:
        """Read ranges of mutable shares."""
        server = self._measuring
        if server is None:
            return await _measured_later(room, lambda: self._server.read_slot(index, numbers, ranges))
        return await room.read(lambda: server.read_slot(index, numbers, ranges, room=room))

    async def read_slots(self, room: Reservation, finds: Sequence[Find]) -> Sequence[Shares | None]:
        """Like read_slot with all shares, for several files."""
        server = self._server
        if self._measuring is not None and isinstance(server, ReadsSlotsTogether):
            return await room.read(lambda: server.read_slots(finds, room=room))

        async def work() -> Sequence[Shares | None]:
            answers = [await self._slot_or_none(find) for find in finds]
            _take(room, [found for found in answers if found])
            return answers

        return await room.read(work)

    async def _slot_or_none(self, find: Find) -> Shares | None:
        try:
            return await self._server.read_slot(find.storage_index, frozenset(), find.ranges)
        except GridError:
            return None

    async def test_and_write(
        self,
        room: Reservation,
        index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range],
    ) -> SlotAnswer:
        """Test and, if every test holds, write: once, and only when there is room for the data to read."""
        server = self._measuring
        if server is None:
            return await self._server.test_and_write(index, secrets, writes, ranges)
        return await room.read(lambda: server.test_and_write(index, secrets, writes, ranges, room=room))


async def _measured_later(room: Reservation, ask: Callable[[], Awaitable[Shares]]) -> Shares:
    async def work() -> Shares:
        found = await ask()
        _take(room, [found])
        return found

    return await room.read(work)


def _take(room: Reservation, answers: Sequence[Shares]) -> None:
    size = sum(ANSWER_RANGE_BYTES + len(piece) for found in answers for pieces in found.values() for piece in pieces)
    if not room.take(size):
        raise NoRoomError(size)


PROBES = 64


async def clipped_length(
    read: Callable[[Sequence[Range]], Awaitable[Sequence[Buffer]]], offset: int, length: int
) -> int:
    """How many of those bytes the share has, found by reading single bytes, PROBES at a time."""
    (last,) = await read([(offset + length - 1, 1)])
    if last:
        return length
    low, high = 0, length - 1  # The least and the most bytes it may have.
    while low < high:
        step = -(-(high - low) // PROBES)
        counts = sorted({min(high, low + step * (i + 1)) for i in range(PROBES)})
        answers = await read([(offset + count - 1, 1) for count in counts])
        there = sum(1 for byte in answers if byte)
        low, high = (counts[there - 1] if there else low), (counts[there] - 1 if there < len(counts) else high)
    return low
