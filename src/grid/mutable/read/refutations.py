"""Shares that a map considered good and a read did not: false ones, and unreachable ones.

A map trusts a signed front; blocks are proven only when they are read. A share that a read proves false is left out of later maps, so
that the best version is chosen again. After REFUTED_S it is read again, because a repair may have replaced it.

Pure: `now` is an argument. Memory: a few hundred bytes for each false share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation, VersionMap
from grid.values import define, field

REFUTED_S = 60.0
"""How long a refutation is remembered."""

LOST_TWICE = 2
"""A share is given up after this many failed reads: a server may fail once."""

Claim = tuple[ShareLocation, Prefix]
"""The claim that a share of this version is at this location."""


@define
class Refutations:
    """What reads have shown about one file's shares."""

    count: int = 0
    """How often something was learned. While it grows, the next choice of the best version may differ."""

    _false: dict[Claim, tuple[str, float]] = field(factory=dict)
    _lost: dict[Claim, tuple[int, float]] = field(factory=dict)

    def note(
        self, prefix: Prefix, refuted: Mapping[ShareLocation, str], lost: Collection[ShareLocation], now: float
    ) -> None:
        """Note that a read of that version failed because of these shares."""
        for location, reason in refuted.items():
            self._false[location, prefix] = reason, now
        for location in lost:
            count, since = self._lost.get((location, prefix), (0, now))
            self._lost[location, prefix] = (count + 1 if now - since < REFUTED_S else 1), now
        self.count += len(refuted) + len(lost)

    def forget(self, locations: Collection[ShareLocation]) -> None:
        """Forget these locations, because they were written."""
        for claims in (self._false, self._lost):
            for claim in [claim for claim in claims if claim[0] in locations]:
                del claims[claim]

    def clear(self) -> None:
        """Forget everything, so that all shares are read again."""
        self._false.clear()
        self._lost.clear()

    def apply(self, found: VersionMap, now: float) -> VersionMap:
        """The map without refuted shares, and without those that were unreachable several times."""
        if not self._false and not self._lost:
            return found
        refuted, lost = {}, set()
        for share in found.sightings:
            claim = share.location, share.prefix
            reason, since = self._false.get(claim, ("", 0.0))
            if reason and now - since < REFUTED_S:
                refuted[share.location] = reason
            count, since = self._lost.get(claim, (0, 0.0))
            if count >= LOST_TWICE and now - since < REFUTED_S:
                lost.add(share.location)
        return found.without(refuted, lost) if refuted or lost else found
