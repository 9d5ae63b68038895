"""Reads directories of the grid into a tree, several at once, and explains everything it leaves out.

The author of a directory controls its contents: loops are cut, and a tree that unfolds without end is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

from grid.caps import DirectoryCap, UnknownChild
from grid.cli.terminal.failures import describe
from grid.cli.transfer.bounded import run_pieces
from grid.cli.transfer.copy_plan import CopyError
from grid.cli.transfer.tree import Branch, Leaf, RemoteOrigin
from grid.directory.names import MAX_DEPTH
from grid.directory.pack import Child
from grid.directory.store import Store
from grid.errors import GridError
from grid.transfer.selection import Selection
from grid.values import define, field, frozen

LISTINGS_AT_ONCE = 8

MAX_TREE_ENTRIES = 5_000_000
"""Files and directories of one copy: a few directories that link each other twice can unfold beyond any disk's size."""

MAX_TREE_PATHS = 512 * 2**20
"""Characters in all their paths, plus the cost of remembering the directories above each: a long chain of directories
with long names and very many children at its end is small on the grid but large here.
"""

LINK_BYTES = 72
"""The cost of each directory above one that waits to be read."""


@define
class RemoteScan:
    """A scanned tree. left_out: a line for everything omitted. unknown: those of unknown kinds."""

    root: Branch
    left_out: list[str] = field(factory=list)
    unknown: list[str] = field(factory=list)


@frozen
class _Waiting:
    branch: Branch
    cap: DirectoryCap = field(repr=False)
    where: str
    above: frozenset[str] = field(repr=False)
    """Verify capabilities of the directory itself and of all above it."""
    path: str
    """From the top, with a trailing slash; only needed for patterns."""


async def scan_remote(
    store: Store, origin: RemoteOrigin, name: str = "", selection: Selection | None = None
) -> RemoteScan:
    """Read everything below a directory; GridError if the directory itself cannot be read.

    selection: excluded parts are skipped without being read.
    """
    return await _Scanner(store, origin, name, selection or Selection()).run()


class _Scanner:
    def __init__(self, store: Store, origin: RemoteOrigin, name: str, selection: Selection) -> None:
        assert isinstance(origin.cap, DirectoryCap)
        self._store = store
        self._selection = selection
        self._scan = RemoteScan(Branch(name, origin))
        self._count = self._paths = 0
        self._top = origin.where
        mark = _loop_mark(origin.cap)
        self._waiting = deque([_Waiting(self._scan.root, origin.cap, origin.where, frozenset(mark), "")])

    async def run(self) -> RemoteScan:
        await run_pieces(self._next, LISTINGS_AT_ONCE)
        for path, branch in list(self._scan.root.walk()):
            if len(path) <= MAX_DEPTH:
                for name in [name for name, below in branch.branches.items() if below.origin is None]:
                    del branch.branches[name]
        return self._scan

    def _next(self) -> Coroutine[Any, Any, None] | None:
        return self._read(self._waiting.popleft()) if self._waiting else None

    async def _read(self, here: _Waiting) -> None:
        try:
            children: Mapping[str, Child] = await self._store.directory(here.cap).list()
        except GridError as problem:
            if here.branch is self._scan.root:
                raise
            here.branch.origin = None
            self._scan.left_out.append(f"{here.where}: {describe(problem)}")
            return
        self._count += len(children)
        if self._count > MAX_TREE_ENTRIES:
            raise CopyError(f"there are more than {MAX_TREE_ENTRIES} files and directories below {here.where}")
        for name, child in children.items():
            self._weigh(here, name, child)
            self._add(here, name, child)

    def _weigh(self, here: _Waiting, name: str, child: Child) -> None:
        """Count what the child will take; CopyError beyond the limits."""
        links = len(here.above) + 1 if isinstance(child.target, DirectoryCap) else 0
        self._paths += len(here.where) + len(name) + 1 + LINK_BYTES * links
        if self._paths > MAX_TREE_PATHS:
            raise CopyError(
                f"the paths below {self._top} are too long, or too many, to copy at once: "
                "copy what is in it piece by piece"
            )

    def _add(self, here: _Waiting, name: str, child: Child) -> None:
        path = f"{here.path}{name}" if self._selection.exclude is not None else ""
        is_directory = isinstance(child.target, DirectoryCap)
        if self._selection.excludes(path, is_directory=is_directory):
            return
        where = f"{here.where}/{name}" if not here.where.endswith(":") else f"{here.where}{name}"
        if isinstance(child.target, UnknownChild):
            self._scan.unknown.append(where)
            return
        origin = RemoteOrigin(cap=child.target, where=where, metadata=child.metadata)
        if not isinstance(child.target, DirectoryCap):
            here.branch.leaves[name] = Leaf(name, origin)
            return
        mark = _loop_mark(child.target)
        if mark & here.above or len(here.above) > MAX_DEPTH:
            self._scan.left_out.append(f"{where}: this directory contains itself")
            return
        branch = here.branch.branches[name] = Branch(name, origin)
        self._waiting.append(_Waiting(branch, child.target, where, here.above | mark, f"{path}/"))


def _loop_mark(cap: DirectoryCap) -> frozenset[str]:
    """An identifier shared by all capabilities of a directory; empty for a literal one, which cannot contain itself."""
    verify = cap.verify_cap()
    return frozenset() if verify is None else frozenset([verify.to_string()])
