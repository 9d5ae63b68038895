"""Brings a snapshot back: its files and directories, with the times and modes that were noted. [spec cli 3.1]"""

from __future__ import annotations

from grid.caps import DirectoryCap
from grid.cli.arguments.replacing import ReplacePolicy
from grid.cli.transfer.copy_plan import NoSuchSourceError, WrongTypeError
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.display import TransferDisplay
from grid.cli.transfer.places import RemotePlace, find_remote
from grid.cli.transfer.remote_tree import scan_remote
from grid.cli.transfer.to_local import LocalWriter
from grid.cli.transfer.to_remote import size_of
from grid.directory.store import Store


async def restore_tree(
    store: Store,
    database: LocalDatabase,
    display: TransferDisplay,
    source: RemotePlace,
    target: str,
    *,
    jobs: int,
    replace: ReplacePolicy,
) -> None:
    """Put what is in a directory of the grid into a local one; single failures are in the tally.

    NoSuchSourceError if there is nothing there, WrongTypeError if it is no directory, GridError if it cannot be read, OSError if the target cannot be made.
    """
    found = await find_remote(store, source)
    if found is None:
        raise NoSuchSourceError(f"No such file or directory '{source.shown}'", name=source.shown)
    if not isinstance(found.cap, DirectoryCap):
        raise WrongTypeError(f"'{source.shown}' is a file; `grid get` reads it", name=source.shown)
    scan = await scan_remote(store, found)
    for where in scan.unknown:
        display.fail(f"{where}: of an unknown kind")
    for line in scan.left_out:
        display.fail(line)
    tally = display.tally
    tally.total_files = scan.root.count()[0]
    tally.total_bytes = sum(size_of(leaf) for _, branch in scan.root.walk() for leaf in branch.leaves.values())
    writer = LocalWriter(store, database, display, jobs=jobs, keep_metadata=True, replace=replace)
    await writer.copy_into(target, scan.root)
