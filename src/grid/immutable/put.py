"""Puts an immutable file: the driver of the store, select and put plans. [spec immutable 2, 3, 11]

It owns only the order of the steps: key, placement, pushing. A failed put leaves nothing behind on
reachable servers, except whole shares of a small file, which the next put of that file counts, and what `keeps` wants to
resume.

Cost: round trips: version and share lists, allocation, and writes whose last one also closes. A small file that nobody holds
takes one round trip and one message per server, once the servers are known. CPU: a convergent key takes
one more hash pass over the file, on the pool. Disk: the source is then read twice, otherwise once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from grid.caps import ChkCap, LitCap
from grid.drive import drive
from grid.engine.grid import Grid
from grid.engine.server_memory import ServerMemory
from grid.errors import NotHappyError
from grid.immutable.perform import Performer, UploadTurns
from grid.immutable.share.encode import Encoder, convergent_hasher
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.requests import READ_KINDS, UPLOAD_KINDS
from grid.immutable.write.candidates import split_trusted
from grid.immutable.write.full_servers import name_full
from grid.immutable.write.put_plan import Pushed, PutPlan, require_whole
from grid.immutable.write.select_plan import Selection, SelectPlan
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
from grid.placement.order import permute
from grid.ports import Event, ServerId, ShareNumber, Source, StorageServer
from grid.values import field, frozen

LIT_SIZE = 55
"""Files of up to this many bytes are stored in their capability. [spec immutable 2]"""

KEY_CHUNK = 4 * 2**20
"""Bytes hashed per pool call to make a convergent key."""

INLINE_SIZE = 4096
"""Files of up to this many bytes are encoded without the pool: the work takes under a millisecond, less than a thread call."""


@frozen(kw_only=True)
class PutResult:
    """cap: the only key to the file. pushed: shares stored now. found: shares that existed before.

    sharemap: which servers hold which share.
    """

    cap: ChkCap | LitCap = field(repr=False)
    pushed: int
    found: int
    sharemap: Mapping[ShareNumber, Collection[ServerId]]
    happiness: int


class _SparesLeftError(NotHappyError):
    """Servers were lost while receiving shares, and other servers have not been asked yet."""


class NothingPlacedError(NotHappyError):
    """No server made room for a new share of a file that exists, so nothing is encoded or sent."""


Keeps = Callable[[BaseException], bool]
"""Whether what servers have of a large file stays there after an error, for the next put with the same key."""


async def put(source: Source, grid: Grid, *, key: bytes | None = None, keeps: Keeps | None = None) -> PutResult:
    """Store a file and return its capability, once at least `happy` servers and k distinct shares are durable.

    key: the convergent key of this file under the grid's secret, if the caller knows it. The source is then read
    only once, as with a random key.
    keeps: makes the put of a large file resume an earlier one that had it, even if that was killed: what servers
    have is not sent again, if they permit that. The file must be the same, byte for byte.
    NotHappyError or NoServersError if the file cannot be stored, GridError if the source fails.
    """
    if source.size <= LIT_SIZE:
        data = bytes(await source.read_at(0, source.size))
        require_whole(data, source.size)
        return PutResult(cap=LitCap(data=data), pushed=0, found=0, sharemap={}, happiness=0)
    encoding = grid.encoding
    geometry = Geometry.of_file(source.size, encoding.k, encoding.n, encoding.max_segment_size)
    is_new = key is None and grid.convergence is None
    if is_new:
        key = grid.runtime.entropy.random_bytes(16)
    allowed = grid.permitted()
    trusted = _trusted(allowed, geometry.n, grid)
    size = whole_share_size(geometry)
    if size is not None and place_whole(trusted, geometry.n, size):
        return await _put_small(source, geometry, key, trusted, allowed, grid, is_new=is_new)
    return await _put_large(source, geometry, key, allowed, grid, keeps=keeps)


async def _put_small(
    source: Source,
    geometry: Geometry,
    key: bytes | None,
    trusted: Sequence[StorageServer],
    allowed: Sequence[StorageServer],
    grid: Grid,
    *,
    is_new: bool,
) -> PutResult:
    """Send whole shares to each trusted server, one message each. If that is not enough, continue as for a large file.

    is_new: the key has just been drawn, so nobody has the file.
    """
    whole = await _read_whole(source, geometry, key, grid)
    ordered = permute(trusted, whole.storage_index, grid.preferred)
    placed = place_whole(ordered, whole.cap.total, whole.share_size)
    if placed is None:
        return await _put_large(source, geometry, whole.key, allowed, grid)
    receivers = [(server, placed.get(server.identity.server_id, ())) for server in ordered]
    sent_in_vain = any(
        not server.asks_for_room(len(shares) * whole.share_size) for server, shares in receivers if shares
    )
    may_waste = not is_new and whole.share_size >= ASK_FIRST_SIZE and sent_in_vain
    plan = StorePlan(
        {server_id: {share: whole.shares[share] for share in shares} for server_id, shares in placed.items()},
        n=whole.cap.total,
        happy=grid.encoding.happy,
        size=whole.cap.size,
        ask_first=ASK_FIRST_COUNT if may_waste else 0,
    )
    stored = await drive(plan, Performer(ordered, whole.storage_index, grid.runtime, leases=grid.leases), grid)
    if stored.is_enough:
        return _result(whole.cap, stored.sharemap, stored, stored.sharemap)
    return await _put_large(source, geometry, whole.key, allowed, grid, stored)


async def _put_large(
    source: Source,
    geometry: Geometry,
    key: bytes | None,
    allowed: Sequence[StorageServer],
    grid: Grid,
    before: Stored | None = None,
    keeps: Keeps | None = None,
) -> PutResult:
    """Ask servers for room, and push the shares segment by segment. before: shares of the file that this put has stored already."""
    if key is None:
        key = await _convergent_key(source, geometry, grid)
    storage_index = storage_index_of(key)
    ordered = permute(allowed, storage_index, grid.preferred)

    async def try_push() -> tuple[Selection, Pushed]:
        encoder = Encoder(geometry, key)
        performer = Performer(
            ordered, storage_index, grid.runtime, leases=grid.leases, source=source, encoder=encoder,
            lasting=keeps is not None,
        )  # fmt: skip
        return await push(encoder, performer, ordered, grid.encoding.happy, grid, keeps=keeps)

    done: tuple[Selection, Pushed] | None = None
    async with grid.remembered.of(UploadTurns).turn(storage_index):
        # Retry outside the handler, because the failure's frames hold the data that was being sent.
        with suppress(_SparesLeftError):
            done = await try_push()
        # The servers that were lost are in doubt now, so the second round also asks those that were in doubt before.
        selection, pushed = done or await try_push()
    found: dict[ShareNumber, set[ServerId]] = {}
    for server_id, shares in selection.existing.items():
        for share in shares:
            found.setdefault(share, set()).add(server_id)
    cap = pushed.finished.read_cap(key)
    return _result(cap, pushed.sharemap, before or Stored(), found, pushed.pushed_count)


def _result(
    cap: ChkCap,
    sharemap: Mapping[ShareNumber, Collection[ServerId]],
    attempt: Stored,
    found: Mapping[ShareNumber, Collection[ServerId]],
    pushed: int = 0,
) -> PutResult:
    """found: shares that servers said they hold, including those that this put stored earlier."""
    stored = {(server_id, share) for server_id, shares in attempt.stored.items() for share in shares}
    return PutResult(
        cap=cap,
        pushed=pushed + len(stored),
        found=sum(any((holder, share) not in stored for holder in holders) for share, holders in found.items()),
        sharemap=sharemap,
        happiness=happiness(sharemap),
    )


async def _read_whole(source: Source, geometry: Geometry, key: bytes | None, grid: Grid) -> WholeFile:
    data = await source.read_at(0, source.size)
    require_whole(data, source.size)
    if len(data) <= INLINE_SIZE:
        return encode_whole(data, geometry, key, grid.convergence)
    return await grid.runtime.cpu.run(encode_whole, data, geometry, key, grid.convergence)


async def push(
    encoder: Encoder,
    performer: Performer,
    ordered: Sequence[StorageServer],
    happy: int,
    grid: Grid,
    existing: Mapping[ServerId, Collection[ShareNumber]] | None = None,
    keeps: Keeps | None = None,
) -> tuple[Selection, Pushed]:
    """Place and push the shares of an encoder's file. On failure, everything allocated is aborted, unless it is kept.

    existing: shares of the file that are known to exist; NothingPlacedError if none can be added to them. Raises
    _SparesLeftError, a NotHappyError, if servers in doubt were never asked.
    """
    geometry = encoder.geometry
    ids = [server.identity.server_id for server in ordered]
    share_size = performer.share_size(encoder)
    select = SelectPlan(
        ids,
        in_doubt=_in_doubt(ids, grid.memory),
        is_in_doubt=lambda server_id: bool(_in_doubt([server_id], grid.memory)),
        k=geometry.k,
        n=geometry.n,
        happy=happy,
        share_size=share_size,
        existing=existing,
        versions={
            server.identity.server_id: version for server in ordered if (version := server.known_version) is not None
        },
    )
    try:
        try:
            selection = await drive(select, performer, grid)
        except NotHappyError as error:
            raise name_full(error, select.without_room(), ordered, share_size) from None
        if existing is not None and not selection.placed:
            raise NothingPlacedError("no server takes a new share")
        grid.observer(Event(at=grid.runtime.clock.now(), what="phase", detail="pushing", total=geometry.size))
        try:
            pushed = await drive(PutPlan(encoder, selection, happy=happy), performer, grid)
        except NotHappyError as error:
            if not selection.spares:
                raise
            raise _SparesLeftError(str(error), causes=error.causes, reached=error.reached, happy=error.happy) from error
    except BaseException as error:
        await performer.abort(but_lasting=keeps is not None and keeps(error))
        raise
    await performer.abort()
    return selection, pushed


def _in_doubt(server_ids: Sequence[ServerId], memory: ServerMemory) -> frozenset[ServerId]:
    """Servers that were silent lately on any request that an upload needs; a single read shows that of near servers alone."""
    return frozenset(each for each in server_ids if memory.is_doubtful_for_any(each, UPLOAD_KINDS, READ_KINDS))


def _trusted(servers: Sequence[StorageServer], n: int, grid: Grid) -> list[StorageServer]:
    """The servers that get n whole shares at once, in their order."""
    ids = [server.identity.server_id for server in servers]
    trusted, _ = split_trusted(ids, _in_doubt(ids, grid.memory), n=n, happy=grid.encoding.happy)
    return [server for server in servers if server.identity.server_id in set(trusted)]


async def _convergent_key(source: Source, geometry: Geometry, grid: Grid) -> bytes:
    """Hash the plaintext into its convergent key, reading the next chunk while the last one is hashed."""
    clock, observer, convergence = grid.runtime.clock, grid.observer, grid.convergence
    assert convergence is not None
    observer(Event(at=clock.now(), what="phase", detail="hashing", total=source.size))
    hasher = convergent_hasher(convergence, geometry)
    offset = 0
    while offset < source.size:
        length = min(KEY_CHUNK, source.size - offset)
        chunk = await source.read_at(offset, length)
        require_whole(chunk, length)
        await grid.runtime.cpu.run(hasher.update, chunk)
        offset += length
        observer(Event(at=clock.now(), what="progress", detail="hashing", count=offset, total=source.size))
    return hasher.digest(16)
