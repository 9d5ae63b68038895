"""Versions of other writers that a write has met and that their servers have proven, and who gives way. [spec mutable 15]

Pure; part of the write plan. Nothing gets in here that is only claimed.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from attrs import define, field

from grid.mutable.prefix import Prefix
from grid.ports import ServerId, ShareNumber

Identity = tuple[int, bytes]
"""(sequence number, root hash): what orders versions."""


@define(kw_only=True, eq=False)
class Rivals:
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
        """Whether none of them can have been told to be safe, and this version is the one to prevail.

        ours: distinct shares of this version that are stored. away: numbers whose servers do not answer any more.
        hidden: how many more may lie where nobody has looked.
        """
        if self.base is None:
            return not self._numbers
        k = self.prefix.k
        for identity, numbers in self._numbers.items():
            if len(numbers | away | self.known.get(identity, frozenset())) + hidden >= k:
                return False
            if ours < k and identity > self.prefix.order:
                return False
        return True
