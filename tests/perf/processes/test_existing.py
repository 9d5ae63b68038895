"""A grid that exists already, used as a guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.processes import existing
from perf.processes.existing import ExistingGrid
from perf.processes.process_grid import ClientSettings, ProcessGrid


def test_existing_grid_names_what_is_left_there_and_refuses_what_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, small, target = tmp_path / "source", tmp_path / "small", tmp_path / "target"
    source.write_bytes(bytes(1000))
    small.write_bytes(b"all in the cap")
    with ProcessGrid(tmp_path / "grid", introducer="grid", storage=["grid"], durability="none") as grid:
        directory = grid.add_client(ClientSettings(kind="grid", needed=1, happy=1, total=1)).directory
        guest = ExistingGrid(directory)
        cap = guest.put(source)
        guest.client.get(cap, target)
        guest.put(small)
        (left,) = guest.left()
        assert left["size"] == 1000
        assert grid.shares(str(left["storage_index"]))
        monkeypatch.setattr(existing, "MAX_TOTAL", 1500)
        with pytest.raises(ValueError, match="smaller files"):
            guest.put(source)
    assert target.read_bytes() == source.read_bytes()


def test_existing_grid_without_a_node_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no node directory"):
        ExistingGrid(tmp_path)
