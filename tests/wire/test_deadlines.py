"""What clients of both protocols see when a server has no memory for them for too long; real sockets, virtual time."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from foolscap.api import DeadReferenceError, RemoteException
from foolscap.banana import int2b128
from foolscap.tokens import OPEN
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from grid.limits import (
    ANSWER_WAIT_S,
    ANSWERS_BYTES,
    MAX_SHARED_BODY,
    MESSAGE_REVIEW_S,
    REQUEST_WAIT_S,
    REQUESTS_BYTES,
    SMALL_ANSWERS_BYTES,
)
from grid.ports import TestWrite
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.foolscap.server.server import RemoteStorageServer
from grid.wire.foolscap.tub import share_memory, start_tub, stop_tub
from grid.wire.http.format.routes import pack_path
from tests.node.unread_requests import FREE, INDEX, SECRETS, SLOT_SECRETS, WRITE_SECRETS
from tests.support.virtual_time import VirtualClock
from tests.wire.foolscap.loopback import ScriptedServer, number, offering
from tests.wire.http.rig import ask, make_service, running

STEP_S = 0.5
LONG = MAX_SHARED_BODY + 1


async def until_ended(clock: VirtualClock, task: Deferred[Any], limit_s: float) -> Any:
    """The outcome of the task, while virtual time passes."""
    outcome: list[Any] = []
    task.addBoth(outcome.append)
    end = clock.now() + limit_s
    while not outcome and clock.now() < end:
        await deferLater(reactor, 0.01)
        if clock.task_clock.getDelayedCalls():  # What was sent may still be on its way, while nothing waits yet.
            clock.task_clock.advance(STEP_S)
    for _ in range(1000):
        if outcome:
            return outcome[0]
        await deferLater(reactor, 0.01)
        # On a busy machine the request arrived late, and its wait began later than the limit counts.
        clock.task_clock.advance(STEP_S / 10)
    raise AssertionError("it never ended")


async def test_http_request_that_finds_no_memory_for_its_body_gets_a_busy_status() -> None:
    clock = VirtualClock()
    memory = ServerMemory(clock)
    async with running(await make_service(), memory=memory) as rig:
        assert memory.requests.try_acquire(REQUESTS_BYTES)
        path = pack_path(FREE, "mutable", "read-test-write").decode().removeprefix("/storage/v1/")
        task = Deferred.fromCoroutine(ask(rig, "POST", path, [bytes(LONG)], secrets=WRITE_SECRETS))
        reply = await until_ended(clock, task, REQUEST_WAIT_S + 2 * STEP_S)
        assert reply.status == 503
        assert b"no room" in bytes(reply.body)


async def test_http_request_that_finds_no_memory_for_its_answer_gets_a_busy_status() -> None:
    clock = VirtualClock()
    memory = ServerMemory(clock)
    async with running(await make_service(), memory=memory) as rig:
        write = TestWrite(tests=[], writes=[(0, b"data")], new_length=None)
        await rig.client.test_and_write(FREE, SECRETS, {number(1): write})
        with memory.answers.reserve() as large, ExitStack() as small:
            assert large.take(ANSWERS_BYTES - SMALL_ANSWERS_BYTES)
            for _ in range(SMALL_ANSWERS_BYTES // 2**20):
                assert small.enter_context(memory.answers.reserve()).take(2**20)
            path = pack_path(FREE, "mutable", number(1)).decode().removeprefix("/storage/v1/")
            reply = await until_ended(clock, Deferred.fromCoroutine(ask(rig, "GET", path)), ANSWER_WAIT_S + 2 * STEP_S)
        assert reply.status == 503
        assert b"no room" in bytes(reply.body)


async def test_foolscap_call_that_finds_no_room_loses_its_connection() -> None:
    clock = VirtualClock()
    memory = ServerMemory(clock)
    remote = RemoteStorageServer(ScriptedServer(shares={number(1): b"data"}), memory.answers)
    async with offering(remote) as offered:
        share_memory(offered.tub, memory)
        tub = start_tub()
        try:
            reference = await tub.getReference(offered.furl.to_string())
            assert memory.requests.try_acquire(REQUESTS_BYTES)
            vectors: dict[int, Any] = {0: ([], [(0, bytes(LONG))], None)}
            task = reference.callRemote(
                "slot_testv_and_readv_and_writev", FREE, SLOT_SECRETS, vectors, [], _useSchema=False
            )
            failure = await until_ended(clock, task, REQUEST_WAIT_S + 2 * STEP_S)
            assert not reference.isConnected()
            assert not isinstance(failure.value, RemoteException)
        finally:
            await stop_tub(tub)


@pytest.mark.parametrize("pings", [0, 200])
async def test_short_foolscap_message_that_does_not_end_loses_its_connection(pings: int) -> None:
    clock = VirtualClock()
    memory = ServerMemory(clock)
    remote = RemoteStorageServer(ScriptedServer(shares={number(1): b"data"}), memory.answers)
    async with offering(remote) as offered:
        share_memory(offered.tub, memory)
        tub = start_tub()
        try:
            reference = await tub.getReference(offered.furl.to_string())
            broker = reference.tracker.broker
            gone: Deferred[None] = Deferred()
            reference.notifyOnDisconnect(gone.callback, None)
            parts: list[bytes] = []
            int2b128(99, parts.append)
            broker.transport.write(b"".join(parts) + OPEN)
            for _ in range(pings):
                broker.sendPING(1)
            await until_ended(clock, gone, 2 * MESSAGE_REVIEW_S + 2 * STEP_S)
            with pytest.raises(DeadReferenceError):
                await reference.callRemote("get_buckets", INDEX)
        finally:
            await stop_tub(tub)


async def test_foolscap_connection_that_only_keeps_itself_alive_stays() -> None:
    clock = VirtualClock()
    memory = ServerMemory(clock)
    remote = RemoteStorageServer(ScriptedServer(shares={number(1): b"data"}), memory.answers)
    async with offering(remote) as offered:
        share_memory(offered.tub, memory)
        tub = start_tub()
        try:
            reference = await tub.getReference(offered.furl.to_string())
            for _ in range(20):
                reference.tracker.broker.sendPING(1)
                await deferLater(reactor, 0.002)
                clock.task_clock.advance(MESSAGE_REVIEW_S)
            assert await reference.callRemote("get_buckets", INDEX)
        finally:
            await stop_tub(tub)
