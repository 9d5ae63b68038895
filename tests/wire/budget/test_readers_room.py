"""Memory for large answers that is reserved for addresses whose clients read, and the cost of many waiting requests."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from grid.errors import PeerRefusedError
from grid.limits import (
    ANSWER_WAIT_S,
    ANSWERS_BYTES,
    HTTP_PIECES_BYTES,
    READERS_ANSWERS_BYTES,
    SMALL_ANSWER,
    SMALL_ANSWERS_BYTES,
)
from grid.wire.budget.answer_budget import PRESSED_REVIEW_S
from grid.wire.budget.reservation import Reservation
from grid.wire.http.server.pieces import SMALLEST_PIECE, PieceSizer
from tests.wire.budget.test_answer_budget import Client, Scene


class Watched:
    """A connection that counts how often it is asked whether it is there."""

    received_size = 0

    def __init__(self, peer_address: str | None = None) -> None:
        self.peer_address = peer_address
        self.asked_count = 0

    @property
    def is_gone(self) -> bool:
        self.asked_count += 1
        return False

    def give_up(self) -> None:
        raise AssertionError("it sends nothing")


def give_up_unread(scene: Scene, address: str) -> None:
    """Have a client at that address leave a large answer unread until it is disconnected."""
    client = Client(scene.clock, peer_address=address)
    client.reservation = scene.budget.reserve(client)
    assert client.reservation.take(8)
    client.reservation.sending()
    other, waiting = scene.ask(10, Client(scene.clock, peer_address="192.0.2.99"))
    scene.advance(3)
    assert client.is_gone and waiting == ["read"]
    other.release()


def test_address_that_leaves_large_answers_unread_does_not_use_memory_reserved_for_readers() -> None:
    scene = Scene(total=10, small=1, kept=0, readers=4)
    hostile, honest = "192.0.2.1", "192.0.2.2"
    give_up_unread(scene, hostile)
    first, _ = scene.ask(3, Client(scene.clock, peer_address=hostile))
    second, waiting = scene.ask(4, Client(scene.clock, peer_address=hostile))
    reader, outcome = scene.ask(7, Client(scene.clock, peer_address=honest))
    assert waiting == [] and outcome == ["read"]
    for room in (reader, first):
        room.release()
    assert waiting == ["read"]
    second.release()
    assert scene.ask(10, Client(scene.clock, peer_address=hostile))[1] == ["read"]


def test_address_that_reads_again_has_all_the_room_again() -> None:
    scene = Scene(total=10, small=1, kept=0, readers=4)
    give_up_unread(scene, "192.0.2.1")
    reader = Client(scene.clock, peer_address="192.0.2.1")
    room, _ = scene.ask(2, reader)
    room.sending()
    room.release()
    assert [scene.ask(5, reader)[1] for _ in range(2)] == [["read"]] * 2


@pytest.mark.parametrize("honest_address", ["192.0.2.1", "192.0.2.2"])
@pytest.mark.parametrize(("count", "waiting"), [(24, False), (50, False), (400, True)])
def test_range_beside_readers_of_one_address_that_take_nothing_waits_for_one_check_at_most(
    count: int, waiting: bool, honest_address: str
) -> None:
    scene = Scene(ANSWERS_BYTES, small=SMALL_ANSWER, kept=SMALL_ANSWERS_BYTES, readers=READERS_ANSWERS_BYTES)
    sizer = PieceSizer(HTTP_PIECES_BYTES)
    rooms: list[Reservation] = []

    async def never_read() -> None:
        client = Client(scene.clock, peer_address="192.0.2.1")
        client.reservation = room = scene.budget.reserve(client)
        rooms.append(room)
        size = sizer.piece_size
        if not room.take(size):
            await room.acquire(size)
        room.sending()

    for _ in range(count):
        sizer.__enter__()
        Deferred.fromCoroutine(never_read())
    assert bool(scene.budget.waiting_count) == waiting
    assert scene.budget.held_size <= ANSWERS_BYTES

    honest, outcome = scene.ask(SMALLEST_PIECE, Client(scene.clock, peer_address=honest_address))
    if waiting:
        scene.advance(PRESSED_REVIEW_S)
    assert outcome == ["read"]
    assert scene.budget.held_size <= ANSWERS_BYTES

    for room in (honest, *rooms):
        room.release()
    assert scene.budget.held_size == scene.budget.waiting_count == 0


@pytest.mark.parametrize("address_count", [1, 800])
def test_answers_that_start_to_wait_do_not_each_recheck_all_others(address_count: int) -> None:
    scene = Scene()
    holder, _ = scene.ask(10)
    clients = [Watched(f"192.0.2.{i % address_count}") for i in range(800)]
    outcomes = [scene.ask(10, client)[1] for client in clients]  # type: ignore[arg-type]
    for _ in range(100):
        scene.budget.press()
    assert scene.budget.waiting_count == 800 and not any(outcomes)
    assert sum(client.asked_count for client in clients) <= 3 * len(clients)
    scene.advance(ANSWER_WAIT_S + 1)
    assert [type(outcome[0]) for outcome in outcomes] == [PeerRefusedError] * 800
    holder.release()
