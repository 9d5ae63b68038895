"""Directories of the grid in a transfer: what lies below one, what a link tells of its file, and how links are made.

One change links the files of a folder; a name that leads to a directory fails alone. The author of a directory controls its contents: loops are cut, and directories that unfold without end are refused.
[decision 498]
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from grid.caps import DirectoryCap, SliceCap
from grid.directory.edits import SetChild, previous_of
from grid.directory.metadata import nanoseconds_in, seconds_in
from grid.directory.names import MAX_DEPTH
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.errors import GridError, MayHoldError
from grid.transfer.ends import EndError, Entry, LeftOut
from grid.values import field, frozen

MOST_REPEATED = 5_000_000
"""Entries that are listed once more, because their directory is linked several times: a few directories that link each
other twice can unfold beyond any disk's size.
"""

List = Callable[[DirectoryCap], Awaitable[Mapping[str, Child] | GridError]]
"""Returns the children of a directory, or why it cannot be read."""


@frozen
class _Waiting:
    """A directory to be listed, by its path. above: the one that it was found in."""

    path: str
    cap: DirectoryCap = field(repr=False)
    above: _Waiting | None = None
    depth: int = 0

    def is_within(self, cap: DirectoryCap) -> bool:
        """Whether it is this directory, or lies in it. One in its own capability cannot contain itself."""
        index, here = cap.storage_index, self
        while index is not None and here.cap.storage_index != index:
            if here.above is None:
                return False
            here = here.above
        return index is not None


async def walk(top: DirectoryCap, children_of: List) -> AsyncIterator[tuple[str, Child] | LeftOut]:
    """Yield every child below a directory that is none, with its path; only one directory's children are in memory.

    Those of packs come in the order in which they lie there, so that each pack is read once, from front to back.
    Raises the error of the top directory; EndError if it unfolds beyond MOST_REPEATED.
    """
    waiting = [_Waiting("", top)]
    listed: set[bytes] = set()
    repeated = 0
    while waiting:
        here = waiting.pop()
        children = await children_of(here.cap)
        if isinstance(children, GridError):
            if not here.path:
                raise children
            yield LeftOut(here.path, str(children), is_gap=True)
            continue
        index = here.cap.storage_index
        if index is not None and index in listed:
            repeated += 1 + len(children)
            if repeated > MOST_REPEATED:
                raise EndError(
                    f"{here.path}: its directories are linked again and again: copy what is in them piece by piece"
                )
        elif index is not None:
            listed.add(index)
        for name, child in sorted(children.items(), key=_place):
            path = f"{here.path}/{name}" if here.path else name
            if not isinstance(child.target, DirectoryCap):
                yield path, child
            elif here.is_within(child.target):
                yield LeftOut(path, "this directory contains itself")
            elif here.depth >= MAX_DEPTH:
                yield LeftOut(path, "it is nested too deeply", is_gap=True)
            else:
                waiting.append(_Waiting(path, child.target, here, here.depth + 1))


class Linking:
    """One change. It runs on the client's reactor.

    directory: where the links are, once it has run. replaced: what was there before, by the name of the link. refused: the
    errors of files that are not linked. doubt: the error if the links only may hold.
    """

    def __init__(self, root: Directory, path: Sequence[str], edits: Mapping[str, SetChild]) -> None:
        """path: from the root to the folder, which is made if it is missing. edits: by the names of their files."""
        self.directory, self._path, self._edits = root, path, edits
        self.replaced: Mapping[str, Child] = {}
        self.refused: Mapping[str, GridError] = {}
        self.doubt: MayHoldError | None = None

    async def run(self) -> None:
        """Make the links. Raises the errors of `make_directories`, and those of `edit_by` that concern all of them."""
        if self._path:
            self.directory = await self.directory.make_directories(self._path)
        try:
            self.replaced = await self.directory.edit_by(self._choose, len(self._edits))
        except MayHoldError as error:
            self.replaced, self.doubt = previous_of(error), error

    def _choose(self, look: Callable[[str], Child | None], retrying: bool) -> Sequence[SetChild]:
        """The edits that fit the directory as it is now."""
        there = {name: look(edit.name) for name, edit in self._edits.items()}
        self.refused = {
            name: EndError(f"{name}: there is a directory of this name")
            for name, child in there.items()
            if child is not None and isinstance(child.target, DirectoryCap)
        }
        return [edit for name, edit in self._edits.items() if name not in self.refused]


def leads_elsewhere(name: str) -> bool:
    """Whether a path, as the target of another kind would read it, is not the one that the grid has."""
    return "\0" in name or any(part in ("", ".", "..") for part in name.split("/"))


def entry_of(name: str, child: Child, size: int | None, tag: str) -> Entry:
    """The entry of a link: time and mode as backups record them."""
    metadata = child.metadata
    mode, noted, mtime_ns = (
        metadata.get("st_mode"),
        metadata.get("attributes"),
        nanoseconds_in(metadata.get("mtime_ns")),
    )
    if mtime_ns is None:
        mtime = _time_of(metadata)
        mtime_ns = None if mtime is None else round(mtime * 1e9)
    kept = noted.items() if isinstance(noted, Mapping) else ()
    attributes = {str(key): value for key, value in kept if isinstance(value, str)}
    mode = mode & 0o777 if isinstance(mode, int) else None
    return Entry(name=name, size=size, mtime_ns=mtime_ns, tag=tag, mode=mode, attributes=attributes)


def metadata_of(entry: Entry) -> dict[str, object]:
    """What a new link notes of its file."""
    kept: dict[str, object] = {}
    if (mtime_ns := nanoseconds_in(entry.mtime_ns)) is not None:
        kept |= {"mtime": mtime_ns / 1e9, "mtime_ns": mtime_ns}
    if entry.mode is not None:
        kept["st_mode"] = entry.mode
    if entry.attributes:
        kept["attributes"] = dict(entry.attributes)
    return kept


def _place(named: tuple[str, Child]) -> tuple[bytes, int]:
    """Where a file lies in its pack, for sorting; files outside of packs come first, as listed."""
    cap = named[1].target
    return (cap.pack.ueb_hash, cap.offset) if isinstance(cap, SliceCap) else (b"", 0)


def _time_of(metadata: Mapping[str, object]) -> float | None:
    """The time of the file, or else of its link."""
    times = metadata.get("tahoe")
    linked = times.get("linkmotime") if isinstance(times, Mapping) else None
    noted = seconds_in(metadata.get("mtime"))
    return seconds_in(linked) if noted is None else noted
