"""GET `t=zip`: streams a directory and everything below it as a ZIP archive. [spec webapi 5.2]

Owns what an archive contains, and its file names: anybody who can write the directories chooses names, and the program
that unpacks the archive creates files by these names. Memory: one piece of one file, and the list of what the archive
contains. The lists of all archives together have a budget, and few of them are made at once.
"""

from __future__ import annotations

import stat
import time
import zipfile
from collections.abc import Collection, Mapping
from typing import IO

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, SequenceCap, SliceCap, UnknownChild
from grid.directory.metadata import seconds_in
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.errors import GridError
from grid.gateway.content_type import attachment
from grid.gateway.faults import PayloadTooLarge, ServiceUnavailable, without_secrets
from grid.gateway.http.answers import StreamedAnswer
from grid.gateway.http.exchange import Exchange
from grid.gateway.shared.services import Services
from grid.gateway.tree.path import list_children
from grid.ports import Sink
from grid.runtime import with_deadline
from grid.values import define, field, frozen

MAX_ENTRIES = 20_000
"""Files and directories of one archive: its central directory is kept in memory until the end."""

MAX_NAMES = 8 * 2**20
"""Characters of all their paths."""

MAX_NAME_BYTES = 65_535
"""Bytes of one path, limited by the format."""

ENTRY_COST = 2048
"""Bytes that an entry takes from the budget of all archives, besides its path."""

LISTING_S = 300.0
"""Seconds that it may take to list what an archive will contain, with the wait for a turn."""

ITEMS_A_TURN = 50
"""Entries written before other requests get a turn: small files may involve no waiting."""

MISSING = "NOT IN THIS ARCHIVE.txt"
"""Lists what was left out, and why."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_LATEST_S = 4_354_819_198
"""The end of 2107, the last year that the format can express."""

_ODD = frozenset('\\:*?"<>|')
"""Characters with a special meaning on some system."""


@frozen(kw_only=True)
class _Item:
    """One entry of the archive. path: ends with a slash for a directory."""

    path: str
    cap: KnownCap = field(repr=False)
    metadata: Mapping[str, object] = field(repr=False)


@frozen
class _Waiting:
    cap: DirectoryCap = field(repr=False)
    path: str
    above: frozenset[str] = field(repr=False)


@define
class _Listing:
    """Everything below a directory. missing: a line for each entry left out; unnamed: how many more there are."""

    items: list[_Item] = field(factory=list)
    missing: list[str] = field(factory=list)
    names: int = 0
    unnamed: int = 0

    @property
    def cost(self) -> int:
        """Bytes of memory that it takes, roughly."""
        return ENTRY_COST * (len(self.items) + len(self.missing)) + 2 * self.names

    def add(self, item: _Item) -> None:
        """Add an entry; PayloadTooLarge beyond an archive's limits."""
        self.names += len(item.path)
        if len(self.items) == MAX_ENTRIES or self.names > MAX_NAMES:
            raise PayloadTooLarge(
                f"there are more than {MAX_ENTRIES} files and directories below this directory, or their names are too "
                "long: download the directories in it one by one, or use `grid cp -r`",
                shape="page",
            )
        self.items.append(item)

    def leave_out(self, path: str, why: str) -> None:
        """Record an entry that the archive will not contain."""
        if len(self.missing) == MAX_ENTRIES or self.names + len(path) > MAX_NAMES:
            self.unnamed += 1
            return
        self.names += len(path)
        self.missing.append(f"{path}: {why}")


async def zip_directory(exchange: Exchange, cap: DirectoryCap, name: str) -> StreamedAnswer:
    """Return the archive of everything in the directory, or of the entries that `name=` selects.

    name: of the directory. All directories are read before the answer begins, but no file. PayloadTooLarge beyond an
    archive's limits; ServiceUnavailable if that takes too long, or if there is no room beside other archives.
    """
    gateway = exchange.gateway
    chosen = frozenset(map(normalize_name, exchange.arguments.texts("name")))
    listing = await with_deadline(
        gateway.store.runtime.clock, _list_in_turn(exchange, cap, chosen), LISTING_S, _too_late
    )

    async def write(sink: Sink) -> None:
        with gateway.history.download(cap.storage_index):
            await _write(gateway, listing, sink)

    headers = (("Content-Disposition", attachment(f"{_safe(name) or 'directory'}.zip")), ("Cache-Control", "no-store"))
    return StreamedAnswer(200, "application/zip", None, headers, write)


def _too_late() -> ServiceUnavailable:
    return ServiceUnavailable(
        f"listing what is below this directory took more than {LISTING_S / 60:.0f} minutes: download the directories in it "
        "one by one, or use `grid cp -r`",
        shape="page",
    )


async def _list_in_turn(exchange: Exchange, root: DirectoryCap, chosen: Collection[str]) -> _Listing:
    async with exchange.gateway.stores.listings.one():
        return await _list(exchange, root, chosen)


async def _list(exchange: Exchange, root: DirectoryCap, chosen: Collection[str]) -> _Listing:
    """List everything below the root, sorted by path; raises the root's own error if it cannot be read.

    chosen: names in the root; none for all. The memory is held until the request ends.
    """
    gateway = exchange.gateway
    listing, held = _Listing(), 0
    waiting = [_Waiting(root, "", frozenset([_mark(root)]))]
    while waiting:
        here = waiting.pop()
        try:
            gateway.require_allowed(here.cap)
            children = await list_children(gateway.store.directory(here.cap), shape="page")
        except GridError as error:
            if not here.path:
                raise
            listing.leave_out(here.path, without_secrets(str(error)))
            continue
        if chosen and not here.path:
            children = {name: child for name, child in children.items() if name in chosen}
        waiting += reversed(await gateway.store.runtime.cpu.run(_take_all, listing, here, children))
        if not exchange.try_hold(gateway.stores.archives, listing.cost - held):
            raise ServiceUnavailable(
                "there are too many large archives at once: try again later, or download the directories in this one "
                "one by one",
                shape="page",
                headers=(("Retry-After", "60"),),
            )
        held = listing.cost
    return listing


def _take_all(listing: _Listing, here: _Waiting, children: Mapping[str, Child]) -> list[_Waiting]:
    """Add the entries of a directory and return the directories to read next. Slow for large directories."""
    taken: set[str] = set()
    below = (_take(listing, here, name, child, taken) for name, child in sorted(children.items()))
    return [found for found in below if found is not None]


def _take(listing: _Listing, here: _Waiting, name: str, child: Child, taken: set[str]) -> _Waiting | None:
    """Add one entry; return it if it is a directory to read next.

    taken: names already used in the archive's directory.
    """
    path = f"{here.path}{name}"
    safe = _safe(name)
    if safe is None or len(f"{here.path}{safe}/".encode()) > MAX_NAME_BYTES:
        listing.leave_out(path, "no file can have this name")
        return None
    if safe.casefold() in taken:
        listing.leave_out(path, "another file here has this name, or one that some systems treat as the same")
        return None
    if isinstance(child.target, UnknownChild):
        listing.leave_out(path, "of an unknown kind")
        return None
    taken.add(safe.casefold())
    if not isinstance(child.target, DirectoryCap):
        listing.add(_Item(path=f"{here.path}{safe}", cap=child.target, metadata=child.metadata))
        return None
    mark = _mark(child.target)
    if mark and mark in here.above:
        listing.leave_out(path, "this directory contains itself")
        return None
    listing.add(_Item(path=f"{here.path}{safe}/", cap=child.target, metadata=child.metadata))
    return _Waiting(child.target, f"{here.path}{safe}/", here.above | {mark})


async def _write(gateway: Services, listing: _Listing, sink: Sink) -> None:
    """Write the archive. A file that fails before its first byte is left out; one that fails later ends the answer."""
    made = _Buffer()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for count, item in enumerate(listing.items):
            if count % ITEMS_A_TURN == 0:
                await gateway.store.runtime.clock.sleep(0)
            if isinstance(item.cap, DirectoryCap):
                archive.writestr(_about(item, 0o40755), b"")
                continue
            entry = _Entry(archive, item, made, sink)
            try:
                await _read(gateway, item.cap, entry)
                await entry.end()
            except GridError as error:
                if entry.is_open:
                    raise
                listing.leave_out(item.path, without_secrets(str(error)))
            finally:
                entry.close()
        if listing.missing:
            more = [f"and {listing.unnamed} more"] if listing.unnamed else []
            text = "\r\n".join(["These are not in this archive:", "", *listing.missing, *more, ""])
            archive.writestr(MISSING, text.encode("utf-8", "replace"))
        await gateway.store.runtime.cpu.run(archive.close)
    await sink.write(made.take())


async def _read(gateway: Services, cap: KnownCap, sink: Sink) -> None:
    gateway.require_allowed(cap)
    if isinstance(cap, LitCap):
        await sink.write(cap.data)
    elif isinstance(cap, ChkCap | SliceCap | SequenceCap):
        await gateway.open_files.read(cap, sink, 0, cap.size, gateway.store.grid.observer)
    else:
        await gateway.store.read(cap, sink)


class _Entry:
    """A sink for one file of the archive, which begins with its first byte."""

    def __init__(self, archive: zipfile.ZipFile, item: _Item, made: _Buffer, sink: Sink) -> None:
        self._archive, self._item, self._made, self._sink = archive, item, made, sink
        self._file: IO[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Whether some of the file is already in the archive."""
        return self._file is not None

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Add a piece, and send the archive's new bytes."""
        self._begin().write(data)
        await self._sink.write(self._made.take())

    async def end(self) -> None:
        """Mark the file as complete."""
        self._begin()
        self.close()
        await self._sink.write(self._made.take())

    def close(self) -> None:
        """Close the entry, so the archive can continue."""
        if self._file is not None and not self._file.closed:
            self._file.close()

    def _begin(self) -> IO[bytes]:
        if self._file is None:
            size = getattr(self._item.cap, "size", None)
            is_large = size is None or size >= zipfile.ZIP64_LIMIT
            self._file = self._archive.open(_about(self._item, 0o100644), "w", force_zip64=is_large)
        return self._file


class _Buffer:
    """Archive bytes not sent yet. It does not support seeking, so everything is written in order."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is no file beneath."""

    def take(self) -> bytes:
        """Return everything written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _about(item: _Item, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(item.path, _date(item.metadata))
    info.external_attr = mode << 16 | (0x10 if stat.S_ISDIR(mode) else 0)
    return info


def _date(metadata: Mapping[str, object]) -> tuple[int, int, int, int, int, int]:
    """When the file was last modified, or else linked."""
    times = metadata.get("tahoe")
    linked = times.get("linkmotime") if isinstance(times, Mapping) else None
    seconds = next((found for found in map(seconds_in, (metadata.get("mtime"), linked)) if found is not None), 0.0)
    moment = time.gmtime(min(max(seconds, 0.0), _LATEST_S))[:6]
    return max(moment, _EARLIEST)


def _safe(name: str) -> str | None:
    """The name as it may appear in an archive; None if it may not."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        return None
    shown = "".join("_" if character in _ODD or not character.isprintable() else character for character in name)
    return shown.encode("utf-8", "replace").decode("utf-8")


def _mark(cap: DirectoryCap) -> str:
    """An identifier shared by all capabilities of a directory; empty for a literal one, which cannot contain itself."""
    verify = cap.verify_cap()
    return "" if verify is None else verify.to_string()
