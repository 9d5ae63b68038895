"""A directory as its users see it: list, look up, change, make directories.

It owns the order of steps that involve more than one file. Every change, however many edits it has, is one publish.

Cost: listing: one read of the file, which is parsed if it has changed. Changing a directory that was just read: one round trip per server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from grid.caps import DirectoryCap, KnownCap, MdmfWriteCap, SdmfWriteCap
from grid.directory.edits import Edit, Edited, SetChild, apply_edits, previous_of, updated_metadata
from grid.directory.large import LARGE_SIZE, Emptied, collector
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Entry, pack_directory, parse_directory
from grid.directory.parsed import Parsed, ParsedDirectories
from grid.directory.unpacking import UnpackingBudget
from grid.errors import (
    AuthorityError,
    ChildOfWrongTypeError,
    DirectoryError,
    ExistingChildError,
    FormatError,
    MayHoldError,
    NoSuchChildError,
    NotWriteableError,
)
from grid.limits import MAX_DIRECTORY_SIZE
from grid.mutable.node import MutableFile
from grid.mutable.share.geometry import FormatName
from grid.ports import Runtime, Sink
from grid.runtime import SMALL_WORK
from grid.sinks import FrozenBytesSink

T = TypeVar("T")

Look = Callable[[str], Child | None]
"""The child of a name in normal form; None if it does not exist or cannot be listed."""

Choose = Callable[[Look, bool], Sequence[Edit]]
"""Chooses edits by what the directory contains, and by whether an earlier attempt may have been stored already."""

POOLED_BYTES = 2**14
"""A directory of at least this many bytes is unpacked on the pool: 60 usual entries, 2 ms, or 250 of the smallest files."""

RACES = 5
"""How often making the directories of a path starts over because another client makes them too."""


class DirectoryStore(Protocol):
    """What a directory needs of the store that contains it: a `FileStore`, or a decorator of one."""

    @property
    def runtime(self) -> Runtime:
        """The clock and the processors."""

    @property
    def room(self) -> UnpackingBudget:
        """The budget for unpacking large directories."""

    @property
    def parsed(self) -> ParsedDirectories:
        """Parsed directories."""

    def open_mutable(self, cap: KnownCap) -> MutableFile:
        """The mutable file of this directory's cap."""

    def directory(self, cap: DirectoryCap) -> Directory:
        """Another directory of the same store."""

    async def size(self, cap: KnownCap) -> int:
        """Bytes of the directory's file."""

    async def read_bytes(self, cap: KnownCap, sink: Sink) -> int:
        """Read the directory's file."""

    async def create_directory(
        self, children: Mapping[str, Child] | None = None, *, format: FormatName | None = None
    ) -> DirectoryCap:
        """Store a new mutable directory with these children."""


class Directory:
    """One directory, open for what its cap permits."""

    def __init__(self, store: DirectoryStore, cap: DirectoryCap) -> None:
        """Sends no request. FileStore.directory calls this."""
        self.cap = cap
        self._store = store
        self._file = store.open_mutable(cap) if cap.is_mutable else None
        body = cap.body
        self._write_key = body.write_key if isinstance(body, SdmfWriteCap | MdmfWriteCap) else None
        self._parsed: Parsed | None = None
        self.published_size: int | None = None
        """Bytes that the last edit published; None if it changed nothing."""

    @property
    def is_mutable(self) -> bool:
        """Whether its contents may change."""
        return self.cap.is_mutable

    @property
    def warning(self) -> str | None:
        """A warning for the user of the last listing or edit: a newer version of the directory is known to exist."""
        return None if self._file is None else self._file.warning

    @property
    def is_writable(self) -> bool:
        """Whether this cap permits changes."""
        return self._write_key is not None

    async def list(self) -> Mapping[str, Child]:
        """The children that can be listed, in ascending order of their names.

        AuthorityError with a verify cap; FormatError if it is not a directory; also raises the errors of a read.
        """
        return (await self.listing())[0]

    async def listing(self) -> tuple[Mapping[str, Child], int]:
        """The result of `list`, and the size of the directory's file in bytes."""
        data = await self._read()
        parsed = self._find_parsed(data)
        if parsed is not None and parsed.is_listed:
            return parsed.listed(), len(data)
        return await self._on_the_pool(len(data), self._listed, data), len(data)

    def recall(self) -> Mapping[str, Child] | None:
        """The children as last read or written; None if that is unknown, or would take time to find out. FormatError."""
        data = None if self._file is None else self._file.recalled
        if data is None:
            return None
        parsed = self._find_parsed(data)
        if parsed is not None and parsed.is_listed:
            return parsed.listed()
        return None if len(data) >= POOLED_BYTES else self._listed(data)

    async def get(self, path: Sequence[str]) -> Child:
        """The child at the end of a path; for an empty path, this directory.

        NoSuchChildError for the first missing name; ChildOfWrongTypeError for the first child that must be a
        directory and is not; also raises the errors of `list`.
        """
        child = Child(target=self.cap)
        directory = self
        for depth, given in enumerate(path):
            if depth:
                directory = _enter(self._store, child, path[depth - 1])
            name = normalize_name(given)
            found = (await directory.list()).get(name)
            if found is None:
                raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
            child = found
        return child

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child]:
        """Make all edits in one publish, or none. Returns the children replaced or removed, by name.

        If another client changes the directory meanwhile, the edits are applied to its new contents. Nothing is
        published if nothing changes. NotWriteableError; also raises the errors of `apply_edits`, of a read and of a publish.
        MayHoldError has the children, too: the change may be in force.
        """
        return await self.edit_by(lambda look, retrying: edits, len(edits))

    async def edit_by(self, choose: Choose, count: int = 1) -> Mapping[str, Child]:
        """Like `edit`, with edits chosen by what the directory contains.

        choose: called again for newer contents, on any thread. The edits of its last call are made. What
        it raises is raised, unless the contents have changed meanwhile. count: about how many edits it makes.
        """
        file, write_key = self._file, self._write_key
        if file is None or write_key is None:
            raise NotWriteableError("this capability cannot change the directory: use its write capability")
        previous: dict[str, Child] = {}
        self.published_size = None
        refusal: DirectoryError | FormatError | None = None

        def change(data: bytes, first: bool) -> bytes | Awaitable[bytes | None] | None:
            if len(data) < POOLED_BYTES and count <= SMALL_WORK:
                return changed(data, first)
            return self._on_the_pool(max(POOLED_BYTES, len(data)), changed, data, first)

        def changed(data: bytes, first: bool) -> bytes | None:
            nonlocal refusal
            refusal = self.published_size = None
            try:
                edits = choose(partial(_child_of, self._parse(data).entries), not first)
                edited = self._apply(data, edits, not first, write_key)
            except (DirectoryError, FormatError) as error:
                # The contents may be remembered ones: a refusal counts only if the present ones cause it. If an earlier
                # attempt has collided, it is left on some servers, and its opponent may give way to it: `modify`
                # stores the present contents again, so that both see the same directory from now on.
                refusal = error
                return None
            _note_previous(previous, edited.previous, edits)
            if not edited.changed:
                return None
            packed = pack_directory(edited.entries)
            self._keep(Parsed(data=packed, entries=Emptied(edited.entries).completed()))
            self.published_size = len(packed)
            return packed

        try:
            await file.modify(change, MAX_DIRECTORY_SIZE)
        except MayHoldError as error:
            error.previous = previous
            raise
        if refusal is not None:
            raise refusal
        return previous

    async def make_directory(
        self, name: str, *, format: FormatName | None = None, overwrite: bool = False
    ) -> Directory:
        """Make an empty mutable directory and link it here. ExistingChildError; also raises the errors of `edit`."""
        self._require_writable()
        if not overwrite and normalize_name(name) in await self.list():
            raise ExistingChildError(f"there is already a {name!r} in the directory", name=name)
        made = await self._store.create_directory(format=format)
        await self.edit([SetChild(name, made, overwrite=overwrite)])
        return self._store.directory(made)

    async def make_directories(self, path: Sequence[str], *, format: FormatName | None = None) -> Directory:
        """The directory at the end of a path. Missing ones are made, however many, with one publish in this directory.

        ChildOfWrongTypeError if something on the path is not a directory; also raises the errors of `edit`.
        """
        for race in range(RACES):
            directory, missing = await self._descend(path)
            if not missing:
                return directory
            directory._require_writable()
            made = await self._make_branch(missing, format)
            try:
                await directory.edit([SetChild(missing[0], made[0], overwrite=False)])
            except ExistingChildError:
                if race == RACES - 1:
                    raise
                continue
            return self._store.directory(made[-1])
        raise AssertionError("the loop returns or raises")

    async def _descend(self, path: Sequence[str]) -> tuple[Directory, Sequence[str]]:
        """The last existing directory on the path, and the rest of the path."""
        directory = self
        for depth, name in enumerate(path):
            found = (await directory.list()).get(normalize_name(name))
            if found is None:
                return directory, path[depth:]
            directory = _enter(self._store, found, name)
        return directory, ()

    async def _make_branch(self, names: Sequence[str], format: FormatName | None) -> Sequence[DirectoryCap]:
        """New directories, each containing the next one, made from the last to the first."""
        made = [await self._store.create_directory(format=format)]
        for name in reversed(names[1:]):
            metadata = updated_metadata(None, None, self._store.runtime.clock.unix_time())
            inside = {name: Child(target=made[-1], metadata=metadata)}
            made.append(await self._store.create_directory(inside, format=format))
        made.reverse()
        return made

    def _require_writable(self) -> None:
        if not self.is_writable:
            raise NotWriteableError("this capability cannot change the directory: use its write capability")

    async def _read(self) -> bytes:
        if self.cap.authority == "verify":
            raise AuthorityError("a verify capability cannot read the directory: use its read or write capability")
        if self._file is not None:
            return await self._file.read_all(MAX_DIRECTORY_SIZE)
        size = await self._store.size(self.cap)
        if size > MAX_DIRECTORY_SIZE:
            raise FormatError(f"a directory of {size} bytes is larger than the limit")
        sink = FrozenBytesSink()
        await self._store.read_bytes(self.cap, sink)
        return sink.take()

    async def _on_the_pool(self, size: int, function: Callable[..., T], *arguments: object) -> T:
        """Apply the function to a directory of that many bytes: at once or, if it is large, on the pool when there is room."""
        if size < POOLED_BYTES:
            return function(*arguments)
        async with self._store.room.taken(size):
            if size < LARGE_SIZE:
                return await self._store.runtime.cpu.run(function, *arguments)
            with collector.paused():
                return await self._store.runtime.cpu.run(function, *arguments)

    def _listed(self, data: bytes) -> Mapping[str, Child]:
        """The children that can be listed, in ascending order of their names."""
        return self._parse(data).listed()

    def _parse(self, data: bytes) -> Parsed:
        """The directory with this data."""
        parsed = self._find_parsed(data)
        if parsed is None:
            entries = parse_directory(data, mutable=self.is_mutable, write_key=self._write_key)
            parsed = self._keep(Parsed(data=data, entries=entries))
        return parsed

    def _find_parsed(self, data: bytes) -> Parsed | None:
        """The directory with this data, if it has been parsed already: a change often follows a listing."""
        parsed = self._parsed
        if parsed is None or not parsed.is_of(data):
            parsed = self._store.parsed.get(self.cap, data)
        return parsed

    def _keep(self, parsed: Parsed) -> Parsed:
        self._parsed = parsed
        self._store.parsed.put(self.cap, parsed)
        return parsed

    def _apply(self, data: bytes, edits: Sequence[Edit], retrying: bool, write_key: bytes) -> Edited:
        now = self._store.runtime.clock.unix_time()
        return apply_edits(self._parse(data).entries, edits, now=now, retrying=retrying, write_key=write_key)


async def edit_in_doubt(directory: Directory, edits: Sequence[Edit]) -> tuple[Mapping[str, Child], MayHoldError | None]:
    """Make the edits, and return the children replaced or removed, also if the change only may hold: then with its error."""
    try:
        return await directory.edit(edits), None
    except MayHoldError as error:
        return previous_of(error), error


def _child_of(entries: Mapping[str, Entry], name: str) -> Child | None:
    entry = entries.get(name)
    return None if entry is None else entry.child


def _enter(store: DirectoryStore, child: Child, name: str) -> Directory:
    if not isinstance(child.target, DirectoryCap):
        raise ChildOfWrongTypeError(f"{name!r} is not a directory", name=name)
    return store.directory(child.target)


def _note_previous(previous: dict[str, Child], found: Mapping[str, Child], edits: Sequence[Edit]) -> None:
    """Note what one attempt replaces. A retry may find what an earlier attempt put there."""
    ours = {edit.target for edit in edits if isinstance(edit, SetChild)}
    for name, child in found.items():
        if name not in previous or child.target not in ours:
            previous[name] = child
