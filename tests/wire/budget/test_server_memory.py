from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred

from grid.errors import PeerGoneError, PeerRefusedError
from grid.limits import (
    ANSWERS_BYTES,
    OVERSIZE_ANSWERS_BYTES,
    REQUEST_WAIT_S,
    REQUESTS_BYTES,
    SMALL_ANSWER,
    SMALL_ANSWERS_BYTES,
)
from grid.wire.budget.server_memory import LOOK_S, RETURN_SIZE, ByteBudget, MadeWay, ServerMemory
from tests.support.virtual_time import VirtualRuntime


@given(st.lists(st.integers(0, 15), max_size=20))
def test_budget_when_asked_for_more_than_there_is_hands_it_out_in_turn(sizes: list[int]) -> None:
    budget = ByteBudget(10)
    granted: list[tuple[int, int]] = []

    async def hold(index: int, size: int) -> None:
        granted.append((index, await budget.acquire(size)))

    tasks = [Deferred.fromCoroutine(hold(index, size)) for index, size in enumerate(sizes)]
    released = 0
    while released < len(granted):
        assert sum(size for _, size in granted[released:]) <= 10
        budget.release(granted[released][1])
        released += 1
    assert granted == [(index, min(10, size)) for index, size in enumerate(sizes)]
    assert all(task.called for task in tasks)


class Silent:
    """A client that reads none of its answers."""

    is_gone = False
    received_size = 0
    peer_address = None

    def give_up(self) -> None:
        self.is_gone = True


def test_requests_do_not_wait_for_clients_that_take_nothing_of_their_answers() -> None:
    clock = VirtualRuntime().clock
    memory = ServerMemory(clock)
    client = Silent()
    room = memory.answers.reserve(client)
    room.holds_request = True
    assert room.take(100)
    room.sending()
    assert memory.requests.try_acquire(REQUESTS_BYTES)
    waiting = Deferred.fromCoroutine(memory.requests.acquire(1))
    clock.task_clock.advance(0.25)
    assert not client.is_gone
    clock.task_clock.advance(0.5)
    assert client.is_gone
    room.release()
    memory.requests.release(REQUESTS_BYTES)
    assert waiting.called


def test_freed_memory_is_returned_once_much_was_released_of_any_kind() -> None:
    clock = VirtualRuntime().clock
    looks: list[float] = []
    memory = ServerMemory(clock, lambda: looks.append(clock.now()))
    half = RETURN_SIZE // 2
    assert memory.requests.try_acquire(half)
    memory.requests.release(half)
    clock.task_clock.advance(1)
    assert not looks
    room = memory.answers.reserve()
    assert room.take(half)
    room.release()
    clock.task_clock.advance(1)
    assert len(looks) == 1
    clock.task_clock.advance(1)
    assert len(looks) == 1


def waiting_request(memory: ServerMemory, size: int, is_gone: Callable[[], bool] = bool) -> list[object]:
    """The outcome of a request for that many bytes, beside others."""
    outcome: list[object] = []
    task = Deferred.fromCoroutine(memory.requests.acquire(size, is_gone))
    task.addCallbacks(outcome.append, lambda failure: outcome.append(failure.type))
    return outcome


def test_request_that_waits_too_long_for_its_room_is_refused_and_delays_nobody() -> None:
    clock = VirtualRuntime().clock
    memory = ServerMemory(clock)
    assert memory.requests.try_acquire(REQUESTS_BYTES - 1)
    large = waiting_request(memory, REQUESTS_BYTES)
    clock.task_clock.pump([0.5] * int(2 * REQUEST_WAIT_S - 2))
    small = waiting_request(memory, 1)
    assert large == [] == small
    clock.task_clock.pump([0.5] * 4)
    assert large == [PeerRefusedError]
    assert small == [1]


def test_request_whose_client_is_gone_waits_no_longer() -> None:
    clock = VirtualRuntime().clock
    memory = ServerMemory(clock)
    assert memory.requests.try_acquire(REQUESTS_BYTES - 1)
    gone = waiting_request(memory, REQUESTS_BYTES, lambda: True)
    small = waiting_request(memory, 1)
    clock.task_clock.pump([0.5])
    assert gone == [PeerGoneError]
    assert small == [1]
    assert not memory.requests.is_awaited


def test_request_that_is_given_up_leaves_its_place_at_once() -> None:
    memory = ServerMemory(VirtualRuntime().clock)
    assert memory.requests.try_acquire(REQUESTS_BYTES - 1)
    task = Deferred.fromCoroutine(memory.requests.acquire(REQUESTS_BYTES))
    small = waiting_request(memory, 1)
    task.addErrback(lambda failure: failure.trap(CancelledError))
    task.cancel()
    assert small == [1]


def test_request_larger_than_all_room_takes_some_of_answers_and_has_freed_memory_given_back() -> None:
    clock = VirtualRuntime().clock
    looks: list[float] = []
    memory = ServerMemory(clock, lambda: looks.append(clock.now()))
    begin = clock.now()
    ways: list[MadeWay] = []
    Deferred.fromCoroutine(memory.make_way(ANSWERS_BYTES)).addCallback(ways.append)
    assert memory.answers.held_size == OVERSIZE_ANSWERS_BYTES
    clock.task_clock.pump([LOOK_S] * 3)
    assert looks == [begin + i * LOOK_S for i in range(4)]
    ways[0].release()
    ways[0].release()
    assert memory.answers.held_size == 0
    clock.task_clock.advance(10 * LOOK_S)
    assert len(looks) == 5
    assert not clock.task_clock.getDelayedCalls()


def test_request_larger_than_all_room_waits_for_answers_to_be_sent() -> None:
    clock = VirtualRuntime().clock
    memory = ServerMemory(clock)
    client = Silent()
    room = memory.answers.reserve(client)
    assert room.take(ANSWERS_BYTES - SMALL_ANSWERS_BYTES)
    room.sending()
    made = Deferred.fromCoroutine(memory.make_way(1 + SMALL_ANSWER))
    assert not made.called
    clock.task_clock.pump([0.5] * 5)
    assert client.is_gone
    room.release()
    assert made.called


def test_request_that_is_given_up_while_it_waits_for_answers_holds_nothing() -> None:
    memory = ServerMemory(VirtualRuntime().clock)
    room = memory.answers.reserve(Silent())
    assert room.take(ANSWERS_BYTES - SMALL_ANSWERS_BYTES)
    made = Deferred.fromCoroutine(memory.make_way(1 + SMALL_ANSWER))
    made.addErrback(lambda failure: failure.trap(CancelledError))
    made.cancel()
    assert memory.answers.waiting_count == 0
    room.release()
    assert memory.answers.held_size == 0


def test_peers_have_their_turns_however_many_requests_another_one_makes() -> None:
    budget = ByteBudget(1)
    order: list[str] = []

    async def hold(peer: str) -> None:
        await budget.acquire(1, peer=peer)
        order.append(peer)

    assert budget.try_acquire(1, "greedy")
    for peer in ("greedy", "greedy", "greedy", "honest"):
        Deferred.fromCoroutine(hold(peer))
    for _ in range(4):
        budget.release(1)
    assert order == ["honest", "greedy", "greedy", "greedy"]
