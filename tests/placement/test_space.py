"""The space of servers: disks that several of them share count once."""

from __future__ import annotations

import pytest

from grid.placement.space import as_files, disks_of, space_of_disks


@pytest.mark.parametrize(
    ("servers", "disks", "space"),
    [
        ([], [], 0),
        ([("a", 1000)], [0], 1000),
        ([("a", 1000), ("a", 1000), ("a", 995)], [0, 0, 0], 1000),
        ([("a", 1000), ("a", 980)], [0, 1], 1980),
        ([("a", 1000), ("b", 1000), ("a", 1000)], [0, 1, 0], 2000),
        ([("", 1000), ("", 1000)], [0, 1], 2000),
        ([("a", 0), ("a", 0)], [0, 0], 0),
    ],
)
def test_servers_of_one_host_with_equal_space_share_a_disk(
    servers: list[tuple[str, int]], disks: list[int], space: int
) -> None:
    assert disks_of(servers) == disks
    assert space_of_disks(servers) == space


def test_files_take_as_much_more_space_as_the_encoding_says() -> None:
    assert as_files(1000, 3, 10) == 300
    assert as_files(1000, 1, 1) == 1000
