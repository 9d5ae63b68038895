"""Ensures that only one backup of a directory into a target runs at a time, and remembers one that stored no snapshot.

The kernel releases the lock when its process ends, however that happens; a leftover file locks nothing. A backup leaves
a record when it begins and removes it once its snapshot is stored. So a record that stays tells of a backup that failed
or was killed while nobody watched, and `grid snapshots` shows it. If the disk is full, there is no record, but the backup
goes on.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from grid.caps import Cap, require_usable
from grid.cli.terminal.failures import describe
from grid.errors import BusyError, ConfigError
from grid.node.files import make_private_directory, read_text, write_atomically
from grid.node.running import is_locked
from grid.values import frozen

LOCKS = "locks"

RECORDS = "unfinished"
"""Directories in private/ of the client directory: of the locks, and of the records."""

MAX_RECORDS = 100
"""Records that are read for one target."""

_FIELDS = {"directory": str, "began": int, "problem": str}


@frozen(kw_only=True)
class UnfinishedBackup:
    """A backup that stored no snapshot. began: Unix time. problem: why; "" if it is running or was cut off."""

    directory: str
    began: int
    problem: str = ""
    is_running: bool = False

    @property
    def began_at(self) -> str:
        """When it began, in the format of `grid snapshots --json`."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began))

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        if self.is_running:
            return f"a backup of {self.directory} is running; it began at {self.began_at}"
        why = self.problem or "it was cut off"
        return f"the last backup of {self.directory} stored no snapshot; it began at {self.began_at}: {why}"


@contextmanager
def lock_backup(private: Path, source: str, target: str) -> Iterator[None]:
    """Hold the lock of this backup for the block. BusyError, which names the other process, if it is taken; OSError.

    private: of the client directory. target: the full target; only its hash appears in the file's name.
    """
    folder = private / LOCKS
    make_private_directory(folder)
    key = _hash(f"{source}\0{target}")
    path = _lock_file(private, key)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        if not _take(descriptor):
            raise BusyError(_describe(source, os.pread(descriptor, 20, 0)))
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        with _remembered(private / RECORDS / f"{_hash(target)}-{key}.json", source):
            yield
    finally:
        os.close(descriptor)


def full_target(root: Cap, names: Sequence[str]) -> str:
    """The target as locks and records know it, whichever alias leads to it; CapError for a root of an unknown kind."""
    return f"{require_usable(root).to_string()}/{'/'.join(names)}"


def read_unfinished(private: Path, target: str) -> list[UnfinishedBackup]:
    """The backups into this target that stored no snapshot, by directory; records that are malformed are ignored."""
    found = []
    for path in sorted((private / RECORDS).glob(f"{_hash(target)}-*.json"))[:MAX_RECORDS]:
        # This comes first, because a backup that ends now removes its record before it releases the lock.
        is_held = is_locked(_lock_file(private, path.stem.partition("-")[2]))
        with suppress(ConfigError, ValueError, RecursionError):
            noted = json.loads(read_text(path) or "null")
            if isinstance(noted, dict) and all(type(noted.get(name)) is kind for name, kind in _FIELDS.items()):
                is_running = is_held and not noted["problem"]
                backup = UnfinishedBackup(**{name: noted[name] for name in _FIELDS}, is_running=is_running)
                found += [backup] if 0 <= backup.began < 2**33 else []
    return sorted(found, key=lambda each: each.directory)


@contextmanager
def _remembered(path: Path, source: str) -> Iterator[None]:
    """Keep a record of the block unless it succeeds, with the error that ended it."""
    about = {
        "directory": source.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        "began": int(time.time()),
    }
    with suppress(OSError):
        make_private_directory(path.parent)
        write_atomically(path, json.dumps({**about, "problem": ""}).encode(), durable=False)
    try:
        yield
    except BaseException as error:
        with suppress(OSError):
            write_atomically(path, json.dumps({**about, "problem": describe(error)}).encode(), durable=False)
        raise
    with suppress(OSError):
        path.unlink()


def _lock_file(private: Path, key: str) -> Path:
    return private / LOCKS / f"backup-{key}.lock"


def _take(descriptor: int) -> bool:
    """Take the lock; whether no other backup holds it. Tries again, because `is_locked` has it for an instant."""
    for pause_s in _PAUSES_S:
        time.sleep(pause_s)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


_PAUSES_S = (0.0, 0.05, 0.1)
"""Seconds to wait before each attempt."""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _describe(source: str, held_by: bytes) -> str:
    number = held_by.strip()
    process = f"process {number.decode()}" if number.isdigit() else "another process"
    return f"{source} is being backed up there by {process}; wait until it ends"
