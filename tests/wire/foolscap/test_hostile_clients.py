"""Clients that send invalid messages: refused or disconnected, and nothing reaches the storage server.

A raw client (no schema on its side) calls our server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from foolscap.api import DeadReferenceError, Referenceable, RemoteException, Violation
from foolscap.broker import Broker
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from grid.limits import ANSWERS_BYTES, MAX_CALLS_EACH, MAX_SHARES, MAX_WIRE_MESSAGE, READ_CALL_BYTES, READ_CALL_RANGES
from grid.ports import ShareWrite
from grid.runtime import ReactorClock
from grid.wire.foolscap.server.server import RemoteStorageServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.packed import share_ranges
from grid.wire.packed.slots import pack_slot_wants
from tests.wire.foolscap.loopback import (
    INDEX,
    LEASE,
    ScriptedServer,
    connected,
    number,
    offering,
    remote_server,
)


@asynccontextmanager
async def raw_reference(server: ScriptedServer, remote: RemoteStorageServer | None = None) -> AsyncIterator[Any]:
    """A remote reference to our server on which calls are not checked before they are sent."""
    async with offering(remote or remote_server(server)) as offered:
        tub = start_tub()
        tub.brokerClass = Broker
        try:
            yield await tub.getReference(offered.furl.to_string())
        finally:
            await stop_tub(tub)


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
    ("grid_find_shares", 1, share_ranges.pack_wants({number(1): [(0, 1)]})),
    ("grid_read_shares", 1, b"x" * 14),
    ("grid_read_shares", 1, share_ranges.pack_wants({number(1): [(0, 2**32 - 1)]})),
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


async def test_server_when_a_client_does_not_read_its_answers_then_holds_no_more_than_its_budget() -> None:
    size = 2**20
    server = ScriptedServer(shares={number(1): bytes(size)})
    offered = remote_server(server)
    async with raw_reference(server, offered) as reference:
        transport = reference.tracker.broker.transport
        wants = share_ranges.pack_wants({number(1): [(0, size)]})
        count = 3 * ANSWERS_BYTES // size
        transport.pauseProducing()
        sent = [reference.callRemote("grid_read_shares", INDEX, wants) for _ in range(count)]
        clock, answers = ReactorClock(reactor), offered.answers
        while not answers.waiting_count:
            await clock.sleep(0.05)
        assert ANSWERS_BYTES - size - 1000 < answers.held_size <= ANSWERS_BYTES
        assert answers.waiting_count <= MAX_CALLS_EACH
        transport.resumeProducing()
        assert {len(await answer) for answer in sent} == {len(share_ranges.pack_answer({number(1): [bytes(size)]}))}
        assert answers.held_size == 0


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
        records, data = share_ranges.pack_writes([ShareWrite(number(2), 0, [b"other share"])])
        mine, _ = share_ranges.pack_writes([ShareWrite(number(1), 0, [b"x" * 11])])
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
    async with offering(remote_server(server)) as offered:
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


async def test_server_when_a_packed_slot_call_is_malformed_then_refuses_and_does_nothing() -> None:
    server = ScriptedServer()
    async with raw_reference(server) as reference:
        for head, data in ((b"", b""), (bytes(110), b"x"), (b"\xff" * 200, b"")):
            with pytest.raises(RemoteException):
                await raw_call(reference, "grid_write_slot", INDEX, head, data)
        with pytest.raises(RemoteException):
            await raw_call(reference, "grid_read_slot", INDEX, b"\1")
        with pytest.raises(RemoteException):
            await raw_call(reference, "grid_read_slot", INDEX, pack_slot_wants(frozenset(), [(0, READ_CALL_BYTES)]))
    assert server.calls == []


async def test_readers_when_they_are_asked_for_again_are_the_same() -> None:
    """Foolscap keeps each object that it has sent as long as the client likes."""
    server = ScriptedServer(shares={number(1): b"one", number(2): b"two"})
    async with raw_reference(server) as reference:
        first, second = [await raw_call(reference, "get_buckets", INDEX) for _ in range(2)]
        assert first == second and first.keys() == {1, 2} and first[1] is not first[2]
