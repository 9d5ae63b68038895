"""The plan of one read of one version: which shares, which ranges, when to ask another server. [spec mutable 14]

Synchronous and pure; drive.py runs it. Text leaves in order, every byte proven, and all of one version: every
answer includes the share's checkstring. A share that has changed to another version is left without blame. A bad share costs
only that share.

Cost: round trips: one message per server and batch, several batches in flight; none for what came with the map.
Network: k blocks per segment, and each chunk's hashes once per share. Memory: WINDOW_BYTES and a batch, of blocks and of text.
CPU: one pool call per batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.engine.batches import PART_BYTES, BatchQueue, BatchState, TextRange, split_range
from grid.engine.choosing import Offer, choose
from grid.engine.hedging import HedgeBudget
from grid.engine.lateness import PendingRead, ServerLoad, ServerLoads, race_if_stuck
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import Deliver, OpenRun, Request
from grid.errors import ConflictError, GridError, NotEnoughSharesError
from grid.mutable.read.held_share import HeldShare
from grid.mutable.read.segment_batch import Batch, BatchCutter, Fetch
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.requests import ReadBlocks, ReadSlot
from grid.mutable.share.segment_run import OpenedRun, SegmentRun
from grid.mutable.share.versions import ShareLocation, Sighting
from grid.ports import Buffer, Event, Range, ServerId, ShareNumber
from grid.values import define, field, frozen

WINDOW_BYTES = 16 * 2**20
"""Bytes of text requested, being opened, or not yet taken by the consumer; two batches, if that is more."""


@frozen(kw_only=True)
class ReadResult:
    """size: bytes delivered. bad: shares that proved bad, with reasons."""

    size: int
    bad: Mapping[ShareLocation, str]


@define
class ReadFailures:
    """Why shares of one read could not be used.

    bad: shares that proved bad, with reasons. moved: some share has another version by now. causes: errors of servers.
    """

    bad: dict[ShareLocation, str] = field(factory=dict)
    moved: bool = False
    causes: list[GridError] = field(factory=list)

    def is_suspect(self, server_id: ServerId) -> bool:
        """Whether a share of this server proved bad."""
        return any(location[0] == server_id for location in self.bad)

    def verdict(self, usable: int, k: int) -> GridError:
        """The error of a read that found `usable` distinct shares and needs k."""
        if self.moved:
            return ConflictError("the file was changed while it was read; read it again")
        bad = f"; {len(self.bad)} are bad" if self.bad else ""
        text = f"{usable} usable shares were found of the {k} that the file needs{bad}"
        return NotEnoughSharesError(text, found=usable, needed=k, causes=self.causes)


class ReadPlan(PlanBase):
    """Reads bytes offset .. offset + length of a version (at least one byte, all inside it).

    keys None: return the ciphertext of whole segments, each after its salt (MDMF).
    """

    def __init__(
        self,
        prefix: Prefix,
        sightings: Sequence[Sighting],
        loads: ServerLoads,
        keys: FileKeys | None,
        offset: int,
        length: int,
    ) -> None:
        super().__init__()
        self._prefix = prefix
        self._geometry = prefix.geometry
        self._loads = loads
        self._read_key = keys.require_read_key() if keys is not None else None
        self._range = TextRange(offset=offset, end=offset + length)
        self._held = [HeldShare(sighting=sighting, geometry=self._geometry) for sighting in sightings]
        self._cutter = BatchCutter(self._geometry, offset, length)
        self._batches: BatchQueue[Batch] = BatchQueue()
        self._fetches: dict[ReadSlot, tuple[Batch, list[Fetch], PendingRead[ServerLoad]]] = {}
        self._hedge = HedgeBudget(self._cutter.block_bytes)
        self._failures = ReadFailures()

    def _is_done(self) -> bool:
        return self._cutter.at_end and not self._batches

    def result(self) -> ReadResult:
        """What was read; NotEnoughSharesError, or ConflictError if the file has changed meanwhile."""
        self._raise_error()
        return ReadResult(size=self._range.delivered, bad=self._failures.bad)

    @property
    def refuted(self) -> Mapping[ShareLocation, str]:
        """Shares that proved false, with reasons."""
        return self._failures.bad

    @property
    def lost(self) -> frozenset[ShareLocation]:
        """Shares that could not be read: their servers failed, or they have changed to another version."""
        return frozenset(share.location for share in self._held if not share.usable) - self._failures.bad.keys()

    def wake_at(self) -> float | None:
        """When the next outstanding answer is late or hopeless."""
        return min((watch.wake_at for _, _, watch in self._fetches.values()), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The requests that fetch, open and deliver now."""
        requests = self._take_outbox()
        if self.finished:
            return requests
        self._check_watches(now)
        self._cut()
        for batch in self._batches:
            if batch.state is BatchState.FETCHING:
                if not batch.settled:
                    requests += self._fetch(batch, now)
                requests += self._open(batch)
        requests += self._deliver()
        self._judge()
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take blocks and hashes, opened runs, and the consumer's acknowledgments."""
        match request:
            case Deliver():
                self._range.delivered += request.size
                self._batches.delivered()
                total = self._range.size
                self._events.append(Event(at=now, what="progress", count=self._range.delivered, total=total))
            case OpenRun():
                assert isinstance(answer, OpenedRun)
                self._opened(self._batches.opened(request), answer, now)
            case ReadSlot():
                assert isinstance(answer, Mapping)
                self._take(request, answer, now)
            case _:
                pass

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Drop a server that fails. A failure of the consumer or of a pool job ends the read."""
        if isinstance(request, OpenRun | Deliver):
            self._stop(error)
        elif isinstance(request, ReadSlot):
            self._lose(request, error)

    def _check_watches(self, now: float) -> None:
        """Give up on what is hopeless. Within the budget, read other shares in place of what is late."""
        for request, (_, _, watch) in list(self._fetches.items()):
            if request in self._fetches and watch.check(now):
                self._withdrawn.append(request)
                self._lose(request, timed_out(request))
        oldest = self._batches.head
        if oldest is None or oldest.state is BatchState.FETCHING:
            race_if_stuck(watch for _, _, watch in self._fetches.values())
        for batch, fetches, watch in self._fetches.values():
            waiting = [fetch for fetch in fetches if not fetch.replaceable]
            if batch.state is not BatchState.FETCHING or not waiting:
                continue
            head = batch is oldest
            if self._hedge.spend_on([watch], batch.share_bytes * len(waiting), head=head):
                for fetch in waiting:
                    fetch.replaceable = True
                    if fetch.hashes is not None:
                        fetch.share.overdue.add(fetch.hashes)
                self._batches.unsettle()

    def _cut(self) -> None:
        in_flight = self._batches.text_bytes
        while not self._cutter.at_end and (len(self._batches) < 2 or in_flight < WINDOW_BYTES):
            batch = self._cutter.cut()
            in_flight += batch.text_bytes
            self._batches.append(batch)

    def _fetch(self, batch: Batch, now: float) -> list[Request]:
        """Request the shares that a batch still lacks."""
        k = self._geometry.k
        secured = {number for number, (share, _) in batch.runs.items() if not share.is_overdue(batch)}
        secured |= {fetch.share.number for fetch in batch.fetches if fetch.share.usable and not fetch.replaceable}
        chosen = self._choose(batch, secured, k - len(secured))
        batch.settled = len(secured) + len(chosen) >= k
        by_message: dict[tuple[ServerId, tuple[Range, ...]], list[Fetch]] = {}
        for share in chosen:
            run = share.run_at_hand(batch)
            if run is not None:
                batch.runs[share.number] = (share, run)
                continue
            parts = split_range(share.run_range(batch), PART_BYTES)
            come: dict[int, Buffer] = {}
            for part in parts:
                ranges = tuple(share.ranges(batch, part))
                hashes = share.note_asked(batch)
                fetch = Fetch(share=share, hashes=hashes, parts=come, part_count=len(parts))
                by_message.setdefault((share.server_id, ranges), []).append(fetch)
        return [self._ask(batch, key[0], key[1], fetches, now) for key, fetches in by_message.items()]

    def _ask(
        self, batch: Batch, server_id: ServerId, ranges: Sequence[Range], fetches: list[Fetch], now: float
    ) -> Request:
        size = sum(length for _, length in ranges) * len(fetches)
        numbers = frozenset(fetch.share.number for fetch in fetches)
        request = ReadBlocks(
            server_id=server_id,
            shares=numbers,
            ranges=ranges,
            size=size,
            share_numbers=tuple(sorted(numbers)),
        )
        batch.fetches += fetches
        self._fetches[request] = batch, fetches, self._loads.ask(server_id, size, now, ReadBlocks)
        return request

    def _choose(self, batch: Batch, secured: set[ShareNumber], wanted: int) -> list[HeldShare]:
        """Shares with other numbers, those expected soonest."""
        if wanted <= 0:
            return []
        busy = {id(fetch.share) for fetch in batch.fetches} | {id(share) for share, _ in batch.runs.values()}
        offers = [
            Offer(
                share,
                share.number,
                self._loads.of(share.server_id),
                order,
                is_doubtful=self._loads.is_doubtful(share.server_id, ReadBlocks),
                is_false=self._failures.is_suspect(share.server_id),
                is_at_hand=share.run_at_hand(batch) is not None,
            )
            for order, share in enumerate(sorted(self._held, key=lambda share: share.number))
            if share.usable and id(share) not in busy and share.number not in secured
        ]
        return choose(offers, wanted=wanted, k=self._geometry.k, size=batch.share_bytes)

    def _take(self, request: ReadSlot, answer: Mapping[ShareNumber, Sequence[Buffer]], now: float) -> None:
        batch, fetches, watch = self._fetches.pop(request)
        watch.answered(now)
        self._hedge.learn()
        for fetch in fetches:
            batch.fetches.remove(fetch)
            share = fetch.share
            pieces = answer.get(share.number)
            if not share.usable:
                continue
            if pieces is None or len(pieces) != len(request.ranges):
                self._leave(share)
            elif not share.is_current(pieces[0]):
                self._leave(share)
                self._failures.moved = True
            else:
                if fetch.hashes is not None:
                    share.take_hashes(batch, request.ranges, pieces)
                run = fetch.take(request.ranges[1][0], pieces[1])
                held = batch.runs.get(share.number)
                if run is not None and (held is None or held[0].is_overdue(batch)):
                    batch.runs[share.number] = (share, run)

    def _leave(self, share: HeldShare) -> None:
        """Expect nothing more of a share. Its blocks stay in use only if their proof has come too."""
        share.usable = False
        for batch in self._batches:
            if batch.state is BatchState.FETCHING and not share.hashes_at_hand(batch):
                self._forget_run(batch, share)
        self._batches.unsettle()

    def _forget_run(self, batch: Batch, share: HeldShare) -> None:
        held = batch.runs.get(share.number)
        if held is not None and held[0] is share:
            del batch.runs[share.number]

    def _lose(self, request: ReadSlot, error: GridError) -> None:
        """Fail everything else that was requested from a failed server."""
        self._failures.causes.append(error)
        self._loads.of(request.server_id).is_slow = True
        for share in self._held:
            if share.server_id == request.server_id:
                self._leave(share)
        for other, (batch, fetches, watch) in list(self._fetches.items()):
            if other.server_id == request.server_id:
                del self._fetches[other]
                watch.ended()
                if other is not request:
                    self._withdrawn.append(other)
                for fetch in fetches:
                    batch.fetches.remove(fetch)

    def _open(self, batch: Batch) -> list[Request]:
        k = self._geometry.k
        if len(batch.runs) < k:
            return []
        ready = sorted(number for number, (share, _) in batch.runs.items() if share.hashes_at_hand(batch))[:k]
        if len(ready) < k or any(batch.chunk_first in batch.runs[number][0].proving for number in ready):
            return []
        for number in ready:
            batch.runs[number][0].note_proving(batch)
        run = SegmentRun(
            prefix=self._prefix,
            geometry=self._geometry,
            first_segment=batch.first,
            segment_count=batch.count,
            chunk_first=batch.chunk_first,
            chunk_leaves=batch.chunk_leaves,
            read_key=self._read_key,
            shares={number: batch.runs[number][0].share_run(batch, batch.runs[number][1]) for number in ready},
        )
        return [self._batches.opening(batch, OpenRun(run=run, size=batch.text_bytes))]

    def _opened(self, batch: Batch, result: OpenedRun, now: float) -> None:
        for share, _ in batch.runs.values():
            share.proving.discard(batch.chunk_first)
        for number, leaves in result.proven.items():
            batch.runs[number][0].note_proven(batch, leaves)
        if result.bad:
            batch.state = BatchState.FETCHING
            for number, reason in result.bad.items():
                self._discard(batch.runs[number][0], reason, now)
            return
        batch.state = BatchState.READY
        batch.text = result.text
        batch.runs.clear()

    def _discard(self, share: HeldShare, reason: str, now: float) -> None:
        """Drop a bad share, and only that share, everywhere."""
        self._leave(share)
        for batch in self._batches:
            if batch.state is BatchState.FETCHING:
                self._forget_run(batch, share)
        if share.location in self._failures.bad:
            return
        self._failures.bad[share.location] = reason
        self._reject(share.server_id, share.number, reason, now)

    def _deliver(self) -> list[Request]:
        batch = self._batches.next_ready()
        if batch is None:
            return []
        data = memoryview(batch.text)
        if self._read_key is not None:
            data = self._range.cut(batch, self._geometry.segment_size)
        return [Deliver(data=data, size=len(data))]

    def _judge(self) -> None:
        """End the read if a batch lacks shares and nothing on its way can help."""
        k = self._geometry.k
        for batch in self._batches:
            if batch.state is not BatchState.FETCHING or batch.settled:
                continue
            numbers = {fetch.share.number for fetch in batch.fetches} | set(batch.runs)
            if len(numbers) < k:
                usable = len({share.number for share in self._held if share.usable})
                self._stop(self._failures.verdict(usable, k))
