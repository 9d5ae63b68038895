"""The ports: what the engines need of a server, a disk, a clock, a processor and a source of entropy.

Protocols and the frozen values that cross them; no behavior, no policy, no I/O. Every implementation of
a port passes the contract suite of that port in tests/contract.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, NewType, Protocol, TypeVar, runtime_checkable

from attrs import field, frozen, validators

from grid.caps import StorageIndex

ServerId = NewType("ServerId", str)
"""Names a server for its whole life: `v0-` and 52 base32 characters if introduced, any text if static."""
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
"""(offset, length) in bytes, both >= 0. Ranges past the end of a share are cut short, never an error."""
ShareKind = Literal["immutable", "mutable"]

T = TypeVar("T")


@frozen(kw_only=True)
class ServerIdentity:
    """Who a server is, as its announcement or the static servers file says. [spec placement 1]

    permutation_seed: bytes that place the server in the order for a storage index.
    lease_seed: 20 bytes, the node id that lease secrets and write enablers are derived for.
    upload_permit_expires: Unix time until which new shares may be placed there; +inf always, -inf never.
    """

    server_id: ServerId
    nickname: str = ""
    permutation_seed: bytes = field(repr=False)
    lease_seed: bytes = field(repr=False, validator=[validators.min_len(20), validators.max_len(20)])
    upload_permit_expires: float = math.inf


@frozen(kw_only=True)
class ServerVersion:
    """What a server says it is, has and can. Sizes in bytes. [spec storage-server 7]"""

    application: str
    maximum_immutable_share_size: int
    maximum_mutable_share_size: int
    available_space: int
    tolerates_read_overrun: bool = True
    batched_reads: bool = False
    batched_writes: bool = False
    batched_stores: bool = False
    batched_finds: bool = False
    packed_slots: bool = False


def _secret() -> bytes:
    return field(repr=False, validator=[validators.min_len(32), validators.max_len(32)])


@frozen(kw_only=True)
class LeaseSecrets:
    """The two 32-byte secrets of one lease on one server. [spec storage-server 5]"""

    renew: bytes = _secret()
    cancel: bytes = _secret()


@frozen(kw_only=True)
class SlotSecrets:
    """What a mutable write needs: the 32-byte write enabler, and the lease secrets."""

    write_enabler: bytes = _secret()
    lease: LeaseSecrets


@frozen
class Find:
    """The question which immutable shares of a file there are, and what is in these ranges of each."""

    storage_index: StorageIndex
    ranges: Sequence[Range] = ()


@frozen
class ShareWrite:
    """Bytes for one share: the pieces, in order, go to consecutive offsets from `offset`.

    The pieces are borrowed until the write is answered and must not change before.
    """

    share_number: ShareNumber
    offset: int
    pieces: Sequence[Buffer]

    @property
    def size(self) -> int:
        """Bytes in all pieces together."""
        return sum(len(piece) for piece in self.pieces)


class Upload(Protocol):
    """The new immutable shares that one server has agreed to take in one allocation."""

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated here; may be empty."""

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all of the writes, or raise; after an error none of the shares named may be counted on.

        Calls may overlap in time; each share's bytes may come in any order, and repeated bytes must agree.
        ConflictingWriteError, DataTooLargeError, NoSpaceError or another PeerError.
        """

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the last writes of these shares, and finish the shares as `close` does: in as few messages as the server takes.

        Other writes may be under way: this returns when they are stored as well, and raises if one of them failed.
        """

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Return when every share named is finished, visible and as durable as the server is set to make it."""

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Give up those shares (None: all) as far as not closed yet; repeated calls and calls after close do nothing."""


@frozen(kw_only=True)
class Allocation:
    """A server's answer to an allocation: what it had before, and the upload of what it takes."""

    already: frozenset[ShareNumber]
    upload: Upload


@frozen(kw_only=True)
class NewShares:
    """Whole small shares of one file for one server, all of one size, with the secrets of their leases.

    The pieces of each share, in order, are all its bytes. They are borrowed until the store is answered.
    """

    storage_index: StorageIndex
    secrets: LeaseSecrets
    shares: Mapping[ShareNumber, Sequence[Buffer]] = field(repr=False)

    @property
    def share_size(self) -> int:
        """Bytes of each share."""
        return max((sum(map(len, pieces)) for pieces in self.shares.values()), default=0)

    @property
    def size(self) -> int:
        """Bytes in all shares together."""
        return self.share_size * len(self.shares)


@frozen(kw_only=True)
class StoreAnswer:
    """already: every share held before. stored: whether all that were sent are stored now; none of them is otherwise."""

    already: frozenset[ShareNumber]
    stored: bool


@frozen(kw_only=True)
class TestWrite:
    """What to test, then write, in one share of a mutable slot. [spec storage-server 9.1]

    tests: (offset, length, specimen), each holding iff the share has exactly the specimen there.
    writes: (offset, data), applied in order. new_length: None keeps, 0 deletes the share, less than now cuts.
    """

    __test__ = False
    tests: Sequence[tuple[int, int, bytes]] = ()
    writes: Sequence[tuple[int, Buffer]] = ()
    new_length: int | None = None


@frozen(kw_only=True)
class SlotAnswer:
    """passed: every test held, and everything was written; data: what the shares held before."""

    passed: bool
    data: Mapping[ShareNumber, Sequence[Buffer]]


class StorageServer(Protocol):
    """A client's view of one storage server, the same over every transport and in the same process.

    Every method may raise PeerTimeoutError, PeerGoneError or PeerRefusedError; a lost connection is
    re-made by the next call. Answers are checked against limits.py, but their bytes are unproven.
    """

    @property
    def identity(self) -> ServerIdentity:
        """Who it is; constant."""

    @property
    def known_version(self) -> ServerVersion | None:
        """What it said last, if it can be expected to answer at once; None if it has to be asked."""

    async def get_version(self) -> ServerVersion:
        """What it is and has now; a fresh answer at each call."""

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every finished immutable share held, with those ranges of each: one round trip where the server can.

        The key set is complete. A share's data is one buffer per range, or empty where the answer would have
        outgrown its limit; read that share by itself then.
        """

    async def read_shares(
        self, storage_index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Ranges of immutable shares, one buffer per range, cut short at the share's end.

        Shares that the server does not hold are left out of the answer. One round trip where the server can.
        The ranges of one call ask for at most limits.READ_CALL_BYTES bytes.
        """

    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Ask for room for new shares of share_size bytes each; renews the lease on all shares held already.

        A share asked for that is in neither set was refused. [spec storage-server 8.1]
        """

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole new shares of files of which the server holds none yet; one answer each, in order.

        Of a file of which it holds a share nothing is stored, and the lease on all shares held is renewed; the same
        for want of room, or while one of the shares is being uploaded. What is stored is finished, visible and as
        durable as the server is set to make it. At most limits.STORE_CALL_BYTES bytes and STORE_CALL_SHARES shares
        a call. One round trip where the server can, shared by calls that are made meanwhile.
        """

    async def add_lease(self, storage_index: StorageIndex, secrets: LeaseSecrets) -> None:
        """Add or renew the lease on every share held; no shares, no effect."""

    async def advise_corrupt(
        self, kind: ShareKind, storage_index: StorageIndex, share_number: ShareNumber, reason: str
    ) -> None:
        """Tell the server that a share of its failed verification; it may note it or not."""

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Ranges of mutable shares (none named: all held), one buffer per range. [spec storage-server 9.2]"""

    async def test_and_write(
        self,
        storage_index: StorageIndex,
        secrets: SlotSecrets,
        writes: Mapping[ShareNumber, TestWrite],
        ranges: Sequence[Range] = (),
    ) -> SlotAnswer:
        """Test, and if every test holds write, as one step; BadWriteEnablerError if the enabler is wrong.

        The answer's data has the ranges of every share held before the write. [spec storage-server 9.1]
        """


@runtime_checkable
class FindsTogether(Protocol):
    """A storage server that looks for the shares of several files in one step."""

    async def find_each(self, finds: Sequence[Find]) -> Sequence[Mapping[ShareNumber, Sequence[Buffer]] | None]:
        """For each in order what find_shares says of it, or None if that one cannot be looked for just now.

        Data is left out where all answers together would outgrow the limit of one.
        """


class Room(Protocol):
    """What one answer may take of the memory that a server's answers share."""

    def take(self, size: int) -> bool:
        """Take that many bytes if they are free; asked on any thread, before what they are for is read."""


class Source(Protocol):
    """What a put reads: a fixed number of bytes, readable from any offset and more than once."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    async def read_at(self, offset: int, length: int) -> Buffer:
        """Exactly those bytes; GridError if the source has become shorter."""


class Sink(Protocol):
    """Where a get writes: in order, and the next write waits for the last one (back-pressure)."""

    async def write(self, data: Buffer) -> None:
        """Take the bytes; the buffer is the caller's again once this returns."""


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """Do not make the call; nothing happens if it was made or cancelled already."""


class Clock(Protocol):
    """Time, and calls made later. Real, or driven by a test."""

    def now(self) -> float:
        """Monotonic seconds; only differences mean anything."""

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
        """How many calls run at once, at least 1."""

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Call the function on a pool thread; its result or its exception comes back on the event loop."""


class Entropy(Protocol):
    """Unpredictable bytes."""

    def random_bytes(self, count: int) -> bytes:
        """That many."""


class Runtime(Protocol):
    """What every engine is handed once: time, processor and entropy."""

    @property
    def clock(self) -> Clock: ...

    @property
    def cpu(self) -> CpuPool: ...

    @property
    def entropy(self) -> Entropy: ...


@frozen(kw_only=True)
class Event:
    """One thing that happened inside an operation, as observers see it.

    at: Clock.now(). what: a stable word (`send`, `answer`, `fail`, `cancel`, `progress`, `verified`, `phase`, `reject`).
    detail: the request's kind, the phase's name or the reason; never a secret. count: bytes, where any.
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
    """The observer of those who do not look."""
