"""A storage server behind a FURL as a StorageServer: 1.20's, or ours with batched calls.

Cost: connecting takes the TLS and Foolscap negotiation and two round trips. After that, find_shares, read_shares
and Upload.write take one round trip and one message each if the server offers batches. Otherwise reads
first need the share's remote reader (one round trip, then cached for the connection), and go out as one message per
range, all at once. Data is copied once per message when sent, and never when received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foolscap.api import Referenceable

from grid.errors import FormatError
from grid.limits import CONNECT_DEADLINE_S, MAX_ADVISORY_LENGTH
from grid.ports import (
    Allocation,
    Buffer,
    Clock,
    Find,
    LeaseSecrets,
    NewShares,
    Range,
    ServerIdentity,
    ServerVersion,
    ShareKind,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StoreAnswer,
    TestWrite,
)
from grid.wire.connections.connect_watch import OnQuiet, ignore_quiet
from grid.wire.foolscap.client import batched_calls, single_calls
from grid.wire.foolscap.client.calls import call, checked_shares, misbehaved
from grid.wire.foolscap.client.link import Link, Session
from grid.wire.foolscap.schema import RIStorageServer
from grid.wire.foolscap.values import parse_version
from grid.wire.locators import Furl
from grid.wire.packed.find_messages import Found
from grid.wire.packed.slots import pack_slot_write
from grid.wire.remote_server import SessionServer, server_name


class FoolscapServer(SessionServer[Session]):
    """The StorageServer that a storage FURL names, reached through a Tub that the caller keeps running."""

    def __init__(
        self,
        identity: ServerIdentity,
        furl: Furl,
        tub: Any,
        clock: Clock,
        deadline_s: float = CONNECT_DEADLINE_S,
        on_quiet: OnQuiet = ignore_quiet,
    ) -> None:
        """on_quiet: called when an attempt to connect gets no sign from the server."""
        self._where = server_name(identity)
        self._link = Link(tub, furl, clock, self._ask_version, self._where, deadline_s, on_quiet)
        super().__init__(identity, self._link, clock)

    async def _renew_version(self, session: Session) -> ServerVersion:
        version = await self._ask_version(session.reference)
        self._link.learned(version)
        return version

    async def _find_alone(
        self, session: Session, storage_index: StorageIndex, ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        if session.version.batched_reads:
            return await batched_calls.find_shares(session, self._where, storage_index, ranges)
        return await single_calls.find_shares(session, self._where, storage_index, ranges)

    async def _send_finds(self, finds: Sequence[Find]) -> Sequence[Found | None]:
        return await batched_calls.find_each(await self._link.session(), self._where, finds)

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of immutable shares; missing shares are left out."""
        session = await self._link.session()
        if session.version.batched_reads:
            return await batched_calls.read_shares(session, self._where, storage_index, wants)
        return await single_calls.read_shares(session, self._where, storage_index, wants)

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate room for new shares. The upload lives as long as the current connection."""
        session = await self._link.session()
        canary = Referenceable()
        arguments = (storage_index, secrets.renew, secrets.cancel, set(share_numbers), share_size, canary)
        if session.version.batched_writes:
            return await batched_calls.allocate(session, self._where, *arguments)
        return await single_calls.allocate(session, self._where, *arguments)

    async def _send_stores(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        return await batched_calls.store_shares(await self._link.session(), self._where, stores)

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share of the storage index."""
        await self._call("add_lease", storage_index, secrets.renew, secrets.cancel)

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Report to the server that its share is corrupt."""
        text = reason.encode()[:MAX_ADVISORY_LENGTH].decode("utf-8", "ignore").encode()
        await self._call("advise_corrupt_share", kind.encode(), storage_index, share_number, text)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of mutable shares; all shares if none is named."""
        session = await self._link.session()
        if session.version.packed_slots:
            found = await batched_calls.read_slot(session, self._where, storage_index, share_numbers, ranges)
            if found is not None:
                return found
        shares = await self._call("slot_readv", storage_index, sorted(share_numbers), _tuples(ranges))
        return checked_shares(shares, ranges, self._where)

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        """Test and, if every test holds, write, as one atomic step."""
        session = await self._link.session()
        packed = pack_slot_write(secrets, writes, ranges) if session.version.packed_slots else None
        if packed is not None:
            del writes
            sent = batched_calls.write_slot(session, self._where, storage_index, packed, ranges)
            del packed
            return await sent
        passed, data = await self._call(
            "slot_testv_and_readv_and_writev",
            storage_index,
            (secrets.write_enabler, secrets.lease.renew, secrets.lease.cancel),
            {number: _pack_test_write(write) for number, write in writes.items()},
            _tuples(ranges),
        )
        return SlotAnswer(passed=passed, data=checked_shares(data, ranges, self._where))

    async def _call(self, method: str, *arguments: Any) -> Any:
        session = await self._link.session()
        answer = call(session.reference, RIStorageServer, self._where, method, *arguments)
        del arguments  # As in `call`: only the send queue keeps them.
        return await answer

    async def _ask_version(self, reference: Any) -> ServerVersion:
        answer = await call(reference, RIStorageServer, self._where, "get_version")
        try:
            return parse_version(answer)
        except FormatError as error:
            raise misbehaved(error, self._where) from error


def _tuples(ranges: Sequence[Range]) -> list[Range]:
    return [(offset, length) for offset, length in ranges]


def _pack_test_write(write: TestWrite) -> tuple[Any, Any, Any]:
    """One share's vector in the exact types that the protocol requires. [spec wire 4]"""
    return (
        [(offset, length, b"eq", bytes(specimen)) for offset, length, specimen in write.tests],
        [(offset, bytes(data)) for offset, data in write.writes],
        write.new_length,
    )
