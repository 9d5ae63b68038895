"""Putting an immutable file: the driver around the select and put plans. [spec immutable 2, 3, 11]

It owns the order of the steps and nothing else: key, placement, pushing. A put that fails leaves nothing
behind on servers that can be reached.

Cost: round trips: version and share lists, allocation, writes, close: four for a small file. CPU: with a
convergent key one more hash pass over the file, on the pool. Disk: the source is read twice then, once otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import field, frozen

from grid.caps import ChkCap, LitCap, StorageIndex
from grid.crypto.hashing import tagged_hash
from grid.drive import drive
from grid.errors import FormatError
from grid.immutable.encode import Encoder, convergent_hasher
from grid.immutable.geometry import DEFAULT_MAX_SEGMENT_SIZE, Geometry
from grid.immutable.perform import Performer
from grid.immutable.putplan import Pushed, PutPlan, require_whole
from grid.immutable.selectplan import Selection, SelectPlan
from grid.placement.happiness import happiness
from grid.placement.leases import LeaseMaster
from grid.placement.order import permute
from grid.ports import Event, Observer, Runtime, ServerId, ShareNumber, Source, StorageServer, ignore_events

LIT_SIZE = 55
"""Files up to this size are put into their cap. [spec immutable 2]"""

KEY_CHUNK = 4 * 2**20
"""Octets hashed per pool call while the convergent key is made."""

_STORAGE_INDEX_TAG = b"allmydata_immutable_key_to_storage_index_v1"


@frozen(kw_only=True)
class Encoding:
    """k: shares needed. n: shares made. happy: servers that must each hold one of their own for success."""

    k: int = 3
    n: int = 10
    happy: int = 7
    max_segment_size: int = DEFAULT_MAX_SEGMENT_SIZE

    def __attrs_post_init__(self) -> None:
        """FormatError if this is no encoding, or asks for more happiness than there are shares."""
        if not 1 <= self.k <= self.n <= 256:
            raise FormatError(f"{self.k}-of-{self.n} is no encoding: it takes 1 <= needed <= total <= 256")
        if not 0 <= self.happy <= self.n:
            raise FormatError(f"{self.n} shares cannot make {self.happy} servers happy")


@frozen(kw_only=True)
class PutResult:
    """cap: the only key to the file. pushed: shares stored now. found: shares that were there already.

    sharemap: which servers hold which share.
    """

    cap: ChkCap | LitCap = field(repr=False)
    pushed: int
    found: int
    sharemap: Mapping[ShareNumber, Collection[ServerId]]
    happiness: int


async def put(
    source: Source,
    *,
    encoding: Encoding,
    convergence: bytes | None,
    servers: Sequence[StorageServer],
    leases: LeaseMaster,
    runtime: Runtime,
    observer: Observer = ignore_events,
    preferred: Collection[ServerId] = frozenset(),
) -> PutResult:
    """Store a file and return its cap, once at least `happy` servers and k distinct shares are durable.

    convergence: the secret that makes equal files equal caps; None draws a random key, and the source is read
    once. NotHappyError or NoServersError when it cannot be stored, GridError when the source fails.
    """
    if source.size <= LIT_SIZE:
        data = bytes(await source.read_at(0, source.size))
        require_whole(data, source.size)
        return PutResult(cap=LitCap(data=data), pushed=0, found=0, sharemap={}, happiness=0)
    geometry = Geometry.of_file(source.size, encoding.k, encoding.n, encoding.max_segment_size)
    if convergence is None:
        key = runtime.entropy.octets(16)
    else:
        key = await _convergent_key(source, convergence, geometry, runtime, observer)
    storage_index = StorageIndex(tagged_hash(_STORAGE_INDEX_TAG, key, 16))
    encoder = Encoder(geometry, key)
    ordered = permute(permitted(servers, runtime.clock.unix_time()), storage_index, preferred)
    performer = Performer(ordered, storage_index, runtime, leases=leases, source=source, encoder=encoder)
    selection, pushed = await push(encoder, performer, ordered, encoding.happy, runtime, observer)
    return PutResult(
        cap=pushed.finished.read_cap(key),
        pushed=pushed.pushed_count,
        found=len({share for shares in selection.existing.values() for share in shares}),
        sharemap=pushed.sharemap,
        happiness=happiness(pushed.sharemap),
    )


async def push(
    encoder: Encoder,
    performer: Performer,
    ordered: Sequence[StorageServer],
    happy: int,
    runtime: Runtime,
    observer: Observer,
    existing: Mapping[ServerId, Collection[ShareNumber]] | None = None,
) -> tuple[Selection, Pushed]:
    """Place and push the shares of an encoder's file; when that fails, everything allocated is aborted."""
    geometry = encoder.geometry
    select = SelectPlan(
        [server.identity.server_id for server in ordered],
        k=geometry.k,
        n=geometry.n,
        happy=happy,
        share_size=performer.share_size(encoder),
        existing=existing,
    )
    try:
        selection = await drive(select, performer, runtime, observer)
        observer(Event(at=runtime.clock.now(), what="phase", detail="pushing", total=geometry.size))
        pushed = await drive(PutPlan(encoder, selection, happy=happy), performer, runtime, observer)
    finally:
        await performer.abort()
    return selection, pushed


def permitted(servers: Sequence[StorageServer], now: float) -> list[StorageServer]:
    """The servers on which new shares may be placed at this Unix time. [spec wire 11]"""
    return [server for server in servers if server.identity.upload_permit_expires > now]


async def _convergent_key(
    source: Source, convergence: bytes, geometry: Geometry, runtime: Runtime, observer: Observer
) -> bytes:
    """One pass over the plaintext: the next chunk is read while the last one is hashed."""
    observer(Event(at=runtime.clock.now(), what="phase", detail="hashing", total=source.size))
    hasher = convergent_hasher(convergence, geometry)
    offset = 0
    while offset < source.size:
        length = min(KEY_CHUNK, source.size - offset)
        chunk = await source.read_at(offset, length)
        require_whole(chunk, length)
        await runtime.cpu.run(hasher.update, chunk)
        offset += length
        observer(Event(at=runtime.clock.now(), what="progress", detail="hashing", count=offset, total=source.size))
    return hasher.digest(16)
