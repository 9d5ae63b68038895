"""A grid that exists already, measured through a client's node directory that its user names.

Nothing is started but clients, and the directory is never written to by us. What is put is small, and all of it is named for the
record: nothing is linked anywhere, and what was put is left to expire with its leases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from grid.caps import LitCap, UnknownCap, parse_cap
from grid.codec.base32 import encode
from grid.node.config import ClientSettings
from grid.node.directory import open_directory
from perf.processes.clients import GridClient

MAX_FILE = 10 * 10**6
MAX_TOTAL = 100 * 10**6
"""Bytes that one run may put on somebody's grid: of a file, and of all."""

MAX_OBJECTS = 1000
"""Files and directories that one run may leave there."""


class ExistingGrid:
    """The user's grid. What a run puts there is counted, and refused when it gets too much."""

    def __init__(
        self, directory: Path, program: str = "", keep: Callable[[str, int], None] = lambda storage_index, size: None
    ) -> None:
        """directory: of a client node. program: the `grid` to run. keep: hears at once of whatever is left there: of the
        storage index, in base32, which says what it is and lets nobody read it, and of its bytes.

        ValueError if the directory is no client's.
        """
        if not any((directory / name).exists() for name in ("grid.cfg", "tahoe.cfg")):
            raise ValueError(f"{directory} is no node directory: it has neither grid.cfg nor tahoe.cfg")
        self.directory = directory
        self._client = GridClient(directory, program)
        self._keep = keep
        self._left: list[tuple[str, int]] = []

    @property
    def client(self) -> GridClient:
        """For what puts nothing: gets, checks, lists."""
        return self._client

    @property
    def settings(self) -> ClientSettings:
        """How its files are encoded; ConfigError if the node's own configuration is wrong."""
        return open_directory(self.directory).settings.client

    def expect(self, sizes: Sequence[int]) -> None:
        """ValueError if one of these is larger than a guest should leave, or all together are."""
        total = sum(size for _, size in self._left) + sum(sizes)
        if max(sizes, default=0) > MAX_FILE or total > MAX_TOTAL:
            raise ValueError(
                f"on an existing grid a run puts at most {MAX_FILE} bytes at once and {MAX_TOTAL} in all: use smaller files"
            )
        if len(self._left) + len(sizes) > MAX_OBJECTS:
            raise ValueError(f"on an existing grid a run leaves at most {MAX_OBJECTS} objects: take fewer")

    def note(self, caps: Sequence[str], sizes: Sequence[int]) -> None:
        """Keep what was left there. A small file is all in its cap, and leaves nothing."""
        for text, size in zip(caps, sizes, strict=True):
            cap = parse_cap(text)
            index = None if isinstance(cap, UnknownCap | LitCap) else cap.storage_index
            if index is not None:
                self._left.append((encode(index), size))
                self._keep(encode(index), size)

    def left(self) -> Sequence[tuple[str, int]]:
        """What the run left on the grid so far."""
        return tuple(self._left)
