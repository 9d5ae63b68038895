"""A long request sent after another one on its connection, before that is answered."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from grid.errors import PeerGoneError
from grid.runtime import ReactorClock
from grid.wire.http.client.connection import ClientConnection, Collector
from grid.wire.http.format.messages import ResponseHead

ANSWERS = b"".join(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + body for body in (b"one", b"two"))


class Transport(StringTransport):
    """A socket that takes everything, or nothing while `is_full`."""

    is_aborted = False
    protocol: ClientConnection

    def setTcpNoDelay(self, enabled: bool) -> None:
        return

    def abortConnection(self) -> None:
        self.is_aborted = True
        self.protocol.connectionLost(Failure(ConnectionDone()))


class Line:
    """A connection, and what comes of the requests that are sent over it."""

    def __init__(self) -> None:
        self.connection = ClientConnection(ReactorClock(Clock()), "the server", lambda _: None)
        self.transport: Any = Transport()  # type: ignore[no-untyped-call]
        self.transport.protocol = self.connection
        self.connection.makeConnection(self.transport)  # type: ignore[no-untyped-call]
        self.bodies: list[Collector] = []

    def ask(self, name: bytes, *, may_be_followed: bool = True) -> Deferred[Any]:
        def choose(head: ResponseHead) -> Collector:
            self.bodies.append(Collector(100, "the server"))
            return self.bodies[-1]

        return Deferred.fromCoroutine(self.connection.ask([name], choose, may_be_followed=may_be_followed))

    def outcome(self, asked: Deferred[Any]) -> object:
        """The exception's type, the status, or None if nothing has come of it yet."""
        results: list[object] = []
        asked.addCallbacks(lambda head: results.append(head.status), lambda failure: results.append(failure.type))
        return results[0] if results else None


@pytest.mark.parametrize("size", [1, 7, len(ANSWERS)])
def test_requests_when_one_follows_the_other_get_their_answers_in_order(size: int) -> None:
    line = Line()
    first = line.ask(b"first ")
    assert line.connection.may_be_followed
    second = line.ask(b"second")
    assert line.transport.value() == b"first second"
    assert not line.connection.may_be_followed, "two are enough to keep a line busy"
    for start in range(0, len(ANSWERS), size):
        line.connection.dataReceived(ANSWERS[start : start + size])
    assert [line.outcome(first), line.outcome(second)] == [200, 200]
    assert [bytes(body.body) for body in line.bodies] == [b"one", b"two"]
    assert line.connection.is_reusable and not line.connection.is_awaited


def test_request_when_it_is_short_is_not_followed() -> None:
    line = Line()
    line.ask(b"short", may_be_followed=False)
    assert not line.connection.may_be_followed


def test_requests_when_the_first_is_canceled_or_cut_off_both_end() -> None:
    line = Line()
    first, second = line.ask(b"first"), line.ask(b"second")
    first.addErrback(lambda failure: failure.trap(CancelledError))
    first.cancel()
    assert line.transport.is_aborted
    assert line.outcome(second) is PeerGoneError

    line = Line()
    first, second = line.ask(b"first"), line.ask(b"second")
    line.connection.dataReceived(ANSWERS[: len(ANSWERS) // 2])
    line.connection.connectionLost(Failure(ConnectionDone()))
    assert [line.outcome(first), line.outcome(second)] == [200, PeerGoneError]
    assert not line.connection.got_bytes, "the second may be sent again"


def test_requests_when_the_first_is_answered_too_soon_both_end() -> None:
    line = Line()
    line.connection.pauseProducing()  # The socket is full.
    first, second = line.ask(b"first"), line.ask(b"second")
    line.connection.dataReceived(ANSWERS[: len(ANSWERS) // 2])
    assert line.transport.is_aborted
    assert [line.outcome(first), line.outcome(second)] == [200, PeerGoneError]


def test_answers_when_there_are_more_than_requests_end_the_connection() -> None:
    line = Line()
    first = line.ask(b"first")
    line.connection.dataReceived(ANSWERS)
    assert line.outcome(first) == 200
    assert line.transport.is_aborted and not line.connection.is_reusable
