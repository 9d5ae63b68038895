"""Changes of a mutable directory, as values, and their effect on its entries. [spec directories 4, 7]

Pure: the same edits can be applied again to newer contents. An entry that no edit names keeps its bytes.
An entry that cannot be listed counts as absent; only an edit with overwrite replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.metadata import Metadata
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Entries, Entry, Target, make_entry
from grid.errors import ChildOfWrongTypeError, ExistingChildError, LinkChangedError, MayHoldError, NoSuchChildError
from grid.values import field, frozen

Overwrite = bool | Literal["only-files"]
"""Whether an existing child may be replaced. "only-files": unless it is a directory."""

NONCE = "nonce"
"""Where a link's metadata says which request made it, if its maker must tell it from another's with the same target."""


@frozen
class SetChild:
    """Add or replace a link. metadata: the caller's; None keeps that of an old link with this name.

    With a NONCE in the metadata, and without overwrite, another's link with the same target is in the way, too.
    only: replace a link that leads there, and do nothing if it is gone or leads elsewhere by now.
    """

    name: str
    target: Target = field(repr=False)
    metadata: Metadata | None = None
    overwrite: Overwrite = True
    only: Target | None = field(default=None, repr=False)


@frozen
class RemoveChild:
    """Remove a link. must_be: the required type, if any.

    only: do nothing if the link leads elsewhere by now. beside: links of this directory that must still exist,
    with the directories they lead to; LinkChangedError if one does not.
    """

    name: str
    must_exist: bool = True
    must_be: Literal["file", "directory"] | None = None
    only: Target | None = field(default=None, repr=False)
    beside: tuple[tuple[str, DirectoryCap], ...] = ()


@frozen
class SetMetadata:
    """Replace the caller's part of a link's metadata."""

    name: str
    metadata: Metadata


Edit = SetChild | RemoveChild | SetMetadata

Replaced = tuple[Sequence[str], Child, Target | None]
"""An entry that is no more: its names below some directory, what it was, and its new target, None if it was removed."""

OnReplaced = Callable[[DirectoryCap, Sequence[Replaced]], None]
"""Called with the entries of one directory that were replaced or removed."""


@frozen(kw_only=True)
class Edited:
    """entries: after all edits. changed: whether any differs. previous: children that were replaced or removed, by name."""

    entries: Entries = field(repr=False)
    changed: bool
    previous: Mapping[str, Child]


def apply_edits(entries: Entries, edits: Sequence[Edit], *, now: float, retrying: bool, write_key: bytes) -> Edited:
    """Apply all edits in order, or raise the error of the first that does not fit.

    now: Unix time. retrying: an earlier attempt may have been stored, so that what an edit removes may be
    gone, and what it adds may exist. write_key: the directory's, 16 bytes.
    ExistingChildError, NoSuchChildError, ChildOfWrongTypeError; CapError for a child that no directory accepts; FormatError.
    """
    after = dict(entries)
    previous: dict[str, Child] = {}
    changed = False
    for edit in edits:
        name = normalize_name(edit.name)
        old = after.get(name)
        if isinstance(edit, RemoveChild):
            require_beside(edit, {other: found.child for other, _ in edit.beside if (found := after.get(other))})
        new = _apply(name, old, edit, now, retrying, write_key)
        if new is old:
            continue
        changed = True
        if not isinstance(edit, SetMetadata) and old is not None and old.child is not None:
            previous.setdefault(name, old.child)
        if new is None:
            del after[name]
        else:
            after[name] = new
    return Edited(entries=after, changed=changed, previous=previous)


def previous_of(error: MayHoldError) -> dict[str, Child]:
    """The children that a change replaced or removed that may hold, by name."""
    return {name: child for name, child in (error.previous or {}).items() if isinstance(child, Child)}


def updated_metadata(old: Metadata | None, given: Metadata | None, now: float) -> dict[str, object]:
    """The metadata of a link that is made or changed now. old: of the link with that name before. [spec directories 4]"""
    before: Metadata = {} if old is None else old
    result = dict(before if given is None else given)
    result.pop("tahoe", None)
    kept = before.get("tahoe")
    times: dict[str, object] = dict(kept) if isinstance(kept, Mapping) else {}
    times.setdefault("linkcrtime", before.get("ctime", now))
    times["linkmotime"] = now
    result["tahoe"] = times
    return result


def read_only(target: Target) -> Target:
    """The target with read authority only."""
    if isinstance(target, UnknownChild):
        return target if target.error is not None else UnknownChild(read=target.read)
    return target.read_cap()


def require_beside(edit: RemoveChild, children: Mapping[str, Child | None]) -> None:
    """Raise LinkChangedError unless the links on which the removal relies still lead to the same directories."""
    for name, directory in edit.beside:
        child = children.get(name)
        target = None if child is None else child.target
        if not isinstance(target, DirectoryCap) or target.storage_index != directory.storage_index:
            raise LinkChangedError(f"{name!r} was removed, or now leads elsewhere", name=name)


def _apply(name: str, old: Entry | None, edit: Edit, now: float, retrying: bool, write_key: bytes) -> Entry | None:
    """The entry of that name after the edit; `old` itself if nothing changes."""
    child = None if old is None else old.child
    match edit:
        case SetChild():
            if edit.only is not None and (child is None or child.target != edit.only):
                return old
            _require_replaceable(name, old, edit, retrying)
            metadata = updated_metadata(None if child is None else child.metadata, edit.metadata, now)
            return _entry(name, edit.target, metadata, write_key)
        case SetMetadata():
            if child is None:
                raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
            return _entry(name, child.target, updated_metadata(child.metadata, edit.metadata, now), write_key)
        case RemoveChild():
            if child is None:
                if edit.must_exist and not retrying:
                    raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
                return old
            _require_type(name, child.target, edit.must_be)
            return None if edit.only is None or edit.only == child.target else old


def _entry(name: str, target: Target, metadata: dict[str, object], write_key: bytes) -> Entry:
    if metadata.get("no-write"):
        target = read_only(target)
    return make_entry(name, Child(target=target, metadata=metadata), mutable=True, write_key=write_key)


def _require_replaceable(name: str, old: Entry | None, edit: SetChild, retrying: bool) -> None:
    if old is None or edit.overwrite is True:
        return
    if old.child is not None:
        if retrying and _may_have_made(edit, old.child):
            return  # In an earlier attempt.
        if edit.overwrite == "only-files" and not isinstance(old.child.target, DirectoryCap):
            return
    elif edit.overwrite == "only-files":
        return
    raise ExistingChildError(f"there is already a {name!r} in the directory", name=name)


def _may_have_made(edit: SetChild, child: Child) -> bool:
    nonce = (edit.metadata or {}).get(NONCE)
    is_ours = nonce is None or (child.metadata or {}).get(NONCE) == nonce
    return is_ours and child.target in (edit.target, read_only(edit.target))


def _require_type(name: str, target: Target, must_be: Literal["file", "directory"] | None) -> None:
    if must_be is None or isinstance(target, UnknownChild):
        return
    found = "directory" if isinstance(target, DirectoryCap) else "file"
    if found != must_be:
        raise ChildOfWrongTypeError(f"{name!r} is a {found}, not a {must_be}", name=name)
