"""Objects that this gateway must not show: the file `access.blacklist`, reloaded when it changes. [spec webapi 11]"""

from __future__ import annotations

import os
from pathlib import Path

from twisted.logger import Logger

from grid.codec import base32
from grid.errors import FormatError

MAX_BLACKLIST = 16 * 2**20
"""Bytes of the file; an entry has about a hundred."""

_INDEX_SIZE = 16

_log = Logger("grid.gateway")


class Blacklist:
    """The blacklist in a file; implements `Blocks`. A missing or unreadable file blocks nothing."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._name = str(file)
        self._seen: tuple[int, int, int] | None = None
        self._reasons: dict[bytes, str] = {}
        self._problem: str | None = None

    def reason(self, storage_index: bytes) -> str | None:
        """Why the object must not be shown, or None if it may."""
        self._refresh()
        return self._reasons.get(storage_index)

    def _refresh(self) -> None:
        try:
            found = os.stat(self._name)
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return
            with self._file.open("rb") as stream:
                data = stream.read(MAX_BLACKLIST + 1)
        except FileNotFoundError:
            self._seen, self._reasons = None, {}
            return
        except OSError as problem:
            # What was blocked stays blocked.
            if problem.strerror != self._problem:
                self._problem = problem.strerror
                _log.warn(
                    "access.blacklist cannot be read, so changes to it have no effect: {problem}",
                    problem=problem.strerror,
                )
            return
        self._problem = None
        self._seen = seen
        if len(data) > MAX_BLACKLIST:
            _log.warn("access.blacklist has more than {most} bytes: the rest is not read", most=MAX_BLACKLIST)
        self._reasons = parse_blacklist(data[:MAX_BLACKLIST])


def parse_blacklist(data: bytes) -> dict[bytes, str]:
    """Reasons by storage index. Malformed lines are skipped and logged."""
    reasons: dict[bytes, str] = {}
    for number, raw in enumerate(data.split(b"\n"), 1):
        line = raw.decode("utf-8", "replace").strip()
        if not line or line.startswith("#"):
            continue
        entry = parse_entry(line)
        if entry is None:
            _log.warn("access.blacklist, line {number}: no storage index", number=number)
            continue
        reasons[entry[0]] = entry[1]
    return reasons


def parse_entry(line: str) -> tuple[bytes, str] | None:
    """The storage index and the reason in a line; None if it blocks nothing."""
    text, _, reason = line.strip().partition(" ")
    try:
        index = base32.decode(text)
    except FormatError:
        return None
    return None if len(index) != _INDEX_SIZE else (index, " ".join(reason.split()) or "no reason is given")
