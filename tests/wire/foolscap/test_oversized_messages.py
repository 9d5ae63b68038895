"""Messages longer than the whole budget for requests, on real connections: only one of them is held at a time."""

from __future__ import annotations

from typing import Any

from foolscap.broker import Broker
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from grid.limits import REQUESTS_BYTES
from grid.runtime import ReactorClock
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.foolscap.tub import start_tub, stop_tub
from tests.wire.foolscap.loopback import INDEX, ScriptedServer, offering, remote_server

FIRST_SIZE = 2**22
"""Of the string with which it begins: while it comes, the other one has begun as well."""

SIZE = REQUESTS_BYTES + 2**20
"""Of the string by which a message outgrows all room."""


async def test_message_that_outgrows_all_room_waits_for_the_call_of_another_one_that_did() -> None:
    clock = ReactorClock(reactor)
    memory = ServerMemory(clock)
    held: list[Deferred[None]] = []

    async def wait() -> None:
        held.append(Deferred())
        await held[-1]

    server = ScriptedServer(delay=wait)
    async with offering(remote_server(server)) as offered:
        offered.tub.server_memory = memory
        tubs: list[Any] = [start_tub(), start_tub()]
        try:
            answers: list[Deferred[Any]] = []
            for tub in tubs:
                tub.brokerClass = Broker
            references = [await tub.getReference(offered.furl.to_string()) for tub in tubs]
            writes = [(0, bytes(FIRST_SIZE)), (FIRST_SIZE, bytes(SIZE))]
            vectors: dict[int, Any] = {1: ([], writes, None)}
            for reference in references:
                arguments: tuple[Any, ...] = (INDEX, (b"w" * 32,) * 3, vectors, [])
                answers.append(reference.callRemote("slot_testv_and_readv_and_writev", *arguments, _useSchema=False))
            for count in (1, 2):
                while len(held) < count:
                    await clock.sleep(0.02)
                    assert memory.requests.free > -REQUESTS_BYTES // 2
                for _ in range(20):
                    await clock.sleep(0.02)
                assert len(held) == count
                held[-1].callback(None)
            for answer in answers:
                assert await answer
            assert memory.requests.free == REQUESTS_BYTES
            assert memory.answers.held_size == 0
        finally:
            for tub in tubs:
                await stop_tub(tub)
