"""Which connections keep a permit when there are more than the limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.wire.connections.connection_limit import PATIENCE_S, ConnectionLimit, Permit, Standing, address_of

LIMIT = 16


class Table:
    """Permits, and the order in which their connections gave way; closing takes a turn."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.connection_limit = ConnectionLimit(limit)
        self.gone: list[Permit] = []

    def come(self, host: str | None = "10.0.0.1", waited_s: float = 0.0) -> Permit | None:
        permit = self.connection_limit.acquire(host)
        if permit is not None:
            permit.hold(lambda: self.gone.append(permit), lambda: waited_s)
        return permit

    def get(self, host: str | None = "10.0.0.1", waited_s: float = 0.0) -> Permit:
        permit = self.come(host, waited_s)
        assert permit is not None
        return permit

    def turn(self) -> None:
        for permit in self.gone:
            permit.release()


def hosts() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"10.1.{number // 250}.{number % 250}"


def test_strangers_when_half_of_the_permits_are_theirs_give_way_oldest_first() -> None:
    table, everywhere = Table(), hosts()
    strangers = [table.get(next(everywhere)) for _ in range(LIMIT // 2)]
    assert table.gone == []
    for count in range(1, 4):
        table.get(next(everywhere))
        assert table.gone == strangers[:count]
        table.turn()
    assert len(table.connection_limit) == LIMIT // 2


def test_known_when_strangers_come_keep_three_quarters_of_the_permits() -> None:
    table, everywhere = Table(), hosts()
    known = []
    for _ in range(LIMIT):
        known.append(table.get(next(everywhere)))
        known[-1].stand(Standing.IDLE)
    for _ in range(1000):
        table.get(next(everywhere))
        table.turn()
    assert [permit for permit in known if permit not in table.gone] == known[LIMIT // 4 + 1 :]


def test_known_when_idle_give_way_longest_idle_first() -> None:
    table, everywhere = Table(), hosts()
    known = []
    for _ in range(LIMIT):
        known.append(table.get(next(everywhere)))
        known[-1].stand(Standing.IDLE)
    known[0].stand(Standing.IDLE)
    table.get(next(everywhere))
    assert table.gone == [known[1]]


def fill_with_active(table: Table, waits: list[float]) -> list[Permit]:
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


def test_active_when_their_clients_are_not_waited_for_keep_their_permits() -> None:
    table = Table()
    fill_with_active(table, [PATIENCE_S / 2] * LIMIT)
    assert table.come("10.9.9.9") is None
    assert table.gone == []


def test_one_address_when_it_comes_too_often_gives_way_to_itself_and_leaves_room_for_others() -> None:
    table = Table()
    for _ in range(LIMIT * 2):
        permit = table.get("10.0.0.1")
        permit.stand(Standing.IDLE)
        table.turn()
    assert len(table.connection_limit) == LIMIT * 3 // 4
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
    open_now = sum(permit is not None for permit in taken)
    assert open_now <= table.connection_limit.most
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
    assert len(table.connection_limit) == LIMIT // 2


def test_permit_when_held_in_two_kinds_is_released_in_both() -> None:
    table, inner = Table(), ConnectionLimit(4)
    permits = [table.get(host) for host, _ in zip(hosts(), range(8), strict=False)]
    assert all(inner.admit(permit) for permit in permits[:4])
    assert table.gone == permits[:2]
    assert (len(inner), len(table.connection_limit)) == (2, 6)
    assert (inner.leaving_count, table.connection_limit.leaving_count) == (2, 2)
    table.turn()
    assert (inner.leaving_count, table.connection_limit.leaving_count) == (0, 0)


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
def test_permits_whatever_happens_are_bounded_and_all_given_back(steps: list[tuple[str, int, int]], limit: int) -> None:
    table = Table(limit)
    held: list[Permit] = []
    for action, which, host in steps:
        if action == "come":
            permit = table.come(f"10.0.0.{host}", float(which % 3))
            held += [] if permit is None else [permit]
        elif action == "turn":
            table.turn()
        elif held:
            permit = held[which % len(held)]
            if action == "leave":
                permit.release()
            elif permit not in table.gone:
                permit.stand(Standing.IDLE if action == "idle" else Standing.ACTIVE)
        assert len(table.connection_limit) <= limit
        assert len(table.connection_limit) + table.connection_limit.leaving_count <= table.connection_limit.most
    for permit in held:
        permit.release()
        permit.release()
    assert (len(table.connection_limit), table.connection_limit.leaving_count) == (0, 0)
