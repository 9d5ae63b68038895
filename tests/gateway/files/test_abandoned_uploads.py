"""Uploads whose client goes away after sending the whole body: no new link is made."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from twisted.internet.defer import Deferred

from grid.engine.grid import Encoding
from grid.ports import ServerId, ServerIdentity, StorageServer
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.support.web_gateway import WebGateway, web_gateway

COUNT = 3


@define
class Held:
    """Calls that wait for a test. names: of the methods that are held."""

    names: frozenset[str] = frozenset()
    waiting: list[Deferred[None]] = field(factory=list)
    arrived: Deferred[None] = field(factory=Deferred)

    async def wait(self) -> None:
        """Hold one call."""
        self.waiting.append(Deferred())
        if not self.arrived.called:
            self.arrived.callback(None)
        await self.waiting[-1]

    def release(self) -> None:
        """Release all of them, and hold no more."""
        self.names = frozenset()
        for each in self.waiting:
            if not each.called:
                each.callback(None)


@define(eq=False)
class HeldServer:
    """A server some of whose calls are held before they begin."""

    service: StorageService
    held: Held

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.service, name)
        if name.startswith("_") or not callable(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            if name in self.held.names:
                await self.held.wait()
            return await found(*arguments, **named)

        return call


@asynccontextmanager
async def held_gateway(folder: Path) -> AsyncIterator[tuple[WebGateway, Held]]:
    """A gateway over servers whose calls can be held."""
    from twisted.internet import reactor

    pool = ThreadCpuPool(reactor, 2)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    held = Held()
    servers: list[Any] = []
    for index in range(COUNT):
        identity = ServerIdentity(
            server_id=ServerId(f"s{index}"), permutation_seed=b"%02d" % index * 10, lease_seed=b"%02d" % index * 10
        )
        service = StorageService(identity, MemoryDisk(2**28), runtime, StorageSettings())
        await service.start()
        servers.append(HeldServer(service, held))
    grid: Sequence[StorageServer] = servers
    encoding = Encoding(k=2, n=COUNT, happy=COUNT)
    async with web_gateway(folder, servers=grid, encoding=encoding) as web:
        yield web, held
        held.release()
    for server in servers:
        await server.service.stop()
    pool.stop()


@pytest.mark.parametrize("size", [3000, 3_000_000])
@pytest.mark.parametrize(
    "names", [("allocate", "store_shares", "find_shares", "find_each"), ("test_and_write",)], ids=["storing", "linking"]
)
async def test_upload_when_its_client_leaves_before_the_link_is_sent_then_leaves_no_entry(
    names: tuple[str, ...], size: int, tmp_path: Path
) -> None:
    async with held_gateway(tmp_path) as (web, held):
        cap = await web.gateway.store.create_directory()
        data = random.Random(size).randbytes(size)
        connection = await web.connect()
        held.names = frozenset(names)
        connection.send(web.head("PUT", f"/uri/{cap.to_string()}/left.bin", size) + data)
        await held.arrived

        await connection.close()
        while any(web.factory.requests):
            await web.gateway.store.runtime.clock.sleep(0.01)
        held.release()

        for _ in range(20):
            await web.gateway.store.runtime.clock.sleep(0.01)
        assert dict(await web.gateway.store.directory(cap).list()) == {}
        assert [each.outcome for each in web.gateway.history.active] == []
