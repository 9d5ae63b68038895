"""The newest version of each file that this client has written, or whose signature it has seen.

A server that offers an old version cannot undo this memory. Before an older version is accepted, every server is asked and
waited for, and the user gets a warning. See docs/decisions/0150-newness-of-mutable-files.md.

Pure: `now` is an argument. Memory: about a hundred bytes per file, for MOST_FILES files.
"""

from __future__ import annotations

import math
from collections import OrderedDict

from grid.caps import StorageIndex
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap, version_name
from grid.values import define

MOST_FILES = 4096
"""Number of files remembered, the latest ones."""

ACCEPTED_S = 60.0
"""Once all servers were asked for a newer version, an older one is accepted for this long without asking all again."""


@define(kw_only=True)
class _Newest:
    seqnum: int
    accepted: Prefix | None = None
    accepted_at: float = 0.0
    mapped_at: float = -math.inf


class NewestSeen:
    """The newest versions of the files used last."""

    def __init__(self) -> None:
        self._files: OrderedDict[StorageIndex, _Newest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def seqnum(self, storage_index: StorageIndex) -> int:
        """The highest known sequence number of that file; 0 if none."""
        known = self._files.get(storage_index)
        return known.seqnum if known is not None else 0

    def mapped_at(self, storage_index: StorageIndex) -> float:
        """When a map last had all servers in it."""
        known = self._files.get(storage_index)
        return known.mapped_at if known is not None else -math.inf

    def floor(self, storage_index: StorageIndex, now: float) -> int:
        """Before a version below this sequence number is accepted, all servers must be asked; 0 if they were asked lately."""
        known = self._files.get(storage_index)
        if known is None:
            return 0
        is_accepted = known.accepted is not None and now - known.accepted_at < ACCEPTED_S
        return 0 if is_accepted else known.seqnum

    def learn(self, storage_index: StorageIndex, seqnum: int) -> None:
        """Note that a version with that sequence number was proven to exist, other than by a map."""
        known = self._of(storage_index)
        if seqnum > known.seqnum:
            known.seqnum, known.accepted = seqnum, None

    def note(self, storage_index: StorageIndex, found: VersionMap, floor: int, now: float) -> VersionMap:
        """Remember what a map shows. floor: the floor with which it was made. Returns the map with the known sequence number."""
        known = self._of(storage_index)
        highest = max((share.prefix.seqnum for share in found.sightings), default=0)
        if highest > known.seqnum:
            known.seqnum, known.accepted = highest, None
        if len(found.answered | found.failed) == len(found.servers):
            known.mapped_at = now
        found = found.knowing(known.seqnum)
        best = found.best
        if not found.is_outdated:
            known.accepted = None
        elif floor and best != known.accepted:
            known.accepted, known.accepted_at = best, now
        elif floor:
            known.accepted_at = now
        return found

    def _of(self, storage_index: StorageIndex) -> _Newest:
        """What is known of the file, which becomes the latest one."""
        known = self._files.pop(storage_index, None) or _Newest(seqnum=0)
        self._files[storage_index] = known
        if len(self._files) > MOST_FILES:
            self._files.popitem(last=False)
        return known


def outdated_text(found: VersionMap, prefix: Prefix) -> str:
    """The warning for a user who gets this version although a newer one is known."""
    return (
        f"a newer version of the file is known (seq{found.highest_seqnum}), of which too few shares can be read now; "
        f"this is {version_name(prefix)}. Try again when all servers can be reached"
    )
