"""A view of a server whose process is killed at a chosen point of a client's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from attrs import frozen
from twisted.internet.defer import Deferred

from grid.ports import (
    Allocation,
    Buffer,
    LeaseSecrets,
    NewShares,
    Range,
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
    Upload,
)

T = TypeVar("T")

When = Literal["before", "during", "after"]
"""Before the call is sent; once it is sent; when it is answered, but the client has not heard."""


@frozen
class Moment:
    """The count-th call (from 1) of a method, and whether the server dies before, during or after it."""

    when: When
    method: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.when}-{self.method}-{self.count}"


class _Watch:
    """Counts calls, and kills at the chosen one."""

    def __init__(self, moment: Moment, kill: Callable[[], None]) -> None:
        self._moment = moment
        self._kill = kill
        self._calls = 0
        self.fired = False

    async def call(self, method: str, make: Callable[[], Awaitable[T]]) -> T:
        when = self._due(method)
        if when == "before":
            self._fire()

        async def body() -> T:
            return await make()

        task = Deferred.fromCoroutine(body())
        if when == "during":
            self._fire()
        answer = await task
        if when == "after":
            self._fire()
        return answer

    def _due(self, method: str) -> When | None:
        if method != self._moment.method:
            return None
        self._calls += 1
        return self._moment.when if self._calls == self._moment.count else None

    def _fire(self) -> None:
        self.fired = True
        self._kill()


class MortalServer:
    """Any StorageServer, until its moment comes."""

    def __init__(self, inner: StorageServer, moment: Moment, kill: Callable[[], None]) -> None:
        """kill: ends the process behind the server, at once."""
        self._inner = inner
        self._watch = _Watch(moment, kill)

    @property
    def fired(self) -> bool:
        """Whether the moment came."""
        return self._watch.fired

    @property
    def identity(self) -> ServerIdentity:
        return self._inner.identity

    @property
    def known_version(self) -> ServerVersion | None:
        return self._inner.known_version

    def asks_for_room(self, size: int) -> bool:
        return self._inner.asks_for_room(size)

    async def get_version(self) -> ServerVersion:
        return await self._watch.call("get_version", self._inner.get_version)

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._watch.call("find_shares", lambda: self._inner.find_shares(storage_index, ranges))

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._watch.call("read_shares", lambda: self._inner.read_shares(storage_index, wants))

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        allocation = await self._watch.call(
            "allocate", lambda: self._inner.allocate(storage_index, secrets, share_numbers, share_size)
        )
        return Allocation(already=allocation.already, upload=_MortalUpload(allocation.upload, self._watch))

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        return await self._watch.call("store_shares", lambda: self._inner.store_shares(stores))

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        await self._watch.call("add_lease", lambda: self._inner.add_lease(storage_index, secrets))

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        await self._inner.advise_corrupt(kind, storage_index, share_number, reason)

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._inner.read_slot(storage_index, share_numbers, ranges)

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        return await self._inner.test_and_write(storage_index, secrets, writes, ranges)


class _MortalUpload:
    def __init__(self, inner: Upload, watch: _Watch) -> None:
        self._inner = inner
        self._watch = watch

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        return self._inner.share_numbers

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        await self._watch.call("write", lambda: self._inner.write(writes))

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        await self._watch.call("finish", lambda: self._inner.finish(writes))

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        await self._watch.call("close", lambda: self._inner.close(share_numbers))

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        await self._inner.abort(share_numbers)
