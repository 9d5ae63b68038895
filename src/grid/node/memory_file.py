"""What a client remembers of its servers, kept for minutes in a file of the node's directory.

It spares a command the wait for a server that did not answer the previous command. It is only a hint: an unreadable or
invalid file is ignored, and no command ever fails or takes longer because of it.
"""

from __future__ import annotations

import json
from pathlib import Path

from grid.engine.server_memory import ServerMemory
from grid.errors import ConfigError
from grid.node.files import read_text, write_atomically
from grid.ports import Clock

MOST_AGE_S = 300.0
"""The greatest age in seconds of usable data: servers come back."""

MOST_BYTES = 256 * 1024


class MemoryFile:
    """The file of one client."""

    def __init__(self, path: Path, memory: ServerMemory, clock: Clock) -> None:
        """Does not touch the file yet."""
        self._path = path
        self._memory = memory
        self._clock = clock
        self._revision = memory.revision

    def load(self) -> None:
        """Fill the memory from the file, if that is recent."""
        try:
            document = json.loads((read_text(self._path) or "")[:MOST_BYTES])
            saved_at = document.get("saved_at") if isinstance(document, dict) else None
            if not isinstance(saved_at, int | float) or isinstance(saved_at, bool):
                return
            age_s = self._clock.unix_time() - saved_at
        except (ConfigError, ValueError, RecursionError, OverflowError):
            return
        if 0 <= age_s <= MOST_AGE_S:
            self._memory.restore(document, age_s, self._clock.now())
            self._revision = self._memory.revision

    def save(self) -> None:
        """Save the memory if any server's doubt has changed since load()."""
        if self._memory.revision == self._revision:
            return
        document = {"saved_at": self._clock.unix_time(), **self._memory.export(self._clock.now())}
        data = json.dumps(document).encode("ascii")
        if len(data) > MOST_BYTES:
            return
        try:
            write_atomically(self._path, data, durable=False)
        except OSError:
            return
        self._revision = self._memory.revision
