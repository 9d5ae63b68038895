"""The plan that finds room for the shares of one file: which servers have some already, and which take the rest.

Synchronous and pure; drive.py runs it. A server that refuses counts as read-only in the next round. Rounds continue while
something can improve, and a silent server is left behind once the others have answered. If fewer than N of
the first 2N servers can be used, those after them are asked too: however many servers are dead or full, a put
succeeds if there is room for it. [spec placement 3, 4, 6]

Cost: round trips: one for version and share list, then one per round of allocation, nearly always one.
Network: two small messages to each of 2N candidates, one to each server that receives shares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum

from attrs import define, field, frozen

from grid.engine.lateness import Outstanding
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import Request, ServerRequest
from grid.errors import GridError, NoServersError, NotHappyError
from grid.immutable.share.requests import Allocate, AskVersion, FindShares
from grid.immutable.write.sharemap import happiness_message, make_sharemap
from grid.placement.assign import assign
from grid.placement.happiness import happiness
from grid.plural import counted
from grid.ports import Allocation, Event, ServerId, ServerVersion, ShareNumber

ANSWER_LIMIT_S = 15.0
"""How long any server may take to answer a request here. [spec placement 3]"""

GRACE_FLOOR_S = 0.75
GRACE_FACTOR = 4.0
"""A silent server is left behind when it takes longer than this and this many times the slowest answer,
if the others are enough."""

IMPATIENCE_S = 3.0
"""After this long, a silent candidate no longer counts if there are other servers to ask."""


class _Standing(Enum):
    WRITABLE = "writable"
    READ_ONLY = "read-only"
    BAD = "bad"


@define(kw_only=True, eq=False)
class _Candidate:
    """asked: whether it may be asked for anything. Of other servers only their shares are known."""

    server_id: ServerId
    standing: _Standing = _Standing.WRITABLE
    asked: bool = True
    version: ServerVersion | None = None
    existing: frozenset[ShareNumber] | None = None
    allocated: set[ShareNumber] = field(factory=set)

    @property
    def known(self) -> bool:
        return self.version is not None and self.existing is not None

    @property
    def held(self) -> frozenset[ShareNumber]:
        """The shares that it has or has room for."""
        return (self.existing or frozenset()) | self.allocated


@frozen(kw_only=True)
class Selection:
    """placed: the new shares that each server has allocated. existing: shares that servers say they hold already.

    spares: servers in doubt that were not asked.
    """

    placed: Mapping[ServerId, frozenset[ShareNumber]]
    existing: Mapping[ServerId, frozenset[ShareNumber]]
    happiness: int
    spares: frozenset[ServerId] = frozenset()


class _Phase(Enum):
    ASKING = "asking"
    ALLOCATING = "allocating"
    DONE = "done"


@frozen(kw_only=True)
class _Wanted:
    """What to place; see SelectPlan."""

    k: int
    n: int
    happy: int
    share_size: int


@define(kw_only=True, eq=False)
class _Further:
    """The servers after the candidates. reserve: asked next. spares: in doubt, asked if all others are not enough."""

    reserve: deque[ServerId]
    spares: list[ServerId]
    is_in_doubt: Callable[[ServerId], bool]

    def call_on(self, called: Collection[ServerId]) -> None:
        """Move these servers from the spares to the end of the reserve."""
        self.reserve.extend(called)
        self.spares = [server_id for server_id in self.spares if server_id not in called]


class SelectPlan(PlanBase):
    """Places shares 0..n-1 of share_size bytes each so that `happy` servers each hold one of their own.

    existing: the shares that count, by server, if known already (in a repair). Then servers are not
    asked for their lists, and other shares they claim do not count. Shares on servers that are not
    candidates count too. in_doubt: servers that were silent lately; they are asked only if the others are not
    enough, or once is_in_doubt says that they have answered meanwhile.
    """

    def __init__(
        self,
        server_ids: Sequence[ServerId],
        *,
        in_doubt: Collection[ServerId] = (),
        is_in_doubt: Callable[[ServerId], bool] = lambda _: True,
        k: int,
        n: int,
        happy: int,
        share_size: int,
        existing: Mapping[ServerId, Collection[ShareNumber]] | None = None,
    ) -> None:
        super().__init__()
        self._wanted = _Wanted(k=k, n=n, happy=happy, share_size=share_size)
        trusted, spares = split_trusted(server_ids, in_doubt, n=n, happy=happy)
        self._further = _Further(reserve=deque(trusted[2 * n :]), spares=spares, is_in_doubt=is_in_doubt)
        self._candidates = {server_id: _Candidate(server_id=server_id) for server_id in trusted[: 2 * n]}
        self._given = existing is not None
        for server_id, shares in (existing or {}).items():
            holder = _Candidate(server_id=server_id, standing=_Standing.READ_ONLY, asked=False)
            self._candidates.setdefault(server_id, holder).existing = frozenset(shares)
        if self._given:
            for candidate in self._candidates.values():
                candidate.existing = candidate.existing or frozenset()
        self._phase = _Phase.ASKING
        self._outstanding: Outstanding[ServerRequest] = Outstanding()
        self._started = False
        self._has_placed = False
        self._looked_at = float("-inf")
        self._improvable = False
        self._causes: list[GridError] = []

    def _is_done(self) -> bool:
        return self._phase is _Phase.DONE

    def result(self) -> Selection:
        """The placement; NoServersError or NotHappyError if it is not good enough (then abort what is allocated)."""
        self._raise_error()
        return Selection(
            placed={c.server_id: frozenset(c.allocated) for c in self._counted() if c.allocated},
            existing={c.server_id: c.existing for c in self._counted() if c.existing},
            happiness=self._happiness(),
            spares=frozenset(self._further.spares),
        )

    def wake_at(self) -> float | None:
        """When to look at silent servers again."""
        if not self._outstanding:
            return None
        times = [min(self._outstanding.sent_at.values()) + ANSWER_LIMIT_S]
        if self._enough_without_silent():
            times.append(self._outstanding.grace_ends(GRACE_FLOOR_S, GRACE_FACTOR))
        if (self._further.reserve or self._further.spares) and self._phase is _Phase.ASKING:
            due = (sent_at + IMPATIENCE_S for sent_at in self._outstanding.sent_at.values())
            times += [at for at in due if at > self._looked_at]
        return min(times)

    def advance(self, now: float) -> Sequence[Request]:
        """The requests to send now."""
        if not self._started:
            self._started = True
            if not any(candidate.asked for candidate in self._candidates.values()):
                self._fail(NoServersError("there is no server to upload to; is the introducer reachable?"))
                return []
            self._events.append(Event(at=now, what="phase", detail="placing"))
            return self._ask([candidate for candidate in self._candidates.values() if candidate.asked], now)
        self._leave_silent_behind(now)
        self._looked_at = now
        drawn = self._replace_unusable(now) if self._phase is _Phase.ASKING else []
        if drawn or self._outstanding or self.finished:
            return drawn
        return self._next_round(now)

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take a version, a share list, or an allocation."""
        assert isinstance(request, ServerRequest)
        self._outstanding.answered(request, now)
        candidate = self._candidates[request.server_id]
        if isinstance(answer, ServerVersion):
            candidate.version = answer
            if answer.maximum_immutable_share_size < self._wanted.share_size:
                self._demote(candidate, _Standing.READ_ONLY)
        elif isinstance(answer, Allocation):
            assert isinstance(request, Allocate)
            self._take_allocation(candidate, request, answer)
        elif isinstance(answer, Mapping):
            candidate.existing = frozenset(number for number in answer if 0 <= number < self._wanted.n)

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """A server that fails a question is not used. One that fails an allocation keeps the shares it holds."""
        assert isinstance(request, ServerRequest)
        self._outstanding.failed(request, now)
        self._causes.append(error)
        candidate = self._candidates[request.server_id]
        self._demote(candidate, _Standing.READ_ONLY if isinstance(request, Allocate) else _Standing.BAD)

    def _ask(self, candidates: Sequence[_Candidate], now: float) -> list[Request]:
        requests: list[Request] = []
        for candidate in candidates:
            asked: list[ServerRequest] = [AskVersion(server_id=candidate.server_id)]
            if not self._given:
                asked.append(FindShares(server_id=candidate.server_id))
            self._outstanding.sent_at.update((request, now) for request in asked)
            requests += asked
        self._outstanding.last_at = now
        return requests

    def _replace_unusable(self, now: float) -> list[Request]:
        """Ask further servers if too few of the candidates can still be expected to take a share."""
        tardy = {
            request.server_id for request, sent_at in self._outstanding.sent_at.items() if now >= sent_at + IMPATIENCE_S
        }
        usable = sum(
            candidate.standing is _Standing.WRITABLE and candidate.server_id not in tardy
            for candidate in self._candidates.values()
        )
        if usable < self._wanted.happy:
            self._further.call_on(self._further.spares)
        self._further.call_on(
            [server_id for server_id in self._further.spares if not self._further.is_in_doubt(server_id)]
        )
        return self._draw(2 * (self._wanted.n - usable), now)

    def _draw(self, count: int, now: float) -> list[Request]:
        """Turn `count` further servers into candidates, and ask them."""
        drawn: list[_Candidate] = []
        while self._further.reserve and len(drawn) < count:
            server_id = self._further.reserve.popleft()
            candidate = self._candidates.setdefault(server_id, _Candidate(server_id=server_id))
            candidate.asked, candidate.standing = True, _Standing.WRITABLE
            if self._given:
                candidate.existing = candidate.existing or frozenset()
            drawn.append(candidate)
        return self._ask(drawn, now) if drawn else []

    def _next_round(self, now: float) -> list[Request]:
        """Place the shares by what is known, and request what is new in that placement. Ends if nothing is new."""
        first, self._has_placed, self._phase = not self._has_placed, True, _Phase.ALLOCATING
        if not self._counted():
            cause = f": {self._causes[-1]}" if self._causes else ""
            self._fail(NoServersError(f"none of {counted(len(self._candidates), 'server')} could be reached{cause}"))
            return []
        if not first and (self._complete() or not self._improvable):
            return self._conclude_or_widen(now)
        self._improvable = False
        placement = self._place()
        requests: list[Request] = []
        for candidate in [candidate for candidate in self._counted() if candidate.asked]:
            wanted = frozenset(share for share, server_id in placement.items() if server_id == candidate.server_id)
            wanted -= candidate.allocated
            if not first:  # The first round asked it to renew the leases on what it holds.
                wanted -= candidate.existing or frozenset()
            renew = first and candidate.standing is _Standing.READ_ONLY and candidate.existing
            if not (wanted or renew):
                continue
            request = Allocate(
                server_id=candidate.server_id,
                wanted=wanted,
                share_size=self._wanted.share_size,
                share_numbers=tuple(sorted(wanted)),
            )
            self._outstanding.sent_at[request] = now
            requests.append(request)
        return requests or self._conclude_or_widen(now)

    def _conclude_or_widen(self, now: float) -> list[Request]:
        """End, or continue with the servers after the candidates if the candidates could not take everything."""
        if not self._complete():
            self._further.call_on(self._further.spares)
        if self._further.reserve and not self._complete():
            self._phase, self._improvable = _Phase.ASKING, True
            return self._draw(2 * self._wanted.n, now)
        self._conclude()
        return []

    def _place(self) -> dict[ShareNumber, ServerId]:
        holdings = {c.server_id: (c.existing or frozenset()) | c.allocated for c in self._candidates.values()}
        standing = {c.server_id: c.standing for c in self._candidates.values()}
        return assign(
            [server_id for server_id, what in standing.items() if what is _Standing.WRITABLE],
            [server_id for server_id, what in standing.items() if what is _Standing.READ_ONLY],
            self._wanted.n,
            holdings,
        )

    def _take_allocation(self, candidate: _Candidate, request: Allocate, answer: Allocation) -> None:
        allocated = answer.upload.share_numbers & request.wanted
        for other in self._candidates.values():
            # The share was allocated twice. The server with other shares keeps it; the unwritten copy is aborted at the end.
            twice = other.allocated & allocated
            other.allocated -= twice if len(other.allocated) > len(twice) else set()
        elsewhere = {share for other in self._candidates.values() for share in other.allocated}
        candidate.allocated |= allocated - elsewhere
        already = frozenset(number for number in answer.already if 0 <= number < self._wanted.n)
        if not self._given:
            candidate.existing = (candidate.existing or frozenset()) | already
        if request.wanted - allocated - already:
            self._demote(candidate, _Standing.READ_ONLY)
        elif self._given and request.wanted & already - (candidate.existing or frozenset()):
            # It claims a share that was found bad there, so the number must go to another server.
            self._demote(candidate, _Standing.READ_ONLY)

    def _demote(self, candidate: _Candidate, standing: _Standing) -> None:
        if candidate.standing is not _Standing.BAD and candidate.standing is not standing:
            candidate.standing = standing
            self._improvable = True
            if standing is _Standing.BAD:
                candidate.allocated.clear()

    def _complete(self) -> bool:
        return len(self._sharemap()) == self._wanted.n and self._happiness() >= self._wanted.happy

    def _conclude(self) -> None:
        self._phase = _Phase.DONE
        sharemap = self._sharemap()
        reached = self._happiness()
        if reached < self._wanted.happy or len(sharemap) < self._wanted.k:
            message = happiness_message(sharemap, self._wanted.k, self._wanted.happy)
            reason = f" ({self._causes[-1]})" if self._causes else ""
            self._fail(NotHappyError(message + reason, causes=self._causes, reached=reached, happy=self._wanted.happy))

    def _fail(self, error: GridError) -> None:
        self._stop(error)
        self._phase = _Phase.DONE

    def _sharemap(self) -> dict[ShareNumber, set[ServerId]]:
        return make_sharemap((candidate.server_id, candidate.held) for candidate in self._counted())

    def _counted(self) -> list[_Candidate]:
        return [candidate for candidate in self._candidates.values() if candidate.standing is not _Standing.BAD]

    def _happiness(self) -> int:
        return happiness(self._sharemap())

    def _enough_without_silent(self) -> bool:
        """Whether the servers that have answered can carry the file without the silent ones."""
        silent = {request.server_id for request in self._outstanding.sent_at}
        others = [c for c in self._candidates.values() if c.server_id not in silent]
        if self._phase is _Phase.ASKING:
            usable = sum(1 for c in others if c.known and c.standing is _Standing.WRITABLE)
            return usable >= max(1, self._wanted.happy)
        sharemap = make_sharemap((candidate.server_id, candidate.held) for candidate in others)
        return happiness(sharemap) >= self._wanted.happy and len(sharemap) >= self._wanted.k

    def _leave_silent_behind(self, now: float) -> None:
        enough = (
            bool(self._outstanding)
            and self._enough_without_silent()
            and now >= self._outstanding.grace_ends(GRACE_FLOOR_S, GRACE_FACTOR)
        )
        for request, sent_at in list(self._outstanding.sent_at.items()):
            if enough or now >= sent_at + ANSWER_LIMIT_S:
                self._withdrawn.append(request)
                self.fail(request, timed_out(request), now)
                candidate = self._candidates[request.server_id]
                self._demote(candidate, _Standing.BAD)


def split_trusted(
    server_ids: Sequence[ServerId], in_doubt: Collection[ServerId], *, n: int, happy: int
) -> tuple[list[ServerId], list[ServerId]]:
    """Split the servers into those to place n shares on, and those in doubt to avoid. Avoids none if too few others are left.

    `happy` servers are enough, as is half the number that could hold a share each.
    """
    trusted = [server_id for server_id in server_ids if server_id not in in_doubt]
    spares = [server_id for server_id in server_ids if server_id in in_doubt]
    if len(trusted) < max(happy, -(-min(n, len(server_ids)) // 2)):
        return [*trusted, *spares], []
    return trusted, spares
