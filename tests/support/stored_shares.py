"""What is on a storage server's disk, for tests that compare it."""

from __future__ import annotations

from attrs import frozen

from grid.storage.disk import Disk
from grid.storage.paths import INCOMING, SHARES
from grid.storage.share_files import opened, share_numbers


@frozen
class Stored:
    """One finished share: its kind, its data, and the renew secrets and times of its leases as stored, in order."""

    kind: str
    data: bytes
    leases: tuple[tuple[bytes, int], ...]


State = dict[tuple[str, int], Stored]
"""(name of the storage index, share number) to the share."""


def stored_shares(disk: Disk) -> State:
    """Every finished share on the disk."""
    found: State = {}
    for prefix, _ in disk.list_directory(SHARES):
        if f"{SHARES}/{prefix}" == INCOMING:
            continue
        for name, _ in disk.list_directory(f"{SHARES}/{prefix}"):
            for number in share_numbers(disk, name):
                with opened(disk, name, number) as share:
                    (data,) = share.read([(0, 2**40)])
                    leases = tuple((lease.renew, lease.expires) for lease in share.leases() if lease is not None)
                    found[name, number] = Stored(share.kind, data, leases)
    return found


def files_below(disk: Disk, directory: str) -> list[str]:
    """Every file and directory below the directory."""
    found = []
    for name, is_directory in disk.list_directory(directory):
        path = f"{directory}/{name}"
        found.append(path)
        if is_directory:
            found += files_below(disk, path)
    return sorted(found)
