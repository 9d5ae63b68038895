"""A disk that gives an error, seen from a client: the error is passed on, and no share is said to be missing or empty."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from grid.errors import GridError, PeerError
from grid.ports import ShareNumber, StorageIndex, StorageServer
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import plain, put, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import IDENTITY
from tests.wire.foolscap.loopback import connected
from tests.wire.http.rig import make_runtime, running

INDEX = StorageIndex(b"immutable index!")
SLOT = StorageIndex(b"another index...")
WHOLE = (0, 10_000)


@asynccontextmanager
async def client_of(disk: FaultyDisk, transport: str) -> AsyncIterator[StorageServer]:
    """A client of a service on that disk, over real sockets. transport: `batched` over both is ours, `single` 1.20's."""
    service = StorageService(IDENTITY, disk, make_runtime(), StorageSettings())
    await service.start()
    protocol, calls = transport.split()
    try:
        if protocol == "foolscap":
            async with connected(service) as client:
                yield client
        else:
            async with running(service, extensions=calls == "batched") as rig:
                yield rig.client
    finally:
        await service.stop()


@pytest.mark.parametrize("transport", ["foolscap batched", "http batched", "http single"])
@pytest.mark.parametrize("call", ["open_file", "read"])
async def test_reads_of_shares_that_the_disk_does_not_give_fail_and_find_them_all_the_same(
    transport: str, call: str
) -> None:
    disk = FaultyDisk(MemoryDisk())
    async with client_of(disk, transport) as client:
        await put(client, INDEX, {0: b"data", 1: b"more"})
        await client.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))})
        fails = frozenset({call})
        disk.fail_in(0, errno.EIO, fails, fails)
        assert set(await client.find_shares(INDEX)) == {0, 1}
        with pytest.raises(PeerError):
            await client.read_shares(INDEX, {ShareNumber(0): [WHOLE]})
        with pytest.raises(PeerError):
            await client.read_slot(SLOT, frozenset(), [WHOLE])
        with pytest.raises(GridError):
            await client.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): vector((0, b"lost"))}, [WHOLE])
        assert disk.fired
        disk.heal()
        assert plain(await client.read_shares(INDEX, {ShareNumber(0): [WHOLE]})) == {0: [b"data"]}
        assert plain(await client.read_slot(SLOT, frozenset(), [WHOLE])) == {0: [b"slot"]}


@pytest.mark.parametrize("transport", ["foolscap batched", "http batched", "http single"])
async def test_questions_while_the_disk_does_not_show_its_directories_fail(transport: str) -> None:
    disk = FaultyDisk(MemoryDisk())
    async with client_of(disk, transport) as client:
        await put(client, INDEX, {0: b"data"})
        await client.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))})
        fails = frozenset({"list_directory"})
        disk.fail_in(0, errno.EIO, fails, fails)
        with pytest.raises(PeerError):
            await client.find_shares(INDEX)
        with pytest.raises(PeerError):
            await client.read_slot(SLOT, frozenset(), [WHOLE])
        disk.heal()
        assert set(await client.find_shares(INDEX)) == {0}
