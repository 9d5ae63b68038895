"""Room of large answers that is kept for addresses whose clients read."""

from __future__ import annotations

from tests.wire.budget.test_answer_budget import Client, Scene


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


def test_address_that_leaves_large_answers_unread_does_not_take_what_is_kept_for_readers() -> None:
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
