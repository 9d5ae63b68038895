"""What a publish passes to the write plan, and what it gets back. Values only; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from grid.engine.lateness import WRITE_FLOOR_S
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation
from grid.mutable.write.goal import Guards
from grid.mutable.write.other_writers import Identity
from grid.ports import Buffer, ServerId, ShareNumber, TestWrite
from grid.values import field, frozen

REPAIR_FLOOR_S = 1.0
"""In a repair, no server is late before this: the file is safe already, and the share is the purpose of the repair."""


@frozen(kw_only=True)
class ShareContents:
    """What to write to each share.

    payload: (offset, bytes) for one share. share_bytes: their approximate total. new_length: the length to cut the share
    to; None keeps it.
    """

    payload: Callable[[ShareNumber], Sequence[tuple[int, Buffer]]] = field(repr=False)
    share_bytes: int
    new_length: int | None


NOTHING = ShareContents(payload=lambda _: (), share_bytes=0, new_length=None)


@frozen(kw_only=True)
class LostLocations:
    """Locations that another writer has claimed, according to their servers.

    bars: writes that keep another writer from finishing at a location, and change nothing else. suspects: locations
    whose servers must prove what they hold.
    """

    bars: Mapping[ShareLocation, TestWrite] = field(factory=dict, repr=False)
    suspects: frozenset[ShareLocation] = frozenset()


@frozen(kw_only=True)
class SparedShares:
    """Shares of the old version that must not be overwritten. front: their first bytes. locations: where they are."""

    front: bytes = b""
    locations: frozenset[ShareLocation] = frozenset()


@frozen(kw_only=True)
class WriteJob:
    """One write of one version.

    base: the order of the version being replaced, None for a new file. settle: whether to write over what has changed
    if that is safe; otherwise such a location is given up. spares: servers for shares whose own server fails, in the file's order.
    hidden: how many numbers may be on servers that did not answer. held: locations that have the version already.
    unfinished: unreadable versions newer than the base, with their shares. late_floor_s: see WriteLateness.
    removes: locations of the goal whose shares are removed. guards: what the map shows of each server's shares; a server
    on which that has changed takes none.
    """

    prefix: Prefix
    contents: ShareContents
    base: Identity | None
    happy: int
    settle: bool
    spares: Sequence[ServerId] = ()
    hidden: int = 0
    held: frozenset[ShareLocation] = frozenset()
    unfinished: Mapping[Identity, frozenset[ShareNumber]] = field(factory=dict)
    late_floor_s: float = WRITE_FLOOR_S
    spared: SparedShares = SparedShares()
    removes: frozenset[ShareLocation] = frozenset()
    lost: LostLocations = field(factory=LostLocations)
    guards: Mapping[ServerId, Guards] = field(factory=dict, repr=False)


@frozen(kw_only=True)
class Written:
    """locations: where the version is now. removed: locations whose shares are gone. lost: all other locations of the goal."""

    locations: frozenset[ShareLocation]
    removed: frozenset[ShareLocation]
    lost: frozenset[ShareLocation]
