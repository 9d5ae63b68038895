"""The space of servers without double counting: a disk that several of them share counts once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_NEAR = 0.01
"""How much the space reported by two nodes on one disk may differ, because they are asked at different times."""


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


def as_files(space: int, needed: int, total: int) -> int:
    """About how many bytes of files fill this much space: shares take total / needed times the file's size."""
    return space * needed // total


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= max(one, other) * _NEAR
