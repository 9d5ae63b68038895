"""The mutable share container: header, four lease slots, data area, further leases. Pure. [spec storage-server 4]"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from attrs import evolve, field

from grid.errors import DataTooLargeError, FormatError, UnknownVersionError
from grid.limits import MAX_SLOT_SIZE
from grid.ports import Buffer
from grid.storage.files.leases import SLOT_LEASE_SIZE, Lease, pack_slot_lease, parse_slot_lease
from grid.values import frozen

_HEADER = struct.Struct(">32s20s32sQQ")
FIXED_SIZE = _HEADER.size
"""Bytes before the lease slots."""
FRONT_LEASES = 4
DATA_OFFSET = FIXED_SIZE + FRONT_LEASES * SLOT_LEASE_SIZE
"""Offset of the data area. Everything before it is the front."""
COUNT_SIZE = 4
LATEST_VERSION = 2

MAGIC = {
    1: b"Tahoe mutable container v1\n" + bytes.fromhex("750944038e"),
    2: b"Tahoe mutable container v2\n" + bytes.fromhex("c355219925"),
}
_VERSIONS = {magic: version for version, magic in MAGIC.items()}
MAGIC_SIZE = 32


@frozen(kw_only=True)
class Slot:
    """The front of a container, without its leases. data_size: bytes of share data; leases_offset: where the
    count of further leases is in the file, followed by the records.
    """

    version: int
    node_id: bytes
    write_enabler: bytes = field(repr=False)
    data_size: int = 0
    leases_offset: int = DATA_OFFSET

    def clip(self, offset: int, length: int) -> tuple[int, int]:
        """(file offset, bytes) of a range of the data, cut at its end."""
        return DATA_OFFSET + offset, max(0, min(length, self.data_size - offset))

    def lease_offset(self, index: int) -> int:
        """Offset of that lease slot in the file."""
        if index < FRONT_LEASES:
            return FIXED_SIZE + SLOT_LEASE_SIZE * index
        return self.leases_offset + COUNT_SIZE + SLOT_LEASE_SIZE * (index - FRONT_LEASES)

    def grown(self, offset: int, length: int) -> Slot:
        """The slot after a write of `length` bytes at `offset`; DataTooLargeError if a slot cannot hold that."""
        end = offset + length
        if end < self.data_size:
            return self
        if DATA_OFFSET + end > self.leases_offset:
            if end > MAX_SLOT_SIZE:
                raise DataTooLargeError(f"a mutable share of {end} bytes; at most {MAX_SLOT_SIZE} are possible")
            return evolve(self, data_size=end, leases_offset=DATA_OFFSET + end)
        return evolve(self, data_size=end)

    def cut(self, new_length: int | None) -> Slot:
        """The slot with its data cut to new_length, if it has more."""
        if new_length is None or new_length >= self.data_size:
            return self
        return evolve(self, data_size=new_length)


def is_slot(head: Buffer) -> bool:
    """Whether a file with these first bytes is a mutable container of a known version."""
    return bytes(head[:MAGIC_SIZE]) in _VERSIONS


def parse_slot(head: Buffer, file_size: int) -> Slot:
    """The slot of a file of file_size bytes, from its first FIXED_SIZE bytes (or all, if it has fewer).

    UnknownVersionError: some other kind of file. FormatError: offsets outside the file.
    """
    version = _VERSIONS.get(bytes(head[:MAGIC_SIZE]))
    if version is None:
        raise UnknownVersionError("a share file that does not begin like any known mutable container")
    if len(head) < FIXED_SIZE:
        raise FormatError("a mutable share file shorter than its header")
    _, node_id, write_enabler, data_size, leases_offset = _HEADER.unpack_from(head)
    if DATA_OFFSET + data_size > leases_offset or leases_offset + COUNT_SIZE > file_size:
        raise FormatError("a mutable share file whose data or leases lie outside of it")
    return Slot(
        version=version,
        node_id=node_id,
        write_enabler=write_enabler,
        data_size=data_size,
        leases_offset=leases_offset,
    )


def parse_slot_leases(front: Buffer, back: Buffer) -> list[Lease | None]:
    """Every lease slot in order, None for empty ones. A slot cut off by the end of the file counts as empty.

    front: the file's first DATA_OFFSET bytes; back: everything from leases_offset on. FormatError if either is shorter.
    """
    if len(front) < DATA_OFFSET or len(back) < COUNT_SIZE:
        raise FormatError("a mutable share file shorter than its lease slots")
    count = int.from_bytes(back[:COUNT_SIZE], "big")
    held = min(count, (len(back) - COUNT_SIZE) // SLOT_LEASE_SIZE)
    if count > held + 1:
        raise FormatError("a mutable share file shorter than the leases it counts")
    view, rear = memoryview(front), memoryview(back)
    records = [view[start : start + SLOT_LEASE_SIZE] for start in range(FIXED_SIZE, DATA_OFFSET, SLOT_LEASE_SIZE)]
    end = COUNT_SIZE + held * SLOT_LEASE_SIZE
    records += [rear[start : start + SLOT_LEASE_SIZE] for start in range(COUNT_SIZE, end, SLOT_LEASE_SIZE)]
    return [*(parse_slot_lease(record) for record in records), *([None] * (count - held))]


def pack_front(slot: Slot, leases: Sequence[Lease | None]) -> bytes:
    """The file's first DATA_OFFSET bytes, which contain at most four leases."""
    fixed = _HEADER.pack(MAGIC[slot.version], slot.node_id, slot.write_enabler, slot.data_size, slot.leases_offset)
    front = [*leases[:FRONT_LEASES], *([None] * FRONT_LEASES)][:FRONT_LEASES]
    return fixed + b"".join(map(pack_slot_lease, front))


def pack_back(leases: Sequence[Lease | None]) -> bytes:
    """Everything from leases_offset on: the number of leases beyond the fourth, and those leases."""
    rest = leases[FRONT_LEASES:]
    return pack_lease_count(len(leases)) + b"".join(map(pack_slot_lease, rest))


def pack_lease_count(slot_count: int) -> bytes:
    """The 4 bytes at leases_offset of a container with that many lease slots in all."""
    return max(0, slot_count - FRONT_LEASES).to_bytes(COUNT_SIZE, "big")
