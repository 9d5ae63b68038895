"""Copies a tree to this machine: each file appears under its name once it is complete and verified.

Anybody who can write the directories chooses the names: one that would lead out of the target is refused, and so is one
that the file system confuses with another. A file that fails leaves the previous file intact, and stops no other.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grid.caps import ChkCap, LitCap, SequenceCap, SliceCap
from grid.cli.arguments.replacing import ReplacePolicy
from grid.cli.arguments.sources import FileSource
from grid.cli.arguments.targets import DescriptorSink, give_name, open_unnamed
from grid.cli.terminal.failures import describe
from grid.cli.terminal.progress import TransferDisplay
from grid.cli.transfer.bounded import Room
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.file_note import (
    MAX_TARGET,
    FileNote,
    mode_in,
    moment_in,
    owner_in,
    set_time,
)
from grid.cli.transfer.names import find_collisions, refuse_name
from grid.cli.transfer.post_order import run_post_order
from grid.cli.transfer.throttle import Throttle
from grid.cli.transfer.to_remote import changed_at, size_of
from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin
from grid.directory.store import Store
from grid.errors import DISK_FULL, GridError
from grid.ports import Sink
from grid.sinks import BytesSink
from grid.transfer.jobs import Jobs

STORED = ChkCap | SliceCap | SequenceCap
"""Immutable files that must be fetched."""

_CHUNK = 1024 * 1024
_HOPELESS = (*DISK_FULL, errno.EROFS)
"""Errors that stop every further file as well."""


class LocalWriter:
    """Copies to this machine; failures go to the display's tally and stop nothing else."""

    def __init__(
        self,
        store: Store,
        database: LocalDatabase,
        display: TransferDisplay,
        *,
        jobs: Jobs,
        caps_only: bool = False,
        keep_metadata: bool = False,
        keep_owners: bool = True,
        replace: ReplacePolicy | None = None,
        say: Callable[[str], None] = lambda line: None,
        throttle: Throttle | None = None,
    ) -> None:
        """caps_only: write capabilities instead of contents. throttle: limits the rate of contents.

        keep_metadata: restore recorded times, modes, links and attributes, and for root, with keep_owners, the owners.
        """
        self._throttle = throttle or Throttle(store.runtime.clock)
        self._store = store
        self._database = database
        self._display = display
        self._jobs = jobs
        self._caps_only = caps_only
        self._keep_metadata = keep_metadata
        self._keep_owners = keep_metadata and keep_owners and os.geteuid() == 0
        self._lost: set[str] = set()
        self._replace = replace or ReplacePolicy()
        self._say = say
        self._root = ""
        self._room = Room()
        mask = os.umask(0o077)
        os.umask(mask)
        self._mode = 0o666 & ~mask

    async def copy_into(self, target: str, tree: Branch) -> None:
        """Copy the tree into the directory, which is created if missing.

        OSError if it cannot be created or written to, and for errors that would stop every later file, such as a full
        disk.
        """
        os.makedirs(target, exist_ok=True)
        self._root = os.path.abspath(target)
        _require_writable(self._root)
        await self._store.runtime.cpu.run(self._make_directories, tree)
        await run_post_order(tree, self._jobs, self._do_leaf, self._do_branch)

    async def write(self, leaf: Leaf, sink: Sink) -> None:
        """Write a file's contents, or its capability, to the sink."""
        if isinstance(leaf.origin, LocalOrigin):
            with open(leaf.origin.path, "rb", buffering=0) as file:
                source = FileSource(file, self._store.runtime.cpu)
                for offset in range(0, source.size, _CHUNK):
                    await sink.write(await source.read_at(offset, min(_CHUNK, source.size - offset)))
        elif self._caps_only:
            await sink.write(leaf.origin.cap.to_string().encode("ascii"))
        else:
            await self._store.read(leaf.origin.cap, self._throttle.sink(sink))

    def _make_directories(self, tree: Branch) -> None:
        """Create every directory, and drop from the tree what this machine cannot hold."""
        for path, branch in tree.walk():
            here = os.path.join(self._root, *path)
            self._drop_bad_names(branch, here)
            for name in list(branch.branches):
                try:
                    self._make_directory(os.path.join(here, name))
                    _require_writable(os.path.join(here, name))
                except OSError as problem:
                    self._fail(branch.branches.pop(name), problem.strerror or "cannot be created")

    def _make_directory(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
            if os.path.islink(path):
                # The snapshot's author controls where it leads.
                raise OSError(errno.ELOOP, "a symbolic link has this name", path) from None
            if self._keep_metadata and not os.access(path, os.W_OK | os.X_OK):
                # An earlier restore gave it a mode that forbids adding entries.
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | stat.S_IRWXU)

    def _drop_bad_names(self, branch: Branch, here: str) -> None:
        everything: dict[str, Leaf | Branch] = {**branch.leaves, **branch.branches}
        why = {name: refusal for name in everything if (refusal := refuse_name(name)) is not None}
        collisions = find_collisions(name for name in everything if name not in why)
        if collisions and _ignores_case(here):
            why.update(
                {name: f"this file system cannot distinguish it from {other!r}" for name, other in collisions.items()}
            )
        for name, reason in why.items():
            thing = everything[name]
            branch.leaves.pop(name, None)
            branch.branches.pop(name, None)
            self._display.fail(f"the name {name!r} in {here} cannot be used: {reason}")
            self._forget(thing)

    def _forget(self, thing: Leaf | Branch) -> None:
        leaves = [thing] if isinstance(thing, Leaf) else [leaf for _, b in thing.walk() for leaf in b.leaves.values()]
        self._display.tally.total_files -= len(leaves)
        self._display.tally.total_bytes -= sum(map(size_of, leaves))

    def _fail(self, thing: Leaf | Branch, why: str) -> None:
        shown = (thing.origin.shown if thing.origin is not None else "") or thing.name
        self._display.fail(why if why.startswith(shown) else f"{shown}: {why}")

    async def _do_leaf(self, path: tuple[str, ...], branch: Branch, leaf: Leaf) -> None:
        target = os.path.join(self._root, *path, leaf.name)
        tally = self._display.tally
        counted = 0.0
        try:
            if self.is_there(target, leaf) or not await self.may_replace(target, leaf):
                tally.skipped += 1
            else:
                counted = await self._make_file(target, leaf)
                tally.copied += 1
        except (GridError, OSError) as problem:
            if isinstance(problem, OSError) and problem.errno in _HOPELESS:
                raise OSError(problem.errno, os.strerror(problem.errno), self._root) from None
            self._fail(leaf, describe(problem))
        tally.finish(size_of(leaf), counted)
        self._display.update()

    async def _make_file(self, target: str, leaf: Leaf) -> int:
        """Create the file and return the bytes written."""
        metadata = self._metadata(leaf)
        if self._is_link(leaf):
            return await self._make_link(target, leaf, metadata)
        with _new_file(target, lambda descriptor: self._finish(descriptor, metadata, self._mode)) as descriptor:
            sink = _CountedSink(DescriptorSink(descriptor, self._store.runtime.cpu), self._display)
            try:
                async with self._room.for_file(size_of(leaf)):
                    await self.write(leaf, sink)
            except BaseException:
                self._display.tally.byte_count -= sink.counted
                raise
        if not isinstance(leaf.origin, LocalOrigin) and isinstance(leaf.origin.cap, STORED) and not self._caps_only:
            facts = FileFacts.of(os.lstat(target))
            self._database.record_download(target, facts, leaf.origin.cap.to_string())
        return sink.counted

    def _is_link(self, leaf: Leaf) -> bool:
        """Whether it is a backed-up symbolic link; its contents are then a few immutable bytes."""
        if isinstance(leaf.origin, LocalOrigin) or not isinstance(leaf.origin.cap, STORED | LitCap):
            return False
        return FileNote.of(self._metadata(leaf)).is_link

    async def _make_link(self, target: str, leaf: Leaf, metadata: Mapping[str, object]) -> int:
        """Create the link and return the bytes fetched for its target. It replaces anything there but a directory."""
        if os.path.isdir(target) and not os.path.islink(target):
            raise IsADirectoryError(f"{target} is a directory")
        held = BytesSink()
        if size_of(leaf) <= MAX_TARGET:
            await self.write(leaf, held)
        if not held.data or b"\0" in held.data:
            raise OSError(errno.EINVAL, "the target of this symbolic link cannot be a path", target)
        directory, name = os.path.split(target)
        temporary = os.path.join(directory, f".{name[:60]}.{secrets.token_hex(4)}.part")
        os.symlink(bytes(held.data), os.fsencode(temporary))
        try:
            self._set_owner(temporary, metadata)
            set_time(temporary, metadata)
            os.replace(temporary, target)
        except BaseException:
            _unlink(temporary)
            raise
        return len(held.data)

    def _finish(self, target: str | int, metadata: Mapping[str, object], usual: int | None = None) -> None:
        """Apply the recorded attributes to a file or directory; OSError."""
        self._set_owner(target, metadata)
        self._set_attributes(target, FileNote.of(metadata).attributes)
        if "st_mode" in metadata or usual is not None:
            os.chmod(target, mode_in(metadata, 0o777 if usual is None else usual))
        set_time(target, metadata)

    def _set_owner(self, target: str | int, metadata: Mapping[str, object]) -> None:
        owner = owner_in(metadata) if self._keep_owners else None
        if owner is None:
            return
        try:
            if isinstance(target, int):
                os.chown(target, *owner)
            else:
                os.chown(target, *owner, follow_symlinks=False)
        except OSError as problem:
            self._lose("owners", problem)

    def _set_attributes(self, target: str | int, attributes: Mapping[str, bytes]) -> None:
        try:
            for name, value in attributes.items():
                os.setxattr(target, name, value)
        except OSError as problem:
            self._lose("extended attributes", problem)

    def _lose(self, what: str, problem: OSError) -> None:
        """Report once that this file system, or this user, cannot preserve something."""
        if what not in self._lost:
            self._lost.add(what)
            self._display.warn(f"{self._root}: {what} cannot be restored here: {problem.strerror}")

    def is_there(self, target: str, leaf: Leaf) -> bool:
        """Whether the file is the unchanged result of an earlier copy of the same immutable file."""
        if self._caps_only or isinstance(leaf.origin, LocalOrigin):
            return False
        if self._is_link(leaf):
            # A long target is so rare that it is fetched again.
            return isinstance(leaf.origin.cap, LitCap) and _leads_to(target, leaf.origin.cap.data)
        if isinstance(leaf.origin.cap, LitCap):
            return self._holds(target, leaf.origin.cap.data, self._metadata(leaf))
        if not isinstance(leaf.origin.cap, STORED):
            return False
        try:
            status = os.lstat(target)
        except OSError:
            return False
        facts = FileFacts.of(status)
        if not stat.S_ISREG(status.st_mode) or facts.size != leaf.origin.cap.size:
            return False
        return self._database.known_download(target, facts) == leaf.origin.cap.to_string()

    def _holds(self, target: str, data: bytes, metadata: Mapping[str, object]) -> bool:
        """Whether a file has these few bytes and the recorded time and mode. The database knows no such files."""
        try:
            status = os.lstat(target)
            if not stat.S_ISREG(status.st_mode) or status.st_size != len(data):
                return False
            mode = stat.S_IMODE(status.st_mode)
            moment = moment_in(metadata)
            if mode_in(metadata, mode) != mode or moment not in (None, status.st_mtime_ns):
                return False
            return Path(target).read_bytes() == data
        except OSError:
            return False

    async def may_replace(self, target: str, leaf: Leaf) -> bool:
        """Whether what exists at the target, if anything, may be replaced."""
        if not self._replace.is_given or not os.path.lexists(target):
            return True
        return await self._replace.permits(
            target, new_time=changed_at(leaf), old_time=os.stat(target, follow_symlinks=False).st_mtime
        )

    def _metadata(self, thing: Leaf | Branch) -> Mapping[str, object]:
        if not self._keep_metadata or thing.origin is None or isinstance(thing.origin, LocalOrigin):
            return {}
        return thing.origin.metadata

    async def _do_branch(self, path: tuple[str, ...], branch: Branch, above: Branch | None) -> None:
        self._display.tally.directories += 1
        metadata = self._metadata(branch)
        if not metadata:
            return
        try:
            self._finish(os.path.join(self._root, *path), metadata)
        except OSError as problem:
            self._fail(branch, describe(problem))


class _CountedSink:
    """Counts the bytes it passes on in the tally."""

    def __init__(self, sink: Sink, display: TransferDisplay) -> None:
        self._sink = sink
        self._display = display
        self.counted = 0

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        size = memoryview(data).nbytes
        await self._sink.write(data)
        self.counted += size
        self._display.tally.advance(size)
        self._display.update()


def _leads_to(path: str, target: bytes) -> bool:
    """Whether a symbolic link with this target exists there."""
    try:
        return os.readlink(os.fsencode(path)) == target
    except OSError:
        return False


@contextmanager
def _new_file(target: str, finish: Callable[[int], None]) -> Iterator[int]:
    """Open a descriptor of a file that replaces the target if the block ends without an error; OSError.

    finish: applies attributes to the file.
    """
    directory, name = os.path.split(target)
    if os.path.isdir(target) and not os.path.islink(target):
        raise IsADirectoryError(f"{target} is a directory")
    temporary = os.path.join(directory, f".{name[:60]}.{secrets.token_hex(4)}.part")
    descriptor = open_unnamed(directory)
    has_name = descriptor is None
    if descriptor is None:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            yield descriptor
            finish(descriptor)
            if not has_name:
                give_name(descriptor, Path(temporary))
                has_name = True
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:
        if has_name:
            _unlink(temporary)
        raise


def _require_writable(directory: str) -> None:
    """Raise OSError, which names the directory, if no file can be created in it."""
    try:
        descriptor = open_unnamed(directory)
        if descriptor is not None:
            os.close(descriptor)
            return
        probe = os.path.join(directory, f".grid-{secrets.token_hex(4)}.part")
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.unlink(probe)
    except OSError as problem:
        raise OSError(problem.errno, f"cannot be written to: {problem.strerror}", directory) from None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _ignores_case(directory: str) -> bool:
    """Whether the directory's file system ignores the case of names; OSError."""
    probe = os.path.join(directory, f".grid-case-{secrets.token_hex(4)}")
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        return os.path.lexists(os.path.join(directory, os.path.basename(probe).upper()))
    finally:
        os.unlink(probe)
