"""Servers that one client directory takes over from another."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from grid.discovery.announcement import Announcement
from grid.discovery.server_files import pack_cache, read_cache
from grid.node.create import NewClient, create_client
from grid.node.directory import NodeDirectory, open_directory
from grid.node.introducers import cache_file
from grid.node.known_servers import known_servers, remember_servers
from tests.discovery.samples import announcement

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:39411/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
OTHER = f"pb://{'a' * 32}@tcp:127.0.0.1:39412/other"


@pytest.fixture
def client(tmp_path: Path) -> NodeDirectory:
    create_client(tmp_path / "c", NewClient(introducer_furl=FURL, more_introducers=(OTHER,)))
    return open_directory(tmp_path / "c")


def told(client: NodeDirectory, *announcements: Announcement, petname: str = "default") -> Path:
    path = cache_file(client.private, petname)
    path.write_bytes(pack_cache(announcements))
    return path


def seqnums(path: Path) -> list[int | None]:
    return [each.seqnum for each in read_cache(path)]


def test_servers_that_introducers_announced_are_known_by_their_furl(client: NodeDirectory) -> None:
    assert known_servers(client) == {}
    told(client, announcement(0), announcement(1))
    told(client, announcement(2), petname="introducer2")
    found = known_servers(client)
    assert {furl: len(servers) for furl, servers in found.items()} == {FURL: 2, OTHER: 1}


def test_announcements_that_lead_nowhere_are_not_passed_on(client: NodeDirectory) -> None:
    bad = [
        announcement(0, **{"anonymous-storage-FURL": None}),
        announcement(1, **{"anonymous-storage-FURL": "http://example.org"}),
        announcement(2, **{"permutation-seed-base32": "!"}),
        announcement(3, **{"service-name": "other"}),
    ]
    told(client, *bad)
    assert known_servers(client) == {}
    assert remember_servers(client, {OTHER: bad}) == 0 and not cache_file(client.private, "introducer2").exists()


def test_servers_become_the_cache_of_their_introducer_wherever_it_is_now(client: NodeDirectory) -> None:
    moved = FURL.replace("127.0.0.1:39411", "192.0.2.1:1")
    assert remember_servers(client, {moved: [announcement(0), announcement(1)]}) == 2
    path = cache_file(client.private, "default")
    assert seqnums(path) == [1, 1] and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert time.time() - path.stat().st_mtime > 10**8, "reads do not trust it before they asked the introducer"


def test_announcement_that_is_older_than_the_known_one_changes_nothing(client: NodeDirectory) -> None:
    path = told(client, announcement(0, 5))
    os.utime(path, (10**9, 10**9))
    assert remember_servers(client, {FURL: [announcement(0, 5), announcement(0, 4)]}) == 0
    assert path.stat().st_mtime == 10**9
    assert remember_servers(client, {FURL: [announcement(0, 6), announcement(1, 1)]}) == 2
    assert sorted(map(str, seqnums(path))) == ["1", "6"] and time.time() - path.stat().st_mtime < 10**6


def test_servers_of_an_introducer_that_is_not_ours_are_ignored(client: NodeDirectory) -> None:
    assert remember_servers(client, {f"pb://{'b' * 32}@tcp:127.0.0.1:1/x": [announcement(0)]}) == 0
    assert not list(client.private.glob("*_cache.yaml"))
