"""Finished share files of one storage index: opening, reading, and planning changes of their leases. Blocking.

Reads skip a share of the other kind; they also skip a file that is no share or cannot be read, and log it (`skipping`).
A write that names such a file fails. `AnswerSize` counts what one answer will hold, share by share, and reserves room
for each share before it is read.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from twisted.logger import Logger

from grid.errors import FormatError, NoRoomError, NoSpaceError
from grid.limits import ANSWER_RANGE_BYTES, MAX_LEASES
from grid.ports import LeaseSecrets, Range, Room, ShareKind, ShareNumber
from grid.storage.files import containers, slots
from grid.storage.files.containers import Container
from grid.storage.files.disk import Disk, Handle
from grid.storage.files.leases import (
    SHARE_LEASE_SIZE,
    SHARE_LEASE_TIME_OFFSET,
    SLOT_LEASE_SIZE,
    SLOT_LEASE_TIME_OFFSET,
    Lease,
    find_lease,
    new_lease,
    pack_share_lease,
    pack_slot_lease,
    pack_time,
)
from grid.storage.files.paths import parse_share_name, share_directory, share_path
from grid.storage.files.slots import Slot
from grid.storage.files.undo import Change
from grid.values import frozen

log = Logger()

PASSING_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that say nothing of a share: the server is short of something for a while."""


@frozen(kw_only=True)
class ShareFile:
    """A share file with a valid form, open as long as its context lasts."""

    share_number: ShareNumber
    disk: Disk
    handle: Handle
    file_size: int
    form: Container | Slot

    @property
    def kind(self) -> ShareKind:
        """The kind of share, by the file's first bytes."""
        return "immutable" if isinstance(self.form, Container) else "mutable"

    def read(self, ranges: Iterable[Range]) -> list[bytes]:
        """The ranges of the share's data, cut at its end."""
        clips = (self.form.clip(offset, length) for offset, length in ranges)
        return [self.disk.read(self.handle, offset, length) if length else b"" for offset, length in clips]

    def clipped_size(self, ranges: Iterable[Range]) -> int:
        """Bytes that `read` would return."""
        clip = self.form.clip
        return sum([clip(offset, length)[1] for offset, length in ranges])

    def leases(self) -> list[Lease | None]:
        """Every lease slot in order, None where one is empty."""
        form, read = self.form, self.disk.read
        if isinstance(form, Container):
            records = read(self.handle, form.leases_offset, SHARE_LEASE_SIZE * form.lease_count)
            return list(containers.parse_leases(records))
        front = read(self.handle, 0, slots.DATA_OFFSET)
        back = read(self.handle, form.leases_offset, self.file_size - form.leases_offset)
        return slots.parse_slot_leases(front, back)


def share_numbers(disk: Disk, name: str) -> list[ShareNumber]:
    """The number of every file that is named like a share, ascending, whatever the file contains."""
    try:
        entries = disk.list_directory(share_directory(name))
    except FileNotFoundError:
        return []
    numbers = (parse_share_name(entry) for entry, is_directory in entries if not is_directory)
    return sorted(number for number in numbers if number is not None)


@contextmanager
def opened(disk: Disk, name: str, number: ShareNumber, *, writable: bool = False) -> Iterator[ShareFile]:
    """Open a share file. FormatError or UnknownVersionError if it is not a share; OSError, including FileNotFoundError."""
    handle = disk.open_file(share_path(name, number), writable=writable)
    try:
        size = disk.size(handle)
        head = disk.read(handle, 0, slots.FIXED_SIZE)
        form = slots.parse_slot(head, size) if slots.is_slot(head) else containers.parse_header(head, size)
        yield ShareFile(share_number=number, disk=disk, handle=handle, file_size=size, form=form)
    finally:
        disk.close_file(handle)


@contextmanager
def skipping(name: str, number: ShareNumber, unread: list[OSError] | None = None) -> Iterator[None]:
    """Log and suppress an error of this share, so that the others are served.

    `unread` collects OSErrors; those of PASSING_LACKS are raised then.
    """
    try:
        yield
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        log.warn("share {path} is skipped: it is a directory", path=share_path(name, number))
    except OSError as error:
        if unread is not None:
            if error.errno in PASSING_LACKS:
                raise
            unread.append(error)
        log.error("the disk does not give share {path}: {reason}", path=share_path(name, number), reason=error.strerror)
    except FormatError as error:
        log.warn("share {path} is skipped: {reason}", path=share_path(name, number), reason=str(error))


def plan_lease(
    share: ShareFile, secrets: LeaseSecrets, *, owner: int, now: float, node_id: bytes, available: int | None
) -> Change | None:
    """The change that adds or renews the lease; None if it already runs as long. NoSpaceError. [spec storage-server 6]

    available: bytes that the server may still use; None if unlimited.
    """
    held = share.leases()
    lease = new_lease(secrets, version=share.form.version, owner=owner, now=now, node_id=node_id)
    index = find_lease(held, lease)
    if index is not None:
        return _plan_renewal(share, index, held[index], lease)
    if isinstance(share.form, Container):
        _require_room(len(held), SHARE_LEASE_SIZE, available)
        return _plan_share_lease(share, share.form, lease)
    index, slot_count = free_slot(held)
    if slot_count > len(held):
        _require_room(len(held), SLOT_LEASE_SIZE, available)
    writes = [(share.form.lease_offset(index), pack_slot_lease(lease))]
    if slot_count > max(len(held), slots.FRONT_LEASES):
        writes.append((share.form.leases_offset, slots.pack_lease_count(slot_count)))
    return Change(
        share_number=share.share_number, writes=writes, saves=[(offset, len(data)) for offset, data in writes]
    )


def free_slot(held: Sequence[Lease | None]) -> tuple[int, int]:
    """(the first empty lease slot, the number of slots once it is used)."""
    index = next((index for index, lease in enumerate(held) if lease is None), len(held))
    return index, max(len(held), index + 1)


def plan_removal(share: ShareFile, remove: frozenset[int]) -> Change | None:
    """The change that removes the leases with these indices; None if none remains and the file should go."""
    held = share.leases()
    kept = [None if index in remove else lease for index, lease in enumerate(held)]
    survivors = [lease for lease in kept if lease is not None]
    if not survivors:
        return None
    number, form = share.share_number, share.form
    if isinstance(form, Container):
        records = b"".join(map(pack_share_lease, survivors))
        count_at = containers.LEASE_COUNT_OFFSET
        return Change(
            share_number=number,
            writes=[(count_at, containers.pack_lease_count(len(survivors))), (form.leases_offset, records)],
            saves=[(count_at, 4), (form.leases_offset, SHARE_LEASE_SIZE * len(held))],
            size=form.leases_offset + len(records),
        )
    places = [form.lease_offset(index) for index in sorted(remove)]
    return Change(
        share_number=number,
        writes=[(place, pack_slot_lease(None)) for place in places],
        saves=[(place, SLOT_LEASE_SIZE) for place in places],
    )


def _require_room(lease_count: int, more: int, available: int | None) -> None:
    if lease_count >= MAX_LEASES:
        raise NoSpaceError(f"a share has {lease_count} leases already")
    if available is not None and available < more:
        raise NoSpaceError("there is no room for another lease")


def _plan_renewal(share: ShareFile, index: int, held: Lease | None, lease: Lease) -> Change | None:
    if held is None or held.expires >= lease.expires:
        return None
    within = SHARE_LEASE_TIME_OFFSET if isinstance(share.form, Container) else SLOT_LEASE_TIME_OFFSET
    place = share.form.lease_offset(index) + within
    return Change(share_number=share.share_number, writes=[(place, pack_time(lease.expires))], saves=[(place, 4)])


def _plan_share_lease(share: ShareFile, form: Container, lease: Lease) -> Change:
    # Until the new count is written, the record would be read as share data, so the change must be atomic.
    place, count_at = form.lease_offset(form.lease_count), containers.LEASE_COUNT_OFFSET
    count = containers.pack_lease_count(form.lease_count + 1)
    return Change(
        share_number=share.share_number,
        writes=[(place, pack_share_lease(lease)), (count_at, count)],
        saves=[(count_at, len(count))],
    )


class AnswerSize:
    """The size of one answer.

    An answer that does not fit is still measured to its end, without further reads, so that the caller knows how
    much room to wait for. It owns no memory: the caller reserves the room and returns it.
    """

    def __init__(self, room: Room | None) -> None:
        """room: None admits any size."""
        self._room = room
        self._is_refused = False
        self._size = 0

    def admits(self, size: int, range_count: int) -> bool:
        """Whether a share's ranges, with that many bytes together, may be read now."""
        cost = size + ANSWER_RANGE_BYTES * (range_count + 1)
        self._size += cost
        if not self._is_refused and self._room is not None:
            self._is_refused = not self._room.take(cost)
        return not self._is_refused

    def require(self) -> None:
        """Raise NoRoomError if something was not admitted."""
        if self._is_refused:
            raise NoRoomError(self._size)
