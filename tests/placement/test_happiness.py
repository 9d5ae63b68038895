"""Servers of happiness, against brute force and at full size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.placement.happiness import happiness, match_servers
from grid.ports import ServerId, ShareNumber

MASKS = st.lists(st.integers(0, 63), max_size=7)


def largest_matching(masks: Sequence[int], taken: int = 0) -> int:
    """By trying everything."""
    if not masks:
        return 0
    best = largest_matching(masks[1:], taken)
    for share in range(6):
        if masks[0] >> share & 1 and not taken >> share & 1:
            best = max(best, 1 + largest_matching(masks[1:], taken | 1 << share))
    return best


def to_sharemap(masks: Sequence[int]) -> Mapping[ShareNumber, set[ServerId]]:
    return {
        ShareNumber(share): {ServerId(f"s{index}") for index, mask in enumerate(masks) if mask >> share & 1}
        for share in range(256)
    }


@pytest.mark.parametrize(
    ("masks", "value"),
    [([], 0), ([0, 0], 0), ([1], 1), ([1, 1, 1], 1), ([0b111], 1), ([0b11, 0b01], 2), ([0b11, 0b01, 0b10], 2)],
)
def test_happiness_of_small_maps_is_the_known_one(masks: list[int], value: int) -> None:
    assert happiness(to_sharemap(masks)) == value


def test_happiness_of_an_empty_map_is_zero() -> None:
    assert happiness({}) == 0


@given(MASKS)
def test_matching_is_as_large_as_brute_force_finds(masks: list[int]) -> None:
    assert len(match_servers(masks)) == happiness(to_sharemap(masks)) == largest_matching(masks)


@given(st.lists(st.integers(0, 2**12 - 1), max_size=20))
def test_matching_gives_each_server_a_share_it_holds_and_no_share_twice(masks: list[int]) -> None:
    matched = match_servers(masks)
    assert len(set(matched.values())) == len(matched)
    assert all(masks[index] >> share & 1 for index, share in matched.items())


@given(MASKS)
def test_matching_leaves_a_server_out_only_if_it_fits_beside_none_of_the_earlier(masks: list[int]) -> None:
    matched = match_servers(masks)
    chosen: list[int] = []
    for index, mask in enumerate(masks):
        fits = largest_matching([*chosen, mask]) == len(chosen) + 1
        assert fits == (index in matched)
        if fits:
            chosen.append(mask)


def test_matching_of_a_long_chain_of_servers_moves_all_of_them() -> None:
    # Each server took its lower share first; the last one holds only share 0 and pushes all others up.
    masks = [0b11 << index for index in range(255)] + [1]
    assert match_servers(masks) == {**{index: index + 1 for index in range(255)}, 255: 0}


def test_full_size_grid_where_everybody_holds_everything_is_matched() -> None:
    everything = 2**256 - 1
    assert len(match_servers([everything] * 500)) == 256
    assert happiness(to_sharemap([everything] * 500)) == 256


def test_full_size_grid_where_500_servers_hold_the_same_few_shares_is_matched() -> None:
    assert len(match_servers([0b111 << 100] * 500)) == 3
