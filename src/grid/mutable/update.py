"""Changes part of an MDMF file in place, or appends to it. [spec mutable 17]

It owns the choice between that and writing the whole file. Every byte that it reads is proven before anything is signed
again. It never changes a share of another version.

Cost: round trips: one to read and one to write; only the second if the bytes to read came with the map. Network: the segments of
the range, once, or twice at its ends, and the hashes for them from every share; all hashes of every share if the file grows.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from grid.codec.merkle import build_tree, padded_leaf_count
from grid.crypto.rsa import PrivateKey
from grid.limits import MAX_UPDATE_SEGMENTS
from grid.mutable.publish import WHOLE_BYTES, updated
from grid.mutable.read.layout_cache import MOST_SHARE_BYTES, KnownFile, Speculation
from grid.mutable.read.segment_batch import ranges_of_read
from grid.mutable.session import Session
from grid.mutable.share.blocks import EncodedRun, SourceRun, chain_of, encode_run
from grid.mutable.share.geometry import HASH_SIZE, MDMF_VERSION, SALT_SIZE, Geometry
from grid.mutable.share.hash_rows import climb
from grid.mutable.share.keys import encrypt_private_key
from grid.mutable.share.layout import VersionFields, pack_header, plan_table
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import ShareLocation, Sighting, VersionMap
from grid.mutable.sources import OverlaySource
from grid.mutable.write.goal import Goal, hosts_of, tests_of_version
from grid.mutable.write.row_plan import RowWants, ShareRows
from grid.mutable.write.staging import needs_stage
from grid.mutable.write.write_job import ShareContents, WriteJob
from grid.placement.happiness import happiness
from grid.ports import Buffer, Range, ShareNumber
from grid.values import frozen

NEIGHBORS = 2
"""If a change reaches no more segments than this, all of them are read at once, although their middle is not needed."""


@frozen(kw_only=True)
class _Change:
    """Segments first .. stop are encoded again; the old and new sizes of the file."""

    old: Geometry
    new: Geometry
    first: int
    stop: int

    @property
    def grows(self) -> bool:
        """Whether the hash tree moves or changes its size."""
        return self.old.data_size != self.new.data_size

    @property
    def wants(self) -> RowWants:
        """The hashes that must be known of each share."""
        first, stop = (0, self.old.segment_count) if self.grows else (self.first, self.stop)
        return RowWants(geometry=self.old, first=first, stop=stop)

    @property
    def is_small(self) -> bool:
        """Whether the change is small enough not to be written in pieces."""
        share_bytes, _ = self.new.run_sizes(self.first, self.stop - self.first)
        return share_bytes * self.new.n <= WHOLE_BYTES and self.new.segment_count <= MAX_UPDATE_SEGMENTS


def _plan_change(old: Geometry, offset: int, length: int) -> _Change:
    size = max(old.size, offset + length)
    new = Geometry(version=old.version, size=size, k=old.k, n=old.n, segment_size=old.segment_size)
    first, stop = new.segment_range(offset, length)
    return _Change(old=old, new=new, first=first, stop=stop)


def may_update_in_place(found: VersionMap, prefix: Prefix, offset: int, length: int, happy: int) -> bool:
    """Whether an update in place is possible: every share is of this version and where it should be, and there are no others.

    Also False if the change is large enough to be written in pieces, or if fewer than `happy` servers have a share
    of their own, because an update places no new shares.
    """
    if needs_stage(found, prefix) or happiness(hosts_of(share.location for share in found.sightings)) < happy:
        return False
    if prefix.version != MDMF_VERSION or len(found.sightings) != len(found.shares_of(prefix)) or found.bad:
        return False
    standard = Geometry.of_file(MDMF_VERSION, prefix.size, prefix.k, prefix.n)
    numbers = {share.number for share in found.sightings}
    in_place = all(
        share.table == plan_table(standard, share.table.public_key[1], share.table.private_key[1])
        for share in found.sightings
    )
    small = _plan_change(prefix.geometry, offset, length).is_small
    return prefix.segment_size == standard.segment_size and len(numbers) == prefix.n and in_place and small


def speculate_update(known: KnownFile, offset: int, length: int) -> Speculation:
    """What an update would read if the file is still as known."""
    geometry, table = known.geometry, known.table
    if offset > geometry.size or geometry != Geometry.of_file(MDMF_VERSION, geometry.size, geometry.k, geometry.n):
        return known.speculate_nothing()
    change = _plan_change(geometry, offset, length)
    if not change.is_small or HASH_SIZE * (change.wants.stop - change.wants.first) > MOST_SHARE_BYTES:
        return known.speculate_nothing()
    blocks: list[Range] = []
    for read in _reads(change, offset, length):
        blocks += ranges_of_read(geometry, table, *read)
    return known.speculate(change.wants.ranges(table), blocks)


async def update_in_place(
    session: Session, found: VersionMap, prefix: Prefix, key: PrivateKey, offset: int, data: Buffer, happy: int
) -> VersionMap | None:
    """Publish the version that has `data` at `offset`. Returns the map afterwards, or None if some share was bad or silent.

    ConflictError, NotHappyError as in publish; NotEnoughSharesError if the ends of the range cannot be read.
    """
    change = _plan_change(prefix.geometry, offset, len(data))
    reads = _reads(change, offset, len(data))
    rows = await session.fetch_rows(found, prefix, change.wants, _blocks_wanted(session, found, prefix, reads))
    if len(rows) != prefix.n:
        return None
    have = {share.location: share.pieces for share in rows.values()}
    at_hand = [evolve(share, pieces={**share.pieces, **have.get(share.location, {})}) for share in found.sightings]
    run = SourceRun(
        geometry=change.new,
        first_segment=change.first,
        segment_count=change.stop - change.first,
        text=await _new_text(session, evolve(found, sightings=at_hand), prefix, change, reads, offset, data),
        salts=[session.grid.runtime.entropy.random_bytes(SALT_SIZE) for _ in range(change.first, change.stop)],
        read_key=session.keys.require_read_key(),
        wanted=frozenset(rows),
    )
    encoded = await session.compute(encode_run, run)
    trees = await session.compute(_new_trees, change, rows, encoded)
    roots = b"".join(trees[ShareNumber(number)][0][1][:HASH_SIZE] for number in range(prefix.n))
    share_tree = build_tree(roots)
    fields = await _sign(session, prefix, change, key, share_tree[:HASH_SIZE])
    job = _write_job(prefix, change, fields, encoded, trees, share_tree, happy)
    goal: Goal = {share.location: tests_of_version(prefix) for share in found.sightings}
    written = await session.write(job, goal)
    return updated(found, fields, lambda number: chain_of(share_tree, prefix.n, number), written)


def _reads(change: _Change, offset: int, length: int) -> list[tuple[int, int]]:
    """(offset, bytes) of the old text that must be read: the ends of the segments to encode again.

    This is one read if the range begins and ends in neighboring segments; it then includes what lies between.
    """
    start = change.first * change.new.segment_size
    _, size = change.new.run_sizes(change.first, change.stop - change.first)
    end, stop = offset + length, min(start + size, change.old.size)
    if start < offset and end < stop and change.stop - change.first <= NEIGHBORS:
        return [(start, stop - start)]
    return [(first, last - first) for first, last in ((start, offset), (end, stop)) if first < last]


def _blocks_wanted(
    session: Session, found: VersionMap, prefix: Prefix, reads: Sequence[tuple[int, int]]
) -> dict[ShareLocation, list[Range]]:
    """What k shares should send along with their hashes, so that the reads need no further requests.

    Shares that came completely with the map are chosen first, and are asked for nothing.
    """
    held = found.shares_of(prefix)
    # may_update_in_place has checked that the fields are at the same offsets in all of them.
    wanted = [piece for read in reads for piece in ranges_of_read(prefix.geometry, held[0].table, *read)]
    missing = {share: [piece for piece in wanted if share.at_hand(piece) is None] for share in held}
    shares: dict[ShareNumber, Sighting] = {}
    for share in sorted(missing, key=lambda s: (bool(missing[s]), session.loads.of(s.server_id).is_slow, s.number)):
        shares.setdefault(share.number, share)
    chosen = list(shares.values())[: prefix.k]
    return {share.location: missing[share] for share in chosen if missing[share]}


async def _new_text(
    session: Session,
    found: VersionMap,
    prefix: Prefix,
    change: _Change,
    reads: Sequence[tuple[int, int]],
    offset: int,
    data: Buffer,
) -> Buffer:
    """The plaintext of the segments to encode; a read proves every byte of it that comes from the grid."""
    start = change.first * change.new.segment_size
    if len(reads) == 1 and reads[0][0] == start and start + reads[0][1] > offset + len(data):
        text = await session.gather(found, prefix, *reads[0])
        text[offset - start : offset - start + len(data)] = data
        return text
    _, length = change.new.run_sizes(change.first, change.stop - change.first)
    source = OverlaySource(session=session, found=found, prefix=prefix, offset=offset, data=data)
    return await source.read_at(start, length)


Nodes = list[tuple[int, bytes]]
"""Runs of nodes, ascending: (number of the first, joined hashes)."""


def _new_trees(change: _Change, rows: dict[ShareNumber, ShareRows], encoded: EncodedRun) -> dict[ShareNumber, Nodes]:
    """The changes in each share's block hash tree; the first run starts with the root."""
    trees: dict[ShareNumber, Nodes] = {}
    for number, share in rows.items():
        row = encoded.leaves[number]
        if change.grows:
            base = padded_leaf_count(change.old.leaf_count) - 1
            kept = b"".join(share.nodes[base + leaf] for leaf in range(min(change.first, change.old.leaf_count)))
            after = range(change.stop, change.old.leaf_count)
            trees[number] = [(0, build_tree(kept + row + b"".join(share.nodes[base + leaf] for leaf in after)))]
        else:
            padded = padded_leaf_count(change.new.leaf_count)
            values = [row[start : start + HASH_SIZE] for start in range(0, len(row), HASH_SIZE)]
            trees[number] = _join_nodes(climb(padded, change.first, values, share.nodes))
    return trees


def _join_nodes(nodes: dict[int, bytes]) -> Nodes:
    joined: Nodes = []
    for number in sorted(nodes):
        if joined and joined[-1][0] + len(joined[-1][1]) // HASH_SIZE == number:
            joined[-1] = joined[-1][0], joined[-1][1] + nodes[number]
        else:
            joined.append((number, nodes[number]))
    return joined


async def _sign(session: Session, prefix: Prefix, change: _Change, key: PrivateKey, root_hash: bytes) -> VersionFields:
    new = Prefix.of_version(change.new, seqnum=prefix.seqnum + 1, root_hash=root_hash, iv=b"")
    public_key = key.public_key.der
    return VersionFields(
        prefix=new,
        table=plan_table(change.new, len(public_key), len(key.der)),
        public_key=public_key,
        signature=await session.compute(key.sign, new.pack()),
        private_key=encrypt_private_key(key),
    )


def _write_job(
    prefix: Prefix,
    change: _Change,
    fields: VersionFields,
    encoded: EncodedRun,
    trees: dict[ShareNumber, Nodes],
    share_tree: bytes,
    happy: int,
) -> WriteJob:
    table = fields.table
    data_offset = table.data[0] + change.new.run_offset(change.first)

    def payload(number: ShareNumber) -> Sequence[tuple[int, Buffer]]:
        tree = [(table.block_tree[0] + HASH_SIZE * node, raw) for node, raw in trees[number]]
        return [
            (data_offset, encoded.data[number]),
            *tree,
            (table.chain[0], chain_of(share_tree, prefix.n, number)),
            (table.signature[0], fields.signature),
            (0, pack_header(fields.prefix, table)),
        ]

    return WriteJob(
        prefix=fields.prefix,
        contents=ShareContents(
            payload=payload,
            share_bytes=len(next(iter(encoded.data.values()))) + change.new.tree_size,
            new_length=None,
        ),
        base=prefix.order,
        happy=happy,
        settle=False,
    )
