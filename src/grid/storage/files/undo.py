"""Changes in place that neither a crash nor a full disk can leave half done.

Before a change that is not atomic, the old bytes of every range it touches are written to
an undo log, one file per storage index. When the change is complete, the log's magic is overwritten, which makes it
invalid, and the file is removed. If a valid log exists at the next start, or if the change fails, the old state is restored. So leases are
never lost, and bytes of leases never become share data. 1.20 deletes the log at its start, as it deletes everything in that directory.
Cost of a change: one sync of a directory, two of the log, one of each file; none with durability `none`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from hashlib import sha256
from threading import Lock

from twisted.logger import Logger

from grid.ports import Buffer, Range
from grid.storage.files.disk import Disk, Handle
from grid.storage.files.paths import INCOMING, share_path, undo_path
from grid.values import frozen

SECTOR_SIZE = 512
"""Bytes that every medium writes atomically."""
_CHUNK_SIZE = 2**20
_MAGIC = b"grid undo log 1\n"
_SHARE = struct.Struct(">BQL")
_RANGE = struct.Struct(">QQ")
_DIGEST_SIZE = 32

log = Logger()


@frozen(kw_only=True)
class Change:
    """A change to one finished share file, in this order: cut to `cut` bytes, make the writes, cut to `size`.

    writes: (offset, data). saves: the ranges that an undo must restore; they may reach past the file's end.
    """

    share_number: int
    writes: Sequence[tuple[int, Buffer]] = ()
    saves: Sequence[Range] = ()
    cut: int | None = None
    size: int | None = None

    @property
    def is_atomic(self) -> bool:
        """Whether the medium makes the change atomically: it rewrites bytes of one sector."""
        if self.cut is not None or self.size is not None or len(self.writes) != 1:
            return False
        ((offset, data),) = self.writes
        return offset // SECTOR_SIZE == (offset + len(data) - 1) // SECTOR_SIZE


class UndoLog:
    """Makes changes to the finished shares of one storage index at a time; the caller ensures that."""

    def __init__(self, disk: Disk, *, durable: bool) -> None:
        self._disk = disk
        self._durable = durable
        self._settling = Lock()
        self._unsettled: dict[str, bool] = {}
        """Names that still have a log, and whether their shares may be half changed."""

    def change(self, name: str, changes: Sequence[Change]) -> None:
        """Make all changes, or raise OSError and make none. name: of the storage index."""
        logged = [change for change in changes if not change.is_atomic]
        if logged:
            self._change_logged(name, logged)
        self._apply_all(name, [change for change in changes if change.is_atomic])

    def settle(self, name: str, *, to_read: bool = False) -> None:
        """Undo what an earlier failure left half done; OSError if that fails again.

        to_read: it is enough that the shares are whole, even if the log cannot be removed yet.
        """
        with self._settling:  # Several readers of one storage index may come at once.
            if name not in self._unsettled or (to_read and not self._unsettled[name]):
                return
            self._recover(name)
            del self._unsettled[name]

    def recover_all(self) -> frozenset[str]:
        """Undo everything that a crash left half done. Returns the paths of the logs that could not be undone."""
        for entry, is_directory in self._disk.list_directory(INCOMING):
            name, dot, suffix = entry.partition(".")
            if is_directory or not dot or suffix != "undo":
                continue
            try:
                self._recover(name)
            except OSError as error:
                log.error("a change to {name} could not be undone: {error}", name=name, error=error.strerror)
                self._unsettled[name] = True
        return frozenset(undo_path(name) for name in self._unsettled)

    def _change_logged(self, name: str, changes: Sequence[Change]) -> None:
        begun = False
        try:
            self._write_log(name, changes)
            begun = True
            self._apply_all(name, changes)
            self._retire_log(undo_path(name))
        except OSError:
            self._unsettled[name] = begun
            try:
                self.settle(name)
            except OSError as error:
                log.error("a change to {name} could not be undone yet: {error}", name=name, error=error.strerror)
            raise
        try:
            self._disk.unlink(undo_path(name))
        except OSError:
            self._unsettled[name] = False  # The log is no longer valid, and the next change removes it.

    def _apply_all(self, name: str, changes: Sequence[Change]) -> None:
        with ExitStack() as stack:
            handles = []
            for change in changes:
                handle = self._disk.open_file(share_path(name, change.share_number), writable=True)
                stack.callback(self._disk.close_file, handle)
                self._apply(handle, change)
                handles.append(handle)
            # Change all before the first is synced, so that one commit of the file system's journal serves all of them.
            for handle in handles if self._durable else ():
                self._disk.sync_file(handle)

    def _apply(self, handle: Handle, change: Change) -> None:
        if change.cut is not None:
            self._disk.truncate(handle, change.cut)
        for offset, data in change.writes:
            self._disk.write(handle, offset, [data])
        if change.size is not None and change.size != self._disk.size(handle):
            self._disk.truncate(handle, change.size)

    def _write_log(self, name: str, changes: Sequence[Change]) -> None:
        handle = self._disk.create_file(undo_path(name))
        try:
            digest, offset = sha256(), 0
            for piece in self._log_pieces(name, changes):
                digest.update(piece)
                self._disk.write(handle, offset, [piece])
                offset += len(piece)
            self._disk.write(handle, offset, [digest.digest()])
            if self._durable:
                self._disk.sync_file(handle)
        finally:
            self._disk.close_file(handle)
        if self._durable:
            self._disk.sync_directory(INCOMING)

    def _log_pieces(self, name: str, changes: Sequence[Change]) -> Iterator[bytes]:
        yield _MAGIC
        for change in changes:
            handle = self._disk.open_file(share_path(name, change.share_number))
            try:
                size = self._disk.size(handle)
                saves = [(offset, min(length, size - offset)) for offset, length in change.saves if offset < size]
                yield _SHARE.pack(change.share_number, size, len(saves))
                for offset, length in saves:
                    yield _RANGE.pack(offset, length)
                    for start in range(offset, offset + length, _CHUNK_SIZE):
                        yield self._disk.read(handle, start, min(_CHUNK_SIZE, offset + length - start))
            finally:
                self._disk.close_file(handle)

    def _recover(self, name: str) -> None:
        path = undo_path(name)
        if self._disk.exists(path):
            handle = self._disk.open_file(path)
            try:
                size = self._disk.size(handle) - _DIGEST_SIZE
                if self._is_whole(handle, size):
                    self._put_back(name, handle, size)
            finally:
                self._disk.close_file(handle)
        self._remove_log(path)

    def _is_whole(self, handle: Handle, size: int) -> bool:
        """Whether the log holds a change that may be half done. If it is cut short, nothing had been changed yet; if its
        magic is gone, the change was complete.
        """
        if size < len(_MAGIC) or self._disk.read(handle, 0, len(_MAGIC)) != _MAGIC:
            return False
        digest = sha256()
        for start in range(0, size, _CHUNK_SIZE):
            digest.update(self._disk.read(handle, start, min(_CHUNK_SIZE, size - start)))
        found = self._disk.read(handle, size, _DIGEST_SIZE)
        return digest.digest() == found

    def _put_back(self, name: str, handle: Handle, size: int) -> None:
        offset = len(_MAGIC)
        while offset < size:
            number, share_size, range_count = _SHARE.unpack(self._disk.read(handle, offset, _SHARE.size))
            offset += _SHARE.size
            try:
                share = self._disk.open_file(share_path(name, number), writable=True)
            except FileNotFoundError:
                share = None
            try:
                for _ in range(range_count):
                    start, length = _RANGE.unpack(self._disk.read(handle, offset, _RANGE.size))
                    offset += _RANGE.size
                    if share is not None:
                        self._copy(handle, offset, share, start, length)
                    offset += length
                if share is not None:
                    self._disk.truncate(share, share_size)
                    if self._durable:
                        self._disk.sync_file(share)
            finally:
                if share is not None:
                    self._disk.close_file(share)

    def _copy(self, source: Handle, source_offset: int, target: Handle, target_offset: int, length: int) -> None:
        for start in range(0, length, _CHUNK_SIZE):
            piece = self._disk.read(source, source_offset + start, min(_CHUNK_SIZE, length - start))
            self._disk.write(target, target_offset + start, [piece])

    def _retire_log(self, path: str) -> None:
        """Invalidate the log permanently by writing one sector. Removing it would sync a whole directory."""
        if not self._durable:
            return
        handle = self._disk.open_file(path, writable=True)
        try:
            self._disk.write(handle, 0, [bytes(len(_MAGIC))])
            try:
                self._disk.sync_file(handle)
            except OSError:
                self._disk.write(handle, 0, [_MAGIC])
                raise
        finally:
            self._disk.close_file(handle)

    def _remove_log(self, path: str) -> None:
        """Remove the log permanently: one that came back after a loss of power would undo later changes."""
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            pass
        if self._durable:
            self._disk.sync_directory(INCOMING)
