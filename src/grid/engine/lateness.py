"""When an answer is late, when its server is silent, and when it is hopeless: one rule for reads and one for writes. Pure.

A read compares a server with what it is known to take, because another share can be read instead. A write compares it with
the other servers of the same write, because its share was meant for just that server. What to do about a late answer is for
the plan to decide. Why each number is what it is: docs/decisions/0200-one-rule-of-lateness.md.
"""

from __future__ import annotations

from typing import Generic, Self, TypeVar

from attrs import define, field

from grid.engine.latency import Latency
from grid.engine.server_memory import SHORT_PATIENCE_S, ServerMemory
from grid.ports import ServerId

L = TypeVar("L", bound="ServerLoad")
Q = TypeVar("Q")

LATE_FLOOR_S = 0.5
"""No answer to a read is late before this: a busy machine's scheduling alone costs tenths of a second."""

LATE_FACTOR = 4.0
"""An answer is late when it takes this many times what was expected."""

SILENCE_FLOOR_S = 1.5
COMPARED_SILENCE_FLOOR_S = 0.85
SILENCE_FACTOR = 8.0
"""A server is silent when nothing at all has come from it for this long, though an answer is due; sooner once the rate of
another server is known, because then it is not the line that is slow."""

HOPELESS_S = 20.0
HOPELESS_FACTOR = 20.0
SLOWEST_RATE = 10e3
"""A silent server is given up after this long, plus its bytes at this rate a second: where every server is that slow, only
patience helps."""

RETRY_S = 4.0
RETRY_RATE = 100e3
"""The same where the operation looks for shares again when a read fails, and other servers have answered meanwhile."""

DOUBTFUL_S = 0.9
"""How long a server that was silent lately is waited for by work that can do without it."""


@define(kw_only=True)
class Answers:
    """What the servers of one file have shown together.

    heard_at: when any of them answered last. rate_known: whether the rate of any is known. is_retried: whether the operation
    looks for shares again when a read fails.
    """

    is_retried: bool = False
    heard_at: float = float("-inf")
    rate_known: bool = False


@define(kw_only=True, eq=False)
class ServerLoad:
    """One server's speed, and what is asked of it, as seen by the reads of one file.

    latency: what its answers cost, as the client remembers it. is_doubtful: whether it was silent lately, and has not answered
    since. is_slow: whether its last answer is late. heard_at: when it last answered anything.
    """

    latency: Latency = field(factory=Latency)
    answers: Answers = field(factory=Answers)
    is_doubtful: bool = False
    is_slow: bool = False
    outstanding_bytes: int = 0
    heard_at: float = float("-inf")

    def expected_s(self, size: int) -> float:
        """Seconds until `size` more bytes should have come."""
        return self.latency.time_of(self.outstanding_bytes + size)

    def sent(self, size: int, now: float, *, is_doubtful: bool | None = None) -> PendingRead[Self]:
        """PendingRead a request for `size` bytes. is_doubtful: for this kind of request, where that is known apart."""
        self.outstanding_bytes += size
        doubtful = self.is_doubtful if is_doubtful is None else is_doubtful
        return PendingRead(load=self, size=size, queued=self.outstanding_bytes, sent_at=now, was_doubtful=doubtful)


@define(kw_only=True, eq=False)
class PendingRead(Generic[L]):
    """One outstanding read. queued: its bytes, and those asked for before that had not come by then.

    late, silent: what the last check has noted. All times follow what is learned of the server meanwhile.
    """

    load: L
    size: int
    queued: int
    sent_at: float
    was_doubtful: bool = False
    late: bool = False
    silent: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Whether the server was in doubt when it was asked, and has not answered anything since."""
        return self.was_doubtful and self.load.heard_at <= self.sent_at

    @property
    def late_at(self) -> float:
        """When the answer has taken longer than it should, as far as is known."""
        if self.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        return self.sent_at + max(LATE_FLOOR_S, LATE_FACTOR * self.load.latency.time_of(self.queued))

    @property
    def silent_at(self) -> float:
        """When the server has been silent for too long to be merely slow."""
        if self.is_doubtful:
            return self.sent_at + SHORT_PATIENCE_S
        floor_s = COMPARED_SILENCE_FLOOR_S if self.load.answers.rate_known else SILENCE_FLOOR_S
        return self._heard_at + max(floor_s, SILENCE_FACTOR * self.load.latency.time_of(self.size))

    @property
    def hopeless_at(self) -> float:
        """When the answer is given up although no other server may have what was asked for."""
        answers = self.load.answers
        if answers.is_retried and answers.heard_at > self.sent_at:
            expected_s = SILENCE_FACTOR * self.load.latency.time_of(self.queued)
            return self._heard_at + max(RETRY_S, expected_s) + self.queued / RETRY_RATE
        expected_s = HOPELESS_FACTOR * self.load.latency.time_of(self.size)
        return self._heard_at + max(HOPELESS_S, expected_s) + self.queued / SLOWEST_RATE

    @property
    def dispensable_until(self) -> float:
        """When the answer is given up by work that can do without it."""
        return self.sent_at + DOUBTFUL_S if self.is_doubtful else self.hopeless_at

    @property
    def wake_at(self) -> float:
        """When to check it next, after the last check."""
        times = [] if self.late else [self.late_at]
        times += [] if self.silent else [self.silent_at]
        return min(times, default=self.hopeless_at)

    def check(self, now: float) -> bool:
        """Note whether the answer is late now, and the server silent; whether the answer is hopeless."""
        self.late = now >= self.late_at
        self.silent = now >= self.silent_at
        self.load.is_slow = self.load.is_slow or self.late
        return now >= self.hopeless_at

    def answered(self, now: float) -> None:
        """The answer came: learn from it how fast the server is."""
        load = self.load
        load.latency.learn(self.size, self.queued, now - self.sent_at)
        self.ended()
        load.is_doubtful = load.is_slow = False
        load.heard_at = load.answers.heard_at = now
        load.answers.rate_known = load.answers.rate_known or load.latency.rate_known

    def ended(self) -> None:
        """The request is over, with or without an answer."""
        self.load.outstanding_bytes -= self.size
        self.size = 0

    @property
    def _heard_at(self) -> float:
        return max(self.sent_at, self.load.heard_at)


@define
class ServerLoads:
    """The loads of all servers of one file, kept from one operation to the next."""

    memory: ServerMemory = field(factory=ServerMemory)
    answers: Answers = field(factory=lambda: Answers(is_retried=True))
    _loads: dict[ServerId, ServerLoad] = field(factory=dict)

    def of(self, server_id: ServerId) -> ServerLoad:
        """That server's load."""
        load = self._loads.get(server_id)
        if load is None:
            latency = self.memory.latency(server_id)
            load = self._loads[server_id] = ServerLoad(latency=latency, answers=self.answers)
        return load

    def is_doubtful(self, server_id: ServerId, kind: type) -> bool:
        """Whether that server was silent on requests of that class lately."""
        return self.memory.is_doubtful(server_id, kind.__name__)

    def ask(self, server_id: ServerId, size: int, now: float, kind: type) -> PendingRead[ServerLoad]:
        """PendingRead a request of that class, whose answer has `size` bytes."""
        return self.of(server_id).sent(size, now, is_doubtful=self.is_doubtful(server_id, kind))


@define(eq=False)
class Outstanding(Generic[Q]):
    """The questions of one round, for plans that compare the silent with those that have answered.

    sent_at: when each unanswered question was asked. slowest_s: the slowest answer. last_at: when the last answer came, or when
    the last question was asked.
    """

    sent_at: dict[Q, float] = field(factory=dict)
    slowest_s: float = 0.0
    last_at: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.sent_at)

    def answered(self, question: Q, now: float) -> None:
        """Note an answer."""
        self.slowest_s = max(self.slowest_s, now - self.sent_at.pop(question))
        self.last_at = now

    def failed(self, question: Q, now: float) -> None:
        """Note a failure."""
        del self.sent_at[question]
        self.last_at = now

    def grace_ends(self, floor_s: float, factor: float) -> float:
        """When the silent have been waited for long enough after the last answer."""
        return self.last_at + max(floor_s, factor * self.slowest_s)


WRITE_FLOOR_S = 0.2
WRITE_FACTOR = 4.0
"""Once enough servers have a version, another one gets this long, or this many times the slowest answer of the plan."""

KNOWN_FACTOR = 2.0
"""A trusted server gets at least this many times what its answers usually take: one that is far away is not left out."""

DOUBT_FACTOR = 2.0
"""A server in doubt gets this many times the slowest answer of the others."""

OTHER_WRITER_PATIENCE_S = 2.0
"""A trusted server gets this long if it and other late ones could hold enough of another writer's version to be read."""

UNANSWERED_S = 2.0
"""Before any server has answered, none is late sooner: the line is slow, or the messages are large."""

WRITE_HOPELESS_S = 60.0
WRITE_SLOWEST_RATE = 20e3
"""No write is waited for longer than this, plus its bytes at this rate a second."""


@define(kw_only=True, eq=False)
class WriteLateness:
    """When a write to one server is late, judged by the answers of the others and by what the client remembers.

    memory: None where every server has just answered. slowest_s, largest: of the answers so far; heard: there were any.
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
        """A request of `size` bytes was answered."""
        self.heard = True
        self.slowest_s = max(self.slowest_s, elapsed_s)
        self.largest = max(self.largest, size)

    def is_doubtful(self, server_id: ServerId, kind: str) -> bool:
        """Whether the server is known to keep silent."""
        return self.memory is not None and self.memory.is_doubtful(server_id, kind)

    def late_at(self, server_id: ServerId, kind: str, size: int, sent_at: float) -> float:
        """When others need not wait for it any longer."""
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
        """When it is given up, although it is needed."""
        return sent_at + WRITE_HOPELESS_S + size / WRITE_SLOWEST_RATE
