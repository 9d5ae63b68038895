"""Mutable files on our own storage servers, with real leases and containers, on the in-memory twin of a disk."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator

import pytest
import pytest_twisted
from attrs import define

from grid.errors import BadWriteEnablerError, ConflictError, GridError
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.mutable.share.geometry import FormatName
from grid.placement.leases import LeaseMaster
from grid.ports import Runtime, ServerId, ServerIdentity, SlotSecrets, StorageIndex, StorageServer, TestWrite
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.support.grids import grid_of
from tests.support.mutable_key import known_key

SEGMENT = 131073
RESERVE = 2**22


@define
class Services:
    """Ten services in this process, and everything that a client of them needs."""

    servers: list[StorageServer]
    runtime: Runtime
    leases: LeaseMaster
    disks: list[MemoryDisk]


@pytest_twisted.async_yield_fixture
async def services() -> AsyncGenerator[Services, None]:
    from twisted.internet import reactor

    pool = ThreadCpuPool(reactor, 4)
    runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
    made, disks = [], []
    for index in range(10):
        seed = b"%d" % index * 20
        identity = ServerIdentity(server_id=ServerId(f"s{index}"), permutation_seed=seed, lease_seed=seed)
        disks.append(MemoryDisk(2**26))
        made.append(StorageService(identity, disks[-1], runtime, StorageSettings(reserved_space=RESERVE)))
    for service in made:
        await service.start()
    yield Services(list(made), runtime, LeaseMaster(bytes(32)), disks)
    for service in made:
        await service.stop()
    pool.stop()


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
async def test_file_when_on_real_services_then_lives_a_whole_life(services: Services, format: FormatName) -> None:
    model = bytearray(random.Random(1).randbytes(2 * SEGMENT + 5))
    grid = grid_of(services.servers, services.runtime, leases=services.leases)
    cap = await create_mutable(bytes(model), grid, format=format, key=known_key())
    file = MutableFile(cap, grid)
    assert await file.read_all() == model
    for offset, data in ((SEGMENT - 3, b"across"), (len(model), b"more"), (0, bytes(SEGMENT))):
        await file.update(offset, data)
        model[offset : offset + len(data)] = data
        assert await file.read_all() == model
    await file.modify(lambda old, _: old[: SEGMENT + 5])
    assert await file.read_all() == model[: SEGMENT + 5]
    result = await file.check(verify=True, add_lease=True)
    assert result.healthy and not result.corrupt
    for index in range(3):
        secrets = SlotSecrets(
            write_enabler=file_enabler(cap.write_key, services.servers[index]),
            lease=services.leases.secrets_for(cap.storage_index, services.servers[index].identity.lease_seed),
        )
        held = await services.servers[index].read_slot(cap.storage_index, frozenset(), [(0, 1)])
        await services.servers[index].test_and_write(
            cap.storage_index, secrets, {number: TestWrite(new_length=0) for number in held}
        )
    assert not (await file.check()).healthy
    assert (await file.repair()).successful
    assert (await file.check(verify=True)).healthy
    assert await file.read_all() == model[: SEGMENT + 5]


def file_enabler(write_key: bytes, server: StorageServer) -> bytes:
    from grid.placement.leases import write_enabler

    return write_enabler(write_key, server.identity.lease_seed)


async def test_slot_when_its_write_enabler_is_anothers_then_the_write_says_so(services: Services) -> None:
    grid = grid_of(services.servers, services.runtime, leases=services.leases)

    async def create(key_owner: bytes) -> None:
        await create_mutable(key_owner, grid, format="sdmf", key=known_key())

    index = known_index()
    for server in services.servers:
        secrets = SlotSecrets(
            write_enabler=b"x" * 32, lease=services.leases.secrets_for(index, server.identity.lease_seed)
        )
        await server.test_and_write(index, secrets, {0: TestWrite(writes=[(0, b"squatter")])})  # type: ignore[dict-item]
    with pytest.raises(GridError) as caught:
        await create(b"mine")
    assert isinstance(caught.value, BadWriteEnablerError | ConflictError)


def known_index() -> StorageIndex:
    from grid.mutable.share.keys import write_cap

    return write_cap(known_key(), 0).storage_index


async def test_file_when_all_disks_are_at_their_reserve_is_still_overwritten_in_place(services: Services) -> None:
    grid = grid_of(services.servers, services.runtime, leases=services.leases)
    cap = await create_mutable(b"entries" * 1000, grid, format="sdmf", key=known_key())
    for disk in services.disks:
        handle = disk.create_file("filler")
        disk.write(handle, 0, [bytes((disk.free_space() or 0) - RESERVE + 1)])
        disk.close_file(handle)
    assert {(await server.get_version()).available_space for server in services.servers} == {0}
    for text in (b"entries" * 900, b"entries" * 1000):
        await MutableFile(cap, grid).overwrite(text)
        assert await MutableFile(cap, grid).read_all() == text
