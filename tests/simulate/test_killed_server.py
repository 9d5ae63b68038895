"""kill -9 of a storage node's process at each step of a put and of a get: nothing is lost or half stored."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
import pytest_twisted
from attrs import define
from twisted.internet import reactor

from grid.caps import ChkCap
from grid.engine.grid import Encoding
from grid.errors import NotHappyError
from grid.immutable.put import PutResult
from grid.immutable.write import put_plan
from grid.placement.order import permute
from grid.ports import StorageServer
from grid.runtime import RealRuntime, make_runtime
from grid.wire.locators import parse_furl
from perf.processes.node_process import NodeProcess, wait_until
from perf.processes.process_grid import ProcessGrid
from tests.support.library_client import LibraryClient
from tests.support.mortal_server import Moment, MortalServer, When

SERVERS = 5
NEEDED = 2
SCALE = 4
"""Puts cut batches this many times smaller than the product's, and the files are."""

SIZE = 9_000_001 // SCALE
"""Large enough for a write to each server beside its first; twice that takes another."""

READ_SIZE = 18_000_002
"""What is read from each server in more than one call."""

SMALL_SIZE = 1000

PUT_STEPS = [
    Moment("before", "get_version"),
    Moment("during", "find_shares"),
    Moment("before", "allocate"),
    Moment("during", "allocate"),
    Moment("after", "allocate"),
    Moment("before", "write"),
    Moment("during", "write"),
    Moment("after", "write"),
    Moment("during", "write", 2),
    Moment("before", "finish"),
    Moment("during", "finish"),
    Moment("after", "finish"),
]

GET_STEPS = [
    Moment("before", "find_shares"),
    Moment("after", "find_shares"),
    Moment("during", "read_shares"),
    Moment("during", "read_shares", 2),
]

pytestmark = pytest.mark.background  # Connections to a node that is gone try again, which outlives a test.


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGrid]:
    """Storage nodes for all tests of this module; each test leaves them all running."""
    with ProcessGrid(tmp_path_factory.mktemp("killed") / "grid", introducer="grid", storage=["grid"] * SERVERS) as grid:
        for node in grid.storage:
            wait_listening(node)
        yield grid


@pytest.fixture
def runtime() -> RealRuntime:
    """Of the reactor that runs the tests; a new one for each, which remembers nothing of servers killed before."""
    return make_runtime(reactor)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WRITE_BYTES", "LIVE_BYTES", "WRITE_WINDOW"):
        monkeypatch.setattr(put_plan, name, getattr(put_plan, name) // SCALE)


@define
class Scene:
    """Running nodes and a client with fresh connections to all of them."""

    nodes: Sequence[NodeProcess]
    runtime: RealRuntime
    client: LibraryClient

    async def put(self, data: bytes, happy: int, mortal: dict[int, Moment]) -> PutResult:
        """A put during which these servers die; every death must have happened."""
        servers: list[StorageServer] = list(self.client.servers)
        dying = [MortalServer(servers[index], moment, self.nodes[index].kill) for index, moment in mortal.items()]
        for index, server in zip(mortal, dying, strict=True):
            servers[index] = server
        try:
            return await self.client.put(data, servers, happy)
        finally:
            assert [server.fired for server in dying] == [True] * len(dying)

    async def revive(self) -> None:
        """Restart all killed nodes, and reconnect to all."""
        for node in self.nodes:
            if not node.running:
                node.start()
                wait_listening(node)
        await self.client.close()
        self.client = make_client(self.nodes, self.runtime)


@pytest_twisted.async_yield_fixture
async def scene(grid: ProcessGrid, runtime: RealRuntime) -> AsyncIterator[Scene]:
    """A client of all nodes; whatever a test kills runs again afterwards."""
    scene = Scene(grid.storage, runtime, make_client(grid.storage, runtime))
    yield scene
    await scene.revive()
    await scene.client.close()


@pytest.mark.parametrize("moment", PUT_STEPS, ids=str)
async def test_put_when_a_server_is_killed_succeeds_on_the_others(scene: Scene, moment: Moment) -> None:
    data = os.urandom(SIZE * moment.count)
    result = await scene.put(data, happy=SERVERS - 1, mortal={2: moment})
    assert result.happiness >= SERVERS - 1
    alive = [server for index, server in enumerate(scene.client.servers) if index != 2]
    for pair in (alive[:NEEDED], alive[-NEEDED:]):
        assert await scene.client.get(result.cap, pair) == data
    await assert_whole(scene, data, result)


@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_put_of_a_small_file_when_a_server_is_killed_succeeds_on_the_others(scene: Scene, when: When) -> None:
    await scene.client.put(os.urandom(SMALL_SIZE))  # Now the servers are known, and given their shares whole.
    data = os.urandom(SMALL_SIZE)
    result = await scene.put(data, happy=SERVERS - 1, mortal={2: Moment(when, "store_shares")})
    assert result.happiness >= SERVERS - 1
    assert await scene.client.get(result.cap) == data
    await assert_whole(scene, data, result)


@pytest.mark.rows(5)
@pytest.mark.parametrize("moment", PUT_STEPS[:-1], ids=str)
async def test_put_that_needs_the_killed_server_fails_cleanly(scene: Scene, moment: Moment) -> None:
    data = os.urandom(SIZE * moment.count)
    result: PutResult | None = None
    try:
        result = await scene.put(data, happy=SERVERS, mortal={2: moment})
    except NotHappyError:
        wait_until(lambda: incoming(scene.nodes[:2]) == [], "the uploads taken back")
    else:
        assert moment == Moment("during", "finish"), "a server that died before it closed its share was counted"
    await assert_whole(scene, data, result)


@pytest.mark.rows(2)
@pytest.mark.rows(2)
@pytest.mark.parametrize("seed", range(6))
async def test_put_when_two_servers_are_killed_at_any_step_loses_nothing_acknowledged(scene: Scene, seed: int) -> None:
    draw = random.Random(seed)
    data = os.urandom(2 * SIZE)
    victims = draw.sample(range(SERVERS), 2)
    result = await scene.put(data, happy=SERVERS - 2, mortal={index: draw.choice(PUT_STEPS) for index in victims})
    assert await scene.client.get(result.cap) == data
    await assert_whole(scene, data, result)


@pytest.mark.parametrize("moment", GET_STEPS, ids=str)
async def test_get_when_a_server_is_killed_is_served_by_the_others(scene: Scene, moment: Moment) -> None:
    """All but one of the servers die at that step of theirs, as far as enough shares are left."""
    data = os.urandom(READ_SIZE)
    cap = (await scene.client.put(data)).cap
    assert isinstance(cap, ChkCap)
    nodes = dict(zip(scene.client.servers, scene.nodes, strict=True))
    servers = permute(nodes, cap.storage_index)  # Those asked first die, so that some are read from.
    mortal = [MortalServer(server, moment, nodes[server].kill) for server in servers[: SERVERS - NEEDED]]
    assert await scene.client.get(cap, [*mortal, *servers[len(mortal) :]]) == data
    assert any(server.fired for server in mortal)


async def test_get_when_servers_fall_silent_is_served_by_the_others(scene: Scene) -> None:
    data = os.urandom(SIZE)
    cap = (await scene.client.put(data)).cap
    for node in scene.nodes[: SERVERS - NEEDED]:
        node.freeze()
    try:
        assert await scene.client.get(cap) == data
    finally:
        for node in scene.nodes[: SERVERS - NEEDED]:
            node.thaw()


async def assert_whole(scene: Scene, data: bytes, result: PutResult | None) -> None:
    """Once all nodes run again: no share is half stored, everything acknowledged exists, and the file can be put again."""
    await scene.revive()
    wait_until(lambda: incoming(scene.nodes) == [], "no uploads under way")
    if result is not None:
        found = await scene.client.check(result.cap)
        assert (found.recoverable, dict(found.corrupt)) == (True, {})
        assert await scene.client.get(result.cap) == data
    again = await scene.client.put(data, happy=SERVERS)  # All of them, so that none is passed over for being late.
    assert result is None or again.cap == result.cap
    found = await scene.client.check(again.cap)
    assert (found.healthy, dict(found.corrupt), list(found.incompatible)) == (True, {}, [])
    assert await scene.client.get(again.cap) == data


def make_client(nodes: Sequence[NodeProcess], runtime: RealRuntime) -> LibraryClient:
    encoding = Encoding(k=NEEDED, n=SERVERS, happy=NEEDED)
    return LibraryClient([node.directory for node in nodes], runtime, encoding)


def incoming(nodes: Sequence[NodeProcess]) -> list[Path]:
    """Shares still being uploaded, on disk."""
    roots = [node.directory / "storage" / "shares" / "incoming" for node in nodes]
    # Path.rglob fails on a folder that the server removes meanwhile.
    return [Path(folder) / name for root in roots for folder, _, names in os.walk(root) for name in names]


def wait_listening(node: NodeProcess) -> None:
    """Return when the node accepts connections."""
    furl_file = node.directory / "private" / "storage.furl"

    def listens() -> bool:
        text = furl_file.read_text().strip() if furl_file.exists() else ""
        if not text:
            return False
        _, host, port = parse_furl(text).hints[0].split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    node.wait_for(listens, "its port")
