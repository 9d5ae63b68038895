from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from grid.limits import REQUESTS_BYTES
from grid.wire.server_memory import RETURN_SIZE, ByteBudget, ServerMemory
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
    """A client that takes nothing of its answers."""

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


def test_freed_memory_is_looked_at_once_much_was_given_back_of_any_kind() -> None:
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
