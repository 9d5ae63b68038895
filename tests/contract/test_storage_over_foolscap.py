"""The StorageServer contract through Foolscap: our own server with and without batches, and a real 1.20's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_twisted

from grid.ports import ServerId, ServerIdentity, ServerVersion, StorageServer
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.server import server as server_module
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.foolscap.values import BATCH_KEY, pack_version
from grid.wire.locators import Furl, parse_furl
from perf.processes.process_grid import ProcessGrid
from tests.contract.whole_shares import WholeSharesContract
from tests.support.storage import IDENTITY
from tests.wire.foolscap.loopback import connected


async def over_foolscap() -> AsyncGenerator[StorageServer, None]:
    """Our service behind real sockets."""
    from twisted.internet import reactor

    pool = ThreadCpuPool(reactor, 4)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    service = StorageService(IDENTITY, MemoryDisk(2**29), runtime, StorageSettings())
    await service.start()
    try:
        async with connected(service) as client:
            yield client
    finally:
        await service.stop()
        pool.stop()


class TestServiceOverFoolscap(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async for client in over_foolscap():
            assert (await client.get_version()).batched_reads
            yield client


class TestServiceOverFoolscapWithoutBatches(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[StorageServer, None]:
        def without_batches(version: ServerVersion) -> dict[bytes, object]:
            return {key: value for key, value in pack_version(version).items() if key != BATCH_KEY}

        monkeypatch.setattr(server_module, "pack_version", without_batches)
        async for client in over_foolscap():
            assert not (await client.get_version()).batched_reads
            yield client


@pytest.fixture(scope="module")
def tahoe_furl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Furl]:
    """The storage FURL of a real 1.20 node."""
    root: Path = tmp_path_factory.mktemp("contract") / "grid"
    with ProcessGrid(root, introducer="tahoe", storage=["tahoe"]) as grid:
        file = grid.storage[0].directory / "private" / "storage.furl"
        grid.storage[0].wait_for(lambda: file.exists() and file.read_text().endswith("\n"), "its storage FURL")
        grid.storage[0].wait_for(lambda: "client running" in grid.storage[0].log, "its start")
        yield parse_furl(file.read_text().strip())


@pytest.mark.interop
class TestTahoeOverFoolscap(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self, tahoe_furl: Furl) -> AsyncGenerator[StorageServer, None]:
        from twisted.internet import reactor

        identity = ServerIdentity(server_id=ServerId("tahoe"), permutation_seed=b"", lease_seed=tahoe_furl.node_id)
        tub = start_tub()
        client = FoolscapServer(identity, tahoe_furl, tub, ReactorClock(reactor))
        assert (await client.get_version()).application.startswith("tahoe-lafs/1.20")
        yield client
        client.close()
        await stop_tub(tub)
