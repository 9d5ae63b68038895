"""The plan that fetches and proves hashes of all shares of a version, for an update in place. [spec mutable 17]

Synchronous and pure; drive.py runs it. Every byte is proven against the signed root hash before it is returned. A copy
that is bad or silent is replaced by another copy of its number; otherwise the number is missing from the result.

Cost: round trips: one; none if everything came with the map. Network: of each share, the requested nodes and its chain.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from contextlib import suppress

from grid.codec.merkle import padded_leaf_count, prove_leaf
from grid.engine.lateness import PendingRead, ServerLoad, ServerLoads
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import AdviseCorrupt, Request
from grid.errors import FormatError, GridError, IntegrityError
from grid.mutable.share.geometry import HASH_SIZE, Geometry
from grid.mutable.share.hash_rows import climb, merge_ranges, nodes_beside
from grid.mutable.share.offset_table import ShareTable, parse_chain
from grid.mutable.share.prefix import Prefix, checkstring_size
from grid.mutable.share.requests import ReadFields, ReadSlot
from grid.mutable.share.versions import ShareLocation, Sighting
from grid.ports import Buffer, Event, Range, ShareNumber
from grid.values import define, field, frozen

MESSAGE_BYTES = 16 * 2**20
"""Bytes of hashes requested per message, unless those of one share are more."""


@frozen(kw_only=True)
class RowWants:
    """Leaves first .. stop of every block tree, with all nodes that prove them.

    A tree without real leaves has one padding leaf, and needs none of this.
    """

    geometry: Geometry
    first: int
    stop: int

    @property
    def node_numbers(self) -> list[int]:
        """The wanted nodes of a block tree, ascending."""
        base = padded_leaf_count(self.geometry.leaf_count) - 1
        return sorted({0, *range(base + self.first, base + self.stop), *nodes_beside(base + 1, self.first, self.stop)})

    def ranges(self, table: ShareTable) -> list[Range]:
        """Their ranges in a share, ascending; close ones are merged."""
        start = table.block_tree[0]
        return merge_ranges([(start + HASH_SIZE * node, HASH_SIZE) for node in self.node_numbers])


@frozen(kw_only=True)
class ShareRows:
    """nodes: the wanted nodes of the share's block tree, proven. root: the tree's root.

    pieces: the other ranges requested of the copy at that location, unproven.
    """

    nodes: Mapping[int, bytes] = field(repr=False)
    root: bytes = field(repr=False)
    location: ShareLocation
    pieces: Mapping[Range, Buffer] = field(repr=False)


@define(kw_only=True, eq=False)
class _Copy:
    sighting: Sighting
    tried: bool = False


class RowPlan(PlanBase):
    """Fetches the wanted nodes from one copy of each share number, unless they came with the map."""

    def __init__(
        self,
        prefix: Prefix,
        sightings: Sequence[Sighting],
        wants: RowWants,
        loads: ServerLoads,
        besides: Mapping[ShareLocation, Sequence[Range]] | None = None,
    ) -> None:
        """besides: further ranges of some copies, to fetch with the same messages."""
        super().__init__()
        self._prefix = prefix
        self._besides = besides or {}
        self._wants = wants
        self._loads = loads
        self._own: dict[ShareTable, list[Range]] = {}
        self._node_numbers = wants.node_numbers
        self._copies: dict[ShareNumber, list[_Copy]] = {}
        for sighting in sightings:
            self._copies.setdefault(sighting.number, []).append(_Copy(sighting=sighting))
        self._asked: dict[ReadSlot, tuple[PendingRead[ServerLoad], list[Sighting]]] = {}
        self._rows: dict[ShareNumber, ShareRows] = {}
        self._looked = False

    def _is_done(self) -> bool:
        return not self._asked and not self._untried()

    def result(self) -> dict[ShareNumber, ShareRows]:
        """What is proven. Shares that have another version by now, by their server's word, are missing."""
        return self._rows

    def take_events(self) -> Sequence[Event]:
        """Nothing: the update that needs the rows reports its own events."""
        return ()

    def wake_at(self) -> float | None:
        """When to give up on the next unanswered request."""
        return min((watch.dispensable_until for watch, _ in self._asked.values()), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The requests to send now."""
        for request, (watch, _) in list(self._asked.items()):
            if now >= watch.dispensable_until:
                self._withdrawn.append(request)
                self.fail(request, timed_out(request), now)
        self._take_at_hand()
        requests = self._take_outbox()
        by_message: dict[tuple[object, object], list[Sighting]] = {}
        for sighting in self._untried():
            by_message.setdefault((sighting.server_id, tuple(self._ranges(sighting))), []).append(sighting)
        per_message = max(1, MESSAGE_BYTES // (HASH_SIZE * len(self._node_numbers)))
        for sightings in by_message.values():
            for start in range(0, len(sightings), per_message):
                requests.append(self._ask(sightings[start : start + per_message], now))
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take hashes of a server's shares."""
        if not isinstance(request, ReadSlot):
            return
        assert isinstance(answer, Mapping)
        watch, sightings = self._asked.pop(request)
        watch.answered(now)
        for sighting in sightings:
            try:
                self._take(sighting, request.ranges, answer.get(sighting.number, ()))
            except (FormatError, IntegrityError) as error:
                reason = str(error)
                advice = AdviseCorrupt(server_id=sighting.server_id, share_number=sighting.number, reason=reason)
                self._outbox.append(advice)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Note a failure; another copy may serve."""
        if isinstance(request, ReadSlot):
            watch, _ = self._asked.pop(request)
            watch.ended()

    def _take_at_hand(self) -> None:
        """Prove what came with the map. What cannot be proven is requested like the rest."""
        if self._looked:
            return
        self._looked = True
        incomplete = {number for _, number in self._besides}
        for number, copies in self._copies.items():
            for sighting in (copy.sighting for copy in copies if number not in incomplete):
                ranges = self._ranges(sighting)
                pieces = [piece for piece in map(sighting.at_hand, ranges) if piece is not None]
                if number not in self._rows and len(pieces) == len(ranges):
                    with suppress(FormatError, IntegrityError):
                        self._take(sighting, ranges, pieces)

    def _untried(self) -> list[Sighting]:
        """The next copy of each number that is neither proven nor requested."""
        asked = {sighting.number for _, sightings in self._asked.values() for sighting in sightings}
        next_copies = []
        for number, copies in self._copies.items():
            if number not in self._rows and number not in asked:
                next_copies += [copy.sighting for copy in copies if not copy.tried][:1]
        return next_copies

    def _ask(self, sightings: Sequence[Sighting], now: float) -> Request:
        for sighting in sightings:
            for copy in self._copies[sighting.number]:
                copy.tried = copy.tried or copy.sighting is sighting
        ranges = self._ranges(sightings[0])
        size = sum(length for _, length in ranges) * len(sightings)
        server_id = sightings[0].server_id
        numbers = frozenset(sighting.number for sighting in sightings)
        request = ReadFields(
            server_id=server_id, shares=numbers, ranges=ranges, size=size, share_numbers=tuple(sorted(numbers))
        )
        self._asked[request] = self._loads.ask(server_id, size, now, ReadFields), list(sightings)
        return request

    def _ranges(self, sighting: Sighting) -> list[Range]:
        table = sighting.table
        own = self._own.get(table)
        if own is None:
            own = [(0, checkstring_size(self._prefix.version)), table.chain, *self._wants.ranges(table)]
            self._own[table] = own
        return list(dict.fromkeys([*own, *self._besides.get(sighting.location, ())]))

    def _take(self, sighting: Sighting, ranges: Sequence[Range], pieces: Sequence[Buffer]) -> None:
        if len(pieces) != len(ranges):
            return
        if not hmac.compare_digest(bytes(pieces[0]), self._prefix.checkstring):
            return
        nodes: dict[int, bytes] = {}
        tree_start, tree_size = sighting.table.block_tree
        for (offset, _), piece in zip(ranges[2:], pieces[2:], strict=True):
            if not tree_start <= offset < tree_start + tree_size:
                continue
            first = (offset - tree_start) // HASH_SIZE
            data = bytes(piece)
            for index in range(len(data) // HASH_SIZE):
                nodes[first + index] = data[index * HASH_SIZE : (index + 1) * HASH_SIZE]
        missing = [node for node in self._node_numbers if node not in nodes]
        if missing:
            raise IntegrityError("the share's block hash tree is cut short")
        self._prove(sighting, nodes, parse_chain(pieces[1]))
        whole = {wanted: piece for wanted, piece in zip(ranges, pieces, strict=True) if len(piece) == wanted[1]}
        kept = {wanted: whole[wanted] for wanted in self._besides.get(sighting.location, ()) if wanted in whole}
        self._rows[sighting.number] = ShareRows(nodes=nodes, root=nodes[0], location=sighting.location, pieces=kept)

    def _prove(self, sighting: Sighting, nodes: dict[int, bytes], chain: Mapping[int, bytes]) -> None:
        wants = self._wants
        root = nodes[0]
        if wants.first < wants.stop:
            padded = padded_leaf_count(wants.geometry.leaf_count)
            leaves = [nodes[padded - 1 + leaf] for leaf in range(wants.first, wants.stop)]
            if climb(padded, wants.first, leaves, nodes)[0] != root:
                raise IntegrityError("the hashes of the share's blocks do not chain to their root")
        prove_leaf(self._prefix.root_hash, self._prefix.n, sighting.number, root, chain)
