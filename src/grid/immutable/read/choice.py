"""Choosing which shares to read next: a pure function of what is known of them and of their servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grid.immutable.read.held_share import HeldShare
from grid.ports import ShareNumber

PARITY_COST = 1.22
PARITY_COST_OF_EACH = 0.01
"""How much dearer a parity block is, and how much more so for each share needed: it must be decoded, of as many blocks.

At 60-of-120 that takes the client half as long as all else that it does with a block."""

HABIT_COST = 0.6
"""How much cheaper a share is on a server whose blocks were read before: long runs from few servers."""

SLOW_COST = 20.0
"""How much dearer a share is on a server whose last answer is late, or that was silent lately."""

FALSE_COST = 10.0
"""How much dearer a share is that had a false block elsewhere: its others may be no better."""


def choose_shares(
    usable: Mapping[ShareNumber, Sequence[HeldShare]],
    *,
    wanted: int,
    k: int,
    size: int,
    segments: range,
    taken: Collection[ShareNumber],
    busy: Collection[HeldShare],
    habit: Collection[HeldShare],
) -> list[HeldShare]:
    """At most `wanted` shares of distinct numbers, the ones expected soonest, without those known bad here.

    size: bytes to read of each. taken: share numbers not needed. busy: shares that are being read already.
    habit: shares read before. Each further share on one server counts as queued behind its others. A parity block is no
    habit where its server has a primary one to give instead.
    """
    familiar = {share.peer.order for share in habit}
    parity_cost = PARITY_COST + PARITY_COST_OF_EACH * k
    queued: dict[int, int] = {}
    priced: list[tuple[float, int, HeldShare]] = []
    for number in sorted(usable):
        if number in taken:
            continue
        for share in usable[number]:
            if share in busy or any(segment in share.bad_segments for segment in segments if share.bad_segments):
                continue
            ahead = queued.get(share.peer.order, 0)
            queued[share.peer.order] = ahead + size
            cost = share.peer.expected_s(ahead + size)
            cost *= (parity_cost if number >= k else 1.0) * (
                SLOW_COST if share.peer.is_slow or share.peer.is_doubtful else 1.0
            )
            cost *= FALSE_COST if share.bad_segments else HABIT_COST if share.peer.order in familiar else 1.0
            priced.append((cost, share.peer.order, share))
    priced.sort(key=lambda item: item[:2])
    chosen: dict[ShareNumber, HeldShare] = {}
    for _, _, share in priced:
        if len(chosen) == wanted:
            break
        chosen.setdefault(share.number, share)
    return list(chosen.values())
