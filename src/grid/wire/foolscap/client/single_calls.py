"""The calls of 1.20 servers: one message per range, write and share, all sent at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grid.errors import PeerError, PeerGoneError, PeerRefusedError
from grid.limits import CACHED_READER_SETS
from grid.ports import Allocation, Buffer, Range, ShareNumber, ShareWrite, StorageIndex
from grid.under_way import WritesUnderWay
from grid.wire.foolscap.client.calls import all_answers, all_outcomes, call, check_pieces, check_share_numbers, send
from grid.wire.foolscap.client.link import Session
from grid.wire.foolscap.schema import RIBucketReader, RIBucketWriter, RIStorageServer, byte_string
from grid.wire.foolscap.values import as_bytes


async def find_shares(
    session: Session, where: str, storage_index: StorageIndex, ranges: Sequence[Range]
) -> Mapping[ShareNumber, Sequence[Buffer]]:
    """Every share: one round trip, and one more for the ranges if they have any bytes."""
    readers = await _fetch_readers(session, where, storage_index)
    if not any(length for _, length in ranges):
        return {number: [b""] * len(ranges) for number in readers}
    return await _read(readers, where, dict.fromkeys(readers, ranges))


async def read_shares(
    session: Session, where: str, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
) -> Mapping[ShareNumber, Sequence[Buffer]]:
    """The ranges: one round trip if the readers are known, otherwise two."""
    readers = session.readers.get(storage_index, {})
    if not readers.keys() >= wants.keys():
        readers = await _fetch_readers(session, where, storage_index)
    else:
        session.readers.move_to_end(storage_index)
    held = {number: ranges for number, ranges in wants.items() if number in readers}
    return await _read(readers, where, held)


async def _fetch_readers(session: Session, where: str, storage_index: StorageIndex) -> dict[ShareNumber, Any]:
    answer = await call(session.reference, RIStorageServer, where, "get_buckets", storage_index)
    check_share_numbers(list(answer), where)
    readers = {ShareNumber(number): reader for number, reader in answer.items()}
    session.readers[storage_index] = readers
    session.readers.move_to_end(storage_index)
    while len(session.readers) > CACHED_READER_SETS:
        session.readers.popitem(last=False)
    return readers


async def _read(
    readers: Mapping[ShareNumber, Any], where: str, wants: Mapping[ShareNumber, Sequence[Range]]
) -> dict[ShareNumber, list[bytes]]:
    """The ranges; none of a share of which one is refused, unless that befalls all of them."""
    sent = [
        send(readers[number], RIBucketReader, "read", offset, length, result=byte_string(length))
        for number, ranges in wants.items()
        for offset, length in ranges
    ]
    answers = iter(await all_outcomes(sent, where))
    found = {number: [next(answers) for _ in ranges] for number, ranges in wants.items()}
    refused: list[PeerRefusedError] = []
    for number, ranges in wants.items():
        refusal = next((piece for piece in found[number] if isinstance(piece, PeerRefusedError)), None)
        if refusal is None:
            check_pieces(found[number], ranges, where)
        else:
            refused.append(refusal)
            found[number] = []
    if refused and len(refused) == len(found):
        raise refused[0]
    return found


async def allocate(session: Session, where: str, *arguments: Any) -> Allocation:
    """Allocate room for new shares, each with its own writer. arguments: those of allocate_buckets."""
    already, writers = await call(session.reference, RIStorageServer, where, "allocate_buckets", *arguments)
    check_share_numbers([*already, *writers], where)
    asked, canary = arguments[3], arguments[5]
    if not writers.keys() <= asked:
        raise PeerError(f"{where} allocated shares that it was not asked for")
    session.readers.pop(arguments[0], None)
    upload = SingleUpload({ShareNumber(number): writer for number, writer in writers.items()}, where, canary)
    return Allocation(already=frozenset(already), upload=upload)


class SingleUpload:
    """The upload of shares that each have a remote writer; it ends with the connection."""

    def __init__(self, writers: Mapping[ShareNumber, Any], where: str, canary: Any) -> None:
        self._writers = writers
        self._where = where
        self._open = set(writers)
        self._canary = canary
        self._writes = WritesUnderWay()

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated."""
        return frozenset(self._writers)

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all writes: one message each, sent at once."""
        self._require_known([write.share_number for write in writes])
        sent = [
            send(self._writers[write.share_number], RIBucketWriter, "write", write.offset, as_bytes(write.pieces))
            for write in writes
        ]
        with self._writes.counted({write.share_number for write in writes}):
            await all_answers(sent, self._where)

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the writes, then close their shares: a 1.20 server would also close a share that lacks some."""
        numbers = {write.share_number for write in writes}
        await self.write(writes)
        await self._writes.stored(numbers)
        await self.close(numbers)

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Finish these shares: one message each, sent at once."""
        numbers = set(share_numbers)
        self._require_known(numbers)
        await all_answers([send(self._writers[number], RIBucketWriter, "close") for number in numbers], self._where)
        self._open -= numbers

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Abort those of the shares that are open. If the connection is gone, the server has done so already."""
        numbers = self._open & set(self._open if share_numbers is None else share_numbers)
        self._open -= numbers
        try:
            await all_answers([send(self._writers[number], RIBucketWriter, "abort") for number in numbers], self._where)
        except PeerGoneError:
            return

    def _require_known(self, share_numbers: Iterable[ShareNumber]) -> None:
        unknown = set(share_numbers) - self._writers.keys()
        if unknown:
            raise PeerError(f"{self._where} did not allocate shares {sorted(unknown)}")
