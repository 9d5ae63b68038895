"""Versions of other writers that a write has met, and the decision which version gives way. [spec mutable 15]

Pure. Only versions that a server has proven count.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from attrs import define, evolve, field

from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap
from grid.ports import ServerId, ShareNumber

MOST_GIVEN_WAY = 16
"""Versions that gave way that are remembered of one open file: those of a whole round of retries, and more."""

Identity = tuple[int, bytes]
"""(sequence number, root hash): what orders versions."""


@define(kw_only=True, eq=False)
class OtherWriters:
    """prefix: of the version that is written; base: the order of the one it is written over, None for a new file.

    known: unfinished versions that were seen before the write, and their shares.
    """

    prefix: Prefix
    base: Identity | None
    known: Mapping[Identity, frozenset[ShareNumber]] = field(factory=dict)
    shown: dict[ServerId, Identity] = field(factory=dict)
    _numbers: dict[Identity, set[ShareNumber]] = field(factory=dict)

    @property
    def seen(self) -> bool:
        """Whether there is any."""
        return bool(self._numbers)

    def is_newer(self, identity: Identity | None) -> bool:
        """Whether a share of this identity (None: none at all) would be another writer's, if it were proven."""
        return identity is None or self.base is None or identity > self.base

    def is_older(self, identity: Identity | None) -> bool:
        """Whether this is a version before the one that is written over."""
        return identity is not None and self.base is not None and identity < self.base

    def note(self, server_id: ServerId, versions: Mapping[Identity, frozenset[ShareNumber]]) -> None:
        """Take note of what one server has proven."""
        for identity, numbers in versions.items():
            if self.is_newer(identity) and identity != self.prefix.order:
                self._numbers.setdefault(identity, set()).update(numbers)
                self.shown[server_id] = max(identity, self.shown.get(server_id, identity))

    def may_go_on(self, ours: int, away: Set[ShareNumber], hidden: int) -> bool:
        """Whether none of their writers can have succeeded, and this version is the one to prevail.

        ours: distinct shares of this version that are stored. away: numbers whose servers do not answer any more.
        hidden: how many more may lie where nobody has looked.
        """
        if self.base is None:
            return not self._numbers
        k = self.prefix.k
        if any(seqnum > self.prefix.seqnum for seqnum, _ in self._numbers):
            return False  # Its writer has seen this version, or another of its time: only a new map tells what became of it.
        for identity, numbers in self._numbers.items():
            if len(numbers | away | self.known.get(identity, frozenset())) + hidden >= k:
                return False
            if ours < k and identity > self.prefix.order:
                return False
        return True


@define
class Conflicts:
    """What came of writes that gave way: what servers have proven then, and the versions that gave way.

    Who does not show to the next map what it has proven is not asked again. A version that gave way may have k shares
    all the same, on servers that had missed the other writer's change: it must not be built upon in place of that change.
    """

    _shown: dict[str, Identity] = field(factory=dict)
    _given_way: list[Identity] = field(factory=list)

    def note(self, shown: Mapping[str, Identity], ours: Identity | None) -> None:
        """The version `ours` has given way to these."""
        self._shown |= shown
        if ours is not None:
            self._given_way = [*self._given_way[-MOST_GIVEN_WAY + 1 :], ours]

    def apply(self, found: VersionMap) -> VersionMap:
        """The map without servers that hide what they have shown to a write, for it would meet them again and again.

        Versions that gave way come last in it.
        """
        found = evolve(found, given_way=frozenset(self._given_way)) if self._given_way else found
        newest: dict[str, Identity] = {}
        for share in found.sightings:
            newest[share.server_id] = max(share.prefix.order, newest.get(share.server_id, share.prefix.order))
        hiding = {
            server_id
            for server_id in found.answered
            if server_id in self._shown and newest.get(server_id, (0, b"")) < self._shown[server_id]
        }
        if not hiding:
            return found
        return evolve(
            found,
            answered=found.answered - hiding,
            failed=found.failed | hiding,
            sightings=[share for share in found.sightings if share.server_id not in hiding],
            bad=[share for share in found.bad if share.server_id not in hiding],
        )
