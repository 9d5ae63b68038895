"""The tree below an account's root: finds, links, removes and moves entries.

Changes of one directory that arrive during its publish go out together in the next one, even from different sessions of
the door. Each is checked against the contents that it changes.

Cost: finding: a read of each directory on the path. A change: the same, and a share of a publish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from grid.caps import DirectoryCap, KnownCap, UnknownChild
from grid.directory.edits import NONCE, Overwrite, RemoveChild, SetChild
from grid.directory.gathering import Children, Directories
from grid.directory.metadata import Metadata
from grid.directory.moving import follow_trail
from grid.directory.node import Look
from grid.directory.pack import Child
from grid.directory.removals import Removals, put_back
from grid.errors import NoSuchChildError
from grid.gateway.history.recorded_store import RecordedStore
from grid.sftp.faults import FAILURE, NO_SUCH_FILE, PERMISSION_DENIED, SftpFault
from grid.sftp.paths import Path
from grid.values import define, field

Edits = Sequence[SetChild | RemoveChild]

Describe = Callable[[Metadata], dict[str, object]]
"""Computes a link's metadata from its current metadata."""


@define(eq=False)
class Tree:
    """The tree of one account."""

    root: DirectoryCap = field(repr=False)
    store: RecordedStore
    directories: Directories
    removals: Removals

    async def find(self, path: Path) -> Child:
        """The object at the path. SftpFault; the errors of a listing."""
        if not path:
            return Child(target=self.root)
        children = await self.directories.read(await self.directory(path[:-1]))
        return _require(children.get(path[-1]))

    async def look(self, path: Path) -> tuple[DirectoryCap, Child | None]:
        """The directory that holds, or would hold, the last name, and the child there, or None."""
        parent = await self.directory(path[:-1])
        return parent, (await self.directories.read(parent)).get(path[-1])

    async def list(self, path: Path) -> Children:
        """The children of a directory."""
        return await self.directories.read(await self.directory(path))

    async def directory(self, path: Path) -> DirectoryCap:
        """The directory at the end of a path; SftpFault if it does not exist."""
        found = self.root
        for name in path:
            target = _require((await self.directories.read(found)).get(name)).target
            if not isinstance(target, DirectoryCap):
                raise SftpFault(NO_SUCH_FILE, f"{name!r} is not a directory")
            found = target
        return found

    async def link_file(self, path: Path, target: KnownCap, describe: Describe, nonce: str | None = None) -> None:
        """Link the path to a file, durably, replacing an existing file.

        nonce: the file must be new: SftpFault if there is a link that was not made with this nonce.
        """

        def decide(look: Look, retrying: bool) -> Edits:
            here = look(path[-1])
            if here is not None and isinstance(here.target, DirectoryCap):
                raise SftpFault(FAILURE, "a directory of that name was created meanwhile; use another name")
            before: Metadata = {} if here is None else here.metadata
            if nonce is None:
                return (SetChild(path[-1], target, describe(before)),)
            if here is not None and before.get(NONCE) != nonce:
                raise SftpFault(FAILURE, f"{path[-1]!r} was created meanwhile")
            return (SetChild(path[-1], target, {**describe(before), NONCE: nonce}),)

        async with self._adding(path) as parent:
            await self.directories.change(parent, decide)

    async def describe(self, path: Path, describe: Describe) -> None:
        """Change the metadata of a link."""
        parent = await self._changeable(path)

        def decide(look: Look, retrying: bool) -> Edits:
            here = _require(look(path[-1]))
            after = describe(here.metadata)
            if after == {name: value for name, value in here.metadata.items() if name != "tahoe"}:
                return ()
            return (SetChild(path[-1], here.target, after),)

        await self.directories.change(parent, decide)

    async def make_directory(self, path: Path, describe: Describe) -> None:
        """Create an empty directory. SftpFault if the name is taken."""
        async with self._adding(path) as parent:
            if path[-1] in await self.directories.read(parent):
                raise _exists(path)
            made = await self.store.create_directory()

            def decide(look: Look, retrying: bool) -> Edits:
                here = look(path[-1])
                if here is not None and here.target != made:
                    raise _exists(path)
                return (SetChild(path[-1], made, describe({})),)

            await self.directories.change(parent, decide)

    async def remove_file(self, path: Path) -> None:
        """Unlink anything that is not a directory."""
        parent = await self._changeable(path)

        def decide(look: Look, retrying: bool) -> Edits:
            here = look(path[-1])
            if here is None and retrying:
                return ()
            if isinstance(_require(here).target, DirectoryCap):
                raise SftpFault(FAILURE, f"{path[-1]!r} is a directory; remove it with rmdir")
            return (RemoveChild(path[-1], must_exist=False),)

        await self.directories.change(parent, decide)

    async def remove_directory(self, path: Path) -> None:
        """Unlink an empty directory."""
        parent = await self._changeable(path)
        found = await self.find(path)
        target = _directory(path, found)
        was_there = False

        def decide(look: Look, retrying: bool) -> Edits:
            nonlocal was_there
            here = look(path[-1])
            was_there |= here is not None and here.target == target
            return (RemoveChild(path[-1], must_exist=False, only=target),)

        async with self.removals.removing(target):
            await self._require_empty(path, found)
            await self.directories.change(parent, decide)
            if was_there:
                await self._put_back(parent, path[-1], found)

    async def rename(self, old: Path, new: Path, *, overwrite: bool) -> None:
        """Move a link, in one publish if both paths are in the same directory.

        overwrite: replace a file, or an empty directory by a directory, as in POSIX.
        """
        if not old or not new:
            raise SftpFault(FAILURE, "the root cannot be moved or replaced")
        source, child = await self.look(old)
        child = _require(child)
        if old == new:
            return
        _require_writable(source)
        async with self._adding(new) as target:
            there = (await self.directories.read(target)).get(new[-1])
            if there is not None:
                await self._require_replaceable(new, child, there, overwrite)
            if there is None or not isinstance(there.target, DirectoryCap):
                await self._rename_onto(source, child, target, there, old, new, overwrite)
                return
            # Of two renames that wait for each other here, one directory would be in the other, and so not empty.
            async with self.removals.removing(there.target):
                await self._require_empty(new, there)
                await self._rename_onto(source, child, target, there, old, new, overwrite)

    async def _rename_onto(
        self, source: DirectoryCap, child: Child, target: DirectoryCap, there: Child | None, old: Path, new: Path,
        overwrite: bool,
    ) -> None:  # fmt: skip
        """Move the child. there: what is at the new path now, and may be replaced."""
        replaced: Child | None
        if source.storage_index == target.storage_index:
            replaced = await self._rename_beside(source, old[-1], new[-1], there, overwrite)
        else:
            trails = [await follow_trail(self.store, self.root, path[:-1]) for path in (old, new)]
            is_over_any = there is not None and isinstance(child.target, DirectoryCap)
            replace: Overwrite = True if is_over_any else "only-files"
            try:
                replaced = await self.store.move(
                    trails[0], old[-1], trails[1], new[-1], overwrite=replace if overwrite else False
                )
            except NoSuchChildError:
                raise SftpFault(NO_SUCH_FILE, "no such file or directory") from None
        if replaced is not None and isinstance(replaced.target, DirectoryCap):
            await self._put_back(target, new[-1], replaced)

    async def _rename_beside(
        self, parent: DirectoryCap, name: str, new_name: str, there: Child | None, overwrite: bool
    ) -> Child | None:
        """Rename within a directory; return what was replaced."""
        tried: list[KnownCap | UnknownChild] = []
        found: Child | None = None

        def decide(look: Look, retrying: bool) -> Edits:
            nonlocal found
            here, replaced = look(name), look(new_name)
            if here is None and retrying and replaced is not None and replaced.target in tried:
                return ()
            moved = _require(here)
            tried.append(moved.target)
            is_new = replaced is not None and (there is None or replaced.target != there.target)
            if replaced is not None and is_new and (not overwrite or isinstance(replaced.target, DirectoryCap)):
                raise SftpFault(FAILURE, f"{new_name!r} was created meanwhile")
            found = replaced
            return (SetChild(new_name, moved.target, moved.metadata), RemoveChild(name, must_exist=False))

        await self.directories.change(parent, decide)
        return found

    async def _require_replaceable(self, path: Path, child: Child, there: Child, overwrite: bool) -> None:
        if not overwrite:
            raise _exists(path)
        is_directory = isinstance(child.target, DirectoryCap)
        if isinstance(there.target, DirectoryCap) != is_directory:
            what = "a directory" if isinstance(there.target, DirectoryCap) else "not a directory"
            raise SftpFault(FAILURE, f"{path[-1]!r} is {what}")
        if is_directory:
            await self._require_empty(path, there)

    async def _require_empty(self, path: Path, found: Child) -> None:
        if await self.directories.read(_directory(path, found)):
            raise SftpFault(FAILURE, f"{path[-1]!r} is not empty")

    async def _put_back(self, parent: DirectoryCap, name: str, removed: Child) -> None:
        """SftpFault if something was added to a directory that is not linked anymore; it is linked again."""
        assert isinstance(removed.target, DirectoryCap)
        opened = self.store.directory(parent), self.store.directory(removed.target)
        kept = await put_back(opened[0], name, removed, opened[1])
        if kept is not None:
            raise SftpFault(FAILURE, f"something was stored in {name!r} meanwhile: the directory is now {kept!r}")

    def _adding(self, path: Path) -> AbstractAsyncContextManager[DirectoryCap]:
        """The directory that holds the last name, which is not removed meanwhile; SftpFault unless it can be changed."""
        return self.removals.adding(lambda: self._changeable(path))

    async def _changeable(self, path: Path) -> DirectoryCap:
        """The directory that holds the last name; SftpFault unless it can be changed."""
        if not path:
            raise SftpFault(FAILURE, "the root cannot be changed itself")
        parent = await self.directory(path[:-1])
        _require_writable(parent)
        return parent


def _require(child: Child | None) -> Child:
    if child is None:
        raise SftpFault(NO_SUCH_FILE, "no such file or directory")
    return child


def _directory(path: Path, child: Child) -> DirectoryCap:
    if not isinstance(child.target, DirectoryCap):
        raise SftpFault(FAILURE, f"{path[-1]!r} is not a directory")
    return child.target


def _require_writable(directory: DirectoryCap) -> None:
    if directory.authority != "write":
        raise SftpFault(PERMISSION_DENIED, "this account can only read that directory")


def _exists(path: Path) -> SftpFault:
    return SftpFault(FAILURE, f"{path[-1]!r} exists already")
