"""A storage server in this process: implements the port StorageServer over a store of shares.

Owns which calls may overlap: calls that change finished shares of a storage index run alone. Reads run together, and so
do writes to unfinished shares and the renames that finish them. Every call
is one call on the pool, whatever number of shares and ranges it has. It trusts no argument. If a caller
stops waiting, its call still runs to the end, so that nothing is left half done. [spec storage-server 6-9]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Literal, TypeVar

from twisted.internet.defer import Deferred

from grid.errors import FormatError, PeerRefusedError
from grid.limits import (
    FIND_CALL_FILES,
    MAX_FILE_SIZE,
    MAX_SLOT_SIZE,
    MAX_SLOT_VECTORS,
    MAX_UPLOAD_FILES,
    READ_CALL_BYTES,
    READ_CALL_RANGES,
)
from grid.ports import (
    Allocation,
    CpuPool,
    Find,
    LeaseSecrets,
    NewShares,
    Range,
    Room,
    Runtime,
    ServerIdentity,
    ServerVersion,
    ShareKind,
    ShareNumber,
    SlotAnswer,
    SlotSecrets,
    StorageIndex,
    StoreAnswer,
    TestWrite,
)
from grid.read_write_locks import ReadWriteLocks
from grid.storage.calls.advisories import Advisories
from grid.storage.calls.call_limits import check_numbers, check_ranges, check_stores, check_vectors
from grid.storage.calls.directory_sync import DirectorySync
from grid.storage.calls.meter import Meter, count_finds, count_ranges, metered, note_stored
from grid.storage.calls.tasks import shielded, together
from grid.storage.calls.uploads import ShareUpload, UploadContext, UploadTable, disk_error
from grid.storage.files.disk import Disk, Space
from grid.storage.files.paths import STORAGE_INDEX_SIZE, index_name
from grid.storage.files.slot_store import SlotCall, SlotStore
from grid.storage.files.store import Hidden, ShareStore, Wanted
from grid.storage.files.whole_shares import Order, WholeShares
from grid.storage.settings import StorageSettings
from grid.version import __version__

T = TypeVar("T")

UNLIMITED = 2**64
"""The size that a server reports when it cannot determine its disk's size."""


class StorageService:
    """The storage server with this identity over a disk; call `start` before anything else.

    room: how much an answer may hold; NoRoomError if that is too little, and then nothing has happened.
    """

    measures_answers: Literal[True] = True

    def __init__(
        self,
        identity: ServerIdentity,
        disk: Disk,
        runtime: Runtime,
        settings: StorageSettings,
        io: CpuPool | None = None,
    ) -> None:
        """io: threads that wait for the disk; None: those of the runtime. More threads than processors are useful."""
        self._identity = identity
        self._clock = runtime.clock
        self.meter = Meter(runtime.clock)
        self._io = io or runtime.cpu
        self._store = ShareStore(disk, settings, identity.lease_seed)
        self._slots = SlotStore(self._store)
        # Half for uploads in progress, the other half for what each disk thread opens at a time.
        self._whole = WholeShares(self._store, max(1, settings.open_files // 2 // self._io.width))
        self._advisories = Advisories(self._store)
        self._table = UploadTable(min(MAX_UPLOAD_FILES, settings.open_files // 2))
        self._turns = ReadWriteLocks()
        self._directories = DirectorySync(disk, self._io, durable=self._store.durable)
        self._context = UploadContext(
            self._store, self._table, self._turns, self._directories, runtime.clock, self.run, self.meter
        )
        self._stopping = False

    @property
    def identity(self) -> ServerIdentity:
        """The server's identity."""
        return self._identity

    async def start(self) -> None:
        """Clean up the storage directory; PeerError if it cannot be used."""
        await self.run(self._store.start)

    async def stop(self) -> None:
        """Abort every upload and accept no more. Shares that are being closed are finished first."""
        self._stopping = True
        await together(upload.abort() for upload in list(self._table.uploads))
        await self._table.drained()

    @property
    def known_version(self) -> ServerVersion | None:
        """None: the available space is on the disk and changes."""
        return None

    def asks_for_room(self, size: int) -> bool:
        """No: nothing is sent."""
        return False

    async def get_version(self) -> ServerVersion:
        """The server's version, with its available space."""
        available = await self.run(self._store.available_space)
        if available == 0:
            self._store.room_log.refused(0, self._clock.unix_time())
        room = UNLIMITED if available is None else available
        return ServerVersion(
            application=f"grid-storage/{__version__}",
            maximum_immutable_share_size=room,
            maximum_mutable_share_size=MAX_SLOT_SIZE,
            available_space=room,
            batched_reads=True,
            batched_writes=True,
            packed_slots=True,
            batched_stores=True,
            batched_finds=True,
            batched_slot_reads=True,
            is_read_only=self._store.settings.readonly,
        )

    @metered("get")
    async def find_shares(
        self,
        storage_index: StorageIndex,
        ranges: Sequence[Range] = (),
        *,
        room: Room | None = None,
        most: int | None = None,
    ) -> Mapping[ShareNumber, Sequence[bytes]]:
        """Every finished immutable share of the storage index, with those ranges of each.

        most: bytes of ranges, if fewer than usual; shares beyond it have none.
        """
        name = _checked_name(storage_index)
        check_ranges([ranges], READ_CALL_RANGES, READ_CALL_BYTES)
        async with self._turns.shared(name):
            return await self.run(self._store.find, name, self._table.hidden(name), ranges, room, most)

    @metered("get", count_finds)
    async def find_each(
        self, finds: Sequence[Find], *, room: Room | None = None
    ) -> Sequence[Mapping[ShareNumber, Sequence[bytes]] | None]:
        """Like find_shares, for several files; one pool call for all of them."""
        names = [_checked_name(find.storage_index) for find in finds]
        if len(finds) > FIND_CALL_FILES:
            raise FormatError(f"a question about more than {FIND_CALL_FILES} files at once")
        for find in finds:
            check_ranges([find.ranges], READ_CALL_RANGES, READ_CALL_BYTES)
        async with AsyncExitStack() as stack:
            for name in sorted(set(names)):  # Every caller that needs several locks takes them in this order.
                await stack.enter_async_context(self._turns.shared(name))
            questions = [(name, self._table.hidden(name), find.ranges) for name, find in zip(names, finds, strict=True)]
            return await self.run(self._store.find_each, questions, room)

    @metered("read", count_ranges)
    async def read_shares(
        self,
        storage_index: StorageIndex,
        wants: Mapping[ShareNumber, Sequence[Range]],
        *,
        room: Room | None = None,
    ) -> Mapping[ShareNumber, Sequence[bytes]]:
        """Read ranges of immutable shares."""
        name = _checked_name(storage_index)
        check_numbers(wants)
        check_ranges(wants.values(), READ_CALL_RANGES, READ_CALL_BYTES)
        async with self._turns.shared(name):
            return await self.run(self._store.read, name, self._table.hidden(name), wants, room)

    @metered("allocate")
    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate room for new shares. If the caller stops waiting for the answer, the upload is aborted."""
        name = _checked_name(storage_index)
        check_numbers(share_numbers)
        if not 0 <= share_size <= MAX_FILE_SIZE:
            raise FormatError(f"a share size outside 0 to {MAX_FILE_SIZE}")
        self._require_running()
        return await shielded(
            self._allocate(name, secrets, share_numbers, share_size),
            lambda allocation: _give_up(allocation.upload),
        )

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole shares of files of which the server has no share; one pool call for all of them."""
        names = [_checked_name(new.storage_index) for new in stores]
        check_stores(stores)
        self._require_running()
        began = self.meter.now()
        answers = await shielded(self._store_shares(names, stores))
        note_stored(self.meter, stores, answers, began)
        return answers

    @metered("add-lease")
    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share of the storage index."""
        name = _checked_name(storage_index)
        await self.examine(name, self._store.add_lease, secrets, self._clock.unix_time())

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Store the report, if the share exists and there is room."""
        name = _checked_name(storage_index)
        check_numbers([share_number])
        now = self._clock.unix_time()
        async with self._turns.shared(name):
            hidden = self._table.hidden(name)
            await self.run(self._advisories.note, name, hidden, kind, share_number, reason, now)

    @metered("readv")
    async def read_slot(
        self,
        storage_index: StorageIndex,
        share_numbers: frozenset[ShareNumber],
        ranges: Sequence[Range],
        *,
        room: Room | None = None,
    ) -> Mapping[ShareNumber, Sequence[bytes]]:
        """Read ranges of mutable shares."""
        name = _checked_name(storage_index)
        check_numbers(share_numbers)
        check_ranges([ranges], MAX_SLOT_VECTORS)
        async with self._turns.shared(name):
            return await self.run(self._slots.read, name, share_numbers, ranges, room)

    @metered("readv", count_finds)
    async def read_slots(
        self, finds: Sequence[Find], *, room: Room | None = None
    ) -> Sequence[Mapping[ShareNumber, Sequence[bytes]] | None]:
        """Like read_slot with all shares, for several files; one pool call for all of them."""
        names = [_checked_name(find.storage_index) for find in finds]
        if len(finds) > FIND_CALL_FILES:
            raise FormatError(f"a question about more than {FIND_CALL_FILES} files at once")
        for find in finds:
            check_ranges([find.ranges], MAX_SLOT_VECTORS)
        questions = [(name, find.ranges) for name, find in zip(names, finds, strict=True)]
        async with AsyncExitStack() as stack:
            for name in sorted(set(names)):  # Every caller that needs several locks takes them in this order.
                await stack.enter_async_context(self._turns.shared(name))
            return await self.run(self._slots.read_each, questions, room)

    @metered("writev")
    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
        *,
        room: Room | None = None,
    ) -> SlotAnswer:
        """Test and, if every test holds, write, as one atomic step."""
        name = _checked_name(storage_index)
        check_vectors(writes)
        check_ranges([ranges], MAX_SLOT_VECTORS)
        self._require_running()
        call = SlotCall(secrets, dict(sorted(writes.items())), ranges, self._clock.unix_time(), room)
        return await shielded(self._test_and_write(name, call))

    async def examine(self, name: str, work: Callable[..., T], *arguments: object) -> T:
        """Run `work(name, unfinished share numbers, *arguments)` on the pool, with exclusive access to the shares of that
        storage index, and return its result. For maintenance such as the lease checker.
        """
        return await shielded(self._examine(name, work, *arguments))

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run the function on the pool and return its result; an OSError becomes NoSpaceError or PeerError."""
        try:
            return await self._io.run(function, *arguments)
        except OSError as error:
            raise disk_error(error) from None

    async def space(self) -> tuple[Space | None, int | None]:
        """(the disk's space, None if unknown; the bytes that the server may still use, None if unlimited)."""
        return await self.run(self._store.space)

    @property
    def reserved_size(self) -> int:
        """Bytes promised to unfinished uploads."""
        return self._table.reserved_size

    @property
    def store(self) -> ShareStore:
        """The shares. All changes to them must go through `examine`."""
        return self._store

    async def _allocate(
        self, name: str, secrets: LeaseSecrets, numbers: frozenset[ShareNumber], share_size: int
    ) -> Allocation:
        table = self._table
        async with self._turns.exclusive(name):
            self._require_running()
            hidden = table.hidden(name)
            wanted = Wanted(
                secrets=secrets,
                numbers=numbers - hidden,
                share_size=share_size,
                reserved=table.reserved_size,
                keep_open=table.keep_open,
                now=self._clock.unix_time(),
            )
            # Reserve the room before it is known to be needed, so that two concurrent allocations cannot both get the last of it.
            promised = share_size * len(wanted.numbers)
            table.reserved_size += promised
            try:
                allocated = await self.run(self._store.allocate, name, hidden, wanted)
            finally:
                table.reserved_size -= promised
            upload = ShareUpload(self._context, name, allocated.shares)
        if self._stopping:
            await upload.abort()
        return Allocation(already=allocated.already, upload=upload)

    async def _store_shares(self, names: Sequence[str], stores: Sequence[NewShares]) -> list[StoreAnswer]:
        answers: dict[int, StoreAnswer] = {}
        waiting = dict(enumerate(names))
        while waiting:
            # A file that occurs twice in the message is stored the first time, and found the second.
            first = {name: index for index, name in reversed(waiting.items())}
            indexes = sorted(first.values())
            done = await self._store_each([names[index] for index in indexes], [stores[index] for index in indexes])
            answers.update(zip(indexes, done, strict=True))
            for index in indexes:
                del waiting[index]
        return [answers[index] for index in range(len(stores))]

    async def _store_each(self, names: Sequence[str], stores: Sequence[NewShares]) -> list[StoreAnswer]:
        async with AsyncExitStack() as stack:
            for name in sorted(names):  # Every caller that needs several locks takes them in this order.
                await stack.enter_async_context(self._turns.exclusive(name))
            self._require_running()
            table = self._table
            orders = [
                Order(name=name, hidden=table.hidden(name), new=new) for name, new in zip(names, stores, strict=True)
            ]
            reserved, promised = table.reserved_size, sum(new.size for new in stores)
            table.reserved_size += promised
            try:
                return await self.run(self._whole.store, orders, reserved, self._clock.unix_time())
            finally:
                table.reserved_size -= promised

    async def _test_and_write(self, name: str, call: SlotCall) -> SlotAnswer:
        async with self._turns.exclusive(name):
            return await self.run(self._slots.test_and_write, name, call)

    async def _examine(self, name: str, work: Callable[..., T], *arguments: object) -> T:
        async with self._turns.exclusive(name):
            hidden: Hidden = self._table.hidden(name)
            return await self.run(work, name, hidden, *arguments)

    def _require_running(self) -> None:
        if self._stopping:
            raise PeerRefusedError("the server is shutting down", kind="ShuttingDown")


def _give_up(upload: object) -> None:
    if isinstance(upload, ShareUpload):
        Deferred.fromCoroutine(upload.abort())


def _checked_name(storage_index: StorageIndex) -> str:
    if len(storage_index) != STORAGE_INDEX_SIZE:
        raise FormatError(f"a storage index has {STORAGE_INDEX_SIZE} bytes")
    return index_name(storage_index)
