"""Carries out the requests of the mutable plans through the ports; it decides nothing.

It also owns whose turn it is: operations that write to one file run one after the other in a process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from weakref import WeakValueDictionary

from twisted.internet.defer import DeferredLock

from grid.caps import StorageIndex
from grid.drive import Request
from grid.engine.grid import Grid
from grid.mutable.share import requests as r
from grid.mutable.share.blocks import encode_run
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.segment_run import open_window
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


class Performer:
    """One operation's hands: its servers, its keys and its data."""

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
        self._servers = {server.identity.server_id: server for server in servers}
        self._keys = keys
        self._runtime = runtime
        self._leases = leases
        self._sink = sink
        self._source = source

    async def __call__(self, request: Request) -> object:
        """Carry one request out and return its answer."""
        if isinstance(request, r.ServerRequest):
            return await self._ask(self._servers[request.server_id], request)
        run = self._runtime.cpu.run
        match request:
            case r.OpenWindow():
                return await run(open_window, request.window)
            case r.Compute():
                return await run(_run_job, request.job)
            case r.EncodeRun():
                return await run(encode_run, request.run)
            case r.Deliver():
                assert self._sink is not None
                await self._sink.write(request.data)
                return None
            case r.ReadSource():
                assert self._source is not None
                return await self._source.read_at(request.offset, request.length)
        raise AssertionError(f"nobody carries out {type(request).__name__}")

    async def _ask(self, server: StorageServer, request: r.ServerRequest) -> object:
        index = self._keys.storage_index
        match request:
            case r.ReadSlot():
                return await server.read_slot(index, request.shares, request.ranges)
            case r.WriteSlot():
                return await server.test_and_write(index, self._secrets(server), request.writes, request.ranges)
            case r.AddLease():
                assert self._leases is not None
                await server.add_lease(index, self._leases.secrets_for(index, server.identity.lease_seed))
            case r.AdviseCorrupt():
                await server.advise_corrupt("mutable", index, request.share_number, request.reason)
            case _:
                raise AssertionError(f"no server answers {type(request).__name__}")
        return None

    def _secrets(self, server: StorageServer) -> SlotSecrets:
        assert self._leases is not None
        seed = server.identity.lease_seed
        return SlotSecrets(
            write_enabler=write_enabler(self._keys.require_write_key(), seed),
            lease=self._leases.secrets_for(self._keys.storage_index, seed),
        )


def _run_job(job: Callable[[], T]) -> T:
    return job()
