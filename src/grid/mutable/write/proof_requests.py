"""Asks servers to prove the shares that stand in the way of a write. [spec mutable 6, 8]

Pure; part of the write plan. A front that a server shows is only a claim, because anyone can make one up. What counts is the
signature of the file's key over the whole prefix and, for a share's number, the hash chain from its blocks to the signed
root. The write plan decides what follows from a proof.

Cost: round trips: one for each server that shows something in the way. One more if the keys or the root of the
block hash tree lie beyond the first FRONT_BYTES of the share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, field

from grid.crypto.rsa import PublicKey
from grid.engine.requests import Request
from grid.errors import FormatError, IntegrityError
from grid.limits import MAX_MUTABLE_SHARES
from grid.mutable.share.audit import NumberProof, proof_ranges, prove_number
from grid.mutable.share.hash_rows import merge_ranges
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.layout import parse_header
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.requests import ReadSlot
from grid.mutable.share.versions import CandidateShare, Sighting, front_of
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import define, frozen

FRONT_BYTES = 4096
"""First bytes requested of each share: its keys and chain, and in a small SDMF share everything that proves its number."""

PROOF_FLOOR_S = 0.5
PROOF_FACTOR = 4.0
"""A server has at least this long, and this many times the slowest answer, to prove what it has shown."""

NEEDED_PROOF_FLOOR_S = 15.0
"""The same for servers without which most servers may have a rival, as long as a map waits for servers that it needs."""

MOST_LAYOUTS = 4
"""Different layouts of one server's shares that are examined: an honest server has one or two."""

Order = tuple[int, bytes]
"""(sequence number, root hash) of a version."""


@frozen(kw_only=True)
class ServerProof:
    """What one server has proven. versions: for each signed version, the numbers that count as held there.

    fronts: the first bytes of every share with a proven signature. unproven: numbers asked about that have no valid
    signature, with reasons.
    """

    server_id: ServerId
    versions: Mapping[Order, frozenset[ShareNumber]]
    fronts: Mapping[ShareNumber, tuple[Order, bytes]]
    unproven: Mapping[ShareNumber, str]


@define(kw_only=True, eq=False)
class _Case:
    """One server's claims while they are examined."""

    server_id: ServerId
    numbers: frozenset[ShareNumber]
    sent_at: float = 0.0
    open: set[ReadSlot] = field(factory=set)
    candidates: dict[ShareNumber, CandidateShare] = field(factory=dict)
    unproven: dict[ShareNumber, str] = field(factory=dict)


class ProofRequests:
    """Asks servers to prove what they have shown, and judges the answers."""

    def __init__(self, keys: FileKeys) -> None:
        self._keys = keys
        self._public_key: PublicKey | None = None
        self._signed: dict[Prefix, bool] = {}
        self._wanted: dict[ServerId, set[ShareNumber]] = {}
        self._cases: dict[ServerId, _Case] = {}
        self._of_request: dict[ReadSlot, tuple[_Case, bool]] = {}
        self._more: list[ReadSlot] = []

    @property
    def pending(self) -> bool:
        """Whether any proof is still outstanding."""
        return bool(self._wanted or self._cases)

    @property
    def servers(self) -> set[ServerId]:
        """The servers that have proofs outstanding."""
        return {*self._wanted, *self._cases}

    def demand(self, server_id: ServerId, numbers: Iterable[ShareNumber]) -> None:
        """Ask that server to prove these shares."""
        self._wanted.setdefault(server_id, set()).update(numbers)

    def requests(self, now: float) -> list[Request]:
        """The requests to send now."""
        requests: list[Request] = []
        for server_id in [server_id for server_id in self._wanted if server_id not in self._cases]:
            case = _Case(server_id=server_id, numbers=frozenset(self._wanted.pop(server_id)), sent_at=now)
            self._cases[server_id] = case
            requests.append(self._read(case, case.numbers, [(0, FRONT_BYTES)], is_front=True))
        for request in self._more:
            self._of_request[request][0].sent_at = now
        more, self._more = self._more, []
        return [*requests, *more]

    def limit(self, server_id: ServerId, slowest_s: float, *, is_needed: bool) -> float | None:
        """When that server has had enough time; None if it was asked nothing."""
        case, floor_s = self._cases.get(server_id), NEEDED_PROOF_FLOOR_S if is_needed else PROOF_FLOOR_S
        return None if case is None else case.sent_at + max(floor_s, PROOF_FACTOR * slowest_s)

    def drop(self, server_id: ServerId) -> list[Request]:
        """Drop that server. Returns its requests, which are no longer needed."""
        self._wanted.pop(server_id, None)
        case = self._cases.pop(server_id, None)
        if case is None:
            return []
        for request in case.open:
            self._of_request.pop(request, None)
        self._more = [request for request in self._more if request not in case.open]
        return list(case.open)

    def answer(self, request: ReadSlot, answer: Mapping[ShareNumber, Sequence[Buffer]]) -> ServerProof | None:
        """Take one answer. Returns the server's proof once everything requested from it has come."""
        found = self._of_request.pop(request, None)
        if found is None:
            return None
        case, is_front = found
        case.open.discard(request)
        if is_front:
            self._take_fronts(case, answer)
        else:
            for number in request.shares:
                for wanted, piece in zip(request.ranges, answer.get(number, ()), strict=False):
                    case.candidates[number].pieces[wanted] = piece
        if case.open:
            return None
        del self._cases[case.server_id]
        return self._judge(case)

    def _read(
        self, case: _Case, numbers: Iterable[ShareNumber], ranges: Sequence[Range], *, is_front: bool
    ) -> ReadSlot:
        shares = frozenset(numbers)
        size = sum(length for _, length in ranges) * len(shares)
        request = ReadSlot(server_id=case.server_id, shares=shares, ranges=ranges, size=size)
        case.open.add(request)
        self._of_request[request] = case, is_front
        return request

    def _take_fronts(self, case: _Case, answer: Mapping[ShareNumber, Sequence[Buffer]]) -> None:
        """Parse every front, and request what its proof still lacks."""
        missing: dict[tuple[Range, ...], list[ShareNumber]] = {}
        for number in sorted(case.numbers):
            pieces = answer.get(number, ())
            try:
                candidate = _candidate(case.server_id, number, pieces[0] if pieces else b"")
            except FormatError as error:
                case.unproven[number] = str(error)
                continue
            case.candidates[number] = candidate
            ranges = [wanted for wanted in self._needed(candidate) if candidate.get(wanted) is None]
            if ranges and len(candidate.sighting.head) == FRONT_BYTES:
                missing.setdefault(tuple(merge_ranges(ranges)), []).append(number)
        for merged, numbers in list(missing.items())[:MOST_LAYOUTS]:
            self._more.append(self._read(case, numbers, merged, is_front=False))

    def _needed(self, candidate: CandidateShare) -> list[Range]:
        table = candidate.sighting.table
        return [table.public_key, table.signature, *proof_ranges(table)]

    def _judge(self, case: _Case) -> ServerProof:
        versions: dict[Order, set[ShareNumber]] = {}
        signed: dict[Order, ShareNumber] = {}
        fronts: dict[ShareNumber, tuple[Order, bytes]] = {}
        for number, candidate in case.candidates.items():
            prefix = candidate.sighting.prefix
            try:
                self._require_signature(candidate)
            except (FormatError, IntegrityError) as error:
                case.unproven[number] = str(error)
                continue
            fronts[number] = prefix.order, front_of(candidate.sighting.head)
            signed.setdefault(prefix.order, number)
            share = evolve(candidate.sighting, pieces=candidate.pieces)
            if prove_number(share) is NumberProof.PROVEN:
                versions.setdefault(prefix.order, set()).add(number)
        for order, number in signed.items():
            # The signature shows that the version exists. Without a chain it proves no number, so one number counts.
            versions.setdefault(order, {number})
        return ServerProof(
            server_id=case.server_id,
            versions={order: frozenset(numbers) for order, numbers in versions.items()},
            fronts=fronts,
            unproven=case.unproven,
        )

    def _require_signature(self, candidate: CandidateShare) -> None:
        """Raise FormatError or IntegrityError unless the file's key has signed the share's prefix."""
        table, prefix = candidate.sighting.table, candidate.sighting.prefix
        if prefix in self._signed:
            return
        if self._public_key is None:
            self._public_key = self._keys.accept_public_key(candidate.require(table.public_key))
        self._public_key.verify(candidate.require(table.signature), prefix.pack())
        self._signed[prefix] = True


def _candidate(server_id: ServerId, number: ShareNumber, head: Buffer) -> CandidateShare:
    """The share that its front describes; FormatError if it is impossible."""
    prefix, table = parse_header(head)
    if number >= min(prefix.n, MAX_MUTABLE_SHARES):
        raise FormatError(f"share number {number} is out of range: the file has {prefix.n} shares")
    return CandidateShare(
        sighting=Sighting(server_id=server_id, number=number, prefix=prefix, table=table, head=bytes(head))
    )
