"""Follows the names after the capability in a URL. [spec webapi 1.2, 5.1]

Owns what blocks a path: files in its middle, missing names, empty segments. Following a path creates nothing; missing
directories are created together with what the request stores.

Cost: one read of each directory on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.edits import Edit
from grid.directory.names import normalize_name
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.errors import GridError, NotEnoughSharesError
from grid.gateway.faults import BadRequest, Gone, HttpFault, NoSuchChild, Shape, fault_of
from grid.gateway.http.exchange import parse_child
from grid.gateway.shared.services import Services
from grid.limits import MAX_PATH_DEPTH
from grid.values import frozen


@frozen(kw_only=True)
class TreePath:
    """The part of a URL's path after `/uri`. names: in NFC. has_slash: whether it ends with a slash."""

    root: Child = field(repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    has_slash: bool = False


@frozen(kw_only=True)
class Reached:
    """How far a path leads. child: the last existing object. parent: its directory, None for the URL's own capability.

    name: the child's name there. missing: the names that do not exist; child is the directory that lacks the first of
    them. trail: the path to the child, if that is a directory, or else to its parent. siblings: what the parent contains.
    """

    child: Child = field(repr=False)
    parent: Directory | None = field(default=None, repr=False)
    name: str = ""
    missing: tuple[str, ...] = ()
    trail: Trail | None = None
    siblings: Mapping[str, Child] = field(factory=dict, repr=False)


def parse_path(segments: Sequence[str]) -> TreePath:
    """Parse the segments from the capability on; BadRequest."""
    cap, *names = segments
    has_slash = bool(names) and names[-1] == ""
    if has_slash:
        names.pop()
    if not cap or "" in names:
        raise BadRequest("a segment of the path is empty", shape="page")
    if len(names) > MAX_PATH_DEPTH:
        raise BadRequest(f"a path has at most {MAX_PATH_DEPTH} names", shape="page")
    return TreePath(root=parse_child(cap), names=tuple(map(normalize_name, names)), has_slash=has_slash)


class Obstacle(GridError):
    """An object in the middle of a path is not a directory."""


async def follow(gateway: Services, path: TreePath) -> Reached:
    """Follow the path as far as it leads. Obstacle; HttpFault, as a page, for an unreadable directory on the way."""
    reached = Reached(child=path.root, trail=_longer(None, "", path.root))
    for depth, name in enumerate(path.names):
        directory = open_directory(gateway, reached.child)
        children = await list_children(directory, shape="page")
        found = children.get(name)
        if found is None:
            return evolve(reached, missing=path.names[depth:])
        if not isinstance(found.target, UnknownChild):
            gateway.history.names.note(found.target.storage_index, name)
        trail = _longer(reached.trail, name, found)
        reached = Reached(child=found, parent=directory, name=name, trail=trail, siblings=children)
    return reached


def _longer(trail: Trail | None, name: str, child: Child) -> Trail | None:
    """The trail extended by the child, if that is a directory."""
    if isinstance(child.target, UnknownChild) or not isinstance(child.target, DirectoryCap):
        return trail
    return Trail.of(child.target) if trail is None else trail.below(name, child.target)


def open_directory(gateway: Services, child: Child) -> Directory:
    """Open a child as a directory. Obstacle if it is not one; Forbidden if it must not be shown; CapError."""
    target = child.target
    if isinstance(target, UnknownChild) or not isinstance(target, DirectoryCap):
        raise Obstacle("a path leads through something that is not a directory")
    if target.authority == "verify":
        raise BadRequest("this is a verify capability: it cannot read anything", shape="page")
    gateway.require_allowed(target)
    return gateway.store.directory(target)


async def list_children(directory: Directory, *, shape: Shape = "plain") -> Mapping[str, Child]:
    """List the children; HttpFault if they cannot be read."""
    try:
        return await directory.list()
    except GridError as error:
        raise lost(directory, error, shape=shape) from error


def lost(directory: Directory, error: GridError, *, shape: Shape = "plain") -> HttpFault:
    """The fault for an unreadable directory; for a mutable one, it says that no version is recoverable."""
    if isinstance(error, NotEnoughSharesError) and directory.is_mutable:
        return Gone(str(error), shape=shape, kind="UnrecoverableFileError")
    return fault_of(error, shape=shape)


@frozen
class NewBranch:
    """The missing directories of a path, of which the last gets a link.

    They are created when the link is made, so an earlier failure leaves nothing behind.
    """

    above: Directory
    names: tuple[str, ...]

    @property
    def is_writable(self) -> bool:
        """Whether they can be created."""
        return self.above.is_writable

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child]:
        """Create them and apply all edits to the last; return what was replaced there, by name.

        Raises the errors of `Directory`.
        """
        directory = await self.above.make_directories(self.names)
        return await directory.edit(edits)


async def find_target_directory(gateway: Services, text: str) -> Trail:
    """Find the directory that `to_dir=` names: a capability, optionally followed by a path.

    NoSuchChild; BadRequest if it is not a directory.
    """
    path = parse_path(text.strip().removesuffix("/").split("/"))
    try:
        reached = await follow(gateway, path)
        if reached.missing:
            raise NoSuchChild(reached.missing[0])
        open_directory(gateway, reached.child)
    except Obstacle:
        if isinstance(path.root.target, UnknownChild):
            raise BadRequest("the capability in to_dir= is not valid. Was it copied completely?") from None
        raise BadRequest("the destination is not a directory (to_dir=)") from None
    assert reached.trail is not None
    return reached.trail
