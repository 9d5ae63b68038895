"""A node's process and its system: how many files and connections may be open, no image of its memory on a disk, and freed memory returned.

A storage node returns freed memory whenever it has released enough of its budgets (grid.wire.budget.server_memory). A gateway has no
single place where memory is released, so that it goes by the processor time that it used.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from time import process_time

from attrs import frozen

from grid.limits import MAX_CONNECTIONS
from grid.ports import Clock, Timer
from grid.runtime import return_freed_memory

WANTED = 65536
"""Descriptors that serve thousands of idle connections with room for the files of those that are served."""

_IN_USE = 16
"""What a process has open at its start, where that cannot be counted."""

_OWN = 8
"""What a node opens for itself before anybody connects: its ports, its log, its database."""


LOOK_S = 5.0
"""Seconds between two looks."""

BUSY_S = 0.3
"""Processor seconds after which there may be memory to return."""


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


class MemoryReturn:
    """Returns freed memory every LOOK_S seconds in which the process worked, until `close`.

    Clients that abandon what they asked for leave megabytes of freed memory between used blocks, and the allocator keeps all of
    it: a gateway in front of slow readers grew from 100 to 550 MiB. Cost: some milliseconds each time.
    """

    def __init__(
        self,
        clock: Clock,
        return_memory: Callable[[], None] = return_freed_memory,
        used_s: Callable[[], float] = process_time,
    ) -> None:
        """used_s: processor seconds of this process so far."""
        self._clock = clock
        self._return_memory = return_memory
        self._used_s = used_s
        self._last_s = used_s()
        self._timer: Timer = clock.call_later(LOOK_S, self._look)

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._clock.call_later(LOOK_S, self._look)
        used_s = self._used_s()
        if used_s - self._last_s >= BUSY_S:
            self._return_memory()
            self._last_s = self._used_s()
