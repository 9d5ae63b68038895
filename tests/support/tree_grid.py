"""A grid of real storage services in memory and virtual time, with a store: the base of directory tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from attrs import evolve

from grid.caps import DirectoryCap, KnownCap
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.engine.grid import Encoding
from grid.placement.leases import LeaseMaster
from grid.ports import Event, ServerId, ServerIdentity
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.support.grids import grid_of
from tests.support.virtual_time import VirtualRuntime

T = TypeVar("T")

CONVERGENCE = bytes(range(32))


class TreeGrid:
    """Ten servers, and a client of them that records its requests."""

    def __init__(self, count: int = 10, encoding: Encoding | None = None) -> None:
        self.runtime = VirtualRuntime()
        self.events: list[Event] = []
        self.disks = [MemoryDisk(2**28) for _ in range(count)]
        self.servers = []
        for index, disk in enumerate(self.disks):
            seed = b"%02d" % index * 10
            identity = ServerIdentity(server_id=ServerId(f"s{index}"), permutation_seed=seed, lease_seed=seed)
            self.servers.append(StorageService(identity, disk, self.runtime, StorageSettings()))
            self.run(self.servers[-1].start())
        self.encoding = encoding or Encoding(k=3, n=10, happy=min(7, count))
        self._grid = grid_of(
            self.servers,
            self.runtime,
            leases=LeaseMaster(bytes(range(32))),
            convergence=CONVERGENCE,
            observer=self.events.append,
        )
        self.store = self.client()

    def client(self) -> FileStore:
        """A store that knows of nothing yet."""
        return FileStore(grid=evolve(self._grid, encoding=self.encoding))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result, in virtual time."""
        return self.runtime.run(coroutine)

    def gather(self, iterator: AsyncIterator[T]) -> list[T]:
        """Everything that the iterator gives."""

        async def body() -> list[T]:
            return [item async for item in iterator]

        return self.run(body())

    def make(self, **options: Any) -> Directory:
        """A new mutable directory."""
        return self.store.directory(self.run(self.store.create_directory(**options)))

    def names(self, cap: KnownCap) -> list[str]:
        """What a new client sees in a directory."""
        assert isinstance(cap, DirectoryCap)
        return list(self.run(self.client().directory(cap).list()))

    def sent(self) -> dict[str, Counter[str]]:
        """How often each kind of request went to each server since the last call."""
        counts: dict[str, Counter[str]] = {}
        for event in self.events:
            if event.what == "send" and event.server_id is not None:
                counts.setdefault(event.detail, Counter())[event.server_id] += 1
        self.events.clear()
        return counts
