"""A running client: what it reads from its node directory, and how often."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grid.node.client import Client
from grid.node.create import NewClient, create_client
from grid.node.directory import open_directory
from grid.node.files import read_or_create
from grid.runtime import make_runtime


async def test_grid_when_asked_for_again_and_again_reads_the_secrets_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twisted.internet import reactor

    create_client(tmp_path / "node", NewClient(nickname="c"))
    client = Client(open_directory(tmp_path / "node"), make_runtime(reactor), reactor)
    reads: list[str] = []

    def counting(file: Path, make: Callable[[], str]) -> str:
        reads.append(file.name)
        return read_or_create(file, make)

    monkeypatch.setattr("grid.node.directory.read_or_create", counting)
    grids = [client.grid([]) for _ in range(3)]
    assert sorted(reads) == ["convergence", "secret"]
    assert grids[0].convergence == client.directory.convergence_secret()
    assert {grid.convergence for grid in grids} == {grids[0].convergence}
    await client.close()
