"""Memory that is touched before a sample, so no system pays for a host that reclaims a virtual machine's free memory.
[docs/decisions/0071-touched-memory.md]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

PIECE = 1 << 20

LEAST_TOUCHED = 64 * PIECE
MOST_TOUCHED = 6144 * PIECE
TOUCHED_PER_BYTE = 12
"""Bytes of memory touched per byte of an operation: for its shares on all servers, data in transit, and as much again, since the host takes
back some of it meanwhile.
"""

GROUPS = Path("/proc/self/cgroup")
LIMITS = {
    "": (Path("/sys/fs/cgroup"), "memory.max"),
    "memory": (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
}
"""Where control groups are, and the file that has their limit, by controller: version 2 names none, version 1 this one."""

_TOUCH = """
import mmap, sys
pieces, size = map(int, sys.argv[1:])
mapping = mmap.mmap(-1, pieces * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
try:
    mapping.madvise(mmap.MADV_HUGEPAGE)
except OSError:
    pass  # A kernel without huge pages has small ones.
piece = bytes(size)
for _ in range(pieces):
    mapping.write(piece)
"""


def touch_for(size: int) -> None:
    """Write out what waits for the disk, then touch what an operation with that many bytes may need. It should begin at once: the
    host takes the memory back within seconds.
    """
    os.sync()
    touch_memory(min(MOST_TOUCHED, spare_memory(), LEAST_TOUCHED + TOUCHED_PER_BYTE * size))


def spare_memory() -> int:
    """Bytes that may be touched: a quarter of this machine's memory or of what its control groups allow, and half of what is available."""
    memory = psutil.virtual_memory()
    return min(memory.available // 2, *(limit // 4 for limit in [memory.total, *_group_limits()]))


def touch_memory(size: int) -> None:
    """Have another process allocate this much memory in huge pages and end, so the memory needed next is in place.

    It is another process, because the kernel counts the peak of this one towards each command that it starts.
    """
    if pieces := size // PIECE:
        command = [sys.executable, "-I", "-S", "-c", _TOUCH, str(pieces), str(PIECE)]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
            print(f"perf: {pieces} MiB of memory could not be touched; what follows may take longer", file=sys.stderr)


def _group_limits() -> Iterator[int]:
    """Bytes that this process's control groups may use, from its own to the outermost."""
    with suppress(OSError):
        for line in GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            for root, name in (LIMITS[one] for one in controllers.split(",") if one in LIMITS):
                own = root / group.strip("/")
                for folder in [own, *own.parents][: len(own.parts) - len(root.parts) + 1]:
                    with suppress(OSError, ValueError):  # The outermost has no limit, and "max" is none.
                        yield int((folder / name).read_text())
