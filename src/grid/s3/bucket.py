"""A bucket: finds, links and removes objects in a tree of directories by their keys.

Owns where an object is stored if a directory has its name, and that concurrent changes are never lost: each change is
decided on the contents that it replaces. Empty directories stay, because another gateway may be storing something in
one.

An object that is linked can be found: the key's directories may be moved or removed while it is stored, by commands, pages or
another gateway. So what a slow put knows of them is old, and it looks again.

Cost: finding: a read of each directory on the path, all at the same time as far as the path is remembered. Linking: the same
except for the last, which is published. A link that takes longer than QUICK_S: those reads again, which links share.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.gathering import Children, Directories
from grid.directory.metadata import Metadata
from grid.directory.node import Look
from grid.directory.pack import Child
from grid.ports import Clock
from grid.s3.faults import S3Fault
from grid.s3.lifetimes import BucketLink
from grid.s3.names import MARK, KeyPath, path_of
from grid.s3.object_info import StoredObject, object_of
from grid.s3.removal import require_unmarked, storing
from grid.values import define, field, frozen

R = TypeVar("R")

QUICK_S = 2.0
"""A link that takes no longer than this from the reads of its directories on does not look whether they are still there."""

MOST_ATTEMPTS = 5
"""Links of one object before it is refused because its directories do not stay where they are."""


@frozen
class Above:
    """The directories above a key's own. levels: their children, from the top on. since: when they were asked for, by the clock."""

    levels: Sequence[Children]
    since: float


@define(eq=False)
class _Outcome:
    """What the last decision of a change found."""

    before: StoredObject | None = None


@define(eq=False)
class Bucket:
    """One bucket, with the permissions of its directory's capability.

    bucket_link: of a bucket that can be deleted over S3; None for one that belongs to the access key itself.
    """

    name: str
    root: DirectoryCap = field(repr=False)
    directories: Directories
    clock: Clock
    bucket_link: BucketLink | None = None

    async def find(self, key: str) -> StoredObject | None:
        """The object of this key, or None. Raises the errors of a listing."""
        path = path_of(key)
        return find_at(await self.directories.read_path(self.root, path.directories), path)

    async def link(
        self,
        key: str,
        target: KnownCap,
        describe: Callable[[StoredObject | None], dict[str, object]],
        above: Above | None = None,
    ) -> StoredObject | None:
        """Link the key to a file, durably, where it is found, and return the object that was there.

        describe: computes the link's metadata from the current object; it may raise to refuse the change. above: if the caller
        has read the directories above the key's own. NoSuchBucket if the bucket was deleted meanwhile;
        ConditionalRequestConflict if its directories do not stay.
        """
        path, present = path_of(key), [] if above is None else [above]

        async def link() -> StoredObject | None:
            return await self._link_reachably(path, target, describe, present.pop() if present else None)

        return await self._storing(link)

    async def _storing(self, work: Callable[[], Awaitable[R]]) -> R:
        """Do the work, which stores something in the bucket; NoSuchBucket if the bucket was deleted meanwhile."""
        link = self.bucket_link
        if link is None:
            return await work()
        async with link.kept():
            return await storing(link, work)

    async def _link_reachably(
        self,
        path: KeyPath,
        target: KnownCap,
        describe: Callable[[StoredObject | None], dict[str, object]],
        above: Above | None,
    ) -> StoredObject | None:
        """Link the file; again if that took long, and the path leads elsewhere now."""
        for _ in range(MOST_ATTEMPTS):
            since = self.clock.now() if above is None else above.since
            parent = await self._make(path.directories, None if above is None else above.levels)
            before = await self._link(parent, path, target, describe)
            if self.clock.now() - since <= QUICK_S or await self._leads_to(path.directories, parent):
                return before
            above = None
        raise S3Fault("ConditionalRequestConflict")

    async def _leads_to(self, names: Sequence[str], parent: DirectoryCap) -> bool:
        """Whether a path leads to this directory. NoSuchBucket if the bucket is elsewhere."""
        link = self.bucket_link
        top, names = (self.root, names) if link is None else (link.home, (link.name, *names))
        if not names:
            return True
        levels = await self.directories.read_path(top, names[:-1])
        if link is not None and _directory_at(levels[:1], names[:1]) != self.root:
            raise S3Fault("NoSuchBucket")
        return _directory_at(levels, names) == parent

    async def _link(
        self,
        parent: DirectoryCap,
        path: KeyPath,
        target: KnownCap,
        describe: Callable[[StoredObject | None], dict[str, object]],
    ) -> StoredObject | None:
        outcome = _Outcome()

        def decide(look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
            self._require_unmarked(parent, look)
            outcome.before = find_object(look, path)
            metadata = describe(outcome.before)
            if _is_directory(look(path.name)):
                return (SetChild(path.beside, target, metadata),)
            moved = (RemoveChild(path.beside, must_exist=False),) if look(path.beside) else ()
            return (SetChild(path.name, target, metadata), *moved)

        await self.directories.change(parent, decide)
        return outcome.before

    async def change(self, key: str, describe: Callable[[StoredObject], dict[str, object]]) -> None:
        """Change an object's metadata. NoSuchKey."""
        path = path_of(key)
        parent = await self._walk(path.directories)
        if parent is None:
            raise S3Fault("NoSuchKey")
        self.require_writable()

        def decide(look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
            found = find_object(look, path)
            if found is None:
                raise S3Fault("NoSuchKey")
            name = path.beside if _is_directory(look(path.name)) or look(path.name) is None else path.name
            return (SetChild(name, found.target, describe(found)),)

        await self.directories.change(parent, decide)

    async def remove(self, key: str, permit: Callable[[StoredObject | None], None] = lambda found: None) -> None:
        """Remove the object of this key, if any. permit: may raise to refuse the change; it must permit None.

        It judges each attempt. One after which the object is gone may have been the cause itself.
        """
        self.require_writable()
        path = path_of(key)
        parent = await self._walk(path.directories)
        if parent is None:
            permit(None)
            return

        def decide(look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
            permit(find_object(look, path))
            here = look(path.name)
            name = path.beside if here is None or _is_directory(here) else path.name
            return (RemoveChild(name, must_exist=False),) if look(name) else ()

        await self.directories.change(parent, decide)

    async def setting(self, name: str) -> Metadata:
        """The metadata of a link of the bucket's own, such as `TAGS`; empty if there is none."""
        child = (await self.directories.read(self.root)).get(name)
        return (child.metadata or {}) if child is not None else {}

    async def set(self, name: str, metadata: Metadata) -> None:
        """Replace the metadata of a link of the bucket's own, durably; empty metadata removes it. NoSuchBucket."""
        self.require_writable()

        def decide(look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
            self._require_unmarked(self.root, look)
            if metadata:
                return (SetChild(name, LitCap(data=b""), metadata),)
            return (RemoveChild(name, must_exist=False),) if look(name) else ()

        await self._storing(lambda: self.directories.change(self.root, decide))

    def require_writable(self) -> None:
        """Raise AccessDenied unless the access key permits changes."""
        if self.root.authority != "write":
            raise S3Fault("AccessDenied", "This access key may only read that bucket.")

    def _require_unmarked(self, directory: DirectoryCap, look: Look) -> None:
        """Raise MarkedError if a removal of the bucket has marked the directory. Nobody can remove an access key's own buckets."""
        if self.bucket_link is not None:
            require_unmarked(directory, look(MARK))

    async def _walk(self, names: Sequence[str]) -> DirectoryCap | None:
        """The directory at the end of a path, or None."""
        if not names:
            return self.root
        levels = await self.directories.read_path(self.root, names[:-1])
        return _directory_at(levels, names)

    async def _make(self, names: Sequence[str], levels: Sequence[Children] | None) -> DirectoryCap:
        """The same, creating missing directories. A file in the way moves beside the directory.

        levels: the children of the directories above, if they are known.
        """
        self.require_writable()
        if levels is None:
            levels = await self.directories.read_path(self.root, names[:-1]) if names else []
        found = self.root
        for depth, name in enumerate(names):
            children = levels[depth] if depth < len(levels) else await self.directories.read(found)
            child = children.get(name)
            if child is not None and isinstance(child.target, DirectoryCap):
                found = child.target
            else:
                above, found = found, await self.directories.make(found, name)
                if self.bucket_link is not None:
                    # A removal that has read the directory above already does not know of this one.
                    self._require_unmarked(above, (await self.directories.read(above)).get)
            if found.authority != "write":
                raise S3Fault("AccessDenied", "A directory on the way to that key cannot be changed.")
        return found


def find_at(levels: Sequence[Children], path: KeyPath) -> StoredObject | None:
    """The object at a path, by the children of the directories on it, as `Directories.read_path` returns them."""
    return find_object(levels[-1].get, path) if len(levels) == len(path.directories) + 1 else None


def find_object(look: Look, path: KeyPath) -> StoredObject | None:
    """Look up an object in its directory: under its own name, or beside the directory of that name."""
    here = look(path.name)
    return object_of(look(path.beside) if here is None or _is_directory(here) else here)


def _directory_at(levels: Sequence[Children], names: Sequence[str]) -> DirectoryCap | None:
    """The directory at the end of a path, by the children of those above it."""
    child = levels[-1].get(names[-1]) if len(levels) == len(names) else None
    return child.target if child is not None and isinstance(child.target, DirectoryCap) else None


def _is_directory(child: Child | None) -> bool:
    return child is not None and isinstance(child.target, DirectoryCap)
