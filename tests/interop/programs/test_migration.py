"""A grid of five 1.20 nodes is stopped, run by Grid from the same directories, and then by 1.20 again."""

from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import define, field

from perf.processes.clients import COMMAND_S, TahoeClient, WebClient, run_command
from perf.processes.node_directory import Kind, grid_executable, tahoe_executable
from perf.processes.node_process import NodeProcess, stop_all, wait_until
from perf.processes.process_grid import ClientSettings
from tests.cli.tree_grid import local_files
from tests.support.warm_programs import WarmGrid, warm_program, warm_tahoe

pytestmark = pytest.mark.interop

IDENTITIES = ("my_nodeid", "private/introducer.furl", "private/storage.furl", "private/node.privkey", "private/secret")


@define
class Migrated:
    """The directories of a grid that 1.20 made. caps: stored files and their contents, by each program in turn."""

    directories: list[Path]
    client: Path
    gateway: WebClient
    running: list[NodeProcess] = field(factory=list)
    caps: dict[str, bytes] = field(factory=dict)

    def run_by(self, kind: Kind) -> None:
        """Run all of them by the other program."""
        stop_all(self.running)
        command = [tahoe_executable(), "run", "--allow-stdin-close"] if kind == "tahoe" else [grid_executable(), "run"]
        (self.client / "node.url").unlink(missing_ok=True)
        self.running = [NodeProcess(path, [*command, str(path)]) for path in [*self.directories, self.client]]
        for node in self.running:
            node.start()
        gateway = WebClient(self.running[-1])
        wait_until(lambda: gateway.connected_count() >= len(self.directories) - 1, f"the grid that {kind} runs")
        # The gateway may know the servers from its cache, before they have announced themselves to the new introducer.
        wait_until(
            lambda: self._announced_count() >= len(self.directories) - 1,
            f"announcements to the introducer that {kind} runs",
        )
        self.gateway = gateway

    def _announced_count(self) -> int:
        """How many servers a new client of the grid reaches."""
        status = [warm_program("grid.cli"), "-d", str(self.client), "status", "--json"]
        found = json.loads(run_command(status, expected=(0, 5, 12)))
        return sum(server["reachable"] for server in found["servers"])

    def cli(self, kind: Kind, *arguments: str) -> str:
        """What a command prints."""
        command = [warm_tahoe() if kind == "tahoe" else warm_program("grid.cli"), "-d", str(self.client)]
        return run_command([*command, *arguments]).decode().strip()

    def identities(self) -> dict[str, str]:
        """What makes each node who it is."""
        places = [path / name for path in [*self.directories, self.client] for name in IDENTITIES]
        return {str(place): place.read_text().strip() for place in places if place.exists()}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    """1.20's introducer, its three storage nodes and its client, made by it alone."""
    root = tmp_path_factory.mktemp("migration") / "grid"
    with WarmGrid(root, introducer="tahoe", storage=["tahoe"] * 3, force_foolscap=False) as grid:
        client = grid.add_client(ClientSettings(kind="tahoe", needed=2, happy=2, total=3))
        assert isinstance(client, TahoeClient)
        introducer = grid.nodes[-1].directory
        directories = [introducer, *(node.directory for node in grid.storage)]
        made = Migrated(directories=directories, client=client.directory, gateway=client)
        made.cli("tahoe", "create-alias", "work")
        store(made, "tahoe", tmp_path_factory.mktemp("tree"))
        grid.stop()
        try:
            yield made
        finally:
            stop_all(made.running)


def store(made: Migrated, kind: Kind, tree: Path) -> None:
    """Files of every format, and a snapshot of a tree."""
    for format in ("CHK", "SDMF", "MDMF"):
        contents = f"{format} by {kind} {len(made.caps)} ".encode() * 100
        request = urllib.request.Request(f"{made.gateway.url}uri?format={format}", data=contents, method="PUT")
        with urllib.request.urlopen(request, timeout=COMMAND_S) as answer:
            made.caps[answer.read().decode().strip()] = contents
    made.cli(kind, "mkdir", "--format=MDMF", f"work:{kind}{len(made.caps)}")
    (tree / "sub").mkdir(exist_ok=True)
    (tree / "sub" / "n\u00e4me").write_text(f"by {kind}")
    (tree / "large").write_bytes(random.Random(1).randbytes(100_000))
    made.cli(kind, "backup", str(tree), "work:backups")


def everything_is_there(made: Migrated, kind: Kind, folder: Path) -> None:
    """Read all that was stored, by the program that runs the grid and by commands of both, and verify it."""
    for number, (cap, contents) in enumerate(made.caps.items()):
        made.gateway.get(cap, folder / str(number))
        assert (folder / str(number)).read_bytes() == contents, (kind, cap[:10])
    readers: tuple[Kind, ...] = ("tahoe", "grid")
    for reader in readers:
        made.cli(reader, "cp", "-r", "work:backups/Latest", str(folder / reader))
    assert local_files(folder / "tahoe") == local_files(folder / "grid")
    checked = made.cli(kind, "deep-check", "--verify", "--add-lease", "work:")
    assert " 0 unhealthy" in checked, checked


def test_grid_of_1_20_when_run_by_grid_and_back_keeps_files_identities_and_backups(
    migrated: Migrated, tmp_path: Path
) -> None:
    before, configuration = migrated.identities(), (migrated.client / "tahoe.cfg").read_text()
    tree = tmp_path / "tree"
    tree.mkdir()
    turns: tuple[Kind, ...] = ("grid", "tahoe")
    for kind in turns:
        migrated.run_by(kind)
        (tmp_path / kind).mkdir()
        everything_is_there(migrated, kind, tmp_path / kind)
        store(migrated, kind, tree)
        assert migrated.identities() == before
    reused = migrated.cli("tahoe", "backup", str(tree), "work:backups")
    assert "0 files uploaded (2 reused)" in reused, reused
    assert (migrated.client / "tahoe.cfg").read_text() == configuration
    assert not (migrated.client / "grid.cfg").exists()


def test_directory_that_grid_made_when_1_20_runs_it_serves_its_shares(migrated: Migrated, tmp_path: Path) -> None:
    if not migrated.running:
        migrated.run_by("tahoe")
    furl = (migrated.directories[0] / "private" / "introducer.furl").read_text().strip()
    made = tmp_path / "made-by-grid"
    created = ["create", "client", str(made), "--introducer", furl, "--needed", "2", "--happy", "2"]
    run_command([warm_program("grid.cli"), *created])
    with (made / "tahoe.cfg").open("a") as file:
        file.write("[node]\nweb.port = tcp:0:interface=127.0.0.1\n")
    node = NodeProcess(made, [tahoe_executable(), "run", "--allow-stdin-close", str(made)])
    node.start()
    try:
        client = TahoeClient(node)
        node.wait_for(lambda: client.connected_count() >= 3, "its servers")
        cap, contents = next(iter(migrated.caps.items()))
        client.get(cap, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == contents
    finally:
        node.stop()
