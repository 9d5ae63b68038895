"""Memory that the calls of a connection hold, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

from grid.limits import MAX_CALLS_EACH, MESSAGE_REVIEW_S, OVERSIZE_ANSWERS_BYTES, REQUESTS_BYTES
from grid.wire.budget.server_memory import CallCount, ServerMemory
from grid.wire.foolscap.call_load import CallLoad
from tests.support.virtual_time import VirtualRuntime

MIB = 2**20


class Scene:
    """Connections of one server, with the calls that each got."""

    def __init__(self) -> None:
        self.clock = VirtualRuntime().clock
        self.memory = ServerMemory(self.clock)
        self.dropped: list[int] = []
        self.calls: dict[int, list[bool]] = {}

    def load(self, name: int) -> CallLoad:
        calls = self.calls[name] = []
        return CallLoad(self.memory, calls.append, lambda: self.dropped.append(name))

    def loads(self, count: int) -> Sequence[CallLoad]:
        return [self.load(name) for name in range(count)]

    def is_whole(self) -> bool:
        return self.memory.requests.try_acquire(REQUESTS_BYTES) and self.memory.calls.has_room


def test_connection_with_too_many_calls_is_read_again_when_one_has_ended() -> None:
    scene = Scene()
    load = scene.load(0)
    for call in range(MAX_CALLS_EACH):
        assert load.is_listening
        load.call_came(call)
    assert not load.is_listening
    load.call_ended(7)
    assert scene.calls[0] == [False, True]
    for call in range(MAX_CALLS_EACH):
        load.call_ended(call)
    assert scene.is_whole()


def test_connections_when_all_have_too_many_calls_still_have_one_each() -> None:
    scene = Scene()
    scene.memory.calls = CallCount(3)
    first, second = scene.loads(2)
    for call in range(3):
        first.call_came(call)
    second.call_came("second")
    assert not first.is_listening
    assert not second.is_listening
    for call in range(3):
        first.call_ended(call)
    assert first.is_listening
    assert second.is_listening
    second.call_ended("second")
    assert second.call_count == 0


def test_message_when_there_is_no_room_waits_unheard_until_a_call_has_ended() -> None:
    scene = Scene()
    first, second = scene.loads(2)
    first.message_holds(REQUESTS_BYTES, 0)
    second.message_holds(MIB, 0)
    assert first.is_listening
    assert not second.is_listening
    first.call_came("write")
    first.message_ended()
    assert not second.is_listening
    first.call_ended("write")
    assert second.is_listening
    second.close()
    assert scene.is_whole()


def test_small_message_needs_no_room() -> None:
    scene = Scene()
    first, second = scene.loads(2)
    first.message_holds(REQUESTS_BYTES, 0)
    second.message_holds(1000, 0)
    assert second.is_listening
    first.close()


def test_message_larger_than_all_room_is_taken_when_it_is_alone() -> None:
    scene = Scene()
    first, second = scene.loads(2)
    first.message_holds(MIB, 0)
    second.message_holds(3 * REQUESTS_BYTES, 0)
    assert not second.is_listening
    first.message_ended()
    assert second.is_listening
    second.message_ended()
    assert scene.is_whole()


def test_messages_that_grow_and_wait_for_each_other_go_on_one_at_a_time() -> None:
    scene = Scene()
    loads = scene.loads(3)
    half = REQUESTS_BYTES // 2
    for load in loads[:2]:
        load.message_holds(half, 0)
    for load in loads[:2]:
        load.message_holds(REQUESTS_BYTES, 0)
    assert [load.is_listening for load in loads] == [True, False, True]
    loads[0].call_came("first")
    loads[0].message_ended()
    assert not loads[1].is_listening
    loads[0].call_ended("first")
    assert loads[1].is_listening
    loads[1].message_ended()
    assert scene.is_whole()


def test_messages_that_outgrow_all_room_are_held_one_at_a_time_until_their_calls_have_ended() -> None:
    scene = Scene()
    loads = scene.loads(2)
    for load in loads:
        load.message_holds(MIB, 0)
    for load in loads:
        load.message_holds(4 * REQUESTS_BYTES, 0)
    loads[0].call_came("write")
    loads[0].message_ended()
    assert not loads[1].is_listening
    assert scene.memory.requests.free >= -4 * REQUESTS_BYTES
    loads[0].call_ended("write")
    assert loads[1].is_listening
    loads[1].close()
    assert scene.is_whole()


def test_message_that_outgrows_all_room_step_by_step_takes_as_much_from_answers_as_one_that_does_at_once() -> None:
    scene = Scene()
    load = scene.load(0)
    load.message_holds(MIB, 0)
    for size in range(REQUESTS_BYTES, 3 * REQUESTS_BYTES, MIB):
        load.message_holds(size, 0)
        assert load.is_listening
    assert scene.memory.answers.held_size == OVERSIZE_ANSWERS_BYTES
    load.close()
    assert scene.memory.answers.held_size == 0
    assert scene.is_whole()


def test_message_that_outgrows_what_others_leave_takes_room_from_answers() -> None:
    scene = Scene()
    first, second = scene.loads(2)
    first.message_holds(REQUESTS_BYTES - MIB, 0)
    second.message_holds(MIB, 0)
    second.message_holds(9 * MIB, 0)
    assert second.is_listening
    assert scene.memory.answers.held_size >= 8 * MIB
    second.close()
    first.close()
    assert scene.memory.answers.held_size == 0
    assert scene.is_whole()


def test_message_of_several_long_strings_is_taken_whole_when_it_outgrows_all_room() -> None:
    scene = Scene()
    load = scene.load(0)
    for count in range(1, 6):
        load.message_holds(count * (REQUESTS_BYTES * 2 // 3), 0)
        assert load.is_listening
    load.call_came("write")
    load.message_ended()
    load.call_ended("write")
    assert scene.is_whole()


def test_message_that_stalls_ends_its_connection() -> None:
    scene = Scene()
    slow, steady = scene.loads(2)
    slow.message_holds(MIB, 0)
    for second in range(int(2 * MESSAGE_REVIEW_S) + 1):
        steady.message_holds(MIB, second * 10_000)
        scene.clock.task_clock.advance(1)
    assert scene.dropped == [0]
    for load in (slow, steady):
        load.close()
    assert not scene.clock.task_clock.getDelayedCalls()
    assert scene.is_whole()


def test_connection_that_goes_while_it_waits_leaves_nothing_held() -> None:
    scene = Scene()
    first, second = scene.loads(2)
    first.message_holds(REQUESTS_BYTES, 0)
    second.message_holds(MIB, 0)
    second.close()
    first.close()
    assert scene.is_whole()


def test_message_that_trickles_gives_way_while_another_waits_for_room() -> None:
    scene = Scene()
    slow, waiting = scene.loads(2)
    slow.message_holds(REQUESTS_BYTES, 0)
    waiting.message_holds(MIB, 0)
    for second in range(8):
        slow.message_holds(REQUESTS_BYTES, second * 6000)
        scene.clock.task_clock.advance(1)
    assert scene.dropped == [0]
    slow.close()
    assert waiting.is_listening
    waiting.close()
    scene.clock.task_clock.advance(1)
    assert not scene.clock.task_clock.getDelayedCalls()
    assert scene.is_whole()


def test_message_that_completes_in_a_minute_keeps_its_room_while_another_waits() -> None:
    scene = Scene()
    steady, waiting = scene.loads(2)
    steady.message_holds(REQUESTS_BYTES, 0)
    waiting.message_holds(MIB, 0)
    for quarter in range(1, 200):
        # What its connection is read by, half a megabyte, is all that is seen of it.
        scene.clock.task_clock.advance(0.25)
        steady.message_holds(REQUESTS_BYTES, quarter * (REQUESTS_BYTES // 200) // (MIB // 2) * (MIB // 2))
    assert scene.dropped == []
    steady.close()
    waiting.close()


def test_connection_that_goes_while_it_waits_lets_the_next_one_in_at_once() -> None:
    scene = Scene()
    first, second, third = scene.loads(3)
    first.message_holds(REQUESTS_BYTES - MIB, 0)
    second.message_holds(REQUESTS_BYTES, 0)
    third.message_holds(MIB, 0)
    assert not third.is_listening
    second.close()
    assert third.is_listening
    first.close()
    third.close()
    assert scene.is_whole()
