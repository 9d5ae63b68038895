"""Reads shares from a storage server's disk, for comparison."""

from __future__ import annotations

import hashlib
import struct

from attrs import frozen

from grid.storage.files.disk import Disk
from grid.storage.files.paths import INCOMING, SHARES
from grid.storage.files.share_files import opened, share_numbers


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


def blake(secret: bytes) -> bytes:
    """A lease secret as version 2 stores it."""
    return hashlib.blake2b(secret, digest_size=32).digest()


def load(disk: Disk, path: str) -> bytes:
    """A whole file."""
    handle = disk.open_file(path)
    try:
        return disk.read(handle, 0, disk.size(handle))
    finally:
        disk.close_file(handle)


def store(disk: Disk, path: str, data: bytes) -> None:
    """A new file, with the directories above it."""
    directory = path.rpartition("/")[0]
    for end in [index for index, character in enumerate(directory) if character == "/"] + [len(directory)]:
        if not disk.exists(directory[:end]):
            disk.make_directory(directory[:end])
    handle = disk.create_file(path)
    disk.write(handle, 0, [data])
    disk.close_file(handle)


def immutable_file(data: bytes, *owners: bytes, version: int = 2, expires: int = 5) -> bytes:
    """The container of a share with a lease of each owner."""
    secrets = [(owner * 32, owner.upper() * 32) for owner in owners]
    stored = [(blake(renew), blake(cancel)) if version == 2 else (renew, cancel) for renew, cancel in secrets]
    leases = b"".join(struct.pack(">L32s32sL", 0, renew, cancel, expires) for renew, cancel in stored)
    return struct.pack(">LLL", version, len(data), len(owners)) + data + leases
