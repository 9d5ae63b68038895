"""Limits and memory of a node's process: open files and connections, and the return of freed memory.

A storage node returns freed memory whenever it has released enough of its budgets (grid.wire.budget.server_memory). A
gateway has no single place where memory is released, so it goes by the processor time used.
"""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable
from time import process_time

from grid.allocator import return_freed_memory
from grid.limits import MAX_CONNECTIONS
from grid.ports import Clock, Timer
from grid.values import frozen

WANTED = 65536
"""File descriptors for thousands of idle connections and for the files of active ones."""

_IN_USE = 16
"""The number open at the start of a process, where that cannot be counted."""

_OWN = 8
"""What a node opens for itself before anybody connects: its ports, log and database."""


LOOK_S = 5.0
"""Seconds between two checks."""

BUSY_S = 0.3
"""Processor seconds after which there may be memory to return."""

MOST_BUSY_LOOKS = 6
"""Looks that find a busy process, one after the other, after which its garbage is collected without waiting for it to rest."""


@frozen(kw_only=True)
class DescriptorPlan:
    """How a process divides its file descriptors.

    connections: incoming ones, which hold permits. files: share files, uploads in progress, spooled bodies, and
    connections to servers.
    """

    connections: int
    files: int


def plan_descriptors(limit: int, in_use: int, most: int = MAX_CONNECTIONS) -> DescriptorPlan:
    """Reserve half of the free descriptors for files; of the other half, 8/9 get permits and 1/9 covers closing
    connections.

    A limit of 64 leaves about 15 permits and 20 files. most: connections at most, however many descriptors there are.
    """
    free = max(12, limit - in_use - _OWN)
    connections = min(most, max(4, free * 4 // 9 - 2))
    return DescriptorPlan(connections=connections, files=max(4, free - connections - max(4, connections // 8)))


def descriptors_in_use() -> int:
    """The number of descriptors that this process has open now."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder)) - 1
        except OSError:
            continue
    return _IN_USE


def descriptor_limit() -> int:
    """The number of descriptors allowed."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WANTED if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> int:
    """Raise this process's limit as far as possible, up to WANTED, and return it.

    Systems often limit a process to 1024, and that many idle connections would shut everybody else out.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # Some systems refuse what their hard limit seems to allow; the node runs with what it has.
        return soft
    return wanted


def collect_garbage() -> None:
    """Find objects that only refer to each other, unless collection is off: then a large directory is being parsed."""
    if gc.isenabled():
        gc.collect()


class MemoryReturn:
    """Returns freed memory every LOOK_S seconds in which the process worked, and collects garbage once it rests, until `close`.

    Clients that abandon requests leave megabytes of freed memory between used blocks, and the allocator keeps all of
    it: a gateway with slow readers grew from 100 to 550 MiB. They also leave connections and tasks that refer to each
    other and to such megabytes. Python collects those when there are many objects, however large they are, and never
    while the process is idle. Cost: a few milliseconds each time.
    """

    def __init__(
        self,
        clock: Clock,
        return_memory: Callable[[], None] = return_freed_memory,
        used_s: Callable[[], float] = process_time,
        collect: Callable[[], None] = collect_garbage,
    ) -> None:
        """used_s: returns the processor seconds that this process has used."""
        self._clock = clock
        self._return_memory = return_memory
        self._collect = collect
        self._used_s = used_s
        self._last_s = used_s()
        self._busy_looks = 0
        self._timer: Timer = clock.call_later(LOOK_S, self._look)

    def close(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._clock.call_later(LOOK_S, self._look)
        is_busy = self._used_s() - self._last_s >= BUSY_S
        if not is_busy and not self._busy_looks:
            return
        self._busy_looks += is_busy
        if not is_busy or self._busy_looks > MOST_BUSY_LOOKS:
            self._collect()
            self._busy_looks = int(is_busy)  # What becomes garbage from now on is looked for at rest.
        self._return_memory()
        self._last_s = self._used_s()
