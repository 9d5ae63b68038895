"""Memory for long bodies: who waits, who continues, and who is disconnected."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from grid.errors import PeerGoneError
from grid.wire.http.server.body_room import LOOK_BYTES, LOOK_S, BodyClaim, BodyRoom
from tests.support.virtual_time import VirtualClock

TOTAL = 1000 * 1000


@define(eq=False)
class Sender:
    """A connection that knows whether it was closed; its claim is released then, as a request's is that fails."""

    claim: BodyClaim = field(init=False)
    is_broken: bool = False
    was_aborted: bool = False
    is_held_back: bool = False
    outcomes: list[Any] = field(factory=list)

    def hold_back(self) -> None:
        self.is_held_back = True

    def abort(self) -> None:
        self.was_aborted = self.is_broken = True
        self.claim.__exit__(None, None, None)


class Scene:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.room = BodyRoom(TOTAL, self.clock)

    def sender(self, size: int = 0) -> Sender:
        sender = Sender()
        sender.claim = self.room.claim(sender)
        if size:
            self.take(sender, size)
        return sender

    def take(self, sender: Sender, size: int) -> bool:
        """Whether there was room at once."""
        before = len(sender.outcomes)
        Deferred.fromCoroutine(sender.claim.take(size)).addBoth(sender.outcomes.append)
        return len(sender.outcomes) > before


def test_bodies_while_there_is_room_wait_for_nobody() -> None:
    scene = Scene()
    senders = [scene.sender(TOTAL // 10) for _ in range(10)]
    assert all(sender.outcomes == [None] for sender in senders)
    scene.clock.task_clock.advance(1000.0)
    assert not any(sender.was_aborted for sender in senders)


def test_body_when_there_is_no_room_gets_it_from_those_that_stall() -> None:
    scene = Scene()
    stalled = [scene.sender(TOTAL // 10) for _ in range(10)]
    honest = scene.sender(TOTAL // 10)
    assert honest.outcomes == []
    assert honest.is_held_back
    scene.clock.task_clock.advance(LOOK_S)
    assert honest.outcomes == [None]
    assert all(sender.was_aborted for sender in stalled)
    assert not honest.was_aborted


def test_bodies_when_they_trickle_count_as_stalled() -> None:
    scene = Scene()
    oldest = scene.sender(TOTAL)
    honest = scene.sender(1000)
    scene.take(oldest, LOOK_BYTES - 1)
    scene.clock.task_clock.advance(LOOK_S)
    assert oldest.was_aborted
    assert honest.outcomes == [None]


def test_oldest_body_however_long_goes_on_and_others_follow_in_order() -> None:
    scene = Scene()
    oldest = scene.sender(TOTAL)
    others = [scene.sender(TOTAL // 2) for _ in range(3)]
    for _ in range(5):
        assert scene.take(oldest, LOOK_BYTES)
        scene.clock.task_clock.advance(LOOK_S)
    assert not oldest.was_aborted
    kept = oldest.claim.keep()
    oldest.claim.__exit__(None, None, None)
    assert [len(other.outcomes) for other in others] == [0, 0, 0]
    scene.room.release(kept)
    assert [len(other.outcomes) for other in others] == [1, 1, 0]


def test_bodies_while_whole_ones_are_worked_on_do_not_go_past_the_room() -> None:
    scene = Scene()
    whole = scene.sender(TOTAL)
    kept = whole.claim.keep()
    whole.claim.__exit__(None, None, None)
    others = [scene.sender(TOTAL // 2), scene.sender(TOTAL)]
    scene.clock.task_clock.advance(LOOK_S)
    assert [len(other.outcomes) for other in others] == [0, 0]
    assert scene.room.held_size == TOTAL
    scene.room.release(kept)
    assert [len(other.outcomes) for other in others] == [1, 0]


def test_complete_bodies_are_not_hurried() -> None:
    scene = Scene()
    complete = scene.sender(TOTAL - 10)
    complete.claim.keep()
    complete.claim.__exit__(None, None, None)
    going = scene.sender(10)
    waiting = scene.sender(10)
    scene.clock.task_clock.advance(LOOK_S)
    assert not complete.was_aborted
    assert going.was_aborted
    assert waiting.outcomes == [None]


def test_senders_that_go_away_while_they_wait_get_an_error() -> None:
    scene = Scene()
    oldest = scene.sender(TOTAL)
    gone = scene.sender(10)
    gone.is_broken = True
    scene.take(oldest, LOOK_BYTES)
    scene.clock.task_clock.advance(LOOK_S)
    (outcome,) = gone.outcomes
    assert outcome.check(PeerGoneError)


STEPS = st.lists(st.tuples(st.sampled_from(["new", "more", "end", "time"]), st.integers(0, 9), st.integers(1, TOTAL)))


@given(STEPS)
def test_room_whatever_happens_is_given_back_and_nobody_waits_forever(steps: list[tuple[str, int, int]]) -> None:
    scene = Scene()
    senders: list[Sender] = []
    for action, which, size in steps:
        going = [sender for sender in senders if not sender.is_broken]
        idle = [sender for sender in going if not sender.claim.wanted]
        if action == "new":
            senders.append(scene.sender(size))
        elif action == "more" and idle:
            scene.take(idle[which % len(idle)], size)
        elif action == "end" and idle:
            sender = idle[which % len(idle)]
            sender.is_broken = True
            sender.claim.__exit__(None, None, None)
        elif action == "time":
            scene.clock.task_clock.advance(LOOK_S)
    for _ in range(2 * len(senders) + 2):
        scene.clock.task_clock.advance(LOOK_S)
    assert all(not sender.claim.wanted for sender in senders)
    for sender in senders:
        if not sender.is_broken:
            sender.abort()
    assert scene.room.held_size == 0


@pytest.mark.parametrize("size", [1, TOTAL, 10 * TOTAL])
def test_body_that_is_alone_has_room_whatever_its_size(size: int) -> None:
    scene = Scene()
    assert scene.sender(size).outcomes == [None]


def test_bodies_whose_senders_are_gone_together_leave_the_others_their_turn() -> None:
    scene = Scene()
    whole = scene.sender(TOTAL * 7 // 10)
    kept = whole.claim.keep()
    first = scene.sender(TOTAL * 3 // 10)
    waiting = Deferred.fromCoroutine(first.claim.take(TOTAL * 3 // 10))
    waiting.addErrback(lambda _: first.claim.__exit__(None, None, None))
    second, honest = scene.sender(TOTAL * 2 // 10), scene.sender(TOTAL * 9 // 10)
    first.is_broken = second.is_broken = True
    scene.clock.task_clock.advance(LOOK_S)
    second.claim.__exit__(None, None, None)
    scene.room.release(kept)
    assert honest.outcomes == [None]


def test_body_when_its_task_is_canceled_while_it_waits_keeps_no_room() -> None:
    scene = Scene()
    holder = scene.sender(TOTAL)
    given_up = scene.sender()
    with given_up.claim:
        task = Deferred.fromCoroutine(given_up.claim.take(TOTAL // 2)).addErrback(lambda _: None)
        task.cancel()
    holder.claim.__exit__(None, None, None)
    assert scene.room.held_size == 0
    assert scene.sender(TOTAL).outcomes == [None]
