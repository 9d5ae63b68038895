"""Local files of a transfer: opens and reads them. Every call but `read_cached` and `fetch_ahead`
blocks, and belongs on a thread.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress

from grid.transfer.ends import Entry
from grid.transfer.local_partials import MODES

SMALL_SIZE = 256 * 2**10
"""Up to this size, one call on a thread opens and reads a file, and one writes it."""

_CACHED_ONLY: int | None = getattr(os, "RWF_NOWAIT", None)
"""A flag of preadv: do not wait for the disk. Linux has it."""

_TO_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def open_file(root: str, name: str) -> tuple[int, os.stat_result, bytes]:
    """Open a file of a directory, or the single file `root`, which may be a symbolic link. The bytes: all of a small file."""
    path = os.path.join(root, name) if os.path.isdir(root) else os.path.realpath(root)
    descriptor = os.open(path, _TO_READ)
    try:
        status = os.fstat(descriptor)
        is_small = stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_SIZE
        return descriptor, status, os.pread(descriptor, status.st_size, 0) if is_small else b""
    except BaseException:
        os.close(descriptor)
        raise


def read_all(root: str, entries: Sequence[Entry]) -> list[bytes | None]:
    """The contents of files of a directory, or of the single file `root`; None for one that is not as listed."""
    is_directory = os.path.isdir(root)
    root = root if is_directory else os.path.realpath(root)
    found: list[bytes | None] = []
    for entry in entries:
        try:
            found.append(_read_as_listed(f"{root}/{entry.name}" if is_directory else root, entry))
        except OSError:
            found.append(None)
    return found


def read_cached(root: str, entries: Sequence[Entry]) -> list[bytes | None]:
    """The same for as many of the first files as are cached by the kernel.

    It waits for no disk, so it may be called on the event loop: handing a small file over to a thread and back takes longer
    than to read it from the cache. Where the kernel cannot tell what it has cached, no file counts as cached.
    """
    found: list[bytes | None] = []
    if _CACHED_ONLY is None or not os.path.isdir(root):
        return found
    for entry in entries:
        try:
            found.append(_read_as_listed(f"{root}/{entry.name}", entry, _CACHED_ONLY))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
                break
            found.append(None)
    return found


def fetch_ahead(root: str, entries: Sequence[Entry]) -> None:
    """Ask the kernel to read files of a directory into its cache, all at the same time. It does not wait for them."""
    for entry in entries if _CACHED_ONLY is not None else ():
        with suppress(OSError):
            descriptor = os.open(f"{root}/{entry.name}", _TO_READ)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)


def _read_as_listed(path: str, entry: Entry, flags: int = 0) -> bytes | None:
    """The contents; None if the file is not as listed. flags: of preadv. BlockingIOError for what is not cached; OSError."""
    descriptor = os.open(path, _TO_READ)
    try:
        data = b""
        if _is_as_listed(os.fstat(descriptor), entry):
            data = _read(descriptor, (entry.size or 0) + 1, flags)
            if flags and len(data) < (entry.size or 0):
                raise BlockingIOError(errno.EAGAIN, "only a part is cached")
        return data if _is_as_listed(os.fstat(descriptor), entry) and len(data) == entry.size else None
    finally:
        os.close(descriptor)


def _read(descriptor: int, length: int, flags: int) -> bytes:
    if not flags:
        return os.pread(descriptor, length, 0)
    buffer = bytearray(length)
    return bytes(memoryview(buffer)[: os.preadv(descriptor, [buffer], 0, flags)])


def _is_as_listed(status: os.stat_result, entry: Entry) -> bool:
    mode = status.st_mode
    return (
        (status.st_size, status.st_mtime_ns) == (entry.size, entry.mtime_ns)
        and mode & MODES == entry.mode
        and stat.S_ISREG(mode)
    )
