"""kill -9 of a `grid mv` around each of its writes: the entry is in the source, in the target, or in both."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.processes.clients import GridClient
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.support.warm_programs import warm_program

MOST_STEPS = 8
"""Files to move, one for each run."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridClient]:
    """A client directory on a grid of one node: each write is one message."""
    root = tmp_path_factory.mktemp("mover-killed") / "grid"
    with ProcessGrid(root, introducer="grid", storage=["grid"], durability="none") as grid:
        client = grid.add_client(ClientSettings(kind="grid", needed=1, happy=1, total=1))
        assert isinstance(client, GridClient)
        yield client


def run(client: GridClient, *arguments: str, step: int = 1_000_000) -> subprocess.CompletedProcess[str]:
    """A command, killed before or after a write: at step 0 before the first, at step 1 after it."""
    command = [warm_program("tests.cli.killed_mover"), str(step), "-d", str(client.directory), *arguments]
    return subprocess.run(command, capture_output=True, env=child_environment(), check=False, timeout=120, text=True)


def test_entry_whose_mover_is_killed_at_any_write_is_linked_somewhere(client: GridClient, tmp_path: Path) -> None:
    files = {f"file{step}" for step in range(MOST_STEPS)}
    for folder in ("source", "target"):
        (tmp_path / folder).mkdir()
    for name in files:
        (tmp_path / "source" / name).write_text(f"contents of {name}")
    assert run(client, "create-alias", "grid").returncode == 0
    made = run(client, "cp", "-r", str(tmp_path / "source"), str(tmp_path / "target"), "grid:")
    assert made.returncode == 0, made.stderr
    killed = 0
    while (done := move(client, killed)).returncode == -signal.SIGKILL:
        killed += 1
    assert done.returncode == 0, done.stderr
    assert killed >= 4  # Before and after the write that links, and the one that unlinks.
    found = run(client, "find", "grid:").stdout.splitlines()
    left, moved = (
        {path.rpartition("/")[2] for path in found if f"{folder}/" in path} for folder in ("source", "target")
    )
    assert left | moved == files
    assert (left & moved) <= {f"file{step}" for step in range(killed)}
    assert f"file{killed}" in moved - left


def move(client: GridClient, step: int) -> subprocess.CompletedProcess[str]:
    """Move one of the files, and be killed at that step."""
    return run(client, "mv", f"grid:source/file{step}", f"grid:target/file{step}", step=step)
