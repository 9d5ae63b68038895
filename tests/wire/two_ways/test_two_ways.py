"""Files stored and read while the HTTP of some servers is dead, dies midway, or comes back."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from grid.caps import ChkCap
from grid.engine.grid import Encoding
from grid.immutable.get import ImmutableFile
from grid.immutable.put import PutResult, put
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.mutable.sources import MemorySource
from grid.placement.leases import LeaseMaster
from grid.sinks import BytesSink
from tests.support.grids import grid_of
from tests.wire.http.rig import make_runtime
from tests.wire.two_ways.both import Both, both

CONTENTS = random.Random(9).randbytes(3_000_000)
ENCODING = Encoding(k=2, n=4, happy=3)
LEASES = LeaseMaster(b"m" * 32)


@asynccontextmanager
async def four(*, wrong_keys: int = 0) -> AsyncIterator[list[Both]]:
    """Four servers, the first ones with wrong keys."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(both(f"v0-{index}", wrong_key=index < wrong_keys)) for index in range(4)]


async def store(servers: list[Both]) -> PutResult:
    """CONTENTS, as an immutable file."""
    return await put(
        MemorySource(CONTENTS), grid_of([each.server for each in servers], make_runtime(), encoding=ENCODING)
    )


async def load(servers: list[Both], cap: object) -> bytes:
    """What the file holds."""
    assert isinstance(cap, ChkCap)
    sink = BytesSink()
    await ImmutableFile(cap, grid_of([each.server for each in servers], make_runtime())).read(sink)
    return bytes(sink.data)


def transports(servers: list[Both]) -> list[str]:
    return [each.server.status.transport for each in servers]


async def test_file_when_the_http_of_some_servers_is_dead_from_the_start_is_stored_and_read() -> None:
    async with four(wrong_keys=2) as servers:
        result = await store(servers)
        assert result.happiness == 4
        assert await load(servers, result.cap) == CONTENTS
        assert transports(servers) == ["foolscap", "foolscap", "http", "http"]


async def test_get_when_http_is_cut_in_the_middle_on_every_server_gives_every_byte() -> None:
    async with four() as servers:
        result = await store(servers)
        for each in servers:
            each.relay.limit = 300_000
        assert await load(servers, result.cap) == CONTENTS
        assert sum(each.relay.cuts for each in servers) > 0
        assert "foolscap" in transports(servers)


async def test_put_when_the_http_of_a_server_dies_in_the_middle_succeeds_with_the_others() -> None:
    async with four() as servers:
        servers[1].relay.sent_limit = 300_000
        result = await store(servers)
        assert result.happiness == 3 and servers[1].relay.cuts
        assert await load(servers, result.cap) == CONTENTS


async def test_mutable_file_when_http_dies_between_writes_goes_on_over_foolscap() -> None:
    async with four() as servers:
        grid = grid_of([each.server for each in servers], make_runtime(), encoding=ENCODING)
        cap = await create_mutable(b"one", grid, format="mdmf")
        file = MutableFile(cap, grid)
        for each in servers[:2]:
            each.relay.open, each.relay.limit = False, 0
        await file.modify(lambda old, _: old + b", two")
        await file.modify(lambda old, _: old + b", three")
        assert await file.read_all() == b"one, two, three"
        assert set(transports(servers[:2])) == {"foolscap"} and transports(servers[2:]) == ["http", "http"]
