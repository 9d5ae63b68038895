"""How long a map of versions waits for silent servers; see docs/decisions/0150-newness-of-mutable-files.md.

Pure; part of the map plan. It knows which server was asked when, and nothing of shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from grid.engine.lateness import PendingRead, ServerLoad, ServerLoads
from grid.engine.server_memory import SHORT_PATIENCE_S
from grid.mutable.read.layout_cache import FIRST_READ
from grid.mutable.share.requests import ReadFronts, ReadSlot
from grid.mutable.share.versions import CandidateShare
from grid.ports import ServerId
from grid.values import define, field

ANSWER_LIMIT_S = 15.0
"""How long a server may take to list its shares if nothing can be read without it."""

HONEST_SLOW_S = 4.0
HONEST_FACTOR = 4.0
"""How long an honest server may take that is slow or far away, and how many times its usual time."""

KNOWN_FLOOR_S = 1.0
KNOWN_FACTOR = 6.0
KNOWN_SLOWEST_FACTOR = 3.0
"""How long a server of known speed may take that could hide a newer version: at least this, this many times its usual time, since
connecting takes three round trips, and this many times its slowest recent answer; no longer than an unknown server."""

GRACE_FLOOR_S = 0.5
GRACE_FACTOR = 4.0
"""A silent server that cannot matter is left behind after this, and after this many times the slowest answer."""

DOUBTFUL_S = 0.8 * SHORT_PATIENCE_S
DOUBTFUL_CHECK_S = 0.9
"""The same for a server that was silent lately, counted from the last answer of another server or, in a check, from the request."""

UNREACHED_S = 1.6
UNREACHED_AGAIN_S = 0.1
"""From when on, and how often, to look whether a silent server was reached at all. The transports know after 1.5 s."""

EARLY_RATE = 64e3
EARLY_FACTOR = 8.0
"""Bytes per second assumed for what is requested early from a server of unknown rate, and how many times longer than usual it may take
from another; the wait is longer by that much."""


class Stake(Enum):
    """What the silent servers may still change."""

    EVERYTHING = "no version can be read yet, or one is known that is newer than all that are seen"
    NEWNESS = "enough servers keep silent to hide a newer version"
    MAJORITY = "they are most servers, and a change would be made without them"
    FEW = "few servers were asked, and all of them must answer"
    HEALTH = "the result names what they hold"
    NOTHING = "they cannot hide a version"


@define(kw_only=True, eq=False)
class PendingQuestion:
    """One request to a server. candidates: the shares that it asks more of; none in the first request."""

    server_id: ServerId
    watch: PendingRead[ServerLoad]
    early_s: float = 0.0
    candidates: Sequence[CandidateShare] = ()


@define(kw_only=True, eq=False)
class Waiting:
    """The requests that are not answered yet."""

    _loads: ServerLoads
    _questions: dict[ReadSlot, PendingQuestion] = field(factory=dict)
    _slowest_s: float = 0.0
    _last_answer_at: float = 0.0
    _looked_at: float = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._questions)

    @property
    def server_ids(self) -> set[ServerId]:
        """The servers that have not answered."""
        return {question.server_id for question in self._questions.values()}

    @property
    def for_early_bytes(self) -> bool:
        """Whether any of them also fetches more than fronts, which a read would otherwise have to request from another server."""
        return any(question.early_s for question in self._questions.values())

    def ask(self, request: ReadSlot, candidates: Sequence[CandidateShare], now: float) -> None:
        """Note that a request was sent."""
        server_id = request.server_id
        watch = self._loads.ask(server_id, request.size, now, type(request))
        is_front = isinstance(request, ReadFronts)
        early_bytes = max(0, request.size - FIRST_READ) if is_front and not watch.is_doubtful else 0
        latency = watch.load.latency
        byte_s = min(1 / EARLY_RATE, EARLY_FACTOR * latency.byte_s) if latency.rate_known else 1 / EARLY_RATE
        self._questions[request] = PendingQuestion(
            server_id=server_id,
            watch=watch,
            early_s=early_bytes * byte_s,
            candidates=candidates,
        )
        if is_front:
            self._last_answer_at = now

    def is_doubtful(self, server_id: ServerId) -> bool:
        """Whether the server was silent lately when asked what it holds."""
        return self._loads.is_doubtful(server_id, ReadFronts)

    def answered(self, request: ReadSlot, now: float) -> PendingQuestion:
        """Note an answer. Returns its question."""
        question = self._questions.pop(request)
        self._slowest_s = max(self._slowest_s, now - question.watch.sent_at)
        self._last_answer_at = now
        question.watch.answered(now)
        return question

    def failed(self, request: ReadSlot, now: float) -> None:
        """Note a failure: no answer will come."""
        self._questions.pop(request).watch.ended()
        self._last_answer_at = now

    def wake_at(self, stake: Stake) -> float | None:
        """When to give up on the next server, if nothing changes."""
        times = [self._limit(question, stake) for question in self._questions.values()]
        if stake is Stake.FEW:
            times.append(self.tardy_at)
        if stake in {Stake.NEWNESS, Stake.HEALTH, Stake.MAJORITY}:
            first = min((question.watch.sent_at for question in self._questions.values()), default=0.0)
            times.append(max(first + UNREACHED_S, self._looked_at + UNREACHED_AGAIN_S))
        return min(times) if self._questions else None

    @property
    def tardy_at(self) -> float:
        """When an answer begins to take longer than others or its server's past let expect."""
        watches = (question.watch for question in self._questions.values())
        return min((min(watch.tardy_at, watch.late_at) for watch in watches), default=float("inf"))

    def overdue(self, stake: Stake, now: float) -> list[ReadSlot]:
        """The requests to give up on now."""
        self._looked_at = now
        return [request for request, question in self._questions.items() if now >= self._limit(question, stake)]

    def _limit(self, question: PendingQuestion, stake: Stake) -> float:
        """When to give up on the question."""
        sent_at, doubtful = question.watch.sent_at, question.watch.is_doubtful
        latency = question.watch.load.latency
        known_s = latency.latency_s if latency.latency_known else 0.0
        # All were asked in parallel.
        early_s = max(other.early_s for other in self._questions.values())
        grace_s = max(GRACE_FLOOR_S, GRACE_FACTOR * self._slowest_s) + early_s
        honest_s = min(ANSWER_LIMIT_S, max(HONEST_SLOW_S, HONEST_FACTOR * known_s, grace_s))
        newness_s = honest_s
        if latency.latency_known:
            usual_s = max(KNOWN_FACTOR * known_s, KNOWN_SLOWEST_FACTOR * latency.slowest_s)
            newness_s = min(honest_s, max(KNOWN_FLOOR_S, usual_s, grace_s))
        is_unreached = self._loads.memory.is_unreached(question.server_id)
        if is_unreached:
            newness_s = min(newness_s, UNREACHED_S)
        match stake:
            case Stake.EVERYTHING:
                return sent_at + (honest_s if doubtful else ANSWER_LIMIT_S + early_s)
            case Stake.MAJORITY if not is_unreached:
                return sent_at + (honest_s if doubtful else ANSWER_LIMIT_S + early_s)
            case Stake.HEALTH:
                return sent_at + (DOUBTFUL_CHECK_S if doubtful else newness_s)
            case Stake.NEWNESS | Stake.MAJORITY | Stake.FEW:
                return self._last_answer_at + DOUBTFUL_S if doubtful else sent_at + newness_s
            case Stake.NOTHING:
                return self._last_answer_at + (DOUBTFUL_S if doubtful else grace_s)
