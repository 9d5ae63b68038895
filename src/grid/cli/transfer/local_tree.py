"""Walks local directories, and explains everything it leaves out. Blocking: run it on the pool.

It opens no file, so unreadable files are found only when they are copied.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import evolve, field

from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin
from grid.transfer.selection import MAX_IGNORE_FILE, Patterns, Selection, parse_ignore_file
from grid.values import define, frozen

IGNORE_FILE = ".gridignore"
"""A file of patterns that a backup leaves out, for its directory and those below."""

_STORAGE, _CONFIGURATION = "storage", "tahoe.cfg"


class Trouble(Enum):
    """Why an entry was left out."""

    DANGLING = "dangling link"
    LOOP = "link back to a directory above it"
    SPECIAL = "special file"
    FILE_DENIED = "file that cannot be read"
    DIRECTORY_DENIED = "directory that cannot be read"
    UNDECODABLE = "name that is not UTF-8"
    IGNORE_FILE = "patterns that cannot be used"


@frozen
class LeftOut:
    """An entry that is not in the tree. path: may contain lone surrogates. detail: the system's message, if any."""

    path: str
    trouble: Trouble
    is_directory: bool = False
    detail: str = ""


@define
class Scan:
    """A scanned directory tree. excluded: number of entries left out by patterns. nodes: directories whose shares were."""

    root: Branch
    left_out: list[LeftOut] = field(factory=list)
    excluded: int = 0
    nodes: list[str] = field(factory=list)


@frozen(kw_only=True)
class ScanRules:
    """Which entries a scan leaves out without a warning, and whether it follows links.

    follow_links: treat links as their targets, except those to a directory above; otherwise links are files of their
    own. markers: names of files; a directory that holds one is reduced to that file. one_file_system: skip the contents
    of directories on other file systems. has_ignore_files: apply the patterns in .gridignore. leaves_out_special: skip
    sockets and named pipes. leaves_out_shares: skip the shares of storage nodes, which are on a grid already. own: names
    that are skipped in one directory each, which is given without links: what this program itself writes during the scan.
    """

    follow_links: bool
    selection: Selection = field(factory=Selection)
    markers: Sequence[str] = ()
    one_file_system: bool = False
    has_ignore_files: bool = False
    leaves_out_special: bool = False
    leaves_out_shares: bool = False
    own: Mapping[str, str] = field(factory=dict)


@frozen
class _Waiting:
    """A directory to read. above: its own identity and those of all directories above it.

    below: its path from the top, with a trailing slash. ignores: the patterns in force, each with the length of the
    path where it was found.
    """

    branch: Branch
    path: str
    above: frozenset[tuple[int, int]]
    below: str = ""
    ignores: tuple[tuple[int, Patterns], ...] = ()


def scan_directory(path: str, rules: ScanRules, *, name: str = "") -> Scan:
    """Scan everything below a directory; OSError if the directory itself cannot be read."""
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
        if rules.has_ignore_files:
            here = _read_ignore_file(scan, here, entries)
        entries = _without_marked(scan, here, entries, rules.markers)
        found = [_add(scan, here, entry, rules) for entry in entries if not _skips(scan, here, entry, rules)]
        waiting += [new for new in reversed(found) if new is not None]
    _drop_unread(root)
    return scan


def _read_ignore_file(scan: Scan, here: _Waiting, entries: Sequence[os.DirEntry[str]]) -> _Waiting:
    """Add the patterns of the directory's own .gridignore, if it has a valid one."""
    entry = next((entry for entry in entries if entry.name == IGNORE_FILE), None)
    if entry is None:
        return here
    try:
        patterns = parse_ignore_file(_read_text(entry.path))
    except (OSError, ValueError) as problem:
        detail = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
        scan.left_out.append(LeftOut(entry.path, Trouble.IGNORE_FILE, detail=detail))
        return here
    if patterns is None:
        return here
    return evolve(here, ignores=(*here.ignores, (len(here.below), patterns)))


def _read_text(path: str) -> str:
    """Read a small regular text file; OSError, ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(MAX_IGNORE_FILE + 1)
    if len(data) > MAX_IGNORE_FILE:
        raise ValueError(f"it is longer than {MAX_IGNORE_FILE} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


def _without_marked(
    scan: Scan, here: _Waiting, entries: list[os.DirEntry[str]], markers: Sequence[str]
) -> list[os.DirEntry[str]]:
    """The entries, reduced to the marker in a marked directory.

    The top directory is exempt, since the user named it.
    """
    if not markers or here.branch is scan.root:
        return entries
    marking = [entry for entry in entries if entry.name in markers]
    if not marking:
        return entries
    scan.excluded += len(entries) - len(marking)
    return marking


def _skips(scan: Scan, here: _Waiting, entry: os.DirEntry[str], rules: ScanRules) -> bool:
    if entry.name in rules.own and os.path.realpath(here.path) == rules.own[entry.name]:
        scan.excluded += 1
        return True
    if rules.leaves_out_shares and entry.name == _STORAGE and _is_of_storage_node(here.path):
        scan.nodes.append(here.path)
        return True
    if rules.selection.exclude is None and not here.ignores:
        return False
    path, is_directory = f"{here.below}{entry.name}", _is_directory(entry, rules.follow_links)
    is_excluded = rules.selection.excludes(path, is_directory=is_directory)
    for start, patterns in reversed(here.ignores):
        if is_excluded:
            break
        decision = patterns.decide(path[start:], is_directory=is_directory)
        if decision is not None:
            is_excluded = decision
            break
    scan.excluded += is_excluded
    return is_excluded


def _is_of_storage_node(path: str) -> bool:
    """Whether a directory is that of a storage node, of Grid or of Tahoe-LAFS, which keeps shares below it."""
    return os.path.isfile(os.path.join(path, _CONFIGURATION)) and os.path.isdir(os.path.join(path, _STORAGE, "shares"))


def _add(scan: Scan, here: _Waiting, entry: os.DirEntry[str], rules: ScanRules) -> _Waiting | None:
    """Add one entry to the tree; return it if it is a directory to read next."""

    def leave_out(trouble: Trouble, detail: str = "") -> None:
        scan.left_out.append(LeftOut(entry.path, trouble, _is_directory(entry, True), detail))

    if not _is_text(entry.name):
        leave_out(Trouble.UNDECODABLE)
        return None
    try:
        status = os.stat(entry.path, follow_symlinks=rules.follow_links)
    except FileNotFoundError:
        if entry.is_symlink():
            leave_out(Trouble.DANGLING)
        return None
    except OSError as problem:
        leave_out(Trouble.DANGLING if entry.is_symlink() else Trouble.FILE_DENIED, problem.strerror or "")
        return None
    origin = LocalOrigin(path=entry.path, facts=FileFacts.of(status))
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        here.branch.leaves[entry.name] = Leaf(entry.name, origin)
        return None
    if not stat.S_ISDIR(status.st_mode):
        if not (rules.leaves_out_special and (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode))):
            leave_out(Trouble.SPECIAL)
        return None
    identity = (status.st_dev, status.st_ino)
    if identity in here.above:
        leave_out(Trouble.LOOP)
        return None
    branch = here.branch.branches[entry.name] = Branch(entry.name, origin)
    top = scan.root.origin
    if rules.one_file_system and isinstance(top, LocalOrigin) and status.st_dev != top.facts.device:
        return None
    return _Waiting(branch, entry.path, here.above | {identity}, f"{here.below}{entry.name}/", here.ignores)


def _drop_unread(root: Branch) -> None:
    """Remove directories that could not be read from the tree, since they are not empty ones."""
    for _, branch in list(root.walk()):
        for name in [name for name, below in branch.branches.items() if below.origin is None]:
            del branch.branches[name]


def _is_directory(entry: os.DirEntry[str], follow_links: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow_links)
    except OSError:
        return False


def _is_text(name: str) -> bool:
    """Whether the name was valid UTF-8; other bytes appear as lone surrogates."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
