"""File names: which may cross between the grid and this machine, and which a backup leaves out. Pure. [spec cli 3.2]

Anyone who can write a directory of the grid chooses its names; none may lead out of the directory copied to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from fnmatch import translate

from grid.cli.transfer.tree import Branch, Leaf
from grid.directory.names import normalize_name, normalize_text

MAX_NAME = 255
"""Bytes of a file name; the limit of nearly every file system."""

VCS_NAMES = (
    "CVS", "RCS", "SCCS", ".git", ".gitignore", ".cvsignore", ".svn", ".arch-ids", "{arch}", "=RELEASE-ID",
    "=meta-update", "=update", ".bzr", ".bzrignore", ".bzrtags", ".hg", ".hgignore", "_darcs",
)  # fmt: skip
"""The names that --exclude-vcs leaves out."""


def refuse_name(name: str) -> str | None:
    """Why no local file may have this name; None if it may."""
    if name in ("", ".", ".."):
        return "it is not a file name"
    if "/" in name or "\0" in name or (os.altsep and os.altsep in name) or os.sep in name:
        return "it contains a separator"
    try:
        byte_count = os.fsencode(name)
    except UnicodeEncodeError:
        return "this machine does not support its characters"
    if len(byte_count) > MAX_NAME:
        return f"it is longer than {MAX_NAME} bytes"
    return None


def find_collisions(names: Iterable[str]) -> dict[str, str]:
    """Names that a file system which ignores case and normal forms confuses with an earlier one, mapped to that one."""
    first: dict[str, str] = {}
    collisions = {}
    for name in sorted(names):
        key = normalize_text(normalize_text(name).casefold())
        if first.setdefault(key, name) != name:
            collisions[name] = first[key]
    return collisions


def normalize_names(root: Branch) -> list[str]:
    """Convert all names to NFC. Names that collide are dropped from the tree and returned.

    A local directory may hold two names that differ only in their form; on the grid they are the same.
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


def make_exclusion(patterns: Iterable[str]) -> Callable[[str], bool]:
    """A predicate for excluded names; `*`, `?` and `[...]` as in the shell, case-sensitive."""
    texts = [translate(pattern) for pattern in patterns]
    if not texts:
        return lambda name: False
    matches = [re.compile(text).match for text in texts]
    return lambda name: any(match(name) is not None for match in matches)


def parse_pattern_file(text: str) -> list[str]:
    """The patterns of a file, one per line, without surrounding spaces."""
    return [line.strip() for line in text.splitlines() if line.strip()]
