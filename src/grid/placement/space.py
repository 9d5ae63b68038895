"""The space of servers, counted truthfully: a disk that several of them share counts once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_NEAR = 0.01
"""The part by which two nodes may differ on the space of their disk: they were asked for it at different times."""


def disks_of(servers: Sequence[tuple[str, int]]) -> list[int]:
    """The disk of each server, numbered from 0 in their order. servers: the host, "" if it is not known, and free bytes.

    Servers of one host that have as much space as each other, but for a hundredth, are taken to share a disk.
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
    """Bytes that are free on the disks of the servers. A disk has what the first of its servers says."""
    counted: dict[int, int] = {}
    for disk, (_, space) in zip(disks_of(servers), servers, strict=True):
        counted.setdefault(disk, space)
    return sum(counted.values())


def as_files(space: int, needed: int, total: int) -> int:
    """About how many bytes of files take this much space: shares take total / needed of it."""
    return space * needed // total


def _is_near(one: int, other: int) -> bool:
    return abs(one - other) <= max(one, other) * _NEAR
