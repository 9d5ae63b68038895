"""The live set of servers. [spec wire 9, 10]"""

from __future__ import annotations

import math
from typing import Any

import pytest

from grid.discovery.announcement import Announcement, parse_fields, storage_furl
from grid.discovery.server_set import ServerSet
from grid.errors import FormatError
from grid.ports import ServerId, ServerIdentity
from grid.runtime import ReactorClock
from grid.wire.status import ConnectionState, ConnectionStatus, RemoteServer
from tests.discovery.samples import IDS, KEYS, announcement, fields, furl
from tests.wire.foolscap.loopback import ScriptedServer


class FakeServer(ScriptedServer):
    """A server that is somewhere."""

    place = ""
    closed = False
    forgotten = 0

    @property
    def status(self) -> ConnectionStatus:
        return ConnectionStatus(state=ConnectionState.IDLE, since=0.0)

    async def connect(self) -> None:
        return

    def forget_failures(self) -> None:
        self.forgotten += 1

    def close(self) -> None:
        self.closed = True


def make(identity: ServerIdentity, made: Announcement) -> RemoteServer:
    server = FakeServer(identity=identity)
    server.place = storage_furl(made).to_string()
    return server


def server_set(**options: object) -> ServerSet:
    from twisted.internet import reactor

    return ServerSet(make, ReactorClock(reactor), **options)  # type: ignore[arg-type]


def static(server_id: str, **changes: Any) -> Announcement:
    return parse_fields(ServerId(server_id), fields(**changes))


def test_set_when_servers_are_announced_then_has_one_client_each() -> None:
    servers = server_set()
    for index in (0, 1, 0):
        servers.announced(announcement(index))
    assert [server.identity.server_id for server in servers.servers] == [IDS[0], IDS[1]]
    assert [entry.is_static for entry in servers.entries] == [False, False]
    assert servers.entries[0].identity.upload_permit_expires == math.inf


def test_set_when_a_newer_announcement_has_the_same_address_then_keeps_the_client() -> None:
    servers = server_set()
    servers.announced(announcement(0, 1))
    before = servers.servers
    servers.announced(announcement(0, 2))
    assert servers.servers == before
    assert servers.servers[0] is before[0]
    assert servers.entries[0].announcement.seqnum == 2


def test_set_when_a_server_announces_itself_again_then_says_that_it_is_back() -> None:
    back: list[str] = []
    servers = server_set(on_return=back.append)
    servers.announced(announcement(0, 1))
    servers.announced(announcement(0, 1))
    assert back == []
    servers.announced(announcement(0, 2))
    servers.announced(announcement(0, 3, **{"anonymous-storage-FURL": furl("a", "tcp:127.0.0.1:2")}))
    assert back == [IDS[0]] * 2
    servers.announced(announcement(0, 2))
    assert len(back) == 2


def test_set_when_a_remembered_server_is_announced_unchanged_then_it_is_not_a_return() -> None:
    back: list[str] = []
    servers = server_set(on_return=back.append)
    servers.announced(parse_fields(ServerId(IDS[0]), fields(7)))
    servers.announced(announcement(0, 7))
    assert back == [] and servers.entries[0].is_vouched_for


def test_server_that_no_introducer_lists_now_serves_reads_only_until_it_is_announced() -> None:
    servers = server_set()
    servers.announced(announcement(0))
    cached = [
        parse_fields(ServerId(IDS[index]), fields(7, **{"anonymous-storage-FURL": furl("abcd"[index])}))
        for index in range(3)
    ]
    for each in cached:
        servers.recalled(each)
    assert [entry.identity.upload_permit_expires for entry in servers.entries] == [math.inf, -math.inf, -math.inf]
    assert [entry.is_recalled for entry in servers.entries] == [False, True, True]
    assert len(servers.servers) == 3 and not servers.entries[1].is_vouched_for
    servers.announced(announcement(1, 7))
    servers.announced(cached[2])  # As the cache of an introducer that cannot be reached says.
    assert [entry.identity.upload_permit_expires for entry in servers.entries] == [math.inf] * 3
    assert not any(entry.is_recalled for entry in servers.entries)
    assert [server.identity.upload_permit_expires for server in servers.servers] == [math.inf] * 3
    servers.recalled(cached[1])
    assert not servers.entries[1].is_recalled


def test_set_when_a_server_announces_itself_again_then_its_client_forgets_its_failures() -> None:
    servers = server_set()
    servers.announced(announcement(0, 1))
    (client,) = servers.servers
    assert isinstance(client, FakeServer) and client.forgotten == 0
    servers.announced(announcement(0, 2))
    assert client.forgotten == 1
    servers.announced(announcement(0, 2))  # Heard from another introducer: that is no news.
    assert client.forgotten == 1


def test_set_when_a_newer_announcement_has_another_address_then_makes_a_new_client() -> None:
    servers = server_set()
    servers.announced(announcement(0, 1))
    (before,) = servers.servers
    servers.announced(announcement(0, 2, **{"anonymous-storage-FURL": furl("a", "tcp:127.0.0.1:2")}))
    (after,) = servers.servers
    assert after is not before
    assert isinstance(before, FakeServer)
    assert not before.closed


def test_set_when_an_older_announcement_comes_then_ignores_it() -> None:
    servers = server_set()
    servers.announced(announcement(0, 2))
    servers.announced(announcement(0, 1, nickname="older"))
    assert servers.entries[0].identity.nickname == "nick"


def test_set_when_a_cached_announcement_is_followed_by_a_signed_one_then_takes_it() -> None:
    servers = server_set()
    servers.announced(parse_fields(ServerId(IDS[0]), fields(9, nickname="cached")))
    servers.announced(announcement(0, 1, nickname="live"))
    assert servers.entries[0].identity.nickname == "live"
    servers.announced(parse_fields(ServerId(IDS[0]), fields(0, nickname="cached")))
    assert servers.entries[0].identity.nickname == "live"


def test_set_when_an_entry_is_static_then_no_announcement_overrides_it() -> None:
    servers = server_set()
    servers.announced(announcement(0, 1, nickname="early"))
    servers.add_static(static(IDS[0], nickname="static"))
    servers.announced(announcement(0, 99, nickname="late"))
    assert [(entry.identity.nickname, entry.is_static) for entry in servers.entries] == [("static", True)]


@pytest.mark.parametrize(
    "changes",
    [{"service-name": "other"}, {"anonymous-storage-FURL": None}, {"permutation-seed-base32": "!"}],
)
def test_set_when_an_announcement_is_of_no_use_then_skips_it(changes: dict[str, str]) -> None:
    servers = server_set()
    servers.announced(announcement(0, 1, **changes))
    assert servers.servers == []
    servers.announced(announcement(0, 2))
    servers.announced(announcement(0, 3, **changes))
    assert len(servers.servers) == 1


def test_set_when_a_static_entry_is_of_no_use_then_says_so() -> None:
    with pytest.raises(FormatError):
        server_set().add_static(static("static", **{"anonymous-storage-FURL": None}))


def test_set_when_grid_managers_are_configured_then_uncertified_servers_take_no_uploads() -> None:
    servers = server_set(manager_keys=[KEYS[3].verifying_key])
    servers.announced(announcement(0))
    assert servers.entries[0].identity.upload_permit_expires == -math.inf


def test_close_when_called_then_closes_every_client() -> None:
    servers = server_set()
    servers.announced(announcement(0))
    servers.close()
    (server,) = servers.servers
    assert isinstance(server, FakeServer)
    assert server.closed
