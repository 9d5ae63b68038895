"""State shared by all sessions of an SFTP door, and their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from attrs import define, field

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap
from grid.directory.gathering import Directories
from grid.directory.removals import Removals
from grid.gateway.shared.services import Services
from grid.ports import Sink
from grid.runtime import Tasks
from grid.sftp.accounts import Account
from grid.sftp.read_ahead import AheadRoom
from grid.sftp.scratch import PieceRoom

MAX_CONNECTIONS_OF_ACCOUNT = 64
MAX_SESSIONS = 4
"""Sessions of one connection."""

MOST_SESSIONS = 256
"""Sessions of all connections."""

MAX_HANDLES = 256
"""Files that one session may have open."""

MOST_HANDLES = 1024
"""Files that all sessions may have open."""

MAX_LISTINGS = 16
"""Directories that one session may be listing."""

MOST_LISTED = 200_000
"""Entries of directories that all sessions are listing."""

MOST_BYTES = 2**25
"""Bytes of requests and answers in all sessions beyond which each processes one request at a time.

An answer counts until its client has taken it.
"""

LEAST_WINDOW = 2**18
LARGEST_WINDOW = 2**20
"""Bytes that a session may send ahead of processing: initially, and while there is room."""

MOST_WINDOWS = 2**26
"""Bytes that all sessions may send ahead; beyond it, each gets only the least window."""

FindAccount = Callable[[str, bytes], Account | None]


@define(eq=False)
class Load:
    """Current totals of a door: sessions, open files, listed entries, requests, their bytes, and window bytes."""

    sessions: int = 0
    handles: int = 0
    listed: int = 0
    requests: int = 0
    request_bytes: int = 0
    window_bytes: int = 0


@define(eq=False)
class Door:
    """One door. find_account: by name and public key."""

    services: Services
    find_account: FindAccount = field(repr=False)
    directories: Directories = field(init=False)
    removals: Removals = field(init=False, factory=Removals)
    room: AheadRoom = field(init=False, factory=AheadRoom)
    pieces: PieceRoom = field(init=False, factory=PieceRoom)
    connections: Counter[str] = field(init=False, factory=Counter)
    tasks: Tasks = field(init=False, factory=Tasks)
    load: Load = field(init=False, factory=Load)

    def __attrs_post_init__(self) -> None:
        self.directories = Directories(self.services.store)
        self.services.sftp_traffic.know((), lambda: self.load.requests)

    def now(self) -> float:
        """Unix time."""
        return self.services.store.runtime.clock.unix_time()

    async def read(self, target: KnownCap, sink: Sink, start: int, length: int) -> None:
        """Write bytes of a file to the sink; Forbidden for a blacklisted file, and the errors of a read."""
        services = self.services
        services.require_allowed(target)
        if isinstance(target, LitCap):
            await sink.write(target.data[start : start + length])
            return
        record = services.history.retrieve if target.is_mutable else services.history.download
        with record(target.storage_index or b"", length):
            if isinstance(target, ChkCap | SliceCap | SequenceCap):
                await services.open_files.read(target, sink, start, length, services.store.grid.observer)
            else:
                await services.store.read(target, sink, start, length)

    def close(self) -> None:
        """Cancel all running tasks."""
        self.tasks.cancel()
        self.directories.close()
