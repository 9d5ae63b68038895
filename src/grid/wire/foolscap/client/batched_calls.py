"""The calls of our extension to the protocol: whole batches in one message. [grid.wire.packed.share_ranges]"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grid.errors import DataTooLargeError, FormatError, PeerError, PeerGoneError
from grid.ports import (
    Allocation,
    Buffer,
    Find,
    NewShares,
    Range,
    ShareNumber,
    ShareWrite,
    SlotAnswer,
    StorageIndex,
    StoreAnswer,
)
from grid.wire.foolscap.client.calls import all_answers, call, check_pieces, check_share_numbers, misbehaved, send
from grid.wire.foolscap.client.link import Session
from grid.wire.foolscap.schema import RIShareUpload, RIStorageServer
from grid.wire.packed import share_ranges
from grid.wire.packed.find_messages import Found, pack_finds, parse_find_answers
from grid.wire.packed.slots import is_read_bounded, pack_slot_wants, parse_slot_answer
from grid.wire.packed.store_messages import pack_stores, parse_store_answers


async def find_shares(
    session: Session, where: str, storage_index: StorageIndex, ranges: Sequence[Range]
) -> Mapping[ShareNumber, Sequence[Buffer]]:
    """Every share with those ranges. A share has no data if the server left it out because the answer would be too long."""
    packed = share_ranges.pack_ranges(ranges)
    answer = await call(session.reference, RIStorageServer, where, "grid_find_shares", storage_index, packed)
    found = _parse(answer, where)
    for pieces in found.values():
        if pieces:
            check_pieces(pieces, ranges, where)
    return found


async def find_each(session: Session, where: str, finds: Sequence[Find]) -> Sequence[Found | None]:
    """The shares of each file: one message."""
    answer = await call(session.reference, RIStorageServer, where, "grid_find_each", pack_finds(finds))
    try:
        return parse_find_answers(answer, finds)
    except FormatError as error:
        raise misbehaved(error, where) from error


async def read_shares(
    session: Session, where: str, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
) -> Mapping[ShareNumber, Sequence[Buffer]]:
    """The ranges, as views of one message."""
    packed = share_ranges.pack_wants(wants)
    answer = await call(session.reference, RIStorageServer, where, "grid_read_shares", storage_index, packed)
    found = _parse(answer, where)
    for number, pieces in found.items():
        if pieces or number not in wants:  # Its disk does not give a share that comes without pieces.
            check_pieces(pieces, wants.get(number, ()), where)
    return found


async def read_slot(
    session: Session,
    where: str,
    storage_index: StorageIndex,
    share_numbers: frozenset[ShareNumber],
    ranges: Sequence[Range],
) -> Mapping[ShareNumber, Sequence[Buffer]] | None:
    """Ranges of mutable shares, as views of one message; None if they do not fit one."""
    if not is_read_bounded(share_numbers, ranges):
        return None
    try:
        wants = pack_slot_wants(share_numbers, ranges)
    except ValueError:
        return None
    try:
        answer = await call(session.reference, RIStorageServer, where, "grid_read_slot", storage_index, wants)
    except DataTooLargeError:
        return None
    found = _parse(answer, where)
    for pieces in found.values():
        if pieces:
            check_pieces(pieces, ranges, where)
    return found


async def write_slot(
    session: Session, where: str, storage_index: StorageIndex, packed: tuple[bytes, bytes], ranges: Sequence[Range]
) -> SlotAnswer:
    """Test and, if every test holds, write: one message. packed: from pack_slot_write."""
    sent = call(session.reference, RIStorageServer, where, "grid_write_slot", storage_index, *packed)
    del packed  # As in `call`: only the send queue keeps it.
    answer = await sent
    try:
        parsed = parse_slot_answer(answer)
    except FormatError as error:
        raise misbehaved(error, where) from error
    for pieces in parsed.data.values():
        check_pieces(pieces, ranges, where)
    return parsed


async def store_shares(session: Session, where: str, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
    """Store whole shares of any number of files: one message."""
    answer = await call(session.reference, RIStorageServer, where, "grid_store_shares", pack_stores(stores))
    try:
        return parse_store_answers(answer, len(stores))
    except FormatError as error:
        raise misbehaved(error, where) from error


def _parse(answer: bytes, where: str) -> dict[ShareNumber, list[memoryview]]:
    try:
        return share_ranges.parse_answer(answer)
    except FormatError as error:
        raise misbehaved(error, where) from error


async def allocate(session: Session, where: str, *arguments: Any) -> Allocation:
    """Allocate room for new shares, to be written through one object. arguments: those of grid_allocate."""
    already, allocated, upload = await call(session.reference, RIStorageServer, where, "grid_allocate", *arguments)
    check_share_numbers([*already, *allocated], where)
    asked, canary = arguments[3], arguments[5]
    if not allocated <= asked:
        raise PeerError(f"{where} allocated shares that it was not asked for")
    return Allocation(already=frozenset(already), upload=BatchedUpload(upload, where, frozenset(allocated), canary))


class BatchedUpload:
    """The upload of all shares that one server allocated; it ends with the connection."""

    def __init__(self, reference: Any, where: str, share_numbers: frozenset[ShareNumber], canary: Any) -> None:
        self._reference = reference
        self._where = where
        self._share_numbers = share_numbers
        self._open = set(share_numbers)
        self._canary = canary

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated."""
        return self._share_numbers

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all writes: one message."""
        await call(self._reference, RIShareUpload, self._where, "write", *share_ranges.pack_writes(writes))

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the writes and finish their shares: two messages, sent without waiting in between.

        The server closes no share before it has stored all earlier writes.
        """
        numbers = {write.share_number for write in writes}
        sent = [
            send(self._reference, RIShareUpload, "write", *share_ranges.pack_writes(writes)),
            send(self._reference, RIShareUpload, "close", numbers),
        ]
        await all_answers(sent, self._where)
        self._open -= numbers

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Finish these shares: one message."""
        numbers = set(share_numbers)
        await call(self._reference, RIShareUpload, self._where, "close", numbers)
        self._open -= numbers

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Abort those of the shares that are open. If the connection is gone, the server has done so already."""
        numbers = self._open & set(self._open if share_numbers is None else share_numbers)
        self._open -= numbers
        if numbers:
            try:
                await call(self._reference, RIShareUpload, self._where, "abort", numbers)
            except PeerGoneError:
                return
