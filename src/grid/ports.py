"""The ports: what the engines need from a server, a disk, a clock, a processor and a source of entropy.

Protocols and the frozen values they exchange; no behavior. Every implementation passes its port's suite in tests/contract.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, NewType, Protocol, TypeVar, runtime_checkable

from attrs import field, validators

from grid.caps import StorageIndex
from grid.values import frozen

ServerId = NewType("ServerId", str)
"""Identifies a server for its whole life: `v0-` and 52 base32 characters if introduced, any text if static."""
ShareNumber = NewType("ShareNumber", int)
"""0 <= number < 256."""

__all__ = [
    "Allocation", "Buffer", "Clock", "CpuPool", "Entropy", "Event", "Find", "FindsTogether", "LeaseSecrets",
    "NewShares", "Observer", "Range", "Room", "Runtime", "ServerId", "ServerIdentity", "ServerVersion", "ShareKind",
    "ShareNumber", "ShareWrite", "Sink", "SlotAnswer", "SlotSecrets", "Source", "StorageIndex", "StorageServer",
    "StoreAnswer", "TestWrite", "Timer", "Upload", "ignore_events",
]  # fmt: skip

Buffer = bytes | bytearray | memoryview
Range = tuple[int, int]
"""(offset, length) in bytes, both >= 0. Ranges past the end of a share are cut, and are never an error."""
ShareKind = Literal["immutable", "mutable"]

T = TypeVar("T")


@frozen(kw_only=True)
class ServerIdentity:
    """A server's identity, from its announcement or the static servers file. [spec placement 1]

    permutation_seed: determines its position in the order for a storage index. lease_seed: the 20-byte node id from which lease
    secrets and write enablers are derived. upload_permit_expires: Unix time until which it may get new shares; +inf always, -inf never.
    """

    server_id: ServerId
    nickname: str = ""
    permutation_seed: bytes = field(repr=False)
    lease_seed: bytes = field(repr=False, validator=[validators.min_len(20), validators.max_len(20)])
    upload_permit_expires: float = math.inf


@frozen(kw_only=True)
class ServerVersion:
    """A server's name, space and abilities, as it reports them. Sizes in bytes. is_read_only: None if it does not say. [spec storage-server 7]"""

    application: str
    maximum_immutable_share_size: int
    maximum_mutable_share_size: int
    available_space: int
    tolerates_read_overrun: bool = True
    batched_reads: bool = False
    batched_writes: bool = False
    batched_stores: bool = False
    batched_finds: bool = False
    batched_slot_reads: bool = False
    packed_slots: bool = False
    is_read_only: bool | None = None


def _secret() -> bytes:
    return field(repr=False, validator=[validators.min_len(32), validators.max_len(32)])


@frozen(kw_only=True)
class LeaseSecrets:
    """The two 32-byte secrets of one lease on one server; upload: of one to go on with later. [spec storage-server 5]"""

    renew: bytes = _secret()
    cancel: bytes = _secret()
    upload: bytes | None = field(default=None, repr=False)


@frozen(kw_only=True)
class SlotSecrets:
    """The secrets of a mutable write: the 32-byte write enabler, and the lease secrets."""

    write_enabler: bytes = _secret()
    lease: LeaseSecrets


@frozen
class Find:
    """Asks which immutable shares of a file exist, and for these ranges of each."""

    storage_index: StorageIndex
    ranges: Sequence[Range] = ()


@frozen
class ShareWrite:
    """Bytes for one share, from `offset` on. The pieces, in order, are borrowed until the write is answered, and must not change."""

    share_number: ShareNumber
    offset: int
    pieces: Sequence[Buffer]

    @property
    def size(self) -> int:
        """Bytes of all pieces together."""
        return sum(len(piece) for piece in self.pieces)


class Upload(Protocol):
    """The new immutable shares that one server has allocated in one call."""

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated; may be empty."""

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all writes, or raise. After an error, none of the named shares may be counted on.

        Calls may overlap. Each share's bytes may come in any order, and repeated bytes must agree.
        ConflictingWriteError, DataTooLargeError, NoSpaceError or another PeerError.
        """

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the last writes of these shares, then finish the shares like `close`, in as few messages as possible.

        If other writes are running, this returns when they are stored as well, and raises if one of them failed.
        """

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Return when every named share is finished, visible, and as durable as the server's setting requires."""

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Abort those shares (None: all) that are not closed yet. Repeated calls, and calls after close, do nothing."""


@frozen(kw_only=True)
class Allocation:
    """A server's answer to an allocation: its shares so far, the upload of new ones, and whether a later process can resume it."""

    already: frozenset[ShareNumber]
    upload: Upload
    is_lasting: bool = False


@frozen(kw_only=True)
class NewShares:
    """Whole small shares of one file for one server, of equal size, and their leases' secrets. Pieces are borrowed until the answer."""

    storage_index: StorageIndex
    secrets: LeaseSecrets
    shares: Mapping[ShareNumber, Sequence[Buffer]] = field(repr=False)

    @property
    def share_size(self) -> int:
        """Bytes of each share."""
        return max((sum(map(len, pieces)) for pieces in self.shares.values()), default=0)

    @property
    def size(self) -> int:
        """Bytes of all shares together."""
        return self.share_size * len(self.shares)


@frozen(kw_only=True)
class StoreAnswer:
    """already: the shares held before. stored: whether all shares of the call are stored now; otherwise none of them is."""

    already: frozenset[ShareNumber]
    stored: bool


@frozen(kw_only=True)
class TestWrite:
    """The tests and writes for one share of a mutable slot. [spec storage-server 9.1]

    tests: (offset, length, specimen); a test holds if the share has exactly the specimen there.
    writes: (offset, data), applied in order. new_length: None keeps the length, 0 deletes the share, a smaller one cuts it.
    """

    __test__ = False
    tests: Sequence[tuple[int, int, bytes]] = ()
    writes: Sequence[tuple[int, Buffer]] = ()
    new_length: int | None = None


@frozen(kw_only=True)
class SlotAnswer:
    """passed: whether every test held and everything was written. data: what the shares contained before."""

    passed: bool
    data: Mapping[ShareNumber, Sequence[Buffer]]


class StorageServer(Protocol):
    """A client's view of one storage server, the same over every transport and within a process.

    Every method may raise PeerTimeoutError, PeerGoneError or PeerRefusedError. After a lost connection,
    the next call reconnects. Answers are checked against limits.py, but their bytes are unproven.
    """

    @property
    def identity(self) -> ServerIdentity:
        """The server's identity, which is constant."""

    @property
    def known_version(self) -> ServerVersion | None:
        """Its last known version, if it can be expected to answer at once; None if it must be asked."""

    def asks_for_room(self, size: int) -> bool:
        """Whether store_shares now asks for room before it sends that many bytes, and sends none if the server holds the file."""

    async def get_version(self) -> ServerVersion:
        """Its current version, obtained anew at each call."""

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every finished immutable share of the file, with those ranges of each: one round trip if the server can.

        The keys are complete. A share's data is one buffer per range, or empty if the answer would
        exceed its limit; read that share separately then.
        """

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of immutable shares, one buffer per range, cut at the share's end.

        Shares that the server does not hold are left out of the answer; one that its disk cannot read has no buffers.
        One round trip if the server can. The ranges of one call request at most limits.READ_CALL_BYTES bytes.
        """

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate new shares of share_size bytes each, and renew the lease on all existing shares.

        Requested shares in neither set of the answer were refused; those begun with this upload secret are resumed. [spec storage-server 8.1]
        """

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole new shares of files of which the server holds none yet. One answer each, in order.

        If the server holds a share of a file, it stores nothing of that file and renews the lease on all its shares; it also
        stores nothing if it has no room or one of the shares is being uploaded. Stored shares are finished, visible, and as
        durable as the server's setting requires. At most limits.STORE_CALL_BYTES bytes and STORE_CALL_SHARES shares
        per call. One round trip if the server can, shared with concurrent calls.
        """

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share of the file; does nothing if there are none."""

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Report to the server that its share failed verification; it may ignore the report."""

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Read ranges of mutable shares (none named: all), one buffer per range. [spec storage-server 9.2]

        A share that the server's disk cannot read has no buffers if the protocol can say so.
        """

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        """Test and, if every test holds, write, as one atomic step; BadWriteEnablerError if the enabler is wrong.

        The answer has the ranges of every share as they were before the write. [spec storage-server 9.1]
        """


@runtime_checkable
class FindsTogether(Protocol):
    """A storage server that looks up the shares of several files in one call."""

    async def find_each(self, finds: Sequence[Find]) -> Sequence[Mapping[ShareNumber, Sequence[Buffer]] | None]:
        """For each in order, the result of find_shares, or None if it cannot be looked up at the moment. Data is left out if
        all answers together would exceed the limit of one.
        """


class Room(Protocol):
    """How much of a server's memory for answers one answer may take."""

    def take(self, size: int) -> bool:
        """Take that many bytes if they are free. Called on any thread, before the data is read."""


class Source(Protocol):
    """What a put reads: a fixed number of bytes, readable at any offset and more than once."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes; GridError if the source has become shorter."""


class Sink(Protocol):
    """Where a get writes, in order; each write waits for the one before (back-pressure)."""

    async def write(self, data: Buffer) -> None:
        """Take the bytes. The buffer belongs to the caller again once this returns."""


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; does nothing if it was made or canceled already."""


class Clock(Protocol):
    """Time and scheduled calls; real, or controlled by a test."""

    def now(self) -> float:
        """Monotonic seconds; only differences are meaningful."""

    def unix_time(self) -> float:
        """Seconds since the epoch."""

    def call_later(self, delay_s: float, function: Callable[[], None]) -> Timer:
        """Call the function in a later turn of the event loop, after delay_s >= 0 seconds."""

    async def sleep(self, delay_s: float) -> None:
        """Return after delay_s seconds."""


class CpuPool(Protocol):
    """Threads for work that hashes, codes, encrypts or waits for a disk."""

    @property
    def width(self) -> int:
        """How many calls can run at once, at least 1."""

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Call the function on a pool thread. Its result or exception comes back on the event loop."""


class Entropy(Protocol):
    """Unpredictable bytes."""

    def random_bytes(self, count: int) -> bytes:
        """That many unpredictable bytes."""


class Runtime(Protocol):
    """What every engine gets: time, processor and entropy."""

    @property
    def clock(self) -> Clock: ...

    @property
    def cpu(self) -> CpuPool: ...

    @property
    def entropy(self) -> Entropy: ...


@frozen(kw_only=True)
class Event:
    """Something that happened inside an operation, as observers see it.

    at: Clock.now(). what: a stable word (`send`, `answer`, `fail`, `cancel`, `progress`, `verified`, `phase`, `reject`).
    detail: the request's kind, the phase's name or the reason; never a secret. count: bytes, if any.
    """

    at: float
    what: str
    detail: str = ""
    server_id: ServerId | None = None
    share_numbers: tuple[int, ...] = ()
    count: int = 0
    request_index: int = -1
    total: int = 0


Observer = Callable[[Event], None]


def ignore_events(event: Event) -> None:
    """The observer that ignores all events."""
