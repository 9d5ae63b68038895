"""Grids of real Tahoe-LAFS 1.20 and Grid nodes, one at a time, each shared by all tests that use it.

Run with GRID_TAHOE naming a `tahoe` 1.20 and `pytest -m interop`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from attrs import define, field

from grid.engine.lateness import WriteLateness
from grid.ports import ServerId
from perf.processes.clients import GridClient, GridGateway, TahoeClient
from perf.processes.node_directory import Kind
from perf.processes.process_grid import ClientSecrets, ClientSettings, ProcessGrid
from tests.interop.gateways import Gateways
from tests.support.warm_nodes import warm_nodes
from tests.support.warm_programs import WarmGrid

ENCODINGS = {"3-of-10": (3, 7, 10), "1-of-1": (1, 1, 1), "20-of-60": (20, 7, 60)}
"""Name -> needed, happy, total."""

CONVERGENCE = bytes(range(32))
SECRETS = ClientSecrets(convergence=CONVERGENCE, lease_master=bytes(range(32, 64)))

TOPOLOGIES: dict[str, tuple[Kind, Sequence[Kind]]] = {
    "tahoe-servers": ("tahoe", ["tahoe"] * 10),
    "grid-servers": ("grid", ["grid"] * 10),
    "mixed-servers": ("tahoe", ["tahoe", "grid"] * 5),
}
"""Name -> whose introducer, whose storage nodes."""

OVER_HTTP: dict[str, Sequence[Kind]] = {
    "tahoe-servers": ["tahoe"] * 5,
    "grid-servers": ["grid"] * 5,
    "mixed-servers": ["tahoe", "grid", "tahoe", "grid", "tahoe"],
}
"""Name -> whose storage nodes, where clients take HTTP."""

HTTP_SHARES = 10

HTTP_GRID = pytest.StashKey[ProcessGrid]()
"""The grid over HTTP that is up."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, and say why, where there is no peer to talk to; nothing else is ever skipped.

    `make interop` and `make test` install the peer and set GRID_TAHOE, so nothing is skipped there.
    """
    if not os.environ.get("GRID_TAHOE"):
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="GRID_TAHOE does not name a tahoe 1.20"))


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for every server that is written to: tests look at every share, and on a busy machine servers are late."""

    def late_at(lateness: WriteLateness, server_id: ServerId, kind: str, size: int, sent_at: float) -> float:
        return lateness.hopeless_at(size, sent_at)

    monkeypatch.setattr(WriteLateness, "late_at", late_at)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Resume a grid over HTTP for a test that may use it."""
    if HTTP_GRID in item.config.stash and uses_http(item):
        thaw(item.config.stash[HTTP_GRID])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Freeze a grid over HTTP that the next test does not use: a client of 1.20 asks each server every second how it is."""
    yield
    if HTTP_GRID in item.config.stash and not uses_http(nextitem):
        for node in item.config.stash[HTTP_GRID].nodes:
            if node.running:
                node.freeze()


def uses_http(item: pytest.Item | None) -> bool:
    """Whether the test has the fixture `over_http`."""
    return "over_http" in getattr(item, "fixturenames", ())


def thaw(grid: ProcessGrid) -> None:
    """Resume all nodes of the grid."""
    for node in grid.nodes:
        if node.running:
            node.thaw()


@define
class Pair:
    """A client of each kind, alike in encoding, convergence secret and lease secrets, on the same grid."""

    grid: ProcessGrid
    tahoe: TahoeClient
    ours: GridClient


@define
class Topology:
    """A running grid and its pairs of clients, each started when it is first asked for."""

    grid: ProcessGrid
    pairs: dict[str, Pair] = field(factory=dict)

    def pair(self, encoding: str) -> Pair:
        """The two clients that encode so."""
        if encoding not in self.pairs:
            needed, happy, total = ENCODINGS[encoding]
            tahoe, ours = (
                self.grid.start_client(ClientSettings(kind=kind, needed=needed, happy=happy, total=total))
                for kind in KINDS
            )
            assert isinstance(tahoe, TahoeClient)
            assert isinstance(ours, GridClient)
            self.grid.wait_connected(tahoe)
            self.grid.wait_connected(ours)
            self.pairs[encoding] = Pair(self.grid, tahoe, ours)
        return self.pairs[encoding]


KINDS: tuple[Kind, Kind] = ("tahoe", "grid")


@pytest.fixture(scope="session", autouse=True)
def nodes_that_start_warm() -> Iterator[None]:
    """Start 1.20's nodes warm: their startup is not what interop tests."""
    with warm_nodes():
        yield


@pytest.fixture(scope="session", params=list(TOPOLOGIES))
def topology(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    """Each topology in turn, up for all tests that use it."""
    introducer, storage = TOPOLOGIES[request.param]
    root = tmp_path_factory.mktemp(request.param) / "grid"
    with WarmGrid(root, introducer=introducer, storage=storage, secrets=SECRETS) as grid:
        yield Topology(grid)


@pytest.fixture(params=list(ENCODINGS))
def pair(topology: Topology, request: pytest.FixtureRequest) -> Pair:
    """The two clients of one encoding on one topology."""
    return topology.pair(request.param)


@pytest.fixture
def usual_pair(topology: Topology) -> Pair:
    """The two clients at 3-of-10."""
    return topology.pair("3-of-10")


@pytest.fixture(scope="session", params=list(OVER_HTTP))
def over_http(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Five storage nodes, two shares on each; both clients use HTTP, 1.20's because that is its default."""
    root = tmp_path_factory.mktemp(f"http-{request.param}") / "grid"
    with WarmGrid(root, introducer="tahoe", storage=OVER_HTTP[request.param], force_foolscap=False) as grid:
        tahoe, ours = (
            grid.start_client(ClientSettings(kind=kind, needed=3, happy=5, total=HTTP_SHARES)) for kind in KINDS
        )
        assert isinstance(tahoe, TahoeClient)
        assert isinstance(ours, GridClient)
        with (ours.directory / "grid.cfg").open("a") as file:
            file.write("[client]\ntransport = http\n")
        grid.wait_connected(tahoe)
        grid.wait_connected(ours)
        request.config.stash[HTTP_GRID] = grid
        try:
            yield Pair(grid, tahoe, ours)
        finally:
            del request.config.stash[HTTP_GRID]
            thaw(grid)


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    """A web gateway of each program on one mixed grid, alike in encoding and secrets."""
    root = tmp_path_factory.mktemp("gateways") / "grid"
    with WarmGrid(root, introducer="tahoe", storage=["tahoe", "grid"] * 2, secrets=SECRETS) as grid:
        tahoe, ours = (
            grid.start_client(ClientSettings(kind=kind, needed=2, happy=2, total=4, gateway=True)) for kind in KINDS
        )
        assert isinstance(tahoe, TahoeClient) and isinstance(ours, GridGateway)
        grid.wait_connected(tahoe)
        grid.wait_connected(ours)
        yield Gateways(grid=grid, tahoe=tahoe, ours=ours)
