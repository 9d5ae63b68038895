"""1.20's grid-manager certifies some of Grid's storage nodes, and clients of both programs store only on these."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest
from attrs import frozen

from grid.caps import UnknownCap, parse_cap
from grid.codec import base32
from perf.processes.clients import Client, GridClient, TahoeClient, run_command
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.interop.programs.conftest import grid_manager
from tests.support.warm_programs import warm_tahoe

pytestmark = pytest.mark.interop

CERTIFIED = (0, 1)
"""Of the three storage nodes."""

CONTENTS = b"what only certified servers are given, and too long to be in its own capability\n" * 3


@frozen
class Managed:
    """A grid whose clients know its manager's key."""

    grid: ProcessGrid
    tahoe: TahoeClient
    ours: GridClient

    def holders(self, cap_text: str) -> set[int]:
        """Which storage nodes have a share of it."""
        cap = parse_cap(cap_text)
        assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
        places = [path for found in self.grid.shares(base32.encode(cap.storage_index)).values() for path in found]
        return {
            number
            for number, node in enumerate(self.grid.storage)
            if any(path.is_relative_to(node.directory) for path in places)
        }


@pytest.fixture(scope="module")
def managed(grid: ProcessGrid, tmp_path_factory: pytest.TempPathFactory) -> Managed:
    """1.20's commands write the certificates, and where they are, into directories of Grid's nodes."""
    manager = tmp_path_factory.mktemp("manager") / "manager"
    command = [grid_manager(), "--config", str(manager)]
    run_command([*command, "create"])
    for number in CERTIFIED:
        node = grid.storage[number]
        node.wait_for((node.directory / "node.pubkey").exists, "its public key")
        run_command([*command, "add", node.name, (node.directory / "node.pubkey").read_text().strip()])
        certificate = run_command([*command, "sign", node.name, "30"])
        node.stop()
        arguments = ["admin", "add-grid-manager-cert", "--filename", "-", "--name", "ours"]
        run_command([warm_tahoe(), "-d", str(node.directory), *arguments], certificate)
        node.start()
    key = run_command([*command, "public-identity"]).decode().strip()
    clients = [grid.start_client(ClientSettings(kind=kind, needed=1, happy=2, total=2)) for kind in ("tahoe", "grid")]
    for client in clients:
        with (client.directory / "tahoe.cfg").open("a") as file:
            file.write(f"[grid_managers]\nthe manager = {key}\n")
    tahoe, ours = clients
    assert isinstance(tahoe, TahoeClient) and isinstance(ours, GridClient)
    tahoe.node.stop()
    tahoe.node.start()
    for client in clients:
        grid.wait_connected(client)
    return Managed(grid, tahoe, ours)


def stored(client: Client, folder: Path) -> list[str]:
    """An immutable file and a mutable one."""
    path = folder / "contents"
    path.write_bytes(CONTENTS)
    if isinstance(client, GridClient):
        return [client.put(path), client.run("put", "--mutable", str(path)).decode().strip()]
    assert isinstance(client, TahoeClient)
    mutable = client.run("put", "--format=SDMF", str(path)).decode().strip()
    return [client.put(path), mutable]


@pytest.mark.parametrize("kind", ["ours", "tahoe"])
def test_client_when_a_manager_certified_some_servers_stores_on_these_alone(
    managed: Managed, tmp_path: Path, kind: str
) -> None:
    client: Client = managed.ours if kind == "ours" else managed.tahoe
    for cap in stored(client, tmp_path):
        assert managed.holders(cap) == set(CERTIFIED)
        for reader in (managed.ours, managed.tahoe):
            reader.get(cap, tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == CONTENTS


def test_node_when_1_20_added_a_certificate_has_one_configuration(managed: Managed) -> None:
    for number in CERTIFIED:
        directory = managed.grid.storage[number].directory
        parser = configparser.ConfigParser()
        parser.read(directory / "grid.cfg")
        assert parser.has_section("grid_manager_certificates")
        assert (directory / "grid.cfg").samefile(directory / "tahoe.cfg")
