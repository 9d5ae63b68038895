"""The contract of StorageServer, and its faults, when two protocols reach a server over sockets and one is broken."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import pytest_twisted

from grid.caps import StorageIndex
from grid.errors import PeerError
from grid.ports import LeaseSecrets, ShareNumber, ShareWrite, StorageServer
from tests.contract.whole_shares import WholeSharesContract
from tests.wire.http.rig import make_runtime
from tests.wire.two_ways.both import both

INDEX = StorageIndex(b"i" * 16)
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
DATA = bytes(range(256)) * 8192


class TestFallbackServer(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with both() as pair:
            await pair.server.connect()
            assert pair.server.status.transport == "http"
            yield pair.server


class TestFallbackServerWhoseHttpKeyIsAnother(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with both(wrong_key=True) as pair:
            await pair.server.connect()
            assert pair.server.status.transport == "foolscap"
            yield pair.server


class TestFallbackServerWhoseFoolscapIsDead(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with both(http_first=False, dead_foolscap=True) as pair:
            await pair.server.connect()
            assert pair.server.status.transport == "http"
            yield pair.server


async def store(server: StorageServer) -> None:
    """One share of DATA."""
    allocation = await server.allocate(INDEX, LEASE, frozenset([ShareNumber(0)]), len(DATA))
    await allocation.upload.write([ShareWrite(ShareNumber(0), 0, [DATA])])
    await allocation.upload.close([ShareNumber(0)])


async def load(server: StorageServer) -> bytes:
    """What is in it."""
    found = await server.read_shares(INDEX, {ShareNumber(0): [(0, len(DATA))]})
    return bytes(found[ShareNumber(0)][0])


async def test_server_when_the_http_key_is_another_says_so_and_is_used_by_foolscap() -> None:
    async with both(wrong_key=True) as pair:
        await store(pair.server)
        assert await load(pair.server) == DATA
        status = pair.server.status
        assert status.transport == "foolscap" and "its key differs" in status.fallback


async def test_read_when_http_is_cut_in_the_middle_every_time_is_finished_by_foolscap() -> None:
    async with both() as pair:
        await store(pair.server)
        pair.relay.limit = 300_000
        assert await load(pair.server) == DATA
        assert pair.relay.cuts >= 2
        assert pair.server.status.transport == "foolscap"


async def test_write_when_http_dies_in_the_middle_fails_once_and_the_next_goes_by_foolscap() -> None:
    async with both() as pair:
        allocation = await pair.server.allocate(INDEX, LEASE, frozenset([ShareNumber(0)]), len(DATA))
        pair.relay.open, pair.relay.limit = False, 0
        with pytest.raises(PeerError):
            await allocation.upload.write([ShareWrite(ShareNumber(0), 0, [DATA])])
        assert await pair.server.find_shares(INDEX) == {}
        other = StorageIndex(b"j" * 16)
        again = await pair.server.allocate(other, LEASE, frozenset([ShareNumber(0)]), 5)
        await again.upload.write([ShareWrite(ShareNumber(0), 0, [b"share"])])
        await again.upload.close([ShareNumber(0)])
        assert set(await pair.server.find_shares(other)) == {ShareNumber(0)}
        assert pair.server.status.transport == "foolscap"


async def test_server_when_http_comes_back_is_used_over_http_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.wire.two_ways.preference.FIRST_AVOIDED_S", 0.6)
    async with both() as pair:
        pair.relay.open = False
        await store(pair.server)
        assert pair.server.status.transport == "foolscap"
        pair.relay.open = True
        clock = make_runtime().clock
        for _ in range(100):
            await clock.sleep(0.1)
            assert await load(pair.server) == DATA
            if pair.server.status.transport == "http":
                break
        assert pair.server.status.transport == "http" and not pair.server.status.fallback
