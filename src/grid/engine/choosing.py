"""Chooses which shares to read next: those expected soonest, by one cost function for both kinds of files. Pure.

It compares offers and knows nothing of shares. For the reasons behind the costs, see
docs/decisions/0201-one-price-of-shares.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from grid.engine.lateness import ServerLoad
from grid.ports import ShareNumber
from grid.values import define

PARITY_COST = 1.22
PARITY_COST_OF_EACH = 0.01
"""Extra cost of a parity block: a fixed part, and a part for each needed share, because decoding combines that many blocks.

With 60-of-120 encoding, decoding takes a client half as long as all its other work on a block."""

FAMILIAR_COST = 0.6
"""Factor for a server that this read has used before: it favors long runs from few servers."""

SLOW_COST = 20.0
"""Factor for a server whose last answer is late, or that was silent lately."""

FALSE_COST = 10.0
"""Factor for a server or share that has sent false bytes before: the rest may be false too."""

S = TypeVar("S")


@define(eq=False)
class Offer(Generic[S]):
    """A share that could be read. load: its server's load. order: breaks ties; the lower order wins.

    is_doubtful: the server was silent lately. is_false: the share, or its server, has sent false bytes. is_familiar: this read has
    used the server before. is_at_hand: the bytes have already come.
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
        """Expected seconds until `size` bytes arrive after `ahead` bytes of other shares, times the penalties of this offer."""
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
    """At most `wanted` shares with distinct numbers, those expected soonest. size: bytes to read from each.

    Each further share on one server counts as queued behind the ones before it, in the order of the offers.
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
