"""Stores small objects that come at the same time together: as slices of one pack. [spec extents 1; docs/decisions/0511-packs-of-objects.md]

A put begins at once if none of its bucket is under way. What comes meanwhile waits, and is stored as one group: a pack, and a
publish of each directory. The next group begins soon after the first object of the last one is answered, or when it is full.
Soon: clients that had an answer send their next objects, so the group waits for as many as were there before, while they come and
not for long. An object that is alone is stored as a file of its own. Objects wait only when all their bytes are here, so that a slow
client holds up nobody, and those of one bucket never share a pack with those of another.

A pack has a random key: which objects meet in it is chance, so that no pack is stored twice.

Cost: for a group, what one file costs. Memory: objects that wait are spooled like every body; a pack and its shares take a turn
of `Stores`, as a file of their size does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, KnownCap
from grid.directory.gathering import Directories
from grid.errors import GridError
from grid.extents.pack_writer import SEGMENT_SIZE, PackContents
from grid.gateway.files.uploads import NewFile, store_spooled
from grid.gateway.shared.services import Services
from grid.gateway.shared.spool import Spool
from grid.mutable.sources import MemorySource
from grid.ports import Buffer, Clock, Timer
from grid.runtime import Tasks
from grid.values import define, field

MOST_OBJECTS = 256
"""Objects of one group."""

MOST_BYTES = 2 * 2**20
"""Bytes of one group, or a single object: its shares fit into one message to each server."""

QUIET = 1.0
"""A wait for clients that were just answered ends when nothing was answered and no object has come for so long, as a multiple of
the time that their group took.
"""

PAUSE = 2.0
"""The longest wait for them, as a multiple of that time."""

LONGEST_PAUSE_S = 0.2
"""The longest wait for them at all."""


@define(eq=False)
class _Object:
    """An object that has fully arrived. target: the file that it is stored as, or what has prevented that. is_gone: its request
    is over, and its bytes are discarded.
    """

    spool: Spool
    begin: Callable[[], None]
    target: Deferred[KnownCap] = field(factory=Deferred, repr=False)
    group: _Group | None = None
    is_gone: bool = False

    async def read(self) -> Buffer | None:
        """All its bytes; None if its request is over. GridError if they cannot be read."""
        if self.is_gone:
            return None
        try:
            return await self.spool.read_at(0, self.spool.size)
        except GridError:
            if self.is_gone:
                return None
            raise


@define(eq=False)
class _Group:
    """Objects that are stored together. members: those whose requests are not over."""

    members: list[_Object]
    size: int
    began_at: float
    task: Deferred[None] | None = None
    is_stored: bool = False
    is_over: bool = False


@define
class Pause:
    """A wait for clients that were just answered: until ends_at, or until nothing has moved for quiet_s. Pure.

    A gateway that answers many clients takes time for it, and for what they send next; as long as it does, the others are coming.
    """

    quiet_s: float
    moved_at: float
    ends_at: float

    @classmethod
    def after(cls, began_at: float, now: float) -> Pause:
        """The wait after the first answer of a group that began then."""
        took_s = now - began_at
        return cls(quiet_s=QUIET * took_s, moved_at=now, ends_at=now + min(LONGEST_PAUSE_S, PAUSE * took_s))

    def left_s(self, now: float) -> float:
        """How long it lasts if nothing moves."""
        return min(self.moved_at + self.quiet_s, self.ends_at) - now


@define(eq=False)
class _Line:
    """The objects of one bucket. under_way: groups of which no object is answered. expected: objects for which to wait until the
    pause is over.
    """

    waiting: list[_Object] = field(factory=list)
    under_way: int = 0
    expected: int = 0
    pause: Pause | None = None
    timer: Timer | None = None

    @property
    def is_time(self) -> bool:
        """Whether the next group begins."""
        if _is_full(self.waiting):
            return True
        return not self.under_way and (self.pause is None or len(self.waiting) >= self.expected)

    def end_pause(self) -> None:
        """Wait no longer."""
        self.pause = None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def move(self, now: float) -> None:
        """Note that an object has come, or was answered."""
        if self.pause is not None:
            self.pause.moved_at = now


@define(eq=False)
class ObjectPacks:
    """All packs of a door."""

    _services: Services
    _directories: Directories
    _lines: dict[DirectoryCap, _Line] = field(factory=dict)
    _tasks: Tasks = field(factory=Tasks)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits or is under way."""
        return not self._lines

    @property
    def waiting_count(self) -> int:
        """Objects that wait for their group."""
        return sum(len(line.waiting) for line in self._lines.values())

    @asynccontextmanager
    async def stored(self, root: DirectoryCap, spool: Spool, begin: Callable[[], None]) -> AsyncIterator[KnownCap]:
        """The object as a stored file, durable; the caller links it meanwhile. Raises the errors of a put.

        root: of its bucket. spool: all its bytes, which is closed after this. begin: begins what the object needs beside that;
        the objects of a group share their reads of directories.
        """
        line = self._lines.setdefault(root, _Line())
        each = _Object(spool, begin)
        line.waiting.append(each)
        line.move(self._clock.now())
        self._advance(root, line)
        try:
            yield await each.target
        finally:
            self._leave(root, line, each)

    def close(self) -> None:
        """Give up what is under way."""
        lines, self._lines = self._lines, {}
        for line in lines.values():
            line.end_pause()
        self._tasks.cancel()

    def _advance(self, root: DirectoryCap, line: _Line) -> None:
        """Begin with the next group, if it is time."""
        while line.waiting and line.is_time:
            line.end_pause()
            count = _fitting(line.waiting)
            group = _Group(line.waiting[:count], count, self._clock.now())
            line.waiting = line.waiting[count:]
            line.under_way += 1
            with self._directories.together():
                for each in group.members:
                    each.group = group
                    each.begin()
            self._begin(root, line, group)
        if not line.waiting and not line.under_way and line.pause is None and self._lines.get(root) is line:
            del self._lines[root]

    def _begin(self, root: DirectoryCap, line: _Line, group: _Group) -> None:
        members = list(group.members)

        def succeed(stored: list[tuple[_Object, KnownCap]]) -> None:
            group.is_stored = True
            with self._directories.together():
                for each, target in stored:
                    each.target.callback(target)
            if not group.members:
                self._end(root, line, group)

        def fail(error: BaseException) -> None:
            group.is_stored = True
            for each in members:
                each.target.errback(error)
            self._end(root, line, group)

        task = self._tasks.start(self._store(members), succeed, fail)
        if not task.called:
            group.task = task

    def _leave(self, root: DirectoryCap, line: _Line, each: _Object) -> None:
        """The object's request is over."""
        group, each.is_gone = each.group, True
        if group is None:
            line.waiting.remove(each)
            self._advance(root, line)
            return
        group.members.remove(each)
        line.move(self._clock.now())
        if group.is_stored:
            self._end(root, line, group)
        elif not group.members and group.task is not None:
            group.task.cancel()

    def _end(self, root: DirectoryCap, line: _Line, group: _Group) -> None:
        if group.is_over:
            return
        group.is_over = True
        line.under_way -= 1
        line.expected = group.size + len(line.waiting)
        if not line.under_way and line.expected > 1:
            line.end_pause()
            line.pause = Pause.after(group.began_at, self._clock.now())
            self._wait(root, line)
        self._advance(root, line)

    def _wait(self, root: DirectoryCap, line: _Line) -> None:
        """Begin with the next group when the pause is over."""
        line.timer = None
        if line.pause is None:
            return
        left_s = line.pause.left_s(self._clock.now())
        if left_s > 0:
            line.timer = self._clock.call_later(left_s, lambda: self._wait(root, line))
        else:
            line.pause = None
            self._advance(root, line)

    @property
    def _clock(self) -> Clock:
        return self._services.store.runtime.clock

    async def _store(self, members: Sequence[_Object]) -> list[tuple[_Object, KnownCap]]:
        """Store the objects; returns each with its file. One whose request ends before it is read is left out."""
        services = self._services
        size = sum(each.spool.size for each in members)
        with services.history.upload(size=size) as operation:
            if len(members) == 1:
                found = list(members)
                targets = [await store_spooled(services.store, services.stores, NewFile(), members[0].spool)]
            else:
                async with services.stores.turn(size):
                    read = [(each, data) for each in members if (data := await each.read()) is not None]
                    found = [each for each, _ in read]
                    targets = await self._store_pack([data for _, data in read])
            index = targets[0].storage_index
            if index is not None:
                operation.name(index)
        return list(zip(found, targets, strict=True))

    async def _store_pack(self, plaintexts: Sequence[Buffer]) -> list[KnownCap]:
        store = self._services.store
        contents = PackContents(store.convergence, store.runtime.entropy.random_bytes)
        extents = await store.runtime.cpu.run(contents.add_all, plaintexts)
        pack = await store.put_unique(MemorySource(contents.data), segment_size=SEGMENT_SIZE)
        return [extent.slice_of(pack) for extent in extents]


def _fitting(waiting: Sequence[_Object]) -> int:
    """How many objects the next group takes."""
    size = 0
    for count, each in enumerate(waiting[:MOST_OBJECTS]):
        size += each.spool.size
        if count and size > MOST_BYTES:
            return count
    return min(MOST_OBJECTS, len(waiting))


def _is_full(waiting: Sequence[_Object]) -> bool:
    return len(waiting) >= MOST_OBJECTS or sum(each.spool.size for each in waiting) >= MOST_BYTES
