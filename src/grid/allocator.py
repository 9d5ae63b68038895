"""What a process asks of glibc's allocator, which keeps freed memory or returns it to the kernel. Without glibc nothing here does anything.

Call these before there are threads, except for `return_freed_memory`. [docs/decisions/0086-one-arena.md;
docs/decisions/0519-huge-pages-for-commands.md]
"""

from __future__ import annotations

import ctypes
import mmap
import resource
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

KEPT_MEMORY = 32 * 2**20
"""Bytes of freed memory that a process keeps: several batches of one operation."""

HUGE_ROOM = 192 * 2**20
"""Bytes of a command's memory for which huge pages are asked: more than a transfer takes."""

EXCESS_MEMORY = 20 * 2**20
"""Return freed memory to the system only if it is at least this much."""

_TRIM_THRESHOLD = -1
_TOP_PAD = -2
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8
"""Parameter numbers of glibc's mallopt."""

_USUAL_PAD = 128 * 2**10
"""Bytes that glibc takes from the kernel beyond what is asked for, by default."""

OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
"""2 if the kernel promises no more memory than there is. [proc(5)]"""

_ALLOCATOR_COUNTS = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)
"""The fields of glibc's struct mallinfo2; fordblks is the free memory."""


class _AllocatorState(ctypes.Structure):
    """The result of glibc's mallinfo2."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _ALLOCATOR_COUNTS)


@cache
def keep_freed_memory() -> None:
    """Make glibc's allocator keep up to KEPT_MEMORY of freed memory instead of returning it to the kernel.

    Every batch takes megabytes and frees them. Obtaining them from the kernel each time costs a page fault per 4 KiB,
    a tenth of all processor time of a put. All threads use one arena; otherwise each would have its own, and
    keep memory there that the others need.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, KEPT_MEMORY // 2)
        mallopt(_TRIM_THRESHOLD, KEPT_MEMORY)
        mallopt(_ARENA_MAX, 1)


@cache
def use_huge_pages() -> None:
    """Have this process keep all memory that it frees, up to HUGE_ROOM, and have it in huge pages: for commands that end soon.

    Whatever they take costs a page fault per 2 MiB, and fewer misses of the translations of addresses. The room is taken at
    once, but nothing of it is resident before it is used. Where memory is limited beforehand, or such room is not granted, it does
    the same as `keep_freed_memory`.
    """
    keep_freed_memory()
    if sys.platform != "linux" or _is_promise_limited():
        return
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.malloc.argtypes, library.malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p
        library.sbrk.argtypes, library.sbrk.restype = (ctypes.c_ssize_t,), ctypes.c_void_p
        library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        library.free.argtypes = (ctypes.c_void_p,)
        library.mallopt(_TOP_PAD, HUGE_ROOM)
        block = library.malloc(KEPT_MEMORY // 2 - mmap.PAGESIZE)  # The longest that is not mapped on its own.
        library.mallopt(_TOP_PAD, _USUAL_PAD)
        end = library.sbrk(0)
        if block is not None and HUGE_ROOM <= end - block <= KEPT_MEMORY + HUGE_ROOM:
            begin = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
            if library.madvise(begin, end - begin, mmap.MADV_HUGEPAGE) == 0:
                library.mallopt(_TRIM_THRESHOLD, KEPT_MEMORY + HUGE_ROOM)
        library.free(block)


def _is_promise_limited() -> bool:
    """Whether addresses are limited, or the kernel counts what it has promised: stacks of threads would lack what nobody uses yet."""
    if any(
        resource.getrlimit(kind)[0] != resource.RLIM_INFINITY for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    ):
        return True
    try:
        return OVERCOMMIT.read_text().strip() == "2"
    except OSError:
        return False


def return_freed_memory() -> None:
    """Return the freed memory that glibc's allocator keeps to the kernel, if it is much.

    Otherwise free memory between used blocks stays resident. It takes some milliseconds, and page faults later.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _AllocatorState
        if library.mallinfo2().fordblks >= EXCESS_MEMORY:
            library.malloc_trim(0)
