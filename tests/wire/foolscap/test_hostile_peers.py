"""Peers that send what nobody should: refused, or disconnected, and nothing reaches the storage server.

A raw client (no schema on its side) calls our server; a raw server answers our client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from foolscap.api import DeadReferenceError, Referenceable, RemoteException, Violation
from foolscap.broker import Broker
from twisted.internet.defer import Deferred
from zope.interface import implementer

from grid.errors import PeerError, PeerGoneError, PeerRefusedError, PeerTimeoutError
from grid.limits import MAX_SHARES, MAX_UNSENT, MAX_WIRE_MESSAGE, READ_CALL_RANGES
from grid.ports import ShareWrite
from grid.runtime import ReactorClock
from grid.wire import batch
from grid.wire.foolscap.client import FoolscapServer
from grid.wire.foolscap.server import RemoteStorageServer
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
)


@asynccontextmanager
async def raw_reference(server: ScriptedServer) -> AsyncIterator[Any]:
    """A remote reference to our server on which calls are not checked before they are sent."""
    async with offering(RemoteStorageServer(server)) as offered:
        tub = start_tub()
        tub.brokerClass = Broker
        try:
            yield await tub.getReference(offered.furl.to_string())
        finally:
            await stop_tub(tub)


def real_clock() -> ReactorClock:
    from twisted.internet import reactor

    return ReactorClock(reactor)


async def raw_call(reference: Any, method: str, *arguments: object) -> Any:
    return await reference.callRemote(method, *arguments, _useSchema=False)


GOOD: dict[str, list[Any]] = {
    "allocate_buckets": [INDEX, LEASE.renew, LEASE.cancel, {1}, 10],
    "grid_allocate": [INDEX, LEASE.renew, LEASE.cancel, {1}, 10],
    "add_lease": [INDEX, LEASE.renew, LEASE.cancel],
    "get_buckets": [INDEX],
    "slot_readv": [INDEX, [1], [(0, 1)]],
    "slot_testv_and_readv_and_writev": [INDEX, (b"w" * 32, b"r" * 32, b"c" * 32), {1: ([], [(0, b"x")], None)}, []],
    "advise_corrupt_share": [b"mutable", INDEX, 1, b"reason"],
    "grid_find_shares": [INDEX, b""],
    "grid_read_shares": [INDEX, b""],
}
MANY = set(range(MAX_SHARES + 1))
BAD: list[tuple[str, int, object]] = [
    ("allocate_buckets", 0, b"short"),
    ("allocate_buckets", 0, b"x" * 17),
    ("allocate_buckets", 0, "text of 16 chars"),
    ("allocate_buckets", 1, b"x" * 31),
    ("allocate_buckets", 2, b"x" * 33),
    ("allocate_buckets", 3, [1]),
    ("allocate_buckets", 3, MANY),
    ("allocate_buckets", 3, {-1}),
    ("allocate_buckets", 3, {256}),
    ("allocate_buckets", 3, {b"1"}),
    ("allocate_buckets", 4, -1),
    ("allocate_buckets", 4, 2**64),
    ("allocate_buckets", 4, 2**63 + 1),
    ("grid_allocate", 3, {256}),
    ("grid_allocate", 4, -1),
    ("add_lease", 1, None),
    ("get_buckets", 0, 16),
    ("slot_readv", 1, {1}),
    ("slot_readv", 1, [-1]),
    ("slot_readv", 2, [(-1, 1)]),
    ("slot_readv", 2, [(1, -1)]),
    ("slot_readv", 2, [(1,)]),
    ("slot_readv", 2, [(0, 1)] * (READ_CALL_RANGES + 1)),
    ("slot_testv_and_readv_and_writev", 1, (b"w" * 32, b"r" * 32)),
    ("slot_testv_and_readv_and_writev", 2, {-1: ([], [], None)}),
    ("slot_testv_and_readv_and_writev", 2, {1: ([], [(-1, b"x")], None)}),
    ("slot_testv_and_readv_and_writev", 2, {1: ([], [], -1)}),
    ("slot_testv_and_readv_and_writev", 2, {1: ([(0, 1, b"ne", b"x")], [], None)}),
    ("slot_testv_and_readv_and_writev", 2, {1: ([], ["x"], None)}),
    ("slot_testv_and_readv_and_writev", 3, [(0, -1)]),
    ("advise_corrupt_share", 0, b"other"),
    ("advise_corrupt_share", 2, -1),
    ("advise_corrupt_share", 3, b"x" * 40000),
    ("grid_find_shares", 1, b"x"),
    ("grid_find_shares", 1, batch.pack_wants({number(1): [(0, 1)]})),
    ("grid_read_shares", 1, b"x" * 14),
    ("grid_read_shares", 1, batch.pack_wants({number(1): [(0, 2**32 - 1)]})),
    ("grid_read_shares", 1, b"x" * (13 * (READ_CALL_RANGES + 1))),
]


@pytest.mark.parametrize(("method", "position", "value"), BAD, ids=[f"{method}-{place}" for method, place, _ in BAD])
async def test_server_when_an_argument_is_bad_then_refuses_before_anything_happens(
    method: str, position: int, value: object
) -> None:
    server = ScriptedServer(shares={number(1): b"data"})
    async with raw_reference(server) as reference:
        canary = [Referenceable()] if "allocate" in method else []
        bad = [*GOOD[method][:position], value, *GOOD[method][position + 1 :], *canary]
        with pytest.raises(RemoteException):
            await raw_call(reference, method, *bad)
        assert server.calls == []
        await raw_call(reference, method, *GOOD[method], *canary)
        assert len(server.calls) == 1


async def test_server_when_a_container_is_of_another_kind_then_nothing_happens() -> None:
    server = ScriptedServer()
    async with raw_reference(server) as reference:
        arguments = [*GOOD["allocate_buckets"][:3], frozenset([1]), 10, Referenceable()]
        with pytest.raises((RemoteException, DeadReferenceError)):
            await raw_call(reference, "allocate_buckets", *arguments)
        assert server.calls == []


@pytest.mark.parametrize("method", ["remote_get_version", "no_such_method", "doRemoteCall", "__init__", ""])
async def test_server_when_a_method_is_unknown_then_refuses(method: str) -> None:
    server = ScriptedServer()
    async with raw_reference(server) as reference:
        reference.tracker.interface = None
        with pytest.raises((RemoteException, Violation)):
            await raw_call(reference, method)
        assert server.calls == []


async def test_server_when_arguments_are_missing_or_too_many_then_refuses() -> None:
    server = ScriptedServer()
    async with raw_reference(server) as reference:
        for arguments in ([], [INDEX, b"", b"", b""]):
            with pytest.raises(RemoteException):
                await raw_call(reference, "grid_find_shares", *arguments)
        assert server.calls == []


async def test_server_when_a_message_is_endless_then_disconnects() -> None:
    async with raw_reference(ScriptedServer()) as reference:
        piece = [bytes(2**24)] * 2
        arguments = [INDEX, (b"w" * 32,) * 3, {1: ([], [(0, bytes(2**20))] * 10, None)}, []]
        assert await raw_call(reference, "slot_testv_and_readv_and_writev", *arguments)
        endless = [INDEX, (b"w" * 32,) * 3, {1: ([], [(0, b) for b in piece * (MAX_WIRE_MESSAGE // 2**25 + 1)], None)}]
        with pytest.raises(DeadReferenceError):
            await raw_call(reference, "slot_testv_and_readv_and_writev", *endless, [])


async def test_server_when_a_client_does_not_read_its_answers_then_stops_working_for_it() -> None:
    size = 2**20
    server = ScriptedServer(shares={number(1): bytes(size)})
    async with raw_reference(server) as reference:
        transport = reference.tracker.broker.transport
        wants = batch.pack_wants({number(1): [(0, size)]})
        count = 3 * MAX_UNSENT // size
        transport.pauseProducing()
        sent = [reference.callRemote("grid_read_shares", INDEX, wants) for _ in range(count)]
        clock = real_clock()
        done = -1
        while done < MAX_UNSENT // size or done != len(server.calls):
            done = len(server.calls)
            await clock.sleep(0.3)
        assert done < 2 * MAX_UNSENT // size
        transport.resumeProducing()
        assert {len(await answer) for answer in sent} == {len(batch.pack_answer({number(1): [bytes(size)]}))}
        assert len(server.calls) == count


async def test_server_when_a_writer_is_misused_then_refuses() -> None:
    server = ScriptedServer()
    async with raw_reference(server) as reference:
        _, writers = await raw_call(reference, "allocate_buckets", *GOOD["allocate_buckets"], Referenceable())
        bad: list[tuple[Any, ...]] = [(-1, b"x"), (0, "x"), (2**64, b"x"), (0,)]
        for arguments in bad:
            with pytest.raises(RemoteException):
                await raw_call(writers[1], "write", *arguments)
        await raw_call(writers[1], "close")
        for call in (("write", 0, b"x"), ("close",)):
            with pytest.raises(RemoteException):
                await raw_call(writers[1], *call)
        await raw_call(writers[1], "abort")
        assert server.uploads[0].data == {}
        assert server.uploads[0].aborted == set()


async def test_server_when_an_upload_is_misused_then_refuses() -> None:
    server = ScriptedServer()
    async with raw_reference(server) as reference:
        _, _, upload = await raw_call(reference, "grid_allocate", *GOOD["grid_allocate"], Referenceable())
        records, data = batch.pack_writes([ShareWrite(number(2), 0, [b"other share"])])
        mine, _ = batch.pack_writes([ShareWrite(number(1), 0, [b"x" * 11])])
        for arguments in ((records, data), (mine, b""), (mine[:-1], data), (b"x", b"")):
            with pytest.raises(RemoteException):
                await raw_call(upload, "write", *arguments)
        for numbers in ({2}, {1, 2}, {-1}, {256}):
            with pytest.raises(RemoteException):
                await raw_call(upload, "close", numbers)
        assert server.uploads[0].data == {}
        assert server.uploads[0].closed == set()


@pytest.mark.parametrize("method", ["allocate_buckets", "grid_allocate"])
async def test_server_when_the_client_disconnects_then_gives_up_what_is_open(method: str) -> None:
    server = ScriptedServer()
    aborted: Deferred[None] = Deferred()
    async with offering(RemoteStorageServer(server)) as offered:
        tub = start_tub()
        reference = await tub.getReference(offered.furl.to_string())
        arguments = [INDEX, LEASE.renew, LEASE.cancel, {1, 2}, 10, Referenceable()]
        _, writers, *upload = await raw_call(reference, method, *arguments)
        if upload:
            await raw_call(upload[0], "close", {1})
        else:
            await raw_call(writers[1], "close")
        server.uploads[0].on_abort = lambda: aborted.callback(None)
        await stop_tub(tub)
        await aborted
    assert server.uploads[0].closed == {1}
    assert server.uploads[0].aborted == {2}


async def test_server_when_the_client_disconnects_after_the_end_then_nothing_is_given_up() -> None:
    server = ScriptedServer()
    async with connected(server) as client:
        upload = (await client.allocate(INDEX, LEASE, frozenset([number(1)]), 10)).upload
        await upload.close([number(1)])
    assert server.uploads[0].aborted == set()


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


async def test_client_when_the_connection_is_lost_in_a_call_then_says_so_and_connects_anew() -> None:
    server = ScriptedServer(shares={number(1): b"x"})

    async def cut() -> None:
        server.delay = None
        for broker in list(offered_tubs[0].tub.brokers.values()):
            broker.transport.abortConnection()
        await Deferred()

    offered_tubs: list[Offered] = []
    async with offering(RemoteStorageServer(server)) as offered:
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
