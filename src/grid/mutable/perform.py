"""Carries out the requests of the mutable plans through the ports; it decides nothing.

It also owns whose turn it is: operations that write to one file run one after the other in a process, and after the last
answers to what was read of it before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

from twisted.internet.defer import Deferred, DeferredLock

from grid.caps import StorageIndex
from grid.engine.grid import Grid
from grid.engine.performer import BasePerformer
from grid.engine.requests import Request, ServerRequest
from grid.mutable.share import requests as r
from grid.mutable.share.blocks import encode_run
from grid.mutable.share.keys import FileKeys
from grid.placement.leases import LeaseMaster, write_enabler
from grid.ports import Runtime, Sink, SlotSecrets, Source, StorageServer

T = TypeVar("T")


class WriteLocks:
    """A lock for each file that is being written."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[StorageIndex, DeferredLock] = WeakValueDictionary()

    def of(self, storage_index: StorageIndex) -> DeferredLock:
        """The file's lock, while anybody holds it or waits for it."""
        return self._locks.setdefault(storage_index, DeferredLock())


async def in_turn(grid: Grid, storage_index: StorageIndex, body: Callable[[], Awaitable[T]]) -> T:
    """What the body returns, which runs alone among all those of this grid and storage index."""
    lock = grid.remembered.of(WriteLocks).of(storage_index)
    await lock.acquire()
    try:
        return await body()
    finally:
        lock.release()


class RestOfMap:
    """The part of a map that a read did not wait for, and those who wait for it because they write."""

    def __init__(self) -> None:
        self._waiting: list[Deferred[None]] = []
        self.is_over = False

    async def wait(self) -> None:
        """Return when it has come, or is not to be had."""
        if self.is_over:
            return
        waiting: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(waiting)
        await waiting

    def end(self) -> None:
        """Let all of them go on."""
        self.is_over = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)


class Performer(BasePerformer):
    """The servers, the keys and the data of one operation."""

    kind = "mutable"

    def __init__(
        self,
        servers: Sequence[StorageServer],
        keys: FileKeys,
        runtime: Runtime,
        *,
        leases: LeaseMaster | None = None,
        sink: Sink | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(servers, keys.storage_index, runtime, leases=leases, sink=sink, source=source)
        self._keys = keys

    async def _ask(self, server: StorageServer, request: ServerRequest) -> object:
        index = self._storage_index
        match request:
            case r.ReadSlot():
                return await server.read_slot(index, request.shares, request.ranges)
            case r.WriteSlot():
                return await server.test_and_write(index, self._secrets(server), request.writes, request.ranges)
            case _:
                return await super()._ask(server, request)

    async def _work(self, request: Request) -> object:
        if isinstance(request, r.EncodeRun):
            return await self._runtime.cpu.run(encode_run, request.run)
        return await super()._work(request)

    def _secrets(self, server: StorageServer) -> SlotSecrets:
        enabler = write_enabler(self._keys.require_write_key(), server.identity.lease_seed)
        return SlotSecrets(write_enabler=enabler, lease=self._lease(server))
