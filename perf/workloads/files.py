"""Test files: sizes fitted to published figures, new and incompressible contents, and their eviction from the page cache."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from perf.campaigns.arrivals import IMAGES

COUNT = 100
"""The number of published JPEG 2000 files."""

PIECE = 1 << 20

MOST_LEFT = 0.01
"""The part of the pages that may stay in the cache of what counts as cold."""


def image_sizes(count: int = COUNT, seed: int = 0) -> list[int]:
    """Sizes in random order with exactly the published least, greatest and mean; ValueError for too few."""
    return IMAGES.sizes(count, seed)


def make_files(folder: Path, sizes: Sequence[int], seed: str) -> list[Path]:
    """Create the folder with a file of each size; the same seed gives the same bytes."""
    folder.mkdir(parents=True)
    paths = []
    for number, size in enumerate(sizes):
        draw = random.Random(f"{seed}/{number}")
        path = folder / f"file{number:05}"
        with path.open("wb") as file:
            for offset in range(0, size, PIECE):
                file.write(draw.randbytes(min(PIECE, size - offset)))
        paths.append(path)
    return paths


def evict(folders: Iterable[Path]) -> bool:
    """Write all files below the folders to the disk, and evict only them from the page cache.

    Returns whether there are any, and hardly a page of them is left in the cache: a file system in memory keeps all.
    """
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    pages = left = 0
    for path in files:
        with suppress(OSError, ValueError), path.open("rb") as file:  # A server may remove or cut it meanwhile.
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size, cached = cached_pages(file.fileno())
            pages, left = pages + size, left + cached
    return pages > 0 and left <= MOST_LEFT * pages


def cached_pages(descriptor: int) -> tuple[int, int]:
    """The pages of a file, and how many of them are in the page cache; OSError."""
    size = os.fstat(descriptor).st_size
    if not size:
        return 0, 0
    count = -(-size // mmap.PAGESIZE)
    states = (ctypes.c_ubyte * count)()
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_ubyte.from_buffer(mapped)
        status = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), states
        )
        del first  # The mapping cannot be closed while something points into it.
    if status:
        raise OSError(ctypes.get_errno(), "mincore")
    return count, sum(state & 1 for state in states)
