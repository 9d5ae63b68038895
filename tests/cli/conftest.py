"""A real local grid, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.command import grid

NODE_COUNT = 5
"""With them 1 share of 5 suffices, and 3 servers make a put happy."""


@pytest.fixture(scope="session")
def local_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGrid]:
    """Five storage nodes, an introducer and a client; a test that stops nodes starts them again."""
    path = tmp_path_factory.mktemp("local") / "grid"
    outcome = grid("up", "--nodes", str(NODE_COUNT), "--dir", path, "--detach")
    try:
        assert outcome.code == 0, outcome.err
        yield LocalGrid(path)
    finally:
        grid("down", "--dir", path)
