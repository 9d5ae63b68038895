"""Writes mutable shares, so that a crash or a full disk leaves either the old state or the new one. Blocking.

A share of up to 1 MiB, or one that changes in large part, is written into a new file, which then replaces the old one
(`write_draft`). If a small part of a larger share changes, that would cost too much: the share is then overwritten in
place, under an undo log of the old bytes (`plan_in_place`, docs/decisions/0015). A share that grows piece by piece gets
spare room after its data, and writes into that room need no log (docs/decisions/0080). Also syncs the names of
shares. [spec storage-server 4.2-4.4, 9.1]
Cost: the share is written once, and what stays of it is read. In place: the changed bytes are read once and written twice, the added ones
are written once.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, field

from grid.errors import NoSpaceError
from grid.limits import MAX_LEASES
from grid.ports import Buffer, LeaseSecrets, ShareNumber, SlotSecrets, TestWrite
from grid.storage.files.disk import Disk, Handle
from grid.storage.files.incoming import create_anew
from grid.storage.files.leases import RENEWAL_OWNER, SLOT_LEASE_SIZE, Lease, find_lease, new_lease
from grid.storage.files.paths import SHARES, draft_path, prefix_directory, share_directory, share_path
from grid.storage.files.share_files import ShareFile, free_slot
from grid.storage.files.slots import DATA_OFFSET, LATEST_VERSION, Slot, pack_back, pack_front
from grid.storage.files.undo import Change
from grid.values import frozen

COPY_LIMIT = 2**20
"""Shares up to this size are always rewritten, unless they grow into existing room."""
COPY_FACTOR = 4
"""Larger ones are rewritten too if the changed part is at least this fraction of them."""
ROOM_FROM = 2**16
"""A share to which this many bytes are added at once will probably grow again."""
MOST_ROOM = 32 * 2**20
"""Most bytes of room after a share's data; otherwise as much as the data. The room is a hole in the file."""
_CHUNK_SIZE = 2**20


@frozen(kw_only=True)
class SlotState:
    """The front of a mutable share, and its leases."""

    slot: Slot
    leases: list[Lease | None] = field(repr=False)


def empty_state(secrets: SlotSecrets, node_id: bytes) -> SlotState:
    """The state of a share that does not exist yet; its first writer becomes its owner."""
    slot = Slot(version=LATEST_VERSION, node_id=node_id, write_enabler=secrets.write_enabler)
    return SlotState(slot=slot, leases=[None] * 4)


def with_lease(
    state: SlotState, secrets: LeaseSecrets, *, now: float, node_id: bytes, available: int | None
) -> SlotState:
    """The state with the lease added or renewed; NoSpaceError. [spec storage-server 6]"""
    lease = new_lease(secrets, version=state.slot.version, owner=RENEWAL_OWNER, now=now, node_id=node_id)
    index = find_lease(state.leases, lease)
    leases = list(state.leases)
    if index is not None:
        held = leases[index]
        if held is not None and held.expires < lease.expires:
            leases[index] = evolve(held, expires=lease.expires)
        return evolve(state, leases=leases)
    index, slot_count = free_slot(leases)
    if slot_count > len(leases):
        if len(leases) >= MAX_LEASES or (available is not None and available < SLOT_LEASE_SIZE):
            raise NoSpaceError("there is no room for another lease")
        leases.append(None)
    leases[index] = lease
    return evolve(state, leases=leases)


def written(slot: Slot, vector: TestWrite) -> Slot:
    """The slot after the vector's writes, with spare room if the share will probably grow; DataTooLargeError."""
    after = slot
    for offset, data in vector.writes:
        after = after.grown(offset, len(data))
    after = after.cut(vector.new_length)
    if vector.new_length is None:
        moved = after.leases_offset > slot.leases_offset
        if moved and slot.data_size and after.data_size - slot.data_size >= ROOM_FROM:
            return evolve(after, leases_offset=after.leases_offset + min(after.data_size, MOST_ROOM))
    elif vector.writes and after.data_size >= slot.data_size:
        return evolve(after, leases_offset=DATA_OFFSET + after.data_size)
    return after


def is_worth_copying(slot: Slot, vector: TestWrite) -> bool:
    """Whether to rewrite the share rather than change it in place."""
    replaced = sum(max(0, min(len(data), slot.data_size - offset)) for offset, data in vector.writes)
    return slot.data_size <= max(COPY_LIMIT, replaced * COPY_FACTOR)


def fills_room(before: SlotState, after: SlotState, vector: TestWrite) -> bool:
    """Whether the vector only adds bytes right after the data, into existing room."""
    position = before.slot.data_size
    for offset, data in vector.writes:
        if offset != position:
            return False
        position += len(data)
    is_same = evolve(before.slot, data_size=position) == after.slot
    return position > before.slot.data_size and is_same and pack_back(before.leases) == pack_back(after.leases)


def fill_room(disk: Disk, name: str, number: ShareNumber, vector: TestWrite) -> Handle:
    """Write the bytes into the share's spare room, where nobody sees them yet. Returns the open, unsynced file; OSError."""
    handle = disk.open_file(share_path(name, number), writable=True)
    try:
        for offset, data in vector.writes:
            disk.write(handle, DATA_OFFSET + offset, [data])
    except OSError:
        disk.close_file(handle)
        raise
    return handle


def new_front(number: ShareNumber, after: SlotState) -> Change:
    """The change that makes the bytes in the room part of the share: one sector."""
    return Change(share_number=number, writes=[(0, pack_front(after.slot, after.leases))])


def write_draft(
    disk: Disk, name: str, number: ShareNumber, old: ShareFile | None, after: SlotState, vector: TestWrite
) -> Handle:
    """Write the next state of the share into a new file. Returns it open and unsynced; OSError leaves nothing behind.

    old: the share's file, None for a new share.
    """
    path = draft_path(name, number)
    handle = create_anew(disk, path)
    try:
        if old is not None and isinstance(old.form, Slot):
            size = min(old.form.data_size, after.slot.data_size)
            for start, stop in _untouched(size, vector.writes):
                _copy_data(disk, old, handle, start, stop)
        # The file ends with the data, so that a gap before a write is filled with zeros.
        for offset, data in vector.writes:
            disk.write(handle, DATA_OFFSET + offset, [data])
        disk.write(handle, 0, [pack_front(after.slot, after.leases)])
        disk.write(handle, after.slot.leases_offset, [pack_back(after.leases)])
    except OSError:
        disk.close_file(handle)
        disk.unlink(path)
        raise
    return handle


def plan_in_place(old: ShareFile, before: Slot, after: SlotState, vector: TestWrite) -> Change:
    """The change of a share in place, from the slot `before` to the state `after`."""
    writes: list[tuple[int, Buffer]] = [(DATA_OFFSET + offset, data) for offset, data in vector.writes]
    end = DATA_OFFSET + before.data_size
    saves = [(offset, min(len(data), end - offset)) for offset, data in writes if offset < end]
    position, has_gap = before, False
    for offset, data in vector.writes:
        has_gap = has_gap or offset > position.data_size
        position = position.grown(offset, len(data))
    back = pack_back(after.leases)
    writes += [(0, pack_front(after.slot, after.leases)), (after.slot.leases_offset, back)]
    return Change(
        share_number=old.share_number,
        # Remove what follows the data, so that a gap before a write is filled with zeros.
        cut=end if has_gap else None,
        writes=writes,
        saves=[
            (0, DATA_OFFSET),
            (before.leases_offset, old.file_size - before.leases_offset),
            *saves,
        ],
        size=after.slot.leases_offset + len(back),
    )


def _untouched(size: int, writes: Sequence[tuple[int, Buffer]]) -> list[tuple[int, int]]:
    """(start, stop) of what the writes leave of the first `size` bytes, in ascending order."""
    left: list[tuple[int, int]] = []
    position = 0
    for offset, length in sorted((offset, len(data)) for offset, data in writes):
        if position < min(offset, size):
            left.append((position, min(offset, size)))
        position = max(position, offset + length)
    return [*left, (position, size)] if position < size else left


def _copy_data(disk: Disk, old: ShareFile, target: Handle, start: int, stop: int) -> None:
    """Copy data from one offset to another."""
    for offset in range(DATA_OFFSET + start, DATA_OFFSET + stop, _CHUNK_SIZE):
        length = min(_CHUNK_SIZE, DATA_OFFSET + stop - offset)
        disk.write(target, offset, [disk.read(old.handle, offset, length)])


KNOWN_NAMES = 2**14
"""Storage indexes remembered as durable: a few megabytes."""


class ShareNames:
    """Knows which mutable shares' names are durable, and syncs the others.

    A storage index has its directory to itself, so no other caller's sync would serve it: the call that changed it
    syncs it. The directories above are synced once per storage index, and again only if it was removed meanwhile.
    Cost of a change of names: one sync; three for the first in a new prefix; none with durability `none`. Only one
    thread at a time per storage index may use it.
    """

    def __init__(self, disk: Disk, *, durable: bool) -> None:
        self._disk = disk
        self._durable = durable
        self._prefixes: set[str] = set()
        """Prefix directories (never removed) whose own names are durable."""
        self._known: set[str] = set()
        """Storage indexes whose names are all durable."""
        self._settled: set[str] = set()
        """Storage indexes whose directory names are durable, unless somebody has removed them."""

    def changing(self, name: str, *, is_new: bool) -> None:
        """Note that the names of the storage index are about to change. is_new: it has no shares, and maybe no directory."""
        self._known.discard(name)
        if is_new:
            self._settled.discard(name)

    def settle(self, name: str) -> None:
        """Return when the names of the storage index's shares are durable; OSError: they may not be."""
        if not self._durable or name in self._known:
            return
        is_there = self._sync(share_directory(name))
        if not is_there or name not in self._settled:
            prefix = prefix_directory(name)
            if self._sync(prefix) and prefix not in self._prefixes:
                self._disk.sync_directory(SHARES)
                self._prefixes.add(prefix)
        for names in (self._known, self._settled):
            if len(names) >= KNOWN_NAMES:
                names.clear()
            names.add(name)
        if not is_there:
            self._settled.discard(name)

    def _sync(self, directory: str) -> bool:
        """Sync the directory if it exists. Returns whether it does."""
        try:
            self._disk.sync_directory(directory)
        except FileNotFoundError:
            return False
        return True
