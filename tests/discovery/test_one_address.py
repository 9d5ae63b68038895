"""Servers that are announced at one address are one server, under whatever keys, and however often. [decision 0313]"""

from __future__ import annotations

from typing import Any

import pytest
from twisted.logger import globalLogPublisher

from grid.discovery.announcement import Announcement, merge_addresses, parse_fields, storage_furl
from grid.discovery.server_set import ServerSet
from grid.limits import MAX_LOCATION_HINTS
from grid.ports import ServerId, ServerIdentity
from grid.wire.http.format.announced import NURLS_FIELD
from grid.wire.status import RemoteServer
from tests.discovery.samples import IDS, announcement, fields, furl
from tests.discovery.test_server_set import FakeServer, make, server_set, static
from tests.support.virtual_time import VirtualRuntime

FURL = "anonymous-storage-FURL"


def at(index: int, *hints: str, seqnum: Any = 1, **changes: Any) -> Announcement:
    """An announcement by one of several keys of one address, with those hints."""
    return announcement(index, seqnum, **{FURL: furl("a", ",".join(hints or ("tcp:127.0.0.1:1",)))}, **changes)


def places_of(servers: Any) -> list[str]:
    return [server.place for server in servers.servers if isinstance(server, FakeServer)]


def test_servers_with_one_address_under_several_keys_are_one_server() -> None:
    servers = server_set()
    for index in (1, 0, 2):
        servers.announced(at(index))
    servers.announced(announcement(3))
    assert [server.identity.server_id for server in servers.servers] == [IDS[1], IDS[3]]
    assert [(entry.identity.server_id, entry.counts_as) for entry in servers.entries] == [
        (IDS[1], IDS[1]),
        (IDS[0], IDS[1]),
        (IDS[2], IDS[1]),
        (IDS[3], IDS[3]),
    ]
    assert servers.find(ServerId(IDS[2])) is servers.servers[0]


def test_servers_with_one_tub_and_other_secret_names_are_two() -> None:
    servers = server_set()
    servers.announced(at(0))
    servers.announced(announcement(1, **{FURL: furl("a").replace("swissnum", "other")}))
    assert len(servers.servers) == 2


def test_log_when_an_address_is_announced_again_names_both_once() -> None:
    events: list[Any] = []
    observer: Any = events.append
    servers = server_set()
    globalLogPublisher.addObserver(observer)
    try:
        servers.announced(at(0))
        servers.announced(at(1))
        servers.announced(at(1, seqnum=2))
    finally:
        globalLogPublisher.removeObserver(observer)
    [said] = [event for event in events if "count as one" in event["log_format"]]
    assert (said["id"], said["other"]) == (IDS[1], IDS[0])


def test_server_whose_address_is_also_announced_with_a_dead_hint_is_reached_at_its_own() -> None:
    servers = server_set()
    servers.announced(at(1, "tcp:192.0.2.9:9"))
    servers.announced(at(0, "tcp:127.0.0.1:1"))
    assert places_of(servers) == [furl("a", "tcp:192.0.2.9:9,tcp:127.0.0.1:1")]


def test_http_address_that_only_one_of_them_announces_is_not_believed() -> None:
    servers = server_set()
    servers.announced(at(0))
    assert merge_addresses([at(0, **{NURLS_FIELD: ["x"]}), at(1)]).fields.get(NURLS_FIELD) is None
    assert merge_addresses([at(0, **{NURLS_FIELD: ["x"]}), at(1, **{NURLS_FIELD: ["x"]})]).fields[NURLS_FIELD] == ["x"]


def test_hints_of_many_announcements_stay_few_and_have_some_of_each() -> None:
    many = [at(index, *(f"tcp:10.{index}.0.{n}:1" for n in range(60))) for index in range(3)]
    merged = storage_furl(merge_addresses(many)).hints
    assert len(merged) <= MAX_LOCATION_HINTS
    assert [sum(hint.startswith(f"tcp:10.{index}.") for hint in merged) > 15 for index in range(3)] == [True] * 3


def test_server_of_the_file_keeps_its_name_and_its_addresses_whoever_announces_it() -> None:
    servers = server_set()
    servers.announced(at(0, "tcp:192.0.2.9:9"))
    servers.add_static(static("mine", **{FURL: furl("a")}))
    servers.announced(at(1, "tcp:192.0.2.8:8"))
    assert [server.identity.server_id for server in servers.servers] == ["mine"]
    assert places_of(servers) == [furl("a")]


def test_server_that_moves_to_an_address_of_its_own_counts_for_itself() -> None:
    servers = server_set()
    servers.announced(at(0))
    servers.announced(at(1))
    servers.announced(announcement(1, 2, **{FURL: furl("b")}))
    assert [server.identity.server_id for server in servers.servers] == [IDS[0], IDS[1]]
    servers.announced(announcement(0, 2, **{FURL: furl("b")}))
    assert [server.identity.server_id for server in servers.servers] == [IDS[1]]
    assert places_of(servers) == [furl("b")]


@pytest.mark.parametrize("index", [0, 1])
def test_return_of_a_server_is_reported_under_the_name_that_counts(index: int) -> None:
    back: list[str] = []
    servers = server_set(on_return=back.append)
    servers.announced(at(0))
    servers.announced(at(1))
    servers.announced(at(index, seqnum=2))
    assert back == [IDS[0]]
    (client,) = servers.servers
    assert isinstance(client, FakeServer) and client.forgotten == 1


def test_thousands_of_names_for_one_address_make_few_clients() -> None:
    made: list[Announcement] = []

    def note(identity: ServerIdentity, found: Announcement) -> RemoteServer:
        made.append(found)
        return make(identity, found)

    servers = ServerSet(note, VirtualRuntime().clock)
    for index in range(2000):
        servers.announced(parse_fields(ServerId(f"name {index}"), fields()))
    assert len(servers.servers) == 1 and len(servers.entries) == 2000
    assert len(made) <= MAX_LOCATION_HINTS + 1
