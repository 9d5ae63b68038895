"""The mutable shares of one storage index: reads, and the one operation that tests and writes. Blocking.

As in store.py, nothing else may use the storage index meanwhile. [spec storage-server 9]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from hmac import compare_digest

from grid.codec import base32
from grid.errors import BadWriteEnablerError, FormatError, UnknownVersionError
from grid.limits import MAX_SLOT_WRITE, READ_CALL_BYTES
from grid.ports import LeaseSecrets, Range, Room, ShareNumber, SlotAnswer, SlotSecrets, TestWrite
from grid.storage.files.disk import Disk, Handle
from grid.storage.files.incoming import make_directories, remove_if_empty
from grid.storage.files.leases import RENEWAL_OWNER
from grid.storage.files.paths import draft_path, prefix_directory, share_directory, share_path
from grid.storage.files.share_files import (
    AnswerSize,
    ShareFile,
    opened,
    plan_lease,
    share_numbers,
    skipping,
)
from grid.storage.files.slot_writes import (
    ShareNames,
    SlotState,
    empty_state,
    fill_room,
    fills_room,
    is_worth_copying,
    new_front,
    plan_in_place,
    with_lease,
    write_draft,
    written,
)
from grid.storage.files.slots import Slot
from grid.storage.files.store import ShareStore
from grid.storage.files.undo import Change
from grid.values import define, field, frozen


@frozen
class SlotCall:
    """One request to test and write. now: Unix time. room: for the answer; None: unlimited."""

    secrets: SlotSecrets
    vectors: Mapping[ShareNumber, TestWrite]
    ranges: Sequence[Range]
    now: float
    room: Room | None = None


@define
class _Outcome:
    """What to do once every test has held: put drafts into place, make changes in place, and remove files.

    filled: files of shares whose spare room was written to. is_new: whether there was no share at all.
    """

    is_new: bool = False
    drafts: dict[ShareNumber, Handle] = field(factory=dict)
    filled: list[Handle] = field(factory=list)
    changes: list[Change] = field(factory=list)
    removals: list[ShareNumber] = field(factory=list)


class SlotStore:
    """The mutable shares of a store."""

    def __init__(self, store: ShareStore) -> None:
        self._store = store
        self._disk: Disk = store.disk
        self._names = ShareNames(store.disk, durable=store.durable)

    def read(
        self, name: str, numbers: frozenset[ShareNumber], ranges: Sequence[Range], room: Room | None = None
    ) -> dict[ShareNumber, list[bytes]]:
        """Read ranges of those shares that exist (all if none is named); no ranges of a share that the disk cannot read.

        FormatError if that is too much for one answer, NoRoomError if it is at the moment.
        """
        budget = _Budget(room)
        found = self._read(name, numbers, ranges, budget)
        budget.require()
        return found

    def read_each(
        self, questions: Sequence[tuple[str, Sequence[Range]]], room: Room | None = None
    ) -> list[dict[ShareNumber, list[bytes]] | None]:
        """Like `read` with all shares of each name. None if the disk fails, and for what is too much for one answer."""
        budget = _Budget(room, READ_CALL_BYTES)
        answers: list[dict[ShareNumber, list[bytes]] | None] = []
        for name, ranges in questions:
            try:
                found = self._read(name, frozenset(), ranges, budget)
            except OSError:
                answers.append(None)
                continue
            answers.append(None if budget.is_exceeded else found)
        budget.require_room()
        return answers

    def _read(
        self, name: str, numbers: frozenset[ShareNumber], ranges: Sequence[Range], budget: _Budget
    ) -> dict[ShareNumber, list[bytes]]:
        self._store.undo.settle(name, to_read=True)
        found: dict[ShareNumber, list[bytes]] = {}
        for number in share_numbers(self._disk, name):
            if numbers and number not in numbers:
                continue
            unread: list[OSError] = []
            with skipping(name, number, unread), opened(self._disk, name, number) as share:
                if isinstance(share.form, Slot) and budget.admits(share, ranges):
                    found[number] = share.read(ranges)
            if unread:
                found[number] = []
        return found

    def test_and_write(self, name: str, call: SlotCall) -> SlotAnswer:
        """Test and write. Returns the answer once its changes are durable.

        BadWriteEnablerError, UnknownVersionError, DataTooLargeError, NoSpaceError, NoRoomError, OSError: nothing has changed, except
        that an OSError after the new states are complete may leave some shares changed and others not.
        """
        self._store.undo.settle(name)
        outcome = _Outcome()
        try:
            with ExitStack() as handles:
                shares, answer = self._examine(name, call, handles, outcome)
                if not answer.passed:
                    return answer
                handles.callback(self._close_filled, outcome)
                for number, vector in call.vectors.items():
                    self._prepare(name, number, shares.get(number), vector, call, outcome)
                    if number in outcome.drafts:
                        handles.callback(self._disk.close_file, outcome.drafts[number])
                self._sync([*outcome.drafts.values(), *outcome.filled])
            self._store.undo.change(name, outcome.changes)
            self._commit(name, outcome)
        finally:
            self._clear_drafts(name, outcome)
        if call.vectors:
            self._names.settle(name)
        return answer

    def _examine(
        self, name: str, call: SlotCall, handles: ExitStack, outcome: _Outcome
    ) -> tuple[dict[ShareNumber, ShareFile], SlotAnswer]:
        """Open each named share that exists, until the handles are closed, and make the answer."""
        shares: dict[ShareNumber, ShareFile] = {}
        data: dict[ShareNumber, list[bytes]] = {}
        passed, budget = True, _Budget(call.room)
        numbers = share_numbers(self._disk, name)
        outcome.is_new = not numbers
        for number in numbers:
            with ExitStack() as stack:
                vector = call.vectors.get(number)
                if vector is None:
                    stack.enter_context(skipping(name, number))
                    share = stack.enter_context(opened(self._disk, name, number))
                else:
                    share = handles.enter_context(opened(self._disk, name, number))
                slot = _require_slot(share)
                _require_enabler(slot, call.secrets.write_enabler)
                if vector is not None:
                    shares[number] = share
                    passed = passed and _holds(share, vector)
                if budget.admits(share, call.ranges):
                    data[number] = share.read(call.ranges)
        budget.require()
        for number, vector in call.vectors.items():
            if number not in shares:
                passed = passed and not any(specimen for _, _, specimen in vector.tests)
        return shares, SlotAnswer(passed=passed, data=data)

    def _prepare(
        self,
        name: str,
        number: ShareNumber,
        share: ShareFile | None,
        vector: TestWrite,
        call: SlotCall,
        outcome: _Outcome,
    ) -> None:
        if vector.new_length == 0:
            outcome.removals += [] if share is None else [number]
            return
        if share is None:
            before = empty_state(call.secrets, self._store.node_id)
        else:
            before = SlotState(slot=_require_slot(share), leases=share.leases())
        after = with_lease(
            SlotState(slot=written(before.slot, vector), leases=before.leases),
            call.secrets.lease,
            now=call.now,
            node_id=self._store.node_id,
            available=self._store.available_space(),
        )
        if share is None:
            outcome.drafts[number] = write_draft(self._disk, name, number, None, after, vector)
        elif not vector.writes and after.slot == before.slot:
            change = self._plan_lease(share, call.secrets.lease, call.now)
            outcome.changes += [] if change is None else [change]
        elif fills_room(before, after, vector):
            outcome.filled.append(fill_room(self._disk, name, number, vector))
            outcome.changes.append(new_front(number, after))
        elif is_worth_copying(before.slot, vector):
            outcome.drafts[number] = write_draft(self._disk, name, number, share, after, vector)
        else:
            outcome.changes.append(plan_in_place(share, before.slot, after, vector))

    def _plan_lease(self, share: ShareFile, secrets: LeaseSecrets, now: float) -> Change | None:
        return plan_lease(
            share,
            secrets,
            owner=RENEWAL_OWNER,
            now=now,
            node_id=self._store.node_id,
            available=self._store.available_space(),
        )

    def _sync(self, handles: Sequence[Handle]) -> None:
        if self._store.durable:
            for handle in handles:
                self._disk.start_writeback(handle)
            for handle in handles:
                self._disk.sync_file(handle)

    def _close_filled(self, outcome: _Outcome) -> None:
        for handle in outcome.filled:
            self._disk.close_file(handle)

    def _commit(self, name: str, outcome: _Outcome) -> None:
        """Put the drafts into place, and remove shares."""
        if outcome.drafts or outcome.removals:
            self._names.changing(name, is_new=outcome.is_new)
        if outcome.drafts and outcome.is_new:
            make_directories(self._disk, prefix_directory(name), share_directory(name))
        for number in list(outcome.drafts):
            self._disk.rename(draft_path(name, number), share_path(name, number))
            del outcome.drafts[number]
        for number in outcome.removals:
            self._disk.unlink(share_path(name, number))
        if outcome.removals:
            remove_if_empty(self._disk, share_directory(name))

    def _clear_drafts(self, name: str, outcome: _Outcome) -> None:
        """Remove drafts that were not put into place, and a directory that was made for them."""
        for number in outcome.drafts:
            with skipping(name, number):
                self._disk.unlink(draft_path(name, number))
        if outcome.drafts and outcome.is_new:
            remove_if_empty(self._disk, share_directory(name))


class _Budget:
    """How much one answer may hold, counted before anything is read."""

    def __init__(self, room: Room | None, most: int | None = None) -> None:
        self._answer = AnswerSize(room)
        self._most = MAX_SLOT_WRITE if most is None else most
        self._size = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether more was to be read than one answer may hold."""
        return self._size > self._most

    def admits(self, share: ShareFile, ranges: Sequence[Range]) -> bool:
        size = share.clipped_size(ranges)
        self._size += size
        return not self.is_exceeded and self._answer.admits(size, len(ranges))

    def require(self) -> None:
        """Raise FormatError if it is exceeded, NoRoomError if there is no room at the moment."""
        if self.is_exceeded:
            raise FormatError(f"a read of {self._size} bytes at once; at most {self._most} are possible")
        self.require_room()

    def require_room(self) -> None:
        """Raise NoRoomError if there is no room at the moment."""
        self._answer.require()


def _require_slot(share: ShareFile) -> Slot:
    if not isinstance(share.form, Slot):
        raise UnknownVersionError(f"share {share.share_number} is immutable; it cannot be written to")
    return share.form


def _require_enabler(slot: Slot, write_enabler: bytes) -> None:
    if not compare_digest(slot.write_enabler, write_enabler):
        node = base32.encode(slot.node_id)
        raise BadWriteEnablerError(f"The write enabler was recorded by nodeid '{node}'.")


def _holds(share: ShareFile, vector: TestWrite) -> bool:
    return all(share.read([(offset, length)]) == [specimen] for offset, length, specimen in vector.tests)
