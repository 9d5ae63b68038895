"""Uploads local files. Files that the database knows are not read again. [spec cli 3.4]

A capability is returned only for a file that did not change while it was read.

Cost: an unchanged file takes one stat and one database lookup, plus a check if the last one was long ago.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from grid.caps import ImmutableFileCap, LitCap, SliceCap, parse_cap
from grid.cli.arguments.sources import FileSource
from grid.cli.terminal.progress import Tally
from grid.cli.transfer.bounded import Room
from grid.cli.transfer.database import KnownObject, LocalDatabase, needs_check
from grid.cli.transfer.packing import Packer
from grid.cli.transfer.throttle import SlowedSource, Throttle
from grid.cli.transfer.tree import FileFacts, Leaf, LocalOrigin
from grid.directory.store import Store
from grid.errors import GridError, NoServersError, NotHappyError, PeerError
from grid.mutable.sources import MemorySource
from grid.node.files import FileChangedError
from grid.ports import Buffer
from grid.values import field, frozen

ATTEMPTS = 3
"""How often to read a file that keeps changing while it is read."""
RETRY_AFTER_S = 1.0


@frozen(kw_only=True)
class Uploaded:
    """The stored form of a file. reused: nothing was uploaded."""

    cap: ImmutableFileCap = field(repr=False)
    reused: bool


class Uploader:
    """Uploads as many files in parallel as its caller starts; large ones take turns."""

    def __init__(
        self,
        store: Store,
        database: LocalDatabase,
        tally: Tally,
        changed: Callable[[], None],
        *,
        follow_links: bool,
        trust_times: bool = True,
        packs: bool = False,
        throttle: Throttle | None = None,
    ) -> None:
        """changed: called when the tally has changed. trust_times: whether to consult the database at all.

        packs: whether `pack` puts small files into packs. throttle: limits the rate of contents.
        """
        self._store = store
        self._database = database
        self._tally = tally
        self._changed = changed
        self._flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
        self._trust_times = trust_times
        self.checked = 0
        self._room = Room()
        self._throttle = throttle or Throttle(store.runtime.clock)
        self._packer = Packer(store, database, tally, self._throttle, follow_links=follow_links) if packs else None
        self._healthy_packs: dict[str, bool] = {}

    async def pack(self, leaves: Iterable[Leaf]) -> None:
        """Put new small files into packs, if wanted; `upload` then returns their capabilities."""
        if self._packer is not None:
            await self._packer.pack(leaf for leaf in leaves if not self._is_known(leaf))

    def known_cap(self, origin: LocalOrigin) -> ImmutableFileCap | None:
        """The capability of a file that has not changed since it was uploaded."""
        if not self._trust_times:
            return None
        return usable_file_cap(self._database.known_file(origin.path, origin.facts), origin.facts.size)

    def _is_known(self, leaf: Leaf) -> bool:
        return isinstance(leaf.origin, LocalOrigin) and self.known_cap(leaf.origin) is not None

    async def upload(self, path: str) -> Uploaded:
        """Store the file and return its capability; OSError if it cannot be read, GridError if it cannot be stored."""
        packed = None if self._packer is None else self._packer.packed.pop(path, None)
        if isinstance(packed, GridError):
            raise packed
        if packed is not None:
            return Uploaded(cap=packed, reused=False)
        with _open_regular(path, self._flags) as (file, facts):
            cap = await self._find_good(path, facts)
            if cap is not None:
                return Uploaded(cap=cap, reused=True)
            for _ in range(ATTEMPTS):
                cap = await self._store_file(file, path, facts)
                if cap is not None:
                    return Uploaded(cap=cap, reused=False)
                facts = FileFacts.of(os.fstat(file.fileno()))
        raise FileChangedError(f"{path} changed each time it was read")

    async def upload_link(self, path: str) -> Uploaded:
        """Store a symbolic link's target as a file and return its capability; OSError, GridError."""
        facts = FileFacts.of(os.lstat(path))
        cap = await self._find_good(path, facts)
        if cap is not None:
            return Uploaded(cap=cap, reused=True)
        target = os.readlink(os.fsencode(path))
        clock = self._store.runtime.clock
        began_at = clock.unix_time()
        cap = await self._put(MemorySource(target))
        if facts.is_same_content(FileFacts.of(os.lstat(path))):
            self._database.record_file(
                path, facts, cap.to_string(), read_at_ns=int(began_at * 1e9), now=clock.unix_time()
            )
        return Uploaded(cap=cap, reused=False)

    async def _find_good(self, path: str, facts: FileFacts) -> ImmutableFileCap | None:
        """The file's earlier capability, if it can be used again."""
        known = self._database.known_file(path, facts) if self._trust_times else None
        return await self._still_good(path, facts, known)

    async def _still_good(self, path: str, facts: FileFacts, known: KnownObject | None) -> ImmutableFileCap | None:
        """The known capability, if it matches this file and its shares can be trusted to exist."""
        cap = usable_file_cap(known, facts.size)
        if cap is None or known is None or isinstance(cap, LitCap):
            return cap
        clock = self._store.runtime.clock
        if needs_check(clock.unix_time() - known.checked_at, draw(self._store)):
            self.checked += 1
            if not await self._is_healthy(cap):
                return None
            self._database.record_file(
                path, facts, cap.to_string(), read_at_ns=int(clock.unix_time() * 1e9), now=clock.unix_time()
            )
        return cap

    async def _is_healthy(self, cap: ImmutableFileCap) -> bool:
        """Whether all shares exist; each pack is checked once."""
        if not isinstance(cap, SliceCap):
            return await is_healthy(self._store, cap)
        verify = cap.verify_cap().to_string()
        if verify not in self._healthy_packs:
            self._healthy_packs[verify] = await is_healthy(self._store, cap)
        return self._healthy_packs[verify]

    async def _store_file(self, file: BinaryIO, path: str, facts: FileFacts) -> ImmutableFileCap | None:
        """Store the file and return its capability; None if it changed meanwhile."""
        clock = self._store.runtime.clock
        began_at = clock.unix_time()
        passes = 1 if self._store.convergence is None else 2
        slowed = SlowedSource(
            FileSource(file, self._store.runtime.cpu), self._throttle, free_bytes=(passes - 1) * facts.size
        )
        source = _CountedSource(slowed, self._tally, self._changed, passes)
        try:
            async with self._room.for_file(facts.size):
                cap = await self._put(source)
                await slowed.finish()
        except FileChangedError:
            self._tally.byte_count -= source.counted
            return None
        except BaseException:
            self._tally.byte_count -= source.counted
            raise
        if not facts.is_same_content(FileFacts.of(os.fstat(file.fileno()))):
            self._tally.byte_count -= source.counted
            return None
        self._tally.byte_count -= source.counted
        self._tally.moved_bytes += facts.size - source.counted
        self._database.record_file(path, facts, cap.to_string(), read_at_ns=int(began_at * 1e9), now=clock.unix_time())
        return cap

    async def _put(self, source: _CountedSource | MemorySource) -> ImmutableFileCap:
        """Store the source, with one more attempt if servers failed, since another may have appeared."""
        try:
            return await self._store.put_immutable(source)
        except NoServersError:
            raise
        except (PeerError, NotHappyError):
            pass  # Leave the handler first: the frames of the failure hold the data of the first attempt.
        await self._store.runtime.clock.sleep(RETRY_AFTER_S)
        return await self._store.put_immutable(source)


def usable_file_cap(known: KnownObject | None, size: int) -> ImmutableFileCap | None:
    """The database's capability, if it is one of an immutable file of this size."""
    cap = None if known is None else parse_cap(known.cap)
    return cap if isinstance(cap, ImmutableFileCap) and cap.size == size else None


async def is_healthy(store: Store, cap: object) -> bool:
    """Whether every share of a file or directory exists; False also if the check fails."""
    try:
        return bool((await store.check(cap)).healthy)  # type: ignore[arg-type]
    except GridError:
        return False


def draw(store: Store) -> float:
    """A random number from 0 up to 1."""
    return int.from_bytes(store.runtime.entropy.random_bytes(6), "big") / 2**48


class _CountedSource:
    """Counts the bytes read as a fraction of the total: a put with a convergent key reads everything twice."""

    def __init__(self, source: SlowedSource, tally: Tally, changed: Callable[[], None], passes: int) -> None:
        self._source = source
        self._tally = tally
        self._changed = changed
        self._passes = passes
        self.counted = 0.0

    @property
    def size(self) -> int:
        return self._source.size

    async def read_at(self, offset: int, length: int) -> Buffer:
        data = await self._source.read_at(offset, length)
        step = min(length / self._passes, self.size - self.counted)
        self.counted += step
        self._tally.advance(step)
        self._changed()
        return data


@contextmanager
def _open_regular(path: str, flags: int) -> Iterator[tuple[BinaryIO, FileFacts]]:
    """Open a regular file, and return it with its facts at that moment; OSError."""
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no longer a regular file")
        yield file, FileFacts.of(status)
