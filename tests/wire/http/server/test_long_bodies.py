"""Bodies too long to take as they arrive: one at a time, and only once there is memory for all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred

from grid.limits import MAX_HTTP_SLOT_BODY, MAX_SHARED_BODY, REQUEST_WAIT_S, REQUESTS_BYTES
from grid.ports import Buffer
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.http.format.messages import parse_request_head, request_body
from grid.wire.http.server.exchange import Exchange
from grid.wire.http.server.service import Bounds
from tests.support.virtual_time import VirtualRuntime


class Connection:
    """A client's connection: the calls that it gets."""

    is_drained = True
    is_gone = False
    received_size = 0

    def __init__(self, address: str) -> None:
        self.peer_address = address
        self.is_read = True
        self.was_aborted = False

    def send(self, pieces: Sequence[Buffer]) -> None: ...

    async def drained(self) -> None: ...

    def admit(self) -> None: ...

    def send_continue(self) -> None: ...

    def give_up(self) -> None: ...

    def closes_after(self, exchange: Exchange) -> bool:
        return False

    def want_body(self) -> None:
        self.is_read = True

    def hold_back(self) -> None:
        self.is_read = False

    def abort(self) -> None:
        self.was_aborted = True


class Request:
    """A request with a body of that length, held until `done` is called."""

    def __init__(self, bounds: Bounds, length: int, address: str = "a") -> None:
        self.connection = Connection(address)
        head = parse_request_head(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d" % length)
        self.exchange = Exchange(self.connection, head, request_body(head.headers))
        self.done: Deferred[None] = Deferred()
        self.outcome: list[Any] = []
        Deferred.fromCoroutine(self._serve(bounds)).addErrback(lambda failure: self.outcome.append(failure.type))

    async def _serve(self, bounds: Bounds) -> None:
        async with bounds.body(self.exchange, MAX_HTTP_SLOT_BODY) as body:
            self.outcome.append(len(body))
            await self.done


def test_long_bodies_are_taken_one_after_the_other_and_nothing_is_read_of_the_others() -> None:
    memory = ServerMemory(VirtualRuntime().clock)
    bounds = Bounds(memory)
    size = MAX_SHARED_BODY + 1
    first, second, third = (Request(bounds, size) for _ in range(3))
    assert [each.connection.is_read for each in (first, second, third)] == [True, True, False]
    first.exchange.feed(bytes(size))
    assert first.outcome == [size]
    assert not third.connection.is_read
    first.done.callback(None)
    assert third.connection.is_read
    assert bounds.bodies.held_size == 0


def test_body_longer_than_all_room_is_alone_and_gives_everything_back() -> None:
    runtime = VirtualRuntime()
    memory = ServerMemory(runtime.clock)
    bounds = Bounds(memory)
    long, other = Request(bounds, 2 * REQUESTS_BYTES), Request(bounds, MAX_SHARED_BODY + 1)
    assert (long.connection.is_read, other.connection.is_read) == (True, False)
    assert memory.answers.held_size > 0
    long.exchange.feed(bytes(2 * REQUESTS_BYTES))
    long.done.callback(None)
    assert other.connection.is_read
    assert memory.answers.held_size == 0


def test_long_body_that_trickles_while_another_waits_is_given_up() -> None:
    runtime = VirtualRuntime()
    memory = ServerMemory(runtime.clock)
    bounds = Bounds(memory)
    slow, waiting = Request(bounds, REQUESTS_BYTES), Request(bounds, REQUESTS_BYTES, "b")
    for _ in range(20):
        slow.exchange.feed(bytes(1000))
        runtime.clock.task_clock.advance(0.5)
    assert slow.connection.was_aborted
    assert not waiting.connection.was_aborted
    assert waiting.outcome == []


def test_long_body_that_waits_too_long_is_refused() -> None:
    runtime = VirtualRuntime()
    memory = ServerMemory(runtime.clock)
    bounds = Bounds(memory)
    assert memory.requests.try_acquire(REQUESTS_BYTES)
    waiting = Request(bounds, REQUESTS_BYTES)
    runtime.clock.task_clock.pump([0.5] * int(2 * REQUEST_WAIT_S + 2))
    assert [kind.__name__ for kind in waiting.outcome] == ["PeerRefusedError"]
    assert not waiting.connection.is_read
