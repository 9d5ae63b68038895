"""kill -9 of a `grid put` while it sends its shares: the servers drop them, and a second put succeeds."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.processes.clients import GridClient
from perf.processes.node_directory import grid_executable
from perf.processes.node_process import child_environment, wait_until
from perf.processes.process_grid import ClientSettings, ProcessGrid


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GridClient]:
    """A client directory at 2-of-3 on a grid of three nodes."""
    root = tmp_path_factory.mktemp("client-killed") / "grid"
    with ProcessGrid(root, introducer="grid", storage=["grid"] * 3) as grid:
        client = grid.add_client(ClientSettings(kind="grid", needed=2, happy=3, total=3))
        assert isinstance(client, GridClient)
        yield client


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.deep)])
def test_put_that_is_killed_leaves_nothing_and_can_be_repeated(
    client: GridClient, number: signal.Signals, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(40_000_000))
    command = [grid_executable(), "-d", str(client.directory), "put", str(source)]
    nodes = [client.directory.parent / f"storage{index}" / "storage" / "shares" for index in range(3)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=child_environment())
    try:
        wait_until(lambda: any(files(node / "incoming") for node in nodes), "shares under way")
        process.send_signal(number)
    finally:
        status = process.wait(60)
    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    wait_until(lambda: not any(files(node) for node in nodes), "the servers to forget the shares")
    client.get(client.put(source), target)
    assert target.read_bytes() == source.read_bytes()
    for node in nodes:
        for path in files(node):
            path.unlink()


def files(directory: Path) -> list[Path]:
    """All files below the directory, except those that vanish meanwhile."""
    return [Path(folder, name) for folder, _, names in os.walk(directory) for name in names]
