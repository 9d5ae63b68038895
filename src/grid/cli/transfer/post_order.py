"""Processes a tree: files in parallel, and each directory once everything in it is done.

Bounded: a fixed number of pieces run at once; files in the order of the tree, directories before further files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from grid.cli.transfer.bounded import run_pieces
from grid.cli.transfer.tree import Branch, Leaf
from grid.transfer.jobs import Jobs

DoLeaf = Callable[[tuple[str, ...], Branch, Leaf], Awaitable[None]]
"""Called with the path of the directory, the directory, and the file in it."""
DoBranch = Callable[[tuple[str, ...], Branch, Branch | None], Awaitable[None]]
"""Called with a directory's path, the directory, and its parent."""


async def run_post_order(root: Branch, jobs: Jobs, do_leaf: DoLeaf, do_branch: DoBranch) -> None:
    """Call both functions for everything in the tree. The first error cancels the rest and is raised.

    Work whose failure must not end the whole catches its own errors.
    """
    walk = _Walk(root)

    async def work(path: tuple[str, ...], branch: Branch, leaf: Leaf | None) -> None:
        if leaf is not None:
            await do_leaf(path, branch, leaf)
            walk.done(branch)
        else:
            await do_branch(path, branch, walk.above.get(id(branch)))
            walk.branch_done(branch)

    def next_piece() -> Coroutine[Any, Any, None] | None:
        piece = walk.next()
        return None if piece is None else work(*piece)

    await run_pieces(next_piece, jobs)


class _Walk:
    """The work to do next, and how much each directory still waits for."""

    def __init__(self, root: Branch) -> None:
        self.above: dict[int, Branch] = {}
        self._missing: dict[int, int] = {}
        self._paths: dict[int, tuple[str, ...]] = {}
        self._ready: deque[Branch] = deque()
        for path, branch in root.walk():
            self._paths[id(branch)] = path
            self._missing[id(branch)] = len(branch.leaves) + len(branch.branches)
            for below in branch.branches.values():
                self.above[id(below)] = branch
            if not self._missing[id(branch)]:
                self._ready.append(branch)
        self._leaves = self._list_leaves(root)

    def next(self) -> tuple[tuple[str, ...], Branch, Leaf | None] | None:
        """The next piece of work; None while everything left depends on running pieces."""
        if self._ready:
            branch = self._ready.popleft()
            return self._paths[id(branch)], branch, None
        return next(self._leaves, None)

    def done(self, branch: Branch) -> None:
        """Mark one entry of the directory as done."""
        self._missing[id(branch)] -= 1
        if not self._missing[id(branch)]:
            self._ready.append(branch)

    def branch_done(self, branch: Branch) -> None:
        """Mark the directory itself as done."""
        above = self.above.get(id(branch))
        if above is not None:
            self.done(above)

    @staticmethod
    def _list_leaves(root: Branch) -> Iterator[tuple[tuple[str, ...], Branch, Leaf | None]]:
        for path, branch in root.walk():
            for name in sorted(branch.leaves):
                yield path, branch, branch.leaves[name]
