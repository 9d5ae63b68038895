"""Remembers the layouts of mutable files, and guesses from them what the first request of the next operation should fetch.

A file's sizes seldom change between two uses. A client that knows them fetches the bytes it will need with the same message
that asks which versions exist. These bytes are proven like any others, and belong to the version whose front came with
them. If the layout has changed, they are useless and nothing else is lost.
See docs/decisions/0094-questions-asked-early.md.

Cost: round trips: one less if the memory is right. Network: if it is wrong, up to MOST_MESSAGE_BYTES in vain
from each of at most k servers, plus the ranges that every server is asked for; more from a server that has gained
shares since. Memory: a few hundred bytes per file, for MOST_FILES files.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence

from grid.caps import StorageIndex
from grid.errors import FormatError
from grid.mutable.read.segment_batch import ranges_of_read
from grid.mutable.share import mdmf
from grid.mutable.share.audit import proof_ranges
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.hash_rows import CHUNK_LEAVES, merge_ranges
from grid.mutable.share.layout import plan_table
from grid.mutable.share.offset_table import ShareTable
from grid.mutable.share.versions import VersionMap
from grid.ports import Range, ServerId, ShareNumber
from grid.values import field, frozen

FIRST_READ = 16384
"""First bytes requested of every share: the header and the keys, and the whole of a directory of a hundred names."""

USUAL_FRONT = mdmf.DATA_OFFSET
"""At least this much is requested, whatever an unsigned table says: in either format the header and usual keys end here."""

MOST_FILES = 512
"""Number of files remembered, the latest ones."""

MOST_SHARE_BYTES = 256 * 2**10
"""Bytes of one share that are requested early: a range of the file three times as long, and one second on a slow line."""

MOST_MESSAGE_BYTES = 2 * MOST_SHARE_BYTES
"""The same for all shares on one server."""

MOST_RANGES = 24
"""Ranges requested early. 1.20's HTTP servers take one request for each."""


@frozen(kw_only=True)
class Speculation:
    """What the first request fetches of each share: `front` bytes from its start, and these ranges.

    everywhere: of every share. of_holders: of the shares on those servers. Both ascend. Without arguments: what to
    request of an unknown file.
    """

    front: int = field(factory=lambda: FIRST_READ)
    everywhere: Sequence[Range] = ()
    of_holders: Sequence[Range] = ()
    holders: frozenset[ServerId] = frozenset()

    def ranges(self, server_id: ServerId, *, early: bool = True) -> list[Range]:
        """The ranges to request from that server, beginning with the front. early: whether to count on its blocks."""
        is_holder = early and server_id in self.holders
        return [(0, self.front), *(self.of_holders if is_holder else self.everywhere)]


@frozen(kw_only=True)
class KnownFile:
    """A file as last seen. table: its offset table, or the one that most servers show.

    holders: servers that together held k distinct shares with that table, and how many shares each held in all. crowd:
    the most shares on one server.
    """

    geometry: Geometry
    table: ShareTable
    holders: Mapping[ServerId, int] = field(repr=False)
    crowd: int

    def speculate(self, everywhere: Sequence[Range], of_holders: Sequence[Range]) -> Speculation:
        """Request these ranges of every share and those of k shares; only the front if that would be too many bytes."""
        front = min(FIRST_READ, max(USUAL_FRONT, self.table.data[0]))
        ranges = [merge_ranges([wanted for wanted in some if sum(wanted) > front]) for some in (everywhere, of_holders)]
        both = merge_ranges([*ranges[0], *ranges[1]])
        data = sum(size for _, size in both)
        of_anyone = self.crowd * sum(size for _, size in ranges[0])
        of_holder = max(self.holders.values(), default=1) * data
        too_much = data > MOST_SHARE_BYTES or max(of_anyone, of_holder) > MOST_MESSAGE_BYTES
        if too_much or len(both) > MOST_RANGES:
            return Speculation(front=front)
        return Speculation(front=front, everywhere=ranges[0], of_holders=both, holders=frozenset(self.holders))

    def speculate_nothing(self) -> Speculation:
        """What to request if only the versions matter."""
        return self.speculate([], [])

    def speculate_version(self) -> Speculation:
        """What to request if the contents of the newest version are probably at hand: proofs of shares whose number matters."""
        return self.speculate(proof_ranges(self.table) if self.crowd > 1 else [], [])

    def speculate_read(self, offset: int, length: int | None, *, and_key: bool = False) -> Speculation:
        """What a read of these bytes needs (length None: to the end). and_key: the private key as well."""
        end = self.geometry.size if length is None else min(self.geometry.size, offset + length)
        wanted = [self.table.private_key] if and_key else []
        if offset < end and self.is_short(*self.geometry.segment_range(offset, end - offset)):
            wanted += ranges_of_read(self.geometry, self.table, offset, end - offset)
        return self.speculate([], wanted)

    def is_short(self, first: int, stop: int) -> bool:
        """Whether the segments and their hashes may be small enough in a share to be worth an exact calculation."""
        share_bytes, _ = self.geometry.run_sizes(first, stop - first)
        return share_bytes + HASH_SIZE * (stop - first) <= MOST_SHARE_BYTES and stop - first <= CHUNK_LEAVES


Speculate = Callable[[KnownFile], Speculation]
"""Chooses what to request early if the file is as remembered."""


class KnownFiles:
    """The files used last."""

    def __init__(self) -> None:
        self._files: OrderedDict[StorageIndex, KnownFile] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def get(self, storage_index: StorageIndex) -> KnownFile | None:
        """What is remembered of that file, or None."""
        return self._files.get(storage_index)

    def note(self, storage_index: StorageIndex, found: VersionMap, is_slow: Callable[[ServerId], bool]) -> None:
        """Remember the file as in this map, or forget it if remembering gains nothing or is unreliable.

        is_slow: whether to avoid a server's shares.
        """
        known = _known(found, is_slow)
        self._files.pop(storage_index, None)
        if known is None:
            return
        self._files[storage_index] = known
        if len(self._files) > MOST_FILES:
            self._files.popitem(last=False)


def _known(found: VersionMap, is_slow: Callable[[ServerId], bool]) -> KnownFile | None:
    best = found.best
    if best is None:
        return None
    # The tables are not signed. One server that is wrong or lies has no say, however many shares it shows.
    said = dict.fromkeys((share.server_id, share.table) for share in found.shares_of(best))
    servers = Counter(table for _, table in said)
    table = max(servers, key=lambda table: (servers[table], _is_standard(table, best.geometry)))
    if table.eof <= FIRST_READ:
        return None  # The front is the whole share.
    shares = [share for share in found.shares_of(best) if share.table == table]
    shares.sort(key=lambda share: (is_slow(share.server_id), share.number))
    held: dict[ServerId, set[ShareNumber]] = {}
    for share in shares:
        held.setdefault(share.server_id, set()).add(share.number)
    # A request covers all shares that a server has, of whatever version or table.
    crowds = Counter(share.server_id for share in found.sightings)
    seen: set[ShareNumber] = set()
    holders: dict[ServerId, int] = {}
    for share in shares:
        if len(seen) < best.k and share.number not in seen:
            seen |= held[share.server_id]
            holders[share.server_id] = crowds[share.server_id]
    return KnownFile(geometry=best.geometry, table=table, holders=holders, crowd=max(crowds.values()))


def _is_standard(table: ShareTable, geometry: Geometry) -> bool:
    try:
        return table == plan_table(geometry, table.public_key[1], table.private_key[1])
    except FormatError:
        return False
