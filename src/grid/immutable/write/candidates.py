"""The servers that may receive the shares of one file, and what is known of each. Part of the select plan; pure.

It owns what a candidate is, and which servers are candidates at first. It decides nothing about shares.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

from grid.ports import ServerId, ServerVersion, ShareNumber
from grid.values import define, field


class Standing(Enum):
    """READ_ONLY: it takes no new shares, but what it holds counts. BAD: nothing of it counts."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"
    BAD = "bad"


@define(kw_only=True, eq=False)
class Candidate:
    """asked: whether it may be asked for anything. Of other servers only their shares are known.

    granted: what it has made room for; allocated: the part of that which is to be used. answered_room: it has been asked for
    room, which has renewed the leases on what it holds.
    """

    server_id: ServerId
    standing: Standing = Standing.WRITABLE
    asked: bool = True
    version: ServerVersion | None = None
    existing: frozenset[ShareNumber] | None = None
    granted: set[ShareNumber] = field(factory=set)
    allocated: set[ShareNumber] = field(factory=set)
    answered_room: bool = False

    @property
    def known(self) -> bool:
        """Whether it has said its version and its shares."""
        return self.version is not None and self.existing is not None

    def has_room(self, share_size: int) -> bool:
        """Whether it is known to take shares of that size."""
        return self.version is not None and self.version.maximum_immutable_share_size >= share_size

    @property
    def held(self) -> frozenset[ShareNumber]:
        """The shares that it has or has room for."""
        return (self.existing or frozenset()) | self.allocated


def split_trusted(
    server_ids: Sequence[ServerId], in_doubt: Collection[ServerId], *, n: int, happy: int
) -> tuple[list[ServerId], list[ServerId]]:
    """Split the servers into those to place n shares on, and those in doubt to avoid. Avoids none if too few others are left.

    `happy` servers are enough, as is half the number that could hold a share each.
    """
    trusted = [server_id for server_id in server_ids if server_id not in in_doubt]
    spares = [server_id for server_id in server_ids if server_id in in_doubt]
    if len(trusted) < max(happy, -(-min(n, len(server_ids)) // 2)):
        return [*trusted, *spares], []
    return trusted, spares
