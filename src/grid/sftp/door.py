"""State shared by all sessions of an SFTP door, and their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from weakref import WeakValueDictionary

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap
from grid.directory.gathering import Directories
from grid.directory.removals import Removals
from grid.gateway.shared.services import Services
from grid.ports import Sink
from grid.runtime import Tasks
from grid.sftp.accounts import Account
from grid.sftp.read_ahead import AheadRoom
from grid.sftp.scratch import PieceRoom
from grid.values import define, field

MAX_CONNECTIONS_OF_ACCOUNT = 64
MAX_SESSIONS = 4
"""Sessions of one connection."""

MOST_SESSIONS = 256
"""Sessions of all connections. One account may have half of these, as of what follows."""

MAX_HANDLES = 256
"""Files that one session may have open."""

MOST_HANDLES = 1024
"""Files that all sessions may have open, besides one of each session."""

MAX_LISTINGS = 16
"""Directories that one session may be listing."""

MOST_LISTED = 200_000
"""Entries of directories that all sessions are listing, besides FEW_LISTED of each. An account counts at most half of these."""

FEW_LISTED = 1000

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
    _accounts: WeakValueDictionary[str, Usage] = field(init=False, factory=WeakValueDictionary)

    def of(self, account: str) -> Usage:
        """What an account uses of it, counted as long as somebody refers to that."""
        usage = self._accounts.get(account)
        if usage is None:
            usage = self._accounts[account] = Usage(self)
        return usage


@define(eq=False)
class Usage:
    """What the sessions of one account use of the load: at most half of what all may."""

    _load: Load
    sessions: int = 0
    handles: int = 0
    listed: int = 0

    @property
    def may_begin_session(self) -> bool:
        """Whether there is room for another session."""
        return self._load.sessions < MOST_SESSIONS and self.sessions < MOST_SESSIONS // 2

    @property
    def may_open(self) -> bool:
        """Whether there is room for another open file."""
        return self._load.handles < MOST_HANDLES and self.handles < MOST_HANDLES // 2

    def may_list(self, count: int) -> bool:
        """Whether there is room for a listing of that many entries; one alone may take more than half."""
        is_within_half = not self.listed or self.listed + count <= MOST_LISTED // 2
        return is_within_half and self._load.listed + self._share(self.listed + count) - self._listed <= MOST_LISTED

    def count_session(self, count: int) -> None:
        """Count sessions; a negative number counts down."""
        self._load.sessions += count
        self.sessions += count

    def count_handle(self, count: int) -> None:
        """Count open files."""
        self._load.handles += count
        self.handles += count

    def count_listed(self, count: int) -> None:
        """Count entries of directories that are being listed."""
        self._load.listed -= self._listed
        self.listed += count
        self._load.listed += self._listed

    @property
    def _listed(self) -> int:
        return self._share(self.listed)

    @staticmethod
    def _share(listed: int) -> int:
        """How many of the entries count for others."""
        return min(listed, MOST_LISTED // 2)


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
