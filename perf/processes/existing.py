"""An existing grid, measured through a client's node directory that its user names.

It starts only clients, and never writes to the directory. Files are small, and all of them are listed in the record;
nothing is linked, and what was stored is left to expire with its leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grid.caps import LitCap, UnknownCap, parse_cap
from grid.codec.base32 import encode
from grid.node.config import ClientSettings
from grid.node.directory import open_directory
from perf.processes.clients import GridClient

MAX_FILE = 10 * 10**6
MAX_TOTAL = 100 * 10**6
"""Bytes that one campaign may put on a user's grid: per file, and in total."""

MAX_OBJECTS = 1000
"""Files and directories that one campaign may leave there."""


class ExistingGrid:
    """The user's grid. Everything put there is counted, and refused beyond the limits."""

    def __init__(
        self,
        directory: Path,
        program: str = "",
        keep: Callable[[str, int], None] = lambda storage_index, size: None,
        left: Iterable[tuple[str, int]] = (),
    ) -> None:
        """directory: of a client node. program: the `grid` to run. left: what the campaign left there before, which counts.

        keep: called immediately with the storage index (base32, which lets nobody read it) and bytes of everything left
        there.

        ValueError if the directory is not a client's.
        """
        if not any((directory / name).exists() for name in ("grid.cfg", "tahoe.cfg")):
            raise ValueError(f"{directory} is no node directory: it has neither grid.cfg nor tahoe.cfg")
        self.directory = directory
        self._client = GridClient(directory, program)
        self._keep = keep
        self._left = list(left)

    @property
    def client(self) -> GridClient:
        """A client for operations that store nothing: gets, checks, lists."""
        return self._client

    @property
    def settings(self) -> ClientSettings:
        """The encoding of its files; ConfigError if the node's configuration is invalid."""
        return open_directory(self.directory).settings.client

    def expect(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if one of these sizes, or their sum, is beyond the limits."""
        total = sum(size for _, size in self._left) + sum(sizes)
        if max(sizes, default=0) > MAX_FILE or total > MAX_TOTAL:
            raise ValueError(
                f"on an existing grid a run puts at most {MAX_FILE} bytes at once and {MAX_TOTAL} in all: use smaller files"
            )
        if len(self._left) + len(sizes) > MAX_OBJECTS:
            raise ValueError(f"on an existing grid a run leaves at most {MAX_OBJECTS} objects: take fewer")

    def note(self, caps: Sequence[str], sizes: Sequence[int]) -> None:
        """Record what was left there. A literal file leaves nothing."""
        for text, size in zip(caps, sizes, strict=True):
            cap = parse_cap(text)
            index = None if isinstance(cap, UnknownCap | LitCap) else cap.storage_index
            if index is not None:
                self._left.append((encode(index), size))
                self._keep(encode(index), size)

    def left(self) -> Sequence[tuple[str, int]]:
        """What the run has left on the grid so far."""
        return tuple(self._left)
