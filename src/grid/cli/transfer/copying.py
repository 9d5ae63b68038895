"""One copy or restore: examines both sides, plans, and carries out the plan. [spec cli 2.6]"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, field

from grid.caps import DirectoryCap
from grid.cli.arguments.replacing import ReplacePolicy, Undo
from grid.cli.arguments.targets import DescriptorSink, open_target
from grid.cli.terminal.progress import TransferDisplay
from grid.cli.transfer.copy_plan import (
    CopyError,
    IntoDirectory,
    NoSuchSourceError,
    SourceFacts,
    WrongTypeError,
    merge_sources,
    plan_attachment,
)
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.endpoints import (
    Endpoint,
    LocalEndpoint,
    RemoteEndpoint,
    describe_remote_source,
    describe_remote_target,
    examine_local_source,
    examine_local_target,
    find_remote,
)
from grid.cli.transfer.local_tree import LeftOut, Scan, ScanRules, scan_directory
from grid.cli.transfer.rehearsal import (
    Rehearsal,
    rehearse_grid_file,
    rehearse_local_file,
    rehearse_to_grid,
    rehearse_to_local,
)
from grid.cli.transfer.remote_tree import scan_remote
from grid.cli.transfer.selection import prune
from grid.cli.transfer.snapshot import printable
from grid.cli.transfer.throttle import Throttle
from grid.cli.transfer.to_local import LocalWriter
from grid.cli.transfer.to_remote import RemoteWriter, size_of
from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin, RemoteOrigin
from grid.cli.transfer.upload import Uploader
from grid.directory.pack import Child
from grid.directory.store import OpenDirectory, Store
from grid.plural import counted
from grid.transfer.jobs import Jobs
from grid.transfer.selection import Selection
from grid.values import frozen

if TYPE_CHECKING:
    from grid.transfer.rates import Schedule


FILES_COPIED = "Success: files copied"
"""1.20's words for a copy into a directory."""


@frozen(kw_only=True)
class CopyOptions:
    """The options of a copy. jobs: files copied in parallel. packs: whether small files go into packs.

    schedule: the limit on the rate. dry_run: find out what would be done, but change nothing. undo: collects what is
    replaced on the grid.
    """

    recursive: bool
    caps_only: bool
    jobs: Jobs
    spool: Path
    packs: bool = False
    schedule: Schedule | None = None
    replace: ReplacePolicy = field(factory=ReplacePolicy)
    selection: Selection = field(factory=Selection)
    dry_run: bool = False
    undo: Undo = field(factory=Undo)


class Copier:
    """One copy. say: receives lines for verbose output."""

    def __init__(
        self,
        store: Store,
        database: LocalDatabase,
        display: TransferDisplay,
        options: CopyOptions,
        say: Callable[[str], None],
    ) -> None:
        self._store = store
        self._database = database
        self._display = display
        self._options = options
        self._say = say
        self.rehearsal: Rehearsal | None = None
        throttle = Throttle(store.runtime.clock, options.schedule)
        uploader = Uploader(
            store, database, display.tally, display.update, follow_links=True, packs=options.packs, throttle=throttle
        )
        self._remote = RemoteWriter(
            store,
            uploader,
            display,
            jobs=options.jobs,
            spool=options.spool,
            say=say,
            replace=options.replace,
            undo=options.undo,
            throttle=throttle,
        )
        self._local = LocalWriter(
            store,
            database,
            display,
            jobs=options.jobs,
            caps_only=options.caps_only,
            say=say,
            replace=options.replace,
            throttle=throttle,
        )

    @property
    def undo(self) -> Undo:
        """Undo record of what was replaced on the grid."""
        return self._remote.undo

    async def run(self, sources: Sequence[Endpoint], target: Endpoint) -> str:
        """Copy, and return a summary in 1.20's words; failures of single files inside a tree go to the tally."""
        facts: list[SourceFacts] = []
        origins: list[RemoteOrigin | None] = []
        for number, source in enumerate(sources):
            self._say(f"examining {number + 1} of {len(sources)}")
            origin = None if isinstance(source, LocalEndpoint) else await find_remote(self._store, source)
            origins.append(origin)
            facts.append(
                examine_local_source(source)
                if isinstance(source, LocalEndpoint)
                else describe_remote_source(source, origin)
            )
        sources, facts, origins = self._select(sources, facts, origins)
        there = None if isinstance(target, LocalEndpoint) else await find_remote(self._store, target)
        target_facts = (
            examine_local_target(target) if isinstance(target, LocalEndpoint) else describe_remote_target(target, there)
        )
        planned = plan_attachment(facts, target_facts, recursive=self._options.recursive)
        things = [
            await self._read_source(source, fact, origin)
            for source, fact, origin in zip(sources, facts, origins, strict=True)
        ]
        if not isinstance(planned, IntoDirectory):
            (thing,) = things
            assert isinstance(thing, Leaf)
            if self._options.dry_run:
                self.rehearsal = await self._rehearse_file(thing, target, there)
                return self.rehearsal.summary
            return await self._copy_file(thing, target, there)
        tree = merge_sources(things, planned.names)
        self._begin(tree)
        if self._options.dry_run:
            self.rehearsal = await self._rehearse(tree, target, there)
            return self.rehearsal.summary
        if isinstance(target, LocalEndpoint):
            await self._local.copy_into(target.path, tree)
        else:
            await self._remote.copy_into(await self._make_target(target, there), tree, target.below)
        return FILES_COPIED

    def _select(
        self, sources: Sequence[Endpoint], facts: list[SourceFacts], origins: list[RemoteOrigin | None]
    ) -> tuple[Sequence[Endpoint], list[SourceFacts], list[RemoteOrigin | None]]:
        """The sources without files excluded by patterns; NoSuchSourceError if none is left."""
        selection = self._options.selection
        chosen = [
            index
            for index, fact in enumerate(facts)
            if fact.kind != "file" or fact.name is None or selection.takes(fact.name)
        ]
        if not chosen:
            raise NoSuchSourceError("nothing you named matches the patterns", name=sources[0].shown)
        return [sources[i] for i in chosen], [facts[i] for i in chosen], [origins[i] for i in chosen]

    async def _rehearse(self, tree: Branch, target: Endpoint, there: RemoteOrigin | None) -> Rehearsal:
        if isinstance(target, LocalEndpoint):
            return await rehearse_to_local(self._local, target.path, tree)
        directory = None
        if there is not None:
            assert isinstance(there.cap, DirectoryCap)
            directory = self._store.directory(there.cap)
        return await rehearse_to_grid(self._remote, directory, tree, target.below)

    async def _rehearse_file(self, leaf: Leaf, target: Endpoint, there: RemoteOrigin | None) -> Rehearsal:
        if isinstance(target, LocalEndpoint):
            step = await rehearse_local_file(self._local, target.path, leaf)
        else:
            existing = None if there is None else Child(target=there.cap, metadata=there.metadata)
            step = await rehearse_grid_file(self._remote, target.below(()), leaf, existing)
        return Rehearsal([] if step is None else [step], unchanged=int(step is None))

    async def _read_source(self, source: Endpoint, facts: SourceFacts, origin: RemoteOrigin | None) -> Leaf | Branch:
        name, selection = facts.name or "", self._options.selection
        if isinstance(source, LocalEndpoint):
            path = os.path.abspath(source.path)
            if facts.kind == "file":
                return Leaf(name, LocalOrigin(path=path, facts=FileFacts.of(os.stat(path))))
            scan = await self._store.runtime.cpu.run(_scan_followed, path, name, selection)
            for left_out in scan.left_out:
                self._complain(left_out)
            return _pruned(scan.root, selection, source)
        assert origin is not None
        if facts.kind == "file":
            return Leaf(name, origin)
        found = await scan_remote(self._store, origin, name, selection)
        if found.unknown:
            raise CopyError(f"Cannot copy unknown nodes (ones with unknown capabilities): '{found.unknown[0]}'")
        for line in found.left_out:
            self._display.fail(line)
        return _pruned(found.root, selection, source)

    def _complain(self, left_out: LeftOut) -> None:
        detail = f": {left_out.detail}" if left_out.detail else ""
        self._display.fail(f"cannot copy {left_out.trouble.value} '{printable(left_out.path)}'{detail}")

    def _begin(self, tree: Branch) -> None:
        tally = self._display.tally
        self._say(f"attaching sources to targets, {_things(len(tree.leaves), len(tree.branches))}")
        files, directories = tree.count()
        tally.total_files = files
        tally.total_bytes = sum(size_of(leaf) for _, branch in tree.walk() for leaf in branch.leaves.values())
        self._say(f"starting copy, {_things(files, directories - 1)}")

    async def _make_target(self, target: RemoteEndpoint, there: RemoteOrigin | None) -> OpenDirectory:
        if there is not None:
            assert isinstance(there.cap, DirectoryCap)
            return self._store.directory(there.cap)
        assert isinstance(target.root, DirectoryCap)
        return await self._store.directory(target.root).make_directories(target.path)

    async def _copy_file(self, leaf: Leaf, target: Endpoint, there: RemoteOrigin | None) -> str:
        """Copy one file to a new name or over an existing file."""
        tally = self._display.tally
        tally.total_files, tally.total_bytes = 1, size_of(leaf)
        if isinstance(target, LocalEndpoint):
            await self._write_file(leaf, target.path if target.path != "-" else "./-")
        elif not target.path:
            assert there is not None
            if await self._remote.may_replace(target.below(()), leaf, Child(target=there.cap)):
                await self._remote.replace_contents(there.cap, leaf)
                tally.copied += 1
            else:
                tally.skipped += 1
        else:
            assert isinstance(target.root, DirectoryCap)
            root = self._store.directory(target.root)
            parent = await root.make_directories(target.path[:-1]) if len(target.path) > 1 else root
            above = evolve(target, path=target.path[:-1], shown=_above(target.shown), argument=_above(target.argument))
            await self._remote.copy_onto(parent, target.path[-1], leaf, above.below)
        tally.finish(size_of(leaf))
        self._display.update()
        if not tally.linked and not tally.copied and self._options.replace.is_given:
            return f"{target.shown} already exists; not replaced"
        return "Success: file linked" if tally.linked else "Success: file copied"

    async def _write_file(self, leaf: Leaf, path: str) -> None:
        """Write a new or existing local file."""
        if await self._local.may_replace(path, leaf):
            with open_target(path) as descriptor:
                await self._local.write(leaf, DescriptorSink(descriptor, self._store.runtime.cpu))
            self._display.tally.copied += 1
        else:
            self._display.tally.skipped += 1


def _things(files: int, directories: int) -> str:
    """The counts as text; where programs may parse it, in 1.20's words, such as `1 files`."""
    if not sys.stderr.isatty():
        return f"{files} files, {directories} directories"
    return f"{counted(files, 'file')}, {counted(directories, 'directory', 'directories')}"


def _above(shown: str) -> str:
    """A path without its last name."""
    shown = shown.rstrip("/")
    return shown[: max(shown.rfind("/"), shown.rfind(":")) + 1]


def _scan_followed(path: str, name: str, selection: Selection) -> Scan:
    return scan_directory(path, ScanRules(follow_links=True, selection=selection), name=name)


def _pruned(root: Branch, selection: Selection, source: Endpoint) -> Branch:
    """The tree without what is not included; NoSuchSourceError if nothing is."""
    if selection.include is not None and not prune(root, selection) and not root.branches:
        words = f"nothing in '{source.shown}' matches --include; paths in patterns begin there, as in /letters/1.txt"
        raise NoSuchSourceError(words, name=source.shown)
    return root


async def restore_tree(
    store: Store,
    database: LocalDatabase,
    display: TransferDisplay,
    source: RemoteEndpoint,
    target: str,
    *,
    jobs: int,
    replace: ReplacePolicy,
    selection: Selection,
    keep_owners: bool = True,
) -> None:
    """Copy the selected part of a directory of the grid to a local one; failures of single files go to the tally.

    NoSuchSourceError if the source does not exist, WrongTypeError if it is not a directory, GridError if it cannot be
    read, OSError if the target cannot be created.
    """
    found = await find_remote(store, source)
    if found is None:
        raise NoSuchSourceError(f"No such file or directory '{source.shown}'", name=source.shown)
    if not isinstance(found.cap, DirectoryCap):
        raise WrongTypeError(f"'{source.shown}' is a file; `grid get` reads it", name=source.shown)
    scan = await scan_remote(store, found, selection=selection)
    _pruned(scan.root, selection, source)
    for where in scan.unknown:
        display.fail(f"{where}: of an unknown kind")
    for line in scan.left_out:
        display.fail(line)
    tally = display.tally
    tally.total_files = scan.root.count()[0]
    tally.total_bytes = sum(size_of(leaf) for _, branch in scan.root.walk() for leaf in branch.leaves.values())
    writer = LocalWriter(
        store, database, display, jobs=jobs, keep_metadata=True, keep_owners=keep_owners, replace=replace
    )
    await writer.copy_into(target, scan.root)
