"""Offers any StorageServer to Foolscap clients, 1.20's and ours.

Referenceables that convert values, check what the schema cannot express, and decide nothing: the StorageServer has the
rules of storage. Share numbers, offsets, lengths and sums are checked before anything is allocated for them.
Every upload belongs to its client's connection: if that is lost before the shares are closed, they are
aborted. [spec wire 4, storage-server 8, 9]
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from foolscap.api import Referenceable
from twisted.internet.defer import Deferred
from zope.interface import implementer

from grid.errors import DataTooLargeError, FormatError
from grid.limits import MAX_FILE_SIZE
from grid.ports import (
    LeaseSecrets,
    Range,
    ShareKind,
    ShareNumber,
    SlotSecrets,
    StorageIndex,
    StorageServer,
)
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.budget.measured import MeasuredReads
from grid.wire.budget.reservation import Reservation
from grid.wire.foolscap.outgoing import JoinedBytes, held_answer, outgoing_bytes
from grid.wire.foolscap.remote_errors import answer
from grid.wire.foolscap.schema import RIStorageServer
from grid.wire.foolscap.server.reading import RemoteReader, streamed_slot, told_shares
from grid.wire.foolscap.server.uploads import RemoteUpload, UploadSession, share_writers
from grid.wire.foolscap.values import (
    check_ranges,
    natural,
    pack_shares,
    pack_version,
    parse_test_write,
    share_number,
    within_limits,
)
from grid.wire.packed import share_ranges
from grid.wire.packed.find_messages import pack_find_answers, parse_finds
from grid.wire.packed.slots import fits_answer, is_read_bounded, pack_slot_answer, parse_slot_wants, parse_slot_write
from grid.wire.packed.store_messages import pack_store_answers, parse_stores


@implementer(RIStorageServer)  # type: ignore[misc]
class RemoteStorageServer(Referenceable):
    """A StorageServer as the remote object that a storage FURL names."""

    def __init__(self, server: StorageServer, answers: AnswerBudget) -> None:
        """answers: the memory that answers may hold until they are sent."""
        self._server = server
        self.answers = answers
        self._reads = MeasuredReads(server)
        self._readers: WeakValueDictionary[tuple[StorageIndex, ShareNumber], RemoteReader] = WeakValueDictionary()

    def remote_get_version(self) -> Deferred[dict[bytes, object]]:
        """The version dictionary, with the extensions offered."""
        return answer(self._get_version())

    async def _get_version(self) -> dict[bytes, object]:
        return pack_version(await self._server.get_version())

    def remote_allocate_buckets(
        self,
        storage_index: bytes,
        renew_secret: bytes,
        cancel_secret: bytes,
        sharenums: set[int],
        allocated_size: int,
        canary: Any,
    ) -> Deferred[Any]:
        """Allocate room for new shares. Returns the shares that exist already, and one writer per allocated share."""
        secrets = LeaseSecrets(renew=renew_secret, cancel=cancel_secret)
        return answer(self._allocate_buckets(storage_index, secrets, sharenums, allocated_size, canary))

    async def _allocate_buckets(
        self, storage_index: bytes, secrets: LeaseSecrets, sharenums: set[int], size: int, canary: Any
    ) -> tuple[set[int], dict[int, Referenceable]]:
        already, session = await self._allocate(storage_index, secrets, sharenums, size, canary)
        return already, share_writers(session)

    def remote_grid_allocate(
        self,
        storage_index: bytes,
        renew_secret: bytes,
        cancel_secret: bytes,
        sharenums: set[int],
        allocated_size: int,
        canary: Any,
    ) -> Deferred[Any]:
        """Like allocate_buckets, but with one object that writes all shares in batches."""
        secrets = LeaseSecrets(renew=renew_secret, cancel=cancel_secret)
        return answer(self._allocate_batched(storage_index, secrets, sharenums, allocated_size, canary))

    async def _allocate_batched(
        self, storage_index: bytes, secrets: LeaseSecrets, sharenums: set[int], size: int, canary: Any
    ) -> tuple[set[int], set[int], Referenceable]:
        already, session = await self._allocate(storage_index, secrets, sharenums, size, canary)
        return already, set(session.share_numbers), RemoteUpload(session)

    async def _allocate(
        self, storage_index: bytes, secrets: LeaseSecrets, sharenums: set[int], size: int, canary: Any
    ) -> tuple[set[int], UploadSession]:
        numbers = frozenset(share_number(number) for number in sharenums)
        allocation = await self._server.allocate(
            StorageIndex(storage_index), secrets, numbers, natural(size, MAX_FILE_SIZE)
        )
        return set(allocation.already), UploadSession(allocation.upload, canary)

    def remote_add_lease(self, storage_index: bytes, renew_secret: bytes, cancel_secret: bytes) -> Deferred[None]:
        """Add or renew a lease on every share of the storage index."""
        secrets = LeaseSecrets(renew=renew_secret, cancel=cancel_secret)
        return answer(self._server.add_lease(StorageIndex(storage_index), secrets))

    def remote_get_buckets(self, storage_index: bytes) -> Deferred[dict[int, Referenceable]]:
        """One reader per finished share."""
        return answer(self._get_buckets(StorageIndex(storage_index)))

    async def _get_buckets(self, storage_index: StorageIndex) -> dict[int, Referenceable]:
        found = await self._server.find_shares(storage_index)
        return {number: self._reader(storage_index, number) for number in found}

    def _reader(self, storage_index: StorageIndex, number: ShareNumber) -> RemoteReader:
        """The share's reader, one for all who ask: Foolscap keeps each that it sent until its client lets go of it."""
        reader = self._readers.get((storage_index, number))
        if reader is None:
            reader = RemoteReader(self._server, self.answers, storage_index, number)
            self._readers[storage_index, number] = reader
        return reader

    def remote_slot_readv(
        self, storage_index: bytes, shares: list[int], readv: list[Range]
    ) -> Deferred[dict[int, list[bytes]]]:
        """Read ranges of mutable shares; all shares if none is named."""
        return held_answer(
            self.answers, lambda room: self._slot_readv(room, StorageIndex(storage_index), shares, readv)
        )

    async def _slot_readv(
        self, room: Reservation, storage_index: StorageIndex, shares: list[int], readv: list[Range]
    ) -> dict[int, list[Any]]:
        numbers = frozenset(share_number(number) for number in shares)
        ranges = check_ranges(readv)
        with suppress(DataTooLargeError):
            return pack_shares(told_shares(await self._reads.read_slot(room, storage_index, numbers, ranges), ranges))
        # Not inside the handler: the exception would hold what was read until the last byte is sent.
        return await streamed_slot(self._server, self.answers, room.outgoing, storage_index, numbers, ranges)

    def remote_slot_testv_and_readv_and_writev(
        self,
        storage_index: bytes,
        secrets: tuple[bytes, bytes, bytes],
        tw_vectors: dict[int, tuple[Any, Any, Any]],
        r_vector: list[Range],
    ) -> Deferred[tuple[bool, dict[int, list[bytes]]]]:
        """Test and, if every test holds, write."""
        write_enabler, renew, cancel = secrets
        slot_secrets = SlotSecrets(write_enabler=write_enabler, lease=LeaseSecrets(renew=renew, cancel=cancel))
        return held_answer(
            self.answers,
            lambda room: self._test_and_write(room, StorageIndex(storage_index), slot_secrets, tw_vectors, r_vector),
        )

    async def _test_and_write(
        self,
        room: Reservation,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        tw_vectors: dict[int, tuple[Any, Any, Any]],
        r_vector: list[Range],
    ) -> tuple[bool, dict[int, list[bytes]]]:
        writes = {share_number(number): parse_test_write(*vector) for number, vector in tw_vectors.items()}
        result = await self._reads.test_and_write(room, storage_index, secrets, writes, check_ranges(r_vector))
        return bool(result.passed), pack_shares(result.data)

    def remote_advise_corrupt_share(
        self, share_type: bytes, storage_index: bytes, shnum: int, reason: bytes
    ) -> Deferred[None]:
        """Take a client's report that a share is corrupt."""
        return answer(self._advise(share_type, StorageIndex(storage_index), shnum, reason))

    async def _advise(self, share_type: bytes, storage_index: StorageIndex, shnum: int, reason: bytes) -> None:
        kinds: dict[bytes, ShareKind] = {b"immutable": "immutable", b"mutable": "mutable"}
        if share_type not in kinds:
            raise FormatError("a corruption report about neither an immutable nor a mutable share")
        text = reason.decode("utf-8", "backslashreplace")
        await self._server.advise_corrupt(kinds[share_type], storage_index, share_number(shnum), text)

    def remote_grid_find_shares(self, storage_index: bytes, ranges: bytes) -> Deferred[Any]:
        """Every share, with those ranges of each, packed. [grid.wire.packed.share_ranges]"""
        return held_answer(self.answers, lambda room: self._find_shares(room, StorageIndex(storage_index), ranges))

    async def _find_shares(self, room: Reservation, storage_index: StorageIndex, ranges: bytes) -> bytes | JoinedBytes:
        found = await self._reads.find_shares(room, storage_index, share_ranges.parse_ranges(ranges))
        return outgoing_bytes(share_ranges.pack_pieces(within_limits(found)))

    def remote_grid_find_each(self, finds: bytes) -> Deferred[Any]:
        """Like grid_find_shares for several files, packed. [grid.wire.packed.find_messages]"""
        return held_answer(self.answers, lambda room: self._find_each(room, finds))

    async def _find_each(self, room: Reservation, finds: bytes) -> bytes | JoinedBytes:
        return outgoing_bytes(pack_find_answers(await self._reads.find_each(room, parse_finds(finds))))

    def remote_grid_read_shares(self, storage_index: bytes, wants: bytes) -> Deferred[Any]:
        """Read ranges of several shares, packed. [grid.wire.packed.share_ranges]"""
        return held_answer(self.answers, lambda room: self._read_shares(room, StorageIndex(storage_index), wants))

    async def _read_shares(self, room: Reservation, storage_index: StorageIndex, wants: bytes) -> bytes | JoinedBytes:
        found = await self._reads.read_shares(room, storage_index, share_ranges.parse_wants(wants))
        return outgoing_bytes(share_ranges.pack_pieces(found))

    def remote_grid_read_slot(self, storage_index: bytes, wants: bytes) -> Deferred[Any]:
        """Like slot_readv, packed. [grid.wire.packed.slots]"""
        return held_answer(self.answers, lambda room: self._read_slot(room, StorageIndex(storage_index), wants))

    async def _read_slot(self, room: Reservation, storage_index: StorageIndex, wants: bytes) -> bytes | JoinedBytes:
        numbers, ranges = parse_slot_wants(wants)
        if is_read_bounded(numbers, ranges):
            found = await self._reads.read_slot(room, storage_index, numbers, ranges)
            if fits_answer(found):
                return outgoing_bytes(share_ranges.pack_pieces(found))
        raise DataTooLargeError("more bytes or ranges than one answer may have")

    def remote_grid_write_slot(self, storage_index: bytes, head: bytes, data: bytes) -> Deferred[Any]:
        """Like slot_testv_and_readv_and_writev, packed. [grid.wire.packed.slots]"""
        return held_answer(self.answers, lambda room: self._write_slot(room, StorageIndex(storage_index), head, data))

    async def _write_slot(
        self, room: Reservation, storage_index: StorageIndex, head: bytes, data: bytes
    ) -> bytes | JoinedBytes:
        secrets, writes, ranges = parse_slot_write(head, data)
        return outgoing_bytes(
            pack_slot_answer(await self._reads.test_and_write(room, storage_index, secrets, writes, ranges))
        )

    def remote_grid_store_shares(self, stores: bytes) -> Deferred[bytes]:
        """Store whole shares of several files, packed. [grid.wire.packed.store_messages]"""
        return answer(self._store_shares(stores))

    async def _store_shares(self, stores: bytes) -> bytes:
        return pack_store_answers(await self._server.store_shares(parse_stores(stores)))
