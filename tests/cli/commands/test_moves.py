"""`grid mv` of directories, on a real grid: a move that would cut off a directory is refused."""

from __future__ import annotations

import re
from pathlib import Path

from grid.node.local_grid import LocalGrid
from tests.cli.tree_grid import make_tree_client


def test_directory_when_moved_below_itself_then_it_is_refused_by_any_name(
    local_grid: LocalGrid, tmp_path: Path
) -> None:
    client = make_tree_client(local_grid, tmp_path / "client")
    client.succeed("mkdir", "w:a/b/c")
    client.succeed("mkdir", "w:side")
    client.succeed("ln", "w:a", "w:again")
    inner = client.listing("w:a")["b"][1]["cap"]
    before = client.tree("w:")
    for target in ("w:a/x", "w:a/", "w:a/b/c/x", "w:again/b/x", f"{inner}/x", f"{inner}/c/x"):
        outcome = client.run("mv", "w:a", target)
        assert (outcome.code, outcome.out.strip()) == (1, b""), outcome
        assert "below it" in outcome.err and not re.search(r"URI:[A-Z0-9]|Traceback", outcome.err)
    assert client.tree("w:") == before and "a" in client.listing("w:")
    client.succeed("mv", "w:a", "w:side/a")
    assert sorted(client.listing("w:")) == ["again", "side"]
    assert sorted(client.listing("w:side/a/b")) == ["c"]
