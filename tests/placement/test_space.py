"""The space of servers: disks that several of them share count once."""

from __future__ import annotations

import pytest

from grid.placement.space import Usable, as_files, disks_of, space_of_disks, usable_space


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


@pytest.mark.parametrize(
    ("servers", "happy", "size", "limit"),
    [
        ([("a", 100), ("b", 100), ("c", 100)], 3, 300, None),
        ([("a", 1000), ("b", 100), ("c", 90)], 3, 270, 2),
        ([("a", 1000), ("b", 100), ("c", 90)], 2, 290, 1),
        ([("a", 1000), ("b", 100), ("c", 90)], 1, 1190, None),
        ([("a", 1000), ("b", 100), ("c", 0)], 3, 0, None),
        ([("a", 1000), ("b", 1000)], 3, 0, None),
        ([("a", 300), ("a", 300), ("a", 300)], 3, 300, None),
        ([("a", 300), ("a", 300), ("b", 50)], 3, 150, 2),
        ([("a", 300), ("b", None), ("c", None)], 2, 300, None),
        ([("a", 300), ("b", 100), ("c", None)], 3, 200, 1),
        ([("a", 300), ("b", 299)], 2, 598, None),
        ([], 1, 0, None),
    ],
)
def test_new_files_use_no_more_of_a_server_than_the_last_that_they_need_has(
    servers: list[tuple[str, int | None]], happy: int, size: int, limit: int | None
) -> None:
    assert usable_space(servers, happy) == Usable(size=size, limit=limit)
