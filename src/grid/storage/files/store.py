"""All shares of one server on one disk: finished and unfinished, immutable and mutable. Blocking.

Runs on pool threads. It has no locks: a call that changes finished shares of a storage index must not overlap with any
other call on that index, except writes to unfinished shares. `finish` may overlap with reads, because it only renames. It
has no index either: a share exists if its file does. If a call adds or removes names, the caller must sync their directories before the change is
acknowledged; everything else is synced here. [spec storage-server 2]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twisted.logger import Logger

from grid.errors import ConflictError
from grid.limits import READ_CALL_BYTES, READ_CALL_RANGES
from grid.ports import LeaseSecrets, Range, Room, ShareKind, ShareNumber
from grid.storage.files.containers import LATEST_VERSION, Container
from grid.storage.files.disk import Disk, Space
from grid.storage.files.incoming import IncomingShare, SpanRoom, make_directories, remove_if_empty
from grid.storage.files.leases import ALLOCATION_OWNER, RENEWAL_OWNER, new_lease
from grid.storage.files.paths import (
    ADVISORIES,
    INCOMING,
    ROOT,
    SHARES,
    incoming_directory,
    incoming_prefix,
    prefix_directory,
    share_directory,
    share_path,
)
from grid.storage.files.room_log import RoomLog
from grid.storage.files.share_files import AnswerSize, opened, plan_lease, share_numbers, skipping
from grid.storage.files.undo import Change, UndoLog
from grid.storage.settings import StorageSettings
from grid.values import define, field, frozen

log = Logger()

Hidden = frozenset[ShareNumber]
"""Shares whose files may be in place already although they are not finished."""


@frozen(kw_only=True)
class Wanted:
    """What an allocation requests. reserved: bytes promised to other uploads; keep_open: how many shares' files
    may stay open; now: Unix time.
    """

    secrets: LeaseSecrets
    numbers: frozenset[ShareNumber]
    share_size: int
    reserved: int
    keep_open: int
    now: float


@frozen(kw_only=True)
class Allocated:
    """What an allocation found and created."""

    already: frozenset[ShareNumber]
    shares: tuple[IncomingShare, ...]


@define
class AnswerLimit:
    """How much more one answer may hold: bytes, and ranges."""

    size: int = field(factory=lambda: READ_CALL_BYTES)
    ranges: int = field(factory=lambda: READ_CALL_RANGES)

    def admits(self, size: int, ranges: int) -> bool:
        """Whether this still fits."""
        return size <= self.size and ranges <= self.ranges

    def take(self, size: int, ranges: int) -> None:
        """Count this as part of the answer."""
        self.size -= size
        self.ranges -= ranges


class ShareStore:
    """The shares of the server with that 20-byte node id."""

    def __init__(self, disk: Disk, settings: StorageSettings, node_id: bytes) -> None:
        self.disk = disk
        self.settings = settings
        self.node_id = node_id
        self.durable = settings.durability == "full"
        self.undo = UndoLog(disk, durable=self.durable)
        self.room_log = RoomLog(settings)
        self._spans = SpanRoom()

    def start(self) -> None:
        """Create the directories, undo what a crash left half done, and remove unfinished shares.

        A full disk does not prevent the start. OSError only if there is no shares directory.
        """
        if not self.disk.exists(SHARES):
            make_directories(self.disk, SHARES)
        try:
            make_directories(self.disk, *(path for path in (INCOMING, ADVISORIES) if not self.disk.exists(path)))
            unsettled = self.undo.recover_all()
            self._clear(INCOMING, keep=unsettled)
            if self.durable:
                self.disk.sync_directory(SHARES)
                self.disk.sync_directory(ROOT)
        except OSError as error:
            log.error("the storage directory could not be cleaned up: {reason}", reason=error.strerror)

    def available_space(self) -> int | None:
        """Bytes that the server may still use; None if unlimited. [spec storage-server 7]"""
        if self.settings.readonly:
            return 0
        free = self.disk.free_space()
        return None if free is None else max(0, free - self.settings.reserved_space)

    def space(self) -> tuple[Space | None, int | None]:
        """The disk's, and `available_space`."""
        return self.disk.space(), self.available_space()

    def find(
        self,
        name: str,
        hidden: Hidden,
        ranges: Sequence[Range],
        room: Room | None = None,
        most: int | None = None,
    ) -> dict[ShareNumber, list[bytes]]:
        """Every immutable share with those ranges, or with none if the answer would be too long. NoRoomError.

        most: bytes of ranges; None: as many as any answer may have.

        A share that the disk cannot read is listed all the same, without ranges, so that a reader gets the error.
        """
        size = AnswerSize(room)
        found = self._find(name, hidden, ranges, AnswerLimit() if most is None else AnswerLimit(size=most), size)
        size.require()
        return found

    def _find(
        self, name: str, hidden: Hidden, ranges: Sequence[Range], limit: AnswerLimit, answer: AnswerSize
    ) -> dict[ShareNumber, list[bytes]]:
        self.undo.settle(name, to_read=True)
        found: dict[ShareNumber, list[bytes]] = {}
        for number in share_numbers(self.disk, name):
            if number in hidden:
                continue
            unread: list[OSError] = []
            with skipping(name, number, unread), opened(self.disk, name, number) as share:
                if not isinstance(share.form, Container):
                    continue
                size = share.clipped_size(ranges)
                found[number] = []
                if limit.admits(size, len(ranges)):
                    if answer.admits(size, len(ranges)):
                        found[number] = share.read(ranges)
                    limit.take(size, len(ranges))
            if unread:
                found[number] = []
        return found

    def find_each(
        self, questions: Sequence[tuple[str, Hidden, Sequence[Range]]], room: Room | None = None
    ) -> list[dict[ShareNumber, list[bytes]] | None]:
        """Like `find` for each question. All answers together are no longer than one may be; None if the disk fails."""
        limit, size = AnswerLimit(), AnswerSize(room)
        answers: list[dict[ShareNumber, list[bytes]] | None] = []
        for name, hidden, ranges in questions:
            try:
                answers.append(self._find(name, hidden, ranges, limit, size))
            except OSError:
                answers.append(None)
        size.require()
        return answers

    def read(
        self, name: str, hidden: Hidden, wants: Mapping[ShareNumber, Sequence[Range]], room: Room | None = None
    ) -> dict[ShareNumber, list[bytes]]:
        """Read ranges of immutable shares; missing shares are left out, those that the disk cannot read have no ranges. NoRoomError."""
        answer = AnswerSize(room)
        self.undo.settle(name, to_read=True)
        found: dict[ShareNumber, list[bytes]] = {}
        for number, ranges in wants.items():
            if number in hidden:
                continue
            unread: list[OSError] = []
            with skipping(name, number, unread), opened(self.disk, name, number) as share:
                if isinstance(share.form, Container) and answer.admits(share.clipped_size(ranges), len(ranges)):
                    found[number] = share.read(ranges)
            if unread:
                found[number] = []
        answer.require()
        return found

    def has(self, name: str, hidden: Hidden, kind: ShareKind, number: ShareNumber) -> bool:
        """Whether that finished share exists; one that the disk cannot read may be of that kind."""
        if number in hidden:
            return False
        unread: list[OSError] = []
        with skipping(name, number, unread), opened(self.disk, name, number) as share:
            return share.kind == kind
        return bool(unread)

    def add_lease(self, name: str, hidden: Hidden, secrets: LeaseSecrets, now: float) -> None:
        """Add or renew the lease on every share of either kind. NoSpaceError changes nothing.

        OSError: some shares could not be read; the others have the lease.
        """
        unread: list[OSError] = []
        self._put_lease(name, hidden, secrets, now, RENEWAL_OWNER, frozenset({"immutable", "mutable"}), unread)
        if unread:
            raise unread[0]

    def allocate(self, name: str, hidden: Hidden, wanted: Wanted) -> Allocated:
        """Renew the lease on every immutable share, and create as many of the requested shares as there is room for.

        NoSpaceError if the lease on a share cannot be added; nothing is allocated then. [spec storage-server 8.1]
        """
        already = self.renew(name, hidden, wanted.secrets, wanted.now)
        taken = {*share_numbers(self.disk, name), *hidden}
        available = self.available_space()
        lease = new_lease(
            wanted.secrets,
            version=LATEST_VERSION,
            owner=ALLOCATION_OWNER,
            now=wanted.now,
            node_id=self.node_id,
        )
        begun: list[IncomingShare] = []
        try:
            for number in sorted(wanted.numbers - taken):
                if available is not None and available - wanted.reserved < wanted.share_size * (len(begun) + 1):
                    self.room_log.refused(max(0, available - wanted.reserved), wanted.now)
                    break
                kept = len(begun) < wanted.keep_open
                share = IncomingShare(
                    self.disk, name, number, wanted.share_size, self._spans, durable=self.durable, keep_open=kept
                )
                share.create(lease)
                begun.append(share)
            if begun:
                make_directories(self.disk, prefix_directory(name), share_directory(name))
        except OSError as error:
            # The disk is full. This is a refusal, which leaves nothing behind.
            log.warn("no room for a share: {reason}", reason=error.strerror)
            self.discard(name, begun)
            begun = []
        return Allocated(already=already, shares=tuple(begun))

    def renew(self, name: str, hidden: Hidden, secrets: LeaseSecrets, now: float) -> frozenset[ShareNumber]:
        """Renew the lease on every immutable share as an allocation does, and return their numbers; NoSpaceError, OSError."""
        return self._put_lease(name, hidden, secrets, now, ALLOCATION_OWNER, frozenset({"immutable"}), [])

    def finish(
        self, name: str, shares: Sequence[IncomingShare]
    ) -> tuple[list[IncomingShare], list[ConflictError | OSError]]:
        """Give the synced shares their final names. Returns (shares that have them now, errors of the others).

        Sync their directories before you acknowledge them.
        """
        finished: list[IncomingShare] = []
        errors: list[ConflictError | OSError] = []
        for share in shares:
            try:
                share.finish()
                finished.append(share)
            except (ConflictError, OSError) as error:
                share.discard()
                errors.append(error)
        remove_if_empty(self.disk, incoming_directory(name), incoming_prefix(name))
        return finished, errors

    def discard(self, name: str, shares: Iterable[IncomingShare]) -> None:
        """Remove unfinished shares; never fails."""
        for share in shares:
            share.discard()
        remove_if_empty(self.disk, incoming_directory(name), incoming_prefix(name))
        remove_if_empty(self.disk, share_directory(name))

    def retract(self, name: str, shares: Iterable[IncomingShare]) -> None:
        """Remove shares that have their final names but may lose them."""
        for share in shares:
            with skipping(name, share.share_number):
                self.disk.unlink(share_path(name, share.share_number))
        remove_if_empty(self.disk, share_directory(name))

    def _put_lease(
        self,
        name: str,
        hidden: Hidden,
        secrets: LeaseSecrets,
        now: float,
        owner: int,
        kinds: frozenset[ShareKind],
        unread: list[OSError],
    ) -> frozenset[ShareNumber]:
        """Put the lease on the shares of those kinds, and return their numbers; `unread` collects the errors of unreadable shares."""
        self.undo.settle(name)
        held: set[ShareNumber] = set()
        changes: list[Change] = []
        available: list[int | None] = []
        for number in share_numbers(self.disk, name):
            if number in hidden:
                continue
            with skipping(name, number, unread), opened(self.disk, name, number) as share:
                if share.kind in kinds:
                    available = available or [self.available_space()]
                    change = plan_lease(
                        share, secrets, owner=owner, now=now, node_id=self.node_id, available=available[0]
                    )
                    held.add(number)
                    changes += [] if change is None else [change]
        self.undo.change(name, changes)
        return frozenset(held)

    def _clear(self, directory: str, keep: frozenset[str]) -> None:
        for entry, is_directory in self.disk.list_directory(directory):
            path = f"{directory}/{entry}"
            try:
                if is_directory:
                    self._clear(path, keep)
                    self.disk.remove_directory(path)
                elif path not in keep:
                    self.disk.unlink(path)
            except OSError as error:
                log.warn("{path} could not be removed: {reason}", path=path, reason=error.strerror)
