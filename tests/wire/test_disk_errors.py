"""A disk error as a client sees it: the error is passed on, and no share counts as missing or empty."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from grid.errors import GridError, PeerError
from grid.ports import Buffer, ShareNumber, StorageIndex, StorageServer
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from grid.wire.foolscap.server.reading import told_shares
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


TRANSPORTS = ["foolscap batched", "http batched", "http single"]
CALLS = ["open_file", "read"]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("call", CALLS)
async def test_shares_that_the_disk_cannot_read_are_errors_and_still_found(transport: str, call: str) -> None:
    disk = FaultyDisk(MemoryDisk())
    async with client_of(disk, transport) as client:
        await put(client, INDEX, {0: b"data", 1: b"more"})
        await client.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))})
        fails = frozenset({call})
        disk.fail_in(0, errno.EIO, fails, fails)
        assert set(await client.find_shares(INDEX)) == {0, 1}
        nothing = (
            [] if transport.endswith("batched") else [b""]
        )  # The calls of 1.20 list shares without a look at them.
        assert plain(await client.find_shares(INDEX, [(0, 0)])) == {0: nothing, 1: nothing}
        assert await told(client.read_shares(INDEX, {ShareNumber(0): [WHOLE]}), transport) == {0: []}
        assert await told(client.read_slot(SLOT, frozenset(), [WHOLE]), transport) == {0: []}
        with pytest.raises(GridError):
            await client.test_and_write(SLOT, slot_secrets(), {ShareNumber(0): vector((0, b"lost"))}, [WHOLE])
        assert disk.fired
        disk.heal()
        assert plain(await client.find_shares(INDEX, [(0, 0)])) == {0: [b""], 1: [b""]}
        assert plain(await client.read_shares(INDEX, {ShareNumber(0): [WHOLE]})) == {0: [b"data"]}
        assert plain(await client.read_slot(SLOT, frozenset(), [WHOLE])) == {0: [b"slot"]}


async def told(question: Awaitable[Mapping[ShareNumber, Sequence[Buffer]]], transport: str) -> Any:
    """An answer about shares that all cannot be read: 1.20's calls report it by an error."""
    if transport.endswith("batched"):
        return plain(await question)
    with pytest.raises(PeerError):
        await question
    return {0: []}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("call", CALLS)
async def test_share_that_the_disk_cannot_read_is_an_error_of_that_share_alone(transport: str, call: str) -> None:
    disk = FaultyDisk(MemoryDisk())
    both = {ShareNumber(0): [WHOLE], ShareNumber(1): [WHOLE]}
    async with client_of(disk, transport) as client:
        await put(client, INDEX, {0: b"same", 1: b"same"})
        writes = {number: vector((0, b"slot")) for number in both}
        await client.test_and_write(SLOT, slot_secrets(), writes)
        disk.fail_in(0, errno.EIO, frozenset({call}))
        found = plain(await client.read_shares(INDEX, both))
        assert sorted(found.values()) == [[], [b"same"]]
        disk.fail_in(0, errno.EIO, frozenset({call}))
        found = plain(await client.read_slot(SLOT, frozenset(both), [WHOLE]))
        assert sorted(found.values()) == [[], [b"slot"]]
        assert disk.fired == [call, call]


@pytest.mark.parametrize("call", CALLS)
async def test_long_read_of_a_share_that_the_disk_cannot_read_has_all_of_the_other(call: str) -> None:
    disk = FaultyDisk(MemoryDisk())
    data = bytes(5 * 2**20)
    both = {ShareNumber(number): [(0, 2**20), (2**20, 4 * 2**20)] for number in (0, 1)}
    async with client_of(disk, "http batched") as client:
        await put(client, INDEX, {0: data, 1: data})
        disk.fail_in(0, errno.EIO, frozenset({call}))
        found = await client.read_shares(INDEX, both)
        assert {number: b"".join(pieces) for number, pieces in found.items()} == {0: b"", 1: data}


async def test_slot_readv_of_1_20_leaves_out_a_share_that_the_disk_cannot_read() -> None:
    found: dict[ShareNumber, list[bytes]] = {ShareNumber(0): [], ShareNumber(1): [b"slot"]}
    assert told_shares(found, [WHOLE]) == {1: [b"slot"]}
    assert told_shares({ShareNumber(0): []}, []) == {0: []}
    with pytest.raises(PeerError, match="disk"):
        told_shares({ShareNumber(0): []}, [WHOLE])


@pytest.mark.parametrize("transport", ["foolscap batched", "http batched", "http single"])
async def test_questions_while_the_disk_cannot_list_its_directories_fail(transport: str) -> None:
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
