"""The plan of a verification: reads and checks every byte of every share of a version. [spec mutable 18]

Synchronous and pure; drive.py runs it. A share is good if its header, offsets, keys, signature, chain, tree and blocks are
exactly those of the version. A share that cannot be read is neither good nor corrupt.

Cost: round trips: two per share and one per READ_BYTES of it, AUDITS (engine/audit_queue.py) shares at once. Memory:
AUDITS * READ_BYTES. CPU: one hash pass over all shares, on the pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from grid.engine.audit_queue import AuditQueue
from grid.engine.lateness import PendingRead, ServerLoad, ServerLoads
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import Compute, Request
from grid.errors import GridError
from grid.mutable.share.audit import ShareAudit, Verdict
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.requests import ReadBlocks, ReadFields, ReadSlot
from grid.mutable.share.versions import ShareLocation, Sighting, VersionMap
from grid.values import frozen


@frozen(kw_only=True)
class AuditReport:
    """corrupt: corrupt shares, with reasons. unread: shares that could not be read or have changed since."""

    good: Sequence[Sighting]
    corrupt: Mapping[ShareLocation, str]
    unread: frozenset[ShareLocation]


class AuditPlan(PlanBase):
    """Verifies all shares of one version in a map, copies included."""

    def __init__(self, found: VersionMap, prefix: Prefix, keys: FileKeys, loads: ServerLoads) -> None:
        super().__init__()
        self._loads = loads
        self._audits: AuditQueue[ShareAudit] = AuditQueue()
        self._audits.add(ShareAudit(sighting, prefix, found.public_key, keys) for sighting in found.shares_of(prefix))
        self._watches: dict[ReadSlot, tuple[PendingRead[ServerLoad], ShareAudit]] = {}
        self._jobs: dict[Compute, ShareAudit] = {}

    def _is_done(self) -> bool:
        return not (self._audits or self._outbox)

    def result(self) -> AuditReport:
        """The verdicts. If good shares differ from each other, the majority counts."""
        self._raise_error()
        for audit in self._odd_ones():
            audit.verdict, audit.reason = Verdict.CORRUPT, "the private key differs from that of the other shares"
        return AuditReport(
            good=[audit.sighting for audit in self._audits.done if audit.verdict is Verdict.GOOD],
            corrupt={a.sighting.location: a.reason for a in self._audits.done if a.verdict is Verdict.CORRUPT},
            unread=frozenset(a.sighting.location for a in self._audits.done if a.verdict is Verdict.UNREAD),
        )

    def wake_at(self) -> float | None:
        """When to give up on the next unanswered read."""
        return min((watch.dispensable_until for watch, _ in self._watches.values()), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The reads and pool jobs to start now."""
        for request, (watch, _) in list(self._watches.items()):
            if now >= watch.dispensable_until:
                self._withdrawn.append(request)
                self.fail(request, timed_out(request), now)
        requests = self._take_outbox()
        requests += [self._step(audit, now) for audit in self._audits.to_step()]
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take bytes, and results of pool jobs."""
        if isinstance(request, ReadSlot):
            assert isinstance(answer, Mapping)
            watch, audit = self._watches.pop(request)
            watch.answered(now)
            audit.take_read(answer.get(audit.sighting.number))
            self._judge(audit, now)
        elif isinstance(request, Compute):
            audit = self._jobs.pop(request)
            audit.take_computed(answer)
            self._judge(audit, now)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """The share of a failed server stays unread."""
        if isinstance(request, ReadSlot):
            watch, audit = self._watches.pop(request)
            watch.ended()
            audit.verdict = Verdict.UNREAD
            self._judge(audit, now)
        elif isinstance(request, Compute):
            self._stop(error)

    def _step(self, audit: ShareAudit, now: float) -> Request:
        job = audit.next_job()
        if job is not None:
            compute = Compute(job=job)
            self._jobs[compute] = audit
            return compute
        ranges = audit.next_ranges()
        size = sum(length for _, length in ranges)
        sighting = audit.sighting
        kind = ReadFields if audit.reads_fields else ReadBlocks
        read = kind(
            server_id=sighting.server_id,
            shares=frozenset([sighting.number]),
            ranges=ranges,
            size=size,
            share_numbers=(sighting.number,),
        )
        self._watches[read] = self._loads.ask(sighting.server_id, size, now, kind), audit
        return read

    def _judge(self, audit: ShareAudit, now: float) -> None:
        self._events.extend(self._audits.stepped(audit, now))
        if audit.verdict is Verdict.CORRUPT:
            self._reject(*audit.sighting.location, audit.reason, now)

    def _odd_ones(self) -> list[ShareAudit]:
        """Good shares whose private key differs from that of most: without the write key, only this shows that it is wrong."""
        good = [audit for audit in self._audits.done if audit.verdict is Verdict.GOOD]
        counts = Counter(audit.private_key for audit in good)
        usual = max(counts, key=lambda data: counts[data], default=b"")
        return [audit for audit in good if audit.private_key != usual]
