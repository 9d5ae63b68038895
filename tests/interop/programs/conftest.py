"""Third-party programs that these tests run, and small grids of Grid's nodes for them, one per module.

GRID_PROGRAMS names the folder that scripts/make_programs.py filled. A program that it could not install is skipped by name.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.processes.node_directory import tahoe_executable
from perf.processes.process_grid import ProcessGrid
from tests.support.warm_programs import WarmGrid, warm_script


def grid_manager() -> str:
    """The path of 1.20's `grid-manager`, which starts warm."""
    return warm_script(str(Path(tahoe_executable()).with_name("grid-manager")), tahoe_executable())


def program(name: str) -> str:
    """The path of a program; the test is skipped where it is known that it cannot be installed, and fails otherwise."""
    folder = Path(os.environ.get("GRID_PROGRAMS", "/nonexistent"))
    if not (folder / "missing.json").exists():
        pytest.skip(f"{name}: GRID_PROGRAMS does not name a folder that scripts/make_programs.py filled")
    why = json.loads((folder / "missing.json").read_text()).get(name)
    if why is not None:
        pytest.skip(f"{name} cannot be installed: {why}")
    own = folder / name / "bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    assert found is not None, f"{name} was installed, and is not there"
    return found


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGrid]:
    """An introducer and three storage nodes of Grid."""
    root = tmp_path_factory.mktemp("programs") / "grid"
    with WarmGrid(root, introducer="grid", storage=["grid"] * 3, force_foolscap=False) as grid:
        yield grid
