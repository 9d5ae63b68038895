"""How long a client may take to send: in virtual time, and trickling gains a connection no extra time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.testing import StringTransport

from grid.limits import HTTP_BODY_RATE, HTTP_HEAD_DEADLINE_S, HTTP_STALL_DEADLINE_S
from grid.wire.connections.connection_limit import ConnectionLimit, Permit, Standing
from grid.wire.http.server.channel import ServerChannel
from grid.wire.http.server.client_time import TICK_S
from grid.wire.http.server.exchange import Exchange
from tests.support.virtual_time import VirtualClock

LENGTH = 10**6


class Transport(StringTransport):
    """A transport in memory that knows when it was cut off."""

    is_aborted = False

    def setTcpNoDelay(self, enabled: bool) -> None:
        pass

    def abortConnection(self) -> None:
        self.is_aborted = True
        super().abortConnection()  # type: ignore[no-untyped-call]


class Scene:
    """A connection whose requests a handler reads to their ends, admitted or refused."""

    def __init__(self, *, admits: bool) -> None:
        self.clock = VirtualClock()
        self.transport: Any = Transport()  # type: ignore[no-untyped-call]
        self.read_size = 0
        self._admits = admits
        connection_limit = ConnectionLimit()
        permit = connection_limit.acquire("192.0.2.1")
        assert permit is not None
        self._permit: Permit = permit
        self.channel = ServerChannel(self._handle, self.clock, permit, lambda _: None)
        self.channel.makeConnection(self.transport)  # type: ignore[no-untyped-call]

    def standing(self) -> Standing:
        return self._permit.standing

    def waited_s(self) -> float:
        return self._permit.waited_s

    async def _handle(self, exchange: Exchange) -> None:
        if not self._admits:
            exchange.send(401)
            return
        exchange.admit()
        while pieces := await exchange.read_piece(1):
            self.read_size += sum(map(len, pieces))
        exchange.send(200)

    def send(self, data: bytes) -> None:
        if not self.transport.is_aborted:
            self.channel.dataReceived(data)

    def cut_after(self, every_s: float, step: Callable[[], None], longest_s: float) -> float | None:
        """When it was cut off, `step` being called again and again; None if it was not."""
        waited_s = 0.0
        while waited_s < longest_s:
            self.clock.task_clock.advance(every_s)
            waited_s += every_s
            if self.transport.is_aborted:
                return waited_s
            step()
        return None


def begin(scene: Scene) -> None:
    scene.send(f"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: {LENGTH}\r\n\r\n".encode())


@pytest.mark.parametrize("admits", [True, False])
@pytest.mark.parametrize("every_s", [1.0, 20.0])
def test_body_when_it_trickles_is_cut_off_as_if_it_had_stopped(admits: bool, every_s: float) -> None:
    scene = Scene(admits=admits)
    begin(scene)
    after_s = scene.cut_after(every_s, lambda: scene.send(b"x"), 1000.0)
    assert after_s is not None
    assert after_s <= (HTTP_STALL_DEADLINE_S if admits else HTTP_HEAD_DEADLINE_S) + TICK_S + every_s


def test_body_when_it_is_slow_but_keeps_coming_is_read_to_its_end() -> None:
    scene = Scene(admits=True)
    begin(scene)
    per_step = b"x" * (HTTP_BODY_RATE // 4)
    assert scene.cut_after(HTTP_STALL_DEADLINE_S / 5, lambda: scene.send(per_step), 3000.0) is None
    assert scene.read_size > 40 * HTTP_BODY_RATE


def test_head_when_it_trickles_is_cut_off() -> None:
    scene = Scene(admits=True)
    scene.send(b"POST /x HTTP/1.1\r\nX: ")
    after_s = scene.cut_after(1.0, lambda: scene.send(b"x"), 1000.0)
    assert after_s is not None
    assert after_s <= HTTP_HEAD_DEADLINE_S + TICK_S + 1.0


def test_request_when_it_is_refused_gives_its_permit_to_anybody_while_its_body_is_dropped() -> None:
    scene = Scene(admits=False)
    begin(scene)
    scene.send(b"x" * 1000)
    assert b" 401 " in scene.transport.value()
    assert scene.standing() is Standing.STRANGER


def test_request_when_it_is_admitted_holds_its_permit_by_how_long_its_body_is_waited_for() -> None:
    scene = Scene(admits=True)
    begin(scene)
    assert scene.standing() is Standing.ACTIVE
    scene.clock.task_clock.advance(2.0)
    scene.send(b"x")
    scene.clock.task_clock.advance(2.0)
    assert scene.waited_s() == 4.0
    scene.send(b"x" * HTTP_BODY_RATE)
    assert scene.waited_s() == 0.0
    scene.send(b"x" * (LENGTH - 1 - HTTP_BODY_RATE))
    assert b" 200 " in scene.transport.value()
    assert scene.standing() is Standing.IDLE
