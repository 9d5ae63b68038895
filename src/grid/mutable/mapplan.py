"""The plan that finds out which versions of a file there are, and where their shares lie. [spec mutable 13]

Synchronous and pure; drive.py runs it. Everybody who may hold shares is asked at once. A server that keeps silent is
waited for as long as a version that somebody was told is safe might hide there, and no longer than ANSWER_LIMIT_S.

Cost: round trips: one; another where keys or signatures lie beyond the first FIRST_READ octets. Network: FIRST_READ
octets of each share, which is all of a small file; or what is foreseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import define

from grid.crypto.rsa import PrivateKey, PublicKey
from grid.drive import Request
from grid.errors import FormatError, GridError, IntegrityError, PeerTimeoutError
from grid.limits import MAX_MUTABLE_SHARES
from grid.mutable.candidate import Candidate
from grid.mutable.foresight import FIRST_READ, Foresight
from grid.mutable.geometry import Encoding
from grid.mutable.keys import FileKeys
from grid.mutable.layout import parse_header
from grid.mutable.pace import Paces, Watch
from grid.mutable.prefix import Prefix
from grid.mutable.requests import AddLease, AdviseCorrupt, ReadSlot
from grid.mutable.treerows import merge_ranges
from grid.mutable.versions import BadShare, Sighting, VersionMap, front_of
from grid.ports import Buffer, Event, Range, ServerId, ShareNumber

ANSWER_LIMIT_S = 15.0
"""How long a server may take to say what it holds."""

GRACE_FLOOR_S = 0.5
GRACE_FACTOR = 4.0
"""A silent server is left behind after this, and this many times the slowest answer, where it cannot matter."""

FORESEEN_RATE = 64e3
"""Octets a second at which what is asked for early may come: as much longer is waited, in both cases."""


class MapMode(Enum):
    """READ asks those who should hold shares, and everybody where that does not settle it. The others ask everybody.

    WRITE and REPAIR seek the private key too; CHECK and REPAIR wait for everybody.
    """

    READ = "read"
    WRITE = "write"
    CHECK = "check"
    REPAIR = "repair"


@define(kw_only=True, eq=False)
class _Question:
    server_id: ServerId
    watch: Watch
    candidates: Sequence[Candidate] = ()

    @property
    def foreseen_s(self) -> float:
        """Seconds that the answer may take longer because more than the fronts is asked for."""
        return max(0, self.watch.size - FIRST_READ) / FORESEEN_RATE

    @property
    def limit(self) -> float:
        """When it is given up."""
        return self.watch.sent_at + ANSWER_LIMIT_S + self.foreseen_s


class MapPlan:
    """Makes a VersionMap of the servers given, which are in the file's order."""

    def __init__(
        self,
        servers: Sequence[ServerId],
        keys: FileKeys,
        encoding: Encoding,
        mode: MapMode,
        paces: Paces,
        *,
        add_lease: bool = False,
        private_key: PrivateKey | None = None,
        foresight: Foresight | None = None,
    ) -> None:
        """add_lease: every server asked is told to add or renew a lease. private_key: the file's, if known.

        foresight: what to ask for in the first question; the sightings will have it as their pieces.
        """
        self._servers = list(servers)
        self._keys = keys
        self._encoding = encoding
        self._mode = mode
        self._paces = paces
        self._add_lease = add_lease
        self._foresight = foresight or Foresight()
        # Who may write will: a map made for reading is then good for that as well.
        everybody = mode is not MapMode.READ or keys.write_key is not None
        fan_out = len(servers) if everybody else encoding.n + encoding.k
        self._to_ask = self._servers[:fan_out]
        self._rest = self._servers[fan_out:]
        self._asked: dict[ReadSlot, _Question] = {}
        self._leases: set[AddLease] = set()
        self._answered: set[ServerId] = set()
        self._failed: set[ServerId] = set()
        self._sightings: list[Sighting] = []
        self._bad: list[BadShare] = []
        self._proven: dict[Prefix, bool] = {}
        self._public_key: PublicKey | None = None
        self._private_key = private_key
        self._key_tried: set[tuple[ServerId, ShareNumber]] = set()
        self._slowest_s = 0.0
        self._last_answer_at = 0.0
        self._done = False
        self._reports: list[Request] = []
        self._withdrawn: list[Request] = []
        self._events: list[Event] = []

    @property
    def finished(self) -> bool:
        """The map is as good as it gets."""
        return self._done

    def result(self) -> VersionMap:
        """What was found, however little."""
        return VersionMap(
            servers=self._servers,
            answered=frozenset(self._answered),
            failed=frozenset(self._failed),
            sightings=self._sightings,
            bad=self._bad,
            public_key=self._public_key,
            private_key=self._private_key,
        )

    def take_events(self) -> Sequence[Event]:
        """Rejected shares since the last call."""
        taken, self._events = self._events, []
        return taken

    def withdrawn(self) -> Sequence[Request]:
        """Questions to servers left behind."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def wake_at(self) -> float | None:
        """When to look again at servers that keep silent."""
        if not self._asked:
            return None
        limit = min(question.limit for question in self._asked.values())
        return min(limit, self._grace_ends()) if self._may_leave() else limit

    def advance(self, now: float) -> Sequence[Request]:
        """Questions to ask now."""
        requests: list[Request] = []
        if not self._done:
            self._leave_silent_behind(now)
            requests += self._ask(now)
            requests += self._seek_key(now)
            if not self._asked:
                if self._rest and not self._settled():
                    self._to_ask, self._rest = self._rest, []
                    requests += self._ask(now)
                else:
                    self._done = True
        requests += self._reports
        self._reports = []
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """The fronts of a server's shares, or more of some of them."""
        if isinstance(request, AddLease):
            self._leases.discard(request)
        if not isinstance(request, ReadSlot):
            return
        assert isinstance(answer, Mapping)
        question = self._asked.pop(request)
        question.watch.end(now)
        self._slowest_s = max(self._slowest_s, now - question.watch.sent_at)
        self._last_answer_at = now
        if question.candidates:
            for candidate in question.candidates:
                pieces = answer.get(candidate.sighting.number, ())
                for wanted, piece in zip(request.ranges, pieces, strict=False):
                    candidate.pieces[wanted] = piece
                self._judge(candidate, now)
            return
        self._answered.add(request.server_id)
        for number in sorted(answer):
            pieces = answer[number]
            if pieces and pieces[0]:
                self._consider(request, number, pieces, now)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """A server that fails is noted."""
        if isinstance(request, AddLease):
            self._leases.discard(request)
        if not isinstance(request, ReadSlot):
            return
        question = self._asked.pop(request)
        question.watch.end(None)
        self._last_answer_at = now
        self._failed.add(request.server_id)

    def _ask(self, now: float) -> list[Request]:
        requests: list[Request] = []
        for server_id in self._to_ask:
            ranges = self._foresight.ranges(server_id)
            size = sum(length for _, length in ranges)
            read = ReadSlot(server_id=server_id, shares=frozenset(), ranges=ranges, size=size)
            self._asked[read] = _Question(server_id=server_id, watch=self._paces.ask(server_id, size, now))
            requests.append(read)
            if self._add_lease:
                lease = AddLease(server_id=server_id, parting=True)
                self._leases.add(lease)
                requests.append(lease)
        if self._to_ask:
            self._last_answer_at = now
        self._to_ask = []
        return requests

    def _consider(self, read: ReadSlot, number: ShareNumber, pieces: Sequence[Buffer], now: float) -> None:
        """Take note of one share by its first octets."""
        server_id, head = read.server_id, pieces[0]
        try:
            if number >= MAX_MUTABLE_SHARES:
                raise FormatError(f"no mutable share has number {number}")
            prefix, table = parse_header(head)
            if number >= prefix.n:
                raise FormatError(f"share {number} of {prefix.n} cannot be")
        except FormatError as error:
            self._reject(server_id, number, head, str(error), now)
            return
        besides = dict(zip(read.ranges[1:], pieces[1:], strict=False))
        sighting = Sighting(server_id=server_id, number=number, prefix=prefix, table=table, head=head, pieces=besides)
        candidate = Candidate(sighting=sighting)
        missing = [wanted for wanted in self._needed(candidate) if candidate.get(wanted) is None]
        if missing and len(head) == read.ranges[0][1]:
            self._fetch([candidate], missing, now)
        else:
            self._judge(candidate, now)

    def _needed(self, candidate: Candidate) -> list[Range]:
        needed: list[Range] = []
        if self._public_key is None:
            needed.append(candidate.sighting.table.public_key)
        if candidate.sighting.prefix not in self._proven:
            needed.append(candidate.sighting.table.signature)
        return needed

    def _fetch(self, candidates: Sequence[Candidate], ranges: Sequence[Range], now: float) -> None:
        server_id = candidates[0].sighting.server_id
        merged = merge_ranges(ranges)
        size = sum(length for _, length in merged)
        shares = frozenset(candidate.sighting.number for candidate in candidates)
        read = ReadSlot(server_id=server_id, shares=shares, ranges=merged, size=size)
        watch = self._paces.ask(server_id, size, now)
        self._asked[read] = _Question(server_id=server_id, watch=watch, candidates=candidates)
        self._reports.append(read)

    def _judge(self, candidate: Candidate, now: float) -> None:
        """Prove the share's prefix, or reject the share."""
        sighting = candidate.sighting
        table, prefix = sighting.table, sighting.prefix
        try:
            if self._public_key is None:
                self._public_key = self._keys.accept_public_key(candidate.require(table.public_key))
            if prefix not in self._proven:
                self._public_key.verify(candidate.require(table.signature), prefix.pack())
                self._proven[prefix] = True
        except (FormatError, IntegrityError) as error:
            self._reject(sighting.server_id, sighting.number, sighting.head, str(error), now)
            return
        if all(seen.place != sighting.place for seen in self._sightings):
            self._sightings.append(sighting)
        self._try_key(candidate)

    def _reject(self, server_id: ServerId, number: ShareNumber, head: Buffer, reason: str, now: float) -> None:
        self._bad.append(BadShare(server_id=server_id, number=number, front=front_of(head), reason=reason))
        advice = AdviseCorrupt(server_id=server_id, share_number=number, share_numbers=(number,), reason=reason)
        self._reports.append(advice)
        self._events.append(Event(at=now, what="reject", detail=reason, server_id=server_id, share_numbers=(number,)))

    @property
    def _wants_key(self) -> bool:
        return self._private_key is None and self._keys.write_key is not None

    def _try_key(self, candidate: Candidate) -> None:
        """Take the private key from a share, if it is at hand; one that has a wrong one serves readers still."""
        encrypted = candidate.get(candidate.sighting.table.private_key) if self._wants_key else None
        if encrypted is None:
            return
        self._key_tried.add(candidate.sighting.place)
        try:
            self._private_key = self._keys.accept_private_key(bytes(encrypted))
        except (FormatError, IntegrityError):
            return

    def _seek_key(self, now: float) -> list[Request]:
        """Ask for the private key by itself, of one share after the other, once everybody has been asked."""
        if not self._wants_key or self._asked or self._mode not in {MapMode.WRITE, MapMode.REPAIR}:
            return []
        for sighting in self._sightings:
            if sighting.place not in self._key_tried:
                self._key_tried.add(sighting.place)
                self._fetch([Candidate(sighting=sighting)], [sighting.table.private_key], now)
                break
        reads, self._reports = self._reports, []
        return reads

    def _settled(self) -> bool:
        """Whether a version can be read, and no newer one shows that others may hold more of it."""
        found = self.result()
        return found.best is not None and not found.newer_unrecoverable

    def _may_leave(self) -> bool:
        """Whether the silent and the failed are too few to hide a version that was successfully written.

        Such a version is on `happy` servers at least: one of those who have answered has a share of it.
        """
        if self._mode in {MapMode.CHECK, MapMode.REPAIR}:
            return False
        silent = {question.server_id for question in self._asked.values()}
        known = self._settled() and len(self._answered) >= min(2 * self._encoding.k, len(self._servers))
        return known and len(silent) + len(self._failed) < self._encoding.happy

    def _grace_ends(self) -> float:
        # All are asked side by side.
        foreseen_s = max((question.foreseen_s for question in self._asked.values()), default=0.0)
        return self._last_answer_at + max(GRACE_FLOOR_S, GRACE_FACTOR * self._slowest_s) + foreseen_s

    def _leave_silent_behind(self, now: float) -> None:
        leave = bool(self._asked) and self._may_leave() and now >= self._grace_ends()
        for request, question in list(self._asked.items()):
            if leave or now >= question.limit:
                self._withdrawn.append(request)
                question.watch.pace.slow = True
                self.fail(request, PeerTimeoutError(f"server {request.server_id} did not answer in time"), now)
