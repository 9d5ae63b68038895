"""Ensures that only one backup of a directory into a target runs at a time, as cron might start a second one.

The kernel releases the lock when its process ends, however that happens; a leftover file locks nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grid.errors import BusyError
from grid.node.files import make_private_directory


@contextmanager
def lock_backup(private: Path, source: str, target: str) -> Iterator[None]:
    """Hold the lock of this backup for the block. BusyError, which names the other process, if it is taken; OSError.

    private: of the client directory. target: the full target; only its hash appears in the file's name.
    """
    folder = private / "locks"
    make_private_directory(folder)
    key = hashlib.sha256(f"{source}\0{target}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / f"backup-{key}.lock", flags, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(_describe(source, os.pread(descriptor, 20, 0))) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(descriptor)


def _describe(source: str, held_by: bytes) -> str:
    number = held_by.strip()
    process = f"process {number.decode()}" if number.isdigit() else "another process"
    return f"{source} is being backed up there by {process}; wait until that has ended"
