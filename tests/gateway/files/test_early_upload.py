"""Small files stored while the gateway reads their path; the path's target decides what happens to them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, SdmfWriteCap, parse_cap
from grid.directory.pack import Child
from grid.engine.grid import Encoding
from grid.gateway.files.early_upload import EARLY_BYTES
from grid.ports import ServerId, ServerIdentity
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.support.web_gateway import WebGateway, web_gateway

COUNT = 3
STORES = frozenset({"store_shares", "allocate"})
DATA = random.Random(7).randbytes(3000)


@define
class Calls:
    """What servers were asked. reads_wait: reads of slots are answered once a share is being stored."""

    names: list[str] = field(factory=list)
    reads_wait: bool = False
    waiting: list[Deferred[None]] = field(factory=list)

    @property
    def store_count(self) -> int:
        """Calls that store immutable shares."""
        return sum(name in STORES for name in self.names)

    async def note(self, name: str) -> None:
        """Count a call, and hold it if it is to wait."""
        self.names.append(name)
        if name in STORES:
            self.reads_wait = False
            waiting, self.waiting = self.waiting, []
            for each in waiting:
                each.callback(None)
        elif name == "read_slot" and self.reads_wait:
            self.waiting.append(Deferred())
            await self.waiting[-1]


@define(eq=False)
class CountedServer:
    """A server whose calls are noted."""

    service: StorageService
    calls: Calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.service, name)
        if name.startswith("_") or not callable(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            await self.calls.note(name)
            return await found(*arguments, **named)

        return call


@asynccontextmanager
async def counted_gateway(folder: Path) -> AsyncIterator[tuple[WebGateway, Calls]]:
    """A gateway over servers whose calls are noted."""
    from twisted.internet import reactor

    pool = ThreadCpuPool(reactor, 2)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    calls, servers = Calls(), list[Any]()
    for index in range(COUNT):
        seed = b"%02d" % index * 10
        identity = ServerIdentity(server_id=ServerId(f"s{index}"), permutation_seed=seed, lease_seed=seed)
        service = StorageService(identity, MemoryDisk(2**28), runtime, StorageSettings())
        await service.start()
        servers.append(CountedServer(service, calls))
    async with web_gateway(folder, servers=servers, encoding=Encoding(k=2, n=COUNT, happy=COUNT)) as web:
        yield web, calls
    for server in servers:
        await server.service.stop()
    pool.stop()


async def folder_with_mutable(web: WebGateway) -> tuple[DirectoryCap, SdmfWriteCap]:
    """A directory with a mutable file `mine`, an immutable one `old` and a directory `dir`."""
    mine = parse_cap((await web.put("/uri?format=sdmf", b"mine")).text)
    assert isinstance(mine, SdmfWriteCap)
    store = web.gateway.store
    children = {
        "mine": Child(target=mine),
        "old": Child(target=parse_cap((await web.put("/uri", b"old")).text)),  # type: ignore[arg-type]
        "dir": Child(target=await store.create_directory()),
    }
    return await store.create_directory(children), mine


@pytest.mark.parametrize(("name", "status"), [("new", 201), ("old", 200)])
async def test_small_file_when_put_then_is_stored_while_its_directory_is_read(
    name: str, status: int, tmp_path: Path
) -> None:
    async with counted_gateway(tmp_path) as (web, calls):
        folder, _ = await folder_with_mutable(web)
        calls.reads_wait = True
        reply = await web.put(f"/uri/{folder.to_string()}/{name}", DATA)
        assert reply.status == status
        assert (await web.get(f"/uri/{folder.to_string()}/{name}")).body == DATA
        assert (await web.get(f"/uri/{reply.text}")).body == DATA


async def test_mutable_file_when_put_then_is_written_in_place_and_stored_once_from_the_second_time_on(
    tmp_path: Path,
) -> None:
    async with counted_gateway(tmp_path) as (web, calls):
        folder, mine = await folder_with_mutable(web)
        for turn in range(3):
            calls.names.clear()
            reply = await web.put(f"/uri/{folder.to_string()}/mine", DATA + b"%d" % turn)
            assert (reply.status, reply.text) == (200, mine.to_string())
            assert (await web.get(f"/uri/{mine.to_string()}")).body == DATA + b"%d" % turn
            if turn:
                assert calls.store_count == 0


async def test_put_when_it_is_refused_then_nothing_is_linked_and_nothing_known_to_be_refused_is_stored(
    tmp_path: Path,
) -> None:
    async with counted_gateway(tmp_path) as (web, calls):
        folder, _ = await folder_with_mutable(web)
        before = (await web.get(f"/uri/{folder.to_string()}?t=json")).body
        calls.names.clear()
        for name, status in [
            ("dir", 400),
            ("mine/below", 409),
            ("old?replace=false", 409),
            ("new?replace=false&format=other", 400),
            ("old?offset=0", 400),
        ]:
            reply = await web.put(f"/uri/{folder.to_string()}/{name}", DATA)
            assert (name, reply.status) == (name, status)
        reading = folder.read_cap().to_string()
        assert (await web.put(f"/uri/{reading}/new", DATA)).status == 403
        assert calls.store_count == 0
        assert (await web.get(f"/uri/{folder.to_string()}?t=json")).body == before


async def test_file_when_larger_than_what_is_stored_early_then_waits_for_the_path(tmp_path: Path) -> None:
    async with counted_gateway(tmp_path) as (web, calls):
        folder, mine = await folder_with_mutable(web)
        data = random.Random(8).randbytes(EARLY_BYTES + 1)
        calls.names.clear()
        reply = await web.put(f"/uri/{folder.to_string()}/mine", data)
        assert (reply.status, reply.text, calls.store_count) == (200, mine.to_string(), 0)
