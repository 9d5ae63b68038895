"""Gathers changes of directories: those that arrive during a publish share the next one.

It owns which changes share a publish. It runs on the reactor's thread.

Cost: a hundred files put at once into one directory take a few publishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from grid.caps import DirectoryCap
from grid.directory.edits import Edit, SetChild
from grid.directory.gathering import Coalescer
from grid.directory.store import Store
from grid.errors import GridError, MayHoldError
from grid.runtime import Tasks
from grid.values import define


@define(eq=False)
class _Change:
    """Edits that are made together. refusal: why they were not made."""

    edits: Sequence[Edit]
    refusal: GridError | None = None

    @property
    def kind(self) -> object:
        """Changes of the same kind may share a publish: a gateway makes their edits all or not at all."""
        kinds = {edit.overwrite if isinstance(edit, SetChild) else type(edit) for edit in self.edits}
        return kinds.pop() if len(kinds) == 1 else self


class Linker:
    """Edits the directories of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queues: dict[DirectoryCap, Coalescer[_Change, None]] = {}
        self._tasks = Tasks()

    async def edit(self, directory: DirectoryCap, edits: Sequence[Edit]) -> None:
        """Make all edits or none, and return when they are durable. Raises the errors of `Directory.edit`."""
        change = _Change(edits)
        queue = self._queues.get(directory)
        if queue is None:
            queue = self._queues[directory] = Coalescer(partial(self._publish_all, directory), self._tasks)
        try:
            await queue.submit(change)
        finally:
            if queue.is_idle and self._queues.get(directory) is queue:
                del self._queues[directory]
        if change.refusal is not None:
            raise change.refusal

    async def _publish_all(self, cap: DirectoryCap, changes: Sequence[_Change]) -> None:
        kinds: dict[object, list[_Change]] = {}
        for change in changes:
            kinds.setdefault(change.kind, []).append(change)
        for together in kinds.values():
            await self._publish(cap, together)
            refusal = together[0].refusal
            if len(together) > 1 and refusal is not None and not isinstance(refusal, MayHoldError):
                # One of them does not fit, so none was made: retry each by itself.
                for change in together:
                    await self._publish(cap, [change])

    async def _publish(self, cap: DirectoryCap, changes: Sequence[_Change]) -> None:
        refusal: GridError | None = None
        try:
            await self._store.directory(cap).edit([edit for change in changes for edit in change.edits])
        except GridError as error:
            refusal = error
        for change in changes:
            change.refusal = refusal
