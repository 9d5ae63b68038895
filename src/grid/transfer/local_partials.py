"""Incomplete files on a local disk. Every call that is not a coroutine blocks, and belongs on a thread.

A file is written under another name, synced, and renamed, so it is complete or not there. Its writer holds a lock on it
from beginning to end. Until it is complete, only its owner may read it. [decision 504]
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Set
from contextlib import suppress
from functools import lru_cache
from functools import partial as bind
from typing import TypeVar

from grid.ports import Buffer
from grid.transfer.ends import Body, EndError, Entry, KeptPart, refuse_name

LATEST_NS = 2**40 * 10**9
"""Nanoseconds from 1970 beyond any calendar: the file system takes the nearest time that it can keep."""

MODES = 0o777
PRIVATE = 0o600

PARTIAL = ".grid-partial-"
"""Marks incomplete files; a listing omits them."""

_NAME = re.compile(re.escape(PARTIAL) + "[0-9a-f]{24,}")

KEPT_S = 7 * 86400
"""Seconds for which an incomplete file of another transfer is kept after the last write to it."""

_TO_WRITE = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

R = TypeVar("R")


def refuse_path(name: str) -> str | None:
    """Why no file of a disk or an SFTP server may have this path; None if it may."""
    if PARTIAL in name and any(part.startswith(PARTIAL) for part in name.split("/")):
        return f"names that begin with {PARTIAL} are for incomplete files"
    return refuse_name(name)


class Partial:
    """A file being written. What an earlier attempt wrote is read and compared before it counts."""

    def __init__(self, path: str, place: str, scratch: str, descriptor: int, *, is_new: bool) -> None:
        """path: where it is now. place: where it belongs."""
        self._path, self._place, self.scratch = path, place, scratch
        self.descriptor, self.is_new = descriptor, is_new

    async def holds(self, part: KeptPart, body: Body) -> bool:
        """Whether it has the part's bytes."""
        return await _to_its_end(bind(body.matches, part, self._read))

    async def write(self, offset: int, piece: Buffer) -> None:
        """Write a piece."""
        await _to_its_end(bind(write_at, self.descriptor, offset, piece, may_skip=self.is_new))

    async def sync(self) -> bool:
        """Nothing: a kill loses nothing that was written, and `holds` finds what a crash of the machine lost."""
        return True

    async def place(self, entry: Entry, size: int) -> None:
        """Finish it, and move it into place."""
        await _to_its_end(bind(self.place_now, entry, size))

    def _read(self, offset: int, length: int) -> bytes:
        return os.pread(self.descriptor, length, offset)

    def place_now(self, entry: Entry, size: int) -> None:
        """Finish it, make it durable, and move it into place."""
        self.finish(entry, size)
        os.fsync(self.descriptor)
        self.settle()

    def finish(self, entry: Entry, size: int) -> None:
        """Set its length, mode and time."""
        os.ftruncate(self.descriptor, size)
        mode = _new_mode(os.path.dirname(self._path)) if entry.mode is None else entry.mode & MODES
        os.fchmod(self.descriptor, mode)
        if entry.mtime_ns is not None:
            mtime_ns = min(max(entry.mtime_ns, -LATEST_NS), LATEST_NS)
            os.utime(self.descriptor, ns=(mtime_ns, mtime_ns))

    def settle(self) -> None:
        """Move it into place. It is durable."""
        os.replace(self._path, self._place)

    def drop(self) -> None:
        """Remove it, unless it is in place."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def begin(root: str, name: str, scratch: str, *, resumes: bool) -> Partial:
    """Open the incomplete file of an earlier attempt to write a file below a directory, or make a new one."""
    place = f"{root}/{name}"
    _refuse_links(root, name)
    if os.path.isdir(place):
        raise EndError(f"{place} is a directory")
    path = os.path.join(os.path.dirname(place), f"{PARTIAL}{scratch}")
    while True:
        descriptor, is_new = _open_or_make(path, resumes=resumes)
        try:
            is_there = _lock(path, descriptor, fcntl.LOCK_EX)
        except BaseException:
            os.close(descriptor)
            raise
        if is_there:
            return Partial(path, place, scratch, descriptor, is_new=is_new)
        os.close(descriptor)


class Leftovers:
    """Incomplete files that no transfer will go on with."""

    def __init__(self, spared: Set[str], mark: str) -> None:
        """spared: names, without PARTIAL, that this transfer can resume. mark: what its names begin with."""
        self._spared, self._mark = frozenset(spared), mark

    def remove(self, path: str) -> bool:
        """Remove an incomplete file, unless somebody writes to it, or may resume it. Return whether it is gone."""
        name = os.path.basename(path)
        if _NAME.fullmatch(name) is None or name.removeprefix(PARTIAL) in self._spared:
            return False
        try:
            descriptor = os.open(path, _TO_WRITE)
        except OSError:
            return False
        try:
            is_old = time.time() - os.fstat(descriptor).st_mtime > KEPT_S
            if not (is_old or name.startswith(PARTIAL + self._mark)) or not _is_own(descriptor):
                return False
            if _lock(path, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                os.unlink(path)
                return True
        except OSError:
            pass
        finally:
            os.close(descriptor)
        return False


def write_at(descriptor: int, offset: int, piece: Buffer, *, may_skip: bool) -> None:
    """Write a piece. may_skip: leave a hole for one that is all zeros."""
    view = memoryview(piece)
    if may_skip and not (view and view[0]) and bytes(view).count(0) == len(view):
        return
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _refuse_links(root: str, name: str) -> None:
    """Raise EndError if the path below the directory leads through a symbolic link, perhaps out of it."""
    below = root
    for part in name.split("/")[:-1]:
        below = f"{below}/{part}"
        try:
            mode = os.lstat(below).st_mode
        except OSError:
            return  # It is made, or the next call says what is wrong.
        if stat.S_ISLNK(mode):
            raise EndError(f"{below} is a symbolic link, and a transfer writes through none below its target")


def _open_or_make(path: str, *, resumes: bool) -> tuple[int, bool]:
    """A descriptor, and whether the file is new."""
    if resumes:
        with suppress(OSError):
            descriptor = os.open(path, _TO_WRITE)
            if _is_own(descriptor):
                os.fchmod(descriptor, PRIVATE)
                return descriptor, False
            os.close(descriptor)
    return _make(path, PRIVATE), True


def _make(path: str, mode: int) -> int:
    """Make a file. Its directory is made, and a file that is in its way removed, only after an attempt without that."""
    flags = _TO_WRITE | os.O_CREAT | os.O_EXCL
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except FileExistsError:
        pass
    # A killed process made it: only one process at a time knows this name.
    with suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags, mode)


@lru_cache(maxsize=1024)
def _new_mode(directory: str) -> int:
    """The mode that this process gives to new files of a directory: that of one made there for a moment, once.

    It stays empty. Asking for the process's mask would change that for other threads.
    """
    path = os.path.join(directory, PARTIAL + secrets.token_hex(16))
    descriptor = _make(path, 0o666)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode) & MODES
    finally:
        os.close(descriptor)
        os.unlink(path)


def _lock(path: str, descriptor: int, kind: int) -> bool:
    """Lock a file; return whether it still has this path, for another process may have removed or moved it until then."""
    fcntl.flock(descriptor, kind)
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def _is_own(descriptor: int) -> bool:
    """Whether nobody else can have put the file there."""
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1


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
