"""Connects to the servers that introducers announced last time, while these are asked who is there now.

Nearly always they announce the same servers. Those are none of the client's servers until then. [decision 518]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grid.discovery.announcement import STORAGE_SERVICE, Announcement
from grid.discovery.server_files import read_cache
from grid.discovery.server_set import ServerSet
from grid.ports import Runtime
from grid.runtime import Tasks

MEMORY_S = 12 * 3600.0
"""The greatest age, in seconds, of a remembered list of servers that is used before the introducers have answered."""

MOST_GREETED = 32
"""A command that needs all servers needs no more than these of a larger grid."""


class Greetings:
    """The connections that may turn out to be needed."""

    def __init__(self, servers: ServerSet, runtime: Runtime) -> None:
        self._servers, self._clock = servers, runtime.clock
        self._tasks = Tasks()
        self._are_sent = False

    def send(self, caches: Sequence[Path]) -> bool:
        """Begin to connect to the servers of these caches, if they are few. Return whether there are any. Only the first call counts."""
        remembered = self.remembered(caches)
        if self._are_sent or len(remembered) > MOST_GREETED:
            return False
        self._are_sent = True
        expected = [self._servers.expect(announcement) for announcement in remembered]
        for server in expected:
            if server is not None:
                self._tasks.start(server.connect())
        return any(expected)

    def remembered(self, caches: Sequence[Path]) -> list[Announcement]:
        """The servers of these caches; none if any of them is old."""
        now = self._clock.unix_time()
        if not all(_is_recent(file, now) for file in caches):
            return []
        return [each for file in caches for each in read_cache(file) if each.service_name == STORAGE_SERVICE]

    def close(self) -> None:
        """Connect no more."""
        self._tasks.cancel()


def _is_recent(file: Path, now: float) -> bool:
    try:
        return 0 <= now - file.stat().st_mtime <= MEMORY_S
    except OSError:
        return False
