"""Memory that is touched before a sample, so no system pays for a host that reclaims a virtual machine's free memory.
[docs/decisions/0071-touched-memory.md]
"""

from __future__ import annotations

import os
import tempfile

PIECE = 1 << 20

LEAST_TOUCHED = 64 * PIECE
MOST_TOUCHED = 6144 * PIECE
TOUCHED_PER_BYTE = 6
"""Bytes of memory touched per byte of an operation: its shares on all servers, and data in transit."""


def touch_for(size: int) -> None:
    """Touch what an operation with that many bytes may need."""
    touch_memory(min(MOST_TOUCHED, total_memory() // 4, LEAST_TOUCHED + TOUCHED_PER_BYTE * size))


def total_memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def touch_memory(size: int) -> None:
    """Allocate this much page cache and release it, so the memory needed next is in place."""
    piece = bytes(PIECE)
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(size // PIECE):
            file.write(piece)
