"""What a publish asks of the write plan, and what it gets back. Values only; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from grid.engine.lateness import WRITE_FLOOR_S
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation
from grid.mutable.write.goal import Guards
from grid.mutable.write.other_writers import Identity
from grid.ports import Buffer, ServerId, ShareNumber, TestWrite

REPAIR_FLOOR_S = 1.0
"""No server of a repair is late before this: the file is safe already, and a share is what the repair is for."""


@frozen(kw_only=True)
class ShareContents:
    """What is written to each share.

    payload: (offset, bytes) of one share. share_bytes: how many there are about. new_length: the length that the share is cut
    to, None leaves it.
    """

    payload: Callable[[ShareNumber], Sequence[tuple[int, Buffer]]] = field(repr=False)
    share_bytes: int
    new_length: int | None


NOTHING = ShareContents(payload=lambda _: (), share_bytes=0, new_length=None)


@frozen(kw_only=True)
class LostLocations:
    """Locations that another writer has claimed, or whose servers say so.

    bars: writes that keep another writer from finishing what it has begun at a location, and change nothing else. suspects: locations
    whose servers have to prove what they hold.
    """

    bars: Mapping[ShareLocation, TestWrite] = field(factory=dict, repr=False)
    suspects: frozenset[ShareLocation] = frozenset()


@frozen(kw_only=True)
class SparedShares:
    """Shares of the old version that are not to be written over. front: what they start with. locations: where they lie."""

    front: bytes = b""
    locations: frozenset[ShareLocation] = frozenset()


@frozen(kw_only=True)
class WriteJob:
    """One write of one version.

    base: the order of the version written over, None for a new file. settle: whether to write over what has changed,
    where that is safe; else such a location is given up. spares: servers for shares whose own fail, in the file's order.
    hidden: numbers that may lie on servers that did not answer. held: locations that have the version already.
    unfinished: versions newer than the base that cannot be read, and their shares. late_floor_s: see WriteLateness.
    removes: locations of the goal whose shares are to be removed. guards: what the map shows of each server's shares; a server
    where that has changed takes none.
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
    """locations: where the version is now. removed: locations whose shares are gone. lost: all others in the goal."""

    locations: frozenset[ShareLocation]
    removed: frozenset[ShareLocation]
    lost: frozenset[ShareLocation]
