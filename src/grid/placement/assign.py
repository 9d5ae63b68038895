"""Chooses the server for each share.

Owns only the choice; it sends no requests and knows nothing of errors. What a server holds is only
its claim. CPU: two maximum matchings (see happiness.py). [spec placement 4]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grid.placement.happiness import match_servers
from grid.ports import ServerId, ShareNumber


def assign(
    writable: Sequence[ServerId],
    readonly: Sequence[ServerId],
    total: int,
    existing: Mapping[ServerId, Collection[ShareNumber]],
) -> dict[ShareNumber, ServerId]:
    """One server for each of the shares 0..total-1. Placing a share on a server that holds it renews it.

    writable, readonly: distinct servers in the order for the storage index; earlier ones are preferred.
    existing: the shares that servers hold; impossible numbers are ignored, as are servers in
    neither list. The result has the greatest possible happiness. Without writable servers, it contains only shares
    matched with read-only ones; without any server, none.
    """
    writable_masks = [_mask(existing.get(server_id, ()), total) for server_id in writable]
    placed: dict[int, ServerId] = {}
    for index, share in match_servers([_mask(existing.get(server_id, ()), total) for server_id in readonly]).items():
        placed[share] = readonly[index]
    unplaced = ~_mask(placed, total)
    kept = match_servers([mask & unplaced for mask in writable_masks])
    loads = [0] * len(writable)
    for index, share in kept.items():
        placed[share] = writable[index]
        loads[index] = 1
    _place_on_unused(writable, total, placed, loads)
    _place_rest(writable, writable_masks, total, placed, loads)
    return {ShareNumber(share): placed[share] for share in sorted(placed)}


def _place_on_unused(writable: Sequence[ServerId], total: int, placed: dict[int, ServerId], loads: list[int]) -> None:
    """Give each server without a share one share, in order, as long as there are shares."""
    unused = [index for index, load in enumerate(loads) if not load]
    homeless = [share for share in range(total) if share not in placed]
    for share, index in zip(homeless, unused, strict=False):
        placed[share] = writable[index]
        loads[index] = 1


def _place_rest(
    writable: Sequence[ServerId], masks: Sequence[int], total: int, placed: dict[int, ServerId], loads: list[int]
) -> None:
    """Leave each unplaced share on a server that holds it, or give it to the server with the fewest shares."""
    if not writable:
        return
    for share in range(total):
        if share not in placed:
            holders = (index for index, mask in enumerate(masks) if mask >> share & 1)
            index = next(holders, None)
            if index is None:
                index = loads.index(min(loads))
            placed[share] = writable[index]
            loads[index] += 1


def _mask(shares: Collection[int], total: int) -> int:
    mask = 0
    for share in shares:
        if 0 <= share < total:
            mask |= 1 << share
    return mask
