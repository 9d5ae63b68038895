"""Versions by other writers that a write encounters, and the decision about which version yields. [spec mutable 15]

Pure. Only versions that a server has proven count.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from attrs import evolve, field

from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap
from grid.ports import ServerId, ShareNumber
from grid.values import define

MOST_GIVEN_WAY = 16
"""Versions of one open file that gave way and are remembered: more than a full round of retries produces."""

Identity = tuple[int, bytes]
"""(sequence number, root hash), the order of versions."""


@define(kw_only=True, eq=False)
class OtherWriters:
    """prefix: of the version being written. base: the order of the version it replaces, None for a new file.

    known: unfinished versions that were seen before the write, with their shares.
    """

    prefix: Prefix
    base: Identity | None
    known: Mapping[Identity, frozenset[ShareNumber]] = field(factory=dict)
    shown: dict[ServerId, Identity] = field(factory=dict)
    _appeared: set[Identity] = field(factory=set)
    _numbers: dict[Identity, set[ShareNumber]] = field(factory=dict)

    @property
    def seen(self) -> bool:
        """Whether any version of another writer was seen."""
        return bool(self._numbers)

    def is_newer(self, identity: Identity | None) -> bool:
        """Whether a share of this identity would be another writer's, if it were proven. None: no version at all."""
        return identity is None or self.base is None or identity > self.base or identity in self._appeared

    def appeared(self, identity: Identity | None, before: Identity | None) -> None:
        """Note that a server shows this version where the map showed an older one, or none (before: None).

        If it has the base's sequence number, it is a rival of the base that has been written since, whichever root hash is higher.
        Versions with lower numbers are old: a server may show them by turns. Where there was none, a new version goes over it,
        and only the base itself, stored again, must not be put beside it.
        """
        if identity is None or self.base is None or identity == self.base:
            return
        has_come = self.prefix.order == self.base if before is None else identity > before
        if identity[0] == self.base[0] and has_come:
            self._appeared.add(identity)

    def is_older(self, identity: Identity | None) -> bool:
        """Whether this version is older than the one being replaced."""
        return identity is not None and self.base is not None and identity < self.base

    def note(self, server_id: ServerId, versions: Mapping[Identity, frozenset[ShareNumber]]) -> None:
        """Note what one server has proven."""
        for identity, numbers in versions.items():
            if self.is_newer(identity) and identity != self.prefix.order:
                self._numbers.setdefault(identity, set()).update(numbers)
                self.shown[server_id] = max(identity, self.shown.get(server_id, identity))

    def may_go_on(self, ours: int, away: Set[ShareNumber], hidden: int) -> bool:
        """Whether no other writer can have succeeded, and this version should win.

        ours: distinct stored shares of this version. away: numbers on servers that no longer answer.
        hidden: how many more there may be on servers that were not asked.
        """
        if self.base is None:
            return not self._numbers
        k = self.prefix.k
        if any(seqnum > self.prefix.seqnum for seqnum, _ in self._numbers):
            return False  # Its writer has seen this version, or another of that time. Only a new map can show what became of it.
        for identity, numbers in self._numbers.items():
            if len(numbers | away | self.known.get(identity, frozenset())) + hidden >= k:
                return False
            if ours < k and identity > self.prefix.order:
                return False
        return True


@define
class Conflicts:
    """What writes that gave way have learned: what servers proved then, and the versions that gave way.

    A server that hides from the next map what it proved is not asked again. A version that gave way may still have k shares,
    on servers that missed the other writer's change. It must not be built upon in place of that change, unless most servers
    have it or the version that it replaced: then the other change cannot have succeeded.
    """

    _shown: dict[str, Identity] = field(factory=dict)
    _given_way: dict[Identity, Identity | None] = field(factory=dict)

    def note(self, shown: Mapping[str, Identity], ours: Identity | None, base: Identity | None) -> None:
        """Note that the version `ours`, which replaces `base`, has given way to these."""
        self._shown |= shown
        if ours is not None:
            self._given_way[ours] = base
            if len(self._given_way) > MOST_GIVEN_WAY:
                del self._given_way[next(iter(self._given_way))]

    def _with_bases(self, order: Identity) -> list[Identity]:
        """A version that gave way, those before it that did, and the one that the first of them replaced."""
        versions = [order]
        while (base := self._given_way.get(versions[-1])) is not None and base not in versions:
            versions.append(base)
        return versions

    def apply(self, found: VersionMap) -> VersionMap:
        """The map without servers that hide what they showed to a write, because a write would meet it again and again.

        Versions that gave way come last in it.
        """
        last = frozenset(order for order in self._given_way if not found.has_majority(self._with_bases(order)))
        found = evolve(found, given_way=last) if last else found
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
