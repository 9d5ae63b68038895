"""Directories as many requests use them at once: changes that share a publish, and reads that share a read.

What comes while a publish is under way waits for it, and goes out with the next one: a hundred puts at a time take a few
publishes. Each is judged by the contents that it changes; one that is refused holds up no other. An answer comes after
the publish. A read never begins before it was asked for, so that a client that has put something finds it.

The directories of a path are read at the same time as far as the path is remembered. What is remembered only decides which
reads begin early.

Cost: round trips: a path takes one if it is as remembered, otherwise one more for each directory behind the first change.
Memory: the changes that wait, and a directory's queues while something waits in them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap
from grid.directory.edits import Edit, RemoveChild, SetChild
from grid.directory.node import Directory, Look
from grid.directory.pack import Child
from grid.errors import ExistingChildError, GridError
from grid.runtime import Begun, Tasks
from grid.values import define, field

MOST_TOGETHER = 1000
"""Changes in one publish."""

Decide = Callable[[Look, bool], Sequence[SetChild | RemoveChild]]
"""The edits of one change, by what the directory holds and whether an earlier attempt may have been stored; called again
for newer contents. Edits that no contents refuse; a GridError refuses the change."""

Children = Mapping[str, Child]

I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


class Coalescer(Generic[I, R]):
    """Work on many items at once, one batch after the other."""

    def __init__(
        self,
        work: Callable[[list[I]], Awaitable[R]],
        tasks: Tasks,
        *,
        reads_only: bool = False,
        is_held: Callable[[], bool] = bool,
    ) -> None:
        """work: what is done with a batch; its result or its error is that of each item.

        reads_only: it changes nothing, and ends when nobody waits for it any more. is_held: whether nothing begins yet, until
        `go_on` is called.
        """
        self._work = work
        self._tasks = tasks
        self._reads_only = reads_only
        self._is_held = is_held
        self._waiting: list[tuple[I, Deferred[R]]] = []
        self._batch: list[tuple[I, Deferred[R]]] = []
        self._task: Deferred[None] | None = None
        self._is_busy = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits or is under way."""
        return not self._waiting and not self._is_busy

    async def submit(self, item: I) -> R:
        """The result of the batch that the item is in, which begins after this call."""
        done: Deferred[R] = Deferred(self._give_up if self._reads_only else None)
        self._waiting.append((item, done))
        self.go_on()
        return await done

    def go_on(self) -> None:
        """Begin with what waits, if nothing is under way."""
        if not self._is_busy and not self._is_held():
            self._next()

    def _give_up(self, done: Deferred[R]) -> None:
        """One of those who wait is gone."""
        self._waiting = [entry for entry in self._waiting if entry[1] is not done]
        left = [entry for entry in self._batch if entry[1] is not done]
        is_last = bool(self._batch) and not left
        self._batch = left
        if is_last and self._task is not None:
            self._task.cancel()

    def _next(self) -> None:
        self._batch, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        self._is_busy = bool(self._batch)
        if self._is_busy:
            task = self._tasks.start(self._work([item for item, _ in self._batch]), self._done, self._fail)  # type: ignore[arg-type]
            if not task.called:
                self._task = task

    def _done(self, result: R) -> None:
        batch, self._batch = self._batch, []
        self._next()
        for _, done in batch:
            done.callback(result)

    def _fail(self, error: BaseException) -> None:
        batch, self._batch = self._batch, []
        self._next()
        for _, done in batch:
            done.errback(error)


class DirectoryOpener(Protocol):
    """What opens and makes directories."""

    async def create_directory(self, children: Mapping[str, Child] | None = None) -> DirectoryCap:
        """Store a new mutable directory."""

    def directory(self, cap: DirectoryCap) -> Directory:
        """The directory of this cap."""


@define(eq=False)
class _Change:
    """A change that waits. refusal: why the contents that it was judged by last do not permit it."""

    decide: Decide
    refusal: GridError | None = None


@define(eq=False)
class _Queues:
    changes: Coalescer[_Change, None]
    reads: Coalescer[None, Children]
    makes: Coalescer[str, Mapping[str, DirectoryCap]]

    @property
    def are_idle(self) -> bool:
        return self.changes.is_idle and self.reads.is_idle and self.makes.is_idle

    def go_on(self) -> None:
        """Begin with what waits."""
        self.changes.go_on()
        self.reads.go_on()
        self.makes.go_on()


@define(eq=False)
class Directories:
    """All directories that a door is using now.

    beside: the name for a file in whose way a new directory is; without it, `make` refuses to make one there.
    """

    _store: DirectoryOpener
    _beside: Callable[[str], str] | None = None
    _tasks: Tasks = field(factory=Tasks)
    _queues: dict[DirectoryCap, _Queues] = field(factory=dict)
    _is_held: bool = False
    _paths: dict[tuple[DirectoryCap, tuple[str, ...]], Coalescer[None, list[Children]]] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits or is under way."""
        return not self._queues

    async def read(self, cap: DirectoryCap) -> Children:
        """The children, read after this was called; the errors of a listing."""
        return await self._read(cap, None)

    async def _read(self, cap: DirectoryCap, opened: Directory | None) -> Children:
        """Like `read`. opened: the directory, if it is open already."""
        queues = self._of(cap, opened)
        try:
            return await queues.reads.submit(None)
        finally:
            self._forget(cap, queues)

    async def read_path(self, top: DirectoryCap, names: Sequence[str]) -> list[Children]:
        """The children of each directory on a path, from the top on, as far as the path leads through directories.

        Each is read after this was called. Raises the errors of a listing.
        """
        if self._paths is None:
            return await self._read_path(top, names)
        key = (top, tuple(names))
        shared = self._paths.get(key)
        if shared is None:

            async def read(_: list[None]) -> list[Children]:
                return await self._read_path(*key)

            paths = self._paths
            shared = Coalescer(read, self._tasks, reads_only=True, is_held=lambda: self._paths is paths)
            self._paths[key] = shared
        return await shared.submit(None)

    async def _read_path(self, top: DirectoryCap, names: Sequence[str]) -> list[Children]:
        tasks = Tasks()
        likely = self._recall(top, names)
        ahead = {cap: Begun(self._read(cap, opened), tasks) for cap, opened, _ in likely}
        found: list[Children] = []
        cap = top
        try:
            for name in (*names, None):
                begun = ahead.pop(cap, None)
                found.append(await (self.read(cap) if begun is None else begun.result()))
                child = None if name is None else found[-1].get(name)
                if child is None or not isinstance(child.target, DirectoryCap):
                    break
                cap = child.target
            return found
        finally:
            tasks.cancel()

    def recall_path(self, top: DirectoryCap, names: Sequence[str]) -> list[Children]:
        """The same as it was when each of the directories was last used here, as far as it is remembered. Asks nobody."""
        return [children for _, _, children in self._recall(top, names) if children is not None]

    def _recall(
        self, top: DirectoryCap, names: Sequence[str]
    ) -> list[tuple[DirectoryCap, Directory | None, Children | None]]:
        """The directories that a path probably leads through, opened unless that fails, and what is remembered of each."""
        found: list[tuple[DirectoryCap, Directory | None, Children | None]] = []
        cap = top
        for name in (*names, None):
            opened, children = None, None
            with suppress(GridError):
                opened = self._store.directory(cap)
                children = opened.recall()
            found.append((cap, opened, children))
            child = None if name is None or children is None else children.get(name)
            if child is None or not isinstance(child.target, DirectoryCap):
                break
            cap = child.target
        return found

    async def change(self, cap: DirectoryCap, decide: Decide) -> None:
        """Make a change, and return when it is durable; what it raises, and the errors of `Directory.edit`."""
        change, queues = _Change(decide), self._of(cap)
        try:
            await queues.changes.submit(change)
        finally:
            self._forget(cap, queues)
        if change.refusal is not None:
            raise change.refusal

    async def make(self, parent: DirectoryCap, name: str) -> DirectoryCap:
        """The directory of that name, made if it is missing; a file of that name goes beside it. The errors of `change`."""
        queues = self._of(parent)
        try:
            return (await queues.makes.submit(name))[name]
        finally:
            self._forget(parent, queues)

    async def _make_all(self, parent: DirectoryCap, names: Sequence[str]) -> Mapping[str, DirectoryCap]:
        present = await self.read(parent)
        found: dict[str, DirectoryCap] = {}
        made: dict[str, DirectoryCap] = {}
        for name in set(names):
            child = present.get(name)
            if child is not None and isinstance(child.target, DirectoryCap):
                found[name] = child.target
            else:
                made[name] = await self._store.create_directory()

        def decide(look: Look, retrying: bool) -> list[SetChild | RemoveChild]:
            edits: list[SetChild | RemoveChild] = []
            for name, new in made.items():
                here = look(name)
                if here is not None and isinstance(here.target, DirectoryCap):
                    found[name] = here.target
                    continue
                found[name] = new
                if here is not None:
                    if self._beside is None:
                        raise ExistingChildError(f"there is already a {name!r} in the directory", name=name)
                    edits.append(SetChild(self._beside(name), here.target, here.metadata))
                edits.append(SetChild(name, new, {}))
            return edits

        if made:
            await self.change(parent, decide)
        return found

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is asked for meanwhile, without waiting for anything else, shares publishes and reads, also of whole paths.

        The end of one inside another is that of both.
        """
        paths = self._paths = {}
        self._is_held = True
        try:
            yield
        finally:
            self._paths = None
            for path in paths.values():
                path.go_on()
            self._is_held = False
            for queues in list(self._queues.values()):
                queues.go_on()

    def close(self) -> None:
        """Give up what is under way."""
        self._tasks.cancel()

    def _of(self, cap: DirectoryCap, opened: Directory | None = None) -> _Queues:
        """The queues of a directory. opened: as for `_read`."""
        queues = self._queues.get(cap)
        if queues is None:
            directory = opened or self._store.directory(cap)

            async def publish(batch: list[_Change]) -> None:
                await directory.edit_by(lambda look, retrying: _decide_all(batch, look, retrying), len(batch))

            async def read(_: list[None]) -> Children:
                return await directory.list()

            async def make(names: list[str]) -> Mapping[str, DirectoryCap]:
                return await self._make_all(cap, names)

            def is_held() -> bool:
                return self._is_held

            queues = _Queues(
                Coalescer(publish, self._tasks, is_held=is_held),
                Coalescer(read, self._tasks, reads_only=True, is_held=is_held),
                Coalescer(make, self._tasks, is_held=is_held),
            )
            self._queues[cap] = queues
        return queues

    def _forget(self, cap: DirectoryCap, queues: _Queues) -> None:
        if queues.are_idle and self._queues.get(cap) is queues:
            del self._queues[cap]


def _decide_all(batch: Sequence[_Change], look: Look, retrying: bool) -> list[Edit]:
    """The edits of all changes, each judged by what those before it leave."""
    after: dict[str, Child | None] = {}
    edits: list[Edit] = []

    def look_after(name: str) -> Child | None:
        return after[name] if name in after else look(name)

    for change in batch:
        change.refusal = None
        try:
            made = change.decide(look_after, retrying)
        except GridError as error:
            change.refusal = error
            continue
        for edit in made:
            if isinstance(edit, SetChild):
                after[edit.name] = Child(target=edit.target, metadata=edit.metadata or {})
            else:
                after[edit.name] = None
        edits.extend(made)
    return edits
