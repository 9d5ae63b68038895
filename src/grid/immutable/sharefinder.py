"""Finding the shares of one file and proving what they claim to be, ready for reading blocks.

Part of the get plan, and like it synchronous: it says which servers to ask next, and turns answers into
shares whose layout is known and whose block root is proven. The first question to a server also fetches a
guessed head and tail of every share it holds, so that a share is usually ready after one round trip.
[spec immutable 12, 14; placement 7]

Cost: one message per server asked, one more only where the guess was wrong; the first question goes to as
many servers as shares are needed and one, at most MAX_OUTSTANDING at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from attrs import define, field

from grid import limits
from grid.errors import (
    DamagedFileError,
    FormatError,
    GridError,
    IntegrityError,
    NoServersError,
    NotEnoughSharesError,
    PeerError,
    ShareError,
    UnknownVersionError,
)
from grid.immutable.layout import MAX_HEADER_SIZE, Guess, ShareLayout, parse_header, parse_ueb_length
from grid.immutable.peer import Peer, Watch
from grid.immutable.requests import AdviseCorrupt, FindShares, ReadShares
from grid.immutable.verify import CHUNK_LEAVES, FileVerifier, RowRanges
from grid.ports import Buffer, Range, ServerId, ShareNumber

MAX_OUTSTANDING = 10
"""Servers asked at once for their shares, as 1.20 does."""

WHOLE_SHARE_SIZE = 65536
"""Shares up to this size are fetched whole by the first question."""

TAIL_SLACK = 2048
"""Octets asked for beyond the guessed end: an older writer's extension block may be longer."""


class ShareState(Enum):
    """How far a share has come: FOUND -> READY -> (at any time) DROPPED."""

    FOUND = "found"
    READY = "ready"
    DROPPED = "dropped"


@define(kw_only=True, eq=False)
class HeldShare:
    """One share on one server. at_hand: (offset, octets) pieces fetched already, unproven."""

    peer: Peer
    number: ShareNumber
    state: ShareState = ShareState.FOUND
    layout: ShareLayout | None = None
    at_hand: list[tuple[int, Buffer]] = field(factory=list, repr=False)
    bad_segments: set[int] = field(factory=set)
    asked: bool = False

    def piece(self, offset: int, length: int) -> Buffer | None:
        """These octets if they are at hand."""
        for start, octets in self.at_hand:
            if start <= offset and offset + length <= start + len(octets):
                return memoryview(octets)[offset - start : offset - start + length]
        return None

    def pieces(self, ranges: Iterable[Range]) -> list[Buffer] | None:
        """All of these ranges if they are at hand."""
        found = [self.piece(offset, length) for offset, length in ranges]
        return None if any(piece is None for piece in found) else [piece for piece in found if piece is not None]


class ShareFinder:
    """The servers of one read, what they were asked, and the shares found on them."""

    def __init__(
        self, server_ids: Sequence[ServerId], verifier: FileVerifier, guess: Guess, first_segment: int
    ) -> None:
        self.peers = [Peer(server_id=server_id, order=order) for order, server_id in enumerate(server_ids)]
        self.shares: list[HeldShare] = []
        self.errors: list[GridError] = []
        self.answered_count = 0
        self._k = guess.geometry.k
        self._n = guess.geometry.n
        self._verifier = verifier
        self._guess = guess
        self._speculation = speculate(guess, first_segment)
        self._unasked = list(self.peers)
        self._second_chances: list[Peer] = []
        self._finding: dict[FindShares, Watch] = {}
        self._examining: dict[ReadShares, tuple[Watch, HeldShare]] = {}
        self._outbox: list[AdviseCorrupt] = []
        self._withdrawn: list[FindShares | ReadShares] = []

    def usable(self) -> dict[ShareNumber, list[HeldShare]]:
        """Shares ready to be read, by number."""
        found: dict[ShareNumber, list[HeldShare]] = {}
        for share in self.shares:
            if share.state is ShareState.READY:
                found.setdefault(share.number, []).append(share)
        return found

    @property
    def known_count(self) -> int:
        """Distinct share numbers found and not dropped."""
        return len({share.number for share in self.shares if share.state is not ShareState.DROPPED})

    @property
    def exhausted(self) -> bool:
        """Whether no further share can come to light."""
        return not (self._unasked or self._finding or self._examining or self._second_chances)

    def advance(self, now: float, wanted: int) -> list[FindShares | ReadShares | AdviseCorrupt]:
        """What to ask next, so that `wanted` distinct share numbers become known."""
        self._check_watches(now)
        requests: list[FindShares | ReadShares | AdviseCorrupt] = [*self.take_reports(), *self._examine_more(now)]
        distinct = self.known_count
        hoped = sum(1 for watch in self._finding.values() if not watch.late)
        while distinct + hoped < wanted and len(self._finding) < 2 * MAX_OUTSTANDING and hoped < MAX_OUTSTANDING:
            peer = self._next_peer()
            if peer is None:
                break
            size = 4096 + sum(length for _, length in self._speculation) // 4
            request = FindShares(server_id=peer.server_id, ranges=self._speculation)
            self._finding[request] = peer.sent(size, now)
            hoped += 1
            requests.append(request)
        return requests

    def wake_at(self) -> float | None:
        """When a question becomes late or hopeless."""
        watches = [*self._finding.values(), *(watch for watch, _ in self._examining.values())]
        return min((watch.wake_at for watch in watches), default=None)

    def settle(self) -> None:
        """Forget what is outstanding: the read that asked has ended, and the next one asks again where it must."""
        self._unasked = [watch.peer for watch in self._finding.values()] + self._unasked
        self._finding.clear()
        for _, share in self._examining.values():
            share.asked = False
        self._examining.clear()
        for peer in self.peers:
            peer.outstanding_bytes = 0
        self._second_chances = [peer for peer in self.peers if peer.error is not None]

    def take_reports(self) -> list[AdviseCorrupt]:
        """Corruption reports not yet sent."""
        taken, self._outbox = self._outbox, []
        return taken

    def verdict(self) -> GridError:
        """Why the file cannot be read, once everything was tried."""
        if self.answered_count == 0:
            return NoServersError(
                f"none of the {len(self.peers)} servers could be reached" if self.peers else "there is no server to ask"
            )
        found = self.known_count
        corrupt = sum(1 for error in self.errors if isinstance(error, ShareError))
        failed = len({peer.server_id for peer in self.peers if peer.error is not None})
        notes = [f"{corrupt} shares were unusable"] if corrupt else []
        notes += [f"{failed} of {len(self.peers)} servers failed"] if failed else []
        hint = f" ({', '.join(notes)})" if notes else ""
        what = "no shares were found" if not self.shares else f"only {found} usable shares were found"
        return NotEnoughSharesError(
            f"{what}, {self._k} are needed{hint}", found=found, needed=self._k, causes=self.errors
        )

    def withdrawn(self) -> list[FindShares | ReadShares]:
        """Questions given up since the last call."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def answer(
        self, request: FindShares | ReadShares, answer: Mapping[ShareNumber, Sequence[Buffer]], now: float
    ) -> bool:
        """Take an answer to one of our questions; False if it is not ours. DamagedFileError ends the read."""
        if isinstance(request, FindShares):
            self._found(request, answer, now)
            return True
        examined = self._examining.pop(request, None)
        if examined is None:
            return False
        watch, share = examined
        watch.answered(now)
        pieces = answer.get(share.number)
        if pieces is None:
            self.drop(share, PeerError("the server no longer has the share"))
        elif share.state is ShareState.FOUND:
            wants = request.wants[share.number]
            share.at_hand += [(offset, piece) for (offset, _), piece in zip(wants, pieces, strict=False)]
            self._examine(share)
        return True

    def fail(self, request: FindShares | ReadShares, error: GridError) -> bool:
        """A question failed; False if it is not ours."""
        if isinstance(request, FindShares):
            watch = self._finding.pop(request)
        else:
            examined = self._examining.pop(request, None)
            if examined is None:
                return False
            watch, _ = examined
        watch.ended()
        self.drop_peer(watch.peer, error)
        return True

    def drop(self, share: HeldShare, cause: GridError) -> None:
        """Use this share no more; tell its server where the share is corrupt."""
        if share.state is ShareState.DROPPED:
            return
        share.state = ShareState.DROPPED
        share.at_hand = []
        self.errors.append(ShareError(share.peer.server_id, share.number, cause))
        if isinstance(cause, IntegrityError):
            self.report(share, str(cause))

    def report(self, share: HeldShare, reason: str) -> None:
        """Advise the server that a share of its is corrupt."""
        self._outbox.append(
            AdviseCorrupt(
                server_id=share.peer.server_id,
                share_number=share.number,
                share_numbers=(share.number,),
                reason=reason[: limits.MAX_ADVISORY_LENGTH // 4],
            )
        )

    def drop_peer(self, peer: Peer, error: GridError) -> None:
        """Use none of this server's shares any more; it is asked once again before the read is given up."""
        self.errors.append(error)
        for share in self.shares:
            if share.peer is peer and share.state is not ShareState.DROPPED:
                share.state = ShareState.DROPPED
                share.at_hand = []
        if peer.error is None:
            self._second_chances.append(peer)
        peer.error = error

    def _next_peer(self) -> Peer | None:
        if self._unasked:
            return self._unasked.pop(0)
        if self._second_chances and not any(not watch.late for watch in self._finding.values()):
            peer = self._second_chances.pop(0)
            for share in [share for share in self.shares if share.peer is peer]:
                self.shares.remove(share)
            return peer
        return None

    def _check_watches(self, now: float) -> None:
        for request, watch in list(self._finding.items()):
            watch.check(now)
            if now >= watch.give_up_at:
                self._give_up(request, watch)
        for examination, (watch, _) in list(self._examining.items()):
            watch.check(now)
            if now >= watch.give_up_at:
                self._give_up(examination, watch)

    def _give_up(self, request: FindShares | ReadShares, watch: Watch) -> None:
        self._withdrawn.append(request)
        self.fail(request, PeerError(f"server {watch.peer.server_id} did not answer in time"))

    def _found(self, request: FindShares, answer: Mapping[ShareNumber, Sequence[Buffer]], now: float) -> None:
        watch = self._finding.pop(request)
        watch.answered(now)
        self.answered_count += 1
        for number in sorted(answer):
            if not 0 <= number < self._n:
                continue
            share = HeldShare(peer=watch.peer, number=number)
            share.at_hand = [
                (offset, piece)
                for (offset, _), piece in zip(request.ranges, answer[number], strict=False)
                if len(piece)
            ]
            self.shares.append(share)
            if share.at_hand:
                self._examine(share)

    def _examine_more(self, now: float) -> list[ReadShares]:
        """Ask for what is missing of the shares found, until the file's geometry is known of at most two shares."""
        requests: list[ReadShares] = []
        for share in self.shares:
            if share.state is not ShareState.FOUND or share.asked:
                continue
            if self._verifier.geometry is None and len(self._examining) >= 2:
                break
            wants = self._missing(share)
            share.asked = True
            size = sum(length for _, length in wants)
            request = ReadShares(
                server_id=share.peer.server_id, wants={share.number: wants}, share_numbers=(share.number,), size=size
            )
            self._examining[request] = (share.peer.sent(size, now), share)
            requests.append(request)
        return requests

    def _missing(self, share: HeldShare) -> list[Range]:
        layout = share.layout
        if layout is None:
            return self._speculation
        wants: list[Range] = []
        if not self._verifier.has_root(share.number) and share.piece(layout.chain_offset, layout.chain_size) is None:
            wants.append((layout.chain_offset, layout.chain_size))
        if self._verifier.geometry is None:
            wants.append((layout.ueb_offset, layout.length_field_size + limits.MAX_UEB_SIZE))
        return wants

    def _examine(self, share: HeldShare) -> None:
        """Prove as much as the octets at hand allow; a share that cannot be proven is dropped."""
        try:
            self._prove(share)
        except DamagedFileError:
            raise
        except IntegrityError as error:
            self.drop(share, error)
        except UnknownVersionError as error:
            self.drop(share, error)
        except FormatError as error:
            self.drop(share, IntegrityError(str(error)))

    def _prove(self, share: HeldShare) -> None:
        if share.layout is None:
            share.layout = parse_header(share.piece(0, min(MAX_HEADER_SIZE, _available(share, 0))) or b"")
            share.asked = False
        layout = share.layout
        if self._verifier.geometry is None and not self._prove_ueb(share, layout):
            return
        if not self._verifier.has_root(share.number):
            chain = share.piece(layout.chain_offset, layout.chain_size)
            if chain is None:
                self._short(share)
                return
            self._verifier.accept_chain(share.number, chain)
        share.state = ShareState.READY

    def _prove_ueb(self, share: HeldShare, layout: ShareLayout) -> bool:
        field_size = layout.length_field_size
        length_field = share.piece(layout.ueb_offset, field_size)
        if length_field is None:
            self._short(share)
            return False
        length = parse_ueb_length(layout, length_field)
        octets = share.piece(layout.ueb_offset + field_size, length)
        if octets is None:
            self._short(share)
            return False
        try:
            self._verifier.accept_ueb(octets)
        except FormatError as error:
            # Proven octets that make no sense: every share says so, and no other share can mend it.
            raise DamagedFileError(str(error)) from error
        return True

    def _short(self, share: HeldShare) -> None:
        """What is needed is not at hand: ask once, and take a second lack for a share cut short."""
        if share.asked:
            self.drop(share, FormatError("the share is cut short"))


def speculate(guess: Guess, first_segment: int) -> list[Range]:
    """The ranges of a share worth fetching before anything is known of it: all of it, or its head and tail."""
    if guess.share_size <= WHOLE_SHARE_SIZE:
        return [(0, guess.share_size + TAIL_SLACK)]
    layout = guess.layout
    row = RowRanges(guess.geometry.segment_count, first_segment // CHUNK_LEAVES)
    return [
        (0, MAX_HEADER_SIZE),
        *row.ranges(layout.crypttext_tree_offset),
        *row.ranges(layout.block_tree_offset),
        (layout.chain_offset, guess.share_size + TAIL_SLACK - layout.chain_offset),
    ]


def _available(share: HeldShare, offset: int) -> int:
    """Octets at hand in one piece from this offset on."""
    return max((start + len(octets) - offset for start, octets in share.at_hand if start <= offset), default=0)
