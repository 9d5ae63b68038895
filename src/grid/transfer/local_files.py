"""Local files of a transfer: opens, reads and writes them. Every call but `read_cached` and `fetch_ahead` blocks, and
belongs on a thread.

A file is written under another name, synced, and renamed, so it is complete or not there.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial as bind
from typing import TypeVar

from grid.ports import Buffer
from grid.transfer.body import BLOCK
from grid.transfer.ends import EndError, Entry, KeptPart

SMALL_SIZE = 256 * 2**10
"""Up to this size, one call on a thread opens and reads a file, and one writes it."""

MODES = 0o777
PARTIAL = ".grid-partial-"
"""Marks incomplete files; a listing omits them."""


_CACHED_ONLY: int | None = getattr(os, "RWF_NOWAIT", None)
"""A flag of preadv: do not wait for the disk. Linux has it."""

_TO_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW

R = TypeVar("R")


class Partial:
    """A file being written. What an earlier attempt wrote is read and compared before it counts."""

    def __init__(self, path: str, scratch: str, descriptor: int, *, is_new: bool) -> None:
        self.path, self.scratch, self.descriptor, self.is_new = path, scratch, descriptor, is_new

    async def holds(self, part: KeptPart) -> bool:
        """Whether it has the part's bytes."""
        return await _to_its_end(bind(_digests, self.descriptor, part.offset, part.length)) == part.digest

    async def write(self, offset: int, piece: Buffer) -> None:
        """Write a piece."""
        await _to_its_end(bind(_write_at, self.descriptor, offset, piece, may_skip=self.is_new))

    async def sync(self) -> bool:
        """Nothing: a kill loses nothing that was written, and `holds` finds what a crash of the machine lost."""
        return True

    async def place(self, entry: Entry, size: int, path: str) -> None:
        """Finish it, and move it to its path."""
        await _to_its_end(bind(self.place_now, entry, size, path))

    def place_now(self, entry: Entry, size: int, path: str) -> None:
        """Set its length, mode and time, make it durable, and move it to its path."""
        os.ftruncate(self.descriptor, size)
        if entry.mode is not None:
            os.fchmod(self.descriptor, entry.mode & MODES)
        if entry.mtime_ns is not None:
            os.utime(self.descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        os.fsync(self.descriptor)
        os.replace(self.path, path)

    def drop(self) -> None:
        """Remove it, unless it is in place."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def open_file(root: str, name: str) -> tuple[int, os.stat_result, bytes]:
    """Open a file of a directory, or the single file `root`. The bytes: all of a small file."""
    path = os.path.join(root, name) if os.path.isdir(root) else root
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


def write_all(root: str, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]) -> list[str | None]:
    """Write small files below a directory: "" for each that is in place, None for one that failed."""
    tokens: list[str | None] = []
    for entry, data in files:
        try:
            write_whole(f"{root}/{entry.name}", scratch(entry.name), entry, data)
        except (OSError, EndError):
            tokens.append(None)
        else:
            tokens.append("")
    return tokens


def write_whole(path: str, scratch: str, entry: Entry, data: Buffer) -> None:
    """Write a small file, sync it and move it into place."""
    partial = begin(path, scratch, resumes=False)
    try:
        _write_at(partial.descriptor, 0, data, may_skip=True)
        partial.place_now(entry, len(data), path)
    except BaseException:
        partial.drop()
        raise
    finally:
        os.close(partial.descriptor)


def begin(path: str, scratch: str, *, resumes: bool) -> Partial:
    """Open the incomplete file of an earlier attempt, or make a new one."""
    if os.path.isdir(path):
        raise EndError(f"{path} is a directory")
    partial = os.path.join(os.path.dirname(path), f"{PARTIAL}{scratch}")
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    if resumes:
        with suppress(OSError):
            descriptor = os.open(partial, flags)
            if _is_own(descriptor):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                return Partial(partial, scratch, descriptor, is_new=False)
            os.close(descriptor)
    descriptor = _make(partial, flags | os.O_CREAT | os.O_EXCL)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return Partial(partial, scratch, descriptor, is_new=True)


def _make(partial: str, flags: int) -> int:
    """Make a file. Its directory is made, and a file that is in its way removed, only after an attempt without that."""
    try:
        return os.open(partial, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(partial), exist_ok=True)
    except FileExistsError:
        pass
    # A killed process made it: only one process at a time knows this name.
    with suppress(FileNotFoundError):
        os.unlink(partial)
    return os.open(partial, flags, 0o666)


def _is_own(descriptor: int) -> bool:
    """Whether nobody else can have put the file there."""
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1


def _digests(descriptor: int, offset: int, length: int) -> bytes:
    """The digests of a range's blocks, as a body computes them."""
    end = offset + length
    return b"".join(
        hashlib.sha256(os.pread(descriptor, min(BLOCK, end - begin), begin)).digest()
        for begin in range(offset, end, BLOCK)
    )


def _write_at(descriptor: int, offset: int, piece: Buffer, *, may_skip: bool) -> None:
    """Write a piece. may_skip: leave a hole for one that is all zeros."""
    view = memoryview(piece)
    if may_skip and not (view and view[0]) and bytes(view).count(0) == len(view):
        return
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


async def _to_its_end(call: Callable[[], R]) -> R:
    """Run a call on a thread, and wait for its end even if cancelled: its descriptor may be closed then, and not before.

    Another file would get the number of a descriptor that is closed earlier, and the bytes of a late write.
    """
    running = asyncio.get_running_loop().run_in_executor(None, call)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # Nobody asks for it.
        raise cancelled
    return running.result()
