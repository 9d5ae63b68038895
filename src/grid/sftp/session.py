"""One session: carries out a client's requests on its account's tree. Knows nothing of packets.

Every method may raise SftpFault or another GridError, whose status and message are sent to the client.
"""

from __future__ import annotations

from collections import deque
from contextlib import AsyncExitStack

from twisted.internet.defer import Deferred, gatherResults

from grid.caps import DirectoryCap, ImmutableFileCap, KnownCap, UnknownChild
from grid.directory.edits import NONCE
from grid.directory.metadata import Metadata
from grid.directory.pack import Child
from grid.errors import GridError
from grid.gateway.shared.store_turns import Semaphore
from grid.sftp.accounts import Account
from grid.sftp.attributes import Facts, Wire, changed_metadata, facts_of
from grid.sftp.door import FEW_LISTED, MAX_HANDLES, MAX_LISTINGS, Door, Usage
from grid.sftp.drafts import Draft
from grid.sftp.faults import BAD_MESSAGE, FAILURE, NO_SUCH_FILE, PERMISSION_DENIED, UNSUPPORTED, SftpFault
from grid.sftp.handles import APPEND, CREATE, EXCLUSIVE, READ, TRUNCATE, WRITE, DraftHandle, OpenFile, ReadHandle
from grid.sftp.paths import Path, can_be_named, parse_path
from grid.sftp.tree import Tree
from grid.values import define, field

MAX_READ = 2**18 - 2**10
"""Bytes that one request may read or write; OpenSSH asks for no more."""

LISTED_AT_ONCE = 100
SIZES_AT_ONCE = 8


@define(eq=False)
class Session:
    """The session of one client."""

    door: Door
    account: Account
    usage: Usage = field(init=False)
    tree: Tree = field(init=False)
    drafts: dict[Path, Draft] = field(init=False, factory=dict)
    open_count: int = field(init=False, default=0)
    listing_count: int = field(init=False, default=0)
    listed: int = field(init=False, default=0)
    is_lost: bool = field(init=False, default=False)
    _handle_count: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.usage = self.door.load.of(self.account.name)
        self.tree = Tree(self.account.root, self.door.services.store, self.door.directories, self.door.removals)

    async def open(self, raw: bytes, flags: int, wire: Wire) -> OpenFile:
        """Open a file. flags: READ and so on."""
        path = parse_path(raw)
        if self.open_count >= MAX_HANDLES:
            raise SftpFault(FAILURE, f"a session has at most {MAX_HANDLES} open files; close some")
        if self.open_count and not self.usage.may_open:
            raise SftpFault(
                FAILURE, "too many files are open in all sessions, or in those of this account; try again later"
            )
        if not flags & (READ | WRITE | APPEND):
            raise SftpFault(BAD_MESSAGE, "open a file for reading, writing, or both")
        self._count_open(1)
        try:
            draft = self.drafts.get(path)
            if draft is not None:
                opened: OpenFile = await self._open_draft(draft, flags)
            elif flags & (WRITE | APPEND) or (flags & CREATE and await self._is_free(path, flags)):
                opened = await self._open_to_write(path, flags, wire)
            else:
                opened = await self._open_to_read(path)
        except BaseException:
            self._count_open(-1)
            raise
        if self.is_lost:
            opened.abandon()
        return opened

    async def list(self, raw: bytes) -> Listing:
        """Open a directory for listing."""
        if self.listing_count >= MAX_LISTINGS:
            raise SftpFault(FAILURE, f"a session lists at most {MAX_LISTINGS} directories at once")
        path = parse_path(raw)
        self.listing_count += 1  # Before anything is waited for: other requests come meanwhile.
        try:
            children = await self.tree.list(path)
            if self.listed + len(children) > FEW_LISTED and not self.usage.may_list(len(children)):
                raise SftpFault(FAILURE, "too many large directories are being listed; try again later")
        except BaseException:
            self.listing_count -= 1
            raise
        self.count_listed(len(children))
        return Listing(self, path, deque(children.items()))

    async def facts(self, raw: bytes) -> Facts:
        """The attributes of a path."""
        path = parse_path(raw)
        draft = self.drafts.get(path)
        if draft is not None:
            return await draft.settled_facts()
        return await self.facts_of(await self.tree.find(path))

    async def facts_of(self, child: Child) -> Facts:
        """The attributes of a link."""
        target = child.target
        if isinstance(target, UnknownChild):
            return Facts(is_directory=False, size=0, mode=0, mtime=0, atime=0)
        size = None if isinstance(target, DirectoryCap) else await self._size(target)
        return facts_of(target, child.metadata, size)

    async def set_attributes(self, raw: bytes, wire: Wire) -> None:
        """Set times, permissions or size of a path."""
        path = parse_path(raw)
        if not wire.keys() & {"size", "permissions", "mtime"}:
            raise SftpFault(UNSUPPORTED, "owners are not stored: capabilities determine permissions")
        draft = self.drafts.get(path)
        if draft is not None and draft.handles > draft.closing:
            await draft.set_attributes(wire)
            return
        if draft is not None:
            await draft.wait()  # Its last close would not store what is set now.
        if "size" in wire:
            opened = await self.open(raw, WRITE, {})
            try:
                await opened.set_attributes(wire)
            except BaseException:
                opened.abandon()
                raise
            await opened.close()
        else:
            await self.tree.describe(path, lambda before: changed_metadata(before, wire))

    async def remove(self, raw: bytes) -> None:
        """Unlink a file. Handles that have it open keep working, but it is not stored again."""
        path = parse_path(raw)
        draft = self.drafts.pop(path, None)
        if draft is None:
            await self.tree.remove_file(path)
            return
        try:
            await draft.remove(self.tree.remove_file)
        except BaseException:
            if draft.handles:
                self.drafts.setdefault(path, draft)  # It still exists, so open handles must store it.
            raise

    async def rename(self, old_raw: bytes, new_raw: bytes, *, overwrite: bool) -> None:
        """Move a file or directory. overwrite: as in POSIX."""
        old, new = parse_path(old_raw), parse_path(new_raw)
        if old == new[: len(old)] and old != new:
            raise SftpFault(FAILURE, "a directory cannot be moved into itself")
        if old != new:
            await self._require_replaceable(old, new, overwrite)
        async with AsyncExitStack() as turns:
            # A file that is being stored meanwhile would be linked where its directory was, or over what has replaced it.
            for path, draft in sorted(self.drafts.items()):
                if path[: len(old)] == old or path == new:
                    await turns.enter_async_context(draft.held(is_stored=path == old))
            await self.tree.rename(old, new, overwrite=overwrite)
            self._follow(old, new)

    async def _require_replaceable(self, old: Path, new: Path, overwrite: bool) -> None:
        """SftpFault if a file that is open at or below the new path must not be replaced: the grid may not have it yet."""
        if any(path[: len(new)] == new and path != new for path in self.drafts):
            raise SftpFault(FAILURE, "a file in the directory that would be replaced is open")
        if new not in self.drafts:
            return
        if not overwrite:
            raise SftpFault(FAILURE, f"{new[-1]!r} exists already")
        if old not in self.drafts and isinstance((await self.tree.find(old)).target, DirectoryCap):
            raise SftpFault(FAILURE, f"{new[-1]!r} is not a directory")

    def _follow(self, old: Path, new: Path) -> None:
        """Redirect drafts at or below the old path to the new path. A draft that was open there is never stored again."""
        if old == new:
            return
        replaced = self.drafts.pop(new, None)
        if replaced is not None:
            replaced.path = None
        for path in [path for path in self.drafts if path[: len(old)] == old]:
            draft = self.drafts.pop(path)
            draft.path = (*new, *path[len(old) :])
            self.drafts[draft.path] = draft

    async def make_directory(self, raw: bytes, wire: Wire) -> None:
        """Create a directory."""
        await self.tree.make_directory(parse_path(raw), lambda before: changed_metadata(before, wire))

    async def remove_directory(self, raw: bytes) -> None:
        """Remove an empty directory."""
        path = parse_path(raw)
        if any(draft[: len(path)] == path for draft in self.drafts):
            raise SftpFault(FAILURE, "a file in that directory is open")
        await self.tree.remove_directory(path)

    def new_handle(self) -> bytes:
        """A handle name that is unique in the session."""
        self._handle_count += 1
        return b"%d" % self._handle_count

    def closed(self) -> None:
        """Count down the open files."""
        self._count_open(-1)

    def _count_open(self, count: int) -> None:
        self.open_count += count
        self.usage.count_handle(count)

    def count_listed(self, count: int) -> None:
        """Count entries of directories that are being listed; a negative number counts down."""
        self.listed += count
        self.usage.count_listed(count)

    async def _size(self, target: KnownCap) -> int:
        if isinstance(target, ImmutableFileCap):
            return target.size
        return await self.door.services.store.size(target)

    async def _is_free(self, path: Path, flags: int) -> bool:
        """Whether a file of this path would be a new one; SftpFault if it must be and is not."""
        if not path or (await self.tree.look(path))[1] is None:
            return bool(path)
        if flags & EXCLUSIVE:
            raise SftpFault(FAILURE, f"{path[-1]!r} exists already")
        return False

    async def _open_to_read(self, path: Path) -> OpenFile:
        child = await self.tree.find(path)
        target = _file(child, path)
        self.door.services.require_allowed(target)
        return ReadHandle(door=self.door, child=child, target=target, size=await self._size(target), closed=self.closed)

    async def _open_to_write(self, path: Path, flags: int, wire: Wire) -> OpenFile:
        if not path:
            raise SftpFault(FAILURE, "the root is a directory")
        parent, child = await self.tree.look(path)
        if child is None and not flags & CREATE:
            raise SftpFault(NO_SUCH_FILE, "no such file or directory")
        is_exclusive = bool(flags & EXCLUSIVE and flags & CREATE)
        if child is not None and is_exclusive:
            raise SftpFault(FAILURE, f"{path[-1]!r} exists already")
        target = None if child is None else _file(child, path)
        if target is not None and child is not None:
            self.door.services.require_allowed(target)
            if child.metadata.get("no-write") is True or (target.is_mutable and target.authority != "write"):
                raise SftpFault(PERMISSION_DENIED, "that file can only be read")
        if (target is None or not target.is_mutable) and parent.authority != "write":
            raise SftpFault(PERMISSION_DENIED, "this account can only read that directory")
        size = 0 if target is None else await self._size(target)
        known = self.drafts.get(path)  # Another request may have been first.
        if known is not None:
            return await self._open_draft(known, flags)
        entropy = self.door.services.store.runtime.entropy
        new: Metadata = {NONCE: entropy.random_bytes(8).hex()} if is_exclusive else {}
        draft = Draft(
            door=self.door,
            tree=self.tree,
            path=path,
            target=target,
            metadata=new if child is None else child.metadata,
            old_size=size,
            is_changed=target is None,
        )
        self.drafts[path] = draft
        kept = {"permissions": wire["permissions"]} if child is None and "permissions" in wire else {}
        draft.wire.update(kept)
        return await self._open_draft(draft, flags, is_new=target is None)

    async def _open_draft(self, draft: Draft, flags: int, *, is_new: bool = False) -> OpenFile:
        if not is_new:
            if flags & EXCLUSIVE and flags & CREATE:
                raise SftpFault(FAILURE, "that file exists already")
            flags &= ~CREATE
        draft.handles += 1
        handle = DraftHandle(draft=draft, flags=flags, closed=self.closed, drop=self.drop)
        if flags & TRUNCATE and flags & (WRITE | APPEND):
            try:
                await draft.set_attributes({"size": 0})
            except BaseException:
                handle.forget()
                raise
        return handle

    def drop(self, draft: Draft) -> None:
        """Drop one handle of a draft; the last one discards it."""
        draft.handles -= 1
        if draft.handles == 0:
            if draft.path is not None and self.drafts.get(draft.path) is draft:
                del self.drafts[draft.path]
            draft.discard()


@define(eq=False)
class Listing:
    """A directory being listed. entries: those that are left."""

    _session: Session
    _path: Path
    _entries: deque[tuple[str, Child]]
    _is_closed: bool = field(init=False, default=False)

    async def more(self) -> list[tuple[str, Facts]]:
        """The next entries; empty after the last."""
        turns = Semaphore(SIZES_AT_ONCE)
        chosen = self._take()

        async def describe(name: str, child: Child) -> tuple[str, Facts]:
            draft = self._session.drafts.get((*self._path, name))
            if draft is not None:
                return name, draft.facts
            async with turns.one():
                try:
                    return name, await self._session.facts_of(child)
                except GridError:
                    target = child.target
                    assert not isinstance(target, UnknownChild)
                    return name, facts_of(target, child.metadata, None)

        return list(await gatherResults([Deferred.fromCoroutine(describe(*entry)) for entry in chosen]))

    def close(self) -> None:
        """Stop listing."""
        if not self._is_closed:
            self._is_closed = True
            self._session.listing_count -= 1
            self._session.count_listed(-len(self._entries))
            self._entries.clear()

    def _take(self) -> list[tuple[str, Child]]:
        """Remove the next entries, and return those that clients can name."""
        taken: list[tuple[str, Child]] = []
        before = len(self._entries)
        while self._entries and len(taken) < LISTED_AT_ONCE:
            entry = self._entries.popleft()
            if can_be_named(entry[0]):
                taken.append(entry)
        self._session.count_listed(len(self._entries) - before)
        return taken


def _file(child: Child, path: Path) -> KnownCap:
    target = child.target
    if isinstance(target, DirectoryCap):
        raise SftpFault(FAILURE, f"{path[-1] if path else '/'!r} is a directory")
    if isinstance(target, UnknownChild):
        raise SftpFault(PERMISSION_DENIED, "that file is of an unknown kind; a newer version may support it")
    if target.authority == "verify":
        raise SftpFault(PERMISSION_DENIED, "that capability cannot read the file")
    return target
