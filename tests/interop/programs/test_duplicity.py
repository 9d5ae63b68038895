"""duplicity keeps its backups on the grid through its backend for Tahoe-LAFS, with `grid` instead of `tahoe`."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from attrs import frozen

from perf.processes.clients import COMMAND_S, GridClient
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.cli.tree_grid import local_files
from tests.interop.programs.conftest import program
from tests.support.warm_programs import warm_program

pytestmark = pytest.mark.interop

TARGET = "tahoe://backups/mine"


@frozen
class Duplicity:
    """duplicity, in a home of its own where `tahoe` is Grid's command."""

    home: Path
    node: Path

    def run(self, *arguments: str) -> str:
        """What it prints; it has to succeed."""
        environment = {
            **child_environment(),
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:/usr/bin:/bin",
            "GRID_NODE_DIR": str(self.node),
            "TMPDIR": str(self.home),
        }
        command = [
            program("duplicity"),
            *arguments,
            "--no-encryption",
            "--num-retries",
            "1",
            "--archive-dir",
            str(self.home / "archive"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S, env=environment, check=False)
        assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout


@pytest.fixture
def duplicity(grid: ProcessGrid, tmp_path: Path) -> Duplicity:
    """With the alias `backups`."""
    program("duplicity")
    client = grid.add_client(ClientSettings(kind="grid", needed=2, happy=2, total=3))
    assert isinstance(client, GridClient)
    client.run("create-alias", "backups")
    client.run(
        "mkdir", "backups:mine"
    )  # duplicity lists it before it stores anything, and waits long if it is not there.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tahoe").symlink_to(warm_program("grid.cli"))
    return Duplicity(tmp_path, client.directory)


def test_duplicity_when_a_tree_changes_restores_each_of_its_versions(duplicity: Duplicity, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "large").write_bytes(random.Random(1).randbytes(3_000_000))
    (tree / "sub" / "n\u00e4me").write_text("one")
    duplicity.run("full", "--volsize", "1", str(tree), TARGET)
    (tree / "sub" / "n\u00e4me").write_text("two")
    (tree / "new").write_text("new")
    duplicity.run("incremental", str(tree), TARGET)
    status = duplicity.run("collection-status", TARGET)
    assert "Full" in status and "Incremental" in status
    # What it keeps at home is gone: all comes from the grid.
    (tmp_path / "archive").rename(tmp_path / "lost")
    duplicity.run("verify", "--compare-data", TARGET, str(tree))
    duplicity.run("restore", TARGET, str(tmp_path / "back"))
    assert local_files(tmp_path / "back") == local_files(tree)
