"""Directories and files of the grid as an end of a transfer.

Contents are uploaded as they arrive: a random key needs no pass over the file first. Stored files are linked in
batches, one edit per directory. The client runs on Twisted's reactor, in a separate thread; transfers run on asyncio.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from contextlib import suppress

from attrs import evolve

from grid.caps import (
    ChkCap,
    DirectoryCap,
    ImmutableFileCap,
    KnownCap,
    LitCap,
    SequenceCap,
    SliceCap,
    UnknownCap,
    UnknownChild,
    parse_cap,
)
from grid.directory.edits import OnReplaced, RemoveChild, Replaced, SetChild
from grid.directory.file_store import FileStore
from grid.directory.names import normalize_name
from grid.directory.node import edit_in_doubt
from grid.directory.pack import Child
from grid.errors import ChildOfWrongTypeError, GridError, NoSuchChildError
from grid.extents.pack_reader import LONGEST_RUN
from grid.extents.pack_writer import MOST_SIZE, is_packed
from grid.immutable.get import ImmutableFile
from grid.ports import Buffer
from grid.transfer.choices import may_pass
from grid.transfer.ends import PENDING, Body, EndError, Entry, LeftOut, NotThereError, OpenedSource, refuse_name
from grid.transfer.grid_contents import (
    Adoptable,
    BodySource,
    Neighbors,
    OpenedGridFile,
    OpenedImmutableFile,
    OpenedSlice,
    SharedPacks,
    edges_of_put,
    memory_of_put,
    open_mutable_file,
    read_slices,
)
from grid.transfer.grid_listing import Linking, entry_of, leads_elsewhere, metadata_of, walk
from grid.transfer.grid_packing import Packing, new_packing
from grid.transfer.grid_resuming import Resumption
from grid.transfer.grid_session import Doubt, GridSession, check_files
from grid.transfer.traits import hidden

MOST_REMEMBERED = 20_000
"""Capabilities of files that are kept in memory."""


class GridEnd:
    """The files below a path of a capability."""

    keeps_times = True

    def __init__(
        self,
        session: GridSession,
        root: KnownCap,
        path: Sequence[str],
        label: str,
        *,
        packs: bool = False,
        on_replaced: OnReplaced | None = None,
        retries: int = 1,
    ) -> None:
        """packs: whether small files go into packs. on_replaced: called on a thread; it may block. retries: of a pack."""
        self._packs, self._on_replaced, self._retries = packs, on_replaced, retries
        self._packing: Packing | None = None
        self._session, self._root, self._path, self.label = session, root, tuple(path), label
        self._caps: OrderedDict[str, KnownCap] = OrderedDict()
        self._neighbors = Neighbors()
        self._linking = asyncio.Lock()

    @property
    def location(self) -> Sequence[str]:
        """The root directory and the path."""
        return "grid", repr(self._root.storage_index), *self._path

    @property
    def identity(self) -> str:
        """Of a directory, whatever the capability permits; of a file, by its capability. And the path."""
        root = self._root
        index = root.storage_index if isinstance(root, DirectoryCap) else None
        return f"grid:{hidden(root.to_string() if index is None else index.hex(), *self._path)}"

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield every file below the directory; only one directory's entries are in memory.
        Files in packs come in the order in which they lie there, so that each pack is read once, from front to back.
        """
        store = await self._session.store()
        start = await self._session.run(self._find(store))
        if not isinstance(start.target, DirectoryCap):
            yield self._found(self._path[-1] if self._path else "file", start)
            return
        async for found in walk(start.target, lambda cap: self._session.run(_list(store, cap))):
            yield found if isinstance(found, LeftOut) else self._found(*found)

    async def open(self, entry: Entry) -> OpenedSource:
        """Open the file."""
        store = await self._session.store()
        cap = self._caps.get(entry.name)
        if cap is None:
            found = (await self._session.run(self._find(store, entry.name.split("/")))).target
            if not isinstance(found, KnownCap) or isinstance(found, DirectoryCap):
                raise NotThereError(f"{self.label}: {entry.name} is not a file")
            cap = found
        if isinstance(cap, SliceCap) and cap.size <= LONGEST_RUN:
            return OpenedSlice(self._session, store, self._neighbors, evolve(entry, size=cap.size), cap)
        if isinstance(cap, SliceCap | SequenceCap):
            return OpenedGridFile(self._session, SharedPacks(store, cap), evolve(entry, size=cap.size), cap)
        if isinstance(cap, ChkCap | LitCap):
            return OpenedImmutableFile(self._session, ImmutableFile(cap, store.grid), evolve(entry, size=cap.size), cap)
        return await open_mutable_file(self._session, store, entry, cap)

    def reads_together(self, entry: Entry) -> bool:
        """The files of packs, as long as their look-ups are remembered."""
        cap = self._caps.get(entry.name)
        return isinstance(cap, SliceCap) and cap.size <= MOST_SIZE

    def gives_shortcuts(self, target: object) -> bool:
        """To another directory of the same grid, which adopts capabilities."""
        return isinstance(target, GridEnd) and target._session is self._session

    async def read_together(self, entries: Sequence[Entry]) -> Sequence[Buffer | None]:
        """Read files of packs from what is fetched of them in runs."""
        store = await self._session.store()
        caps = [self._caps.get(entry.name) for entry in entries]
        return await read_slices(self._session, store, self._neighbors, caps)

    async def close(self) -> None:
        """Do nothing: the session belongs to the transfer."""

    def spare(self, tokens: Set[str], mark: str) -> None:
        """Do nothing: servers keep the shares of an interrupted file, and free their room, by themselves."""

    def refuse(self, name: str) -> str | None:
        """Names of the grid are UTF-8 text without slashes."""
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            return "it is not UTF-8 text"
        return refuse_name(name)

    def place_of(self, name: str) -> str:
        """The name in the normal form of directories."""
        return name if name.isascii() or self.refuse(name) else "/".join(map(normalize_name, name.split("/")))

    def memory_of(self, size: int) -> int:
        """A file for a pack: its copy there. Any other: shares that are on their way."""
        return size if self._packs and is_packed(size) else memory_of_put(size)

    def edges_of(self, size: int) -> tuple[int, int]:
        """Less at both edges of a large file, unless its key depends on its contents, which are then read twice."""
        return edges_of_put(size, self._session.settings) if self._session.is_unique else (self.memory_of(size),) * 2

    async def adopt(self, opened: OpenedSource) -> str | None:
        """The capability, if the file is immutable and on the same grid."""
        other = opened.shortcut
        if isinstance(other, Adoptable) and other.session is self._session:
            return other.cap.to_string()
        return None

    async def store(self, entry: Entry, body: Body) -> str:
        """Upload the contents; the token is the capability."""
        store = await self._session.store()
        if self._packs and is_packed(body.size):
            data = b"".join([bytes(piece) async for piece in body.stream()])
            await body.require_unchanged()
            await self._packing_into(store).add([(entry.name, data)])
            return PENDING
        resumption = Resumption(body, store)
        source = BodySource(self._session, body, asyncio.get_running_loop(), resumption.examine)
        try:
            cap = await self._session.run(store.put_immutable(source, key=resumption.key, keeps=resumption.keeps))
            await body.require_unchanged()
            return cap.to_string()
        except BaseException as error:
            resumption.failed(error)
            raise
        finally:
            await source.close()

    def stores_together(self, size: int) -> bool:
        """Whatever goes into a pack."""
        return self._packs and is_packed(size)

    async def store_together(
        self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]
    ) -> Sequence[str | None]:
        """Put the files into a pack."""
        store = await self._session.store()
        await self._packing_into(store).add([(entry.name, data) for entry, data in files])
        return [PENDING] * len(files)

    def _packing_into(self, store: FileStore) -> Packing:
        self._packing = self._packing or new_packing(self._session, store, self._retries)
        return self._packing

    def is_stored(self, name: str) -> bool:
        """Whether the file's pack is stored."""
        return self._packing is None or self._packing.is_stored(name)

    def as_listed(self, entry: Entry) -> Entry:
        """By its time, and the tag of its capability."""
        cap = self._caps.get(entry.name)
        return evolve(entry, tag="" if cap is None else _tag_of(cap))

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        """Link files, with one edit per directory."""
        store = await self._session.store()
        folders: dict[tuple[str, ...], dict[str, SetChild]] = {}
        failed: dict[str, GridError] = {}
        if any(token == PENDING and not self.is_stored(entry.name) for entry, token in stored):
            await self._packing_into(store).finish()
        for entry, token in stored:
            *above, name = entry.name.split("/")
            cap = self._packing_into(store).find(entry.name) if token == PENDING else parse_cap(token)
            if isinstance(cap, GridError):
                failed[entry.name] = cap
                continue
            assert not isinstance(cap, UnknownCap)
            self._remember(entry.name, cap)
            folders.setdefault(tuple(above), {})[entry.name] = SetChild(
                normalize_name(name), cap, metadata=metadata_of(entry), overwrite="only-files"
            )
        async with self._linking:
            for folder, edits in folders.items():
                try:
                    failed |= await self._link(store, folder, edits)
                except GridError as error:
                    failed |= dict.fromkeys(edits, error)
        if self._packing is not None:  # An edit of a directory may be tried again, a pack has been.
            self._packing.forget(entry.name for entry, _ in stored if not may_pass(failed.get(entry.name)))
        return failed

    async def doubted(self, tokens: Sequence[str]) -> Set[str]:
        """The capabilities of files that are not known to be healthy."""
        store = await self._session.store()
        caps = {token: cap for token in tokens if isinstance(cap := parse_cap(token), KnownCap)}
        return set(tokens) - set(caps) | set(await check_files(self._session, store, caps))

    async def remove(self, name: str) -> None:
        """Unlink the file, and directories that become empty."""
        store = await self._session.store()
        self._caps.pop(name, None)
        removed: list[tuple[DirectoryCap, Replaced]] = []
        async with self._linking:
            try:
                await self._session.run(self._unlink(store, name.split("/"), removed))
            finally:
                for directory, entry in removed:
                    await self._note_replaced(directory, [entry])

    async def _note_replaced(self, directory: DirectoryCap, entries: Sequence[Replaced]) -> None:
        if self._on_replaced is not None and entries:
            await asyncio.to_thread(self._on_replaced, directory, entries)

    async def _unlink(self, store: FileStore, names: list[str], removed: list[tuple[DirectoryCap, Replaced]]) -> None:
        """Unlink the file, and directories that become empty; they are added to `removed`."""
        while names:
            *above, last = names
            try:
                cap = (await self._find(store, above)).target
            except NotThereError:
                return
            if not isinstance(cap, DirectoryCap):
                return
            directory = store.directory(cap)
            gone, doubt = await edit_in_doubt(directory, [RemoveChild(last, must_exist=False)])
            removed += [(cap, (tuple(names), old, None)) for old in gone.values()]
            if doubt is not None:
                raise doubt
            if await directory.list():
                return
            names = above

    async def check(self, names: Sequence[str]) -> Mapping[str, Doubt]:
        """The files that are not known to be healthy, with the reasons."""
        store = await self._session.store()
        caps = await asyncio.gather(*(self._cap_of(store, name) for name in names))
        return await check_files(self._session, store, dict(zip(names, caps, strict=True)))

    async def _cap_of(self, store: FileStore, name: str) -> KnownCap | None:
        """The capability of a file; None if nothing is linked there."""
        cap = self._caps.get(name)
        if cap is None:
            with suppress(NotThereError):
                found = await self._session.run(self._find(store, name.split("/")))
                cap = found.target if isinstance(found.target, KnownCap) else None
        return cap

    async def _find(self, store: FileStore, below: Sequence[str] = ()) -> Child:
        path = [*self._path, *below]
        if not path:
            return Child(target=self._root)
        if not isinstance(self._root, DirectoryCap):
            raise ChildOfWrongTypeError(f"{self.label} leads through something that is not a directory", name=path[0])
        try:
            return await store.directory(self._root).get(path)
        except NoSuchChildError:
            raise NotThereError(f"{self.label}: there is nothing at this path") from None

    async def _link(
        self, store: FileStore, folder: tuple[str, ...], edits: Mapping[str, SetChild]
    ) -> Mapping[str, GridError]:
        """Link the files of a folder, and return the errors of those that cannot be. Raises the error of all others."""
        if not isinstance(self._root, DirectoryCap):
            raise EndError(f"{self.label} is a file: files go into a directory")
        path = [*self._path, *folder]
        linking = Linking(store.directory(self._root), path, edits)
        await self._session.run(linking.run())
        await self._note_replaced(linking.directory.cap, [
            ((*folder, edit.name), old, edit.target)
            for edit in edits.values()
            if (old := linking.replaced.get(edit.name)) is not None and old.target != edit.target
        ])  # fmt: skip
        if linking.doubt is not None:
            raise linking.doubt
        return linking.refused

    def _remember(self, name: str, cap: KnownCap) -> None:
        """Save the look-up of a file that is soon opened or checked. The oldest ones are forgotten."""
        self._caps[name] = cap
        self._caps.move_to_end(name)
        if len(self._caps) > MOST_REMEMBERED:
            self._caps.popitem(last=False)

    def _found(self, name: str, child: Child) -> Entry | LeftOut:
        cap = child.target
        if isinstance(cap, UnknownChild):
            return LeftOut(name, "of an unknown kind", is_file=True)
        if (why := refuse_name(name)) is not None and leads_elsewhere(name):
            return LeftOut(name, why, is_file=True)
        self._remember(name, cap)
        return entry_of(name, child, cap.size if isinstance(cap, ImmutableFileCap) else None, _tag_of(cap))


async def _list(store: FileStore, cap: DirectoryCap) -> Mapping[str, Child] | GridError:
    try:
        return await store.directory(cap).list()
    except GridError as error:
        return error


def _tag_of(cap: KnownCap) -> str:
    """A text that tells immutable files apart, and reveals none; "" for others."""
    return hashlib.sha256(cap.to_string().encode()).hexdigest()[:32] if isinstance(cap, ImmutableFileCap) else ""
