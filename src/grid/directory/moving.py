"""Moves a link from one directory to another: which are refused, and which order of steps loses nothing. [spec directories 7]

It refuses to move a directory into or below itself, however the two are named, and checks that
two clients do not do together what each alone is refused (decision 0157). If something fails, there may be one link too many,
but never one too few.

Cost of a move between two directories: two publishes, a read of the target, and one of each directory on the path to it, two
if a directory moves. If the target is given only by its capability, also a read of each directory below the moved one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from attrs import evolve
from twisted.internet.defer import Deferred, FirstError, gatherResults

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.edits import Overwrite, RemoveChild, SetChild
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Target
from grid.directory.removals import restore
from grid.directory.store import OpenDirectory, Store, Trail
from grid.errors import (
    ChildOfWrongTypeError,
    ConflictError,
    DirectoryError,
    ExistingChildError,
    GridError,
    NoSuchChildError,
    NotWriteableError,
)
from grid.runtime import run_sized, with_deadline

MAX_SEARCHED = 1000
"""Most directories below a moved one that are searched for the target."""

SEARCH_S = 30.0
"""Time limit of that search."""

SEARCHED_AT_ONCE = 8
"""Directories that are read at the same time."""


async def follow_trail(store: Store, root: DirectoryCap, names: Sequence[str]) -> Trail:
    """Follow the names from the root. NoSuchChildError, ChildOfWrongTypeError; also raises the errors of a listing."""
    trail = Trail.of(root)
    for given in names:
        name = normalize_name(given)
        child = (await store.directory(trail.end).list()).get(name)
        if child is None:
            raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
        if not isinstance(child.target, DirectoryCap):
            raise ChildOfWrongTypeError(f"{name!r} is not a directory", name=name)
        trail = trail.below(name, child.target)
    return trail


async def move(
    store: Store, source: Trail, name: str, target: Trail, new_name: str, *, overwrite: Overwrite = True
) -> Child | None:
    """Move or rename a link, with its user metadata. Returns the child that it replaced, if any.

    Within one directory this is one publish. Between two, the new link is made first. The old one is removed once the path to the target
    was checked again, and restored if that path is gone afterwards. The same name in the same directory: nothing happens.
    NoSuchChildError, NotWriteableError for either directory, GridError for a directory into or below itself;
    ConflictError if the target was itself moved or unlinked meanwhile, and both links exist; also raises the errors of `edit`.
    """
    require_writable(source, target)
    name, new_name = normalize_name(name), normalize_name(new_name)
    is_rename = same_directory(source.end, target.end)
    if is_rename and name == new_name:
        return None
    here = store.directory(source.end)
    children = await here.list()
    child = find_child(children, name)
    add = SetChild(new_name, child.target, child.metadata, overwrite)
    remove = RemoveChild(name, must_exist=False, only=child.target)
    if is_rename:
        return _of_name(await here.edit([add, remove]), new_name)
    way = await settle_way(store, source, children, name, target)
    replaced = _of_name(await store.directory(target.end).edit([add]), new_name)
    await _require_way(store, way, name)
    await _remove(here, [evolve(remove, beside=_links_from(source.end, way))], name)
    try:
        await _require_links(store, {name: way}, target.end, {name: (new_name, child)})
    except ConflictError:
        await _put_back(here, name, child)
        raise
    return replaced


async def move_all(store: Store, source: Trail, names: Sequence[str], target: Trail) -> None:
    """Move links to another directory under their own names: all of them, or none, with one publish in each directory.

    The same directory: nothing happens. ExistingChildError if a name is taken; also raises the errors of `move`.
    """
    require_writable(source, target)
    if same_directory(source.end, target.end):
        return
    here = store.directory(source.end)
    children = await here.list()
    moved = {name: find_child(children, name) for name in map(normalize_name, names)}
    ways = {name: await settle_way(store, source, children, name, target) for name in moved}
    adds = [SetChild(name, child.target, child.metadata, overwrite=False) for name, child in moved.items()]
    await store.directory(target.end).edit(adds)
    for way in set(ways.values()):
        await _require_way(store, way, next(iter(moved)))
    removes = [
        RemoveChild(name, must_exist=False, only=child.target, beside=_links_from(source.end, ways[name]))
        for name, child in moved.items()
    ]
    await _remove(here, removes, next(iter(moved)))
    try:
        await _require_links(store, ways, target.end, {name: (name, child) for name, child in moved.items()})
    except ConflictError:
        for name, child in moved.items():
            await _put_back(here, name, child)
        raise


def _of_name(replaced: Mapping[str, Child] | None, name: str) -> Child | None:
    return None if replaced is None else replaced.get(name)


def require_writable(*trails: Trail) -> None:
    """Raise NotWriteableError unless both directories can be changed."""
    for trail in trails:
        if trail.end.authority != "write":
            raise NotWriteableError("this capability cannot change the directory: use its write capability")


def find_child(children: Mapping[str, Child], name: str) -> Child:
    """The child of that name, or NoSuchChildError."""
    child = children.get(name)
    if child is None:
        raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
    return child


async def settle_way(store: Store, source: Trail, children: Mapping[str, Child], name: str, target: Trail) -> Trail:
    """A path to the target that remains when `name` is gone from the source, whose children these are.

    GridError if every known path leads through the moved object, or if that is unknown.
    """
    moved = children[name].target
    if not may_hold_others(moved):
        return target
    assert isinstance(moved, DirectoryCap)
    way = await run_sized(store.runtime.cpu, len(children), _from_the_source, source, children, name, target)
    if any(same_directory(moved, each) for each in (way or target).directories):
        raise GridError(f"{name!r} cannot be moved into itself, or into a directory below it")
    if way is None and await _is_below(store, moved, target.directories[0], name):
        raise GridError(f"{name!r} cannot be moved below itself: that directory is in it")
    return way or target


def may_hold_others(target: Target) -> bool:
    """Whether a directory that can be changed may be below it, or be it."""
    return not isinstance(target, UnknownChild) and isinstance(target, DirectoryCap) and target.is_mutable


def same_directory(first: DirectoryCap, second: DirectoryCap) -> bool:
    """Whether both are capabilities of the same mutable directory, whatever they permit."""
    return first.storage_index is not None and first.storage_index == second.storage_index


def _from_the_source(source: Trail, children: Mapping[str, Child], name: str, target: Trail) -> Trail | None:
    """The target's trail from the root of the source's, if the two meet above the source or just below it."""
    root = target.directories[0]
    for depth, above in enumerate(source.directories):
        if same_directory(above, root):
            names = (*source.names[:depth], *target.names)
            return Trail(directories=(*source.directories[:depth], *target.directories), names=names)
    for other, child in children.items():
        if other != name and isinstance(child.target, DirectoryCap) and same_directory(child.target, root):
            names = (*source.names, other, *target.names)
            return Trail(directories=(*source.directories, *target.directories), names=names)
    return None


async def _is_below(store: Store, top: DirectoryCap, wanted: DirectoryCap, name: str) -> bool:
    """Whether one directory is below another, searched within limits; GridError if that remains unknown."""

    def too_long() -> Exception:
        return GridError(_unknown(name, "looking through it takes too long"))

    return await with_deadline(store.runtime.clock, _search(store, top, wanted, name), SEARCH_S, too_long)


async def _search(store: Store, top: DirectoryCap, wanted: DirectoryCap, name: str) -> bool:
    seen = {top.storage_index}
    waiting = [top]
    while waiting:
        now, waiting = waiting[:SEARCHED_AT_ONCE], waiting[SEARCHED_AT_ONCE:]
        reading = [Deferred.fromCoroutine(_directories_in(store, each)) for each in now]
        try:
            found = await gatherResults(reading, consumeErrors=True)
        except FirstError as error:
            if not error.subFailure.check(GridError):
                error.subFailure.raiseException()
            raise GridError(_unknown(name, "a directory below it cannot be read")) from error.subFailure.value
        for each in (cap for caps in found for cap in caps):
            if same_directory(each, wanted):
                return True
            if each.storage_index not in seen:
                seen.add(each.storage_index)
                waiting.append(each)
            if len(seen) > MAX_SEARCHED:
                raise GridError(_unknown(name, f"more than {MAX_SEARCHED} directories are below it"))
    return False


async def _directories_in(store: Store, cap: DirectoryCap) -> list[DirectoryCap]:
    children = await store.directory(cap).list()
    return await run_sized(store.runtime.cpu, len(children), _directories_of, children)


def _directories_of(children: Mapping[str, Child]) -> list[DirectoryCap]:
    targets = [child.target for child in children.values() if may_hold_others(child.target)]
    return [target for target in targets if isinstance(target, DirectoryCap)]


def _unknown(name: str, why: str) -> str:
    return (
        f"cannot tell whether the target is inside {name!r}: {why}; "
        "give both by paths from one root, or link it there first and unlink it here afterwards"
    )


def _links_from(directory: DirectoryCap, way: Trail) -> tuple[tuple[str, DirectoryCap], ...]:
    """The links of this directory that are on the path."""
    steps = zip(way.directories, way.names, way.directories[1:], strict=False)
    return tuple((name, below) for above, name, below in steps if same_directory(above, directory))


async def _require_way(store: Store, way: Trail, name: str) -> None:
    """Raise ConflictError if the path no longer leads through the same directories, or cannot be read."""
    try:
        found = await follow_trail(store, way.directories[0], way.names)
    except GridError as error:
        raise _gone(name) from error
    if not all(same_directory(one, other) for one, other in zip(found.directories, way.directories, strict=True)):
        raise _gone(name)


async def _remove(here: OpenDirectory, removes: Sequence[RemoveChild], name: str) -> None:
    try:
        await here.edit(removes)
    except DirectoryError as error:
        raise _gone(name) from error


async def _require_links(
    store: Store, ways: Mapping[str, Trail], end: DirectoryCap, moved: Mapping[str, tuple[str, Child]]
) -> None:
    """Raise ConflictError if another client has removed a new link (for example moved it back) or the path to a directory.

    moved: new names and children, by old names.
    """
    held = {ways[name]: name for name, (_, child) in moved.items() if may_hold_others(child.target)}
    for way, name in held.items():
        await _require_way(store, way, name)
    first = next(iter(moved))
    try:
        children = await store.directory(end).list()
    except GridError as error:
        raise _gone(first) from error
    for name, (new_name, child) in moved.items():
        found = children.get(new_name)
        if found is None or not (isinstance(child.target, UnknownChild) or found.target == child.target):
            raise _gone(name)


async def _put_back(here: OpenDirectory, name: str, child: Child) -> None:
    with suppress(ExistingChildError):  # The error about the move is raised in any case.
        await restore(here, name, child)


def _gone(name: str) -> ConflictError:
    return ConflictError(
        f"somebody moved or unlinked {name!r}, or the directory into which it was moved, at the same time; it is "
        f"still linked at its old place, and may be at the new one, too: check both, and unlink the wrong one"
    )
