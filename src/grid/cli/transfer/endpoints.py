"""The arguments of a copy, and what exists there: local files or directories, or those of the grid."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from grid.caps import Cap, DirectoryCap, KnownCap, UnknownChild, require_usable
from grid.cli.arguments.remote import RemotePath
from grid.cli.transfer.copy_plan import CopyError, SourceFacts, SourceKind, TargetFacts, TargetKind
from grid.cli.transfer.tree import RemoteOrigin
from grid.directory.pack import Child
from grid.directory.store import Store
from grid.errors import CapError, ChildOfWrongTypeError, NoSuchChildError
from grid.values import field, frozen


@frozen
class LocalEndpoint:
    """A local path. shown: as typed."""

    path: str
    shown: str

    @property
    def ends_with_slash(self) -> bool:
        """Whether its form says that it is a directory."""
        return self.path.endswith("/")


@frozen
class RemoteEndpoint:
    """A path below a capability of the grid. shown: as typed, but without a capability. argument: with it.

    suggestion: what was probably meant if nothing is there.
    """

    root: Cap = field(repr=False)
    path: tuple[str, ...]
    shown: str
    ends_with_slash: bool = False
    argument: str = field(default="", repr=False)
    suggestion: str = ""

    def below(self, names: Sequence[str]) -> RemotePath:
        """A path below it, for messages."""
        assert isinstance(self.root, KnownCap)
        path = RemotePath(root=self.root, names=self.path, shown=self.shown, argument=self.argument)
        for name in names:
            path = path.with_name(name)
        return path


Endpoint = LocalEndpoint | RemoteEndpoint


def examine_local_source(endpoint: LocalEndpoint) -> SourceFacts:
    """Examine a local source, following symbolic links."""
    kind: SourceKind = "other"
    try:
        mode = os.stat(endpoint.path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        # A file whose name is followed by a slash exists, but is not a directory.
        kind = "file" if endpoint.ends_with_slash and os.path.isfile(endpoint.path.rstrip("/")) else "missing"
    except ValueError:
        kind = "missing"
    except OSError as problem:
        raise CopyError(f"Error examining source '{endpoint.shown}': {problem.strerror}") from None
    else:
        kind = "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"
    name = os.path.basename(os.path.abspath(endpoint.path)) or None
    return SourceFacts(shown=endpoint.shown, kind=kind, name=name, ends_with_slash=endpoint.ends_with_slash)


def examine_local_target(endpoint: LocalEndpoint) -> TargetFacts:
    """What a local target is."""
    kind: TargetKind = "missing"
    try:
        mode = os.stat(endpoint.path).st_mode
        kind = "directory" if stat.S_ISDIR(mode) else "file"
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        kind = "file"
    except (OSError, ValueError) as problem:
        raise CopyError(f"Error examining target '{endpoint.shown}': {problem}") from None
    return TargetFacts(shown=endpoint.shown, kind=kind, ends_with_slash=endpoint.ends_with_slash)


async def find_remote(store: Store, endpoint: RemoteEndpoint) -> RemoteOrigin | None:
    """Find what exists at an endpoint of the grid, or None; CopyError, CapError, or errors of reading a directory."""
    root = require_usable(endpoint.root)
    if not endpoint.path:
        return RemoteOrigin(cap=_readable(root), where=endpoint.shown)
    if not isinstance(root, DirectoryCap):
        raise ChildOfWrongTypeError(
            f"'{endpoint.shown}' leads through something that is not a directory", name=endpoint.shown
        )
    try:
        child: Child = await store.directory(root).get(endpoint.path)
    except NoSuchChildError:
        return None
    if isinstance(child.target, UnknownChild):
        raise CopyError(f"Cannot copy unknown nodes (ones with unknown capabilities): '{endpoint.shown}'")
    return RemoteOrigin(cap=child.target, where=endpoint.shown.rstrip("/"), metadata=child.metadata)


def describe_remote_source(endpoint: RemoteEndpoint, found: RemoteOrigin | None) -> SourceFacts:
    """The facts of a source on the grid."""
    kind: SourceKind = "missing" if found is None else "directory" if isinstance(found.cap, DirectoryCap) else "file"
    name = endpoint.path[-1] if endpoint.path else None
    return SourceFacts(shown=endpoint.shown, kind=kind, name=name, ends_with_slash=endpoint.ends_with_slash)


def describe_remote_target(endpoint: RemoteEndpoint, found: RemoteOrigin | None) -> TargetFacts:
    """The facts of a target on the grid."""
    kind: TargetKind = "missing" if found is None else "directory" if isinstance(found.cap, DirectoryCap) else "file"
    return TargetFacts(shown=endpoint.shown, kind=kind, ends_with_slash=endpoint.ends_with_slash)


def _readable(cap: KnownCap) -> KnownCap:
    if cap.authority == "verify":
        raise CapError("a verify capability cannot read anything")
    return cap
