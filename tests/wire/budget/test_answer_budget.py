"""The memory budget for answers, in virtual time: who waits, who is refused, and who gives way."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from grid.errors import DataTooLargeError, GridError, NoRoomError, PeerGoneError, PeerRefusedError
from grid.limits import ANSWER_PRESSED_RATE, ANSWER_RATE, ANSWER_STALL_S, ANSWER_WAIT_S
from grid.wire.budget.answer_budget import PRESSED_REVIEW_S, AnswerBudget
from grid.wire.budget.reservation import Reservation
from tests.support.virtual_time import VirtualRuntime


@define(eq=False)
class Client:
    """A connection whose client reads that many bytes a second of what is held for it."""

    clock: Any
    rate: float = 0.0
    is_gone: bool = False
    peer_address: str | None = None
    reservation: Reservation | None = None

    @property
    def received_size(self) -> int:
        return int(self.rate * self.clock.now())

    def give_up(self) -> None:
        self.is_gone = True
        assert self.reservation is not None
        self.reservation.release()


class Scene:
    """A budget of ten bytes, without small answers unless some are."""

    def __init__(self, total: int = 10, *, small: int = 0, kept: int = 0, **options: Any) -> None:
        self.runtime = VirtualRuntime()
        self.clock = self.runtime.clock
        self.budget = AnswerBudget(self.clock, total, small=small, kept=kept, **options)

    def sent(self, size: int, rate: float = 0.0) -> Client:
        """A client whose answer of that size waits."""
        client = Client(self.clock, rate)
        client.reservation = self.budget.reserve(client)
        assert client.reservation.take(size)
        client.reservation.sending()
        return client

    def ask(self, size: int, client: Client | None = None) -> tuple[Reservation, list[object]]:
        """A reservation of that many bytes, and its outcome."""
        room = self.budget.reserve(client)
        return room, self._outcome(room, size)

    def _outcome(self, room: Reservation, size: int) -> list[object]:
        outcome: list[object] = []

        async def work() -> str:
            if not room.take(size):
                raise NoRoomError(size)
            return "read"

        Deferred.fromCoroutine(room.read(work)).addCallbacks(outcome.append, lambda f: outcome.append(f.value))
        return outcome

    def advance(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.clock.task_clock.advance(0.5)


def test_client_at_an_honest_address_is_answered_before_the_next_ones_of_an_address_that_asks_for_much() -> None:
    scene = Scene()
    hostile = [Client(scene.clock, peer_address="192.0.2.1") for _ in range(120)]
    asked = [scene.ask(10, client) for client in hostile]
    honest = Client(scene.clock, peer_address="192.0.2.2")
    _, outcome = scene.ask(10, honest)
    assert asked[0][1] == ["read"] and outcome == []
    asked[0][0].release()
    assert outcome == ["read"]
    assert [each for _, each in asked[1:] if each] == []


def test_addresses_that_all_ask_for_much_are_answered_in_turn() -> None:
    scene = Scene()
    order: list[str] = []
    rooms: list[Reservation] = []
    held = scene.sent(10)

    async def ask(peer: str) -> None:
        room = scene.budget.reserve(Client(scene.clock, peer_address=peer))
        rooms.append(room)

        async def work() -> None:
            if not room.take(10):
                raise NoRoomError(10)
            order.append(peer)

        await room.read(work)
        room.release()

    for peer in "aaabbc":
        Deferred.fromCoroutine(ask(peer))
    held.give_up()
    assert order == ["a", "b", "c", "a", "b", "a"]


@given(st.lists(st.integers(0, 12), max_size=20))
def test_answers_when_they_do_not_fit_are_read_in_the_order_of_asking(sizes: list[int]) -> None:
    scene = Scene()
    asked = [scene.ask(size) for size in sizes]
    for room, outcome in asked:
        assert scene.budget.held_size <= 10
        if room.size or outcome == ["read"]:
            assert outcome == ["read"]
        room.release()
    for size, (_, outcome) in zip(sizes, asked, strict=True):
        assert outcome == ["read"] or (size > 10 and isinstance(outcome[0], DataTooLargeError))
    assert scene.budget.held_size == scene.budget.waiting_count == 0


def test_answer_when_nothing_of_it_was_read_takes_nothing_later() -> None:
    scene = Scene()
    room, outcome = scene.ask(4)
    room.release()
    assert outcome == ["read"]
    assert not room.take(1)
    assert scene.budget.held_size == 0


def test_answer_when_it_shrinks_before_it_is_read_gives_the_rest_back() -> None:
    scene = Scene()
    first, _ = scene.ask(9)
    room = scene.budget.reserve()
    sizes = iter((8, 3))

    async def work() -> None:
        size = next(sizes)
        if not room.take(size):
            raise NoRoomError(size)

    Deferred.fromCoroutine(room.read(work))
    first.release()
    assert scene.budget.held_size == room.size == 3
    room.release()


def test_answer_while_it_waits_holds_nothing_that_was_read_before() -> None:
    scene = Scene()
    scene.sent(10)
    held: list[weakref.ref[Client]] = []

    async def read() -> None:
        pieces = Client(scene.clock)
        held.append(weakref.ref(pieces))
        raise NoRoomError(5)

    async def work() -> None:
        await read()

    Deferred.fromCoroutine(scene.budget.reserve(Client(scene.clock)).read(work))
    assert scene.budget.waiting_count == 1
    assert held[0]() is None


def _last(outcome: list[object], kind: type[GridError]) -> bool:
    return len(outcome) == 1 and isinstance(outcome[0], kind)


def test_answer_when_it_waits_too_long_is_refused() -> None:
    scene = Scene()
    first, _ = scene.ask(10)
    _, outcome = scene.ask(1)
    scene.advance(ANSWER_WAIT_S - 1)
    assert outcome == []
    scene.advance(2)
    assert _last(outcome, PeerRefusedError)
    first.release()
    assert scene.budget.held_size == 0


def test_answers_when_too_many_wait_are_refused_at_once() -> None:
    scene = Scene(most_waiting=2)
    first, _ = scene.ask(10)
    asked = [scene.ask(1) for _ in range(3)]
    assert [bool(outcome) for _, outcome in asked] == [False, False, True]
    assert _last(asked[2][1], PeerRefusedError)
    first.release()
    for room, _ in asked:
        room.release()
    assert scene.budget.held_size == 0


def test_answers_of_clients_that_are_gone_make_room_in_the_queue() -> None:
    scene = Scene(most_waiting=1)
    first, _ = scene.ask(10)
    client = Client(scene.clock)
    _, gone = scene.ask(1, client)
    client.is_gone = True
    room, outcome = scene.ask(1)
    assert _last(gone, PeerGoneError)
    assert outcome == []
    first.release()
    assert outcome == ["read"]
    room.release()


def test_client_that_takes_nothing_gives_way_to_waiting_ones_within_two_seconds() -> None:
    scene = Scene()
    hostile = scene.sent(10)
    room, outcome = scene.ask(5)
    scene.advance(3.5)
    assert hostile.is_gone
    assert outcome == ["read"]
    room.release()


def test_client_that_long_took_nothing_gives_way_as_soon_as_somebody_waits() -> None:
    scene = Scene()
    hostile = scene.sent(10)
    scene.advance(20)
    assert not hostile.is_gone
    room, outcome = scene.ask(5)
    assert hostile.is_gone
    assert outcome == ["read"]
    room.release()


def test_clients_that_take_nothing_give_way_oldest_first_and_no_more_than_are_in_the_way() -> None:
    scene = Scene()
    clients = [scene.sent(5), scene.sent(5)]
    scene.advance(20)
    room, outcome = scene.ask(5)
    assert [client.is_gone for client in clients] == [True, False]
    assert outcome == ["read"]
    room.release()
    clients[1].give_up()


@pytest.mark.parametrize("seconds", [5, 25])
def test_client_that_keeps_up_is_left_alone(seconds: float) -> None:
    scene = Scene()
    honest = scene.sent(10, rate=2 * ANSWER_PRESSED_RATE)
    _, outcome = scene.ask(5)
    scene.advance(seconds)
    assert not honest.is_gone
    assert outcome == []
    honest.give_up()
    assert outcome == ["read"]


def test_client_whose_own_answers_wait_has_its_time() -> None:
    scene = Scene()
    client = scene.sent(10)
    room, _ = scene.ask(5, client)
    scene.advance(ANSWER_WAIT_S - 1)
    assert not client.is_gone
    client.give_up()
    room.release()


def test_client_that_takes_nothing_is_disconnected_at_last_although_nobody_waits() -> None:
    scene = Scene()
    client = scene.sent(1)
    scene.advance(ANSWER_STALL_S - 10)
    assert not client.is_gone
    scene.advance(30)
    assert client.is_gone
    assert scene.budget.held_size == 0


def test_budget_when_nobody_waits_keeps_no_timer() -> None:
    scene = Scene()
    client = scene.sent(1)
    assert scene.clock.task_clock.getDelayedCalls()
    client.give_up()
    assert not scene.clock.task_clock.getDelayedCalls()


def test_small_answer_has_room_while_clients_take_nothing_of_large_ones() -> None:
    scene = Scene(small=2, kept=4)
    scene.sent(6)
    waiting = [scene.ask(6) for _ in range(20)]
    room, outcome = scene.ask(2)
    assert outcome == ["read"]
    room.release()
    assert not any(outcome for _, outcome in waiting)


def test_large_answer_is_not_kept_waiting_by_small_ones() -> None:
    scene = Scene(small=2, kept=4)
    small = [scene.ask(2)[0] for _ in range(5)]
    large, outcome = scene.ask(6)
    later, later_outcome = scene.ask(2)
    for room in small[:3]:
        room.release()
    assert outcome == ["read"]
    assert later_outcome == []
    for room in (*small[3:], large):
        room.release()
    assert later_outcome == ["read"]
    later.release()
    assert scene.budget.held_size == scene.budget.waiting_count == 0


def test_large_answer_never_fits_in_what_is_kept_for_small_ones() -> None:
    scene = Scene(small=2, kept=4)
    _, outcome = scene.ask(7)
    assert _last(outcome, DataTooLargeError)


def test_answer_that_grows_from_small_to_large_is_counted_once() -> None:
    scene = Scene(small=2, kept=4)
    room = scene.budget.reserve()
    assert room.take(2)
    assert room.take(2)
    assert not room.take(3)
    assert scene.budget.held_size == 4
    room.release()
    whole, outcome = scene.ask(6)
    assert outcome == ["read"]
    whole.release()
    assert scene.budget.held_size == 0


def test_clients_that_take_nothing_of_small_answers_give_way_within_a_second() -> None:
    scene = Scene(small=2, kept=4)
    hostile = [scene.sent(2) for _ in range(5)]
    room, outcome = scene.ask(2)
    scene.advance(1)
    assert outcome == ["read"]
    assert any(client.is_gone for client in hostile)
    room.release()


def test_client_that_trickles_gives_way_while_others_wait() -> None:
    scene = Scene(2**23)
    hostile = scene.sent(2**23, rate=2 * ANSWER_RATE)
    room, outcome = scene.ask(5)
    scene.advance(3.5)
    assert hostile.is_gone
    assert outcome == ["read"]
    room.release()


def test_client_that_holds_its_request_gives_way_to_waiting_requests() -> None:
    awaited: list[object] = []
    scene = Scene(is_awaited=lambda: bool(awaited))
    holder, other = scene.sent(2), scene.sent(2)
    assert holder.reservation is not None
    holder.reservation.holds_request = True
    scene.advance(5)
    awaited.append(object())
    scene.budget.press()
    assert holder.is_gone
    assert not other.is_gone
    other.give_up()


def test_answers_whose_clients_are_gone_together_leave_the_others_their_turn() -> None:
    scene = Scene()
    other, _ = scene.ask(4)
    rest, _ = scene.ask(6)
    clients = [Client(scene.clock), Client(scene.clock)]
    rooms = [scene.budget.reserve(client) for client in clients]
    heard: list[object] = []
    for room in rooms:
        waiting = Deferred.fromCoroutine(scene.budget.wait(room, 10))
        # Who hears that its client is gone gives back what it holds for another answer.
        waiting.addErrback(lambda failure: heard.append(failure.type)).addBoth(lambda _: other.release())
    for client in clients:
        client.is_gone = True
    room, outcome = scene.ask(4)
    scene.advance(PRESSED_REVIEW_S)
    assert heard == [PeerGoneError, PeerGoneError]
    assert outcome == ["read"]
    room.release()
    rest.release()
    assert scene.budget.held_size == 0
