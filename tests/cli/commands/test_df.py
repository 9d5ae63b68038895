"""`grid df`: the space of real servers on one machine that share its disk."""

from __future__ import annotations

import json

from grid.node.local_grid import LocalGrid
from tests.cli.command import grid
from tests.cli.conftest import NODE_COUNT


def test_servers_of_one_machine_share_its_disk(local_grid: LocalGrid) -> None:
    found = json.loads(grid("-d", local_grid.client, "df", "--json").line)
    assert {server["disk"] for server in found["servers"]} == {0} and found["disks"] == 1
    assert len(found["servers"]) == NODE_COUNT and all(server["reachable"] for server in found["servers"])
    assert found["free"] == found["servers"][0]["free"]
    encoding = found["encoding"]
    assert found["free_as_files"] == found["free"] * encoding["needed"] // encoding["total"]
    heading, first, second, *_, total = grid("-d", local_grid.client, "df", "--bytes").line.splitlines()
    assert heading.split()[:3] == ["SERVER", "FREE", "FILES"]
    assert "on the disk of" not in first and "on the disk of" in second
    assert total.endswith(f"{NODE_COUNT} of {NODE_COUNT} servers, 1 disk")


def test_space_behind_a_gateway_is_refused(local_grid: LocalGrid) -> None:
    ended = grid("-d", local_grid.client, "--gateway", "http://127.0.0.1:1", "df")
    assert ended.code == 2 and "only without --gateway" in ended.err
