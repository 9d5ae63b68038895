"""What the system allows a node's process: how many files and connections may be open, and no image of its memory on a disk."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import suppress

from attrs import frozen

from grid.limits import MAX_CONNECTIONS

WANTED = 65536
"""Descriptors that serve thousands of idle connections with room for the files of those that are served."""

_IN_USE = 16
"""What a process has open at its start, where that cannot be counted."""

_OWN = 8
"""What a node opens for itself before anybody connects: its ports, its log, its database."""


@frozen(kw_only=True)
class DescriptorPlan:
    """What the descriptors of a process are for.

    connections: incoming ones that hold permits. files: kept for what they ask for: share files, uploads in progress, bodies
    spooled to the disk, connections to servers.
    """

    connections: int
    files: int


def plan_descriptors(limit: int, in_use: int, most: int = MAX_CONNECTIONS) -> DescriptorPlan:
    """Half of what is free for files, and of the other half eight parts in nine for permits: one is for those being closed.

    A limit of 64 leaves some 15 permits and 20 files. most: connections at most, however many descriptors there are.
    """
    free = max(12, limit - in_use - _OWN)
    connections = min(most, max(4, free * 4 // 9 - 2))
    return DescriptorPlan(connections=connections, files=max(4, free - connections - max(4, connections // 8)))


def descriptors_in_use() -> int:
    """Descriptors that this process has open now."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder)) - 1
        except OSError:
            continue
    return _IN_USE


def descriptor_limit() -> int:
    """How many this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WANTED if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> int:
    """Let this process have as many descriptors as it may, up to WANTED; how many that are.

    The limit that systems give a process is often 1024: that many idle connections would shut everybody else out.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # Some systems refuse what their hard limit seems to allow: the node runs with what it has.
        return soft
    return wanted


_PR_SET_DUMPABLE = 4
"""The number by which Linux's prctl knows it."""


def forbid_core_dumps() -> None:
    """Have the system write no core file when this process crashes, nor hand one to a program that collects them.

    The limit alone does not count where crashes are piped to such a program. Other processes of the same user cannot
    attach to this one from then on; root still can.
    """
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
