"""Servers that send invalid messages: every call of our client ends, with a PeerError or another request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from foolscap.api import Referenceable
from twisted.internet.defer import Deferred
from zope.interface import implementer

from grid.errors import DataTooLargeError, PeerError, PeerGoneError, PeerRefusedError, PeerTimeoutError
from grid.limits import READ_CALL_BYTES
from grid.ports import SlotSecrets, TestWrite
from grid.runtime import ReactorClock
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.foolscap.values import STORAGE_KEY, pack_version
from grid.wire.status import ConnectionState
from tests.wire.foolscap.loopback import (
    IDENTITY,
    INDEX,
    LEASE,
    VERSION,
    Offered,
    ScriptedServer,
    connected,
    number,
    offering,
    remote_server,
)


def real_clock() -> ReactorClock:
    from twisted.internet import reactor

    return ReactorClock(reactor)


class RawServer(Referenceable):
    """Answers whatever a test wants it to, without an interface."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"get_version": {STORAGE_KEY: {}}, **answers}

    def doRemoteCall(self, methodname: str, args: Any, kwargs: Any) -> Any:
        answer = self.answers[methodname]
        return answer() if callable(answer) else answer


@asynccontextmanager
async def client_of(remote: Referenceable, deadline_s: float = 15.0) -> AsyncIterator[FoolscapServer]:
    async with offering(remote) as offered:
        tub = start_tub()
        client = FoolscapServer(IDENTITY, offered.furl, tub, real_clock(), deadline_s)
        try:
            yield client
        finally:
            client.close()
            await stop_tub(tub)


BATCHED = pack_version(VERSION)
SLOT_SECRETS = SlotSecrets(write_enabler=b"w" * 32, lease=LEASE)
DEEP: list[object] = []
for _ in range(50):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "answers",
    [
        {"get_version": None},
        {"get_version": {}},
        {"get_version": DEEP},
        {"get_version": {b"x" * 300: 1}},
        {"get_version": {STORAGE_KEY: {b"available-space": b"all"}}},
        {"get_buckets": {1: 2}},
        {"get_buckets": None},
        {"get_buckets": {300: None}},
        {"get_version": BATCHED, "grid_find_shares": None},
        {"get_version": BATCHED, "grid_find_shares": b""},
        {"get_version": BATCHED, "grid_find_shares": b"\0\1\0\0\2\0\0\0\0\0\0\0\0"},
        {"get_version": BATCHED, "grid_find_shares": b"\0\1\0\0\1\0\0\0\2xx"},
        {"get_version": BATCHED, "grid_find_shares": "text"},
    ],
)
async def test_client_when_an_answer_makes_no_sense_then_raises_a_peer_error(answers: dict[str, Any]) -> None:
    async with client_of(RawServer(**answers)) as client:
        with pytest.raises(PeerError):
            await client.find_shares(INDEX, [(0, 1)])


@pytest.mark.parametrize(
    "allocated",
    [({1}, {2: None}), ({1}, {}, None), ([1], {}), ({-1}, {}), ({300}, {}), None, (set(range(300)), {})],
)
async def test_client_when_an_allocation_makes_no_sense_then_raises_a_peer_error(allocated: object) -> None:
    async with client_of(RawServer(allocate_buckets=allocated)) as client:
        with pytest.raises(PeerError):
            await client.allocate(INDEX, LEASE, frozenset([number(1)]), 10)


@pytest.mark.parametrize(
    "data", [{1: [b"xx", b"x"]}, {1: [b"x", b"x"]}, {1: []}, {300: [b"x"]}, {1: (b"x",)}, {1: ["x"]}, [], None]
)
async def test_client_when_a_slot_answer_has_other_ranges_then_raises_a_peer_error(data: object) -> None:
    async with client_of(RawServer(slot_readv=data)) as client:
        with pytest.raises(PeerError):
            await client.read_slot(INDEX, frozenset(), [(0, 1)])


@pytest.mark.parametrize(
    "data",
    [None, b"", "text", b"\0\1", b"\0\1\1\0\1\0\0\0\2xx", b"\0\1\1\0\2\0\0\0\0\0\0\0\0", b"\0\1\1\0\1\0\0\0\1xx"],
)
async def test_client_when_a_packed_slot_answer_makes_no_sense_then_raises_a_peer_error(data: object) -> None:
    answer = b"\1" + data if isinstance(data, bytes) else data
    async with client_of(RawServer(get_version=BATCHED, grid_read_slot=data, grid_write_slot=answer)) as client:
        with pytest.raises(PeerError):
            await client.read_slot(INDEX, frozenset(), [(0, 1)])
        with pytest.raises(PeerError):
            await client.test_and_write(INDEX, SLOT_SECRETS, {number(1): TestWrite()}, [(0, 1)])


async def test_packed_slot_answer_without_ranges_names_an_unreadable_share_unless_it_was_written() -> None:
    data = b"\0\1\1\0\0"
    async with client_of(RawServer(get_version=BATCHED, grid_read_slot=data, grid_write_slot=b"\1" + data)) as client:
        assert await client.read_slot(INDEX, frozenset(), [(0, 1)]) == {1: []}
        with pytest.raises(PeerError):
            await client.test_and_write(INDEX, SLOT_SECRETS, {number(1): TestWrite()}, [(0, 1)])


async def test_client_when_a_packed_read_is_too_much_for_the_server_then_asks_share_by_share() -> None:
    def refuse() -> None:
        raise DataTooLargeError("too much at once")

    async with client_of(RawServer(get_version=BATCHED, grid_read_slot=refuse, slot_readv={1: [b"x"]})) as client:
        assert await client.read_slot(INDEX, frozenset(), [(0, 1)]) == {1: [b"x"]}


async def test_server_when_a_packed_read_finds_too_much_then_is_asked_share_by_share() -> None:
    server = ScriptedServer()
    size = READ_CALL_BYTES // 64
    server.shares = {number(share): bytes(size) for share in range(65)}
    async with connected(server) as client:
        found = await client.read_slot(INDEX, frozenset(), [(0, size)])
        assert {share: len(pieces[0]) for share, pieces in found.items()} == dict.fromkeys(range(65), size)
    assert server.calls == [("get_version",), *[("read_slot", INDEX, frozenset(), [(0, size)])] * 2]


async def test_client_when_a_reader_answers_too_much_then_raises_a_peer_error() -> None:
    from grid.wire.foolscap.schema import RIBucketReader

    @implementer(RIBucketReader)  # type: ignore[misc]
    class Reader(RawServer):
        pass

    async with client_of(RawServer(get_buckets={1: Reader(read=b"too long")})) as client:
        assert await client.find_shares(INDEX) == {1: []}
        with pytest.raises(PeerError):
            await client.read_shares(INDEX, {number(1): [(0, 3)]})


async def test_client_when_the_server_refuses_with_hostile_text_then_the_message_is_clean() -> None:
    class Evil(Exception):
        pass

    def refuse() -> None:
        raise Evil("\x1b[31mred\n\r" + "x" * 900)

    async with client_of(RawServer(get_buckets=refuse)) as client:
        with pytest.raises(PeerRefusedError) as caught:
            await client.find_shares(INDEX)
        assert caught.value.kind == "Evil"
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 500


async def test_client_when_the_server_never_answers_then_connecting_ends_at_the_deadline() -> None:
    async with client_of(RawServer(get_version=Deferred), deadline_s=0.3) as client:
        with pytest.raises(PeerTimeoutError):
            await client.find_shares(INDEX)
        assert client.status.state is ConnectionState.WAITING
        with pytest.raises(PeerGoneError, match="next attempt"):
            await client.find_shares(INDEX)


async def test_client_when_the_connection_is_lost_in_a_call_then_says_so_and_reconnects() -> None:
    server = ScriptedServer(shares={number(1): b"x"})

    async def cut() -> None:
        server.delay = None
        for broker in list(offered_tubs[0].tub.brokers.values()):
            broker.transport.abortConnection()
        await Deferred()

    offered_tubs: list[Offered] = []
    async with offering(remote_server(server)) as offered:
        offered_tubs.append(offered)
        tub = start_tub()
        client = FoolscapServer(IDENTITY, offered.furl, tub, real_clock())
        try:
            await client.connect()
            server.delay = cut
            with pytest.raises(PeerGoneError):
                await client.find_shares(INDEX)
            assert (await client.find_shares(INDEX)).keys() == {1}
            assert client.status.state is ConnectionState.CONNECTED
        finally:
            await stop_tub(tub)
