"""Putting an immutable file: the driver around the store, select and put plans. [spec immutable 2, 3, 11]

It owns the order of the steps and nothing else: key, placement, pushing. A put that fails leaves nothing
behind on servers that can be reached, but for whole shares of a small file, which the next put of it counts.

Cost: round trips: version and share lists, allocation, writes, close. A small file that nobody holds takes one round
trip and one message to each server, once the servers are known. CPU: with a
convergent key one more hash pass over the file, on the pool. Disk: the source is read twice then, once otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import field, frozen

from grid.caps import ChkCap, LitCap
from grid.drive import drive
from grid.engine.server_memory import server_memory
from grid.errors import FormatError, NotHappyError
from grid.immutable.perform import Performer
from grid.immutable.share.encode import Encoder, convergent_hasher
from grid.immutable.share.geometry import DEFAULT_MAX_SEGMENT_SIZE, Geometry
from grid.immutable.share.requests import UPLOAD_KINDS
from grid.immutable.write.put_plan import Pushed, PutPlan, require_whole
from grid.immutable.write.select_plan import Selection, SelectPlan, split_trusted
from grid.immutable.write.small_file import (
    ASK_FIRST_COUNT,
    ASK_FIRST_SIZE,
    WholeFile,
    encode_whole,
    place_whole,
    storage_index_of,
    whole_share_size,
)
from grid.immutable.write.store_plan import Stored, StorePlan
from grid.placement.happiness import happiness
from grid.placement.leases import LeaseMaster
from grid.placement.order import permute
from grid.ports import Event, Observer, Runtime, ServerId, ShareNumber, Source, StorageServer, ignore_events

LIT_SIZE = 55
"""Files up to this size are put into their cap. [spec immutable 2]"""

KEY_CHUNK = 4 * 2**20
"""Bytes hashed per pool call while the convergent key is made."""

INLINE_SIZE = 4096
"""Bytes of a file that is encoded on the spot: under a millisecond of work, less than it costs to call a thread."""


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
            raise FormatError(f"{self.k}-of-{self.n} is no encoding: 1 <= needed <= total <= 256 must hold")
        if not 0 <= self.happy <= self.n:
            raise FormatError(f"happy ({self.happy}) must not be larger than total ({self.n})")


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


class _SparesLeftError(NotHappyError):
    """Servers were lost while they were sent shares, and there are others that have not been asked yet."""


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
    key: bytes | None = None,
) -> PutResult:
    """Store a file and return its cap, once at least `happy` servers and k distinct shares are durable.

    convergence: the secret that makes equal files equal caps; None draws a random key, and the source is read
    once, as it is with `key`: the key that the secret makes of this file, from a caller who knows it.
    NotHappyError or NoServersError when it cannot be stored, GridError when the source fails.
    """
    if source.size <= LIT_SIZE:
        data = bytes(await source.read_at(0, source.size))
        require_whole(data, source.size)
        return PutResult(cap=LitCap(data=data), pushed=0, found=0, sharemap={}, happiness=0)
    geometry = Geometry.of_file(source.size, encoding.k, encoding.n, encoding.max_segment_size)
    allowed = permitted(servers, runtime.clock.unix_time())
    attempt = Stored()
    if key is None and convergence is None:
        key = runtime.entropy.random_bytes(16)
    size = whole_share_size(geometry)
    trusted = _trusted(allowed, geometry.n, encoding.happy, runtime)
    if size is not None and place_whole(trusted, geometry.n, size):
        whole = await _read_whole(source, geometry, key, convergence, runtime)
        key = whole.key
        attempt = await _store(whole, trusted, encoding.happy, leases, runtime, observer, preferred)
        if attempt.is_enough:
            return _result(whole.cap, attempt.sharemap, attempt, attempt.sharemap)
    if key is None:
        assert convergence is not None
        key = await _convergent_key(source, convergence, geometry, runtime, observer)
    storage_index = storage_index_of(key)
    ordered = permute(allowed, storage_index, preferred)

    async def try_push() -> tuple[Selection, Pushed]:
        encoder = Encoder(geometry, key)
        performer = Performer(ordered, storage_index, runtime, leases=leases, source=source, encoder=encoder)
        return await push(encoder, performer, ordered, encoding.happy, runtime, observer)

    try:
        selection, pushed = await try_push()
    except _SparesLeftError:
        # The servers lost on the way are in doubt by now, so that those in doubt before are asked as well.
        selection, pushed = await try_push()
    found: dict[ShareNumber, set[ServerId]] = {}
    for server_id, shares in selection.existing.items():
        for share in shares:
            found.setdefault(share, set()).add(server_id)
    return _result(pushed.finished.read_cap(key), pushed.sharemap, attempt, found, pushed.pushed_count)


def _result(
    cap: ChkCap,
    sharemap: Mapping[ShareNumber, Collection[ServerId]],
    attempt: Stored,
    found: Mapping[ShareNumber, Collection[ServerId]],
    pushed: int = 0,
) -> PutResult:
    """found: what servers said they hold, among it what the attempt stored there a moment ago."""
    stored = {(server_id, share) for server_id, shares in attempt.stored.items() for share in shares}
    return PutResult(
        cap=cap,
        pushed=pushed + len(stored),
        found=sum(any((holder, share) not in stored for holder in holders) for share, holders in found.items()),
        sharemap=sharemap,
        happiness=happiness(sharemap),
    )


async def _read_whole(
    source: Source, geometry: Geometry, key: bytes | None, convergence: bytes | None, runtime: Runtime
) -> WholeFile:
    data = await source.read_at(0, source.size)
    require_whole(data, source.size)
    if len(data) <= INLINE_SIZE:
        return encode_whole(data, geometry, key, convergence)
    return await runtime.cpu.run(encode_whole, data, geometry, key, convergence)


async def _store(
    whole: WholeFile,
    servers: Sequence[StorageServer],
    happy: int,
    leases: LeaseMaster,
    runtime: Runtime,
    observer: Observer,
    preferred: Collection[ServerId],
) -> Stored:
    """Try to store a small file in one go; nothing is lost if that comes to nothing."""
    ordered = permute(servers, whole.storage_index, preferred)
    placed = place_whole(ordered, whole.cap.total, whole.share_size)
    if placed is None:
        return Stored()
    plan = StorePlan(
        {server_id: {share: whole.shares[share] for share in shares} for server_id, shares in placed.items()},
        n=whole.cap.total,
        happy=happy,
        size=whole.cap.size,
        ask_first=ASK_FIRST_COUNT if whole.share_size >= ASK_FIRST_SIZE else 0,
    )
    return await drive(plan, Performer(ordered, whole.storage_index, runtime, leases=leases), runtime, observer)


async def push(
    encoder: Encoder,
    performer: Performer,
    ordered: Sequence[StorageServer],
    happy: int,
    runtime: Runtime,
    observer: Observer,
    existing: Mapping[ServerId, Collection[ShareNumber]] | None = None,
) -> tuple[Selection, Pushed]:
    """Place and push the shares of an encoder's file; when that fails, everything allocated is aborted.

    The NotHappyError is a _SparesLeftError if servers in doubt were never asked.
    """
    geometry = encoder.geometry
    ids = [server.identity.server_id for server in ordered]
    select = SelectPlan(
        ids,
        in_doubt=_in_doubt(ids, runtime),
        is_in_doubt=lambda server_id: bool(_in_doubt([server_id], runtime)),
        k=geometry.k,
        n=geometry.n,
        happy=happy,
        share_size=performer.share_size(encoder),
        existing=existing,
    )
    try:
        selection = await drive(select, performer, runtime, observer)
        observer(Event(at=runtime.clock.now(), what="phase", detail="pushing", total=geometry.size))
        try:
            pushed = await drive(PutPlan(encoder, selection, happy=happy), performer, runtime, observer)
        except NotHappyError as error:
            if not selection.spares:
                raise
            raise _SparesLeftError(str(error), causes=error.causes, reached=error.reached, happy=error.happy) from error
    finally:
        await performer.abort()
    return selection, pushed


def _in_doubt(server_ids: Sequence[ServerId], runtime: Runtime) -> frozenset[ServerId]:
    """Those that were silent lately on something that an upload takes."""
    memory = server_memory(runtime)
    return frozenset(server_id for server_id in server_ids if memory.is_doubtful_for_any(server_id, UPLOAD_KINDS))


def _trusted(servers: Sequence[StorageServer], n: int, happy: int, runtime: Runtime) -> list[StorageServer]:
    """The servers to store n whole shares on at once; in their order."""
    ids = [server.identity.server_id for server in servers]
    trusted, _ = split_trusted(ids, _in_doubt(ids, runtime), n=n, happy=happy)
    return [server for server in servers if server.identity.server_id in set(trusted)]


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
