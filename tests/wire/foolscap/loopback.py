"""Foolscap over real sockets on loopback, and a server whose every answer a test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field, frozen
from foolscap.api import Referenceable
from twisted.internet import reactor
from twisted.internet.endpoints import TCP4ServerEndpoint

from grid.ports import (
    Allocation,
    Buffer,
    LeaseSecrets,
    NewShares,
    Range,
    ServerId,
    ServerIdentity,
    ServerVersion,
    ShareKind,
    ShareNumber,
    ShareWrite,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StorageServer,
    StoreAnswer,
    TestWrite,
)
from grid.runtime import ReactorClock
from grid.wire.budget.answer_budget import AnswerBudget
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.server.server import RemoteStorageServer
from grid.wire.foolscap.tub import listen, set_location, start_tub, stop_tub
from grid.wire.locators import Furl, parse_furl

INDEX = StorageIndex(b"i" * 16)
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
VERSION = ServerVersion(
    application="grid/test",
    maximum_immutable_share_size=10**9,
    maximum_mutable_share_size=10**9,
    available_space=10**9,
    batched_reads=True,
    batched_writes=True,
    batched_stores=True,
    batched_finds=True,
    packed_slots=True,
)
IDENTITY = ServerIdentity(server_id=ServerId("test"), permutation_seed=b"", lease_seed=bytes(20))


def remote_server(server: StorageServer) -> RemoteStorageServer:
    """The server as Foolscap's clients see it."""
    return RemoteStorageServer(server, AnswerBudget(ReactorClock(reactor)))


def number(value: int) -> ShareNumber:
    return ShareNumber(value)


@define
class RecordedUpload:
    """An upload that stores the bytes it is sent; refusal: raised instead."""

    share_numbers: frozenset[ShareNumber]
    data: dict[ShareNumber, bytearray] = field(factory=dict)
    closed: set[ShareNumber] = field(factory=set)
    aborted: set[ShareNumber] = field(factory=set)
    refusal: Exception | None = None
    on_abort: Callable[[], None] = field(default=lambda: None)

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        if self.refusal is not None:
            raise self.refusal
        for write in writes:
            share = self.data.setdefault(write.share_number, bytearray())
            data = b"".join(write.pieces)
            share.extend(bytes(max(0, write.offset + len(data) - len(share))))
            share[write.offset : write.offset + len(data)] = data

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        await self.write(writes)
        await self.close(write.share_number for write in writes)

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        self.closed.update(share_numbers)

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        self.aborted.update(self.share_numbers if share_numbers is None else share_numbers)
        self.on_abort()


@define
class ScriptedServer:
    """A StorageServer with the shares that a test stores; it remembers each call, and raises refusal if there is one."""

    identity: ServerIdentity = IDENTITY
    version: ServerVersion = VERSION
    shares: dict[ShareNumber, bytes] = field(factory=dict)
    calls: list[tuple[object, ...]] = field(factory=list)
    uploads: list[RecordedUpload] = field(factory=list)
    refusal: Exception | None = None
    delay: Callable[[], Awaitable[None]] | None = None

    async def _enter(self, *call: object) -> None:
        self.calls.append(call)
        if self.delay is not None:
            await self.delay()
        if self.refusal is not None:
            raise self.refusal

    @property
    def known_version(self) -> ServerVersion | None:
        return self.version

    def asks_for_room(self, size: int) -> bool:
        return False

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        kept = [
            {number: b"".join(pieces) for number, pieces in new.shares.items()} for new in stores
        ]  # The views into the message end with the call.
        await self._enter("store_shares", [new.storage_index for new in stores], kept)
        return [StoreAnswer(already=frozenset(self.shares), stored=not self.shares) for _ in stores]

    async def get_version(self) -> ServerVersion:
        await self._enter("get_version")
        return self.version

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("find_shares", storage_index, ranges)
        return {share: _cut(data, ranges) for share, data in self.shares.items()}

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("read_shares", storage_index, wants)
        return {share: _cut(self.shares[share], ranges) for share, ranges in wants.items() if share in self.shares}

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        await self._enter("allocate", storage_index, secrets, share_numbers, share_size)
        upload = RecordedUpload(share_numbers - self.shares.keys())
        self.uploads.append(upload)
        return Allocation(already=frozenset(self.shares), upload=upload)

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        await self._enter("add_lease", storage_index, secrets)

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        await self._enter("advise_corrupt", kind, storage_index, share_number, reason)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        await self._enter("read_slot", storage_index, share_numbers, ranges)
        wanted = share_numbers or self.shares.keys()
        return {share: _cut(data, ranges) for share, data in self.shares.items() if share in wanted}

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        await self._enter("test_and_write", storage_index, secrets, writes, ranges)
        return SlotAnswer(passed=True, data={share: _cut(data, ranges) for share, data in self.shares.items()})


def _cut(data: bytes, ranges: Sequence[Range]) -> list[Buffer]:
    return [memoryview(data)[offset : offset + length] for offset, length in ranges]


@frozen
class Offered:
    """A listening Tub, and the object it offers."""

    tub: Any
    furl: Furl


@asynccontextmanager
async def offering(referenceable: Referenceable) -> AsyncIterator[Offered]:
    """The object offered on a free port of loopback."""
    from twisted.internet import reactor

    tub = start_tub()
    try:
        port = await listen(tub, TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1"))
        set_location(tub, (f"tcp:127.0.0.1:{port}",))
        yield Offered(tub, parse_furl(tub.registerReference(referenceable)))
    finally:
        await stop_tub(tub)


@asynccontextmanager
async def connected(server: Any, deadline_s: float = 15.0) -> AsyncIterator[FoolscapServer]:
    """A client of the StorageServer, with Foolscap between them."""
    from twisted.internet import reactor

    async with offering(remote_server(server)) as offered:
        tub = start_tub()
        client = FoolscapServer(IDENTITY, offered.furl, tub, ReactorClock(reactor), deadline_s)
        try:
            yield client
        finally:
            client.close()
            await stop_tub(tub)
