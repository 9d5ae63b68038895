"""The contract of StorageServer over HTTP: with our batched requests, with only those of 1.20, and in plaintext."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import pytest_twisted

from grid.errors import PeerError
from grid.ports import StorageServer
from tests.contract.storage_server import begin, fresh_index, share_numbers
from tests.contract.whole_shares import WholeSharesContract
from tests.wire.http.rig import make_service, running


class TestHttpServer(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with running(await make_service()) as rig:
            yield rig.client


class TestHttpServerInTheClear(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with running(await make_service(), plain=True) as rig:
            yield rig.client


class TestHttpServerWithoutExtensions(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self) -> AsyncGenerator[StorageServer, None]:
        async with running(await make_service(), extensions=False) as rig:
            yield rig.client

    async def test_upload_when_of_empty_shares_stores_empty_shares(self, server: StorageServer) -> None:
        """The protocol of 1.20 has no way to say that they are complete. [spec wire 17]"""
        upload = await begin(server, fresh_index(), [5], 0)
        with pytest.raises(PeerError):
            await upload.close(share_numbers(5))
        await upload.abort()
