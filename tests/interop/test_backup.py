"""Snapshots and copies of either program, used by the other: capabilities, the database, and restored files."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perf.processes.clients import GridClient, TahoeClient
from perf.processes.process_grid import ClientSettings
from tests.cli.tree_grid import local_files, make_local_tree
from tests.interop.conftest import SECRETS, Pair
from tests.support.warm_programs import WarmGrid

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A small mixed grid, and two clients that share the alias `w`."""
    root = tmp_path_factory.mktemp("backup") / "grid"
    with WarmGrid(
        root,
        introducer="tahoe",
        storage=["tahoe", "grid"] * 2,
        secrets=SECRETS,
    ) as grid:
        tahoe = grid.start_client(ClientSettings(kind="tahoe", needed=2, happy=3, total=4))
        ours = grid.start_client(ClientSettings(kind="grid", needed=2, happy=3, total=4))
        assert isinstance(tahoe, TahoeClient) and isinstance(ours, GridClient)
        grid.wait_connected(tahoe)
        grid.wait_connected(ours)
        tahoe_cli(tahoe, "create-alias", "w")
        shutil.copy(tahoe.directory / "private" / "aliases", ours.directory / "private" / "aliases")
        yield Pair(grid, tahoe, ours)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with everything that a snapshot tells apart."""
    root = make_local_tree(tmp_path / "tree")
    (root / "small").chmod(0o750)
    os.utime(root / "small", (1_500_000_000.25, 1_500_000_000.123456789))
    return root


def tahoe_cli(client: TahoeClient, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
    return client.run(*arguments, expected=expected).decode().strip()


def latest(client: TahoeClient, where: str) -> str:
    """The capability of the newest snapshot."""
    listing: Any = json.loads(tahoe_cli(client, "ls", "--json", where))
    cap: str = listing[1]["children"]["Latest"][1]["ro_uri"]
    return cap


def test_snapshot_by_grid_when_used_by_tahoe_is_whole_and_healthy(pair: Pair, tree: Path, tmp_path: Path) -> None:
    pair.ours.run("backup", str(tree), "w:ours")
    tahoe_cli(pair.tahoe, "cp", "-r", "w:ours/Latest/", str(tmp_path / "back"))
    assert local_files(tmp_path / "back" / "Latest") == local_files(tree)
    checked = tahoe_cli(pair.tahoe, "deep-check", "--verify", "w:ours")
    assert "done: 8 objects checked, 8 healthy, 0 unhealthy" in checked
    (name,) = tahoe_cli(pair.tahoe, "ls", "w:ours/Archives").split()
    assert len(name) == 20


def test_snapshot_by_tahoe_when_used_by_grid_comes_back_with_times_and_modes(
    pair: Pair, tree: Path, tmp_path: Path
) -> None:
    tahoe_cli(pair.tahoe, "backup", str(tree), "w:theirs")
    pair.ours.run("restore", "w:theirs/Latest", str(tmp_path / "back"))
    assert local_files(tmp_path / "back") == local_files(tree)
    restored = (tmp_path / "back" / "small").stat()
    assert restored.st_mode & 0o777 == 0o750 and restored.st_mtime == pytest.approx(1_500_000_000.1234567, abs=1e-6)
    pair.ours.run("cp", "-r", "w:theirs/Latest/", str(tmp_path / "copied"))
    assert local_files(tmp_path / "copied" / "Latest") == local_files(tree)


def test_unchanged_tree_when_backed_up_by_both_has_the_same_capability(pair: Pair, tree: Path) -> None:
    forget_database(pair)
    tahoe_cli(pair.tahoe, "backup", str(tree), "w:same")
    theirs = latest(pair.tahoe, "w:same")
    done = json.loads(pair.ours.run("backup", "--json", str(tree), "w:same"))
    assert done["directories_created"] == 3 and done["files_uploaded"] == 3
    assert done["snapshot"] == theirs


def test_database_when_handed_to_the_other_program_saves_every_upload(pair: Pair, tree: Path) -> None:
    forget_database(pair)
    tahoe_cli(pair.tahoe, "backup", str(tree), "w:hand")
    shutil.copy(database(pair.tahoe), database(pair.ours))
    done = json.loads(pair.ours.run("backup", "--json", str(tree), "w:hand"))
    assert (done["files_reused"], done["directories_reused"]) == (3, 3)
    assert (done["files_uploaded"], done["directories_created"]) == (0, 0)
    (tree / "small").write_bytes(b"another small file")
    (tree / "sub" / "more").write_bytes(b"m" * 5000)
    pair.ours.run("backup", str(tree), "w:hand")
    shutil.copy(database(pair.ours), database(pair.tahoe))
    said = tahoe_cli(pair.tahoe, "backup", str(tree), "w:hand")
    assert "0 files uploaded (4 reused), 0 files skipped, 0 directories created (3 reused)" in said
    with sqlite3.connect(database(pair.tahoe)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_tree_when_copied_by_grid_is_walked_by_tahoe(pair: Pair, tree: Path, tmp_path: Path) -> None:
    pair.ours.run("cp", "-r", str(tree), "w:copied")
    tahoe_cli(pair.tahoe, "cp", "-r", "w:copied/tree", str(tmp_path / "back"))
    assert local_files(tmp_path / "back" / "tree") == local_files(tree)
    assert "0 unhealthy" in tahoe_cli(pair.tahoe, "deep-check", "--verify", "w:copied")
    tahoe_cli(pair.tahoe, "cp", "-r", str(tree), "w:theirs-copied")
    pair.ours.run("cp", "-r", "w:theirs-copied/tree", str(tmp_path / "ours"))
    assert local_files(tmp_path / "ours" / "tree") == local_files(tree)


def database(client: TahoeClient | GridClient) -> Path:
    return client.directory / "private" / "backupdb.sqlite"


def forget_database(pair: Pair) -> None:
    for client in (pair.tahoe, pair.ours):
        database(client).unlink(missing_ok=True)
