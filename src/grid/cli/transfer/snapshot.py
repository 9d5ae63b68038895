"""One backup: scans the tree, stores a snapshot of it, and links it. [spec cli 3]

A directory with the same names and capabilities as an earlier one is not stored again, and keeps its old metadata, as
in 1.20. What cannot be read or stored is left out and counted; the rest goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from attrs import asdict, evolve

from grid.caps import DirectoryCap, KnownCap, parse_cap, require_usable
from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.cli.terminal.failures import describe
from grid.cli.terminal.progress import TransferDisplay
from grid.cli.transfer.copy_plan import WrongTypeError
from grid.cli.transfer.database import LocalDatabase, hash_directory, needs_check
from grid.cli.transfer.endpoints import RemoteEndpoint
from grid.cli.transfer.file_note import KEY, FileNote, read_attributes
from grid.cli.transfer.local_tree import LeftOut, ScanRules, Trouble, scan_directory
from grid.cli.transfer.names import normalize_names
from grid.cli.transfer.post_order import run_post_order
from grid.cli.transfer.to_remote import size_of
from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin
from grid.cli.transfer.upload import Uploader, draw, is_healthy
from grid.directory.edits import SetChild
from grid.directory.pack import Child
from grid.directory.snapshots import ARCHIVES, LATEST, SnapshotNote
from grid.directory.store import OpenDirectory, Store
from grid.errors import AuthorityError, ExistingChildError, GridError, NoSuchChildError
from grid.node.redaction import one_line
from grid.plural import counted
from grid.values import define, frozen

_WARNINGS = {
    Trouble.SPECIAL: "cannot backup special file '{}'",
    Trouble.FILE_DENIED: "permission denied on file '{}'",
    Trouble.DIRECTORY_DENIED: "permission denied on directory '{}'",
    Trouble.UNDECODABLE: "cannot decode '{}'",
    Trouble.IGNORE_FILE: "cannot use the patterns in '{}'",
}

MAX_TRIES = 100
"""Seconds in a row that may have a snapshot each."""

MAX_REFUSED = 10
"""Files in a row that too few servers may take before the backup ends: reading the rest would store nothing either."""

_SERVERS_LACK = (ExitCode.UNREACHABLE, ExitCode.NO_SPACE)


@define
class SnapshotCounts:
    """Counts of everything that was found, by result."""

    files_uploaded: int = 0
    files_reused: int = 0
    files_skipped: int = 0
    directories_created: int = 0
    directories_reused: int = 0
    directories_skipped: int = 0
    directories_checked: int = 0

    @property
    def sentence(self) -> str:
        """The summary for people."""
        files = f"{counted(self.files_uploaded, 'file')} uploaded ({self.files_reused} reused)"
        directories = f"{counted(self.directories_created, 'directory', 'directories')} created"
        return (
            f" {files}, {counted(self.files_skipped, 'file')} skipped,"
            f" {directories} ({self.directories_reused} reused),"
            f" {counted(self.directories_skipped, 'directory', 'directories')} skipped"
        )

    @property
    def summary(self) -> str:
        """1.20's summary line, which programs parse: it says `1 files`."""
        return (
            f" {self.files_uploaded} files uploaded ({self.files_reused} reused), {self.files_skipped} files skipped,"
            f" {self.directories_created} directories created ({self.directories_reused} reused),"
            f" {self.directories_skipped} directories skipped"
        )

    def to_json(self) -> dict[str, int]:
        """The counts as a JSON object."""
        return asdict(self)

    @property
    def is_complete(self) -> bool:
        """Whether nothing was skipped."""
        return not (self.files_skipped or self.directories_skipped)


class Snapshotter:
    """Makes one snapshot. warn: receives a line for everything left out. say: receives one for everything done.

    remark: receives one for what is left out on purpose, although no option asks for it.
    """

    def __init__(
        self,
        store: Store,
        uploader: Uploader,
        database: LocalDatabase,
        display: TransferDisplay,
        *,
        jobs: int,
        warn: Callable[[str], None],
        say: Callable[[str], None],
        remark: Callable[[str], None],
    ) -> None:
        self._store = store
        self._uploader = uploader
        self._database = database
        self._display = display
        self._jobs = jobs
        self._warn = warn
        self._say = say
        self._remark = remark
        self._made: dict[int, dict[str, Child]] = {}
        self._root: DirectoryCap | None = None
        self._problem: GridError | None = None
        self._refused_in_a_row = 0
        self.counts = SnapshotCounts()
        self.stored_bytes = 0

    def leave_out(self, left_out: LeftOut) -> None:
        """Report and count something that is not in the tree."""
        text = _WARNINGS.get(left_out.trouble, f"cannot backup {left_out.trouble.value} '{{}}'")
        detail = f": {left_out.detail}" if left_out.trouble is Trouble.IGNORE_FILE else ""
        self._skip(text.format(printable(left_out.path)) + detail, is_directory=left_out.is_directory)

    def leave_out_shares(self, nodes: Sequence[str]) -> None:
        """Report storage nodes whose shares are not in the tree; the snapshot is complete without them."""
        if nodes:
            more = f" and of {counted(len(nodes) - 1, 'other node')}" if len(nodes) > 1 else ""
            self._remark(f"left out the shares in '{printable(nodes[0])}/storage'{more}: they are on a grid already")

    async def run(self, tree: Branch) -> DirectoryCap:
        """Store the snapshot and return its capability.

        GridError if the top directory cannot be stored, or too few servers take one file after the other.
        """
        for shown in normalize_names(tree):
            self._skip(f"another file beside it has the same name on the grid: '{shown}'")
        leaves = (branch.leaves[name] for _, branch in tree.walk() for name in sorted(branch.leaves))
        try:
            await self._uploader.pack(leaves)
            await run_post_order(tree, self._jobs, self._do_leaf, self._do_branch)
            if self._root is None:
                raise self._problem or GridError("the top directory could not be stored")
        except GridError:
            self._warn("no snapshot was stored; the next backup sends only what is still missing")
            raise
        return self._root

    def _skip(self, why: str, *, is_directory: bool = False) -> None:
        if is_directory:
            self.counts.directories_skipped += 1
        else:
            self.counts.files_skipped += 1
        self._warn(one_line(why))

    async def _do_leaf(self, path: tuple[str, ...], branch: Branch, leaf: Leaf) -> None:
        assert isinstance(leaf.origin, LocalOrigin)
        where = leaf.origin.path
        try:
            is_link = leaf.origin.facts.is_link
            uploaded = await (self._uploader.upload_link if is_link else self._uploader.upload)(where)
        except PermissionError:
            self._skip(f"permission denied on file '{where}'")
        except (GridError, OSError) as problem:
            self._skip(f"cannot backup file '{where}': {describe(problem)}")
            self._require_servers(problem)
        else:
            if not uploaded.reused and uploaded.cap.storage_index is not None:
                self._refused_in_a_row = 0
            self.counts.files_reused += uploaded.reused
            self.counts.files_uploaded += not uploaded.reused
            self.stored_bytes += size_of(leaf)
            self._say(f"{'skipping' if uploaded.reused else 'uploading'} '{where}'..")
            self._say(f" {where} -> {uploaded.cap.to_string()}")
            self._add(branch, leaf.name, uploaded.cap, leaf.origin)
        self._display.tally.finish(size_of(leaf))
        self._display.update()

    def _require_servers(self, problem: GridError | OSError) -> None:
        """Raise the problem if it is that of many files in a row, which the servers cannot take."""
        if isinstance(problem, GridError) and exit_code(problem) in _SERVERS_LACK:
            self._refused_in_a_row += 1
            if self._refused_in_a_row >= MAX_REFUSED:
                raise problem

    async def _do_branch(self, path: tuple[str, ...], branch: Branch, above: Branch | None) -> None:
        assert isinstance(branch.origin, LocalOrigin)
        children = self._made.pop(id(branch), {})
        try:
            cap = await self._store_directory(branch.origin.path, children)
        except GridError as problem:
            self._problem = self._problem or problem
            self._skip(f"cannot store directory '{branch.origin.path}': {describe(problem)}", is_directory=True)
            return
        if above is None:
            self._root = cap
        else:
            self._add(above, branch.name, cap, branch.origin)

    async def _store_directory(self, where: str, children: dict[str, Child]) -> DirectoryCap:
        dirhash = hash_directory({name: _mark_of(child) for name, child in children.items()})
        cap = await self._find_known(dirhash)
        if cap is not None:
            self._say(f" re-using old directory for '{where}'")
            self.counts.directories_reused += 1
            return cap
        self._say(f" creating directory for '{where}'")
        cap = await self._store.create_immutable_directory(children)
        self._database.record_directory(dirhash, cap.to_string(), self._store.runtime.clock.unix_time())
        self.counts.directories_created += 1
        return cap

    async def _find_known(self, dirhash: str) -> DirectoryCap | None:
        """The directory as stored earlier, if its shares can be trusted to exist."""
        known = self._database.known_directory(dirhash)
        cap = None if known is None else parse_cap(known.cap, deep_immutable=True)
        if known is None or not isinstance(cap, DirectoryCap) or cap.is_mutable:
            return None
        now = self._store.runtime.clock.unix_time()
        if cap.storage_index is not None and needs_check(now - known.checked_at, draw(self._store)):
            self.counts.directories_checked += 1
            if not await is_healthy(self._store, cap):
                return None
            self._database.record_directory(dirhash, cap.to_string(), now)
        return cap

    def _add(self, branch: Branch, name: str, cap: KnownCap, origin: LocalOrigin) -> None:
        metadata = {**metadata_of(origin.facts), **self._note(origin).to_metadata()}
        self._made.setdefault(id(branch), {})[name] = Child(target=cap, metadata=metadata)

    def _note(self, origin: LocalOrigin) -> FileNote:
        """What to record of a file beyond stat; reports what cannot be recorded."""
        try:
            attributes = read_attributes(origin.path)
        except OSError as problem:
            self._warn(
                one_line(f"cannot read the extended attributes of '{printable(origin.path)}': {problem.strerror}")
            )
            attributes = {}
        if attributes is None:
            self._warn(one_line(f"the extended attributes of '{printable(origin.path)}' are too large to be kept"))
        return FileNote(is_link=origin.facts.is_link, attributes=attributes or {})


def metadata_of(facts: FileFacts) -> dict[str, object]:
    """The metadata of a file or directory in a snapshot. Its order matters for equal capabilities. [spec cli 3.1]"""
    return {
        "ctime": _seconds(facts.ctime_ns),
        "mtime": _seconds(facts.mtime_ns),
        "st_mode": facts.mode,
        "st_ino": facts.inode,
        "st_dev": facts.device,
        "st_uid": facts.uid,
        "st_gid": facts.gid,
    }


def _seconds(time_ns: int) -> float:
    """The time as Python's stat computes it, to the last bit."""
    seconds, rest = divmod(time_ns, 10**9)
    return seconds + 1e-9 * rest


def printable(path: str) -> str:
    """The path as text, with invalid bytes shown as such."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _mark_of(child: Child) -> str:
    """What identifies equal directories: for plain files only the capability, as in 1.20's database."""
    assert isinstance(child.target, KnownCap)
    noted = child.metadata.get(KEY)
    return child.target.to_string() + ("" if noted is None else f" {json.dumps(noted, sort_keys=True)}")


@frozen
class Archived:
    """name: of the new entry in Archives/."""

    name: str
    snapshot: DirectoryCap


async def back_up(
    store: Store,
    snapshotter: Snapshotter,
    path: str,
    target: RemoteEndpoint,
    rules: ScanRules,
    begin: Callable[[int, int], None],
    note: SnapshotNote | None = None,
) -> Archived:
    """Store a snapshot of a local directory and link it in the target, which is created if missing.

    begin: called with the number of files and of bytes. note: what the link records of the snapshot, except sizes.
    OSError if the directory cannot be read, in which case nothing is written; GridError if the snapshot cannot be
    stored or linked.
    """
    began_at = store.runtime.clock.unix_time()
    scan = await store.runtime.cpu.run(scan_directory, path, rules)
    into = await _open_target(store, target)
    size = sum(size_of(leaf) for _, branch in scan.root.walk() for leaf in branch.leaves.values())
    begin(scan.root.count()[0], size)
    for left_out in scan.left_out:
        snapshotter.leave_out(left_out)
    snapshotter.leave_out_shares(scan.nodes)
    snapshot = await snapshotter.run(scan.root)
    archives = await into.make_directories([ARCHIVES])
    counts = snapshotter.counts
    noted = evolve(
        note or SnapshotNote(),
        directory=printable(scan.root.origin.path) if isinstance(scan.root.origin, LocalOrigin) else "",
        files=counts.files_uploaded + counts.files_reused,
        size=snapshotter.stored_bytes,
        is_complete=counts.is_complete,
    )
    name = await _add_snapshot(archives, began_at, snapshot, noted)
    await into.edit([SetChild(LATEST, snapshot)])
    return Archived(name, snapshot)


async def _add_snapshot(archives: OpenDirectory, made_at: float, snapshot: DirectoryCap, note: SnapshotNote) -> str:
    """Link a snapshot under the time of its beginning, or the next second that no other has; its name.

    Machines that back up at the same time, or one whose clock was set back, never take each other's snapshots away.
    """
    name = ""
    for later_s in range(MAX_TRIES):
        name = time.strftime("%Y-%m-%d_%H:%M:%SZ", time.gmtime(made_at + later_s))
        try:
            await archives.edit([SetChild(name, snapshot, note.to_metadata(), overwrite=False)])
        except ExistingChildError:
            continue
        return name
    raise ExistingChildError(f"there is already a {name!r} in {ARCHIVES}; check this machine's clock", name=name)


async def _open_target(store: Store, target: RemoteEndpoint) -> OpenDirectory:
    root = require_usable(target.root)
    if not isinstance(root, DirectoryCap):
        raise WrongTypeError(f"'{target.shown}' is not a directory", name=target.shown)
    directory = store.directory(root)
    if target.suggestion:
        await _require_meant(directory, target)
    if target.path:
        directory = await directory.make_directories(target.path)
    if not directory.is_writable:
        raise AuthorityError(f"'{target.shown}' is read-only")
    return directory


async def _require_meant(directory: OpenDirectory, target: RemoteEndpoint) -> None:
    """Raise NoSuchChildError if the target does not exist and begins with an alias without its colon."""
    try:
        await directory.get(target.path[:1])
    except NoSuchChildError:
        words = f"There is no path '{target.shown}'. Did you mean '{target.suggestion}'?"
        raise NoSuchChildError(words, name=target.shown) from None
