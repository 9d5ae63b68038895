"""What a client remembers of its servers, from one process to the next: a file in the node's directory, for minutes.

It spares a command the wait for a server that was silent for the command before. It is only a hint: a file that cannot be
read, or not be written, or says nonsense, is none, and no command ever fails or ends later because of it.
"""

from __future__ import annotations

import json
from pathlib import Path

from grid.engine.server_memory import ServerMemory
from grid.errors import ConfigError
from grid.node.files import read_text, write_atomically
from grid.ports import Clock

MOST_AGE_S = 300.0
"""How old what is read may be: servers come back."""

MOST_BYTES = 256 * 1024


class MemoryFile:
    """The file of one client."""

    def __init__(self, path: Path, memory: ServerMemory, clock: Clock) -> None:
        """Touches nothing."""
        self._path = path
        self._memory = memory
        self._clock = clock
        self._revision = memory.revision

    def load(self) -> None:
        """Have the memory begin with what the file says, if it is recent."""
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
        """Write down what is remembered now, if a server came into doubt or out of it since load()."""
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
