"""A grid of processes whose nodes run on separate hosts."""

from __future__ import annotations

import os
from pathlib import Path

from perf.network.contract import Host, Placement
from perf.network.spokes import Bridged, Spokes
from perf.processes.clients import GridGateway
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.perf.network.conftest import expect


def test_grid_on_hosts_has_each_node_in_its_own_network_and_works(tmp_path: Path) -> None:
    expect("root", "ip", "tc", "nsenter", "setpriv")
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 400)
    with (
        Bridged("placed", Spokes(servers=2), rate_s=0) as network,
        ProcessGrid(
            tmp_path / "grid", introducer="grid", storage=["grid"] * 3, durability="none", placement=network.placement
        ) as grid,
    ):
        client = grid.add_client(ClientSettings(kind="grid", needed=2, happy=2, total=3, gateway=True))
        assert isinstance(client, GridGateway)
        networks = [os.stat(f"/proc/{node.pid}/ns/net").st_ino for node in [*grid.storage, client.node]]
        # Storage nodes take the two hosts in turn.
        assert networks[0] == networks[2]
        assert len(set(networks)) == 3
        client.get(client.put(source), target)
    assert target.read_bytes() == source.read_bytes()


def test_grids_side_by_side_on_one_medium_have_directories_of_their_own(tmp_path: Path) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    placement = Placement(servers=(Host(name="server", directory=medium),))
    one, other = (
        ProcessGrid(tmp_path / name, introducer="grid", storage=["grid"], placement=placement)
        for name in ("one", "other")
    )
    with one, other:
        (first,), (second,) = one.storage, other.storage
        assert {first.directory.parent, second.directory.parent} == {medium}
        assert first.directory != second.directory
    assert list(medium.iterdir()) == []
