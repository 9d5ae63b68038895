"""Large chunks under Foolscap: the same bytes, in a fraction of the calls."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest
from foolscap.api import DeadReferenceError, Referenceable, Tub
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.task import deferLater
from twisted.protocols.tls import BufferingTLSTransport, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from grid.wire.connections.sockets import LARGEST_CHUNK as CHUNK_SIZE
from grid.wire.connections.sockets import set_wake_mark
from grid.wire.foolscap import broker
from grid.wire.foolscap.bulk import BulkTransport
from grid.wire.foolscap.client.calls import call
from grid.wire.foolscap.schema import RIShareUpload
from grid.wire.foolscap.tub import listen, set_location, start_tub, stop_tub, throwaway_certificate

LONG = bytes(range(256)) * (5 * 2**12 + 1)


def _reactor() -> Any:
    from twisted.internet import reactor

    return reactor


class _Echo(Referenceable):
    def remote_echo(self, data: bytes) -> bytes:
        return data

    def remote_take(self, vectors: dict[int, tuple[list[tuple[int, bytes]], None]]) -> int:
        return len(vectors[0][0][0][1])


def _plain_tub() -> Any:
    tub = Tub(certData=throwaway_certificate())
    tub.startService()
    return tub


async def _serve(tub: Any) -> str:
    from twisted.internet import reactor

    port = await listen(tub, TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1"))
    set_location(tub, (f"tcp:127.0.0.1:{port}",))
    return str(tub.registerReference(_Echo()))


def _layer(reference: Any) -> Any:
    return reference.tracker.broker.transport.protocol


async def test_long_string_when_both_ends_use_large_chunks_then_comes_back_whole() -> None:
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    try:
        assert type(_layer(reference)) is BulkTransport
        for data in (b"", b"x", LONG[:4095], LONG[:4097], LONG[: CHUNK_SIZE + 1], LONG):
            assert await reference.callRemote("echo", data) == data
    finally:
        await stop_tub(client)
        await stop_tub(server)


async def test_long_string_when_the_other_end_is_plain_foolscap_then_comes_back_whole_both_ways() -> None:
    for make_server, make_client in ((start_tub, _plain_tub), (_plain_tub, start_tub)):
        server, client = make_server(), make_client()
        reference = await client.getReference(await _serve(server))
        try:
            assert await reference.callRemote("echo", LONG) == LONG
        finally:
            await stop_tub(client)
            await stop_tub(server)


async def test_long_string_when_sent_then_costs_one_encryption_per_chunk() -> None:
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    try:
        records = _layer(reference)._records
        sizes: list[int] = []
        seal = records.seal

        def counted(data: Any) -> None:
            sizes.append(len(data))
            seal(data)

        records.seal = counted
        await reference.callRemote("echo", LONG)
        assert sum(sizes) > len(LONG)
        assert len([size for size in sizes if size > 1000]) <= -(-len(LONG) // CHUNK_SIZE)
    finally:
        await stop_tub(client)
        await stop_tub(server)


def test_layer_when_twisted_changes_then_the_methods_we_use_are_still_there() -> None:
    for name in (
        "_write",
        "_flushSendBIO",
        "_flushReceiveBIO",
        "_tlsShutdownFinished",
        "_shutdownTLS",
        "_unbufferPendingWrites",
    ):
        assert callable(getattr(TLSMemoryBIOProtocol, name))
    assert issubclass(BulkTransport, BufferingTLSTransport)


async def test_long_string_when_received_then_the_socket_wakes_us_for_much_at_a_time_and_at_its_end_for_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marks: list[int] = []

    def noted(transport: Any, mark: int) -> None:
        marks.append(mark)
        set_wake_mark(transport, mark)

    monkeypatch.setattr(broker, "set_wake_mark", noted)
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    try:
        assert await reference.callRemote("echo", LONG) == LONG
        assert await reference.callRemote("echo", b"x") == b"x"
        assert max(marks) > 2**16
        assert marks.count(1) == 2
    finally:
        await stop_tub(client)
        await stop_tub(server)


async def test_call_when_it_waits_for_its_answer_then_what_was_sent_is_not_kept() -> None:
    class Slow(Referenceable):
        def remote_write(self, records: bytes, data: bytes) -> Deferred[None]:
            taken.append(len(data))
            answer: Deferred[None] = Deferred()
            answers.append(answer)
            return answer

    taken: list[int] = []
    answers: list[Deferred[None]] = []
    server, client = start_tub(), start_tub()
    await _serve(server)
    reference = await client.getReference(server.registerReference(Slow()))
    try:
        data = bytes(LONG)
        before = sys.getrefcount(data)
        waiting = Deferred.fromCoroutine(call(reference, RIShareUpload, "a server", "write", b"", data))
        while not answers:
            await deferLater(_reactor(), 0.01)
        assert taken == [len(LONG)]
        assert sys.getrefcount(data) == before
        answers[0].callback(None)
        await waiting
    finally:
        await stop_tub(client)
        await stop_tub(server)


async def test_arguments_when_a_call_was_carried_out_then_no_garbage_holds_them() -> None:
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            assert await reference.callRemote("echo", LONG) == LONG
            assert await reference.callRemote("take", {0: ([(0, LONG)], None)}) == len(LONG)
        await deferLater(_reactor(), 0.01)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        held = [held for garbage in gc.garbage for held in gc.get_referents(garbage)]
        assert gc.garbage
        assert not [held for held in held if isinstance(held, bytes | memoryview) and len(held) >= len(LONG)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        await stop_tub(client)
        await stop_tub(server)


async def test_answer_when_the_connection_is_given_up_in_the_middle_of_it_then_the_rest_is_ignored() -> None:
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    connection = reference.tracker.broker
    take = connection.handleData
    parts: list[int] = []

    def cut(chunk: Any) -> None:
        parts.append(len(chunk))
        take(chunk[:1000])
        if len(parts) == 1:
            connection.shutdown(Failure(DeadReferenceError("given up")))
        take(chunk[1000:])

    connection.handleData = cut
    try:
        with pytest.raises(DeadReferenceError):
            await reference.callRemote("echo", LONG[: 2**17])
        await deferLater(_reactor(), 0.05)
        assert sum(parts) > 2**17
    finally:
        del connection.handleData
        await stop_tub(client)
        await stop_tub(server)
    gc.collect()  # A Deferred that failed is reported when it is collected.


class _Taker(Referenceable):
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def remote_take(self, data: bytes) -> None:
        self.sizes.append(len(data))


async def test_long_string_when_the_socket_is_slow_then_only_a_chunk_of_cipher_text_waits_for_it() -> None:
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    try:
        layer = _layer(reference)
        socket = layer.transport._connection
        waiting = [reference.callRemote("echo", LONG) for _ in range(3)]
        most = 0
        while layer._appSendBuffer:
            most = max(most, len(socket.dataBuffer) + socket._tempDataLen)
            await deferLater(_reactor(), 0)
        assert 0 < most < 2 * CHUNK_SIZE
        assert [await answer for answer in waiting] == [LONG] * 3
    finally:
        await stop_tub(client)
        await stop_tub(server)


async def test_connection_when_closed_behind_a_long_string_then_sends_all_of_it_first() -> None:
    server, client = start_tub(), start_tub()
    await _serve(server)
    taker = _Taker()
    reference = await client.getReference(server.registerReference(taker))
    try:
        layer = _layer(reference)
        reference.callRemote("take", LONG).addErrback(lambda _: None)
        reference.callRemote("take", LONG[1:]).addErrback(lambda _: None)
        assert layer._appSendBuffer
        layer.unregisterProducer()
        layer.loseConnection()
        lost: Deferred[None] = Deferred()
        reference.notifyOnDisconnect(lost.callback, None)
        await lost
        assert taker.sizes == [len(LONG), len(LONG) - 1]
    finally:
        await stop_tub(client)
        await stop_tub(server)


async def test_producer_when_something_waits_then_is_paused_and_when_all_is_sent_goes_on() -> None:
    server, client = start_tub(), start_tub()
    reference = await client.getReference(await _serve(server))
    calls: list[str] = []
    try:
        layer = _layer(reference)
        broker_of_ours = layer._producer
        pause, resume = broker_of_ours.pauseProducing, broker_of_ours.resumeProducing

        def noted(what: str, tell: Any) -> Any:
            def telling() -> None:
                calls.append(what)
                tell()

            return telling

        broker_of_ours.pauseProducing, broker_of_ours.resumeProducing = noted("pause", pause), noted("resume", resume)
        assert await reference.callRemote("echo", LONG) == LONG
        assert await reference.callRemote("echo", b"x") == b"x"
        assert calls == ["pause", "resume"]
    finally:
        await stop_tub(client)
        await stop_tub(server)
