"""Reverts a change on the grid: restores each of its entries, unless an entry has changed since.

Either all entries are reverted or none, and concurrent changes of others are neither overwritten nor removed. A moved
directory is moved back rather than linked and removed, with the checks that keep it from ending up below itself
(decision 0157).

Cost: two reads and a publish of each directory that the change concerned; two more publishes for a moved directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Literal

from attrs import evolve, field

from grid.caps import DirectoryCap
from grid.cli.undo.changes import ChangedLink, same_child
from grid.directory.edits import Edit, RemoveChild, SetChild
from grid.directory.moving import may_hold_others
from grid.directory.pack import Child
from grid.directory.store import Store, Trail
from grid.errors import ConflictError
from grid.values import define, frozen

Action = Literal["restored", "removed", "unchanged", "left alone"]
"""unchanged: it already is as before. left alone: the change had created it, and it leads elsewhere by now."""


@frozen
class Undone:
    """The result for one entry. shown: its path."""

    shown: str
    action: Action


@define
class Undoing:
    """Reverts one change. force: also entries that others have changed since.

    on_forced: called with what that replaces.
    """

    _store: Store
    _links: Sequence[ChangedLink]
    _force: bool
    _on_forced: Callable[[ChangedLink, Child | None], None]
    _there: dict[DirectoryCap, Mapping[str, Child]] = field(factory=dict, repr=False)
    _done: dict[tuple[DirectoryCap, str], Action] = field(factory=dict, repr=False)

    async def run(self) -> list[Undone]:
        """Revert the change.

        ConflictError, before anything is done, if an entry was changed since; the errors of an edit.
        """
        links = settle_links(self._links)
        await self._look(links)
        self._require_left(links)
        moves = _moves(links)
        for source, target in moves:
            await self._move_back(source, target)
        if moves:
            await self._look(links)
        for directory, group in groupby(reversed(links), lambda link: link.directory):
            await self._edit(directory, list(group))
        await self._look(links)
        for link in links:
            if self._done[link.key] != "left alone" and not same_child(self._child(link), link.old):
                raise ConflictError(
                    f"{link.shown} was changed by somebody else at the same time: check what is there now"
                )
        return [Undone(link.shown, self._done[link.key]) for link in links]

    async def _look(self, links: Sequence[ChangedLink]) -> None:
        for directory in dict.fromkeys(link.directory for link in links):
            self._there[directory] = await self._store.directory(directory).list()

    def _child(self, link: ChangedLink) -> Child | None:
        return self._there[link.directory].get(link.name)

    def _require_left(self, links: Sequence[ChangedLink]) -> None:
        if self._force:
            return
        others = [
            link
            for link in links
            if not link.is_left(self._child(link)) and not same_child(self._child(link), link.old)
        ]
        if others:
            what = "is gone" if self._child(others[0]) is None else "was changed"
            more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
            raise ConflictError(
                f"{others[0].shown} {what} since{more}, so nothing was undone; --force puts back what was there before"
            )

    async def _move_back(self, source: ChangedLink, target: ChangedLink) -> None:
        """Move a directory from `source`, where the change put it, back to `target`."""
        if not source.is_left(self._child(source)):
            return
        there = self._child(target)
        if there is not None and (not self._force or same_child(there, target.old)):
            return
        await self._store.move(
            Trail.of(source.directory), source.name, Trail.of(target.directory), target.name, overwrite=self._force
        )
        self._on_forced(target, there)
        self._done[target.key] = "restored"
        self._done[source.key] = "removed"

    async def _edit(self, directory: DirectoryCap, links: Sequence[ChangedLink]) -> None:
        edits = [edit for link in links if (edit := self._plan(link)) is not None]
        if edits:
            await self._store.directory(directory).edit(edits)
            for link in links:
                if self._done[link.key] == "restored" and not link.is_left(self._child(link)):
                    self._on_forced(link, self._child(link))

    def _plan(self, link: ChangedLink) -> Edit | None:
        """The edit that restores the entry; None if there is nothing to do."""
        there = self._child(link)
        if same_child(there, link.old):
            self._done.setdefault(link.key, "unchanged")
            return None
        if link.old is not None:
            self._done[link.key] = "restored"
            only = None if there is None else there.target
            return SetChild(link.name, link.old.target, link.old.metadata, overwrite=there is not None, only=only)
        assert there is not None
        if not link.is_left(there):
            self._done[link.key] = "left alone"
            return None
        self._done[link.key] = "removed"
        return RemoveChild(link.name, must_exist=False, only=there.target)


def settle_links(links: Sequence[ChangedLink]) -> list[ChangedLink]:
    """Each entry once, from its first old state to its last new state, in the order of the last changes."""
    found: dict[tuple[DirectoryCap, str], ChangedLink] = {}
    for link in links:
        before = found.pop(link.key, None)
        old = link.old if before is None else before.old
        found[link.key] = evolve(link, old=old)
    return [link for link in found.values() if not same_child(link.old, link.new)]


def _moves(links: Sequence[ChangedLink]) -> list[tuple[ChangedLink, ChangedLink]]:
    """Pairs of links between which a mutable directory was moved: where it went, and where it came from."""
    left = {link.old.target: link for link in links if link.old is not None and link.new is None}
    return [
        (link, left[link.new.target])
        for link in links
        if link.new is not None and link.new.target in left and may_hold_others(link.new.target)
    ]
