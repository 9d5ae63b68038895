"""Packs the small files of a transfer. [spec extents 1]

It owns the pack being filled. A file becomes durable when its pack is stored, and is linked after that.

Cost: memory: two packs, one being filled and one being stored; a name and an extent for each of their files.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from grid.caps import ChkCap, LitCap, SliceCap
from grid.directory.file_store import FileStore
from grid.directory.store import Store
from grid.errors import GridError, NotHappyError, PeerError
from grid.extents.pack_writer import SEGMENT_SIZE, Extent, PackContents
from grid.mutable.sources import MemorySource
from grid.ports import Buffer
from grid.transfer.choices import LONGEST_PAUSE_S
from grid.transfer.ends import EndError

if TYPE_CHECKING:
    from grid.transfer.grid_session import GridSession

MOST_FILES = 20_000
"""Files of one pack: their names stay in memory until it is stored."""

LONGEST_S = 60.0
"""Seconds for which a pack is filled while files keep arriving."""

RETRY_AFTER_S = 1.0

LEAST_ON_THREAD = 128 * 2**10
"""Bytes of files up to which they are encrypted on the event loop: half a millisecond. A thread would take the interpreter's
lock from it, and give it back, for every file.
"""


async def put_pack(store: Store, contents: PackContents, retries: int = 1) -> ChkCap | LitCap:
    """Store a pack, with more attempts if servers failed, since others may have appeared.

    Raises the errors of a put.
    """
    source = MemorySource(contents.data)
    for attempt in range(retries):
        with suppress(PeerError, NotHappyError):
            return await store.put_immutable(source, segment_size=SEGMENT_SIZE)
        await store.runtime.clock.sleep(min(RETRY_AFTER_S * 2.0**attempt, LONGEST_PAUSE_S))
    return await store.put_immutable(source, segment_size=SEGMENT_SIZE)


def new_packing(session: GridSession, store: FileStore, retries: int) -> Packing:
    """Packs that the session's client stores."""
    return Packing(
        lambda: PackContents(store.convergence, store.runtime.entropy.random_bytes),
        lambda contents: session.run(put_pack(store, contents, retries)),
    )


class Packing:
    """Puts files from any number of tasks into packs."""

    def __init__(
        self, new_pack: Callable[[], PackContents], put: Callable[[PackContents], Awaitable[ChkCap | LitCap]]
    ) -> None:
        """new_pack: makes an empty pack. put: stores a full one; GridError."""
        self._new_pack, self._put = new_pack, put
        self._contents = new_pack()
        self._extents: dict[str, Extent] = {}
        self._began_at = 0.0
        self._storing: asyncio.Task[None] | None = None
        self._found: dict[str, SliceCap | EndError] = {}
        self._adding = asyncio.Lock()

    async def add(self, files: Sequence[tuple[str, Buffer]]) -> None:
        """Add files to the pack, which is stored later, while the next one fills."""
        async with self._adding:
            if not self._extents:
                self._began_at = time.monotonic()
            extents = await self._encrypt([data for _, data in files])
            for (name, _), extent in zip(files, extents, strict=True):
                self._found.pop(name, None)
                self._extents[name] = extent
            is_old = time.monotonic() - self._began_at > LONGEST_S
            if self._contents.is_full or len(self._extents) >= MOST_FILES or is_old:
                await self._begin()

    async def _encrypt(self, contents: Sequence[Buffer]) -> list[Extent]:
        """Add the contents to the pack: a few at once, and more of them in one call on a thread."""
        if sum(map(len, contents)) <= LEAST_ON_THREAD:
            return self._contents.add_all(contents)
        return await asyncio.to_thread(self._contents.add_all, contents)

    def is_stored(self, name: str) -> bool:
        """Whether the file's result is known."""
        return name in self._found

    async def finish(self) -> None:
        """Store everything that is not stored yet."""
        async with self._adding:
            if self._extents:
                await self._begin()
            await self._ended()

    def find(self, name: str) -> SliceCap | EndError:
        """The file's result. An error has been tried again as often as may be."""
        return self._found.get(name) or EndError(f"{name} is in no pack")

    def forget(self, names: Iterable[str]) -> None:
        """Drop results that nobody needs any more."""
        for name in names:
            self._found.pop(name, None)

    async def _begin(self) -> None:
        """Start storing the pack, after the one before it."""
        await self._ended()
        contents, extents = self._contents, self._extents
        self._contents, self._extents = self._new_pack(), {}
        self._storing = asyncio.create_task(self._store(contents, extents))

    async def _ended(self) -> None:
        storing, self._storing = self._storing, None
        if storing is not None:
            await storing

    async def _store(self, contents: PackContents, extents: dict[str, Extent]) -> None:
        try:
            pack = await self._put(contents)
            self._found |= {name: extent.slice_of(pack) for name, extent in extents.items()}
        except GridError as error:
            self._found |= dict.fromkeys(extents, EndError(str(error)))
