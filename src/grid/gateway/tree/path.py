"""The way from the capability in a URL along the names after it. [spec webapi 1.2, 5.1]

Owns what stands in the way of a path: files in its middle, names that are missing, empty segments. Nothing is made while
walking: directories that a request would make are made together with what it stores.

Cost: one read of each directory on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.edits import Edit
from grid.directory.names import normalize_name
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.errors import GridError, NotEnoughSharesError
from grid.gateway.faults import BadRequest, Gone, HttpFault, NotFound, Shape, fault_of
from grid.gateway.http.exchange import parse_child
from grid.gateway.shared.services import Services
from grid.limits import MAX_PATH_DEPTH


@frozen(kw_only=True)
class TreePath:
    """The part of a URL's path after `/uri`. names: in NFC. has_slash: whether it ends with one."""

    root: Child = field(repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    has_slash: bool = False


@frozen(kw_only=True)
class Reached:
    """How far a path leads. child: the last thing that is there. parent: what links to it, None for the URL's own cap.

    name: its name there. missing: the names that are not there; child is the directory that lacks the first of them.
    trail: the way to the child, if that is a directory, or to its parent.
    """

    child: Child = field(repr=False)
    parent: Directory | None = field(default=None, repr=False)
    name: str = ""
    missing: tuple[str, ...] = ()
    trail: Trail | None = None


def parse_path(segments: Sequence[str]) -> TreePath:
    """The path of the segments from the capability on; BadRequest."""
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
    """Something in the middle of a path is no directory."""


async def follow(gateway: Services, path: TreePath) -> Reached:
    """How far the path leads. Obstacle; HttpFault, as a page, for a directory on the way that cannot be read."""
    reached = Reached(child=path.root, trail=_longer(None, "", path.root))
    for depth, name in enumerate(path.names):
        directory = open_directory(gateway, reached.child)
        found = (await list_children(directory, shape="page")).get(name)
        if found is None:
            return evolve(reached, missing=path.names[depth:])
        reached = Reached(child=found, parent=directory, name=name, trail=_longer(reached.trail, name, found))
    return reached


def _longer(trail: Trail | None, name: str, child: Child) -> Trail | None:
    """The trail with the child, if that is a directory."""
    if isinstance(child.target, UnknownChild) or not isinstance(child.target, DirectoryCap):
        return trail
    return Trail.of(child.target) if trail is None else trail.below(name, child.target)


def open_directory(gateway: Services, child: Child) -> Directory:
    """The directory that a child is. Obstacle if it is none; Forbidden if it may not be shown; CapError."""
    target = child.target
    if isinstance(target, UnknownChild) or not isinstance(target, DirectoryCap):
        raise Obstacle("a path leads through something that is not a directory")
    if target.authority == "verify":
        raise BadRequest("this is a verify capability; nothing can be read with it", shape="page")
    gateway.require_allowed(target)
    return gateway.store.directory(target)


async def list_children(directory: Directory, *, shape: Shape = "plain") -> Mapping[str, Child]:
    """The children; HttpFault if they cannot be read."""
    try:
        return await directory.list()
    except GridError as error:
        raise lost(directory, error, shape=shape) from error


def lost(directory: Directory, error: GridError, *, shape: Shape = "plain") -> HttpFault:
    """The message for a directory that cannot be read: of a mutable one, no version can be."""
    if isinstance(error, NotEnoughSharesError) and directory.is_mutable:
        return Gone(str(error), shape=shape, kind="UnrecoverableFileError")
    return fault_of(error, shape=shape)


@frozen
class NewBranch:
    """Directories of a path that are not there yet, of which the last is to get a link.

    They are made when the link is: whatever fails before leaves nothing behind.
    """

    above: Directory
    names: tuple[str, ...]

    @property
    def is_writable(self) -> bool:
        """Whether they can be made."""
        return self.above.is_writable

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child]:
        """Make them, and all of the edits in the last; what was replaced there, by name. The errors of `Directory`."""
        directory = await self.above.make_directories(self.names)
        return await directory.edit(edits)


async def find_target_directory(gateway: Services, text: str) -> Trail:
    """The directory that `to_dir=` names: a capability, and a path after it whose slashes are as they are.

    NotFound; BadRequest if it is no directory.
    """
    path = parse_path(text.strip().removesuffix("/").split("/"))
    try:
        reached = await follow(gateway, path)
        if reached.missing:
            raise NotFound(f"No such child: {reached.missing[0]}", shape="page")
        open_directory(gateway, reached.child)
    except Obstacle:
        raise BadRequest("the place to move to is not a directory (to_dir=)") from None
    assert reached.trail is not None
    return reached.trail
