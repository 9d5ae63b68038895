"""A server with two ways to it: which one is used, and when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from grid.errors import (
    NobodyListensError,
    PeerGoneError,
    PeerTimeoutError,
)
from grid.wire.reasons import ABANDONED, ANOTHER_NODE, MUTE
from grid.wire.status import ConnectionState
from grid.wire.two_ways.fallback import RACE_S
from grid.wire.two_ways.headstart import AGAIN_S, HEAD_START_S
from grid.wire.two_ways.preference import FIRST_AVOIDED_S, LONGEST_AVOIDED_S, SILENCE_S
from tests.wire.foolscap.loopback import INDEX, VERSION, number
from tests.wire.two_ways.fallback_rig import WRONG_KEY, Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def said() -> Iterator[list[str]]:
    lines: list[str] = []

    @implementer(ILogObserver)
    def note(event: LogEvent) -> None:
        if event.get("log_namespace") == "grid.wire.two_ways.fallback":
            lines.append(event["log_format"].format(**event))

    globalLogPublisher.addObserver(note)
    yield lines
    globalLogPublisher.removeObserver(note)


def test_server_when_the_preferred_way_works_is_never_reached_the_other_way(rig: Rig) -> None:
    for _ in range(5):
        assert rig.read() == b"sample"
        rig.wait(1000)
    assert (rig.http.connects, rig.foolscap.connects) == (1, 0)
    assert rig.server.status.transport == "http" and not rig.server.status.fallback


def test_server_when_nothing_was_asked_has_connected_nowhere(rig: Rig) -> None:
    assert rig.server.status.state is ConnectionState.IDLE
    assert rig.server.known_version is None
    assert (rig.http.connects, rig.foolscap.connects) == (0, 0)


def test_server_when_the_preferred_way_is_dead_from_the_start_is_reached_the_other_way_and_says_so_once(
    rig: Rig, said: list[str]
) -> None:
    rig.http.script.down = WRONG_KEY
    for _ in range(5):
        assert rig.read() == b"sample"
        rig.wait(1)
    assert rig.server.status.transport == "foolscap"
    assert rig.server.status.fallback == f"HTTP does not work: {WRONG_KEY}"
    assert rig.server.known_version == VERSION
    assert len(said) == 1 and WRONG_KEY in said[0] and "Foolscap" in said[0]


def test_server_when_the_preferred_way_does_not_answer_is_reached_the_other_way_soon(rig: Rig) -> None:
    rig.http.script.connect_s = 1e6
    assert rig.read() == b"sample"
    assert rig.now < HEAD_START_S + 1
    assert "did not connect" in rig.server.status.fallback


def test_server_when_this_process_was_busy_meanwhile_does_not_hold_it_against_the_way(rig: Rig) -> None:
    rig.http.script.connect_s = HEAD_START_S + 0.5
    call = Deferred.fromCoroutine(rig.server.get_version())
    rig.runtime.clock.task_clock.advance(HEAD_START_S + 1)  # All that became due meanwhile is done at once.
    rig.run(call)
    assert rig.foolscap.connects == 0 and rig.server.status.transport == "http"


def test_server_when_the_preferred_way_comes_back_is_reached_by_it_again(rig: Rig, said: list[str]) -> None:
    rig.http.script.down = "refused"
    rig.read()
    rig.http.script.down = ""
    rig.wait(FIRST_AVOIDED_S - 1)
    rig.read()
    assert rig.http.connects == 1  # It is not yet time.
    rig.wait(2)
    before = rig.now
    rig.read()
    assert rig.now < before + 0.05  # The trial keeps nobody waiting,
    rig.wait(1)
    rig.read()  # and what comes after it goes the better way.
    assert rig.http.calls == ["read_shares"]
    assert rig.server.status.transport == "http" and not rig.server.status.fallback
    assert len(said) == 2 and "again" in said[1]


def test_server_when_the_preferred_way_stays_dead_tries_it_ever_more_rarely(rig: Rig, said: list[str]) -> None:
    rig.http.script.down = "refused"
    for _ in range(24 * 60):
        rig.read()
        rig.wait(60)
    most = 24 * 3600 / LONGEST_AVOIDED_S
    assert 0.8 * most <= rig.http.connects <= most + 10
    assert len(said) == 1


def test_server_when_neither_way_leads_there_fails_with_both_reasons_and_prefers_what_it_did(rig: Rig) -> None:
    rig.http.script.down, rig.foolscap.script.down = "no http", "no foolscap"
    with pytest.raises(PeerGoneError, match=r"HTTP: no http; Foolscap: no foolscap"):
        rig.read()
    assert rig.server.status.detail == "HTTP: no http; Foolscap: no foolscap"
    rig.http.script.down = rig.foolscap.script.down = ""
    assert rig.read() == b"sample"
    assert rig.server.status.transport == "http" and not rig.server.status.fallback


@pytest.mark.parametrize("telling", [ANOTHER_NODE, MUTE])
def test_server_when_one_way_says_what_is_wrong_with_the_node_says_only_that(rig: Rig, telling: str) -> None:
    rig.http.script.down, rig.foolscap.script.down = telling, "did not finish connecting"
    with pytest.raises(PeerGoneError, match=f": {telling}$"):
        rig.read()
    assert rig.server.status.detail == telling


def test_server_when_the_other_way_dies_while_it_serves_goes_back_at_once(rig: Rig) -> None:
    rig.http.script.down = "refused"
    rig.read()
    rig.http.script.down, rig.foolscap.script.down = "", "refused"
    rig.foolscap.lose()
    assert rig.read() == b"sample"
    assert rig.server.status.transport == "http"


def test_way_when_it_is_silent_and_callers_give_up_is_doubted(rig: Rig) -> None:
    rig.run(rig.server.connect())
    rig.http.script.silent = True
    call = Deferred.fromCoroutine(rig.server.find_shares(INDEX))
    rig.wait(SILENCE_S + 1)
    call.cancel()
    call.addErrback(lambda _: None)
    assert rig.server.known_version is None
    assert rig.read() == b"sample"
    assert rig.server.status.transport == "foolscap"
    assert "did not answer" in rig.server.status.fallback


def test_way_when_callers_give_up_soon_is_not_doubted(rig: Rig) -> None:
    rig.run(rig.server.connect())
    rig.http.script.silent = True
    give_up(rig, SILENCE_S / 2)
    rig.http.script.silent = False
    assert rig.read() == b"sample" and rig.foolscap.connects == 0


def give_up(rig: Rig, after_s: float) -> None:
    """Ask for something, and stop waiting after that time."""
    call = Deferred.fromCoroutine(rig.server.find_shares(INDEX))
    rig.wait(after_s)
    call.cancel()
    call.addErrback(lambda _: None)


def test_way_when_callers_with_little_patience_never_get_an_answer_is_doubted_too(rig: Rig) -> None:
    rig.run(rig.server.connect())
    rig.http.script.silent = True
    for _ in range(4):
        assert rig.server.known_version is not None
        rig.wait(60)
        give_up(rig, 0.3 * SILENCE_S)
    assert rig.server.known_version is None
    assert rig.read() == b"sample" and rig.server.status.transport == "foolscap"


def test_way_when_calls_are_given_up_among_others_that_are_answered_is_not_doubted(rig: Rig) -> None:
    rig.run(rig.server.connect())
    for _ in range(50):
        rig.http.script.silent = True
        give_up(rig, 0.3 * SILENCE_S)
        rig.http.script.silent = False
        rig.read()
    assert rig.server.known_version is not None and rig.foolscap.connects == 0


def test_way_when_a_large_read_is_given_up_before_it_can_have_come_is_not_doubted(rig: Rig) -> None:
    rig.run(rig.server.connect())
    rig.http.script.silent = True
    call = Deferred.fromCoroutine(rig.server.read_shares(INDEX, {number(1): [(0, 2**20)]}))
    rig.wait(5)
    call.cancel()
    call.addErrback(lambda _: None)
    assert rig.server.known_version is not None


def test_way_when_the_server_was_only_slow_answers_for_itself_and_is_kept(rig: Rig) -> None:
    rig.run(rig.server.connect())
    rig.http.script.silent = True
    give_up(rig, 3.0)
    rig.http.script.silent = False
    assert rig.read() == b"sample"
    assert rig.http.calls == ["get_version", "read_shares"]
    assert rig.server.status.transport == "http" and not rig.foolscap.calls


def test_way_when_it_answers_for_its_version_but_for_nothing_else_is_left(rig: Rig) -> None:
    rig.run(rig.server.connect())
    for _ in range(3):
        rig.http.script.silent = True
        give_up(rig, 1.0)
        rig.http.script.silent = False
        if rig.server.known_version is None:
            rig.run(rig.server.connect())
    assert rig.server.status.transport == "foolscap"


def test_server_when_one_way_hangs_and_the_other_comes_back_is_reached_by_that(rig: Rig) -> None:
    rig.http.script.connect_s = 1e9
    rig.foolscap.script.down = "refused"
    call = Deferred.fromCoroutine(rig.server.get_version())
    rig.wait(HEAD_START_S + 0.5)
    rig.foolscap.script.down = ""
    rig.run(call)
    assert rig.now < HEAD_START_S + AGAIN_S + 1 and rig.server.status.transport == "foolscap"


def test_server_when_one_way_hangs_and_the_other_is_down_fails_in_time_and_every_time(rig: Rig) -> None:
    rig.http.script.connect_s = 1e9
    rig.foolscap.script.down = "refused"
    for attempt in range(1, 4):
        with pytest.raises(PeerTimeoutError, match="did not finish"):
            rig.run(rig.server.get_version())
        assert rig.now <= attempt * (RACE_S + 0.1)
    rig.foolscap.script.down = ""
    assert rig.read() == b"sample"


def test_preferred_way_when_its_trial_hangs_is_tried_again_later(rig: Rig) -> None:
    rig.http.script.down = "refused"
    rig.read()
    rig.http.script.down, rig.http.script.connect_s = "", 1e9
    rig.wait(FIRST_AVOIDED_S + 1)
    rig.read()
    rig.wait(LONGEST_AVOIDED_S)
    rig.http.script.connect_s = 0.1
    rig.read()
    rig.wait(1)
    rig.read()
    assert rig.server.status.transport == "http"


def test_server_when_it_is_announced_again_forgets_the_failures_of_both_ways(rig: Rig) -> None:
    rig.http.script.down = "refused"
    rig.read()
    rig.http.script.down = ""
    rig.server.forget_failures()
    assert (rig.http.forgotten, rig.foolscap.forgotten) == (1, 1)
    rig.read()
    rig.wait(1)
    rig.read()
    assert rig.server.status.transport == "http"


HERE, THERE = ("127.0.0.1", 1), ("127.0.0.1", 2)


@pytest.mark.parametrize(
    ("http", "foolscap", "attempts"),
    [
        ({HERE}, {HERE}, 0),
        ({HERE, THERE}, {HERE}, 0),
        ({HERE}, {HERE, THERE}, 1),
        ({HERE}, {THERE}, 1),
        (set(), set(), 1),
    ],
)
def test_server_when_nobody_listens_at_a_place_is_not_asked_there_in_another_protocol(
    http: set[tuple[str, int]], foolscap: set[tuple[str, int]], attempts: int
) -> None:
    rig = Rig(http=frozenset(http), foolscap=frozenset(foolscap))
    rig.http.script.down = "connection refused"
    rig.http.script.refusal = NobodyListensError
    rig.foolscap.script.down = "connection refused"
    with pytest.raises(PeerGoneError, match=r"reached: connection refused$"):
        rig.read()
    assert (rig.http.connects, rig.foolscap.connects) == (1, attempts)
    rig.http.script.down = rig.foolscap.script.down = ""
    assert rig.read() == b"sample"


def test_server_when_both_ways_fail_alike_says_so_once_and_in_short(rig: Rig) -> None:
    rig.http.script.down = rig.foolscap.script.down = "connection refused"
    with pytest.raises(PeerGoneError) as caught:
        rig.read()
    assert str(caught.value) == "server test cannot be reached: connection refused"
    assert rig.server.status.detail == "connection refused"


def test_server_when_an_attempt_one_way_was_abandoned_says_what_is_wrong_with_the_other(rig: Rig) -> None:
    rig.http.script.down, rig.foolscap.script.down = ABANDONED, "did not finish connecting within 15 s"
    with pytest.raises(PeerGoneError):
        rig.read()
    assert rig.server.status.detail == "did not finish connecting within 15 s"


def test_way_when_it_is_doubted_and_the_other_does_not_work_is_kept(rig: Rig) -> None:
    rig.foolscap.script.down = "refused"
    rig.run(rig.server.connect())
    rig.http.script.cut_before, rig.http.script.failure = 1, lambda: PeerTimeoutError("late")
    assert rig.read() == b"sample"
    assert rig.http.calls == ["read_shares"] and rig.foolscap.connects == 1
    assert rig.read() == b"sample" and rig.foolscap.connects == 1


def test_server_when_many_calls_are_cut_at_once_counts_that_as_one_fault(rig: Rig) -> None:
    rig.run(rig.server.connect())
    rig.http.script.cut_before = 8
    calls = [Deferred.fromCoroutine(rig.server.read_slot(INDEX, frozenset(), [(0, 1)])) for _ in range(8)]
    for call in calls:
        rig.run(call)
    assert rig.http.calls == ["read_slot"] * 8 and rig.foolscap.connects == 0


def test_server_when_many_call_at_once_connects_once(rig: Rig) -> None:
    rig.http.script.down = "refused"
    calls = [Deferred.fromCoroutine(rig.server.get_version()) for _ in range(20)]
    for call in calls:
        rig.run(call)
    assert (rig.http.connects, rig.foolscap.connects) == (1, 1)


def test_close_when_callers_wait_fails_them_and_closes_both_ways(rig: Rig) -> None:
    rig.http.script.connect_s = rig.foolscap.script.connect_s = 100
    call = Deferred.fromCoroutine(rig.server.get_version())
    rig.wait(HEAD_START_S + 1)
    rig.server.close()
    with pytest.raises(PeerGoneError):
        rig.run(call)
    assert rig.http.closed and rig.foolscap.closed
