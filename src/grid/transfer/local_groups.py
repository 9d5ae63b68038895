"""Groups of small files on a local disk: written and renamed by one thread at a time, and made durable together. [decision 506]

All files of a group are written under other names, one sync of the file system covers them and those of all groups that
wait for it, and then they are renamed. What `local_partials` says of one file holds of each. Where such a sync does not
exist, does not tell of errors, or takes long because others write much, each file is synced by itself. Every call blocks,
and belongs on a thread.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import cache

from grid.ports import Buffer
from grid.transfer.ends import EndError, Entry
from grid.transfer.local_partials import Partial, begin, write_at

FEWEST = 4
"""Files that are worth a sync of the whole file system."""

GROUPS_AT_ONCE = 8
"""Groups whose files are open."""

LONG_S = 2.0
"""A sync that takes longer writes for others, and is not tried again."""

TOLD_SINCE = (5, 8)
"""The version of Linux since which a sync of a file system tells that something could not be written."""

DISK_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs"})
"""File systems on a disk of this machine, each with one device number for all its files."""


def write_all(root: str, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]) -> list[str | None]:
    """Write small files below a directory, one after the other: "" for each that is in place, None for one that failed."""
    tokens: list[str | None] = []
    for entry, data in files:
        try:
            write_whole(root, scratch(entry.name), entry, data)
        except (OSError, EndError):
            tokens.append(None)
        else:
            tokens.append("")
    return tokens


def write_whole(root: str, scratch: str, entry: Entry, data: Buffer) -> None:
    """Write a small file below a directory, sync it and move it into place."""
    partial = begin(root, entry.name, scratch, resumes=False)
    try:
        write_at(partial.descriptor, 0, data, may_skip=True)
        partial.place_now(entry, len(data))
    except BaseException:
        partial.drop()
        raise
    finally:
        os.close(partial.descriptor)


class LocalGroups:
    """Writes groups of small files below a directory, from any number of threads."""

    def __init__(self, root: str, sync: Callable[[int], None] | None = None) -> None:
        """sync: makes all that was written to the file system of a descriptor durable; OSError. None: what this machine has."""
        self._root, self._given = root, sync
        self._turn = threading.Lock()
        self._open = threading.BoundedSemaphore(GROUPS_AT_ONCE)
        self._syncs: SharedSync | None = None

    def write(self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]) -> list[str | None]:
        """Write the files: "" for each that is in place, None for one that failed."""
        syncs = self._begun() if len(files) >= FEWEST else None
        if syncs is None or syncs.is_long:
            return write_all(self._root, files, scratch)
        with self._open:
            return self._write_together(files, scratch, syncs)

    def close(self) -> None:
        """Let the file system go, until the next group."""
        with self._turn:
            syncs, self._syncs = self._syncs, None
        if syncs is not None:
            syncs.close()

    def _begun(self) -> SharedSync | None:
        """What syncs the files, begun before the first of them is written; None if nothing does."""
        with self._turn:
            if self._syncs is None:
                with suppress(OSError):
                    os.makedirs(self._root, exist_ok=True)
                    self._syncs = SharedSync(self._root, self._given)
            return self._syncs if self._syncs is not None and self._syncs.is_possible else None

    def _write_together(
        self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str], syncs: SharedSync
    ) -> list[str | None]:
        written: list[Partial | None] = []
        tokens: list[str | None] = []
        try:
            with self._turn:  # Threads that make files in one directory at a time only hinder each other.
                for entry, data in files:
                    written.append(self._written(entry, data, scratch(entry.name), syncs))
            syncs.wait()
            with self._turn:
                tokens.extend(_settled(partial) for partial in written)
        except OSError:
            return [None] * len(files)
        finally:
            for partial, token in itertools.zip_longest(written, tokens):
                if partial is not None:
                    if token is None:
                        partial.drop()
                    os.close(partial.descriptor)
        return tokens

    def _written(self, entry: Entry, data: Buffer, scratch: str, syncs: SharedSync) -> Partial | None:
        """A complete file that waits for a sync and its name; None if it could not be written."""
        try:
            partial = begin(self._root, entry.name, scratch, resumes=False)
        except (OSError, EndError):
            return None
        try:
            write_at(partial.descriptor, 0, data, may_skip=True)
            partial.finish(entry, len(data))
            if os.fstat(partial.descriptor).st_dev != syncs.device:
                os.fsync(partial.descriptor)
        except OSError:
            partial.drop()
            os.close(partial.descriptor)
            return None
        return partial


def _settled(partial: Partial | None) -> str | None:
    """The token of a file that is moved into place."""
    if partial is None:
        return None
    try:
        partial.settle()
    except OSError:
        return None
    return ""


class SharedSync:
    """Syncs of a file system, each for all that wait when it begins. Its descriptor learns of every error since it was opened."""

    def __init__(
        self,
        root: str,
        sync: Callable[[int], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """root: an existing directory of the file system. sync: as in LocalGroups. OSError."""
        self._descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.device = os.fstat(self._descriptor).st_dev
        self._sync = sync or (sync_of_libc() if is_disk(self.device) else None)
        self._clock = clock
        self._lock = threading.Lock()
        self._running: Future[None] | None = None
        self._next: Future[None] | None = None
        self.is_long = False

    @property
    def is_possible(self) -> bool:
        """Whether this file system can be synced as a whole."""
        return self._sync is not None

    def wait(self) -> None:
        """Return when all that was written before is durable; OSError if something could not be written."""
        with self._lock:
            mine, before = self._next, self._running
            is_first = mine is None
            if mine is None:
                mine = self._next = Future()
        if is_first:
            self._run(mine, before)
        mine.result()

    def _run(self, mine: Future[None], before: Future[None] | None) -> None:
        """Sync for all that wait, once the sync before has ended."""
        if before is not None:
            wait([before])
        with self._lock:
            self._running, self._next = mine, None
        began, failure = self._clock(), None
        try:
            assert self._sync is not None
            self._sync(self._descriptor)
        except OSError as error:
            failure = error
        self.is_long = self.is_long or self._clock() - began > LONG_S
        if failure is not None:
            mine.set_exception(failure)
        else:
            mine.set_result(None)

    def close(self) -> None:
        """Close the descriptor. Nobody waits."""
        os.close(self._descriptor)


@cache
def sync_of_libc() -> Callable[[int], None] | None:
    """The C library's `syncfs`, which raises OSError; None where there is none, or it tells nothing of errors."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    if platform.system() != "Linux" or version is None or tuple(map(int, version.groups())) < TOLD_SINCE:
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None

    def sync(descriptor: int) -> None:
        if function(ctypes.c_int(descriptor)):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return sync


def is_disk(device: int) -> bool:
    """Whether the device is a mounted file system of DISK_TYPES."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            where, _, what = line.partition(" - ")
            if where.split()[2] == wanted:
                return what.split(" ", 1)[0] in DISK_TYPES
    return False
