"""What a publish asks of the write plan, and what comes of it. Values only; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from grid.engine.lateness import WRITE_FLOOR_S
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import Place
from grid.mutable.write.goal import Guards
from grid.mutable.write.rivals import Identity
from grid.ports import Buffer, ServerId, ShareNumber, TestWrite

REPAIR_FLOOR_S = 1.0
"""No server of a repair is late before this: the file is safe already, and a share is what the repair is for."""


@frozen(kw_only=True)
class WriteJob:
    """What to write. payload: (offset, bytes) of one share; new_length: what the slot is cut to, None leaves it.

    base: the order of the version written over, None for a new file. settle: whether to write over what has changed,
    where that is safe; else such a place is given up. spares: servers for shares whose own fail, in the file's order.
    hidden: numbers that may lie on servers that were not heard. held: places that have the version already.
    rivals: unfinished versions newer than the base, and their shares. late_floor_s: see WriteLateness.
    bars: what keeps another writer from ending what it has begun at a place, sent where that is lost to this one. suspects: lost
    places whose servers are to prove what they hold.
    spared: what shares start with that are not to be written over; avoid: where they lie. removes: places of the goal whose
    shares are to go. guards: what the map shows of each server's shares; a server where it no longer holds takes none.
    """

    prefix: Prefix
    payload: Callable[[ShareNumber], Sequence[tuple[int, Buffer]]] = field(repr=False)
    share_bytes: int
    new_length: int | None
    base: Identity | None
    happy: int
    settle: bool
    spares: Sequence[ServerId] = ()
    hidden: int = 0
    held: frozenset[Place] = frozenset()
    rivals: Mapping[Identity, frozenset[ShareNumber]] = field(factory=dict)
    late_floor_s: float = WRITE_FLOOR_S
    spared: bytes = b""
    avoid: frozenset[Place] = frozenset()
    removes: frozenset[Place] = frozenset()
    bars: Mapping[Place, TestWrite] = field(factory=dict, repr=False)
    suspects: frozenset[Place] = frozenset()
    guards: Mapping[ServerId, Guards] = field(factory=dict, repr=False)


@frozen(kw_only=True)
class Written:
    """places: where the version is now. removed: places whose shares are gone. lost: all others in the goal."""

    places: frozenset[Place]
    removed: frozenset[Place]
    lost: frozenset[Place]
