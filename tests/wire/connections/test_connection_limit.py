"""Who keeps a place when more connections come than are served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.wire.connections.connection_limit import PATIENCE_S, Place, Places, Standing, address_of

LIMIT = 16


class Table:
    """Places, and which of their connections gave way in which order; closing takes a turn."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.places = Places(limit)
        self.gone: list[Place] = []

    def come(self, host: str | None = "10.0.0.1", waited_s: float = 0.0) -> Place | None:
        place = self.places.enter(host)
        if place is not None:
            place.hold(lambda: self.gone.append(place), lambda: waited_s)
        return place

    def get(self, host: str | None = "10.0.0.1", waited_s: float = 0.0) -> Place:
        place = self.come(host, waited_s)
        assert place is not None
        return place

    def turn(self) -> None:
        for place in self.gone:
            place.leave()


def hosts() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"10.1.{number // 250}.{number % 250}"


def test_strangers_when_half_of_the_places_are_theirs_give_way_oldest_first() -> None:
    table, everywhere = Table(), hosts()
    strangers = [table.get(next(everywhere)) for _ in range(LIMIT // 2)]
    assert table.gone == []
    for count in range(1, 4):
        table.get(next(everywhere))
        assert table.gone == strangers[:count]
        table.turn()
    assert len(table.places) == LIMIT // 2


def test_known_when_strangers_come_keep_three_quarters_of_the_places() -> None:
    table, everywhere = Table(), hosts()
    known = []
    for _ in range(LIMIT):
        known.append(table.get(next(everywhere)))
        known[-1].stand(Standing.IDLE)
    for _ in range(1000):
        table.get(next(everywhere))
        table.turn()
    assert [place for place in known if place not in table.gone] == known[LIMIT // 4 + 1 :]


def test_known_when_idle_give_way_longest_idle_first() -> None:
    table, everywhere = Table(), hosts()
    known = []
    for _ in range(LIMIT):
        known.append(table.get(next(everywhere)))
        known[-1].stand(Standing.IDLE)
    known[0].stand(Standing.IDLE)
    table.get(next(everywhere))
    assert table.gone == [known[1]]


def fill_with_active(table: Table, waits: list[float]) -> list[Place]:
    active = []
    for host, waited_s in zip(hosts(), waits, strict=False):
        active.append(table.get(host, waited_s))
        active[-1].stand(Standing.ACTIVE)
    return active


def test_active_when_all_are_give_way_slowest_first() -> None:
    table = Table()
    active = fill_with_active(table, [PATIENCE_S + index % 7 for index in range(LIMIT)])
    table.get("10.9.9.9")
    assert table.gone == [active[6]]


def test_active_when_their_clients_are_not_waited_for_keep_their_places() -> None:
    table = Table()
    fill_with_active(table, [PATIENCE_S / 2] * LIMIT)
    assert table.come("10.9.9.9") is None
    assert table.gone == []


def test_one_address_when_it_comes_too_often_gives_way_to_itself_and_leaves_room_for_others() -> None:
    table = Table()
    for _ in range(LIMIT * 2):
        place = table.get("10.0.0.1")
        place.stand(Standing.IDLE)
        table.turn()
    assert len(table.places) == LIMIT * 3 // 4
    gone = len(table.gone)
    table.get("10.0.0.2")
    assert len(table.gone) == gone
    table.get("10.0.0.1")
    assert len(table.gone) == gone + 1


def test_same_address_when_hostile_and_honest_share_it_decides_by_what_they_show() -> None:
    table = Table()
    for _ in range(100):
        table.get("127.0.0.1")
        table.turn()
    honest = table.get("127.0.0.1")
    table.turn()
    table.get("127.0.0.1")
    honest.stand(Standing.ACTIVE)
    for _ in range(100):
        table.get("127.0.0.1")
        table.turn()
    assert honest not in table.gone


def test_burst_when_nobody_has_left_yet_is_cut_short() -> None:
    table = Table()
    taken = [table.come() for _ in range(1000)]
    open_now = sum(place is not None for place in taken)
    assert open_now <= table.places.most
    table.turn()
    assert table.come() is not None


def test_burst_of_one_address_leaves_others_their_turn() -> None:
    table = Table(64)
    while table.come("10.0.0.1") is not None:
        pass
    assert table.come("10.0.0.2") is not None


def test_connections_when_they_have_no_address_are_bounded_together() -> None:
    table = Table()
    for _ in range(100):
        table.get(None)
        table.turn()
    assert len(table.places) == LIMIT // 2


def test_place_when_held_in_two_kinds_is_left_in_both() -> None:
    table, inner = Table(), Places(4)
    places = [table.get(host) for host, _ in zip(hosts(), range(8), strict=False)]
    assert all(inner.admit(place) for place in places[:4])
    assert table.gone == places[:2]
    assert (len(inner), len(table.places)) == (2, 6)
    assert (inner.leaving_count, table.places.leaving_count) == (2, 2)
    table.turn()
    assert (inner.leaving_count, table.places.leaving_count) == (0, 0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::1", "127.0.0.1", False),
        ("a name", "a name", True),
    ],
)
def test_addresses_count_as_one_within_an_ipv6_network_of_64_bits(one: str, other: str, same: bool) -> None:
    assert (address_of(one) == address_of(other)) is same


STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "idle", "active", "leave", "turn"]), st.integers(0, 50), st.integers(0, 5)),
    max_size=200,
)


@given(STEPS, st.integers(2, 12))
def test_places_whatever_happens_are_bounded_and_all_given_back(steps: list[tuple[str, int, int]], limit: int) -> None:
    table = Table(limit)
    held: list[Place] = []
    for action, which, host in steps:
        if action == "come":
            place = table.come(f"10.0.0.{host}", float(which % 3))
            held += [] if place is None else [place]
        elif action == "turn":
            table.turn()
        elif held:
            place = held[which % len(held)]
            if action == "leave":
                place.leave()
            elif place not in table.gone:
                place.stand(Standing.IDLE if action == "idle" else Standing.ACTIVE)
        assert len(table.places) <= limit
        assert len(table.places) + table.places.leaving_count <= table.places.most
    for place in held:
        place.leave()
        place.leave()
    assert (len(table.places), table.places.leaving_count) == (0, 0)
