"""Gives a tree the names that directories of the grid have. Pure. [spec directories 2]"""

from __future__ import annotations

from grid.cli.transfer.tree import Branch, Leaf
from grid.directory.names import normalize_name


def normalize_names(root: Branch) -> list[str]:
    """Change every name to its normal form; what would take the name of another is dropped, and named in the result.

    Local directories may hold two names that differ in their form only; on the grid they are one.
    """
    dropped: list[str] = []
    for _, branch in list(root.walk()):
        leaves: dict[str, Leaf] = {}
        branches: dict[str, Branch] = {}
        for name, leaf in branch.leaves.items():
            leaf.name = normalize_name(name)
            if leaf.name in leaves:
                dropped.append(_shown(leaf))
            else:
                leaves[leaf.name] = leaf
        for name, below in branch.branches.items():
            below.name = normalize_name(name)
            if below.name in leaves or below.name in branches:
                dropped.append(_shown(below))
            else:
                branches[below.name] = below
        branch.leaves, branch.branches = leaves, branches
    return dropped


def _shown(thing: Leaf | Branch) -> str:
    return thing.name if thing.origin is None else thing.origin.shown
