"""One server's session: short tries while its backoff runs, and its state in words."""

from __future__ import annotations

import pytest
from attrs import define, field

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
class Place:
    """A server that connects after takes_s, or fails then."""

    runtime: VirtualRuntime = field(factory=VirtualRuntime)
    error: Exception | None = None
    takes_s: float = 0.0
    attempts_at: list[float] = field(factory=list)
    keeper: SessionKeeper[Session] = field(init=False)

    def __attrs_post_init__(self) -> None:
        connector = Connector(transport="t", connect=self.connect, place=lambda _: "tcp:there:1")
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
def place() -> Place:
    return Place()


def test_session_when_the_server_is_back_within_the_backoff_is_made_by_the_first_call(place: Place) -> None:
    place.error = PeerUnreachableError("refused")
    for _ in range(100):  # Long enough for the longest delay.
        place.fail()
        place.wait(1.0)
    place.error = None
    assert place.ask() is place.keeper.current


def test_session_when_the_backoff_runs_is_tried_at_most_once_a_second(place: Place) -> None:
    place.error = PeerUnreachableError("refused")
    for _ in range(600):
        place.fail()
        place.wait(0.1)
    assert len(place.attempts_at) <= 61
    gaps = [after - before for before, after in zip(place.attempts_at, place.attempts_at[1:], strict=False)]
    assert min(gaps[1:]) >= ATTEMPTS_APART_S - 0.001


def test_session_when_the_server_hangs_in_its_backoff_costs_one_call_a_short_try_and_the_others_nothing(
    place: Place,
) -> None:
    place.error = PeerUnreachableError("refused")
    for _ in range(20):
        place.fail()
        place.wait(1.0)
    place.takes_s = 1e9
    began = place.now
    place.fail()
    assert place.now - began == pytest.approx(SHORT_TRY_S)
    for _ in range(10):
        began = place.now
        place.fail()
        assert place.now == began
    place.wait(20)
    assert place.keeper.status.detail == "did not finish connecting within 15 s"


def test_session_when_a_short_try_takes_longer_is_there_for_the_next_call(place: Place) -> None:
    place.error = PeerUnreachableError("refused")
    for _ in range(20):
        place.fail()
        place.wait(1.0)
    place.error, place.takes_s = None, 0.8
    place.fail()
    place.wait(0.5)
    assert place.keeper.current is not None


def test_session_when_the_server_is_announced_again_is_made_without_regard_to_the_backoff(place: Place) -> None:
    place.error = PeerUnreachableError("refused")
    for _ in range(20):
        place.fail()
        place.wait(1.0)
    place.error, place.takes_s = None, 5.0  # Longer than a short try.
    place.wait(ATTEMPTS_APART_S)
    place.keeper.forget_failures()
    assert place.ask() is place.keeper.current


def test_session_when_the_server_is_announced_again_and_again_is_still_tried_once_a_second(place: Place) -> None:
    place.error = PeerUnreachableError("refused")
    for _ in range(100):
        place.keeper.forget_failures()
        place.fail()
        place.wait(0.1)
    assert len(place.attempts_at) <= 12


@pytest.mark.parametrize("error", [ValueError("a..b"), RuntimeError("x"), PeerError("nonsense", reason="nonsense")])
def test_session_when_an_attempt_fails_in_any_manner_backs_off(place: Place, error: Exception) -> None:
    place.error = error
    with pytest.raises(PeerError):
        place.ask()
    with pytest.raises(PeerUnreachableError, match="server x is away"):
        place.ask()
    assert place.keeper.status.state is ConnectionState.WAITING and place.keeper.status.detail
    assert len(place.attempts_at) == 1


def test_backoff_when_failures_go_on_grows_to_its_limit(place: Place) -> None:
    place.error = PeerUnreachableError("refused", reason="refused")
    for _ in range(20):
        place.fail()
        place.wait(1.0)
    place.fail()
    with pytest.raises(
        PeerUnreachableError, match=rf"\(refused\); the next attempt is in {MAX_RECONNECT_DELAY_S:.1f} s"
    ):
        place.ask()


def test_close_when_an_attempt_is_under_way_ends_it_and_the_next_call_connects(place: Place) -> None:
    place.takes_s = 3.0
    place.wait(0)

    async def close() -> None:
        await place.runtime.clock.sleep(1.0)
        place.keeper.close()

    async def both() -> None:
        from twisted.internet.defer import Deferred

        closing = Deferred.fromCoroutine(close())
        with pytest.raises(PeerGoneError, match="given up"):
            await place.keeper.session()
        await closing

    place.runtime.run(both())
    assert place.ask() is place.keeper.current
