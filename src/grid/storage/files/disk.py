"""The port to a disk: the system calls that a share store makes, as few and as simple as possible.

Paths are relative to the storage directory, with slashes. All methods block, may be called on any thread, and
raise OSError as the operating system does. They implement no rule of storage. A loss of power may lose whatever is not synced,
in any order and partially: a file's bytes until sync_file, a name until sync_directory of its directory.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import NewType, Protocol

from grid.ports import Buffer
from grid.values import frozen

Handle = NewType("Handle", int)
"""An open file."""

_PIECES_PER_CALL = 512
"""Below IOV_MAX everywhere."""
_SYNC_FILE_RANGE_WRITE = 2


@frozen(kw_only=True)
class Space:
    """Space of a disk in bytes: total, free, and available to an unprivileged process."""

    total: int
    free_for_root: int
    free: int


class Disk(Protocol):
    """A server's disk."""

    def make_directory(self, path: str) -> None:
        """Make one directory. FileExistsError; FileNotFoundError if its parent does not exist."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory. OSError with ENOTEMPTY or EEXIST if it is not empty; FileNotFoundError."""

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        """(name, whether it is a directory) of each entry, in any order. A link is not a directory. FileNotFoundError."""

    def sync_directory(self, path: str) -> None:
        """Return when the directory's current names are durable. An empty path is the storage directory itself."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing any file of the new name. FileNotFoundError."""

    def unlink(self, path: str) -> None:
        """Remove a file. FileNotFoundError."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""

    def usage(self, path: str) -> tuple[int, int]:
        """(size of the file in bytes, bytes it uses on the disk). FileNotFoundError."""

    def create_file(self, path: str) -> Handle:
        """Create a file and open it for reading and writing. FileExistsError, FileNotFoundError."""

    def open_file(self, path: str, *, writable: bool = False) -> Handle:
        """Open an existing file, never through a link. FileNotFoundError."""

    def close_file(self, handle: Handle) -> None:
        """Close the file."""

    def size(self, handle: Handle) -> int:
        """Size of the file in bytes."""

    def read(self, handle: Handle, offset: int, length: int) -> bytes:
        """The bytes in this range; fewer only at the end of the file."""

    def write(self, handle: Handle, offset: int, pieces: Sequence[Buffer]) -> None:
        """Write the pieces one after the other. A gap between the file's end and the offset becomes zeros."""

    def truncate(self, handle: Handle, size: int) -> None:
        """Cut the file, or extend it with zeros."""

    def sync_file(self, handle: Handle) -> None:
        """Return when the file's bytes and size are durable. After an error, some may not be."""

    def start_writeback(self, handle: Handle) -> None:
        """Start to write the file's bytes to the medium, so that sync_file has less to wait for. No guarantee."""

    def free_space(self) -> int | None:
        """Bytes that may still be written; None if unknown."""

    def space(self) -> Space | None:
        """The disk's size and free space; None if unknown."""


class RealDisk:
    """A directory of the operating system, created if necessary."""

    def __init__(self, root: str) -> None:
        """root: path of the storage directory; its parent must exist."""
        self._root = root
        self._sync_range = _find_sync_file_range()
        os.makedirs(root, exist_ok=True)

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}"

    def make_directory(self, path: str) -> None:
        """Make one directory."""
        os.mkdir(self._path(path), 0o700)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(self._path(path))

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        """The entries, and whether each is a directory."""
        with os.scandir(self._path(path)) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]

    def sync_directory(self, path: str) -> None:
        """Wait until the directory is on the medium."""
        handle = os.open(self._path(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        os.rename(self._path(old), self._path(new))

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(self._path(path))

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        return os.path.lexists(self._path(path))

    def usage(self, path: str) -> tuple[int, int]:
        """Size of the file, and bytes it uses on the disk."""
        status = os.lstat(self._path(path))
        return status.st_size, status.st_blocks * 512

    def create_file(self, path: str) -> Handle:
        """Create a file and open it."""
        return Handle(os.open(self._path(path), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))

    def open_file(self, path: str, *, writable: bool = False) -> Handle:
        """Open an existing file. Does not follow links or wait for pipes."""
        mode = os.O_RDWR if writable else os.O_RDONLY
        return Handle(os.open(self._path(path), mode | os.O_NOFOLLOW | os.O_NONBLOCK))

    def close_file(self, handle: Handle) -> None:
        """Close the file."""
        os.close(handle)

    def size(self, handle: Handle) -> int:
        """Size of the file in bytes."""
        return os.fstat(handle).st_size

    def read(self, handle: Handle, offset: int, length: int) -> bytes:
        """The bytes in this range."""
        piece = os.pread(handle, length, offset)
        if len(piece) == length or not piece:
            return piece
        pieces, count = [piece], len(piece)
        while count < length:
            piece = os.pread(handle, length - count, offset + count)
            if not piece:
                break
            pieces.append(piece)
            count += len(piece)
        return b"".join(pieces)

    def write(self, handle: Handle, offset: int, pieces: Sequence[Buffer]) -> None:
        """Write all pieces."""
        for first in range(0, len(pieces), _PIECES_PER_CALL):
            batch = [memoryview(piece).cast("B") for piece in pieces[first : first + _PIECES_PER_CALL]]
            while batch:
                written = os.pwritev(handle, batch, offset)
                offset += written
                batch = _behind(batch, written)

    def truncate(self, handle: Handle, size: int) -> None:
        """Cut or extend the file."""
        os.ftruncate(handle, size)

    def sync_file(self, handle: Handle) -> None:
        """Wait until the file is on the medium."""
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # On macOS, fsync stops at the drive's cache.
        else:
            os.fdatasync(handle)

    def start_writeback(self, handle: Handle) -> None:
        """Start writing; sync_file will raise any error."""
        if self._sync_range is not None:
            self._sync_range(handle, 0, 0, _SYNC_FILE_RANGE_WRITE)

    def free_space(self) -> int | None:
        """Bytes that an unprivileged process may write; 0 if the system does not say, or lets us write nothing."""
        if not hasattr(os, "statvfs"):
            return None
        shares = self._path("shares")
        try:
            status = os.statvfs(shares)
        except OSError:
            return 0
        if not os.access(shares, os.W_OK):
            return 0  # Linux makes a disk read-only after errors. Clients should not count on its room.
        return status.f_frsize * status.f_bavail

    def space(self) -> Space | None:
        """The system's report on the disk, or None."""
        if not hasattr(os, "statvfs"):
            return None
        try:
            status = os.statvfs(self._path("shares"))
        except OSError:
            return None
        unit = status.f_frsize
        return Space(total=unit * status.f_blocks, free_for_root=unit * status.f_bfree, free=unit * status.f_bavail)


def _behind(batch: list[memoryview], written: int) -> list[memoryview]:
    """What follows the written bytes in the batch."""
    for index, piece in enumerate(batch):
        if written < len(piece):
            return [piece[written:], *batch[index + 1 :]]
        written -= len(piece)
    return []


def _find_sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Linux's sync_file_range, which Python does not offer; None on other systems."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    function.restype = ctypes.c_int
    found: Callable[[int, int, int, int], int] = function
    return found


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors that mean that the disk is full. A media error is not among them, because a read may have caused it."""
