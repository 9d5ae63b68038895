"""Choosing the next shares to read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.immutable.read.held_share import HeldShare, Peer, ShareState
from grid.immutable.read.segment_batch import BatchCutter, choose_shares
from grid.immutable.share.geometry import Geometry
from grid.ports import ServerId, ShareNumber


def peers(count: int) -> list[Peer]:
    return [Peer(server_id=ServerId(f"s{order}"), order=order) for order in range(count)]


def held(peer: Peer, number: int) -> HeldShare:
    return HeldShare(peer=peer, number=ShareNumber(number), state=ShareState.READY)


def choose(shares: list[HeldShare], wanted: int = 3, **changes: Any) -> list[HeldShare]:
    usable: dict[ShareNumber, list[HeldShare]] = {}
    for share in shares:
        usable.setdefault(share.number, []).append(share)
    options: dict[str, Any] = {
        "k": 3, "size": 10**6, "segments": range(4), "taken": (), "busy": (), "familiar": (), **changes
    }  # fmt: skip
    return choose_shares(usable, wanted=wanted, **options)


def test_choice_when_all_is_equal_takes_primaries_from_different_servers() -> None:
    shares = [held(peer, number) for number, peer in enumerate(peers(10))]
    assert [share.number for share in choose(shares)] == [0, 1, 2]


def test_choice_when_one_server_has_all_spreads_over_the_others() -> None:
    servers = peers(3)
    shares = [*(held(servers[0], number) for number in range(6)), held(servers[1], 1), held(servers[2], 2)]
    assert {share.peer.order for share in choose(shares)} == {0, 1, 2}


def test_choice_when_a_server_is_slow_or_busy_takes_another() -> None:
    servers = peers(4)
    servers[0].is_slow = True
    servers[1].outstanding_bytes = 10**8
    shares = [held(peer, number) for number, peer in enumerate(servers)]
    assert [share.number for share in choose(shares, wanted=2)] == [2, 3]


@pytest.mark.parametrize(("k", "right"), [(3, 3), (60, 0)])
def test_choice_when_the_primary_is_on_a_somewhat_slower_server_depends_on_what_parity_costs(
    k: int, right: int
) -> None:
    near, far = peers(2)
    far.latency.latency_s = 1.5 * near.latency.latency_s
    shares = [held(far, 0), held(near, k)]
    assert [share.number for share in choose(shares, wanted=1, k=k, size=1)] == [right]
    far.latency.latency_s = 3 * near.latency.latency_s
    assert [share.number for share in choose(shares, wanted=1, k=k, size=1)] == [k]


def test_choice_when_a_share_was_read_before_stays_with_it() -> None:
    shares = [held(peer, number) for number, peer in enumerate(peers(10))]
    assert shares[7] in choose(shares, familiar={shares[7]})


def test_choice_when_a_server_gave_parity_before_takes_the_primaries_that_it_has() -> None:
    first, second = peers(2)
    shares = [held(first, number) for number in (0, 1, 2, 6, 7, 8)] + [held(second, number) for number in (3, 4, 5, 9)]
    chosen = choose(shares, wanted=6, k=6, familiar=[share for share in shares if share.number >= 6])
    assert sorted(share.number for share in chosen) == [0, 1, 2, 3, 4, 5]


def test_choice_when_blocks_are_known_false_leaves_them_out_and_mistrusts_the_share() -> None:
    shares = [held(peer, number) for number, peer in enumerate(peers(5))]
    shares[0].bad_segments.add(2)
    shares[1].bad_segments.add(9)
    assert {share.number for share in choose(shares)} == {2, 3, 4}
    assert {share.number for share in choose(shares, wanted=5)} == {1, 2, 3, 4}


def test_choice_when_a_number_has_copies_takes_one_of_them() -> None:
    servers = peers(4)
    shares = [held(peer, 0) for peer in servers]
    assert len(choose(shares)) == 1
    assert choose(shares, busy=shares[:3]) == [shares[3]]
    assert choose(shares, taken=[0]) == []


@given(
    holders=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=30, unique=True),
    wanted=st.integers(0, 12),
    taken=st.frozensets(st.integers(0, 9), max_size=4),
)
def test_choice_when_anything_is_held_gives_as_many_distinct_numbers_as_there_are(
    holders: list[tuple[int, int]], wanted: int, taken: frozenset[int]
) -> None:
    servers = peers(6)
    chosen = choose([held(servers[order], number) for order, number in holders], wanted, taken=taken)
    numbers = [share.number for share in chosen]
    assert len(set(numbers)) == len(numbers)
    assert not taken & set(numbers)
    assert len(numbers) == min(wanted, len({number for _, number in holders} - taken))


@pytest.mark.parametrize(
    ("k", "most_bytes", "full"),
    [(3, None, 8), (3, 6 * 2**20, 2), (60, None, 16), (60, 6 * 2**20, 2), (3, 1, 1)],
)
def test_batches_are_smaller_if_there_is_room_for_few_bytes(k: int, most_bytes: int | None, full: int) -> None:
    geometry = Geometry.of_file(50 * 2**20, k, k + 2, 2**20)
    cutter, counts = BatchCutter(geometry, 0, geometry.segment_count, most_bytes), []
    while cutter.may_cut(None):
        counts.append(cutter.cut().count)
    assert (max(counts), sum(counts)) == (full, geometry.segment_count)
