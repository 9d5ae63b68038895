"""Copies a tree into a directory of the grid: files first, and each directory once everything in it is stored.

Cost: one read of every directory that exists, and one publish of every directory that changes or is new. A copy that is
killed has linked the finished directories; the local database knows the stored files of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from grid.caps import DirectoryCap, KnownCap, LitCap, MdmfWriteCap, SdmfWriteCap
from grid.cli.arguments.remote import RemotePath
from grid.cli.arguments.replacing import ReplacePolicy, Undo, previous_child, time_of
from grid.cli.arguments.sources import FileSource, SpooledFile, SpoolSink
from grid.cli.terminal.failures import describe
from grid.cli.terminal.progress import TransferDisplay
from grid.cli.transfer.bounded import run_pieces
from grid.cli.transfer.copy_plan import CopyError
from grid.cli.transfer.names import normalize_names
from grid.cli.transfer.post_order import run_post_order
from grid.cli.transfer.throttle import SlowedSource, Throttle
from grid.cli.transfer.tree import Branch, Leaf, LocalOrigin, RemoteOrigin
from grid.cli.transfer.upload import Uploader
from grid.directory.edits import Edit, SetChild
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.directory.store import OpenDirectory, Store
from grid.errors import AuthorityError, GridError
from grid.transfer.jobs import Jobs
from grid.values import define, field

LOOKS_AT_ONCE = 8


@define
class _Target:
    """An existing directory and its entries."""

    directory: OpenDirectory
    children: Mapping[str, Child] = field(factory=dict)


PathOf = Callable[[Sequence[str]], RemotePath]
"""Returns the path of something below a directory, given the names from there."""


def _unnamed(names: Sequence[str]) -> RemotePath:
    return RemotePath(root=LitCap(data=b""), shown="/".join(names))


class RemoteWriter:
    """Copies to the grid; failures go to the display's tally and stop nothing else."""

    def __init__(
        self,
        store: Store,
        uploader: Uploader,
        display: TransferDisplay,
        *,
        jobs: Jobs,
        spool: Path,
        say: Callable[[str], None] = lambda line: None,
        replace: ReplacePolicy | None = None,
        undo: Undo | None = None,
        throttle: Throttle | None = None,
    ) -> None:
        """spool: a private directory for copies of mutable files.

        undo: collects what is replaced. throttle: limits the rate of contents.
        """
        self._throttle = throttle or Throttle(store.runtime.clock)
        self._store = store
        self._uploader = uploader
        self._display = display
        self._jobs = jobs
        self._spool = spool
        self._say = say
        self._replace = replace or ReplacePolicy()
        self._path_of: PathOf = _unnamed
        self.undo = undo or Undo()
        self._targets: dict[int, _Target] = {}
        self._made: dict[int, dict[str, KnownCap]] = {}

    async def copy_into(self, target: OpenDirectory, tree: Branch, path_of: PathOf = _unnamed) -> None:
        """Copy the tree into the directory; GridError if that cannot be read.

        path_of: names its entries in messages.
        """
        self._path_of = path_of
        await self.look(target, tree)
        await self._uploader.pack(self._new_files(tree))
        await run_post_order(tree, self._jobs, self._do_leaf, self._do_branch)

    async def look(self, target: OpenDirectory | None, tree: Branch) -> Mapping[int, Mapping[str, Child]]:
        """Read every directory that the tree adds to, and drop what cannot go there; failures go to the tally.

        Returns the entries of each existing branch, by its `id`. GridError if the target cannot be read.
        """
        for shown in normalize_names(tree):
            self._display.fail(f"{shown}: another file beside it has the same name on the grid")
        if target is not None:
            self._targets[id(tree)] = _Target(target, await target.list())
            await self._find_targets(tree)
        return {key: place.children for key, place in self._targets.items()}

    def known_cap(self, leaf: Leaf) -> KnownCap | None:
        """The capability that a copy of the file will have, if known without reading it."""
        if isinstance(leaf.origin, LocalOrigin):
            return self._uploader.known_cap(leaf.origin)
        return None if leaf.origin.cap.is_mutable else leaf.origin.cap

    async def copy_onto(self, parent: OpenDirectory, name: str, leaf: Leaf, path_of: PathOf = _unnamed) -> None:
        """Create one file, or replace the one of this name; raises the errors of storing it.

        path_of: names the directory's entries in messages.
        """
        name = normalize_name(name)
        children = await parent.list()
        path = path_of((name,))
        if not await self.may_replace(path, leaf, children.get(name)):
            self._display.tally.skipped += 1
            return
        cap = await self._store_leaf(leaf, children.get(name))
        if cap is not None:
            with self.undo.in_doubt(parent.cap, children, [(path, cap)]):
                replaced = await parent.edit([SetChild(name, cap, overwrite="only-files")])
            self.undo.note(parent.cap, path, previous_child(name, children, replaced), cap)

    async def may_replace(self, path: RemotePath, leaf: Leaf, existing: Child | None) -> bool:
        """Whether the leaf may replace what exists there."""
        if existing is None or not self._replace.is_given:
            return True
        old_time = time_of(existing.metadata)
        return await self._replace.permits(path.shown, new_time=changed_at(leaf), old_time=old_time)

    async def replace_contents(self, cap: KnownCap, leaf: Leaf) -> None:
        """Replace a mutable file's contents with the leaf's; AuthorityError if the capability does not permit it."""
        if not isinstance(cap, SdmfWriteCap | MdmfWriteCap):
            raise AuthorityError(
                "this capability can only read the file: use its write capability to replace the contents"
            )
        await self._overwrite(cap, leaf)

    async def _find_targets(self, tree: Branch) -> None:
        """Read every directory that the tree adds to; what cannot go there is dropped from the tree."""
        waiting = self._match(tree, self._targets[id(tree)])

        def next_piece() -> Coroutine[Any, Any, None] | None:
            return look(*waiting.pop()) if waiting else None

        async def look(above: Branch, branch: Branch, cap: DirectoryCap) -> None:
            target = _Target(self._store.directory(cap))
            try:
                target.children = await target.directory.list()
            except GridError as problem:
                self._drop(above, branch, describe(problem))
                return
            self._targets[id(branch)] = target
            waiting.extend(self._match(branch, target))

        await run_pieces(next_piece, LOOKS_AT_ONCE)

    def _new_files(self, tree: Branch) -> Iterator[Leaf]:
        """Yield files that certainly get new capabilities: no question about replacing is open, and no mutable file is
        overwritten.
        """
        for _, branch in tree.walk():
            target = self._targets.get(id(branch))
            for name, leaf in sorted(branch.leaves.items()):
                existing = None if target is None else target.children.get(name)
                if existing is None or (
                    not self._replace.is_given
                    and isinstance(existing.target, KnownCap)
                    and not existing.target.is_mutable
                ):
                    yield leaf

    def _match(self, branch: Branch, target: _Target) -> list[tuple[Branch, Branch, DirectoryCap]]:
        """Yield the existing directories below the branch, with the branch itself."""
        found = []
        for name, below in list(branch.branches.items()):
            child = target.children.get(name)
            if child is None:
                continue
            if isinstance(child.target, DirectoryCap):
                found.append((branch, below, child.target))
            else:
                self._drop(branch, below, "cannot copy directory into a file")
        for name, leaf in list(branch.leaves.items()):
            child = target.children.get(name)
            if child is not None and isinstance(child.target, DirectoryCap):
                del branch.leaves[name]
                self._fail(leaf, "the target has a directory of this name")
        return found

    def _drop(self, above: Branch, branch: Branch, why: str) -> None:
        del above.branches[branch.name]
        self._fail(branch, why)

    def _fail(self, thing: Leaf | Branch, why: str) -> None:
        shown = (thing.origin.shown if thing.origin is not None else "") or thing.name
        self._display.fail(why if why.startswith(shown) else f"{shown}: {why}")

    async def _do_leaf(self, path: tuple[str, ...], branch: Branch, leaf: Leaf) -> None:
        target = self._targets.get(id(branch))
        existing = None if target is None else target.children.get(leaf.name)
        try:
            if await self.may_replace(self._path_of((*path, leaf.name)), leaf, existing):
                cap = await self._store_leaf(leaf, existing)
            else:
                self._display.tally.skipped += 1
                cap = None
        except (GridError, OSError) as problem:
            self._fail(leaf, describe(problem))
        else:
            if cap is not None:
                self._made.setdefault(id(branch), {})[leaf.name] = cap
        self._display.tally.finish(size_of(leaf))
        self._display.update()

    async def _store_leaf(self, leaf: Leaf, existing: Child | None) -> KnownCap | None:
        """Store the file and return the capability to link; None if the existing file was overwritten instead."""
        tally = self._display.tally
        old = None if existing is None else existing.target
        if isinstance(old, KnownCap) and old.is_mutable and not isinstance(old, DirectoryCap):
            await self.replace_contents(old, leaf)
            tally.copied += 1
            return None
        if isinstance(leaf.origin, LocalOrigin):
            uploaded = await self._uploader.upload(leaf.origin.path)
            if uploaded.reused and uploaded.cap == old:
                tally.skipped += 1
                return None
            self._say(f"{'skipping' if uploaded.reused else 'uploading'} '{leaf.origin.shown}'..")
            tally.copied += not uploaded.reused
            tally.skipped += uploaded.reused
            return uploaded.cap
        if not leaf.origin.cap.is_mutable:
            if leaf.origin.cap == old:
                tally.skipped += 1
                return None
            tally.linked += 1
            return leaf.origin.cap
        cap = await self._copy_mutable(leaf.origin)
        tally.copied += 1
        return cap

    async def _copy_mutable(self, origin: RemoteOrigin) -> KnownCap:
        """Store the mutable file's current contents as a new immutable file."""
        with SpooledFile(self._spool) as file:
            await self._store.read(origin.cap, self._throttle.sink(SpoolSink(file, self._store.runtime.cpu)))
            return await self._store.put_immutable(FileSource(file, self._store.runtime.cpu))

    async def _overwrite(self, cap: SdmfWriteCap | MdmfWriteCap, leaf: Leaf) -> None:
        target = self._store.open_mutable(cap)
        cpu = self._store.runtime.cpu
        if isinstance(leaf.origin, LocalOrigin):
            with open(leaf.origin.path, "rb", buffering=0) as file:
                await target.overwrite(SlowedSource(FileSource(file, cpu), self._throttle))
            return
        with SpooledFile(self._spool) as spooled:
            await self._store.read(leaf.origin.cap, self._throttle.sink(SpoolSink(spooled, cpu)))
            await target.overwrite(FileSource(spooled, cpu))

    async def _do_branch(self, path: tuple[str, ...], branch: Branch, above: Branch | None) -> None:
        made = self._made.pop(id(branch), {})
        target = self._targets.get(id(branch))
        try:
            if target is not None:
                edits: list[Edit] = [SetChild(name, cap, overwrite="only-files") for name, cap in sorted(made.items())]
                if edits:
                    directory, paths = target.directory, [(self._path_of((*path, n)), cap) for n, cap in made.items()]
                    with self.undo.in_doubt(directory.cap, target.children, paths):
                        replaced = await directory.edit(edits)
                    self.undo.note_all(
                        target.directory.cap,
                        (
                            (self._path_of((*path, name)), previous_child(name, target.children, replaced), cap)
                            for name, cap in sorted(made.items())
                        ),
                    )
                return
            if above is None:
                raise CopyError("the target directory does not exist")
            cap = await self._store.create_directory(self._children(made))
        except GridError as problem:
            self._fail(branch, describe(problem))
            return
        self._display.tally.directories += 1
        self._made.setdefault(id(above), {})[branch.name] = cap

    def _children(self, made: Mapping[str, KnownCap]) -> dict[str, Child]:
        """New links, with the times that a directory records for an addition."""
        now = self._store.runtime.clock.unix_time()
        times = {"tahoe": {"linkcrtime": now, "linkmotime": now}}
        return {name: Child(target=cap, metadata=times) for name, cap in made.items()}


def changed_at(leaf: Leaf) -> float | None:
    """When a file was last changed, or linked, in Unix time; None if unknown."""
    if isinstance(leaf.origin, LocalOrigin):
        return leaf.origin.facts.mtime_ns / 1e9
    return time_of(leaf.origin.metadata)


def size_of(leaf: Leaf) -> int:
    """Bytes of a file; 0 if only reading it would tell."""
    if isinstance(leaf.origin, LocalOrigin):
        return leaf.origin.facts.size
    return getattr(leaf.origin.cap, "size", 0)
