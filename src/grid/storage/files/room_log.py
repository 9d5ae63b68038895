"""Says in the log that the server refuses new shares for lack of room: its operator would learn it from nobody else.

Clients that know that a server is full do not ask it. So the log also has a line when a full server is asked for its space.
"""

from __future__ import annotations

from twisted.logger import Logger

from grid.storage.settings import StorageSettings

APART_S = 3600.0
"""Least time between two lines, in seconds: a full server refuses every upload."""

log = Logger()


class RoomLog:
    """The lines of one server."""

    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._told_at = float("-inf")

    def refused(self, available: int, now: float) -> None:
        """Note that new shares are refused with that number of bytes available. now: Unix time, which may jump."""
        if abs(now - self._told_at) < APART_S:
            return
        self._told_at = now
        if self._settings.readonly:
            log.warn("new shares are refused: storage.readonly is set")
            return
        log.warn(
            "new shares are refused: {available} bytes are available beside storage.reserved_space ({reserved} bytes); free "
            "space on the disk, or lower that setting",
            available=available,
            reserved=self._settings.reserved_space,
        )
