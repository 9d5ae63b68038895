"""An existing grid, used as a guest."""

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
        kept: list[tuple[str, int]] = []
        guest = ExistingGrid(directory, keep=lambda index, size: kept.append((index, size)))
        assert guest.settings.needed == 1
        guest.expect([1000, 14])
        caps = [guest.client.put(path) for path in (source, small)]
        guest.note(caps, [1000, 14])
        guest.client.get(caps[0], target)
        assert list(guest.left()) == kept
        ((index, size),) = kept
        assert size == 1000
        assert grid.shares(index)
        later = ExistingGrid(directory, left=[("earlier", existing.MAX_TOTAL - 10)])
        later.expect([10])
        with pytest.raises(ValueError, match="smaller files"):
            later.expect([11])
        monkeypatch.setattr(existing, "MAX_TOTAL", 1500)
        with pytest.raises(ValueError, match="smaller files"):
            guest.expect([1000])
        monkeypatch.setattr(existing, "MAX_OBJECTS", 1)
        with pytest.raises(ValueError, match="take fewer"):
            guest.expect([1])
    assert target.read_bytes() == source.read_bytes()


def test_existing_grid_without_a_node_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no node directory"):
        ExistingGrid(tmp_path)
