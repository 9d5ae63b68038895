"""Finds out what a copy would do (--dry-run).

It reads directories on both sides and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from grid.caps import KnownCap
from grid.cli.arguments.remote import RemotePath
from grid.cli.transfer.names import refuse_name
from grid.cli.transfer.to_local import LocalWriter
from grid.cli.transfer.to_remote import PathOf, RemoteWriter
from grid.cli.transfer.tree import Branch, Leaf, RemoteOrigin
from grid.directory.pack import Child
from grid.directory.store import OpenDirectory
from grid.plural import counted
from grid.values import frozen

Verb = Literal["copy", "link", "replace"]


@frozen
class Step:
    """One file that a copy would create or replace. path: its target."""

    do: Verb
    path: str


@frozen
class Rehearsal:
    """What a copy would do. unchanged: number of files that it would leave as they are."""

    steps: Sequence[Step]
    unchanged: int

    @property
    def summary(self) -> str:
        """The rehearsal as short text."""
        count = {verb: sum(step.do == verb for step in self.steps) for verb in ("copy", "link", "replace")}
        parts = [f"{counted(count['copy'], 'file')} would be copied"]
        parts += [f"{count['link']} linked"] if count["link"] else []
        parts += [f"{count['replace']} replaced"] if count["replace"] else []
        return ", ".join([*parts, f"{self.unchanged} left as they are"])

    def to_json(self) -> list[dict[str, str]]:
        """The steps as JSON for scripts."""
        return [{"do": step.do, "path": step.path} for step in self.steps]


async def rehearse_to_local(writer: LocalWriter, target: str, tree: Branch) -> Rehearsal:
    """Rehearse copying the tree into a local directory."""
    steps: list[Step] = []
    unchanged = 0
    for path, branch in tree.walk():
        if any(refuse_name(name) is not None for name in path):
            continue
        for name, leaf in sorted(branch.leaves.items()):
            if refuse_name(name) is not None:
                continue  # The copy itself will report why.
            step = await rehearse_local_file(writer, os.path.join(target, *path, name), leaf)
            unchanged += step is None
            steps += [step] if step is not None else []
    return Rehearsal(steps, unchanged)


async def rehearse_local_file(writer: LocalWriter, target: str, leaf: Leaf) -> Step | None:
    """Rehearse copying one file; None if nothing would change."""
    if writer.is_there(target, leaf) or not await writer.may_replace(target, leaf):
        return None
    return Step("replace" if os.path.lexists(target) else "copy", target)


async def rehearse_to_grid(
    writer: RemoteWriter, target: OpenDirectory | None, tree: Branch, path_of: PathOf
) -> Rehearsal:
    """Rehearse copying the tree into a directory of the grid. target: None if it would be created."""
    there = await writer.look(target, tree)
    steps: list[Step] = []
    unchanged = 0
    for path, branch in tree.walk():
        children = there.get(id(branch), {})
        for name, leaf in sorted(branch.leaves.items()):
            step = await rehearse_grid_file(writer, path_of((*path, name)), leaf, children.get(name))
            unchanged += step is None
            steps += [step] if step is not None else []
    return Rehearsal(steps, unchanged)


async def rehearse_grid_file(writer: RemoteWriter, path: RemotePath, leaf: Leaf, existing: Child | None) -> Step | None:
    """Rehearse copying one file; None if nothing would change."""
    cap = writer.known_cap(leaf)
    if existing is not None and (
        (cap is not None and cap == existing.target) or not await writer.may_replace(path, leaf, existing)
    ):
        return None
    if existing is not None:
        return Step("replace", path.shown)
    is_linked = isinstance(leaf.origin, RemoteOrigin) and isinstance(cap, KnownCap)
    return Step("link" if is_linked else "copy", path.shown)
