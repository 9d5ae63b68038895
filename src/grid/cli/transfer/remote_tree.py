"""Reads directories of the grid into a tree, several at once, and says of everything it leaves out why.

The maker of a directory chose what is in it: loops are cut, and a tree that unfolds without end is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

from attrs import define, field, frozen

from grid.caps import DirectoryCap, UnknownChild
from grid.cli.terminal.failures import describe
from grid.cli.transfer.bounded import run_pieces
from grid.cli.transfer.copy_plan import CopyError
from grid.cli.transfer.tree import Branch, Leaf, RemoteOrigin
from grid.directory.pack import Child
from grid.directory.store import Store
from grid.errors import GridError
from grid.transfer.selection import Selection

LISTINGS_AT_ONCE = 8

MAX_TREE_ENTRIES = 5_000_000
"""Files and directories in one copy: a few directories that link each other twice unfold to more than any disk holds."""

MAX_TREE_PATHS = 512 * 2**20
"""Characters in the paths of all of them, with what is remembered of the directories above each directory: a long chain
of directories with long names, and one with very many children at its end, take little room on the grid and much here.
"""

LINK_BYTES = 72
"""What one directory above costs a directory that waits to be read."""

MAX_DEPTH = 2000
"""Directories inside each other: no path of this machine is longer."""


@define
class RemoteScan:
    """A tree as it was found. left_out: a line for everything that is not in it; unknown: those of unknown kinds."""

    root: Branch
    left_out: list[str] = field(factory=list)
    unknown: list[str] = field(factory=list)


@frozen
class _Waiting:
    branch: Branch
    cap: DirectoryCap = field(repr=False)
    where: str
    above: frozenset[str] = field(repr=False)
    """Verify caps of the directory itself and all above it."""
    path: str
    """From the top, with a slash behind it, if patterns ask for it."""


async def scan_remote(
    store: Store, origin: RemoteOrigin, name: str = "", selection: Selection | None = None
) -> RemoteScan:
    """Everything below a directory; GridError if it cannot be read itself.

    selection: what it excludes is left out without being read.
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
        """Count what the child will take; CopyError if it is too much."""
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
    """What is the same for every capability of one directory; nothing for a literal one, which cannot hold itself."""
    verify = cap.verify_cap()
    return frozenset() if verify is None else frozenset([verify.to_string()])
