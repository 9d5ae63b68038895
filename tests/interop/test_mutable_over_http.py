"""Mutable files over HTTP: `grid` with 1.20's servers, 1.20's client with ours, and both with a mixture."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_twisted
from attrs import evolve

from grid.engine.grid import Encoding
from grid.errors import BadWriteEnablerError
from grid.mutable import publish
from grid.mutable.share.geometry import FormatName
from grid.mutable.write import stream_plan
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.ports import ShareNumber
from grid.runtime import make_runtime
from grid.wire.http.client.server import HttpServer
from tests.contract.storage_server import slot_secrets, vector
from tests.interop.conftest import HTTP_SHARES, Pair
from tests.interop.test_mutable import FORMATS, SEGMENT, Ours, Theirs, sample_bytes

pytestmark = [pytest.mark.interop, pytest.mark.background]

SIZES = [0, 1000, SEGMENT + 1, 1_000_000]


@pytest_twisted.async_yield_fixture
async def ours(over_http: Pair) -> AsyncIterator[Ours]:
    """This process with the node directory of our client."""
    from twisted.internet import reactor

    client = Client(open_directory(over_http.ours.directory), make_runtime(reactor), reactor)
    servers = await client.servers()
    assert len(servers) == 5 and all(isinstance(server, HttpServer) for server in servers)
    yield Ours(evolve(client.grid(servers), encoding=Encoding(k=3, n=HTTP_SHARES, happy=5)))
    await client.close()


@pytest.fixture
def theirs(over_http: Pair) -> Theirs:
    """The 1.20 client."""
    return Theirs(over_http.tahoe)


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("format", FORMATS)
async def test_file_made_by_grid_over_http_is_read_changed_and_verified_by_tahoe(
    ours: Ours, theirs: Theirs, format: FormatName, size: int
) -> None:
    made = await ours.create(sample_bytes(size), format)
    cap = made.to_string()
    assert theirs.read(cap) == theirs.read(made.read_cap().to_string()) == sample_bytes(size)
    theirs.require_healthy(cap, HTTP_SHARES)
    theirs.overwrite(cap, sample_bytes(size + 100, 1))
    assert await ours.open(cap).read_all() == sample_bytes(size + 100, 1)
    await ours.require_healthy(cap)
    await ours.open(cap).modify(lambda old, _: old[50:])
    assert theirs.read(cap) == sample_bytes(size + 100, 1)[50:]
    theirs.require_healthy(cap, HTTP_SHARES)


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("format", FORMATS)
async def test_file_made_by_tahoe_over_http_is_read_changed_and_verified_by_grid(
    ours: Ours, theirs: Theirs, format: FormatName, size: int
) -> None:
    cap = theirs.create(sample_bytes(size), format)
    await ours.require_healthy(cap)
    assert await ours.open(cap).read_all() == sample_bytes(size)
    await ours.open(cap).overwrite(sample_bytes(size + 7, 1))
    assert theirs.read(cap) == sample_bytes(size + 7, 1)
    theirs.require_healthy(cap, HTTP_SHARES)
    await ours.require_healthy(cap)


async def test_update_in_place_over_http_when_done_by_both_in_turn_leaves_one_sound_file(
    ours: Ours, theirs: Theirs
) -> None:
    model = bytearray(sample_bytes(4 * SEGMENT + 17))
    cap = theirs.create(bytes(model), "mdmf")
    file = ours.open(cap)
    for seed, (offset, length) in enumerate([(5, 100), (2 * SEGMENT - 5, 10), (4 * SEGMENT + 17, 1000)]):
        data = sample_bytes(length, seed + 1)
        await file.update(offset, data)
        model[offset : offset + length] = data
        theirs.update(cap, offset + 50, sample_bytes(300, seed + 100))
        model[offset + 50 : offset + 350] = sample_bytes(300, seed + 100)
        assert theirs.read(cap) == await ours.open(cap).read_all() == model
        theirs.require_healthy(cap, HTTP_SHARES)
        await ours.require_healthy(cap)


async def test_large_file_when_written_in_pieces_over_http_is_sound_for_tahoe(
    ours: Ours, theirs: Theirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More shares than a message has, and several pieces each, which a server of ours gives room to grow into."""
    monkeypatch.setattr(publish, "WHOLE_BYTES", 500_000)
    monkeypatch.setattr(stream_plan, "WRITE_BYTES", 4 * 2**20)
    size = 3_000_000
    cap = (await ours.create(sample_bytes(size), "mdmf")).to_string()
    assert theirs.read(cap) == sample_bytes(size)
    theirs.require_healthy(cap, HTTP_SHARES)
    await ours.open(cap).overwrite(sample_bytes(size + 500_000, 1))
    assert theirs.read(cap) == sample_bytes(size + 500_000, 1)
    theirs.update(cap, 1_000_000, b"written in place by the other program")
    assert (await ours.open(cap).read_all())[1_000_000:1_000_007] == b"written"
    theirs.require_healthy(cap, HTTP_SHARES)
    await ours.require_healthy(cap)


@pytest.mark.each_pair
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("repairing", ["ours", "theirs"])
async def test_file_that_lost_a_server_when_repaired_over_http_is_sound_for_both(
    over_http: Pair, ours: Ours, theirs: Theirs, format: FormatName, repairing: str
) -> None:
    made = await ours.create(sample_bytes(200_000), format)
    cap = made.to_string()
    name = made.verify_cap().to_string().split(":")[2]
    removed = list((over_http.grid.storage[1].directory / "storage" / "shares").glob(f"*/{name}/*"))
    assert removed
    for path in removed:
        path.unlink()
    assert not (await ours.open(cap).check()).healthy
    if repairing == "ours":
        assert (await ours.open(cap).repair()).successful
    else:
        theirs.repair(cap)
    theirs.require_healthy(cap, HTTP_SHARES)
    await ours.require_healthy(cap)
    assert theirs.read(cap) == await ours.open(cap).read_all() == sample_bytes(200_000)


async def test_slot_written_without_its_enabler_over_http_is_refused(ours: Ours) -> None:
    made = await ours.create(b"whose is this?", "sdmf")
    index = made.storage_index
    for server in ours.grid.servers:
        with pytest.raises(BadWriteEnablerError):
            await server.test_and_write(index, slot_secrets(b"x"), {ShareNumber(0): vector((0, b"mine"))})
    assert await ours.open(made.to_string()).read_all() == b"whose is this?"
