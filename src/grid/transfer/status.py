"""The status of a transfer or watch, read from its journal by another process.

It changes nothing and waits for nobody; the working process may continue meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from grid.errors import ConfigError
from grid.transfer.journal import DONE, FAILED, STORED, UNSENT, UNVERIFIED
from grid.transfer.records import BLOB, CHANGED, MAYBE_INT, TEXT, is_written, kinds_of, name_of
from grid.values import frozen

SHOWN_COUNT = 100
"""Files listed of each kind."""

_FAILURE, _SENT = kinds_of(BLOB, TEXT), kinds_of(BLOB, MAYBE_INT, (float,))
_NOTHING = "there is no journal of these two: nothing has been stored yet"


@frozen(kw_only=True)
class FileUnderWay:
    """A file that is being sent. began_at: Unix time."""

    name: str
    size: int | None
    began_at: float


@frozen(kw_only=True)
class JournalStatus:
    """is_running: a process uses the journal now. stored: files whose links are not made yet.

    failures: names and reasons.
    """

    is_running: bool
    done: int
    stored: int
    failed: int
    failures: list[tuple[str, str]]
    under_way: list[FileUnderWay]


def read_status(path: Path) -> JournalStatus:
    """Read a journal's current status; ConfigError if it does not exist or cannot be read."""
    if not path.exists():
        raise ConfigError(_NOTHING)
    is_running = _is_locked(path.with_suffix(".lock"))
    try:
        rows = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            if rows.execute("SELECT 1 FROM sqlite_master WHERE name = 'files'").fetchone() is None:
                raise ConfigError(_NOTHING)  # It was killed, or its disk was full, as it began.
            counts = dict(rows.execute("SELECT state, COUNT(*) FROM files GROUP BY state"))
            failures = rows.execute(
                "SELECT name, error FROM files WHERE state IN (?, ?) ORDER BY name LIMIT ?",
                (FAILED, UNSENT, SHOWN_COUNT),
            ).fetchall()
            under_way = rows.execute(
                "SELECT name, size, began_at FROM under_way ORDER BY began_at LIMIT ?", (SHOWN_COUNT,)
            ).fetchall()
        finally:
            rows.close()
    except sqlite3.Error as error:
        raise ConfigError(f"{path}: the journal cannot be read: {error}") from None
    if not all(is_written(row, _FAILURE) for row in failures) or not all(is_written(row, _SENT) for row in under_way):
        raise ConfigError(f"{path}: {CHANGED}")
    return JournalStatus(
        is_running=is_running,
        done=counts.get(DONE, 0) + counts.get(UNVERIFIED, 0),
        stored=counts.get(STORED, 0),
        failed=counts.get(FAILED, 0) + counts.get(UNSENT, 0),
        failures=[(name_of(name), str(error)) for name, error in failures],
        under_way=[FileUnderWay(name=name_of(name), size=size, began_at=began_at) for name, size, began_at in under_way]
        if is_running
        else [],
    )


def _is_locked(path: Path) -> bool:
    """Whether another process holds the journal's lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
