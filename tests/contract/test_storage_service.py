"""The StorageServer contract on our own service, over memory and over a real disk, with real threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from grid.ports import StorageServer
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.disk import Disk, RealDisk
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import Durability, StorageSettings
from tests.contract.whole_shares import WholeSharesContract
from tests.support.storage import IDENTITY


async def serving(disk: Disk, durability: Durability) -> AsyncGenerator[StorageServer, None]:
    """A service over the disk that runs on threads."""
    from twisted.internet import reactor

    pool = ThreadCpuPool(reactor, 4)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    service = StorageService(IDENTITY, disk, runtime, StorageSettings(durability=durability))
    await service.start()
    yield service
    await service.stop()
    pool.stop()


class TestServiceInMemory(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async for service in serving(MemoryDisk(2**29), "full"):
            yield service


@pytest.mark.parametrize("durability", ["full", "none"])
class TestServiceOnDisk(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self, tmp_path: Path, durability: Any) -> AsyncGenerator[StorageServer, None]:
        async for service in serving(RealDisk(str(tmp_path / "storage")), durability):
            yield service
