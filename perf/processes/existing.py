"""A grid that exists already, measured through a client's node directory that its user names.

Nothing is started but clients, and the directory is never written to by us. What is put is small, and all of it is named for the
record: immutable files cannot be unlinked, and are left to expire with their leases.
"""

from __future__ import annotations

from pathlib import Path

from attrs import asdict, frozen

from grid.caps import ChkCap, parse_cap
from grid.codec.base32 import encode
from perf.processes.clients import GridClient

MAX_FILE = 10 * 10**6
MAX_TOTAL = 100 * 10**6
"""Bytes that one run may put on somebody's grid: of a file, and of all."""


@frozen(kw_only=True)
class LeftFile:
    """A file that a run left on the grid: its storage index says which, and lets nobody read it."""

    storage_index: str
    size: int


class ExistingGrid:
    """The user's grid. What a run puts there is counted, and refused when it gets too much."""

    def __init__(self, directory: Path, program: str = "") -> None:
        """directory: of a client node. program: the `grid` to run. ValueError if the directory is no client's."""
        if not any((directory / name).exists() for name in ("grid.cfg", "tahoe.cfg")):
            raise ValueError(f"{directory} is no node directory: it has neither grid.cfg nor tahoe.cfg")
        self._client = GridClient(directory, program)
        self._left: list[LeftFile] = []

    @property
    def client(self) -> GridClient:
        """For what puts nothing: gets, checks, lists."""
        return self._client

    def put(self, path: Path) -> str:
        """Upload an immutable file; its cap. ValueError if it is larger than a guest should leave, or all of them are."""
        size = path.stat().st_size
        total = sum(left.size for left in self._left) + size
        if size > MAX_FILE or total > MAX_TOTAL:
            raise ValueError(
                f"on an existing grid a run puts at most {MAX_FILE} bytes at once and {MAX_TOTAL} in all: use smaller files"
            )
        text = self._client.put(path)
        cap = parse_cap(text)
        # A small file is all in its cap, and leaves nothing.
        if isinstance(cap, ChkCap):
            self._left.append(LeftFile(storage_index=encode(cap.storage_index), size=size))
        return text

    def left(self) -> list[dict[str, object]]:
        """What the run left on the grid, for its record."""
        return [asdict(left) for left in self._left]
