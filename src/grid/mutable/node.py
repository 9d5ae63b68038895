"""A mutable file as its users see it: read, overwrite, modify, update, check, repair.

It owns the order of the steps, what is remembered between steps, and the retries. Within a process, writers of one file
take turns; between processes, test-and-set decides. [spec mutable 13-18]

Cost, for a small file, or one that was used before and is read in part: one round trip to read it, two to write all or part
of it, one to modify it right after a read. Other files take one more for each. Reading all of a file again that has not
changed: one round trip, to few servers, for the fronts of its shares.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from grid.caps import KnownCap
from grid.crypto.rsa import PrivateKey
from grid.engine.grid import Grid
from grid.errors import ConflictError, HoleError, NotEnoughSharesError
from grid.mutable.check import check, repair
from grid.mutable.perform import RestOfMap, in_turn
from grid.mutable.publish import Release, publish
from grid.mutable.read.few_servers import Few
from grid.mutable.read.kept_contents import KeptFiles
from grid.mutable.read.layout_cache import KnownFile, Speculate, Speculation
from grid.mutable.read.map_plan import MapMode
from grid.mutable.reading import Choice, Guess, read_best, warn_if_outdated, warning_of
from grid.mutable.session import Session
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.health import CheckResult, RepairResult
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap
from grid.mutable.sources import MemorySource, OverlaySource, as_source
from grid.mutable.update import may_update_in_place, speculate_update, update_in_place
from grid.mutable.writing import (
    FIRST_DELAY_S,
    RETRIES,
    find_for_write,
    next_delay,
    require_best,
    require_key,
    require_same_format,
    require_size,
)
from grid.ports import Buffer, Sink, Source
from grid.sinks import CountingSink, FrozenBytesSink

MOST_MISSES = 16
"""How often a change restarts because shares were false or unreachable. Each time, it trusts fewer of them."""

Modifier = Callable[[bytes, bool], bytes | Awaitable[bytes | None] | None]
"""(contents, whether this is the first attempt) -> new contents, or None for no change, or an awaitable of either. May be called again."""


class MutableFile:
    """A mutable file, open for what its capability permits. CapError if the capability is not that of a mutable file."""

    def __init__(self, cap: KnownCap, grid: Grid) -> None:
        """The grid's encoding supplies `happy`. k and n are the file's own; the grid's values are only a first guess."""
        self._keys = FileKeys.of_cap(cap)
        self._session = Session.open(self._keys, grid)
        self._grid = grid
        self._memory: VersionMap | None = None
        self._kept = grid.remembered.of(KeptFiles).open()
        self._rest: RestOfMap | None = None
        self._key: PrivateKey | None = None
        self.warning: str | None = None
        """A warning for the user of the last read or write: its version was older than one that is known to exist."""

    @property
    def is_writable(self) -> bool:
        """Whether the capability permits changes."""
        return self._keys.write_key is not None

    @property
    def recalled(self) -> bytes | None:
        """The contents as last read or written, if they are kept. Others may have written since."""
        return None if self._memory is None else self._kept.get(self._memory.best)

    async def size(self) -> int:
        """Bytes of the newest readable version; NotEnoughSharesError, NoServersError."""
        found = await self._find(MapMode.READ, KnownFile.speculate_nothing)
        self.warning = warn_if_outdated(self._session, found)
        return require_best(found).size

    async def read(self, sink: Sink, offset: int = 0, length: int | None = None, *, largest: int | None = None) -> int:
        """Write bytes offset .. offset + length to the sink. length None: to the end; ranges are cut at the end. Returns the byte count.

        All bytes are proven and of one version. AuthorityError with a verify cap; NotEnoughSharesError, NoServersError;
        ConflictError if the file changed after some of them were written. FormatError if the file has more than
        `largest` bytes.
        """
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("the offset and the length of a range must not be negative")

        def choose(size: int) -> tuple[int, int]:
            return offset, size if length is None else min(size, offset + length)

        return await self.read_chosen(sink, choose, likely=lambda _: (offset, length), largest=largest)

    async def read_chosen(
        self, sink: Sink, choose: Choice, *, likely: Guess | None = None, largest: int | None = None
    ) -> int:
        """Like `read`, but the range is chosen when the size is known. Saves the round trip of asking for the size first.

        If `choose` raises, the read ends. It is called again if the file changed before any byte was written.
        likely: what it would choose for a file of the remembered size; if right, this saves another round trip.
        """
        return (await self._read(sink, choose, likely, largest))[0]

    async def read_all(self, largest: int | None = None) -> bytes:
        """Return the contents, the same object while the file does not change; raises the errors of `read`. They are kept."""
        sink = FrozenBytesSink()
        version = (await self._read(sink, lambda size: (0, size), lambda _: (0, None), largest))[1]
        text, memory = sink.take(), self._memory
        # Another task may have changed the file meanwhile, and then these are not the contents of the version remembered.
        if memory is not None and version is not None and memory.best == version:
            self._kept.put(version, text)
        return text

    async def _read(
        self, sink: Sink, choose: Choice, likely: Guess | None, largest: int | None
    ) -> tuple[int, Prefix | None]:
        """Read the chosen range; returns the byte count, and the version that was read."""

        def speculate(known: KnownFile) -> Speculation:
            if self._kept.is_steady:
                return known.speculate_version()
            guess = likely(known.geometry.size) if likely is not None else None
            return known.speculate_read(*guess) if guess is not None else known.speculate_nothing()

        self._keys.require_read_key()
        counting, size = CountingSink(sink), 0

        async def attempt(found: VersionMap) -> None:
            nonlocal size
            prefix = require_size(require_best(found), largest)
            self.warning = warning_of(found)
            start, stop = choose(prefix.size)
            kept, size = self._kept.get(prefix), max(0, stop - start)
            if kept is None:
                await self._session.read(found, prefix, counting, start, size)
            elif size:
                await counting.write(kept if size == len(kept) else memoryview(kept)[start : start + size])

        memory = self._memory if self._kept.is_steady else None
        found = await self._find(MapMode.READ, speculate, None if memory is None else self._session.few(memory))
        check = partial(self._find, MapMode.CHECK, speculate)
        read = await read_best(self._session, found, attempt, check, lambda: not counting.written)
        self._settle_on(read, found)
        return size, read.best

    async def overwrite(self, contents: Buffer | Source, *, force: bool = False) -> None:
        """Replace the contents. AuthorityError without the write cap; NotEnoughSharesError if no version can be read.

        force: write even then, if one share is left that shows the encoding. Versions that might still come back are lost.
        ConflictError if another client writes at the same time. Nothing is retried; the caller must choose between the other
        contents and these. NotHappyError if too few servers took the new version; it is MayHoldError if the version may hold.
        """
        self._keys.require_write_key()
        source = as_source(contents)
        await in_turn(self._grid, self._keys.storage_index, lambda: self._overwrite(source, force))

    async def modify(self, function: Modifier, largest: int | None = None) -> None:
        """Replace the contents with the function's result. If another client writes meanwhile, read again and retry.

        ConflictError after RETRIES retries. Also raises the errors of `overwrite` and of the function.
        """
        self._keys.require_write_key()
        await in_turn(self._grid, self._keys.storage_index, lambda: self._modify(function, largest))

    async def update(self, offset: int, data: Buffer) -> None:
        """Replace bytes from `offset` on, or append if `offset` is the size. With MDMF, only what changes is sent.

        HoleError if `offset` is beyond the end; also raises the errors of `modify`.
        """
        self._keys.require_write_key()
        if offset < 0:
            raise ValueError("an offset must not be negative")
        if not len(data):
            return
        await in_turn(self._grid, self._keys.storage_index, lambda: self._update(offset, data))

    async def check(self, *, verify: bool = False, add_lease: bool = False) -> CheckResult:
        """Check the file's health with any kind of capability. NoServersError."""
        return await check(self._session, verify=verify, add_lease=add_lease)

    async def repair(self, *, force: bool = False) -> RepairResult:
        """Verify the file, and restore its shares if necessary and possible. AuthorityError without the write cap.

        MustForceRepairError; also raises the errors of a publish.
        """
        self._keys.require_write_key()

        async def body() -> RepairResult:
            self._memory = None
            self._session.refutations.clear()
            return await repair(self._session, force=force, private_key=self._key)

        return await in_turn(self._grid, self._keys.storage_index, body)

    async def _find(self, mode: MapMode, speculate: Speculate, few: Few | None = None) -> VersionMap:
        rest = RestOfMap()
        on_rest = partial(self._complete, rest) if mode is MapMode.READ else None
        found = await self._session.find(mode, private_key=self._key, speculate=speculate, few=few, on_rest=on_rest)
        if mode is MapMode.READ and found.best is None and found.silent and found.unrecoverable():
            return await self._find(MapMode.CHECK, speculate)  # Silent servers may have the shares that are missing.
        memory = self._memory
        if few is None or memory is None or memory.best != found.best or len(found.answered) > len(memory.answered):
            self._remember(found)
            self._rest = None if on_rest is None or rest.is_over else rest
        return found

    def _complete(self, rest: RestOfMap, found: VersionMap | None) -> None:
        """Remember the complete map after a read has used a part of it."""
        if found is not None and self._memory is not None and self._rest is rest:
            self._remember(found)
        rest.end()

    def _remember(self, found: VersionMap) -> None:
        self._key = found.private_key or self._key
        self._memory, self._rest = found.without_pieces(), None
        self._session.note(found)

    async def _recall(self) -> VersionMap | None:
        """What is remembered, if the map has the shares of every server and no rivals: then it is as good for a write as a new one."""
        if self._rest is not None:
            await self._rest.wait()
        found = self._memory
        if found is None or self._key is None:
            return None
        whole = len(found.answered) == len(found.servers) and not found.failed
        sure = found.best is not None and not (found.is_outdated or found.is_contested)
        return found if whole and sure else None

    async def _find_for_write(self, attempt: int, speculate: Speculate) -> VersionMap:
        mode = MapMode.CHECK if attempt and self._key else MapMode.WRITE
        found = await find_for_write(self._session, mode, self._key, speculate)
        self._remember(found)
        self.warning = warn_if_outdated(self._session, found)
        return found

    def _settle_on(self, found: VersionMap, first: VersionMap) -> None:
        """Remember `found`, the map of a successful read, unless it is `first`, which is remembered already."""
        if found is not first:
            self._remember(found)
        self.warning = warn_if_outdated(self._session, found)

    def _speculate_key(self, known: KnownFile) -> Speculation:
        return known.speculate_read(0, 0, and_key=self._key is None)

    def _speculate_all(self, known: KnownFile) -> Speculation:
        if self._kept.is_steady:
            return self._speculate_key(known)
        return known.speculate_read(0, None, and_key=self._key is None)

    async def _publish(self, found: VersionMap, prefix: Prefix, source: Source, text: bytes | None = None) -> None:
        """Publish a new version over `prefix`, with the same k and N. text: the contents, to be kept."""
        require_same_format(self._keys, prefix)
        release = Release(
            geometry=Geometry.of_file(prefix.version, source.size, prefix.k, prefix.n),
            seqnum=found.highest_seqnum + 1,
            source=source,
            key=require_key(found, self._key),
            goal=self._session.goal_for(found, prefix.n),
            happy=min(self._session.grid.encoding.happy, prefix.n),
        )
        self._memory = None
        self._remember(published := await publish(self._session, found, release))
        if text is not None and published.best is not None:
            self._kept.put(published.best, text, is_own=True)

    async def _overwrite(self, source: Source, force: bool) -> None:
        memory = await self._recall()
        if memory is not None:
            try:
                return await self._publish(memory, require_best(memory), source)
            except ConflictError:
                pass  # Another client has written since the file was looked at. That does not count as a collision yet.
        found = await self._find_for_write(0, self._speculate_key)
        if force and found.best is None and found.unrecoverable():
            return await self._publish(found, found.unrecoverable()[0], source)
        prefix = require_best(found)
        try:
            return await self._publish(found, prefix, source)
        except ConflictError as error:
            if not error.shown:
                raise
            conflict = error.with_traceback(None)  # The exception's frames hold all shares of the version.
        # If nobody else has finished a newer version, writing again destroys nobody's contents.
        found = await self._find_for_write(1, self._speculate_key)
        best = found.best
        if best is None or (best.order > prefix.order and best.order != conflict.ours):
            raise conflict
        return await self._publish(found, require_best(found), source)

    async def _modify(self, function: Modifier, largest: int | None) -> None:
        last: tuple[Prefix, bytes] | None = None
        wrote = False

        async def attempt(count: int, memory: VersionMap | None) -> Literal["done", "again"]:
            nonlocal last, wrote
            kept = self._kept.get(memory.best) if memory is not None else None
            if memory is not None and kept is not None:
                found, prefix, text = memory, require_best(memory), kept
            else:
                memory = None
                found = await self._find_for_write(count, self._speculate_all)
                found, prefix, text = await self._read_for_write(found, last, largest)
            last = prefix, text
            made = function(text, not wrote)
            new = made if made is None or isinstance(made, bytes) else await made
            if new is None or new == text:
                if memory is not None:
                    return "again"  # "Nothing to do" holds only for the contents that the function saw.
                if not wrote:
                    self._kept.put(prefix, text)
                    return "done"
                new = text
            wrote = True
            await self._publish(found, prefix, MemorySource(new), new)
            return "done"

        await self._retry(attempt)

    async def _read_for_write(
        self, found: VersionMap, last: tuple[Prefix, bytes] | None, largest: int | None
    ) -> tuple[VersionMap, Prefix, bytes]:
        """Read the best readable version and its contents; if none is left, what the file was before this process wrote."""
        if found.best is None and last is not None:
            return found, *last
        text = b""

        async def attempt(found: VersionMap) -> None:
            nonlocal text
            prefix = require_size(require_best(found), largest)
            text = self._kept.get(prefix) or await self._session.contents(found, prefix)

        read = await read_best(self._session, found, attempt, partial(self._find_for_write, 1, self._speculate_all))
        self._settle_on(read, found)
        return read, require_best(read), text

    async def _update(self, offset: int, data: Buffer) -> None:
        async def attempt(count: int, memory: VersionMap | None) -> Literal["done", "again"]:
            if memory is not None:
                found = memory
            else:
                found = await self._find_for_write(count, lambda known: speculate_update(known, offset, len(data)))
            prefix = require_best(found)
            require_same_format(self._keys, prefix)
            if offset > prefix.size:
                if memory is not None:
                    return "again"
                raise HoleError(f"byte {offset} is beyond the end of the file, which has {prefix.size} bytes")
            await self._update_once(found, prefix, offset, data)
            return "done"

        await self._retry(attempt)

    async def _update_once(self, found: VersionMap, prefix: Prefix, offset: int, data: Buffer) -> None:
        self._memory = None
        happy = min(self._session.grid.encoding.happy, prefix.n)
        if may_update_in_place(found, prefix, offset, len(data), happy):
            key = require_key(found, self._key)
            after = await update_in_place(self._session, found, prefix, key, offset, data, happy)
            if after is not None:
                self._remember(after)
                return
        source = OverlaySource(session=self._session, found=found, prefix=prefix, offset=offset, data=data)
        await self._publish(found, prefix, source)

    async def _retry(self, attempt: Callable[[int, VersionMap | None], Awaitable[Literal["done", "again"]]]) -> None:
        """Attempt with what is remembered, then with new maps until no other writer interferes."""
        memory = await self._recall()
        if memory is not None:
            try:
                if await attempt(0, memory) == "done":
                    return
            except (ConflictError, NotEnoughSharesError):
                pass  # The file is no longer as remembered. That does not count as a collision yet.
        delay_s = FIRST_DELAY_S
        collisions = misses = 0
        while True:
            learned = self._session.refutations.count
            try:
                await attempt(collisions + misses, None)
                return
            except ConflictError:
                collisions += 1
                if collisions > RETRIES:
                    raise
            except NotEnoughSharesError:
                misses += 1
                if misses > MOST_MISSES or self._session.refutations.count == learned:
                    raise
                continue  # The best readable version may be a different one now.
            delay_s = next_delay(self._grid.runtime.entropy, delay_s)
            await self._grid.runtime.clock.sleep(delay_s)
