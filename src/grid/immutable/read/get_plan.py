"""The plan of one read of an immutable file: which shares, which ranges, when to hedge, when to give up.

Synchronous and pure; drive.py runs it. Text leaves in order, and every byte is proven. A late, short or false answer
costs a request to another share; a silent server costs a hedge but never fails the read. [spec immutable 12-14; placement 7]

Cost: round trips: one to find and prove the shares (one more if the layout was guessed wrong), then one
message per server and batch, several batches in flight. Network: k blocks per segment; a spare share is read only when
an answer is late. Memory: blocks or text of as many batches as the flow window (flow_window.py) permits, and of one more
at most. CPU: one pool call per batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.engine.batches import BatchQueue, BatchState, TextRange
from grid.engine.flow_window import SPREAD_START_BYTES, START_BYTES
from grid.engine.hedging import HedgeBudget
from grid.engine.lateness import race_if_stuck
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import Deliver, OpenRun, Request, why_lacking
from grid.errors import GridError, IntegrityError
from grid.immutable.read.block_reads import BlockReads, Part
from grid.immutable.read.hash_rows import RowFetcher, RowWant
from grid.immutable.read.held_share import HeldShare, Peer, ShareState
from grid.immutable.read.segment_batch import Batch, BatchFeed, BlockFetch, choose_shares
from grid.immutable.read.share_finder import ShareFinder
from grid.immutable.share.requests import FindShares, ReadShares
from grid.immutable.share.segment_run import OpenedRun, SegmentRun
from grid.immutable.share.verify import FileVerifier
from grid.ports import Buffer, Event, ShareNumber
from grid.values import frozen

LONG_READ_BYTES = 16 * 2**20
"""From this size on, a read over long lines uses more servers than it needs."""


@frozen(kw_only=True)
class GetResult:
    """size: bytes delivered. share_count: distinct shares read. hedged_bytes: bytes that came in vain."""

    size: int
    share_count: int
    hedged_bytes: int


class GetPlan(PlanBase):
    """Reads bytes offset .. offset + length of a file (at least one byte, inside the file)."""

    def __init__(
        self,
        finder: ShareFinder,
        verifier: FileVerifier,
        *,
        k: int,
        key: bytes | None,
        offset: int,
        length: int,
        most_bytes: int | None = None,
    ) -> None:
        """most_bytes: in flight, as in FlowWindow."""
        super().__init__()
        self._finder = finder
        self._verifier = verifier
        self._rows = RowFetcher(verifier)
        self._k = k
        self._key = key
        self._range = TextRange(offset=offset, end=offset + length)
        self._batches: BatchQueue[Batch] = BatchQueue()
        start_bytes = SPREAD_START_BYTES if self._is_spread else START_BYTES
        self._feed = BatchFeed(self._range, k, self._batches, start_bytes, most_bytes)
        self._reads = BlockReads()
        self._hedge = HedgeBudget()
        self._read_from: set[HeldShare] = set()

    def _is_done(self) -> bool:
        return self._range.delivered == self._range.size

    def result(self) -> GetResult:
        """What was read; raises NotEnoughSharesError, NoServersError or DamagedFileError if the read failed."""
        self._raise_error()
        count = len({share.number for share in self._read_from})
        return GetResult(size=self._range.delivered, share_count=count, hedged_bytes=self._hedge.wasted_bytes)

    def withdrawn(self) -> Sequence[Request]:
        """Requests that the read has given up on."""
        taken, self._withdrawn = self._withdrawn, []
        return [*taken, *self._finder.withdrawn()]

    def wake_at(self) -> float | None:
        """When the next outstanding request becomes late or hopeless."""
        times = (self._reads.wake_at(), self._finder.wake_at())
        return min((at for at in times if at is not None), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The requests that fetch, open and deliver now."""
        if self.finished:
            return self._finder.take_reports()
        for hopeless in self._reads.check(now):
            if hopeless in self._reads:
                self._withdrawn.append(hopeless)
                self._fail_read(hopeless, timed_out(hopeless))
        self._finder.check(now)
        if self._is_held_up():
            race_if_stuck([*self._reads.watches(), *self._finder.watches()])
        requests: list[Request] = [*self._finder.examine(now)]
        if self._verifier.geometry is not None:
            self._feed.fill(self._verifier.geometry, self._hedge, now)
            requests += self._fetch_all(now)
            for batch in self._batches.fetching():
                requests += self._open(batch, now)
            requests += self._deliver()
        requests += [*self._finder.search(now, self._wanted()), *self._finder.take_reports()]
        self._judge()
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take blocks, rows, found shares, opened runs, and the consumer's acknowledgments."""
        try:
            self._take(request, answer, now)
        except GridError as error:
            self._stop(error)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Drop a server that fails. End the read if a run cannot be opened or the consumer fails."""
        if isinstance(request, OpenRun | Deliver):
            self._stop(error)
        elif isinstance(request, FindShares):
            self._finder.fail(request, error)
        elif isinstance(request, ReadShares) and not self._finder.fail(request, error):
            self._fail_read(request, error)

    def _wanted(self) -> int:
        """How many distinct share numbers to find: what the batches lack, and one spare if the read needs several answers from each."""
        least = self._k if self._finder.is_enough else self._k + 1
        if self._is_spread:
            least = self._finder.share_total
        deficit = self._deficit()
        return max(least, self._finder.known_count + deficit if deficit else 0)

    @property
    def _is_spread(self) -> bool:
        """Whether to read from all servers that have shares: over long lines, k servers send more slowly than this client receives."""
        return self._range.size >= LONG_READ_BYTES and self._finder.peers.is_distant

    def _is_held_up(self) -> bool:
        """Whether nothing can be opened or delivered before servers answer."""
        head = self._batches.head
        return head is None or head.state is BatchState.FETCHING

    def _deficit(self) -> int:
        """How many more shares must be found."""
        return max((batch.deficit for batch in self._batches.fetching()), default=0)

    def _fetch_all(self, now: float) -> list[ReadShares]:
        """Request everything that the batches lack; repeat if a share proves false meanwhile."""
        requests: list[ReadShares] = []
        if self._reads.any_late():
            self._batches.unsettle()
        while True:
            dropped_count = self._finder.dropped_count
            self._forget_dropped()
            for batch in self._batches.fetching():
                if not batch.settled:
                    requests += self._fetch(batch, now)
            if self._finder.dropped_count == dropped_count:
                return requests

    def _fetch(self, batch: Batch, now: float) -> list[ReadShares]:
        """Request the blocks and rows that a batch still lacks."""
        parts: list[Part] = []
        geometry = self._verifier.geometry
        assert geometry is not None
        at_hand = self._take_at_hand(batch)
        secured = self._decide_hedges(batch)
        coming = self._finder.blocks_coming(geometry.block_offset(batch.first), batch.share_bytes)
        lacking = self._k - len(secured) - coming
        batch.settled = lacking <= 0 and not coming and not at_hand
        batch.deficit = 0
        if lacking > 0:
            chosen = choose_shares(
                self._finder.usable(),
                wanted=lacking,
                k=self._k,
                size=batch.share_bytes,
                segments=range(batch.first, batch.first + batch.count),
                taken=secured,
                busy=[*batch.fetches, *(share for share, _ in batch.blocks.values())],
                familiar=self._read_from,
            )
            batch.deficit = lacking - len(chosen)
            for share in chosen:
                parts += self._plan_blocks(batch, share)
        parts += self._plan_rows(batch)
        return self._reads.send(parts, now)

    def _take_at_hand(self, batch: Batch) -> bool:
        """Use the blocks that came with the first answers, at no further cost. Returns whether there may be any."""
        geometry = self._verifier.geometry
        assert geometry is not None
        if not self._finder.may_hold(geometry.block_offset(batch.first), batch.share_bytes):
            return False
        for number, shares in self._finder.usable().items():
            for share in shares:
                if len(batch.blocks) >= self._k or number in batch.blocks:
                    break
                if share.bad_segments or share in batch.fetches or not share.at_hand or share.layout is None:
                    continue
                raw = share.piece(share.layout.data_offset + geometry.block_offset(batch.first), batch.share_bytes)
                if raw is not None:
                    self._read_from.add(share)
                    batch.blocks[number] = (share, raw)
        return True

    def _forget_at_hand(self, batch: Batch) -> None:
        """Free blocks that came with the first answers, if all their text leaves: a slow client may take long for that.

        A read of a part keeps them, because a read of the next part often follows.
        """
        geometry = self._verifier.geometry
        if geometry is not None and self._range.has_all_of(batch, geometry.segment_size):
            self._finder.forget_blocks(geometry.block_offset(batch.first), batch.share_bytes)

    def _decide_hedges(self, batch: Batch) -> set[ShareNumber]:
        """Share numbers whose blocks have come or are worth waiting for. Marks others as replaceable, as the budget allows."""
        head = batch is self._batches.head
        for number in batch.blocks.keys() - batch.replaceable:
            watch = self._rows.late_watch(number, batch.chunk)
            if watch is not None and self._hedge.spend_on([watch], batch.share_bytes, head=head):
                batch.replaceable.add(number)
        for fetch in batch.fetches.values():
            if not fetch.replaceable:
                fetch.replaceable = self._hedge.spend_on(fetch.watches.values(), batch.share_bytes, head=head)
        come = {n for n in batch.blocks if n not in batch.replaceable or self._rows.proven(n, batch.chunk)}
        return come | {share.number for share, fetch in batch.fetches.items() if not fetch.replaceable}

    def _plan_blocks(self, batch: Batch, share: HeldShare) -> list[Part]:
        assert share.layout is not None and self._verifier.geometry is not None
        self._read_from.add(share)
        ranges = batch.block_ranges(share.layout.data_offset, self._verifier.geometry)
        fetch = BlockFetch(share=share, ranges=ranges)
        batch.fetches[share] = fetch
        return [Part(share=share, ranges=[part], purpose=fetch, batch=batch) for part in ranges]

    def _plan_rows(self, batch: Batch) -> list[Part]:
        shares = [share for share, _ in batch.blocks.values()] + list(batch.fetches)
        wants, false = self._rows.wants(shares, batch.chunk)
        for share, error in false:
            self._drop(share, error)
        return [Part(share=want.share, ranges=want.ranges, purpose=want, batch=batch) for want in wants]

    def _open(self, batch: Batch, now: float) -> list[Request]:
        if len(batch.blocks) < self._k:
            return []
        ready = sorted(number for number in batch.blocks if self._rows.proven(number, batch.chunk))[: self._k]
        if len(ready) < self._k or not self._rows.proven(None, batch.chunk):
            return []
        assert self._verifier.geometry is not None and self._verifier.crypttext_rows is not None
        run = SegmentRun(
            geometry=self._verifier.geometry,
            first_segment=batch.first,
            segment_count=batch.count,
            key=self._key,
            blocks={number: batch.blocks[number][1] for number in ready},
            leaves={number: self._verifier.block_rows(number).leaves(batch.first, batch.count) for number in ready},
            crypttext_leaves=self._verifier.crypttext_rows.leaves(batch.first, batch.count),
        )
        self._feed.came(batch, now)
        return [self._batches.opening(batch, OpenRun(run=run, size=batch.text_bytes))]

    def _deliver(self) -> list[Deliver]:
        batch = self._batches.next_ready()
        if batch is None:
            return []
        assert self._verifier.geometry is not None
        data = self._range.cut(batch, self._verifier.geometry.segment_size)
        return [Deliver(data=data, size=len(data))]

    def _take(self, request: Request, answer: object, now: float) -> None:
        if isinstance(request, Deliver):
            self._range.delivered += request.size
            self._batches.delivered()
            total = self._range.size
            self._events.append(Event(at=now, what="progress", count=self._range.delivered, total=total))
        elif isinstance(request, OpenRun):
            assert isinstance(answer, OpenedRun)
            self._opened(self._batches.opened(request), answer)
        elif isinstance(request, FindShares | ReadShares):
            assert isinstance(answer, Mapping)
            if not self._finder.answer(request, answer, now):
                assert isinstance(request, ReadShares)
                self._take_read(request, answer, now)

    def _take_read(self, request: ReadShares, answer: Mapping[ShareNumber, Sequence[Buffer]], now: float) -> None:
        watch, parts = self._reads.end(request)
        watch.answered(now)
        self._learn(watch.load)
        taken: dict[ShareNumber, int] = {}
        for part in parts:
            number = part.share.number
            start = taken.get(number, 0)
            taken[number] = start + len(part.ranges)
            pieces = answer.get(number)
            if part.share.state is ShareState.DROPPED:
                self._forget_part(part)
            elif pieces is None or len(pieces) < taken[number]:
                self._forget_part(part)
                self._drop(part.share, why_lacking(pieces))
            elif isinstance(part.purpose, RowWant):
                error = self._rows.accept(part.purpose, pieces[start : taken[number]])
                if error is not None:
                    self._drop(part.share, error)
            else:
                self._take_blocks(part, request, pieces[start])

    def _learn(self, peer: Peer) -> None:
        if peer.latency.rate_known:
            self._hedge.learn()
            self._finder.peers.spread_rate()

    def _take_blocks(self, part: Part, request: ReadShares, raw: Buffer) -> None:
        fetch, batch = part.purpose, part.batch
        assert isinstance(fetch, BlockFetch)
        offset, length = part.ranges[0]
        if len(raw) != length:
            self._forget_part(part)
            self._drop(part.share, IntegrityError("the share is cut short"))
            return
        fetch.watches.pop(request, None)
        fetch.parts[offset] = raw
        whole = fetch.joined()
        if whole is None or batch.fetches.get(part.share) is not fetch:
            return
        del batch.fetches[part.share]
        if batch.state is not BatchState.FETCHING or part.share.number in batch.blocks:
            self._hedge.wasted_bytes += len(whole)
        else:
            batch.blocks[part.share.number] = (part.share, whole)

    def _opened(self, batch: Batch, result: OpenedRun) -> None:
        if not result.bad:
            batch.state = BatchState.READY
            batch.text = result.text
            self._hedge.wasted_bytes += (len(batch.blocks) - self._k) * batch.share_bytes
            batch.blocks.clear()
            self._forget_at_hand(batch)
            return
        batch.state = BatchState.FETCHING
        self._batches.unsettle()
        for number, segments in result.bad.items():
            share, _ = batch.blocks[number]
            share.bad_segments.update(segments)
            batch.forget(share)
            self._finder.report(share, f"the block of segment {segments[0]} does not match its hash")

    def _fail_read(self, request: ReadShares, error: GridError) -> None:
        """Fail everything else that was requested from a failed server."""
        peer = self._reads.peer_of(request)
        for lost in self._reads.of_peer(peer):
            watch, parts = self._reads.end(lost)
            watch.ended()
            for part in parts:
                self._forget_part(part)
            if lost is not request:
                self._withdrawn.append(lost)
        self._finder.drop_peer(peer, error)

    def _forget_part(self, part: Part) -> None:
        self._batches.unsettle()
        if isinstance(part.purpose, RowWant):
            self._rows.ended(part.purpose)
        elif part.batch.fetches.get(part.share) is part.purpose:
            del part.batch.fetches[part.share]

    def _drop(self, share: HeldShare, error: GridError) -> None:
        self._finder.drop(share, error)
        self._batches.unsettle()

    def _forget_dropped(self) -> None:
        """Stop waiting for dropped shares. Blocks that have come stay if nothing else of the share is needed."""
        for batch in self._batches:
            for share in [share for share in batch.fetches if share.state is ShareState.DROPPED]:
                del batch.fetches[share]
                self._batches.unsettle()
            if batch.state is BatchState.FETCHING:
                for share in [share for share, _ in batch.blocks.values() if share.state is ShareState.DROPPED]:
                    if not (self._rows.proven(share.number, batch.chunk) and self._rows.proven(None, batch.chunk)):
                        batch.forget(share)
                        self._batches.unsettle()

    def _judge(self) -> None:
        """Give up if a batch lacks shares and no outstanding request can supply them."""
        if not self._finder.exhausted:
            return
        stuck = self._verifier.geometry is None or any(
            not batch.fetches and len(batch.blocks) < self._k for batch in self._batches.fetching()
        )
        if stuck and (self._deficit() or self._verifier.geometry is None):
            self._stop(self._finder.verdict())
