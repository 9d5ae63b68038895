"""Packs the small files of a local tree before the tree is copied. [spec extents 1]

It owns which files go into packs. Files that it skips or cannot read are uploaded separately.

Cost: memory: two packs, one being filled and one being stored; a capability per file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from twisted.internet.defer import Deferred

from grid.caps import SliceCap
from grid.cli.terminal.progress import Tally
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.throttle import Throttle
from grid.cli.transfer.tree import FileFacts, Leaf, LocalOrigin
from grid.directory.store import Store
from grid.errors import GridError
from grid.extents.pack_writer import Extent, PackContents, is_packed
from grid.transfer.grid_packing import put_pack
from grid.values import field, frozen

FILES_AT_ONCE = 64
"""Files read in one call on the pool."""

Packed = SliceCap | GridError
"""The result for one file: its capability, or why its pack could not be stored."""


@frozen(kw_only=True)
class _Added:
    path: str
    facts: FileFacts
    read_at_ns: int
    extent: Extent = field(repr=False)


class Packer:
    """Packs local files. packed: the result for each, by path, until it is taken."""

    def __init__(
        self, store: Store, database: LocalDatabase, tally: Tally, throttle: Throttle, *, follow_links: bool
    ) -> None:
        self._store = store
        self._throttle = throttle
        self._database = database
        self._tally = tally
        self._flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
        self.packed: dict[str, Packed] = {}

    async def pack(self, leaves: Iterable[Leaf]) -> None:
        """Read, encrypt and store all files suited for packs.

        A pack that cannot be stored is an error of each of its files.
        """
        cpu, clock = self._store.runtime.cpu, self._store.runtime.clock
        contents, added = self._new(), list[_Added]()
        storing: Deferred[None] | None = None
        try:
            for paths in _groups(leaves):
                read_at_ns = int(clock.unix_time() * 1e9)
                added += await cpu.run(self._read, contents, paths, read_at_ns)
                if contents.is_full:
                    if storing is not None:
                        await storing
                    storing = Deferred.fromCoroutine(self._put(contents, added))
                    contents, added = self._new(), []
            if storing is not None:
                await storing
            if added:
                await self._put(contents, added)
        except BaseException:
            if storing is not None:
                storing.addErrback(lambda _: None)
                storing.cancel()
            raise

    def _new(self) -> PackContents:
        return PackContents(self._store.convergence, self._store.runtime.entropy.random_bytes)

    def _read(self, contents: PackContents, paths: list[str], read_at_ns: int) -> list[_Added]:
        """Add the files that can be read and did not change meanwhile."""
        added = []
        for path in paths:
            try:
                read = _read_file(path, self._flags)
            except OSError:
                continue  # The separate upload will report what is wrong with it.
            if read is not None:
                data, facts = read
                added.append(_Added(path=path, facts=facts, read_at_ns=read_at_ns, extent=contents.add(data)))
        return added

    async def _put(self, contents: PackContents, added: list[_Added]) -> None:
        try:
            pack = await put_pack(self._store, contents)
            caps = [each.extent.slice_of(pack) for each in added]
        except GridError as error:
            self.packed.update((each.path, error) for each in added)
            return
        self._tally.moved_bytes += contents.size
        await self._throttle.let_pass(contents.size)
        now = self._store.runtime.clock.unix_time()
        for each, cap in zip(added, caps, strict=True):
            self.packed[each.path] = cap
            self._database.record_file(each.path, each.facts, cap.to_string(), read_at_ns=each.read_at_ns, now=now)


def _groups(leaves: Iterable[Leaf]) -> Iterator[list[str]]:
    """Yield the paths of files suited for packs, a group at a time."""
    group: list[str] = []
    for leaf in leaves:
        if isinstance(leaf.origin, LocalOrigin) and is_packed(leaf.origin.facts.size):
            group.append(leaf.origin.path)
            if len(group) == FILES_AT_ONCE:
                yield group
                group = []
    if group:
        yield group


def _read_file(path: str, flags: int) -> tuple[bytes, FileFacts] | None:
    """Read a file and its facts; None if it does not belong in a pack or changed meanwhile. OSError."""
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        facts = FileFacts.of(status)
        if not stat.S_ISREG(status.st_mode) or not is_packed(facts.size):
            return None
        data = b""
        while len(data) <= facts.size and (piece := os.read(descriptor, facts.size + 1 - len(data))):
            data += piece
        if len(data) != facts.size or not facts.is_same_content(FileFacts.of(os.fstat(descriptor))):
            return None
        return data, facts
    finally:
        os.close(descriptor)
