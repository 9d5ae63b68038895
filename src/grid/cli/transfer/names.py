"""Names of files: which may cross between the grid and this machine, and which a backup leaves out. Pure. [spec cli 3.2]

Anyone who can write a directory of the grid chooses the names in it; none may lead out of the directory copied to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from fnmatch import translate

from grid.cli.transfer.tree import Branch, Leaf
from grid.directory.names import normalize_name, normalize_text

MAX_NAME = 255
"""Bytes in a file's name, as nearly every file system has it."""

VCS_NAMES = (
    "CVS", "RCS", "SCCS", ".git", ".gitignore", ".cvsignore", ".svn", ".arch-ids", "{arch}", "=RELEASE-ID",
    "=meta-update", "=update", ".bzr", ".bzrignore", ".bzrtags", ".hg", ".hgignore", "_darcs",
)  # fmt: skip
"""What --exclude-vcs leaves out."""


def refuse_name(name: str) -> str | None:
    """Why no local file may have this name; None if one may."""
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
    """Names that a file system which ignores case and normal forms takes for an earlier one, with that one."""
    first: dict[str, str] = {}
    collisions = {}
    for name in sorted(names):
        key = normalize_text(normalize_text(name).casefold())
        if first.setdefault(key, name) != name:
            collisions[name] = first[key]
    return collisions


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


def make_exclusion(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a name is left out; `*`, `?` and `[...]` as in the shell, and case matters."""
    texts = [translate(pattern) for pattern in patterns]
    if not texts:
        return lambda name: False
    matches = [re.compile(text).match for text in texts]
    return lambda name: any(match(name) is not None for match in matches)


def parse_pattern_file(text: str) -> list[str]:
    """The patterns of a file, one a line, without the space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]
