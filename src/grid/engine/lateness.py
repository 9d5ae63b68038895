"""When an answer is late, when its server is silent, and when waiting is hopeless: one rule for reads, one for writes. Pure.

A read compares a server with its own past, and sooner with what all servers of the file do meanwhile: it can read another
share instead. A write compares it with the other servers of the same write, because the share was meant for that server.
The plan decides what to do about a late answer. For the reason behind each number, see
docs/decisions/0200-one-rule-of-lateness.md and 0342-overtaken-answers.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Self, TypeVar

from grid.engine.latency import SMALL_ANSWER, Latency, are_distant, slowest_recent
from grid.engine.server_memory import SHORT_PATIENCE_S, ServerMemory
from grid.ports import ServerId
from grid.values import define, field

L = TypeVar("L", bound="ServerLoad")
Q = TypeVar("Q")

LATE_FLOOR_S = 0.5
"""No read is late before this: scheduling on a busy machine alone costs tenths of a second."""

LATE_FACTOR = 4.0
"""An answer is late when it takes this many times as long as expected."""

OVERTAKEN_FLOOR_S = 0.15
OVERTAKEN_FACTOR = 4.0
"""An answer is overtaken when any server of the file has answered something since it was requested, and it takes this many
times as long as the slowest recent answers and as expected: then the server is slow, not the machine or the network."""

TARDY_S = 0.15
"""An answer is tardy when it takes this much longer than expected by the slowest recent ones, and some server has answered meanwhile.
That matters only if an operation waits for nothing but tardy answers."""

SILENCE_FLOOR_S = 1.5
COMPARED_SILENCE_FLOOR_S = 0.85
SILENCE_FACTOR = 8.0
"""A server is silent if it has sent nothing at all for this long although an answer is due. It counts as silent sooner if its own
speed is known, or the rate of any server of the file, because then the line is not what is slow."""

HOPELESS_S = 20.0
HOPELESS_FACTOR = 20.0
SLOWEST_RATE = 10e3
"""Give up on a silent server after this long, plus its bytes at this rate per second. If every server is that slow, only
patience helps."""

RETRY_S = 4.0
RETRY_RATE = 100e3
"""The same if the operation looks for shares again after a failed read, and any server has answered meanwhile."""

DOUBTFUL_S = 0.9
"""How long work that can do without a server waits for it if the server was silent lately."""


@define(kw_only=True)
class Answers:
    """What the answers from all servers of one file show, those of the server that is judged included.

    heard_at: when any of them last answered. quickest_s: how long the quickest answer took. slowest_s: how long the slowest recent
    answers took; slowest_byte_s: the same per byte of large answers, 0 before the first; queued_byte_s: the same without the latency,
    and per byte that was outstanding when they were requested. rate_known: whether the rate of any is known. is_retried: whether the
    operation looks for shares again when a read fails.
    """

    is_retried: bool = False
    heard_at: float = float("-inf")
    quickest_s: float = float("inf")
    slowest_s: float = 0.0
    slowest_byte_s: float = 0.0
    queued_byte_s: float = 0.0
    rate_known: bool = False

    def learn(self, size: int, elapsed_s: float, queued_byte_s: float, now: float) -> None:
        """An answer of `size` bytes came after elapsed_s."""
        self.quickest_s = min(self.quickest_s, elapsed_s)
        self.slowest_s = slowest_recent(self.slowest_s, elapsed_s)
        if size >= SMALL_ANSWER:
            self.slowest_byte_s = slowest_recent(self.slowest_byte_s, elapsed_s / size)
            self.queued_byte_s = slowest_recent(self.queued_byte_s, queued_byte_s)
        self.heard_at = now

    @property
    def is_distant(self) -> bool:
        """Whether even the nearest server that has answered is far away."""
        return are_distant(self.quickest_s)


@define(kw_only=True, eq=False)
class ServerLoad:
    """One server's speed and its outstanding requests, as the reads of one file see them.

    latency: the cost of its answers, shared with the client's memory. is_doubtful: it was silent lately and has not answered
    since. is_slow: its last answer is late. heard_at: when it last answered anything.
    """

    latency: Latency = field(factory=Latency)
    answers: Answers = field(factory=Answers)
    is_doubtful: bool = False
    is_slow: bool = False
    outstanding_bytes: int = 0
    heard_at: float = float("-inf")

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more bytes should arrive."""
        return self.latency.time_of(self.outstanding_bytes + size)

    def sent(self, size: int, now: float, *, is_doubtful: bool | None = None) -> PendingRead[Self]:
        """Track a request for `size` bytes. is_doubtful: overrides the server's flag, if doubt about this kind of request is known."""
        self.outstanding_bytes += size
        doubtful = self.is_doubtful if is_doubtful is None else is_doubtful
        return PendingRead(load=self, size=size, queued=self.outstanding_bytes, sent_at=now, was_doubtful=doubtful)


@define(kw_only=True, eq=False)
class PendingRead(Generic[L]):
    """One outstanding read. queued: its bytes, plus those requested earlier and still outstanding at that time.

    late, overtaken, silent, tardy: results of the last check. All times move as the client learns more about the server.
    raced: another server is asked as well because the operation waited for nothing but tardy answers; it counts as overtaken.
    """

    load: L
    size: int
    queued: int
    sent_at: float
    was_doubtful: bool = False
    late: bool = False
    overtaken: bool = False
    silent: bool = False
    tardy: bool = False
    raced: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Whether the server was in doubt when the request was sent, and has not answered anything since."""
        return self.was_doubtful and self.load.heard_at <= self.sent_at

    @property
    def late_at(self) -> float:
        """When the answer becomes late, as far as is known now."""
        return self._late_at(self.overtaken_at)

    def _late_at(self, overtaken_at: float) -> float:
        if self.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        late_at = self.sent_at + max(LATE_FLOOR_S, LATE_FACTOR * self.load.latency.time_of(self.queued))
        return min(late_at, overtaken_at)

    @property
    def overtaken_at(self) -> float:
        """When the answer becomes overtaken; inf while no server has answered anything comparable since it was requested."""
        answers, latency = self.load.answers, self.load.latency
        if not self._is_comparable:
            return float("inf")
        byte_s = max(answers.slowest_byte_s, latency.byte_s if latency.rate_known else 0.0)
        expected_s = self.queued * byte_s + (latency.latency_s if latency.latency_known else 0.0)
        return self._heard_at + max(OVERTAKEN_FLOOR_S, OVERTAKEN_FACTOR * max(answers.slowest_s, expected_s))

    @property
    def tardy_at(self) -> float:
        """When the answer becomes tardy; inf while overtaken_at is."""
        answers, latency = self.load.answers, self.load.latency
        if not self._is_comparable:
            return float("inf")
        byte_s = max(answers.queued_byte_s, latency.byte_s if latency.rate_known else 0.0)
        usual_s = self.queued * byte_s + max(latency.latency_s, latency.slowest_s)
        return self._heard_at + usual_s + TARDY_S

    @property
    def _is_comparable(self) -> bool:
        """Whether answers have come meanwhile that show how long this one should take.

        A large answer is compared only with large ones: on a slow network, small ones arrive first.
        """
        answers = self.load.answers
        return answers.heard_at > self.sent_at and (self.size < SMALL_ANSWER or answers.slowest_byte_s > 0)

    @property
    def silent_at(self) -> float:
        """When the server has been silent for too long to be merely slow."""
        if self.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        compared = self.load.answers.rate_known or self.load.latency.knows_speed_of(self.size)
        floor_s = COMPARED_SILENCE_FLOOR_S if compared else SILENCE_FLOOR_S
        return self._heard_at + max(floor_s, SILENCE_FACTOR * self.load.latency.time_of(self.size))

    @property
    def hopeless_at(self) -> float:
        """When to give up on the answer even if no other server may have the data."""
        answers = self.load.answers
        if answers.is_retried and answers.heard_at > self.sent_at:
            expected_s = SILENCE_FACTOR * self.load.latency.time_of(self.queued)
            return self._heard_at + max(RETRY_S, expected_s) + self.queued / RETRY_RATE
        expected_s = HOPELESS_FACTOR * self.load.latency.time_of(self.size)
        return self._heard_at + max(HOPELESS_S, expected_s) + self.queued / SLOWEST_RATE

    @property
    def dispensable_until(self) -> float:
        """When work that can do without the answer gives up on it."""
        return self.sent_at + DOUBTFUL_S if self.is_doubtful else self.hopeless_at

    @property
    def wake_at(self) -> float:
        """When to check again."""
        at = float("inf")
        if not (self.late and self.overtaken):
            overtaken_at = self.overtaken_at
            at = at if self.late else self._late_at(overtaken_at)
            at = at if self.overtaken else min(at, overtaken_at)
        if not self.silent:
            at = min(at, self.silent_at)
        if not (self.tardy or self.overtaken):
            at = min(at, self.tardy_at)
        return self.hopeless_at if at == float("inf") else at

    def check(self, now: float) -> bool:
        """Update `late`, `overtaken`, `silent` and `tardy`. Returns whether waiting is hopeless."""
        overtaken_at = self.overtaken_at
        self.late = self.raced or now >= self._late_at(overtaken_at)
        self.overtaken = self.raced or now >= overtaken_at
        self.silent = now >= self.silent_at
        self.tardy = now >= self.tardy_at
        self.load.is_slow = self.load.is_slow or self.late
        return now >= self.hopeless_at

    def answered(self, now: float) -> None:
        """The answer has come: learn the server's speed from it."""
        load = self.load
        elapsed_s = now - self.sent_at
        load.latency.learn(self.size, self.queued, elapsed_s)
        load.answers.learn(self.size, elapsed_s, load.latency.byte_s_of(max(1, self.size, self.queued), elapsed_s), now)
        self.ended()
        load.is_doubtful = load.is_slow = False
        load.heard_at = now
        load.answers.rate_known = load.answers.rate_known or load.latency.rate_known

    def ended(self) -> None:
        """The request has ended, with or without an answer."""
        self.load.outstanding_bytes -= self.size
        self.size = 0

    @property
    def _heard_at(self) -> float:
        return max(self.sent_at, self.load.heard_at)


def race_if_stuck(watches: Iterable[PendingRead[L]]) -> None:
    """If every server has a tardy answer, let all their answers count as overtaken. The watches: of all outstanding requests, just checked.

    What a server was asked for later comes after that. So nothing else is on its way, and what is requested twice delays nothing.
    """
    watches = list(watches)
    tardy = {id(watch.load) for watch in watches if watch.tardy or watch.overtaken}
    if all(id(watch.load) in tardy for watch in watches):
        for watch in watches:
            watch.raced = watch.late = watch.overtaken = watch.load.is_slow = True


@define
class ServerLoads:
    """The loads of all servers of one file, kept between operations."""

    memory: ServerMemory = field(factory=ServerMemory)
    answers: Answers = field(factory=lambda: Answers(is_retried=True))
    _loads: dict[ServerId, ServerLoad] = field(factory=dict)

    def of(self, server_id: ServerId) -> ServerLoad:
        """The load of that server."""
        load = self._loads.get(server_id)
        if load is None:
            latency = self.memory.latency(server_id)
            load = self._loads[server_id] = ServerLoad(latency=latency, answers=self.answers)
        return load

    def is_doubtful(self, server_id: ServerId, kind: type) -> bool:
        """Whether that server was silent lately on this kind of request."""
        return self.memory.is_doubtful(server_id, kind.__name__)

    def ask(self, server_id: ServerId, size: int, now: float, kind: type) -> PendingRead[ServerLoad]:
        """Track a request of this kind whose answer has `size` bytes."""
        return self.of(server_id).sent(size, now, is_doubtful=self.is_doubtful(server_id, kind))


@define(eq=False)
class Outstanding(Generic[Q]):
    """The requests of one round, for plans that compare silent servers with those that have answered.

    sent_at: when each unanswered request was sent. quickest_s, slowest_s: the quickest answer, inf before the first, and the slowest.
    last_at: when the last answer came, or the last request was sent.
    """

    sent_at: dict[Q, float] = field(factory=dict)
    quickest_s: float = float("inf")
    slowest_s: float = 0.0
    last_at: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.sent_at)

    def answered(self, question: Q, now: float) -> None:
        """Note an answer."""
        elapsed_s = now - self.sent_at.pop(question)
        self.quickest_s, self.slowest_s = min(self.quickest_s, elapsed_s), max(self.slowest_s, elapsed_s)
        self.last_at = now

    def failed(self, question: Q, now: float) -> None:
        """Note a failure."""
        del self.sent_at[question]
        self.last_at = now

    def grace_ends(self, floor_s: float, factor: float) -> float:
        """When the plan has waited long enough for silent servers after the last answer."""
        return self.last_at + max(floor_s, factor * self.slowest_s)


WRITE_FLOOR_S = 0.2
WRITE_FACTOR = 4.0
"""Once enough servers hold a version, each other server gets this long, or this many times the plan's slowest answer."""

KNOWN_FACTOR = 2.0
"""A trusted server gets at least this many times its usual time, so that distant servers are not left out."""

DOUBT_FACTOR = 2.0
"""A server in doubt gets this many times the slowest answer of the others."""

OTHER_WRITER_PATIENCE_S = 2.0
"""A trusted server gets this long if it and other late ones may together hold a readable version of another writer."""

UNANSWERED_S = 2.0
"""Before the first answer, no server is late sooner: the line may be slow, or the messages large."""

WRITE_HOPELESS_S = 60.0
WRITE_SLOWEST_RATE = 20e3
"""No write waits longer than this, plus its bytes at this rate per second."""


@define(kw_only=True, eq=False)
class WriteLateness:
    """When a write to one server is late, compared with the other servers' answers and with what the client remembers.

    memory: None if every server has just answered. slowest_s, largest: maxima of the answers so far; heard: there was one.
    """

    memory: ServerMemory | None = None
    floor_s: float = WRITE_FLOOR_S
    factor: float = WRITE_FACTOR
    unanswered_s: float = UNANSWERED_S
    unanswered_rate: float = WRITE_SLOWEST_RATE
    slowest_s: float = 0.0
    largest: int = 0
    heard: bool = False

    def learn(self, size: int, elapsed_s: float) -> None:
        """Note that a request of `size` bytes was answered."""
        self.heard = True
        self.slowest_s = max(self.slowest_s, elapsed_s)
        self.largest = max(self.largest, size)

    def is_doubtful(self, server_id: ServerId, kind: str) -> bool:
        """Whether the server was silent lately on this kind of request."""
        return self.memory is not None and self.memory.is_doubtful(server_id, kind)

    def late_at(self, server_id: ServerId, kind: str, size: int, sent_at: float) -> float:
        """When others need no longer wait for it."""
        usual_s = self.slowest_s * max(1.0, size / max(1, self.largest))
        if self.is_doubtful(server_id, kind):
            return sent_at + max(SHORT_PATIENCE_S, DOUBT_FACTOR * usual_s)
        if not self.heard:
            return sent_at + max(self.unanswered_s, size / self.unanswered_rate)
        known_s = 0.0
        if self.memory is not None:
            latency = self.memory.latency(server_id)
            known_s = KNOWN_FACTOR * latency.latency_s if latency.latency_known else 0.0
        return sent_at + max(self.floor_s, self.factor * usual_s, known_s)

    def hopeless_at(self, size: int, sent_at: float) -> float:
        """When to give up on it although it is needed."""
        return sent_at + WRITE_HOPELESS_S + size / WRITE_SLOWEST_RATE
