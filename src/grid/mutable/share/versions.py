"""Which versions of a mutable file were seen, and where: one value. [spec mutable 10, 13]

Pure. A share is of the version in its signed prefix. Its number is only its server's claim until its hash chain has
proven it. This module decides how many numbers of a version count (decision 0150). It knows nothing of blocks: whether a
share is whole shows when it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from attrs import evolve, field

from grid.codec import base32
from grid.crypto.rsa import PrivateKey, PublicKey
from grid.errors import FormatError
from grid.mutable.share.offset_table import ShareTable
from grid.mutable.share.prefix import LONGEST_PREFIX, Prefix
from grid.placement.happiness import happiness
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import define, frozen

ShareLocation = tuple[ServerId, ShareNumber]


@frozen(kw_only=True, eq=False)
class Sighting:
    """A share whose signed prefix is proven. table: where its fields are. head: its first bytes, as received.

    pieces: further bytes that have come, by offset; they are unproven. number_proven: whether its hash
    chain leads from its number to the root hash, or this process has written it.
    """

    server_id: ServerId
    number: ShareNumber
    prefix: Prefix
    table: ShareTable
    head: Buffer = field(repr=False)
    pieces: Mapping[Range, Buffer] = field(factory=dict, repr=False)
    number_proven: bool = False

    @property
    def location(self) -> ShareLocation:
        """Where it is."""
        return self.server_id, self.number

    def at_hand(self, wanted: Range) -> Buffer | None:
        """Those bytes of the share, if they came with its head or in a piece."""
        return cut_out(self.head, self.pieces, wanted)


@frozen(kw_only=True, eq=False)
class BadShare:
    """A share that cannot be used. front: its first bytes, up to LONGEST_PREFIX, which writes test."""

    server_id: ServerId
    number: ShareNumber
    front: bytes = field(repr=False)
    reason: str

    @property
    def location(self) -> ShareLocation:
        """Where it is."""
        return self.server_id, self.number


@frozen(kw_only=True, eq=False)
class VersionMap:
    """servers: all servers, in the file's order. answered, failed: the outcome of asking; the others were not asked.

    silent: those that failed by not answering in time. sightings, bad: every share found. unread: shares
    that their servers' disks cannot read; these servers count as failed, too. private_key: None if it was not
    sought or not found. known_seqnum: the highest sequence number whose signature this process has ever seen, 0 if it has not looked.
    given_way: versions of this writer, by their order, that gave way to another writer's. Whatever shares of them are
    left, any other readable version is preferred.
    """

    servers: Sequence[ServerId]
    answered: frozenset[ServerId] = frozenset()
    failed: frozenset[ServerId] = frozenset()
    silent: frozenset[ServerId] = frozenset()
    sightings: Sequence[Sighting] = ()
    bad: Sequence[BadShare] = ()
    unread: frozenset[ShareLocation] = frozenset()
    public_key: PublicKey | None = field(default=None, repr=False)
    private_key: PrivateKey | None = field(default=None, repr=False)
    known_seqnum: int = 0
    given_way: frozenset[tuple[int, bytes]] = frozenset()
    _ranked: list[tuple[Prefix, bool]] = field(factory=list, init=False, repr=False)
    """Every version, the preferred ones first, and whether it can be read; empty until somebody asks."""

    def versions(self) -> dict[Prefix, list[Sighting]]:
        """Every version seen, with its shares."""
        found: dict[Prefix, list[Sighting]] = {}
        for sighting in self.sightings:
            found.setdefault(sighting.prefix, []).append(sighting)
        return found

    def recoverable(self) -> list[Prefix]:
        """The versions with k or more share numbers that count, newest first; of rivals, the one on more servers."""
        return self._sorted(True)

    def unrecoverable(self) -> list[Prefix]:
        """The versions with fewer, newest first."""
        return self._sorted(False)

    def count_numbers(self, prefix: Prefix) -> int:
        """How many share numbers of a version count.

        Proven numbers count, and one number for each server that has proven none, because a server may show one share under many
        numbers. An empty version has no proofs, because all its shares are alike. There a server
        counts for its even part of the file, unless no other server shows anything.
        """
        shares = self.shares_of(prefix)
        proven = {share.number for share in shares if share.number_proven}
        holders = {share.server_id for share in shares if share.number_proven}
        most = 1
        if not prefix.size:
            if len(shares) == len(self.sightings):
                return len({share.number for share in shares})
            most = -(-prefix.n // max(1, len(self.servers)))
        claims = [share for share in shares if share.number not in proven and share.server_id not in holders]
        if max(Counter(share.server_id for share in claims).values(), default=0) <= most:
            return len(proven) + len({share.number for share in claims})
        hosts: dict[ShareNumber, list[ServerId]] = {}
        for share in claims:
            turns = [ServerId(f"{share.server_id} {turn}") for turn in range(most)]
            hosts.setdefault(share.number, []).extend(turns)
        return len(proven) + happiness(hosts)

    @property
    def best(self) -> Prefix | None:
        """The newest readable version, or None."""
        return next(iter(self.recoverable()), None)

    @property
    def highest_seqnum(self) -> int:
        """The highest sequence number of all versions seen now or earlier, recoverable or not; 0 if none."""
        return max([self.known_seqnum, *(sighting.prefix.seqnum for sighting in self.sightings)])

    @property
    def newer_unrecoverable(self) -> list[Prefix]:
        """Unreadable versions that are newer than every readable one."""
        best = self.best
        return [prefix for prefix in self.unrecoverable() if best is None or prefix.seqnum > best.seqnum]

    @property
    def needs_merge(self) -> bool:
        """Whether two recoverable versions have the same sequence number."""
        seqnums = [prefix.seqnum for prefix in self.recoverable()]
        return len(seqnums) != len(set(seqnums))

    @property
    def is_contested(self) -> bool:
        """Whether rivals were seen and the best version is not on most servers: its writer may not be done, or not have won.

        Rivals of it: versions with the same sequence number, and those with a higher one that gave way.
        """
        best = self.best
        if best is None or self.has_majority([best.order]):
            return False
        rivals = self.rivals_of(best)
        return any(prefix.seqnum == best.seqnum or prefix.order in self.given_way for prefix in rivals)

    def rivals_of(self, prefix: Prefix) -> list[Prefix]:
        """The other versions that do not have a lower sequence number."""
        return [other for other in self.versions() if other != prefix and other.seqnum >= prefix.seqnum]

    @property
    def majority(self) -> int:
        """How many servers are most of those that may hold the file."""
        shown = {share.server_id for share in self.sightings}
        most = max((share.prefix.n for share in self.sightings), default=0)
        return max(len(shown), min(most, len(self.servers))) // 2 + 1

    def has_majority(self, orders: Collection[tuple[int, bytes]]) -> bool:
        """Whether most of the servers that may hold the file show one of these versions."""
        return len({share.server_id for share in self.sightings if share.prefix.order in orders}) >= self.majority

    @property
    def is_outdated(self) -> bool:
        """Whether a version newer than the best is known to have been signed."""
        best = self.best
        return best is not None and best.seqnum < self.highest_seqnum

    def shares_of(self, prefix: Prefix) -> list[Sighting]:
        """The shares of one version."""
        return [sighting for sighting in self.sightings if sighting.prefix == prefix]

    def knowing(self, seqnum: int) -> VersionMap:
        """The same map, with the highest known sequence number of the file."""
        return evolve(self, known_seqnum=max(self.known_seqnum, seqnum))

    def without_pieces(self) -> VersionMap:
        """The same map, to be kept: only the head of each share."""
        # A head may be a view of the whole message, and would keep the message in memory.
        lean = [evolve(s, head=bytes(s.head), pieces={}) if s.pieces else s for s in self.sightings]
        return evolve(self, sightings=lean)

    def without(self, refuted: Mapping[ShareLocation, str], lost: Collection[ShareLocation] = ()) -> VersionMap:
        """The map in which refuted shares count as bad, with these reasons, and lost ones as not seen."""
        gone = {
            share.location: share for share in self.sightings if share.location in refuted or share.location in lost
        }
        bad = [
            BadShare(
                server_id=share.server_id,
                number=share.number,
                front=front_of(share.head),
                reason=refuted[share.location],
            )
            for share in gone.values()
            if share.location in refuted
        ]
        kept = [share for share in self.sightings if share.location not in gone]
        return evolve(self, sightings=kept, bad=[*self.bad, *bad])

    def locations(self) -> dict[ShareLocation, Sighting | BadShare]:
        """Every share found, by location."""
        found: dict[ShareLocation, Sighting | BadShare] = {share.location: share for share in self.bad}
        found.update({share.location: share for share in self.sightings})
        return found

    def _sorted(self, recoverable: bool) -> list[Prefix]:
        if not self._ranked:
            self._ranked.extend(self._rank())
        return [prefix for prefix, is_recoverable in self._ranked if is_recoverable is recoverable]

    def _rank(self) -> list[tuple[Prefix, bool]]:
        holders: dict[Prefix, set[ServerId]] = {}
        for share in self.sightings:
            holders.setdefault(share.prefix, set()).add(share.server_id)

        def rank(prefix: Prefix) -> tuple[bool, int, int, bytes]:
            return prefix.order not in self.given_way, prefix.seqnum, len(holders[prefix]), prefix.root_hash

        return [(prefix, self.count_numbers(prefix) >= prefix.k) for prefix in sorted(holders, key=rank, reverse=True)]


def version_name(prefix: Prefix) -> str:
    """The name of a version for people and reports. [spec mutable 18]"""
    return f"seq{prefix.seqnum}-{base32.encode(prefix.root_hash)[:4]}"


def front_of(head: Buffer) -> bytes:
    """The first bytes of a bad share, as a write tests them."""
    return bytes(head[:LONGEST_PREFIX])


def cut_out(head: Buffer, pieces: Mapping[Range, Buffer], wanted: Range) -> Buffer | None:
    """Those bytes of a share, from its front and its pieces (by offset); None if they have not all come."""
    offset, size = wanted
    for start, piece in ((0, head), *((start, piece) for (start, _), piece in pieces.items())):
        if start <= offset and offset + size <= start + len(piece):
            return memoryview(piece)[offset - start : offset - start + size]
    return None


def distinct_hosts(sightings: Sequence[Sighting]) -> Mapping[ShareNumber, set[ServerId]]:
    """Share number to the servers that hold it."""
    hosts: dict[ShareNumber, set[ServerId]] = {}
    for sighting in sightings:
        hosts.setdefault(sighting.number, set()).add(sighting.server_id)
    return hosts


@define(kw_only=True, eq=False)
class CandidateShare:
    """A share with a header, whose keys and signature are not checked yet.

    sighting: its value if they are right. pieces: bytes that came after its head.
    """

    sighting: Sighting
    pieces: dict[Range, Buffer] = field(factory=dict, repr=False)

    def get(self, wanted: Range) -> Buffer | None:
        """Those bytes, or None if they have not come."""
        piece = self.sighting.at_hand(wanted)
        return piece if piece is not None else cut_out(b"", self.pieces, wanted)

    def require(self, wanted: Range) -> bytes:
        """Those bytes; FormatError if they have not come."""
        data = self.get(wanted)
        if data is None:
            raise FormatError("the share is cut short")
        return bytes(data)
