"""The plan that stores whole shares of a small file with one message to each server.

Synchronous and pure; drive.py runs it. It handles the simple case: every share ends up on some server, stored now or
held before, and enough servers hold one of their own. A server stores what it is sent only if it held no share of the
file before; otherwise it names those it holds, and they count. Everything else is left to the full plans
(select_plan.py, put_plan.py), which then find what was stored here.
[spec placement 4, 5]

Cost: round trips: one; two if the shares are too large to send in vain, or if servers ask for room first. CPU: negligible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from grid.engine.lateness import Outstanding
from grid.engine.plan import PlanBase
from grid.engine.requests import Request, ServerRequest
from grid.errors import GridError
from grid.immutable.share.requests import FindShares, StoreShares
from grid.placement.happiness import happiness
from grid.ports import Buffer, Event, ServerId, ShareNumber, StoreAnswer
from grid.values import field, frozen

ANSWER_LIMIT_S = 15.0
"""How long any server may take."""

GRACE_FLOOR_S = 0.75
GRACE_FACTOR = 8.0
"""Once half of the servers have answered, the others get this long, and this many times the slowest answer."""

Shares = Mapping[ShareNumber, Sequence[Buffer]]


class _Phase(Enum):
    START = "start"
    FINDING = "finding"
    STORING = "storing"
    DONE = "done"


@frozen(kw_only=True)
class Stored:
    """stored: the new shares of each server. sharemap: those, plus the shares that servers said they held before.

    is_enough: every share is on some server, and as many servers as required each hold one of their own.
    """

    stored: Mapping[ServerId, frozenset[ShareNumber]] = field(factory=dict)
    sharemap: Mapping[ShareNumber, frozenset[ServerId]] = field(factory=dict)
    happiness: int = 0
    is_enough: bool = False


class StorePlan(PlanBase):
    """Stores on each server the shares placed on it. The plan never fails, but it may store too little."""

    def __init__(self, placed: Mapping[ServerId, Shares], *, n: int, happy: int, size: int, ask_first: int) -> None:
        """size: bytes of the file, for observers. ask_first: how many servers to ask first which shares they hold."""
        super().__init__()
        self._placed = placed
        self._n = n
        self._happy = happy
        self._size = size
        self._ask_first = ask_first
        self._phase = _Phase.START
        self._outstanding: Outstanding[ServerRequest] = Outstanding()
        self._asked_count = 0
        self._hopeless = False
        self._stored: dict[ServerId, frozenset[ShareNumber]] = {}
        self._held: dict[ServerId, frozenset[ShareNumber]] = {}

    def _is_done(self) -> bool:
        return self._phase is _Phase.DONE

    def result(self) -> Stored:
        """The shares stored and found."""
        sharemap: dict[ShareNumber, set[ServerId]] = {}
        for held in (self._stored, self._held):
            for server_id, shares in held.items():
                for share in shares:
                    sharemap.setdefault(share, set()).add(server_id)
        reached = happiness(sharemap)
        return Stored(
            stored=self._stored,
            sharemap={share: frozenset(holders) for share, holders in sharemap.items()},
            happiness=reached,
            is_enough=len(sharemap) == self._n and reached >= self._happy,
        )

    def wake_at(self) -> float | None:
        """When to look at the silent servers."""
        if not self._outstanding:
            return None
        limit = min(self._outstanding.sent_at.values()) + ANSWER_LIMIT_S
        return min(limit, self._outstanding.grace_ends(GRACE_FLOOR_S, GRACE_FACTOR)) if self._half_answered() else limit

    def advance(self, now: float) -> Sequence[Request]:
        """The questions and shares to send now."""
        self._leave_silent_behind(now)
        if self._outstanding or self.finished:
            return []
        match self._phase:
            case _Phase.START if self._ask_first:
                self._phase = _Phase.FINDING
                self._events.append(Event(at=now, what="phase", detail="placing"))
                asked = list(self._placed)[: self._ask_first]
                return self._send([FindShares(server_id=server_id) for server_id in asked], now)
            case _Phase.START | _Phase.FINDING if not self._hopeless:
                self._phase = _Phase.STORING
                self._events.append(Event(at=now, what="phase", detail="pushing", total=self._size))
                return self._send([self._store(server_id) for server_id in self._placed], now)
            case _:
                self._phase = _Phase.DONE
                return []

    def answer(self, request: Request, answer: object, now: float) -> None:
        """Take a share list, or the outcome of a store."""
        assert isinstance(request, ServerRequest)
        self._outstanding.answered(request, now)
        if isinstance(answer, StoreAnswer):
            if answer.stored:
                self._stored[request.server_id] = frozenset(self._placed[request.server_id])
            else:
                self._held[request.server_id] = frozenset(share for share in answer.already if share < self._n)
            if not self._outstanding:
                self._events.append(Event(at=now, what="progress", count=self._size, total=self._size))
        elif answer:
            self._hopeless = True

    def fail(self, request: Request, error: GridError, now: float) -> None:
        """Leave a failed server to the other plans."""
        assert isinstance(request, ServerRequest)
        self._outstanding.failed(request, now)
        self._hopeless = True

    def _store(self, server_id: ServerId) -> StoreShares:
        shares = self._placed[server_id]
        size = sum(len(piece) for pieces in shares.values() for piece in pieces)
        return StoreShares(server_id=server_id, shares=shares, size=size, share_numbers=tuple(shares))

    def _send(self, requests: Sequence[ServerRequest], now: float) -> Sequence[Request]:
        self._outstanding.sent_at = dict.fromkeys(requests, now)
        self._asked_count = len(requests)
        self._outstanding.last_at = now
        return requests

    def _half_answered(self) -> bool:
        return 2 * len(self._outstanding.sent_at) <= self._asked_count

    def _leave_silent_behind(self, now: float) -> None:
        over = self._half_answered() and now >= self._outstanding.grace_ends(GRACE_FLOOR_S, GRACE_FACTOR)
        for request, sent_at in list(self._outstanding.sent_at.items()):
            if over or now >= sent_at + ANSWER_LIMIT_S:
                del self._outstanding.sent_at[request]
                self._withdrawn.append(request)
                self._hopeless = True
