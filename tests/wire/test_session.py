"""One server's session: short attempts during its backoff, and its state in words."""

from __future__ import annotations

import pytest
from attrs import define, field
from twisted.internet.defer import Deferred

from grid.errors import PeerError, PeerGoneError, PeerUnreachableError
from grid.limits import MAX_RECONNECT_DELAY_S
from grid.ports import ServerVersion
from grid.wire.backoff import ATTEMPTS_APART_S, SHORT_TRY_S
from grid.wire.session import Connector, SessionKeeper
from grid.wire.status import ConnectionState
from tests.support.virtual_time import VirtualRuntime
from tests.wire.foolscap.loopback import VERSION


@define(eq=False)
class Session:
    version: ServerVersion = VERSION


@define
class FakeServer:
    """A server that connects after takes_s, or fails then."""

    runtime: VirtualRuntime = field(factory=VirtualRuntime)
    error: Exception | None = None
    takes_s: float = 0.0
    attempts_at: list[float] = field(factory=list)
    keeper: SessionKeeper[Session] = field(init=False)

    def __attrs_post_init__(self) -> None:
        connector = Connector(transport="t", connect=self.connect, address=lambda _: "tcp:there:1")
        self.keeper = SessionKeeper(connector, self.runtime.clock, "server x", 15.0)

    async def connect(self) -> Session:
        self.attempts_at.append(self.runtime.clock.now())
        if self.takes_s:
            await self.runtime.clock.sleep(self.takes_s)
        if self.error is not None:
            raise self.error
        return Session()

    def ask(self) -> Session:
        return self.runtime.run(self.keeper.session())

    def wait(self, seconds: float) -> None:
        self.runtime.clock.task_clock.advance(seconds)

    def fail(self) -> None:
        with pytest.raises(PeerGoneError):
            self.ask()

    @property
    def now(self) -> float:
        return self.runtime.clock.now()


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


def test_session_when_the_server_is_back_within_the_backoff_is_made_by_the_first_call(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused")
    for _ in range(100):  # Long enough for the longest delay.
        server.fail()
        server.wait(1.0)
    server.error = None
    assert server.ask() is server.keeper.current


def test_session_when_the_backoff_runs_is_tried_at_most_once_a_second(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused")
    for _ in range(600):
        server.fail()
        server.wait(0.1)
    assert len(server.attempts_at) <= 61
    gaps = [after - before for before, after in zip(server.attempts_at, server.attempts_at[1:], strict=False)]
    assert min(gaps[1:]) >= ATTEMPTS_APART_S - 0.001


def test_session_when_the_server_hangs_in_its_backoff_costs_one_call_a_short_try_and_the_others_nothing(
    server: FakeServer,
) -> None:
    server.error = PeerUnreachableError("refused")
    for _ in range(20):
        server.fail()
        server.wait(1.0)
    server.takes_s = 1e9
    began = server.now
    server.fail()
    assert server.now - began == pytest.approx(SHORT_TRY_S)
    for _ in range(10):
        began = server.now
        server.fail()
        assert server.now == began
    server.wait(20)
    assert server.keeper.status.detail == "did not finish connecting within 15 s"


def test_session_when_it_is_tried_again_still_says_why_the_last_attempt_failed(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused", reason="refused")
    server.fail()
    server.takes_s = 1e9
    server.wait(MAX_RECONNECT_DELAY_S)
    waiting = Deferred.fromCoroutine(server.keeper.session())
    assert server.keeper.status.state is ConnectionState.CONNECTING and server.keeper.status.detail == "refused"
    server.keeper.close()
    waiting.addErrback(lambda failure: failure.trap(PeerError))


def test_session_when_a_short_try_takes_longer_is_there_for_the_next_call(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused")
    for _ in range(20):
        server.fail()
        server.wait(1.0)
    server.error, server.takes_s = None, 0.8
    server.fail()
    server.wait(0.5)
    assert server.keeper.current is not None


def test_session_when_the_server_is_announced_again_is_made_without_regard_to_the_backoff(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused")
    for _ in range(20):
        server.fail()
        server.wait(1.0)
    server.error, server.takes_s = None, 5.0  # Longer than a short try.
    server.wait(ATTEMPTS_APART_S)
    server.keeper.forget_failures()
    assert server.ask() is server.keeper.current


def test_session_when_the_server_is_announced_again_and_again_is_still_tried_once_a_second(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused")
    for _ in range(100):
        server.keeper.forget_failures()
        server.fail()
        server.wait(0.1)
    assert len(server.attempts_at) <= 12


@pytest.mark.parametrize("error", [ValueError("a..b"), RuntimeError("x"), PeerError("nonsense", reason="nonsense")])
def test_session_when_an_attempt_fails_in_any_manner_backs_off(server: FakeServer, error: Exception) -> None:
    server.error = error
    with pytest.raises(PeerError):
        server.ask()
    with pytest.raises(PeerUnreachableError, match="server x cannot be reached"):
        server.ask()
    assert server.keeper.status.state is ConnectionState.WAITING and server.keeper.status.detail
    assert len(server.attempts_at) == 1


def test_backoff_when_failures_go_on_grows_to_its_limit(server: FakeServer) -> None:
    server.error = PeerUnreachableError("refused", reason="refused")
    for _ in range(20):
        server.fail()
        server.wait(1.0)
    server.fail()
    with pytest.raises(
        PeerUnreachableError, match=rf"\(refused\); the next attempt is in {MAX_RECONNECT_DELAY_S:.1f} s"
    ):
        server.ask()


def test_close_when_an_attempt_is_under_way_ends_it_and_the_next_call_connects(server: FakeServer) -> None:
    server.takes_s = 3.0
    server.wait(0)

    async def close() -> None:
        await server.runtime.clock.sleep(1.0)
        server.keeper.close()

    async def both() -> None:
        from twisted.internet.defer import Deferred

        closing = Deferred.fromCoroutine(close())
        with pytest.raises(PeerGoneError, match="abandoned"):
            await server.keeper.session()
        await closing

    server.runtime.run(both())
    assert server.ask() is server.keeper.current
