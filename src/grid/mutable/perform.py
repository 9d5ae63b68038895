"""Carries out, through the ports, the requests of the mutable plans. It decides nothing.

It also owns the write locks: within a process, writes to one file run one after the other, and after the last
answers to earlier reads of it have come.
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
        """The file's lock, which exists while anyone holds it or waits for it."""
        return self._locks.setdefault(storage_index, DeferredLock())


async def in_turn(grid: Grid, storage_index: StorageIndex, body: Callable[[], Awaitable[T]]) -> T:
    """Run the body alone among all bodies for this grid and storage index, and return its result."""
    lock = grid.remembered.of(WriteLocks).of(storage_index)
    await lock.acquire()
    try:
        return await body()
    finally:
        lock.release()


class RestOfMap:
    """The part of a map that a read did not wait for, and the writers that do wait for it."""

    def __init__(self) -> None:
        self._waiting: list[Deferred[None]] = []
        self.is_over = False

    async def wait(self) -> None:
        """Return once the rest of the map has come or has failed to come."""
        if self.is_over:
            return
        waiting: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(waiting)
        await waiting

    def end(self) -> None:
        """Let all waiting writers continue."""
        self.is_over = True
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)


class Performer(BasePerformer):
    """The servers, keys and data of one operation."""

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
