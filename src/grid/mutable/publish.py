"""Publishes a version: encodes it, signs it, and writes it to its locations. [spec mutable 5, 15]

It owns the order of the steps. A small version goes out whole, in one message per server. A large one goes out in pieces
that no reader sees until the headers are written. Over an old version, the pieces are written after it, and moved into place
once the new version is safe. See docs/decisions/0030-large-mutable-files.md.

Cost: round trips: one for a small version. For a large one, one per batch plus one for the headers, twice if it replaces an old
version. Memory: WHOLE_BYTES of shares, or STREAMED batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from attrs import evolve, field

from grid.crypto.rsa import PrivateKey
from grid.engine.lateness import WRITE_FLOOR_S
from grid.errors import DataTooLargeError, FormatError, GridError, IntegrityError, NotHappyError
from grid.limits import MAX_SLOT_WRITE
from grid.mutable.session import Session
from grid.mutable.share import mdmf
from grid.mutable.share.blocks import SourceRun, VersionHashes, encode_run, split_salted
from grid.mutable.share.geometry import SALT_SIZE, SDMF_VERSION, Geometry, round_up
from grid.mutable.share.keys import encrypt_private_key
from grid.mutable.share.layout import VersionFields, pack_header, plan_table
from grid.mutable.share.offset_table import ShareTable
from grid.mutable.share.prefix import MAX_SEQNUM, Prefix
from grid.mutable.share.versions import ShareLocation, Sighting, VersionMap
from grid.mutable.sources import SealedSource
from grid.mutable.staged_write import remove_old, stage_of, write_staged
from grid.mutable.write.goal import Goal, Tests, guards_of, hosts_of
from grid.mutable.write.other_writers import Identity
from grid.mutable.write.placed_shares import AS_IT_WAS, name_missing, too_few
from grid.mutable.write.staging import Stage, may_be_staged
from grid.mutable.write.stream_plan import TOKEN_SIZE, ClaimKind, StreamJob, make_token
from grid.mutable.write.write_job import REPAIR_FLOOR_S, LostLocations, ShareContents, WriteJob, Written
from grid.placement.happiness import happiness
from grid.ports import Buffer, ServerId, ShareNumber, Source
from grid.values import frozen

WHOLE_BYTES = 24 * 2**20
"""Up to this many bytes of shares in all, a version is held in memory and sent whole; an SDMF version always is."""

RUN_BYTES = 4 * 2**20
"""Bytes of text encoded by one pool call."""

ALIGNMENT = 64
"""The offset of blocks after an old version is a multiple of this."""


@frozen(kw_only=True)
class Release:
    """A version to publish.

    original: a share of the version, if it must be stored again byte for byte; then source is its SealedSource.
    goal: where it goes. happy: how many servers must each hold a share of their own. held: locations that have it already.
    """

    geometry: Geometry
    seqnum: int
    source: Source
    key: PrivateKey = field(repr=False)
    goal: Goal
    happy: int
    original: Sighting | None = None
    held: frozenset[ShareLocation] = frozenset()


async def publish(session: Session, found: VersionMap, release: Release) -> VersionMap:
    """Write the release to its locations. Returns the map afterwards.

    ConflictError if another client wrote; NotHappyError if too few servers have it, or (with nothing written) would have it.
    """
    try:
        return await _publish(session, found, release)
    except NotHappyError as error:
        raise name_missing(error, [server.identity for server in session.servers], found.failed) from None


async def _publish(session: Session, found: VersionMap, release: Release) -> VersionMap:
    if release.seqnum > MAX_SEQNUM:
        raise FormatError("the file's sequence numbers are used up; it cannot be written any more")
    _require_room(release)
    stage = stage_of(session, found) if release.original is None else None
    if release.geometry.version == SDMF_VERSION or _share_bytes(release) <= WHOLE_BYTES:
        return await _publish_whole(session, found, release, stage)
    if stage is not None:
        beside = evolve(release, goal=stage.goal, happy=stage.happy(release.happy))
        staged = await _publish_streamed(session, found, beside, ClaimKind.FRONT)
        return await remove_old(session, found, staged, stage)
    if not _overwrites(release, found):
        return await _publish_streamed(session, found, release, ClaimKind.FRONT)
    staged = await _publish_streamed(session, found, release, ClaimKind.BEHIND)
    return await move_into_place(session, staged, release.key)


async def move_into_place(session: Session, found: VersionMap, key: PrivateKey) -> VersionMap:
    """Move the best version's blocks to where every writer expects them, if they are elsewhere. Returns the map afterwards.

    The version stays as safe and readable as before at every moment, so failures here are not errors.
    """
    prefix = found.best
    if prefix is None:
        return found
    astray = [share for share in found.shares_of(prefix) if share.table.data[0] != mdmf.DATA_OFFSET]
    if not astray or prefix.version == SDMF_VERSION:
        return found
    goal: Goal = {share.location: tests_of_header(share) for share in astray}
    release = _unchanged(session, found, astray[0], key, goal, happy=0)
    try:
        return await _publish_streamed(session, found, release, ClaimKind.NONE)
    except GridError:
        return evolve(found, failed=found.failed | {share.server_id for share in astray})


async def store_again(
    session: Session, found: VersionMap, prefix: Prefix, key: PrivateKey, goal: Goal, *, happy: int
) -> VersionMap:
    """Store a version byte for byte at further locations. Returns the map afterwards; raises the errors of `publish` and of a read.

    happy: how many servers must each hold a share of their own in the end, those that have one already included.
    """
    good = found.shares_of(prefix)
    original = next((share for share in good if share.at_hand(share.table.signature) is not None), good[0])
    return await publish(session, found, _unchanged(session, found, original, key, goal, happy=happy))


def _unchanged(
    session: Session, found: VersionMap, original: Sighting, key: PrivateKey, goal: Goal, *, happy: int
) -> Release:
    """The release that stores the original's version again byte for byte."""
    prefix = original.prefix
    return Release(
        geometry=prefix.geometry,
        seqnum=prefix.seqnum,
        source=SealedSource(session=session, found=found, prefix=prefix),
        key=key,
        goal=goal,
        happy=happy,
        original=original,
        held=frozenset(share.location for share in found.shares_of(prefix)),
    )


def tests_of_header(share: Sighting) -> Tests:
    """The tests that a share is of this version and that its fields are where they were seen."""
    header = pack_header(share.prefix, share.table)
    return ((0, len(header), header),)


def _require_room(release: Release) -> None:
    """Raise NotHappyError, before anything is written, if even complete success would not be enough."""
    hosts = hosts_of([*release.goal, *release.held])
    reached = happiness(hosts)
    if reached < release.happy or len(hosts) < release.geometry.k:
        raise too_few(
            reached,
            release.happy,
            len(hosts),
            release.geometry.k,
            verb="can take shares",
            failures={},
            state=AS_IT_WAS,
        )


def _share_bytes(release: Release) -> int:
    geometry = release.geometry
    return geometry.n * (geometry.data_size + geometry.tree_size)


def _overwrites(release: Release, found: VersionMap) -> bool:
    """Whether a readable version has shares where the release goes."""
    if release.original is not None:
        return False
    readable = set(found.recoverable())
    return any(share.prefix in readable and share.location in release.goal for share in found.sightings)


async def _publish_whole(session: Session, found: VersionMap, release: Release, stage: Stage | None) -> VersionMap:
    geometry = release.geometry
    iv = _iv(session, release)
    hashes = VersionHashes(geometry)
    data: dict[ShareNumber, list[tuple[int, Buffer]]] = {}
    per_run = max(1, RUN_BYTES // max(1, geometry.segment_size))
    for first in range(0, geometry.segment_count, per_run):
        run = await _next_run(session, release, first, min(per_run, geometry.segment_count - first), iv)
        encoded = await session.compute(encode_run, run)
        hashes.absorb(encoded)
        for number, raw in encoded.data.items():
            data.setdefault(number, []).append((geometry.run_offset(first), raw))
    fields = await _sign(session, release, hashes, iv, None)
    table = fields.table
    if table.eof > MAX_SLOT_WRITE:
        raise DataTooLargeError(f"a share of {table.eof} bytes is too large for SDMF; store the file as MDMF")

    def payload(number: ShareNumber) -> Sequence[tuple[int, Buffer]]:
        pieces = [(table.data[0] + offset, raw) for offset, raw in data.get(number, ())]
        return [*pieces, *fields.front_writes(hashes.chain(number), hashes.block_tree(number))]

    rewritten = release.goal if stage is None and not may_be_staged(geometry.k, geometry.n) else ()
    job = _write_job(
        session, found, release, fields, payload, table.eof, settle=release.original is None, rewritten=rewritten
    )
    if stage is None:
        written = await session.write(job, release.goal)
        return updated(found, fields, hashes.chain, written, held=release.held)
    return await write_staged(session, found, job, stage, partial(updated, fields=fields, chain=hashes.chain))


async def _publish_streamed(session: Session, found: VersionMap, release: Release, claim: ClaimKind) -> VersionMap:
    geometry, entropy = release.geometry, session.grid.runtime.entropy
    claim_offset, data_offset = 0, mdmf.DATA_OFFSET
    if claim is ClaimKind.BEHIND:
        standard = mdmf.plan_table(geometry, len(release.key.public_key.der), len(release.key.der))
        ends = [share.table.eof for share in found.sightings if share.location in release.goal]
        # All writers that replace one version put their tokens at the same offset, whatever the sizes of their own versions.
        claim_offset = round_up(max(_ends_of_best(found), default=0), ALIGNMENT)
        data_offset = round_up(max([claim_offset + TOKEN_SIZE, standard.eof, *ends]), ALIGNMENT)
    job = StreamJob(
        geometry=geometry,
        data_offset=data_offset,
        salts=None if release.original is not None else entropy.random_bytes(SALT_SIZE * geometry.segment_count),
        read_key=None if release.original is not None else session.keys.require_read_key(),
        claim=claim,
        claim_offset=claim_offset,
        token=make_token(entropy.random_bytes(32)),
        needed=1 if release.original is not None else geometry.k,
        happy=0 if release.original is not None else release.happy,
    )
    streamed = await session.stream(job, release.goal, release.source)
    fields = await _sign(session, release, streamed.hashes, b"", data_offset)

    def payload(number: ShareNumber) -> Sequence[tuple[int, Buffer]]:
        last = [(streamed.last_offset, streamed.last[number])] if streamed.last else []
        return [*last, *fields.front_writes(streamed.hashes.chain(number), streamed.hashes.block_tree(number))]

    share_bytes = geometry.tree_size + max(map(len, streamed.last.values()), default=0)
    write = _write_job(session, found, release, fields, payload, share_bytes, settle=False)
    token = make_token(entropy.random_bytes(32))
    bars = {location: job.bar(before, token) for location, before in release.goal.items()}
    locations = LostLocations(
        bars={p: bar for p, bar in bars.items() if bar is not None and (p in streamed.denied or p in streamed.goal)},
        suspects=frozenset(location for location in streamed.denied if bars[location] is None),
    )
    written = await session.write(evolve(write, lost=locations), streamed.goal)
    lost = release.goal.keys() - streamed.goal.keys()
    return updated(found, fields, streamed.hashes.chain, written, lost=lost, held=release.held)


def _ends_of_best(found: VersionMap) -> list[int]:
    """Where the shares of the version that is replaced end."""
    return [] if found.best is None else [share.table.eof for share in found.shares_of(found.best)]


def _iv(session: Session, release: Release) -> bytes:
    """The salt of the one segment of an SDMF version."""
    if release.geometry.version != SDMF_VERSION:
        return b""
    return (
        release.original.prefix.iv
        if release.original is not None
        else session.grid.runtime.entropy.random_bytes(SALT_SIZE)
    )


async def _next_run(session: Session, release: Release, first: int, count: int, iv: bytes) -> SourceRun:
    geometry = release.geometry
    _, length = geometry.run_sizes(first, count)
    offset, sealed = first * geometry.segment_size, release.original is not None
    salts = [iv] * count
    if sealed:
        extra = geometry.salt_size
        text = await release.source.read_at(offset + first * extra, length + count * extra)
        if extra:
            salts, text = split_salted(geometry, first, count, text)
    else:
        text = await release.source.read_at(offset, length)
        if geometry.salt_size:
            salts = [session.grid.runtime.entropy.random_bytes(SALT_SIZE) for _ in range(count)]
    return SourceRun(
        geometry=geometry,
        first_segment=first,
        segment_count=count,
        text=text,
        salts=salts,
        read_key=None if sealed else session.keys.require_read_key(),
        wanted=frozenset(number for _, number in release.goal),
    )


async def _sign(
    session: Session, release: Release, hashes: VersionHashes, iv: bytes, data_offset: int | None
) -> VersionFields:
    """The fields of the finished version; IntegrityError if the recreated shares are not the original's."""
    root_hash = await session.compute(hashes.finish)
    original, key = release.original, release.key
    public_key = key.public_key.der
    signature: bytes | None = None
    if original is not None:
        prefix = original.prefix
        if prefix.root_hash != root_hash:
            raise IntegrityError("the recreated shares do not match the version: it was damaged when written")
        kept = original.at_hand(original.table.signature)
        signature = None if kept is None else bytes(kept)
    else:
        prefix = Prefix.of_version(release.geometry, seqnum=release.seqnum, root_hash=root_hash, iv=iv)
    if signature is None:
        signature = await session.compute(key.sign, prefix.pack())
    if data_offset is None:
        table: ShareTable = plan_table(release.geometry, len(public_key), len(key.der))
    else:
        table = mdmf.plan_table(release.geometry, len(public_key), len(key.der), data_offset)
    return VersionFields(
        prefix=prefix,
        table=table,
        public_key=public_key,
        signature=signature,
        private_key=encrypt_private_key(key),
    )


def _write_job(
    session: Session,
    found: VersionMap,
    release: Release,
    fields: VersionFields,
    payload: Callable[[ShareNumber], Sequence[tuple[int, Buffer]]],
    share_bytes: int,
    *,
    settle: bool,
    rewritten: Collection[ShareLocation] = (),
) -> WriteJob:
    """The job of one version. rewritten: locations whose shares one message each replaces, without a stage."""
    best = found.best
    is_new = release.original is None
    is_counted = is_new or release.happy > 0
    others = found.newer_unrecoverable if is_new or best is None else found.rivals_of(best)
    unfinished: Mapping[Identity, frozenset[ShareNumber]] = {
        prefix.order: frozenset(share.number for share in found.shares_of(prefix)) for prefix in others
    }
    spares: list[ServerId] = []
    if settle:
        spares = [server_id for server_id in session.permitted if server_id not in found.failed]
    return WriteJob(
        prefix=fields.prefix,
        contents=ShareContents(payload=payload, share_bytes=share_bytes, new_length=fields.table.eof),
        base=max((prefix.order for prefix in found.versions()), default=None) if best is None else best.order,
        happy=release.happy,
        settle=settle,
        spares=spares,
        hidden=(len(found.servers) - len(found.answered)) * -(-release.geometry.n // max(1, len(found.servers))),
        held=release.held,
        unfinished=unfinished,
        late_floor_s=WRITE_FLOOR_S if is_new else REPAIR_FLOOR_S,
        guards=guards_of(found, release.geometry.n, rewritten) if is_counted and best is not None else {},
    )


def updated(
    found: VersionMap,
    fields: VersionFields,
    chain: Callable[[ShareNumber], bytes],
    written: Written,
    lost: Collection[ShareLocation] = (),
    held: Collection[ShareLocation] = (),
) -> VersionMap:
    """The map after a write: its locations have the new version, and doubtful ones count as failed.

    chain: the packed share hash chain of one share. held: shares that the write was to leave alone.
    """
    sightings = [share for share in found.sightings if share.location not in written.locations | written.removed]
    sightings += [
        Sighting(
            server_id=server_id,
            number=number,
            prefix=fields.prefix,
            table=fields.table,
            head=fields.front(chain(number)),
            number_proven=True,
        )
        for server_id, number in sorted(written.locations)
    ]
    doubtful = {server_id for server_id, _ in [*written.lost, *lost]}
    sure = {*written.locations, *held}
    return evolve(
        found,
        sightings=[share for share in sightings if share.location in sure or share.server_id not in doubtful],
        bad=[share for share in found.bad if share.location not in written.locations],
        failed=found.failed | doubtful,
    )
