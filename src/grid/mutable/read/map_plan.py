"""The plan that finds which versions of a file exist, and where their shares are. [spec mutable 13]

Synchronous and pure; drive.py runs it. It asks all servers that may hold shares at once, but few if the file is remembered
(few_servers.py), and waits for a silent server as long as a newer version might hide there (map_wait.py). A signature decides
what version a share is of. Where its share number matters, the server's word counts only if the share's hash chain proves it.

Cost: round trips: one. One more if keys or signatures are beyond the first FIRST_READ bytes, or if one server has several shares
of a large file and their numbers matter. Network: FIRST_READ bytes of each share, which is all of a small
file, or what the layout cache suggests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from attrs import evolve, field

from grid.crypto.rsa import PrivateKey, PublicKey
from grid.engine.lateness import ServerLoads
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import AddLease, Request
from grid.errors import FormatError, GridError, IntegrityError
from grid.limits import MAX_MUTABLE_SHARES
from grid.mutable.read.few_servers import Few
from grid.mutable.read.layout_cache import Speculation
from grid.mutable.read.map_wait import Stake, Waiting
from grid.mutable.share.audit import NumberProof, proof_ranges, prove_number
from grid.mutable.share.geometry import Encoding
from grid.mutable.share.hash_rows import merge_ranges
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.layout import parse_header
from grid.mutable.share.offset_table import ShareTable
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.requests import ReadFields, ReadFronts, ReadSlot
from grid.mutable.share.versions import BadShare, CandidateShare, ShareLocation, Sighting, VersionMap, front_of
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import define, frozen


class MapMode(Enum):
    """READ asks the servers that should hold shares, and all servers if that is not enough. The other modes ask all servers.

    WRITE and REPAIR look for the private key too; CHECK and REPAIR wait for all servers.
    """

    READ = "read"
    WRITE = "write"
    CHECK = "check"
    REPAIR = "repair"


@frozen(kw_only=True)
class _Wants:
    """What a map is made for; see MapPlan."""

    mode: MapMode
    add_lease: bool
    floor: int
    speculation: Speculation
    few: Few | None


@define(kw_only=True, eq=False)
class _Heard:
    """Servers that answered, servers that failed, and those of the latter that were silent; shares that disks cannot read.

    found: the map of all that was heard, until more is heard.
    """

    answered: set[ServerId] = field(factory=set)
    failed: set[ServerId] = field(factory=set)
    silent: set[ServerId] = field(factory=set)
    unread: set[ShareLocation] = field(factory=set)
    found: VersionMap | None = None


@define(kw_only=True, eq=False)
class _Proofs:
    """The file's keys, and the prefixes whose signature is valid, as far as known.

    key_tried: shares that were asked for the private key. numbers_sought: shares that were asked to prove their number.
    """

    private_key: PrivateKey | None
    public_key: PublicKey | None = None
    prefixes: set[Prefix] = field(factory=set)
    key_tried: set[ShareLocation] = field(factory=set)
    numbers_sought: set[ShareLocation] = field(factory=set)


class MapPlan(PlanBase):
    """Makes a VersionMap of the given servers, which are in the file's order."""

    def __init__(
        self,
        servers: Sequence[ServerId],
        keys: FileKeys,
        encoding: Encoding,
        mode: MapMode,
        loads: ServerLoads,
        *,
        add_lease: bool = False,
        private_key: PrivateKey | None = None,
        speculation: Speculation | None = None,
        floor: int = 0,
        few: Few | None = None,
    ) -> None:
        """add_lease: every server that is asked adds or renews a lease. private_key: the file's, if known.

        speculation: what the first request fetches; the sightings keep it as their pieces. floor: the sequence
        number of a known version: before an older one counts as the newest, all servers are asked and waited for.
        few: servers that are enough for a read if all of them answer in time and show what is remembered.
        """
        super().__init__()
        self._servers = list(servers)
        self._keys = keys
        self._encoding = encoding
        speculation = speculation or Speculation()
        self._wants = _Wants(mode=mode, add_lease=add_lease, floor=floor, speculation=speculation, few=few)
        # A client that may write probably will; a map made for reading then serves for that as well.
        everybody = mode is not MapMode.READ or keys.write_key is not None
        fan_out = len(servers) if everybody else encoding.n + encoding.k
        first = self._servers[:fan_out] if few is None else few.servers
        self._to_ask = [server_id for server_id in self._servers if server_id in first]
        self._rest = [server_id for server_id in self._servers if server_id not in first]
        self._waiting = Waiting(loads=loads)
        self._heard = _Heard()
        self._sightings: list[Sighting] = []
        self._bad: list[BadShare] = []
        public_key, prefixes = few.proven(keys.fingerprint) if few is not None else (None, set())
        self._proofs = _Proofs(private_key=private_key, public_key=public_key, prefixes=prefixes)
        self._done = False

    def _is_done(self) -> bool:
        return self._done

    @property
    def is_settled(self) -> bool:
        """Whether a reader can stop waiting: the silent servers cannot hide a version, and none was asked for blocks."""
        return (
            self._wants.mode is MapMode.READ
            and bool(self._waiting)
            and not self._waiting.for_early_bytes
            and self._stake() is Stake.NOTHING
        )

    def result(self) -> VersionMap:
        """What was found, possibly nothing."""
        if self._heard.found is None:
            self._heard.found = VersionMap(
                servers=self._servers,
                answered=frozenset(self._heard.answered),
                failed=frozenset(self._heard.failed),
                silent=frozenset(self._heard.silent),
                sightings=tuple(self._sightings),
                bad=tuple(self._bad),
                unread=frozenset(self._heard.unread),
                public_key=self._proofs.public_key,
                private_key=self._proofs.private_key,
            )
        return self._heard.found

    def wake_at(self) -> float | None:
        """When to look at silent servers again."""
        return self._waiting.wake_at(self._stake()) if self._waiting else None

    def advance(self, now: float) -> Sequence[Request]:
        """The requests to send now."""
        requests: list[Request] = []
        if not self._done:
            self._leave_silent_behind(now)
            self._doubt_few(now)
            requests += self._ask(now)
            if not self._waiting:
                self._seek_numbers(now)
                self._seek_key(now)
            if not self._waiting:
                if self._rest and not self._settled():
                    self._to_ask, self._rest = self._rest, []
                    requests += self._ask(now)
                else:
                    self._done = True
        requests += self._take_outbox()
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take the fronts of a server's shares, or further ranges of some of them."""
        if not isinstance(request, ReadSlot):
            return
        assert isinstance(answer, Mapping)
        self._heard.found = None
        question = self._waiting.answered(request, now)
        for candidate in question.candidates:
            pieces = answer.get(candidate.sighting.number, ())
            for wanted, piece in zip(request.ranges, pieces, strict=False):
                candidate.pieces[wanted] = piece
            self._judge(candidate, now)
        if isinstance(request, ReadFronts):
            self._heard.answered.add(request.server_id)
            for number in sorted(answer):
                pieces = answer[number]
                if not pieces:  # It may be of a newer version, so the server has not answered for all that it holds.
                    self._heard.unread.add((request.server_id, number))
                    self._heard.failed.add(request.server_id)
                elif pieces[0]:
                    self._consider(request, number, pieces, now)
        proof_came = {candidate.sighting.location for candidate in question.candidates} & self._proofs.numbers_sought
        self._prove_numbers(request.server_id, proof_came, now)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Note that a server failed."""
        if isinstance(request, ReadSlot):
            self._heard.found = None
            self._waiting.failed(request, now)
            self._heard.failed.add(request.server_id)

    def _ask(self, now: float) -> list[Request]:
        requests: list[Request] = []
        for server_id in self._to_ask:
            ranges = self._wants.speculation.ranges(server_id, early=not self._waiting.is_doubtful(server_id))
            size = sum(length for _, length in ranges)
            read = ReadFronts(server_id=server_id, shares=frozenset(), ranges=ranges, size=size)
            self._waiting.ask(read, (), now)
            requests.append(read)
            if self._wants.add_lease:
                requests.append(AddLease(server_id=server_id, parting=True))
        self._to_ask = []
        return requests

    def _consider(self, read: ReadSlot, number: ShareNumber, pieces: Sequence[Buffer], now: float) -> None:
        """Take in one share by its first bytes."""
        server_id, head = read.server_id, pieces[0]
        try:
            if number >= MAX_MUTABLE_SHARES:
                raise FormatError(f"no mutable share has number {number}")
            prefix, table = parse_header(head)
            if number >= prefix.n:
                raise FormatError(f"share number {number} is out of range: the file has {prefix.n} shares")
        except FormatError as error:
            self._discard(server_id, number, head, str(error), now)
            return
        besides = dict(zip(read.ranges[1:], pieces[1:], strict=False))
        sighting = Sighting(server_id=server_id, number=number, prefix=prefix, table=table, head=head, pieces=besides)
        candidate = CandidateShare(sighting=sighting)
        missing = [wanted for wanted in self._needed(candidate) if candidate.get(wanted) is None]
        if missing and len(head) == read.ranges[0][1]:
            self._fetch([candidate], missing, now)
        else:
            self._judge(candidate, now)

    def _needed(self, candidate: CandidateShare) -> list[Range]:
        needed = [candidate.sighting.table.public_key] if self._proofs.public_key is None else []
        if candidate.sighting.prefix not in self._proofs.prefixes:
            needed.append(candidate.sighting.table.signature)
        return needed

    def _fetch(self, candidates: Sequence[CandidateShare], ranges: Sequence[Range], now: float) -> None:
        server_id = candidates[0].sighting.server_id
        merged = merge_ranges(ranges)
        size = sum(length for _, length in merged) * len(candidates)
        shares = frozenset(candidate.sighting.number for candidate in candidates)
        read = ReadFields(server_id=server_id, shares=shares, ranges=merged, size=size)
        self._waiting.ask(read, candidates, now)
        self._outbox.append(read)

    def _judge(self, candidate: CandidateShare, now: float) -> None:
        """Prove the share's prefix, or reject the share."""
        sighting = candidate.sighting
        table, prefix = sighting.table, sighting.prefix
        try:
            if self._proofs.public_key is None:
                self._proofs.public_key = self._keys.accept_public_key(candidate.require(table.public_key))
            if prefix not in self._proofs.prefixes:
                self._proofs.public_key.verify(candidate.require(table.signature), prefix.pack())
                self._proofs.prefixes.add(prefix)
        except (FormatError, IntegrityError) as error:
            self._discard(sighting.server_id, sighting.number, sighting.head, str(error), now)
            return
        if candidate.pieces:
            sighting = evolve(sighting, pieces={**sighting.pieces, **candidate.pieces})
        self._sightings = [seen for seen in self._sightings if seen.location != sighting.location]
        self._sightings.append(sighting)
        self._try_key(candidate)

    def _prove_numbers(self, server_id: ServerId, proof_came: Collection[ShareLocation], now: float) -> None:
        """If a server shows several shares of one version, check that their numbers are right.

        proof_came: those whose proof was requested and has come as far as it ever will.
        """
        shown = Counter(share.prefix for share in self._sightings if share.server_id == server_id)
        for index, share in enumerate(self._sightings):
            if share.server_id != server_id or share.number_proven or shown[share.prefix] < 2:
                continue
            proof = prove_number(share)
            if proof is NumberProof.PROVEN:
                self._sightings[index] = evolve(share, number_proven=True)
            elif proof is NumberProof.FALSE or share.location in proof_came:
                self._discard(server_id, share.number, share.head, "it is not the share of that number", now)
        bad = {share.location for share in self._bad}
        self._sightings = [share for share in self._sightings if share.location not in bad]

    def _seek_numbers(self, now: float) -> None:
        """Request proofs of share numbers where they may change which versions can be read, or their health."""
        if self._wants.mode in {MapMode.READ, MapMode.WRITE} and self._settled():
            return
        shown = Counter((share.server_id, share.prefix) for share in self._sightings)
        wanted: dict[tuple[ServerId, ShareTable], list[CandidateShare]] = {}
        for share in self._sightings:
            several = shown[share.server_id, share.prefix] > 1
            if (
                several
                and share.prefix.size
                and not share.number_proven
                and share.location not in self._proofs.numbers_sought
            ):
                self._proofs.numbers_sought.add(share.location)
                wanted.setdefault((share.server_id, share.table), []).append(CandidateShare(sighting=share))
        for (_, table), candidates in wanted.items():
            self._fetch(candidates, proof_ranges(table), now)

    def _discard(self, server_id: ServerId, number: ShareNumber, head: Buffer, reason: str, now: float) -> None:
        """Keep a false share out of the map, and report it."""
        self._bad.append(BadShare(server_id=server_id, number=number, front=front_of(head), reason=reason))
        self._reject(server_id, number, reason, now)

    @property
    def _wants_key(self) -> bool:
        return self._proofs.private_key is None and self._keys.write_key is not None

    def _try_key(self, candidate: CandidateShare) -> None:
        """Take the private key from a share, if it is at hand. A share with a wrong one still serves readers."""
        encrypted = candidate.get(candidate.sighting.table.private_key) if self._wants_key else None
        if encrypted is None:
            return
        self._proofs.key_tried.add(candidate.sighting.location)
        try:
            self._proofs.private_key = self._keys.accept_private_key(bytes(encrypted))
        except (FormatError, IntegrityError):
            return

    def _seek_key(self, now: float) -> None:
        """Once all servers were asked, request the private key alone, from one share after the other."""
        if not self._wants_key or self._waiting or self._wants.mode not in {MapMode.WRITE, MapMode.REPAIR}:
            return
        for sighting in self._sightings:
            if sighting.location not in self._proofs.key_tried:
                self._proofs.key_tried.add(sighting.location)
                self._fetch([CandidateShare(sighting=sighting)], [sighting.table.private_key], now)
                break

    def _settled(self) -> bool:
        """Whether a version can be read, and no newer one shows that other servers may hold more of it."""
        found = self.result()
        best = found.best
        return best is not None and best.seqnum >= self._wants.floor and not found.newer_unrecoverable

    def _stake(self) -> Stake:
        """What the silent servers may still change.

        A readable version has k shares, and each server its even part of the n. If fewer than k shares
        can be on the servers that have not answered, one of those that have answered holds a share of it.
        """
        if self._wants.few is not None and self._rest:
            return Stake.FEW
        found = self.result()
        best = found.best
        if best is None or best.seqnum < self._wants.floor:
            return Stake.EVERYTHING
        if self._lacks_majority(found):
            return Stake.MAJORITY
        if self._wants.mode in {MapMode.CHECK, MapMode.REPAIR}:
            return Stake.HEALTH
        asked = len(self._servers) - len(self._rest)
        missing = len(self._waiting.server_ids | self._heard.failed)
        enough = missing * -(-best.n // asked) < best.k
        return Stake.NOTHING if enough and not found.newer_unrecoverable else Stake.NEWNESS

    def _lacks_majority(self, found: VersionMap) -> bool:
        """Whether a change that this map is made for could be stored without most servers: these may have a rival's by then."""
        count = len(self._servers)
        if self._wants.mode is MapMode.READ or self._keys.write_key is None or 2 * self._encoding.happy > count:
            return False
        return 2 * len(self._heard.answered) <= count and not found.has_majority({p.order for p in found.versions()})

    def _doubt_few(self, now: float) -> None:
        """Ask all other servers too if the few may not be enough: one has failed, lets wait, or has changed."""
        few, heard = self._wants.few, self._heard
        if few is None or self._to_ask:
            return
        is_unchanged = few.is_unchanged(self._sightings, heard.answered - self._waiting.server_ids)
        if not is_unchanged or heard.failed or self._bad or now >= self._waiting.tardy_at:
            self._to_ask, self._rest = self._rest, []

    def _leave_silent_behind(self, now: float) -> None:
        for request in self._waiting.overdue(self._stake(), now) if self._waiting else ():
            self._withdrawn.append(request)
            self._heard.silent.add(request.server_id)
            self.fail(request, timed_out(request), now)
