"""`grid df`: the space of real servers on one machine that share its disk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grid.cli.commands.df import describe
from grid.node.local_grid import LocalGrid
from tests.cli.command import grid
from tests.cli.conftest import NODE_COUNT


def test_servers_of_one_machine_share_its_disk(local_grid: LocalGrid) -> None:
    found = json.loads(grid("-d", local_grid.client, "df", "--json").line)
    assert {server["disk"] for server in found["servers"]} == {0} and found["disks"] == 1
    assert len(found["servers"]) == NODE_COUNT and all(server["reachable"] for server in found["servers"])
    assert found["free"] == found["servers"][0]["free"]
    encoding = found["encoding"]
    assert found["usable"] == found["free"] and found["limited_by"] is None
    assert found["free_as_files"] == found["free"] * encoding["needed"] // encoding["total"]
    heading, first, second, *_, total = grid("-d", local_grid.client, "df", "--bytes").line.splitlines()
    assert heading.split()[:3] == ["SERVER", "FREE", "FILES"]
    assert "on the disk of" not in first and "on the disk of" in second
    assert total.endswith(f"{NODE_COUNT} of {NODE_COUNT} servers, 1 disk")


def test_space_behind_a_gateway_is_refused(local_grid: LocalGrid) -> None:
    ended = grid("-d", local_grid.client, "--gateway", "http://127.0.0.1:1", "df")
    assert ended.code == 2 and "only without --gateway" in ended.err


@pytest.mark.parametrize(
    ("free", "usable", "limit", "words"),
    [
        ((1000, 400, 300), 900, "c", "New files can use 900 of the free 1700: each needs room on 3 servers (`happy`), and c will be full first."),
        ((1000, 400, 0), 0, None, "No new file fits: each needs room on 3 servers (`happy`), and only 2 servers have any."),
        ((400, 400, 400), 1200, None, None),
    ],
)  # fmt: skip
def test_what_limits_the_room_for_files_is_explained_below_the_table(
    free: tuple[int, ...], usable: int, limit: str | None, words: str | None
) -> None:
    servers: list[dict[str, Any]] = [
        {"id": name, "nickname": name, "reachable": True, "free": space, "free_as_files": space // 3, "disk": index}
        for index, (name, space) in enumerate(zip("abc", free, strict=True))
    ]
    found = {
        "encoding": {"needed": 1, "happy": 3, "total": 3}, "servers": servers, "disks": 3,
        "free": sum(free), "usable": usable, "limited_by": limit, "free_as_files": usable // 3,
    }  # fmt: skip
    assert describe(found, in_bytes=True)[5:] == ([] if words is None else ["", words])
