"""Finds the shares of one file and proves what they claim to be, so that their blocks can be read.

Part of the get plan, and synchronous like it. It says which servers to ask next, and turns answers into
shares with a known layout and a proven block root. The first request to a server also fetches a
guessed head and tail of every share it holds, so that a share is usually ready after one round trip.
[spec immutable 12, 14; placement 7]

Cost: one message per server, and one more only if the guess was wrong. The first round asks k servers if
their answers may bring all that the read needs, otherwise k + 1. At most MAX_OUTSTANDING answers that are not late are
outstanding, and at most MAX_LATE late ones beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid import limits
from grid.engine.lateness import PendingRead
from grid.engine.requests import AdviseCorrupt, why_lacking
from grid.engine.server_memory import ServerMemory
from grid.errors import (
    DamagedFileError,
    FormatError,
    GridError,
    IntegrityError,
    NoServersError,
    NotEnoughSharesError,
    PeerTimeoutError,
    ShareError,
    UnknownVersionError,
)
from grid.immutable.read.held_share import (
    HeldShare,
    Peer,
    ShareState,
    missing_ranges,
    prove_share,
    well_founded,
)
from grid.immutable.read.peer_queue import PeerQueue
from grid.immutable.read.speculation import speculate
from grid.immutable.share.layout import Guess
from grid.immutable.share.requests import FindShares, ReadShares
from grid.immutable.share.verify import FileVerifier
from grid.plural import counted
from grid.ports import Buffer, Range, ServerId, ShareNumber

MAX_OUTSTANDING = 10
"""Servers asked at once for their shares, as in 1.20, not counting those whose answer is late."""

MAX_LATE = 90
"""How many more late answers to wait for: each costs little memory, and may still come."""

FAILURES_TOGETHER = 2
"""Once this many servers have failed, ask as many more at once as have failed. Otherwise each dead server costs a round trip."""

UEB_SOURCES = 2
"""Shares from which to fetch the extension block if the guess missed it: one is a spare."""


class ShareFinder:
    """The servers of one read, the requests sent to them, and the shares found on them."""

    def __init__(
        self,
        server_ids: Sequence[ServerId],
        verifier: FileVerifier,
        guess: Guess,
        first_segment: int,
        segment_count: int = 0,
        memory: ServerMemory | None = None,
    ) -> None:
        """memory: what is known of the servers; those in doubt are asked last. first_segment, segment_count: the segments
        that the first read needs.
        """
        self.peers = PeerQueue(server_ids, memory or ServerMemory())
        self.shares: list[HeldShare] = []
        self.errors: list[GridError] = []
        self.answered_count = 0
        self._geometry = guess.geometry
        self._verifier = verifier
        self._speculation = speculate(guess, first_segment, segment_count, len(self.peers))
        self._asked_count = 0
        self._bearing: set[FindShares] = set()
        self._finding: dict[FindShares, PendingRead[Peer]] = {}
        self._examining: dict[ReadShares, tuple[PendingRead[Peer], HeldShare, Sequence[Range]]] = {}
        self._outbox: list[AdviseCorrupt] = []
        self._withdrawn: list[FindShares | ReadShares] = []

    @property
    def is_enough(self) -> bool:
        """Whether the first answers of k servers may contain everything that the first read needs."""
        return self._speculation.is_enough

    @property
    def share_total(self) -> int:
        """How many shares the file has."""
        return self._geometry.n

    @property
    def dropped_count(self) -> int:
        """Number of shares and servers dropped so far."""
        return len(self.errors)

    def usable(self) -> dict[ShareNumber, list[HeldShare]]:
        """Shares that are ready to read, by number."""
        found: dict[ShareNumber, list[HeldShare]] = {}
        for share in self.shares:
            if share.state is ShareState.READY:
                found.setdefault(share.number, []).append(share)
        return found

    @property
    def known_count(self) -> int:
        """Number of distinct shares found and not dropped, except those that need a late answer for their proof."""
        late = {share for watch, share, _ in self._examining.values() if watch.late}
        known = {share.number for share in self.shares if share.state is not ShareState.DROPPED and share not in late}
        return len(known)

    def may_hold(self, block_offset: int, size: int) -> bool:
        """Whether the first answers may have brought these bytes of a share's blocks."""
        return self._speculation.covers(block_offset, size)

    def forget_blocks(self, block_offset: int, size: int) -> None:
        """Free what the first answers brought of these bytes of each share's blocks."""
        if self.may_hold(block_offset, size):
            for share in (share for shares in self.usable().values() for share in shares):
                if share.layout is not None:
                    share.forget(share.layout.data_offset + block_offset, size)

    def blocks_coming(self, block_offset: int, size: int) -> int:
        """How many outstanding answers should contain these bytes of a share's blocks and are worth waiting for."""
        if not self._bearing or not self.may_hold(block_offset, size):
            return 0
        watches = (self._finding[request] for request in self._bearing if request in self._finding)
        # A read of more than these blocks waits for all of them, and knows a spare share.
        return sum(
            1 for watch in watches if not (watch.overtaken or watch.silent or (watch.tardy and not self.is_enough))
        )

    @property
    def exhausted(self) -> bool:
        """Whether no further share can be found."""
        return self.peers.is_empty and not (self._finding or self._examining)

    def check(self, now: float) -> None:
        """Give up on what is hopeless now. Updates whether other answers are late."""
        for request, watch in list(self._finding.items()):
            if watch.check(now):
                self._give_up(request, watch)
        for examination, (watch, _, _) in list(self._examining.items()):
            if watch.check(now):
                self._give_up(examination, watch)

    def examine(self, now: float) -> list[ReadShares]:
        """Prove what can be proven of the shares found. Returns the reads that the remaining proofs need."""
        requests: list[ReadShares] = []
        busy = {share for _, share, _ in self._examining.values()}
        sources = sum(
            1 for watch, share, wants in self._examining.values() if not watch.late and _supplies_ueb(share, wants)
        )
        for share in [share for share in self.shares if share.state is ShareState.FOUND]:
            if share in busy:
                if share.layout is not None and self._verifier.geometry is not None:
                    self._examine(share)  # Another share has supplied what this one was asked for.
                continue
            wants = self._missing(share, with_ueb=sources < UEB_SOURCES)
            if not wants:
                continue
            sources += _supplies_ueb(share, wants)
            share.asked.update(wants)
            size = sum(length for _, length in wants)
            request = ReadShares(
                server_id=share.peer.server_id, wants={share.number: wants}, share_numbers=(share.number,), size=size
            )
            self._examining[request] = (share.peer.sent(size, now), share, wants)
            requests.append(request)
        return requests

    def search(self, now: float, wanted: int) -> list[FindShares]:
        """The servers to ask next so that `wanted` distinct share numbers become known."""
        requests: list[FindShares] = []
        distinct = self.known_count
        hoped = sum(1 for watch in self._finding.values() if not watch.late)
        late = len(self._finding) - hoped
        # If several servers have failed, more will. Ask the next ones at once, not one after the other.
        failed = self.peers.failed_count
        spare = failed if failed >= FAILURES_TOGETHER and distinct < wanted else 0
        while hoped < MAX_OUTSTANDING and late < MAX_LATE:
            lacking = wanted - distinct - hoped
            if lacking + spare <= 0:
                break
            peer = self._next_peer() if lacking > 0 else self.peers.next_unasked()
            if peer is None:
                break
            with_blocks = self._asks_for_blocks(is_needed=lacking > 0)
            self._asked_count += 1
            ranges = [*self._speculation.ranges, *(self._speculation.blocks if with_blocks else [])]
            request = FindShares(server_id=peer.server_id, ranges=ranges)
            self._finding[request] = peer.sent(self._speculation.answer_size(with_blocks=with_blocks), now)
            if with_blocks:
                self._bearing.add(request)
            hoped += 1
            requests.append(request)
        return requests

    def wake_at(self) -> float | None:
        """When a request becomes late or hopeless."""
        return min((watch.wake_at for watch in self.watches()), default=None)

    def watches(self) -> list[PendingRead[Peer]]:
        """The watches of all outstanding requests."""
        return [*self._finding.values(), *(watch for watch, _, _ in self._examining.values())]

    def settle(self) -> None:
        """Forget outstanding requests: the read that sent them has ended, and the next one repeats those it needs."""
        in_time = [watch.load for watch in self._finding.values() if not watch.late]
        late = [watch.load for watch in self._finding.values() if watch.late]
        self._finding.clear()
        self._bearing.clear()
        for _, share, wants in self._examining.values():
            share.asked.difference_update(wants)
        self._examining.clear()
        self.peers.settle(in_time, late)

    def take_reports(self) -> list[AdviseCorrupt]:
        """Corruption reports not yet sent, except those that may be the capability's fault."""
        taken = well_founded(self._outbox, self._verifier)
        self._outbox = [report for report in self._outbox if report not in taken]
        return taken

    def verdict(self) -> GridError:
        """Why the file cannot be read, after everything was tried."""
        if self.answered_count == 0:
            return NoServersError(
                f"none of {counted(len(self.peers), 'server')} could be reached"
                if len(self.peers)
                else "no storage server is known; is the introducer reachable?"
            )
        found = self.known_count
        corrupt = sum(1 for error in self.errors if isinstance(error, ShareError))
        failed = len({peer.server_id for peer in self.peers if peer.error is not None})
        notes = [f"{counted(corrupt, 'share was', 'shares were')} unusable"] if corrupt else []
        notes += [f"{failed} of {counted(len(self.peers), 'server')} failed"] if failed else []
        if self.shares:
            what = f"only {counted(found, 'usable share was', 'usable shares were')} found"
        else:
            what = f"file not found: none of {counted(len(self.peers), 'server')} has a share of it"
        if self._outbox and not found:
            return NotEnoughSharesError(
                f"none of {counted(corrupt, 'share')} matches this capability: copy it again exactly; if it is right, all of them are damaged",
                found=0, needed=self._geometry.k, causes=self.errors,
            )  # fmt: skip
        hint = ", ".join([counted(self._geometry.k, "is needed", "are needed"), *notes])
        return NotEnoughSharesError(f"{what} ({hint})", found=found, needed=self._geometry.k, causes=self.errors)

    def withdrawn(self) -> list[FindShares | ReadShares]:
        """Requests withdrawn since the last call."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def answer(
        self, request: FindShares | ReadShares, answer: Mapping[ShareNumber, Sequence[Buffer]], now: float
    ) -> bool:
        """Take an answer to one of our requests. Returns False if it is not ours. DamagedFileError ends the read."""
        if isinstance(request, FindShares):
            self._found(request, answer, now)
            return True
        examined = self._examining.pop(request, None)
        if examined is None:
            return False
        watch, share, wants = examined
        watch.answered(now)
        pieces = answer.get(share.number)
        if not pieces:
            self.drop(share, why_lacking(pieces))
        elif share.state is ShareState.FOUND:
            share.take(wants, pieces)
            self._examine(share)
        return True

    def fail(self, request: FindShares | ReadShares, error: GridError) -> bool:
        """Take a failure of one of our requests. Returns False if it is not ours."""
        if isinstance(request, FindShares):
            watch = self._finding.pop(request)
        else:
            examined = self._examining.pop(request, None)
            if examined is None:
                return False
            watch, _, _ = examined
        watch.ended()
        self.drop_peer(watch.load, error)
        return True

    def drop(self, share: HeldShare, cause: GridError) -> None:
        """Stop using this share. If it is corrupt, report that to its server."""
        if share.state is ShareState.DROPPED:
            return
        share.state = ShareState.DROPPED
        share.at_hand = []
        self.errors.append(ShareError(share.peer.server_id, share.number, cause))
        if isinstance(cause, IntegrityError):
            self.report(share, str(cause))

    def report(self, share: HeldShare, reason: str) -> None:
        """Report a corrupt share to its server."""
        self._outbox.append(
            AdviseCorrupt(
                server_id=share.peer.server_id,
                share_number=share.number,
                share_numbers=(share.number,),
                reason=reason[: limits.MAX_ADVISORY_LENGTH // 4],
            )
        )

    def drop_peer(self, peer: Peer, error: GridError) -> None:
        """Stop using this server's shares. It is asked once more before the read gives up."""
        self.errors.append(error)
        for share in self.shares:
            if share.peer is peer and share.state is not ShareState.DROPPED:
                share.state = ShareState.DROPPED
                share.at_hand = []
        self.peers.failed(peer)
        peer.error = error

    def _asks_for_blocks(self, *, is_needed: bool) -> bool:
        """Whether the next server is asked for blocks, too. is_needed: nobody who was asked before it may have its share.

        A server after the first k is asked because another one is late. A short answer comes sooner, but over a long line, a second
        round trip costs more.
        """
        if not self._speculation.blocks:
            return False
        takes_over = is_needed and self.is_enough and self.peers.answers.is_distant
        return self._asked_count < self._geometry.k or takes_over

    def _next_peer(self) -> Peer | None:
        peer = self.peers.next_unasked()
        if peer is None and all(watch.late for watch in self._finding.values()):
            peer = self.peers.next_second_chance()
            for share in [share for share in self.shares if share.peer is peer]:
                self.shares.remove(share)
        return peer

    def _give_up(self, request: FindShares | ReadShares, watch: PendingRead[Peer]) -> None:
        self._withdrawn.append(request)
        self.fail(request, PeerTimeoutError(f"server {watch.load.server_id} did not answer in time"))

    def _found(self, request: FindShares, answer: Mapping[ShareNumber, Sequence[Buffer]], now: float) -> None:
        watch = self._finding.pop(request)
        watch.answered(now)
        self.answered_count += 1
        if watch.load.latency.rate_known:
            self.peers.spread_rate()
        for number in sorted(answer):
            if not 0 <= number < self._geometry.n:
                continue
            share = HeldShare(peer=watch.load, number=number)
            share.take(request.ranges, answer[number])
            self.shares.append(share)
            if share.at_hand:
                self._examine(share)

    def _missing(self, share: HeldShare, *, with_ueb: bool) -> list[Range]:
        """What to request: nothing if the share can be proven, must wait, or was dropped."""
        if share.layout is None:
            return self._speculation.ranges
        try:
            wants = missing_ranges(share, self._verifier, with_ueb=with_ueb)
        except FormatError as error:
            self.drop(share, IntegrityError(str(error)))
            return []
        if not wants and self._verifier.geometry is not None:
            self._examine(share)
        return wants

    def _examine(self, share: HeldShare) -> None:
        """Prove as much as the bytes at hand allow. Drop the share if it is false."""
        try:
            prove_share(share, self._verifier)
        except DamagedFileError:
            raise
        except (IntegrityError, UnknownVersionError) as error:
            self.drop(share, error)
        except FormatError as error:
            self.drop(share, IntegrityError(str(error)))


def _supplies_ueb(share: HeldShare, wants: Sequence[Range]) -> bool:
    """Whether an outstanding request also fetches the extension block from this share."""
    return share.layout is None or wants[-1][0] == share.layout.ueb_offset
