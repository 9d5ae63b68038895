"""A running client: what it reads from its node directory, and how often."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grid.discovery.announcement import parse_announcement
from grid.discovery.introducer_server import Introducer
from grid.discovery.server_files import KeptAnnouncements, pack_cache
from grid.errors import PeerUnreachableError
from grid.node.client import Client
from grid.node.create import NewClient, create_client
from grid.node.directory import open_directory
from grid.node.files import read_or_create
from grid.node.greetings import MEMORY_S
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


class Greeted:
    """A server that may be announced: it counts who connects to it."""

    def __init__(self) -> None:
        self.count = 0

    async def connect(self) -> None:
        self.count += 1
        raise PeerUnreachableError("nobody is there")


@pytest.mark.parametrize(("age_s", "most", "greeted"), [(0.0, 32, 4), (MEMORY_S + 60, 32, 0), (0.0, 3, 0)])
async def test_remembered_servers_are_connected_to_while_the_introducer_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float, most: int, greeted: int
) -> None:
    """Once, if they are few and were announced lately; that they do not answer does not matter."""
    from twisted.internet import reactor

    monkeypatch.setattr("grid.node.greetings.MOST_GREETED", most)
    async with offered(Introducer("grid/1")) as furl, introducer_client(furl, signed(0)) as (_, own):
        await own.wait_for(1)
        create_client(tmp_path / "node", NewClient(nickname="c", introducer_furl=furl.to_string()))
        directory = open_directory(tmp_path / "node")
        (petname,) = read_introducers(directory)
        cached = KeptAnnouncements()
        for index in range(4):
            cached.offer(parse_announcement(signed(index).to_tuple()))
        file = cache_file(directory.private, petname)
        file.write_bytes(pack_cache(cached))
        os.utime(file, (time.time() - age_s,) * 2)
        client, server = Client(directory, make_runtime(reactor), reactor), Greeted()
        monkeypatch.setattr(client.server_set, "expect", lambda _: server)
        try:
            assert len(await client.servers()) >= 1
            assert server.count == greeted
            await client.servers()
            assert server.count == greeted
        finally:
            await client.close()
