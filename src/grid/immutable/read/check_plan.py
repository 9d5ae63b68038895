"""The plan of a check: ask every server what it holds, and on demand verify every byte of every share.

Synchronous and pure; drive.py runs it. A server that keeps silent delays a check by about a second, measured by what the
others take, and is named in what the check finds.
[spec placement 9.1; immutable 15]

Cost: round trips: one per server (two with a lease); verifying adds what audit.py says, for AUDITS shares at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from math import inf

from attrs import define, frozen

from grid.engine.lateness import DOUBTFUL_S, HOPELESS_S, SLOWEST_RATE
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import AddLease, AdviseCorrupt, Compute, Request, ServerRequest
from grid.engine.server_memory import SHORT_PATIENCE_S
from grid.errors import DamagedFileError, GridError, PeerTimeoutError
from grid.immutable.share.audit import ShareAudit, Verdict
from grid.immutable.share.requests import FindShares, ReadShares
from grid.immutable.share.verify import FileVerifier
from grid.ports import Event, ServerId, ShareNumber

ANSWER_LIMIT_S = 15.0
"""How long a server may take to say what it holds, whatever the others take."""

GRACE_FLOOR_S = 0.8
GRACE_FACTOR = 6.0
"""Once others have answered, a silent server is waited for so long, and so many times the slowest answer; for shares that
are being verified, since the last of their servers' answers."""

AUDITS = 6
"""Shares verified at once."""


@frozen(kw_only=True)
class Findings:
    """responding: servers that answered. claimed: what they say they hold. audits: by (server, share) if verified.

    silent: servers that were given up because they did not answer in time, now or while their shares were verified.
    """

    responding: frozenset[ServerId]
    claimed: Mapping[ServerId, frozenset[ShareNumber]]
    audits: Mapping[tuple[ServerId, ShareNumber], tuple[Verdict, str]]
    silent: frozenset[ServerId]
    errors: Sequence[GridError]


@define(kw_only=True, eq=False)
class _Question:
    """One outstanding request, and the share that it verifies, if any."""

    sent_at: float
    limit: float
    audit: ShareAudit | None


class CheckPlan(PlanBase):
    """verifier None: only ask; otherwise verify against it. in_doubt: servers that were silent lately."""

    def __init__(
        self,
        server_ids: Sequence[ServerId],
        *,
        n: int,
        verifier: FileVerifier | None,
        add_lease: bool,
        in_doubt: Collection[ServerId] = (),
    ) -> None:
        super().__init__()
        self._n = n
        self._in_doubt = frozenset(in_doubt)
        self._verifier = verifier
        self._to_ask = list(server_ids)
        self._add_lease = add_lease
        self._outstanding: dict[Request, _Question] = {}
        self._silent: set[ServerId] = set()
        self._slowest_s: dict[type[Request], float] = {}
        self._last_answer_at = 0.0
        self._claimed: dict[ServerId, frozenset[ShareNumber]] = {}
        self._waiting: deque[ShareAudit] = deque()
        self._active: set[ShareAudit] = set()
        self._done: list[ShareAudit] = []
        self._errors: list[GridError] = []

    def _is_done(self) -> bool:
        return not (self._to_ask or self._outstanding or self._waiting or self._active or self._outbox)

    def result(self) -> Findings:
        """What was found; DamagedFileError if the file's proven parts contradict each other."""
        self._raise_error()
        return Findings(
            responding=frozenset(self._claimed),
            claimed=self._claimed,
            audits={(a.server_id, a.number): (a.verdict or Verdict.UNREADABLE, a.reason) for a in self._done},
            silent=frozenset(self._silent),
            errors=self._errors,
        )

    def wake_at(self) -> float | None:
        """When the next unanswered question is given up."""
        times = [self._gives_up_at(request, question) for request, question in self._outstanding.items()]
        return min((at for at in times if at != inf), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """Questions to ask and bytes to read now."""
        if self._error is not None:
            return []
        self._give_up(now)
        requests = self._take_outbox()
        for server_id in self._to_ask:
            if self._add_lease:
                requests.append(self._sent(AddLease(server_id=server_id), now))
            requests.append(self._sent(FindShares(server_id=server_id), now))
        self._to_ask = []
        while self._waiting and len(self._active) < AUDITS:
            audit = self._waiting.popleft()
            self._active.add(audit)
            requests.append(self._sent(audit.next_request(), now, audit))
        for audit in [audit for audit in self._active if audit not in self._busy()]:
            requests.append(self._sent(audit.next_request(), now, audit))
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Share lists, bytes, and what the processor says of them."""
        if isinstance(request, AdviseCorrupt):
            return
        audit = self._take(request, now)
        if isinstance(request, FindShares):
            assert isinstance(answer, Mapping)
            self._found(request.server_id, frozenset(number for number in answer if 0 <= number < self._n))
        elif isinstance(request, ReadShares) and audit is not None:
            assert isinstance(answer, Mapping)
            try:
                audit.read(answer.get(audit.number))
            except DamagedFileError as error:
                self._stop(error)
            self._judge(audit, now)
        elif isinstance(request, Compute) and audit is not None:
            audit.computed(answer if isinstance(answer, str) else None)
            self._judge(audit, now)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """A server that fails is noted, and so are its shares."""
        if isinstance(request, AdviseCorrupt):
            return
        audit = self._outstanding.pop(request).audit
        self._errors.append(error)
        if audit is not None:
            audit.failed(error)
            self._judge(audit, now)

    def _busy(self) -> set[ShareAudit]:
        return {question.audit for question in self._outstanding.values() if question.audit is not None}

    def _take(self, request: Request, now: float) -> ShareAudit | None:
        """The share that an answered request verifies, if any; note how long the answer took."""
        question = self._outstanding.pop(request)
        if request.server_id is not None:
            kind, elapsed_s = type(request), now - question.sent_at
            self._slowest_s[kind] = max(self._slowest_s.get(kind, 0.0), elapsed_s)
            self._last_answer_at = now
        return question.audit

    def _sent(self, request: Request, now: float, audit: ShareAudit | None = None) -> Request:
        local = not isinstance(request, ServerRequest)
        reading = HOPELESS_S + request.size / SLOWEST_RATE
        patience = inf if local else ANSWER_LIMIT_S if audit is None else reading
        self._outstanding[request] = _Question(sent_at=now, limit=now + patience, audit=audit)
        return request

    def _gives_up_at(self, request: Request, question: _Question) -> float:
        """When a question is given up: soon, once others of its kind were answered and nothing else is being waited for."""
        slowest_s = self._slowest_s.get(type(request))
        if slowest_s is None or request.server_id is None:
            return question.limit
        if (
            isinstance(request, FindShares | AddLease)
            and request.server_id in self._in_doubt
            and self._only_doubtful_left()
        ):
            return min(question.limit, max(question.sent_at + DOUBTFUL_S, self._last_answer_at + SHORT_PATIENCE_S))
        since = question.sent_at if question.audit is not None else max(question.sent_at, self._last_answer_at)
        return min(question.limit, since + max(GRACE_FLOOR_S, GRACE_FACTOR * slowest_s))

    def _only_doubtful_left(self) -> bool:
        """Whether all servers have said what they hold but those in doubt."""
        questions = [request for request in self._outstanding if isinstance(request, FindShares | AddLease)]
        return all(request.server_id in self._in_doubt for request in questions)

    def _give_up(self, now: float) -> None:
        for request, question in list(self._outstanding.items()):
            if request in self._outstanding and now >= self._gives_up_at(request, question):
                assert request.server_id is not None
                self._withdrawn.append(request)
                self.fail(request, timed_out(request), now)
                self._leave(request.server_id, now)

    def _leave(self, server_id: ServerId, now: float) -> None:
        """Ask a silent server for nothing more: what it holds stays unread."""
        self._silent.add(server_id)
        error = PeerTimeoutError(f"server {server_id} did not answer in time")
        for audit in [audit for audit in self._waiting if audit.server_id == server_id]:
            self._waiting.remove(audit)
            audit.failed(error)
            self._judge(audit, now)

    def _found(self, server_id: ServerId, numbers: frozenset[ShareNumber]) -> None:
        self._claimed[server_id] = numbers
        if self._verifier is not None:
            self._waiting.extend(ShareAudit(server_id, number, self._verifier) for number in sorted(numbers))

    def _tell_bytes(self, now: float) -> None:
        """How many bytes of blocks are verified, of all the shares known so far."""
        geometry = None if self._verifier is None else self._verifier.geometry
        if geometry is None:
            return
        count = sum(audit.bytes_done() for audit in (*self._done, *self._active))
        shares = len(self._done) + len(self._waiting) + len(self._active)
        self._events.append(Event(at=now, what="verified", count=count, total=shares * geometry.data_size))

    def _judge(self, audit: ShareAudit, now: float) -> None:
        if audit.verdict is None:
            self._tell_bytes(now)
            return
        self._active.discard(audit)
        self._done.append(audit)
        total = len(self._done) + len(self._waiting) + len(self._active)
        self._events.append(Event(at=now, what="progress", detail="verifying", count=len(self._done), total=total))
        self._tell_bytes(now)
        if audit.verdict is Verdict.CORRUPT:
            self._reject(audit.server_id, audit.number, audit.reason, now)
