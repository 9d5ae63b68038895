"""`grid sync` against a real local grid."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.tree_grid import TreeClient, local_files, make_local_tree, make_tree_client


@pytest.fixture
def client(local_grid: LocalGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TreeClient:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return make_tree_client(local_grid, tmp_path / "client")


def synced(client: TreeClient, *arguments: str | Path) -> tuple[int, int, int, int]:
    """Copied, linked, unchanged and removed files."""
    done = json.loads(client.succeed("sync", "--json", *arguments))
    return done["files_copied"], done["files_linked"], done["files_unchanged"], done["files_removed"]


def test_names_that_are_spelled_in_two_ways_are_one_file_on_the_grid(client: TreeClient, tmp_path: Path) -> None:
    (tmp_path / "tree" / "cafe\u0301").mkdir(parents=True)
    (tmp_path / "tree" / "cafe\u0301" / "the\u0301").write_bytes(b"decomposed")
    for copied in (1, 0, 0):
        assert synced(client, "--delete", tmp_path / "tree", "w:docs") == (copied, 0, 1 - copied, 0)
    assert set(client.tree("w:docs")) == {"caf\u00e9/th\u00e9"}

    (tmp_path / "tree" / "cafe\u0301" / "th\u00e9").write_bytes(b"composed")
    for _ in range(2):
        done = client.run("sync", "--delete", tmp_path / "tree", "w:docs")
        assert done.code == 1 and "'cafe\\u0301/th\\xe9' from 'cafe\\u0301/the\\u0301'" in done.err
    assert synced(client, "w:docs", tmp_path / "back") == (1, 0, 0, 0)
    assert (tmp_path / "back" / "caf\u00e9" / "th\u00e9").read_bytes() == b"decomposed"


def test_directory_when_synced_around_is_the_same_and_is_sent_once(client: TreeClient, tmp_path: Path) -> None:
    tree, back = make_local_tree(tmp_path / "tree"), tmp_path / "back"
    assert synced(client, tree, "w:docs") == (3, 0, 0, 0)
    assert synced(client, tree, "w:docs") == (0, 0, 3, 0)
    assert synced(client, "w:docs", "w:copy") == (0, 3, 0, 0)
    assert synced(client, "w:copy", back) == (3, 0, 0, 0)
    assert local_files(back) == local_files(tree)
    assert (back / "small").stat().st_mtime_ns == (tree / "small").stat().st_mtime_ns

    os.truncate(back / "small", 0)
    (back / "small").write_bytes(b"SMALL")
    os.utime(back / "small", (1e9, 1e9))
    assert synced(client, "w:copy", back) == (1, 0, 2, 0)
    assert local_files(back) == local_files(tree)

    (tree / "sub" / "large").unlink()
    (tree / "sub" / "bü").unlink()
    (tree / "new").write_bytes(b"new")
    assert synced(client, tree, "w:docs") == (1, 0, 1, 0)
    assert set(client.tree("w:docs")) == {"new", "small", "sub/bü", "sub/large"}
    said = client.succeed("sync", "--delete", "--dry-run", "--exclude", "large", tree, "w:docs")
    assert said.splitlines() == ["would remove sub/bü", "0 files would be sent, 2 unchanged, 1 would be removed"]
    assert synced(client, "--delete", tree, "w:docs") == (0, 0, 2, 2)
    assert set(client.listing("w:docs")) == {"new", "small"}, "a directory without files goes with the last of them"

    for missing in (tmp_path / "missing", "w:missing"):
        refused = client.run("sync", missing, "w:docs")
        assert refused.code == 4, "as in every command that is given a path where nothing is"
        assert "there is no" in refused.err or "there is nothing" in refused.err

    (tmp_path / "unmounted").mkdir()
    refused = client.run("sync", "--delete", tmp_path / "unmounted", "w:docs")
    assert refused.code == 1 and "nothing was removed" in refused.err
    assert set(client.listing("w:docs")) == {"new", "small"}

    (tree / "small").write_bytes(b"replaced")
    assert synced(client, tree, "w:docs") == (1, 0, 1, 0)
    for command, files in (("sync", {"new", "small"}), ("sync", {"new", "small", "sub/bü", "sub/large"})):
        assert f": {command} of " in client.succeed("undo")
        assert set(client.tree("w:docs")) == files
    copied = synced(client, "w:docs", tmp_path / "again")
    assert copied == (4, 0, 0, 0) and (tmp_path / "again" / "small").read_bytes() == (back / "small").read_bytes()
