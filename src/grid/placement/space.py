"""The space of servers without double counting, and how much of it new files can use. Pure. (decision 387)

A disk that several servers share counts once. A file needs distinct servers, so the largest disk alone takes none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from grid.ports import StorageServer
from grid.values import frozen

LackOfRoom = Literal["full", "read-only", "no space or read-only"]
"""Why a server takes no new shares: it has no space, its operator forbids it, or it does not say which."""

_NEAR = 0.01
"""How much the space reported by two nodes on one disk may differ, because they are asked at different times."""


def lack_of_room(available: int | None, is_read_only: bool | None) -> LackOfRoom | None:
    """Why a server takes no new shares; None if it may take some. available: bytes. Both None if it does not say."""
    if available != 0:
        return None
    if is_read_only is None:
        return "no space or read-only"
    return "read-only" if is_read_only else "full"


def may_take(server: StorageServer, size: int) -> bool:
    """Whether the server may take a new share of that many bytes: by what it said last, or because it said nothing."""
    version = server.known_version
    return version is None or version.available_space >= max(1, size)


def lack_as_verb(lack: LackOfRoom, *, is_plural: bool = False) -> str:
    """The same as the end of a sentence about the server, or several."""
    be, have = ("are", "have") if is_plural else ("is", "has")
    return f"{have} no space or {be} read-only" if lack == "no space or read-only" else f"{be} {lack}"


def disks_of(servers: Sequence[tuple[str, int]]) -> list[int]:
    """The disk of each server, numbered from 0 in their order. servers: (host, "" if unknown; free bytes).

    Servers on one host whose space differs by at most a hundredth are assumed to share a disk.
    """
    first: list[tuple[str, int]] = []
    found = []
    for host, space in servers:
        shared = [
            number for number, (other, left) in enumerate(first) if host and host == other and _is_near(space, left)
        ]
        if not shared:
            first.append((host, space))
        found.append(shared[0] if shared else len(first) - 1)
    return found


def space_of_disks(servers: Sequence[tuple[str, int]]) -> int:
    """Free bytes on the servers' disks. A disk has what its first server reports."""
    counted: dict[int, int] = {}
    for disk, (_, space) in zip(disks_of(servers), servers, strict=True):
        counted.setdefault(disk, space)
    return sum(counted.values())


@frozen(kw_only=True)
class Usable:
    """size: bytes that new files can use. limit: the index of the server whose space ends it, None if all can be used.

    limit is also None if no file can be stored, since too few servers have any room.
    """

    size: int
    limit: int | None = None


def usable_space(servers: Sequence[tuple[str, int | None]], happy: int) -> Usable:
    """How much of their space new files can use while `happy` servers have room. servers: as for `disks_of`, or None if unknown.

    Placement gives the servers equal parts as long as they have room. So they fill up evenly, until the one with the
    happy-th largest space is full: of each server, no more than that counts. Servers on one disk share it evenly.
    Servers that do not say how much they have never fill up.
    """
    known = [(index, host, space) for index, (host, space) in enumerate(servers) if space is not None]
    disks = disks_of([(host, space) for _, host, space in known])
    first: dict[int, int] = {}
    for disk, (_, _, space) in zip(disks, known, strict=True):
        first.setdefault(disk, space)
    sharers = Counter(disks)
    parts = sorted(
        ((first[disk] / sharers[disk], index) for disk, (index, _, _) in zip(disks, known, strict=True)), reverse=True
    )
    wanted = happy - (len(servers) - len(known))  # This many of the servers that report space need room.
    free = sum(first.values())
    if wanted <= 0:
        return Usable(size=free)
    if wanted > len(parts) or not parts[wanted - 1][0]:
        return Usable(size=0)
    level, limit = parts[wanted - 1]
    size = round(sum(min(part, level) for part, _ in parts))
    return Usable(size=size, limit=limit if size < free * (1 - _NEAR) else None)


def as_files(space: int, needed: int, total: int) -> int:
    """About how many bytes of files fill this much space: shares take total / needed times the file's size."""
    return space * needed // total


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= max(one, other) * _NEAR
