"""What was seen where: the versions of a mutable file, as one value. [spec mutable 10, 13]

Pure. A share is of the version that its signed prefix names. It knows nothing of blocks: whether a share listed
here is whole shows when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from grid.codec import base32
from grid.crypto.rsa import PrivateKey, PublicKey
from grid.mutable.prefix import LONGEST_PREFIX, Prefix
from grid.mutable.table import ShareTable
from grid.ports import Buffer, Range, ServerId, ShareNumber

Place = tuple[ServerId, ShareNumber]


@frozen(kw_only=True, eq=False)
class Sighting:
    """A share whose signed prefix is proven. table: where its fields lie. head: its first octets, as they came.

    pieces: more of its octets that have come, by where they lie; nothing of them is proven.
    """

    server_id: ServerId
    number: ShareNumber
    prefix: Prefix
    table: ShareTable
    head: Buffer = field(repr=False)
    pieces: Mapping[Range, Buffer] = field(factory=dict, repr=False)

    @property
    def place(self) -> Place:
        """Where it is."""
        return self.server_id, self.number

    def at_hand(self, wanted: Range) -> Buffer | None:
        """Those octets of the share, if they came with its head, or in a piece."""
        return cut_out(self.head, self.pieces, wanted)


@frozen(kw_only=True, eq=False)
class BadShare:
    """A share that cannot be used. front: its first octets, up to LONGEST_PREFIX, which a write tests."""

    server_id: ServerId
    number: ShareNumber
    front: bytes = field(repr=False)
    reason: str

    @property
    def place(self) -> Place:
        """Where it is."""
        return self.server_id, self.number


@frozen(kw_only=True, eq=False)
class VersionMap:
    """servers: all that there are, in the file's order. answered, failed: what came of asking; others were not asked.

    sightings, bad: every share found. private_key: None if it was not sought or not found.
    """

    servers: Sequence[ServerId]
    answered: frozenset[ServerId] = frozenset()
    failed: frozenset[ServerId] = frozenset()
    sightings: Sequence[Sighting] = ()
    bad: Sequence[BadShare] = ()
    public_key: PublicKey | None = field(default=None, repr=False)
    private_key: PrivateKey | None = field(default=None, repr=False)

    def versions(self) -> dict[Prefix, list[Sighting]]:
        """Every version seen, and its shares."""
        found: dict[Prefix, list[Sighting]] = {}
        for sighting in self.sightings:
            found.setdefault(sighting.prefix, []).append(sighting)
        return found

    def recoverable(self) -> list[Prefix]:
        """The versions with k distinct shares or more, the newest first."""
        return sorted((p for p, s in self.versions().items() if is_recoverable(p, s)), key=_order, reverse=True)

    def unrecoverable(self) -> list[Prefix]:
        """The versions with fewer, the newest first."""
        return sorted((p for p, s in self.versions().items() if not is_recoverable(p, s)), key=_order, reverse=True)

    @property
    def best(self) -> Prefix | None:
        """The newest version that can be read."""
        return next(iter(self.recoverable()), None)

    @property
    def highest_seqnum(self) -> int:
        """Of all versions seen, recoverable or not; 0 if none."""
        return max((sighting.prefix.seqnum for sighting in self.sightings), default=0)

    @property
    def newer_unrecoverable(self) -> list[Prefix]:
        """Versions that cannot be read though they are newer than every one that can."""
        best = self.best
        return [prefix for prefix in self.unrecoverable() if best is None or prefix.seqnum > best.seqnum]

    @property
    def needs_merge(self) -> bool:
        """Whether two recoverable versions have one sequence number."""
        seqnums = [prefix.seqnum for prefix in self.recoverable()]
        return len(seqnums) != len(set(seqnums))

    def shares_of(self, prefix: Prefix) -> list[Sighting]:
        """The shares of one version."""
        return [sighting for sighting in self.sightings if sighting.prefix == prefix]

    def without_pieces(self) -> VersionMap:
        """The same map, to be kept: of each share no more than its head."""
        # A head may be a view of the whole message, and would keep it.
        lean = [evolve(s, head=bytes(s.head), pieces={}) if s.pieces else s for s in self.sightings]
        return evolve(self, sightings=lean)

    def places(self) -> dict[Place, Sighting | BadShare]:
        """Everything found, by place."""
        found: dict[Place, Sighting | BadShare] = {share.place: share for share in self.bad}
        found.update({share.place: share for share in self.sightings})
        return found


def is_recoverable(prefix: Prefix, sightings: Sequence[Sighting]) -> bool:
    """Whether so many shares are enough to read the version."""
    return len({sighting.number for sighting in sightings}) >= prefix.k


def version_name(prefix: Prefix) -> str:
    """How people and reports name a version. [spec mutable 18]"""
    return f"seq{prefix.seqnum}-{base32.encode(prefix.root_hash)[:4]}"


def front_of(head: Buffer) -> bytes:
    """What a write tests of a share that is bad: all that was seen of its first octets."""
    return bytes(head[:LONGEST_PREFIX])


def cut_out(head: Buffer, pieces: Mapping[Range, Buffer], wanted: Range) -> Buffer | None:
    """Those octets of a share, of whose front and pieces (by where they lie) these have come; None if they have not."""
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


def _order(prefix: Prefix) -> tuple[int, bytes]:
    return prefix.order
