"""A running client: what it reads from its node directory, and how often."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grid.discovery.announcement import parse_announcement
from grid.discovery.introducer_server import Introducer
from grid.discovery.server_files import KeptAnnouncements, pack_cache
from grid.node.client import Client
from grid.node.create import NewClient, create_client
from grid.node.directory import open_directory
from grid.node.files import read_or_create
from grid.node.introducers import cache_file, read_introducers
from grid.runtime import make_runtime
from tests.discovery.samples import IDS, signed
from tests.discovery.test_introducer import client as introducer_client
from tests.discovery.test_introducer import offered


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


async def test_servers_that_a_restarted_introducer_does_not_list_yet_are_read_from_and_not_written_to(
    tmp_path: Path,
) -> None:
    from twisted.internet import reactor

    async with offered(Introducer("grid/1")) as furl, introducer_client(furl, signed(0)) as (_, own):
        await own.wait_for(1)
        create_client(tmp_path / "node", NewClient(nickname="c", introducer_furl=furl.to_string()))
        directory = open_directory(tmp_path / "node")
        (petname,) = read_introducers(directory)
        cached = KeptAnnouncements()
        for index in range(4):
            cached.offer(parse_announcement(signed(index).to_tuple()))
        cache_file(directory.private, petname).write_bytes(pack_cache(cached))
        client = Client(directory, make_runtime(reactor), reactor)
        try:
            servers = await client.servers()
            assert {server.identity.server_id for server in servers} == set(IDS)
            permitted = client.grid(servers).permitted()
            assert [server.identity.server_id for server in permitted] == [IDS[0]]
        finally:
            await client.close()
