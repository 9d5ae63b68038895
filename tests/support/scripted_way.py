"""A way to an in-memory server whose connection a test breaks: refused, late, cut before or after a call runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred

from grid.errors import GridError, PeerGoneError
from grid.ports import (
    Allocation,
    Buffer,
    Clock,
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
    StorageServer,
    StoreAnswer,
    TestWrite,
)
from grid.wire.status import ConnectionState, ConnectionStatus

T = TypeVar("T")


@define
class WayScript:
    """down: why no connection can be made; refusal: the error that says so. connect_s: what making one takes. cut_before, cut_after: that many calls from now fail
    before or after they were carried out, and the connection is lost. silent: calls are never answered. unsent: that many calls
    raise this instead of being sent. failure: what calls raise that are cut.
    """

    down: str = ""
    connect_s: float = 0.1
    cut_before: int = 0
    cut_after: int = 0
    silent: bool = False
    unsent: list[GridError] = field(factory=list)
    refusal: Callable[[str], GridError] = PeerGoneError
    failure: Callable[[], GridError] = lambda: PeerGoneError("the connection was cut")


class ScriptedWay:
    """A RemoteServer over a StorageServer; calls: those that the server carried out, connects: attempts."""

    def __init__(self, inner: StorageServer, name: str, clock: Clock) -> None:
        self.script = WayScript()
        self.calls: list[str] = []
        self.connects = 0
        self.closed = False
        self.forgotten = 0
        self._inner = inner
        self._name = name
        self._clock = clock
        self._is_connected = False
        self._detail = ""

    @property
    def identity(self) -> ServerIdentity:
        return self._inner.identity

    @property
    def status(self) -> ConnectionStatus:
        if self._is_connected:
            return ConnectionStatus(state=ConnectionState.CONNECTED, since=0.0, transport=self._name)
        return ConnectionStatus(state=ConnectionState.WAITING, since=0.0, detail=self._detail)

    @property
    def known_version(self) -> ServerVersion | None:
        return self._inner.known_version if self._is_connected else None

    def asks_for_room(self, size: int) -> bool:
        return self._inner.asks_for_room(size)

    def lose(self) -> None:
        """The connection is lost, as everybody can see."""
        self._is_connected = False

    def forget_failures(self) -> None:
        self.forgotten += 1

    def close(self) -> None:
        self.closed = True
        self._is_connected = False

    async def connect(self) -> None:
        if self._is_connected:
            return
        self.connects += 1
        await self._clock.sleep(self.script.connect_s)
        if self.script.down:
            self._detail = self.script.down
            raise self.script.refusal(self.script.down)
        self._is_connected = True

    async def _call(self, method: str, make: Callable[[], Awaitable[T]]) -> T:
        await self.connect()
        script = self.script
        await self._clock.sleep(0.01)
        if script.unsent:
            raise script.unsent.pop()
        if script.silent:
            await Deferred()
        if script.cut_before:
            script.cut_before -= 1
            self._cut()
        answer = await make()
        self.calls.append(method)
        if script.cut_after:
            script.cut_after -= 1
            self._cut()
        return answer

    def _cut(self) -> None:
        error = self.script.failure()
        if isinstance(error, PeerGoneError):
            self._is_connected = False
            self._detail = str(error)
        raise error

    async def get_version(self) -> ServerVersion:
        return await self._call("get_version", self._inner.get_version)

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._call("find_shares", lambda: self._inner.find_shares(storage_index, ranges))

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._call("read_shares", lambda: self._inner.read_shares(storage_index, wants))

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        return await self._call(
            "allocate", lambda: self._inner.allocate(storage_index, secrets, share_numbers, share_size)
        )

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        return await self._call("store_shares", lambda: self._inner.store_shares(stores))

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        await self._call("add_lease", lambda: self._inner.add_lease(storage_index, secrets))

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        await self._call(
            "advise_corrupt", lambda: self._inner.advise_corrupt(kind, storage_index, share_number, reason)
        )

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        return await self._call("read_slot", lambda: self._inner.read_slot(storage_index, share_numbers, ranges))

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        return await self._call(
            "test_and_write", lambda: self._inner.test_and_write(storage_index, secrets, writes, ranges)
        )
