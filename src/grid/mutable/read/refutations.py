"""What reads have shown of shares that a map took for good: that they are false, or cannot be had.

A map believes a signed front; blocks are proven when they are read. A share that a read proves false is left out of the maps that follow, so
that the best version is chosen again. After REFUTED_S it is read again: a repair may have replaced it.

Pure: time enters as `now`. Cost: memory: a few hundred bytes for each share that was false.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import define, field

from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation, VersionMap

REFUTED_S = 60.0
"""How long what was shown of a share is remembered."""

LOST_TWICE = 2
"""A share is given up when it could not be had so often: a server may fail once."""

Claim = tuple[ShareLocation, Prefix]
"""That a share of this version lies there."""


@define
class Refutations:
    """What was shown of one file's shares."""

    count: int = 0
    """How often something was learned: while it grows, the best version may be another one the next time."""

    _false: dict[Claim, tuple[str, float]] = field(factory=dict)
    _lost: dict[Claim, tuple[int, float]] = field(factory=dict)

    def note(
        self, prefix: Prefix, refuted: Mapping[ShareLocation, str], lost: Collection[ShareLocation], now: float
    ) -> None:
        """A read of that version has failed because of these shares."""
        for location, reason in refuted.items():
            self._false[location, prefix] = reason, now
        for location in lost:
            count, since = self._lost.get((location, prefix), (0, now))
            self._lost[location, prefix] = (count + 1 if now - since < REFUTED_S else 1), now
        self.count += len(refuted) + len(lost)

    def forget(self, locations: Collection[ShareLocation]) -> None:
        """These have been written."""
        for claims in (self._false, self._lost):
            for claim in [claim for claim in claims if claim[0] in locations]:
                del claims[claim]

    def clear(self) -> None:
        """Everything is to be looked at again."""
        self._false.clear()
        self._lost.clear()

    def apply(self, found: VersionMap, now: float) -> VersionMap:
        """The map without what was refuted, or could not be had again and again."""
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
