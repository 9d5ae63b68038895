"""The immutable share container: a 12-byte header, the share, and lease records. Pure. [spec storage-server 3]"""

from __future__ import annotations

import struct

from grid.errors import FormatError, UnknownVersionError
from grid.ports import Buffer
from grid.storage.files.leases import SHARE_LEASE_SIZE, Lease, parse_share_lease
from grid.values import frozen

_HEADER = struct.Struct(">LLL")
HEADER_SIZE = _HEADER.size
LEASE_COUNT_OFFSET = 8
LATEST_VERSION = 2


@frozen(kw_only=True)
class Container:
    """The geometry of a container. data_size: bytes of the share; lease_count: whole records after it."""

    version: int
    lease_count: int
    data_size: int

    @property
    def leases_offset(self) -> int:
        """Offset of the first lease record in the file."""
        return HEADER_SIZE + self.data_size

    def lease_offset(self, index: int) -> int:
        """Offset of that lease record. For lease_count: where the next one goes."""
        return self.leases_offset + SHARE_LEASE_SIZE * index

    def clip(self, offset: int, length: int) -> tuple[int, int]:
        """(file offset, bytes) of a range of the share, cut at the share's end."""
        return HEADER_SIZE + offset, max(0, min(length, self.data_size - offset))


def pack_header(share_size: int, *, lease_count: int = 1, version: int = LATEST_VERSION) -> bytes:
    """The header of a new container for share_size bytes."""
    return _HEADER.pack(version, min(2**32 - 1, share_size), lease_count)


def pack_lease_count(count: int) -> bytes:
    """The 4 bytes at LEASE_COUNT_OFFSET."""
    return count.to_bytes(4, "big")


def parse_header(header: Buffer, file_size: int) -> Container:
    """The geometry of a file of file_size bytes, from its first 12 bytes (or all, if it has fewer).

    FormatError: the file is shorter than its header claims. UnknownVersionError: it is some other kind of file.
    """
    if len(header) < HEADER_SIZE:
        raise FormatError("an immutable share file shorter than its header")
    version, _, lease_count = _HEADER.unpack_from(header)
    if not 1 <= version <= LATEST_VERSION:
        raise UnknownVersionError(f"an immutable share file had unexpected version {version}")
    data_size = file_size - HEADER_SIZE - SHARE_LEASE_SIZE * lease_count
    if data_size < 0:
        raise FormatError("an immutable share file shorter than the leases its header counts")
    return Container(version=version, lease_count=lease_count, data_size=data_size)


def parse_leases(records: Buffer) -> list[Lease]:
    """Parse consecutive lease records; FormatError if the last one is cut short."""
    if len(records) % SHARE_LEASE_SIZE:
        raise FormatError("a lease record cut short")
    view = memoryview(records)
    return [
        parse_share_lease(view[start : start + SHARE_LEASE_SIZE]) for start in range(0, len(view), SHARE_LEASE_SIZE)
    ]
