"""Walks directories of this machine, and says of everything it leaves out why. Blocking: run it on the pool.

It opens no file; whether one can be read shows when it is copied.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from enum import Enum

from attrs import define, field, frozen

from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin


class Trouble(Enum):
    """Why something was left out."""

    SYMLINK = "symlink"
    DANGLING = "dangling link"
    LOOP = "link back to a directory above it"
    SPECIAL = "special file"
    FILE_DENIED = "file that cannot be read"
    DIRECTORY_DENIED = "directory that cannot be read"
    UNDECODABLE = "name that is not UTF-8"


@frozen
class LeftOut:
    """One thing that is not in the tree; path: may hold lone surrogates. detail: the system's words, if any."""

    path: str
    trouble: Trouble
    is_directory: bool = False
    detail: str = ""


@define
class Scan:
    """A directory tree as it was found. excluded: how many things the patterns left out."""

    root: Branch
    left_out: list[LeftOut] = field(factory=list)
    excluded: int = 0


@frozen
class _Waiting:
    """A directory still to be read; above: its own identity and that of every directory above it."""

    branch: Branch
    path: str
    above: frozenset[tuple[int, int]]


def scan_directory(
    path: str, *, follow_links: bool, is_excluded: Callable[[str], bool] = lambda name: False, name: str = ""
) -> Scan:
    """Everything below a directory; OSError if it cannot be read itself.

    follow_links: symbolic links count as what they lead to, unless that is a directory above them.
    """
    path = os.path.abspath(path)
    status = os.stat(path)
    root = Branch(name, LocalOrigin(path=path, facts=FileFacts.of(status)))
    scan = Scan(root)
    waiting = [_Waiting(root, path, frozenset([(status.st_dev, status.st_ino)]))]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here.path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as problem:
            if here.branch is root:
                raise
            scan.left_out.append(LeftOut(here.path, Trouble.DIRECTORY_DENIED, True, problem.strerror or ""))
            here.branch.origin = None
            continue
        found = [_add(scan, here, entry, follow_links) for entry in entries if not _skips(scan, entry, is_excluded)]
        waiting += [new for new in reversed(found) if new is not None]
    _drop_unread(root)
    return scan


def _skips(scan: Scan, entry: os.DirEntry[str], is_excluded: Callable[[str], bool]) -> bool:
    if is_excluded(entry.name):
        scan.excluded += 1
        return True
    return False


def _add(scan: Scan, here: _Waiting, entry: os.DirEntry[str], follow_links: bool) -> _Waiting | None:
    """Put one entry into the tree; the directory to read next if it is one."""

    def leave_out(trouble: Trouble, detail: str = "") -> None:
        scan.left_out.append(LeftOut(entry.path, trouble, _is_directory(entry), detail))

    if not _is_text(entry.name):
        leave_out(Trouble.UNDECODABLE)
        return None
    if entry.is_symlink() and not follow_links:
        scan.left_out.append(LeftOut(entry.path, Trouble.SYMLINK))
        return None
    try:
        status = os.stat(entry.path)
    except FileNotFoundError:
        if entry.is_symlink():
            leave_out(Trouble.DANGLING)
        return None
    except OSError as problem:
        leave_out(Trouble.DANGLING if entry.is_symlink() else Trouble.FILE_DENIED, problem.strerror or "")
        return None
    origin = LocalOrigin(path=entry.path, facts=FileFacts.of(status))
    if stat.S_ISREG(status.st_mode):
        here.branch.leaves[entry.name] = Leaf(entry.name, origin)
        return None
    if not stat.S_ISDIR(status.st_mode):
        leave_out(Trouble.SPECIAL)
        return None
    identity = (status.st_dev, status.st_ino)
    if identity in here.above:
        leave_out(Trouble.LOOP)
        return None
    branch = here.branch.branches[entry.name] = Branch(entry.name, origin)
    return _Waiting(branch, entry.path, here.above | {identity})


def _drop_unread(root: Branch) -> None:
    """Take directories that could not be read out of the tree: they are not empty ones."""
    for _, branch in list(root.walk()):
        for name in [name for name, below in branch.branches.items() if below.origin is None]:
            del branch.branches[name]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_text(name: str) -> bool:
    """Whether the bytes of the name were UTF-8: others come as lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
