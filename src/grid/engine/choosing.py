"""Choosing which shares to read next: the ones expected soonest, at one price for both kinds of files. Pure.

It compares offers, and knows nothing of what a share is; why the prices are what they are: docs/decisions/0201-one-price-of-shares.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from attrs import define

from grid.engine.lateness import ServerLoad
from grid.ports import ShareNumber

PARITY_COST = 1.22
PARITY_COST_OF_EACH = 0.01
"""How much dearer a parity block is, and how much more so for each share needed: it must be decoded, of as many blocks.

At 60-of-120 that takes the client half as long as all else that it does with a block."""

FAMILIAR_COST = 0.6
"""How much cheaper a share is on a server whose blocks were read before: long runs from few servers."""

SLOW_COST = 20.0
"""How much dearer a share is on a server whose last answer is late, or that was silent lately."""

FALSE_COST = 10.0
"""How much dearer a share is where something proved false before: the rest may be no better."""

S = TypeVar("S")


@define(eq=False)
class Offer(Generic[S]):
    """A share that could be read. load: its server's. order: decides between equal prices, the lower one wins.

    is_doubtful: the server was silent lately. is_false: the share, or its server, has given false bytes. is_familiar: the server's
    blocks were read before. is_at_hand: the bytes have come already.
    """

    share: S
    number: ShareNumber
    load: ServerLoad
    order: int
    is_doubtful: bool = False
    is_false: bool = False
    is_familiar: bool = False
    is_at_hand: bool = False

    def cost(self, k: int, ahead: int, size: int) -> float:
        """Seconds until `size` bytes should have come, behind `ahead` bytes of other shares, times what else speaks against it."""
        if self.is_at_hand:
            return 0.0
        cost = self.load.expected_s(ahead + size)
        if self.number >= k:
            cost *= PARITY_COST + PARITY_COST_OF_EACH * k
        if self.load.is_slow or self.is_doubtful:
            cost *= SLOW_COST
        if self.is_false:
            return cost * FALSE_COST
        return cost * FAMILIAR_COST if self.is_familiar else cost


def choose(offers: Iterable[Offer[S]], *, wanted: int, k: int, size: int) -> list[S]:
    """At most `wanted` shares of distinct numbers, the ones expected soonest. size: bytes to read of each.

    Each further share on one server counts as queued behind its others, in the order of the offers.
    """
    queued: dict[int, int] = {}
    priced: list[tuple[float, int, Offer[S]]] = []
    for offer in offers:
        ahead = queued.get(id(offer.load), 0)
        queued[id(offer.load)] = ahead + size
        priced.append((offer.cost(k, ahead, size), offer.order, offer))
    priced.sort(key=lambda item: item[:2])
    chosen: dict[ShareNumber, S] = {}
    for _, _, offer in priced:
        if len(chosen) == wanted:
            break
        chosen.setdefault(offer.number, offer.share)
    return list(chosen.values())
