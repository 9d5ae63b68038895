"""The plan that finds room for the shares of one file: which servers have some already, and which take the rest.

Synchronous and pure; drive.py runs it. A server that refuses counts as read-only in the next round. Rounds continue while
something can improve, and a silent server is left behind once the others have answered. If fewer than N of
the first 2N servers can be used, those after them are asked too: however many servers are dead or full, a put
succeeds if there is room for it. [spec placement 3, 4, 6]

Servers that are known to have room are asked for it at once: their answers also say which shares they hold.

Cost: round trips: one per round of allocation, nearly always one, after one for version and share list if a server is not known yet.
Network: one small message to each server that receives shares, one or two to each other of 2N candidates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum

from grid.engine.lateness import Outstanding
from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import Request, ServerRequest
from grid.errors import GridError, NoServersError, NotHappyError
from grid.immutable.share.requests import Allocate, AskVersion, FindShares
from grid.immutable.write.candidates import Candidate, Standing, split_trusted
from grid.immutable.write.sharemap import happiness_message, make_sharemap
from grid.placement.assign import assign
from grid.placement.happiness import happiness
from grid.plural import counted
from grid.ports import Allocation, Event, ServerId, ServerVersion, ShareNumber
from grid.values import define, frozen

ANSWER_LIMIT_S = 15.0
"""How long any server may take to answer a request here. [spec placement 3]"""

GRACE_FLOOR_S = 0.75
GRACE_FACTOR = 4.0
"""A silent server is left behind when it takes longer than this and this many times the slowest answer,
if the others are enough."""

IMPATIENCE_S = 3.0
"""After this long, a silent candidate no longer counts if there are other servers to ask."""


@frozen(kw_only=True)
class Selection:
    """placed: the new shares that each server has allocated. existing: shares that servers say they hold already.
    spares: servers in doubt that were not asked. answer_s: the quickest answer of any server.
    """

    placed: Mapping[ServerId, frozenset[ShareNumber]]
    existing: Mapping[ServerId, frozenset[ShareNumber]]
    happiness: int
    spares: frozenset[ServerId] = frozenset()
    answer_s: float = float("inf")


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
    enough, or once is_in_doubt says that they have answered meanwhile. versions: those known of servers, which need not be asked.
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
        versions: Mapping[ServerId, ServerVersion] | None = None,
    ) -> None:
        super().__init__()
        self._wanted = _Wanted(k=k, n=n, happy=happy, share_size=share_size)
        trusted, spares = split_trusted(server_ids, in_doubt, n=n, happy=happy)
        self._further = _Further(reserve=deque(trusted[2 * n :]), spares=spares, is_in_doubt=is_in_doubt)
        known = versions or {}
        self._candidates = {sid: Candidate(server_id=sid, version=known.get(sid)) for sid in trusted[: 2 * n]}
        self._given = existing is not None
        for server_id, shares in (existing or {}).items():
            holder = Candidate(server_id=server_id, standing=Standing.READ_ONLY, asked=False)
            self._candidates.setdefault(server_id, holder).existing = frozenset(shares)
        if self._given:
            for candidate in self._candidates.values():
                candidate.existing = candidate.existing or frozenset()
        self._phase = _Phase.ASKING
        self._outstanding: Outstanding[ServerRequest] = Outstanding()
        self._started = False
        self._has_placed = False
        self._is_at_once = False
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
            answer_s=self._outstanding.quickest_s,
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
            asked = [candidate for candidate in self._candidates.values() if candidate.asked]
            return self._allocate_at_once(asked, now) or self._ask(asked, now)
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
                self._demote(candidate, Standing.READ_ONLY)
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
        self._demote(candidate, Standing.READ_ONLY if isinstance(request, Allocate) else Standing.BAD)

    def _ask(self, candidates: Sequence[Candidate], now: float) -> list[Request]:
        requests: list[Request] = []
        for candidate in candidates:
            asked: list[ServerRequest] = []
            if self._given or not candidate.has_room(self._wanted.share_size):
                asked.append(AskVersion(server_id=candidate.server_id))
            if not self._given:
                asked.append(FindShares(server_id=candidate.server_id))
            self._outstanding.sent_at.update((request, now) for request in asked)
            requests += asked
        self._outstanding.last_at = now
        return requests

    def _allocate_at_once(self, candidates: Sequence[Candidate], now: float) -> list[Request]:
        """Request room before it is known who holds shares, if enough servers are known to have room; otherwise nothing."""
        wanted = self._wanted
        ready = [candidate.server_id for candidate in candidates if candidate.has_room(wanted.share_size)]
        if self._given or len(ready) < min(wanted.n, len(candidates)):
            return []
        self._phase, self._is_at_once = _Phase.ALLOCATING, True
        placed: dict[ServerId, set[ShareNumber]] = {}
        for share, server_id in assign(ready, [], wanted.n, {}).items():
            placed.setdefault(server_id, set()).add(share)
        requests = self._ask([candidate for candidate in candidates if candidate.server_id not in placed], now)
        return [*(self._allocate(server_id, shares, now) for server_id, shares in placed.items()), *requests]

    def _allocate(self, server_id: ServerId, shares: Collection[ShareNumber], now: float) -> Allocate:
        request = Allocate(
            server_id=server_id,
            wanted=frozenset(shares),
            share_size=self._wanted.share_size,
            share_numbers=tuple(sorted(shares)),
        )
        self._outstanding.sent_at[request] = now
        return request

    def _replace_unusable(self, now: float) -> list[Request]:
        """Ask further servers if too few of the candidates can still be expected to take a share."""
        tardy = {
            request.server_id for request, sent_at in self._outstanding.sent_at.items() if now >= sent_at + IMPATIENCE_S
        }
        usable = sum(
            candidate.standing is Standing.WRITABLE and candidate.server_id not in tardy
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
        drawn: list[Candidate] = []
        while self._further.reserve and len(drawn) < count:
            server_id = self._further.reserve.popleft()
            candidate = self._candidates.setdefault(server_id, Candidate(server_id=server_id))
            candidate.asked, candidate.standing = True, Standing.WRITABLE
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
        if self._is_at_once:
            first, self._is_at_once = self._reconsider(), False
        if not first and (self._complete() or not self._improvable):
            return self._conclude_or_widen(now)
        self._improvable = False
        placement = self._place()
        requests: list[Request] = []
        for candidate in [candidate for candidate in self._counted() if candidate.asked]:
            wanted = frozenset(share for share, server_id in placement.items() if server_id == candidate.server_id)
            wanted -= candidate.allocated
            if not first or candidate.answered_room:  # The first request for room renewed the leases on what it holds.
                wanted -= candidate.existing or frozenset()
            candidate.allocated |= wanted & candidate.granted
            wanted -= candidate.allocated
            is_read_only = candidate.standing is Standing.READ_ONLY
            if wanted or (first and is_read_only and candidate.existing and not candidate.answered_room):
                requests.append(self._allocate(candidate.server_id, wanted, now))
        return requests or self._conclude_or_widen(now)

    def _reconsider(self) -> bool:
        """If servers that were asked for room at once hold shares, place everything anew: use only what fits to those."""
        if not any(candidate.existing for candidate in self._counted()):
            return False
        for candidate in self._candidates.values():
            candidate.allocated.clear()
        return True

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
            [server_id for server_id, what in standing.items() if what is Standing.WRITABLE],
            [server_id for server_id, what in standing.items() if what is Standing.READ_ONLY],
            self._wanted.n,
            holdings,
        )

    def _take_allocation(self, candidate: Candidate, request: Allocate, answer: Allocation) -> None:
        allocated = answer.upload.share_numbers & request.wanted
        for other in self._candidates.values():
            # The share was allocated twice. The server with other shares keeps it; the unwritten copy is aborted at the end.
            twice = other.allocated & allocated
            other.allocated -= twice if len(other.allocated) > len(twice) else set()
        elsewhere = {share for other in self._candidates.values() for share in other.allocated}
        candidate.allocated |= allocated - elsewhere
        candidate.granted |= allocated
        candidate.answered_room = True
        already = frozenset(number for number in answer.already if 0 <= number < self._wanted.n)
        if not self._given:
            candidate.existing = (candidate.existing or frozenset()) | already
        if request.wanted - allocated - already:
            self._demote(candidate, Standing.READ_ONLY)
        elif self._given and request.wanted & already - (candidate.existing or frozenset()):
            # It claims a share that was found bad there, so the number must go to another server.
            self._demote(candidate, Standing.READ_ONLY)

    def _demote(self, candidate: Candidate, standing: Standing) -> None:
        if candidate.standing is not Standing.BAD and candidate.standing is not standing:
            candidate.standing = standing
            self._improvable = True
            if standing is Standing.BAD:
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
            error = NotHappyError(message + reason, causes=self._causes, reached=reached, happy=self._wanted.happy)
            self._fail(error)

    def without_room(self) -> list[ServerId]:
        """The servers that were asked and are not bad, but took no new share."""
        size = self._wanted.share_size
        return [
            each.server_id
            for each in self._counted()
            if each.asked and not each.allocated
            if each.standing is Standing.READ_ONLY or (each.version is not None and not each.has_room(size))
        ]

    def _fail(self, error: GridError) -> None:
        self._stop(error)
        self._phase = _Phase.DONE

    def _sharemap(self) -> dict[ShareNumber, set[ServerId]]:
        return make_sharemap((candidate.server_id, candidate.held) for candidate in self._counted())

    def _counted(self) -> list[Candidate]:
        return [candidate for candidate in self._candidates.values() if candidate.standing is not Standing.BAD]

    def _happiness(self) -> int:
        return happiness(self._sharemap())

    def _enough_without_silent(self) -> bool:
        """Whether the servers that have answered can carry the file without the silent ones."""
        silent = {request.server_id for request in self._outstanding.sent_at}
        others = [c for c in self._candidates.values() if c.server_id not in silent]
        if self._phase is _Phase.ASKING:
            usable = sum(1 for c in others if c.known and c.standing is Standing.WRITABLE)
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
                self._demote(candidate, Standing.BAD)
