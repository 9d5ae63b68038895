"""The layout of a local grid; tests/cli/commands/test_local.py runs one."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.local_grid import LocalGrid, StartedNode, share_counts, start_grid


@pytest.mark.parametrize("node_count", range(1, 30))
def test_share_counts_fit_the_grid(node_count: int) -> None:
    needed, happy, total = share_counts(node_count)
    assert 1 <= needed <= happy <= total <= node_count
    assert node_count < 10 or (needed, happy, total) == (3, 7, 10)


def test_storage_nodes_are_found_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("storage10", "storage2", "storage0", "storage", "storagex", "client"):
        (tmp_path / name).mkdir()
    assert [path.name for path in LocalGrid(tmp_path).storages] == ["storage0", "storage2", "storage10"]


def test_place_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").touch()
    started: list[StartedNode] = []
    with pytest.raises(ConfigError, match="not empty"):
        start_grid(LocalGrid(tmp_path), 1, detach=True, started=started)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]
    assert started == []
