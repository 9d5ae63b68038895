"""Servers of happiness: the largest number of servers that can be matched to different shares.

Owns maximum matching between servers and shares. Memory: per server an integer with one bit per share.
CPU: at most servers times shares steps on such integers (some 10 ms for 500 servers and 256 shares,
whatever the servers claim to hold). No round trips, no disk. [spec placement 2]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grid.ports import ServerId, ShareNumber


def happiness(sharemap: Mapping[ShareNumber, Collection[ServerId]]) -> int:
    """The size of a maximum matching of shares with servers that hold them."""
    masks: dict[ServerId, int] = {}
    for index, holders in enumerate(sharemap.values()):
        for server_id in holders:
            masks[server_id] = masks.get(server_id, 0) | 1 << index
    return len(match_servers(list(masks.values())))


def match_servers(masks: Sequence[int]) -> dict[int, int]:
    """A maximum matching of servers with shares they hold: server index to share number.

    masks: for each server, bit i is set if it holds share i. Of all maximum matchings, this one uses the
    earliest servers: a server is left out only if no matching contains it and all matched servers before it.
    """
    owners: dict[int, int] = {}
    unowned = 0
    for mask in masks:
        unowned |= mask
    for server_index in range(len(masks)):
        share = _augment(server_index, masks, owners, unowned)
        if share is not None:
            unowned &= ~(1 << share)
    return {server_index: share for share, server_index in owners.items()}


def _augment(start: int, masks: Sequence[int], owners: dict[int, int], unowned: int) -> int | None:
    """Match one more server, moving others along an alternating path. Returns the newly matched share, or None.

    Breadth-first: each share is reached at most once, from the server recorded in `reached_from`.
    """
    unseen = -1
    reached_from: dict[int, int] = {}
    previous_share: dict[int, int] = {}
    queue = [start]
    for server_index in queue:
        candidates = masks[server_index] & unseen
        free = candidates & unowned
        if free:
            share = _lowest_bit(free)
            reached_from[share] = server_index
            return _flip(share, start, owners, reached_from, previous_share)
        unseen &= ~candidates
        while candidates:
            share = _lowest_bit(candidates)
            candidates &= candidates - 1
            reached_from[share] = server_index
            previous_share[owners[share]] = share
            queue.append(owners[share])
    return None


def _flip(
    end: int, start: int, owners: dict[int, int], reached_from: dict[int, int], previous_share: dict[int, int]
) -> int:
    """Give each share on the path that ends at share `end` to the server from which it was reached."""
    share = end
    while True:
        server_index = reached_from[share]
        owners[share] = server_index
        if server_index == start:
            return end
        share = previous_share[server_index]


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
