"""The snapshots of one backup, found on the grid: chosen by name or time, and removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from attrs import evolve, field

from grid.caps import DirectoryCap
from grid.cli.arguments.remote import RemotePath
from grid.cli.arguments.replacing import Undo, edit_entry, previous_child
from grid.cli.arguments.tree import Tree
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.pack import Target
from grid.directory.snapshots import ARCHIVES, LATEST, Snapshot, snapshots_of
from grid.directory.store import Store
from grid.errors import ChildOfWrongTypeError, NoSuchChildError
from grid.values import frozen

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}")

_SEPARATOR = re.compile(r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]")


EARLIER = 20
"""Snapshots in which a missing path is looked for: each takes a few reads."""


@frozen(kw_only=True)
class Catalog:
    """All snapshots of a backup, the oldest first. root: the backup's directory.

    latest: the target of `Latest`, or None.
    """

    path: RemotePath = field(repr=False)
    root: DirectoryCap = field(repr=False)
    archives: DirectoryCap = field(repr=False)
    snapshots: Sequence[Snapshot]
    latest: Target | None = field(default=None, repr=False)

    def find(self, name: str) -> Snapshot:
        """The snapshot with exactly this name; NoSuchChildError."""
        for snapshot in self.snapshots:
            if snapshot.name == name:
                return snapshot
        longer = [each.name for each in self.snapshots if name and each.name.startswith(name)]
        if longer:
            words = (
                f"there is no snapshot {name!r} in {self.path.shown}; write the whole name: {', '.join(longer[-3:])}"
            )
            raise NoSuchChildError(words, name=self.path.shown)
        raise self._no_snapshot(name)

    def choose(self, text: str) -> Snapshot:
        """The snapshot of this name, the newest whose name starts with it, or, for `latest`, the last one made;
        NoSuchChildError.

        A time may have a space or a T before its hours.
        """
        if text == "latest":  # A clock that was ahead may have given an older one the newest name.
            found = [snapshot for snapshot in self.snapshots if snapshot.cap == self.latest] or self.snapshots
        else:
            begins = _SEPARATOR.sub(r"\1_", text)
            found = [snapshot for snapshot in self.snapshots if text and snapshot.name.startswith(begins)]
        if found:
            return found[-1]
        if not self.snapshots:
            raise NoSuchChildError(f"there are no snapshots in {self.path.shown}", name=self.path.shown)
        raise self._no_snapshot(text)

    def _no_snapshot(self, text: str) -> NoSuchChildError:
        shown = self.path.shown
        words = f"there is no snapshot {text!r} in {shown}"
        if _DATE.match(text):
            begins = _SEPARATOR.sub(r"\1_", text)
            before = [f"the last one before is {each.name}" for each in self.snapshots if each.name < begins]
            after = [f"the next is {each.name}" for each in self.snapshots if each.name > begins]
            near = [*before[-1:], *after[:1]]
            words += f": {', '.join(near)}" if near else ""
        return NoSuchChildError(f"{words}; `grid snapshots {shown}` lists them", name=shown)

    async def find_earlier(self, store: Store, chosen: DirectoryCap, path: Sequence[str]) -> Snapshot | None:
        """The newest snapshot that has this path, of up to EARLIER that are older than the chosen one; None if none has.

        GridError if one of them cannot be read.
        """
        places = [index for index, each in enumerate(self.snapshots) if each.cap == chosen]
        looked_at = {chosen}
        for each in reversed(self.snapshots[: places[0] if places else 0]):
            if each.cap in looked_at:
                continue
            looked_at.add(each.cap)
            if len(looked_at) > EARLIER:
                break
            with suppress(NoSuchChildError, ChildOfWrongTypeError):
                await store.directory(each.cap).get(path)
                return each
        return None

    def select(self, hosts: Sequence[str], tags: Sequence[str]) -> list[Snapshot]:
        """Snapshots of any of these machines that have all of these tags; an empty sequence does not restrict."""
        return [
            snapshot
            for snapshot in self.snapshots
            if (not hosts or snapshot.note.host in hosts) and set(tags) <= set(snapshot.note.tags)
        ]


async def read_catalog(tree: Tree, path: RemotePath) -> Catalog:
    """Read the snapshots of the backup in this directory; NoSuchChildError if it holds none."""
    root = await tree.find_directory(path)
    children = await root.list()
    archives = children.get(ARCHIVES)
    if archives is None:
        if path.names and path.names[-1] in (ARCHIVES, LATEST):
            words = f"{path.shown} is part of a backup: name the backup itself, {path.parent.shown.rstrip('/')}"
            raise NoSuchChildError(words, name=path.shown)
        words = f"{path.shown} is not a backup: it has no {ARCHIVES} directory, which `grid backup` creates"
        raise NoSuchChildError(words, name=path.shown)
    if not isinstance(archives.target, DirectoryCap):
        where = path.with_name(ARCHIVES).shown
        raise ChildOfWrongTypeError(f"{where} is not a directory", name=where)
    entries = await tree.store.directory(archives.target).list()
    latest = children.get(LATEST)
    return Catalog(
        path=path,
        root=root.cap,
        archives=archives.target,
        snapshots=snapshots_of(entries),
        latest=None if latest is None else latest.target,
    )


async def backup_above(tree: Tree, path: RemotePath) -> RemotePath | None:
    """The nearest directory above a missing path that holds a backup; None if none does."""
    while path.names:
        name, path = path.names[-1], path.parent
        if name in (ARCHIVES, LATEST):
            return None
        with suppress(NoSuchChildError, ChildOfWrongTypeError):
            if {ARCHIVES, LATEST} <= set(await (await tree.find_directory(path)).list()):
                return evolve(path, shown=path.shown.rstrip("/"))
    return None


async def remove_snapshots(store: Store, catalog: Catalog, snapshots: Sequence[Snapshot], undo: Undo) -> None:
    """Unlink the snapshots, all at once, and then point `Latest` to the newest remaining one.

    Entries that others linked under the same names meanwhile stay, and so does a `Latest` that they changed. undo:
    collects what is removed.
    """
    if not snapshots:
        return
    removals = [RemoveChild(each.name, must_exist=False, only=each.cap) for each in snapshots]
    archives, where = store.directory(catalog.archives), catalog.path.with_name(ARCHIVES)
    before = await archives.list()
    paths = [where.with_name(each.name) for each in snapshots]
    with undo.in_doubt(archives.cap, before, [(path, None) for path in paths]):
        replaced = await archives.edit(removals)
    links = [(path, previous_child(path.names[-1], before, replaced), None) for path in paths]
    undo.note_all(archives.cap, links)
    gone = {each.name for each in snapshots}
    left = [each for each in catalog.snapshots if each.name not in gone]
    if catalog.latest is None or any(each.cap == catalog.latest for each in left):
        return
    if not any(each.cap == catalog.latest for each in snapshots):
        return  # Somebody else's link.
    edit: SetChild | RemoveChild = RemoveChild(LATEST, must_exist=False, only=catalog.latest)
    if left:
        edit = SetChild(LATEST, left[-1].cap, only=catalog.latest)
    await edit_entry(store.directory(catalog.root), edit, catalog.path.with_name(LATEST), undo)
