"""Which share goes to which server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.placement.assign import assign
from grid.placement.happiness import happiness
from grid.ports import ServerId, ShareNumber

Holdings = dict[ServerId, set[ShareNumber]]


def make_servers(count: int, prefix: str = "w") -> list[ServerId]:
    return [ServerId(f"{prefix}{index}") for index in range(count)]


def numbers(*shares: int) -> set[ShareNumber]:
    return {ShareNumber(share) for share in shares}


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[ServerId], list[ServerId], int, Holdings]:
    writable = make_servers(draw(st.integers(0, 5)))
    readonly = make_servers(draw(st.integers(0, 3)), "r")
    shares = st.sets(st.integers(0, 6).map(ShareNumber))
    everybody = [*writable, *readonly, ServerId("stranger")]
    return writable, readonly, draw(st.integers(1, 5)), {server_id: draw(shares) for server_id in everybody}


def after(
    placed: Mapping[ShareNumber, ServerId], servers: Collection[ServerId], total: int, existing: Holdings
) -> dict[ShareNumber, set[ServerId]]:
    """Which server holds which shares after the placement."""
    sharemap: dict[ShareNumber, set[ServerId]] = {ShareNumber(share): set() for share in range(total)}
    for share, holders in sharemap.items():
        holders |= {server_id for server_id in servers if share in existing[server_id]}
        holders |= {placed[share]} if share in placed else set()
    return sharemap


def greatest_happiness(
    writable: Sequence[ServerId], readonly: Sequence[ServerId], total: int, existing: Holdings
) -> int:
    """The happiness if every writable server takes every share, limited only by the matching."""
    return happiness(
        {
            ShareNumber(share): {*writable, *(held for held in readonly if share in existing[held])}
            for share in range(total)
        }
    )


@pytest.mark.parametrize("count", [10, 11, 20])
def test_fresh_upload_to_enough_servers_puts_one_share_on_each_of_the_first(count: int) -> None:
    servers = make_servers(count)
    assert assign(servers, [], 10, {}) == dict(enumerate(servers[:10]))


@pytest.mark.parametrize("total", [1, 7, 10, 256])
@pytest.mark.parametrize("count", [1, 3, 6, 7])
def test_fresh_upload_to_few_servers_is_spread_evenly(total: int, count: int) -> None:
    servers = make_servers(count)
    placed = assign(servers, [], total, {})
    loads = Counter(placed.values())
    assert list(placed) == list(range(total))
    assert {loads[server_id] for server_id in servers} <= {total // count, -(-total // count)}
    assert sorted(loads.values(), reverse=True) == [loads[server_id] for server_id in servers if loads[server_id]]


def test_second_upload_finds_every_share_where_the_first_put_it() -> None:
    for count in (3, 10, 12):
        servers = make_servers(count)
        first = assign(servers, [], 10, {})
        existing: Holdings = {}
        for share, server_id in first.items():
            existing.setdefault(server_id, set()).add(share)
        assert assign(servers, [], 10, existing) == first


def test_share_of_a_lone_holder_stays_and_the_others_fill_the_rest() -> None:
    servers = make_servers(4)
    placed = assign(servers, [], 4, {servers[2]: numbers(0)})
    assert placed == {0: servers[2], 1: servers[0], 2: servers[1], 3: servers[3]}


def test_share_on_a_readonly_server_is_counted_there() -> None:
    writable, readonly = make_servers(2), make_servers(2, "r")
    placed = assign(writable, readonly, 3, {readonly[1]: numbers(1)})
    assert placed == {0: writable[0], 1: readonly[1], 2: writable[1]}


def test_share_that_only_readonly_servers_hold_beyond_the_matching_gets_a_writable_one() -> None:
    writable, readonly = make_servers(1), make_servers(1, "r")
    placed = assign(writable, readonly, 3, {readonly[0]: numbers(0, 1, 2)})
    assert placed == {0: readonly[0], 1: writable[0], 2: writable[0]}


def test_leftover_shares_are_renewed_where_they_are() -> None:
    servers = make_servers(2)
    existing = {servers[0]: numbers(0, 2), servers[1]: numbers(1)}
    assert assign(servers, [], 4, existing) == {0: servers[0], 1: servers[1], 2: servers[0], 3: servers[1]}


def test_numbers_that_are_no_shares_are_passed_over() -> None:
    servers = make_servers(2)
    existing = {servers[0]: numbers(2, 255, 10**30, -1), servers[1]: numbers(0)}
    assert assign(servers, [], 2, existing) == {0: servers[1], 1: servers[0]}


def test_earlier_servers_are_preferred_among_holders_of_the_same_share() -> None:
    servers = make_servers(3)
    existing = {server_id: numbers(0) for server_id in servers}
    assert assign(servers, [], 1, existing) == {0: servers[0]}
    assert assign([], servers, 1, existing) == {0: servers[0]}


def test_without_servers_nothing_is_placed() -> None:
    assert assign([], [], 10, {ServerId("stranger"): numbers(1)}) == {}


@given(grids())
def test_placement_reaches_the_greatest_happiness(
    grid: tuple[list[ServerId], list[ServerId], int, Holdings],
) -> None:
    writable, readonly, total, existing = grid
    placed = assign(writable, readonly, total, existing)
    reached = happiness(after(placed, [*writable, *readonly], total, existing))
    assert reached == greatest_happiness(writable, readonly, total, existing)


@given(grids())
def test_placement_places_every_share_that_can_be_and_asks_readonly_servers_for_nothing_new(
    grid: tuple[list[ServerId], list[ServerId], int, Holdings],
) -> None:
    writable, readonly, total, existing = grid
    placed = assign(writable, readonly, total, existing)
    if writable:
        assert list(placed) == list(range(total))
    for share, server_id in placed.items():
        assert server_id in writable or (server_id in readonly and share in existing[server_id])


@given(grids())
def test_every_writable_server_is_used_while_there_are_shares(
    grid: tuple[list[ServerId], list[ServerId], int, Holdings],
) -> None:
    writable, readonly, total, existing = grid
    placed = assign(writable, readonly, total, existing)
    used = set(placed.values())
    if len(used) < total:
        assert set(writable) <= used


def test_full_size_grid_is_placed() -> None:
    everything = numbers(*range(256))
    servers = make_servers(500)
    assert len(set(assign(servers, [], 256, dict.fromkeys(servers, everything)).values())) == 256
