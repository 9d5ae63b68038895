"""The plan of a check: ask every server what it holds and, on request, verify every byte of every share.

Synchronous and pure; drive.py runs it. A silent server delays a check by about a second, depending on how long the
others take, and the result names it.
[spec placement 9.1; immutable 15]

Cost: round trips: one per server (two with a lease), and one more for shares that a server lists without saying whether its disk
gives them. Verifying adds the cost in audit.py, for a few shares at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf

from grid.engine.audit_queue import AuditQueue
from grid.engine.lateness import DOUBT_FACTOR, DOUBTFUL_S, HOPELESS_S, SLOWEST_RATE
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import UNREAD, AddLease, AdviseCorrupt, Compute, Request, ServerRequest
from grid.engine.server_memory import SHORT_PATIENCE_S
from grid.errors import DamagedFileError, GridError, PeerTimeoutError
from grid.immutable.read.held_share import well_founded
from grid.immutable.share.audit import ShareAudit, Verdict
from grid.immutable.share.requests import FindShares, ReadShares
from grid.immutable.share.verify import FileVerifier
from grid.ports import Buffer, Range, ServerId, ShareNumber
from grid.values import define, field, frozen

ANSWER_LIMIT_S = 15.0
"""How long a server may take to list its shares, however fast the others are."""

GRACE_FLOOR_S = 0.8
GRACE_FACTOR = 6.0
"""Once others have answered, a silent server gets this long, or this many times the slowest answer. While shares are
verified, the time counts from its own request."""


NOTHING_OF_IT: Range = (0, 0)
"""What a check asks of each share: no byte, which the answer has of every share that the server's disk gives."""

FIRST_BYTE: Range = (0, 1)


@frozen(kw_only=True)
class Findings:
    """responding: servers that answered. claimed: the shares they say they hold. audits: by (server, share), if verified.

    unread: shares that servers hold and their disks do not give, with reasons; none if shares are verified. silent: servers
    that were given up because they did not answer in time, during the listing or the verification.
    """

    responding: frozenset[ServerId]
    claimed: Mapping[ServerId, frozenset[ShareNumber]]
    audits: Mapping[tuple[ServerId, ShareNumber], tuple[Verdict, str]]
    unread: Mapping[tuple[ServerId, ShareNumber], str]
    silent: frozenset[ServerId]
    errors: Sequence[GridError]


@define(eq=False)
class _Listed:
    """What servers list; see Findings."""

    claimed: dict[ServerId, frozenset[ShareNumber]] = field(factory=dict)
    unread: dict[tuple[ServerId, ShareNumber], str] = field(factory=dict)


@define(kw_only=True, eq=False)
class _Pending:
    """One outstanding request, and the share that it helps verify, if any."""

    sent_at: float
    limit: float
    audit: ShareAudit | None


class CheckPlan(PlanBase):
    """verifier: what shares are verified against; None: only list shares. in_doubt: servers that were silent lately."""

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
        self._to_ask: list[Request] = []
        for server_id in server_ids:
            self._to_ask += [AddLease(server_id=server_id)] if add_lease else []
            ranges = (NOTHING_OF_IT,) if verifier is None else ()
            self._to_ask.append(FindShares(server_id=server_id, ranges=ranges))
        self._outstanding: dict[Request, _Pending] = {}
        self._silent: set[ServerId] = set()
        self._slowest_s: dict[type[Request], float] = {}
        self._last_answer_at = 0.0
        self._listed = _Listed()
        self._audits: AuditQueue[ShareAudit] = AuditQueue()
        self._errors: list[GridError] = []

    def _is_done(self) -> bool:
        return not (self._to_ask or self._outstanding or self._audits or well_founded(self._outbox, self._verifier))

    def result(self) -> Findings:
        """The findings; DamagedFileError if the file's proven parts contradict each other."""
        self._raise_error()
        return Findings(
            responding=frozenset(self._listed.claimed),
            claimed=self._listed.claimed,
            unread=self._listed.unread,
            audits={(a.server_id, a.number): (a.verdict or Verdict.UNREADABLE, a.reason) for a in self._audits.done},
            silent=frozenset(self._silent),
            errors=self._errors,
        )

    def wake_at(self) -> float | None:
        """When to give up on the next unanswered request."""
        times = [self._gives_up_at(request, question) for request, question in self._outstanding.items()]
        return min((at for at in times if at != inf), default=None)

    def advance(self, now: float) -> Sequence[Request]:
        """The requests to send now."""
        if self._error is not None:
            return []
        self._give_up(now)
        requests = self._take_outbox()
        requests += [self._sent(request, now) for request in self._to_ask]
        self._to_ask = []
        requests += [self._sent(audit.next_request(), now, audit) for audit in self._audits.to_step()]
        return requests

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take share lists, bytes, and results of pool jobs."""
        if isinstance(request, AdviseCorrupt):
            return
        audit = self._take(request, now)
        if isinstance(request, FindShares):
            assert isinstance(answer, Mapping)
            self._found(request.server_id, {number: answer[number] for number in answer if 0 <= number < self._n})
        elif isinstance(request, ReadShares) and audit is None:
            assert isinstance(answer, Mapping)
            self._looked_at(request, answer)
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
        """Note the failure of a server and of its shares."""
        if isinstance(request, AdviseCorrupt):
            return
        audit = self._outstanding.pop(request).audit
        self._errors.append(error)
        if audit is not None:
            audit.failed(error)
            self._judge(audit, now)

    def _take_outbox(self) -> list[Request]:
        """The corruption reports to send now, except those that may be the capability's fault."""
        taken = well_founded(self._outbox, self._verifier)
        self._outbox[:] = [report for report in self._outbox if report not in taken]
        return taken

    def _take(self, request: Request, now: float) -> ShareAudit | None:
        """The share that an answered request helps verify, if any. Notes how long the answer took."""
        question = self._outstanding.pop(request)
        if request.server_id is not None:
            kind, elapsed_s = type(request), now - question.sent_at
            if not self._is_slow_read(request, question):
                self._slowest_s[kind] = max(self._slowest_s.get(kind, 0.0), elapsed_s)
            self._last_answer_at = now
        return question.audit

    def _is_slow_read(self, request: Request, question: _Pending) -> bool:
        """Whether a server in doubt is sending share bytes; its time says nothing about others."""
        return question.audit is not None and request.server_id in self._in_doubt

    def _sent(self, request: Request, now: float, audit: ShareAudit | None = None) -> Request:
        local = not isinstance(request, ServerRequest)
        reading = HOPELESS_S + request.size / SLOWEST_RATE
        patience = inf if local else ANSWER_LIMIT_S if audit is None else reading
        self._outstanding[request] = _Pending(sent_at=now, limit=now + patience, audit=audit)
        return request

    def _gives_up_at(self, request: Request, question: _Pending) -> float:
        """When to give up on a request: soon, if others of its kind were answered and nothing else is outstanding."""
        slowest_s = self._slowest_s.get(type(request))
        if slowest_s is None or request.server_id is None:
            return question.limit
        if (
            isinstance(request, FindShares | AddLease)
            and request.server_id in self._in_doubt
            and self._only_doubtful_left()
        ):
            return min(question.limit, max(question.sent_at + DOUBTFUL_S, self._last_answer_at + SHORT_PATIENCE_S))
        if self._is_slow_read(request, question):
            return min(question.limit, question.sent_at + max(DOUBTFUL_S, DOUBT_FACTOR * slowest_s))
        since = question.sent_at if question.audit is not None else max(question.sent_at, self._last_answer_at)
        return min(question.limit, since + max(GRACE_FLOOR_S, GRACE_FACTOR * slowest_s))

    def _only_doubtful_left(self) -> bool:
        """Whether every server except those in doubt has listed its shares."""
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
        """Send a silent server nothing more; its shares stay unverified."""
        self._silent.add(server_id)
        error = PeerTimeoutError(f"server {server_id} did not answer in time")
        for audit in self._audits.take_waiting(lambda audit: audit.server_id == server_id):
            audit.failed(error)
            self._judge(audit, now)

    def _found(self, server_id: ServerId, held: Mapping[ShareNumber, Sequence[Buffer]]) -> None:
        numbers = frozenset(held)
        if self._verifier is not None:
            self._audits.add(ShareAudit(server_id, number, self._verifier) for number in sorted(numbers))
        else:
            # Of these the disk gives nothing, or there was no room for them in the answer.
            unsure = {number: [FIRST_BYTE] for number in sorted(numbers) if not held[number]}
            numbers -= unsure.keys()
            if unsure:
                self._to_ask.append(ReadShares(server_id=server_id, wants=unsure, size=len(unsure)))
        self._listed.claimed[server_id] = numbers

    def _looked_at(self, request: ReadShares, answer: Mapping[ShareNumber, Sequence[Buffer]]) -> None:
        """Count the shares whose first byte has come."""
        server_id = request.server_id
        for number in request.wants.keys() & answer.keys():
            if answer[number]:
                self._listed.claimed[server_id] |= {number}
            else:
                self._listed.unread[server_id, number] = UNREAD

    def _judge(self, audit: ShareAudit, now: float) -> None:
        self._events.extend(self._audits.stepped(audit, now))
        if audit.verdict is Verdict.CORRUPT:
            self._reject(audit.server_id, audit.number, audit.reason, now)
