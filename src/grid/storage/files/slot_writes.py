"""Writing a mutable share: the next state is complete before it replaces the last. Syncing its name. Blocking.

A share is rewritten beside its place and then renamed, so that a crash or a full disk leaves one state or the
other. Where a little is changed in a large share that would cost too much: then it is changed in place, under an
undo log (docs/decisions/0015). A share that grows piece by piece is given room after its data, and what fills the
room needs no log (docs/decisions/0080). [spec storage-server 4.2-4.4, 9.1]
Cost: bytes of the share read and written once; in place, the bytes changed read once and written twice, those added
written once.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

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

COPY_LIMIT = 2**20
"""Shares up to this size are always rewritten, unless they grow into room that they have."""
COPY_FACTOR = 4
"""Larger ones are, too, when what is replaced is at least this part of them."""
ROOM_FROM = 2**16
"""A share to which so much is added at once is likely to grow again."""
MOST_ROOM = 32 * 2**20
"""Bytes of room after a share's data, at most; as much as there are data, otherwise. It is a hole in the file."""
_CHUNK_SIZE = 2**20


@frozen(kw_only=True)
class SlotState:
    """The front of a mutable share, and its leases."""

    slot: Slot
    leases: list[Lease | None] = field(repr=False)


def empty_state(secrets: SlotSecrets, node_id: bytes) -> SlotState:
    """A share that does not exist yet; it belongs to its first writer."""
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
    """The slot after the vector's writes, with room for more where more is likely to come; DataTooLargeError."""
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
    """Whether the share is better rewritten than changed in place."""
    replaced = sum(max(0, min(len(data), slot.data_size - offset)) for offset, data in vector.writes)
    return slot.data_size <= max(COPY_LIMIT, replaced * COPY_FACTOR)


def fills_room(before: SlotState, after: SlotState, vector: TestWrite) -> bool:
    """Whether all that the vector does is to add bytes right after the data, in room that is there."""
    position = before.slot.data_size
    for offset, data in vector.writes:
        if offset != position:
            return False
        position += len(data)
    is_same = evolve(before.slot, data_size=position) == after.slot
    return position > before.slot.data_size and is_same and pack_back(before.leases) == pack_back(after.leases)


def fill_room(disk: Disk, name: str, number: ShareNumber, vector: TestWrite) -> Handle:
    """Put the bytes where nobody sees them yet, into the share's file, which is open and not synced then; OSError."""
    handle = disk.open_file(share_path(name, number), writable=True)
    try:
        for offset, data in vector.writes:
            disk.write(handle, DATA_OFFSET + offset, [data])
    except OSError:
        disk.close_file(handle)
        raise
    return handle


def new_front(number: ShareNumber, after: SlotState) -> Change:
    """What makes the bytes that fill the room part of the share: one sector."""
    return Change(share_number=number, writes=[(0, pack_front(after.slot, after.leases))])


def write_draft(
    disk: Disk, name: str, number: ShareNumber, old: ShareFile | None, after: SlotState, vector: TestWrite
) -> Handle:
    """The next state of the share in a file of its own, open and not synced; OSError with nothing left behind.

    old: the share's file, None for a new share.
    """
    path = draft_path(name, number)
    handle = create_anew(disk, path)
    try:
        if old is not None and isinstance(old.form, Slot):
            _copy_data(disk, old, handle, old.form.data_size)
        # The file ends where the data does, so that a gap before a write is filled with zeros.
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
    """What changes the share where it is, from the slot `before` to the state after."""
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
        # What follows the data goes, so that a gap before a write is filled with zeros.
        cut=end if has_gap else None,
        writes=writes,
        saves=[
            (0, DATA_OFFSET),
            (before.leases_offset, old.file_size - before.leases_offset),
            *saves,
        ],
        size=after.slot.leases_offset + len(back),
    )


def _copy_data(disk: Disk, old: ShareFile, target: Handle, size: int) -> None:
    for start in range(DATA_OFFSET, DATA_OFFSET + size, _CHUNK_SIZE):
        length = min(_CHUNK_SIZE, DATA_OFFSET + size - start)
        disk.write(target, start, [disk.read(old.handle, start, length)])


KNOWN_NAMES = 2**14
"""Storage indexes remembered as being on the medium: a few megabytes."""


class ShareNames:
    """Which mutable shares' names are on the medium, and the syncs that bring them there.

    The directory of a storage index belongs to it alone, so nobody else's sync would serve it: the call that changed it
    syncs it. The directories above are synced once for each storage index, and again only if it was gone meanwhile.
    Cost of a change of names: one sync; three for the first in a new prefix; none with durability `none`. For one
    thread at a time per storage index.
    """

    def __init__(self, disk: Disk, *, durable: bool) -> None:
        self._disk = disk
        self._durable = durable
        self._prefixes: set[str] = set()
        """Prefix directories, which are never removed, whose own names are on the medium."""
        self._known: set[str] = set()
        """Storage indexes all of whose names are."""
        self._settled: set[str] = set()
        """Storage indexes of which the directory's name is, if nobody has removed it."""

    def changing(self, name: str, *, is_new: bool) -> None:
        """Note that the storage index's names are about to change. is_new: it has no shares, perhaps no directory."""
        self._known.discard(name)
        if is_new:
            self._settled.discard(name)

    def settle(self, name: str) -> None:
        """Return when the names of the storage index's shares are on the medium; OSError: they may not be."""
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
        """Whether the directory is there; if so, what is in it is on the medium then."""
        try:
            self._disk.sync_directory(directory)
        except FileNotFoundError:
            return False
        return True
