"""A backup from its arguments to its end: looks through the tree, stores it, and links the snapshot. [spec cli 3]"""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import frozen

from grid.caps import DirectoryCap, require_usable
from grid.cli.transfer.copy_plan import WrongTypeError
from grid.cli.transfer.local_tree import Scan, scan_directory
from grid.cli.transfer.places import RemotePlace
from grid.cli.transfer.snapshot import Snapshotter
from grid.cli.transfer.to_remote import size_of
from grid.directory.edits import SetChild
from grid.directory.store import OpenDirectory, Store
from grid.errors import AuthorityError, NoSuchChildError

ARCHIVES = "Archives"
LATEST = "Latest"


@frozen
class Archived:
    """name: of the new entry in Archives/."""

    name: str
    snapshot: DirectoryCap


async def back_up(
    store: Store,
    snapshotter: Snapshotter,
    path: str,
    target: RemotePlace,
    is_excluded: Callable[[str], bool],
    begin: Callable[[int, int], None],
) -> Archived:
    """Store a snapshot of a local directory and link it in the target, which is made if it is not there.

    begin: told how many files there are, and how many bytes. OSError if the directory cannot be read, in which case
    nothing was written; GridError if the snapshot cannot be stored or linked.
    """
    began_at = store.runtime.clock.unix_time()
    scan = await store.runtime.cpu.run(_scan, path, is_excluded)
    into = await _open_target(store, target)
    size = sum(size_of(leaf) for _, branch in scan.root.walk() for leaf in branch.leaves.values())
    begin(scan.root.count()[0], size)
    for left_out in scan.left_out:
        snapshotter.leave_out(left_out)
    snapshot = await snapshotter.run(scan.root)
    name = time.strftime("%Y-%m-%d_%H:%M:%SZ", time.gmtime(began_at))
    archives = await into.make_directories([ARCHIVES])
    await archives.edit([SetChild(name, snapshot)])
    await into.edit([SetChild(LATEST, snapshot)])
    return Archived(name, snapshot)


def _scan(path: str, is_excluded: Callable[[str], bool]) -> Scan:
    return scan_directory(path, follow_links=False, is_excluded=is_excluded)


async def _open_target(store: Store, target: RemotePlace) -> OpenDirectory:
    root = require_usable(target.root)
    if not isinstance(root, DirectoryCap):
        raise WrongTypeError(f"'{target.shown}' is no directory", name=target.shown)
    directory = store.directory(root)
    if target.suggestion:
        await _require_meant(directory, target)
    if target.path:
        directory = await directory.make_directories(target.path)
    if not directory.is_writable:
        raise AuthorityError(f"'{target.shown}' can only be read")
    return directory


async def _require_meant(directory: OpenDirectory, target: RemotePlace) -> None:
    """NoSuchChildError if the target begins with an alias without its colon, and with nothing that is there."""
    try:
        await directory.get(target.path[:1])
    except NoSuchChildError:
        words = f"There is no path '{target.shown}'. Did you mean '{target.suggestion}'?"
        raise NoSuchChildError(words, name=target.shown) from None
