"""What all sessions of an SFTP door share, and the limits on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from attrs import define, field

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap
from grid.directory.gathering import Directories
from grid.gateway.shared.services import Services
from grid.ports import Sink
from grid.runtime import Tasks
from grid.sftp.accounts import Account
from grid.sftp.read_ahead import AheadRoom
from grid.sftp.scratch import PieceRoom

MAX_CONNECTIONS_OF_ACCOUNT = 64
MAX_SESSIONS = 4
"""Of one connection."""

MOST_SESSIONS = 256
"""Of all connections."""

MAX_HANDLES = 256
"""Files that a session may have open."""

MOST_HANDLES = 1024
"""Files that all sessions may have open."""

MAX_LISTINGS = 16
"""Directories that it may be listing."""

MOST_LISTED = 200_000
"""Entries of directories that all sessions are listing."""

MOST_BYTES = 2**25
"""Bytes of requests and answers in all sessions, from which on each goes on with one at a time. An answer counts until its client takes it."""

LEAST_WINDOW = 2**18
LARGEST_WINDOW = 2**20
"""Bytes that a session may send before its requests are looked at: at first, and while there is room for it."""

MOST_WINDOWS = 2**26
"""Bytes that all sessions may send, from which on none gets more than the least."""

FindAccount = Callable[[str, bytes], Account | None]


@define(eq=False)
class Load:
    """What all sessions of a door have now: sessions, open files, entries in listings, requests, bytes of these, and of windows."""

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
        """Write bytes of a file to the sink; Forbidden for one that may not be shown, and the errors of a read."""
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
        """Give up what is under way."""
        self.tasks.cancel()
        self.directories.close()
